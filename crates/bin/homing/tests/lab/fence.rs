//! Tasks of `homing run` on a real GlusterFS volume, and on an sshfs, with all caches on. They must read the files
//! that tasks on other hosts have just written. Needs root and GlusterFS, or sshfs; otherwise prints a note and is
//! skipped.

use crate::support::{EXE, Lab, missing};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Waits for the other task of the round, so that the two run on different hosts of one slot each. Reads both files,
/// so both hosts know their old states.
const MEET: &str = "touch meet.$ROUND.$ME; until [ -e meet.$ROUND.1 ] && [ -e meet.$ROUND.2 ]; do sleep 0.02; done; cat f.1 f.2 >/dev/null";

/// A batch that receives its tasks one after another, as from a program that produces work.
struct Batch {
    child: Child,
    tasks: Option<ChildStdin>,
    said: Lines<BufReader<ChildStdout>>,
}

impl Batch {
    fn start(lab: &Lab, more: &str) -> Batch {
        let run = format!("cd /data && exec {EXE} run --on ssh --hosts 'n[2-3]' -j1 --quiet {more} --tasks -");
        let mut child = Command::new(EXE)
            .args(["lab", "exec", "--name", &lab.name, "n1", "--", "sh", "-c", &run])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Batch { tasks: child.stdin.take(), said, child }
    }

    /// Runs two tasks at once. Returns the lines that they print, sorted.
    fn both(&mut self, round: &str, command: &str, io: impl Fn(u32) -> [Vec<String>; 2]) -> Vec<String> {
        for me in [1, 2] {
            let [inputs, outputs] = io(me);
            let task = serde_json::json!({
                "command": format!("{MEET}; {command}"),
                "env": {"ROUND": round, "ME": me.to_string()},
                "inputs": inputs,
                "outputs": outputs,
            });
            writeln!(self.tasks.as_mut().unwrap(), "{task}").unwrap();
        }
        let mut lines: Vec<String> = (0..2).map(|_| self.said.next().unwrap().unwrap()).collect();
        lines.sort();
        lines
    }

    fn end(mut self) {
        drop(self.tasks.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_task_reads_what_a_task_on_another_host_has_just_written() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("fence", &["--hosts", "3", "--gluster", "replica=3"]);
    lab.ok("n1", &format!("{EXE} hosts --hosts 'n[1-3]'; cd /data; echo old0 >f.1; echo old0 >f.2"));
    declared(&lab);
    undeclared(&lab);
    written(&lab);
    root(&lab);
}

/// Files are overwritten in place with as many bytes. Without a fence a host reads the old ones for another second.
fn declared(lab: &Lab) {
    let mut batch = Batch::start(lab, "");
    let both = || vec!["f.1".to_string(), "f.2".to_string()];
    for round in ["a", "b", "c", "d"] {
        let write = format!("echo new{round} >f.$ME; hostname");
        let hosts = batch.both(round, &write, |me| [vec![], vec![format!("f.{me}")]]);
        assert_eq!(hosts, ["n2", "n3"]);
        // The task reads the files after the fence has looked at them.
        let read = batch.both(&format!("{round}2"), "echo $(cat f.1 f.2)", |_| [both(), vec![]]);
        assert_eq!(read, [format!("new{round} new{round}"), format!("new{round} new{round}")]);
    }
    batch.end();
}

/// Another run has written the file. This run knows only the file's time.
fn undeclared(lab: &Lab) {
    let run = |host: &str, command: &str| format!("{EXE} run --on ssh --hosts {host} --quiet \"{command}\" ::: f.1");
    for round in ["e", "f"] {
        let write = run("n2", &format!("echo new{round} >{{}}"));
        let read = run("n3", "cat {}");
        let said = lab.ok("n1", &format!("cd /data && {read} && {write} && {read}"));
        assert_eq!(said.lines().last().unwrap(), format!("new{round}"), "{said}");
    }
}

/// All hosts have a copy of each file. The host that wrote a file also has it in its caches.
fn written(lab: &Lab) {
    let task = |i: u32, command: &str, from: &str, to: &str| {
        let command = command.replace('#', &i.to_string());
        serde_json::json!({"command": command, "inputs": [from.replace('#', &i.to_string())],
                           "outputs": [to.replace('#', &i.to_string())]})
        .to_string()
    };
    let read = |i| task(i, "echo $(hostname) $(cat made.#); touch read.#", "made.#", "read.#");
    // Each task lasts so long that all get a slot before the first one ends.
    let made = |i| task(i, "hostname > made.#; sleep 1", "f.1", "made.#");
    let tasks: Vec<String> = (1..=9).flat_map(|i| [read(i), made(i)]).collect();
    let run = format!("{EXE} run -q --on ssh --hosts 'n[1-3]' -j6 --tasks tasks");
    let said = lab.ok("n1", &format!("cd /data; cat > tasks <<'END'\n{}\nEND\n{run}", tasks.join("\n")));
    let hosts: Vec<(&str, &str)> = said.lines().filter_map(|line| line.split_once(' ')).collect();
    assert!(hosts.len() == 9 && hosts.iter().all(|(reader, maker)| reader == maker), "{said}");
    assert!(hosts.iter().any(|(host, _)| *host != hosts[0].0), "the hosts share the work: {said}");
}

/// GlusterFS's client ends itself when it must look again at its own root. A user who waited for a job there needs
/// GlusterFS's client ends itself when it must look again at its own root. After a job there homing wants that look.
fn root(lab: &Lab) {
    lab.ok("n1", &format!("{EXE} lsf install /tmp/lsf; cd /data && /tmp/lsf/bsub -K -o said true; touch after"));
}

/// Without fences a host sees old sizes and listings for 20 s. The content of a file that it opens is new at once.
#[test]
fn a_task_sees_past_what_an_sshfs_keeps() {
    if missing(&["sshfs"]) {
        return;
    }
    let lab = Lab::up("sshfence", &["--hosts", "4"]);
    anew(&lab);
    let right = |n: usize| format!("{} {} {n} {n} new{n} new{n}", 4 + n, 4 + n);
    let fenced = sizes_and_listings(&lab, "", 4);
    assert_eq!(fenced, [right(1), right(2), right(3), right(4)].map(|line| [line.clone(), line]));
    anew(&lab);
    let control = sizes_and_listings(&lab, "--no-fence", 2);
    assert_ne!(control[1], [right(2), right(2)], "the control sees all without a fence");
    lab.ok("n1", "ls -A /data | grep homing && exit 1; exit 0");
}

/// Makes the files again, and mounts the volume again on all hosts, so that no host has them in a cache.
fn anew(lab: &Lab) {
    let files = "mkdir d.1 d.2; for i in 1 2; do echo old >f.$i; ln -s old l.$i; done";
    lab.ok("n4", &format!("rm -rf /scratch/x; mkdir /scratch/x; cd /scratch/x; {files}"));
    for host in ["n1", "n2", "n3"] {
        lab.ok(host, "umount /data 2>/dev/null; mkdir -p /data; sshfs n4:/scratch/x /data");
    }
}

/// Runs rounds in which both hosts write. Returns sizes of files, names in folders and targets of links, as both
/// hosts see them after each round.
fn sizes_and_listings(lab: &Lab, how: &str, rounds: usize) -> Vec<[String; 2]> {
    let mut batch = Batch::start(lab, how);
    let look = "stat -c %s f.1 f.2; ls d.1 | wc -l; ls d.2 | wc -l; readlink l.1 l.2";
    let mut told = Vec::new();
    for n in 1..=rounds {
        let write = format!("{{ {look}; }} >/dev/null; echo -n x >>f.$ME; : >d.$ME/{n}; ln -sfn new{n} l.$ME");
        let names = |me: u32| ["f", "d", "l"].map(|name| format!("{name}.{me}")).to_vec();
        batch.both(&format!("{how}{n}w"), &format!("{write}; hostname"), |me| [vec![], names(me)]);
        let read =
            batch.both(&format!("{how}{n}r"), &format!("echo $({look})"), |_| [[names(1), names(2)].concat(), vec![]]);
        told.push([read[0].clone(), read[1].clone()]);
    }
    batch.end();
    told
}
