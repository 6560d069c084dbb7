//! The LSF front end, with the calls of scripts and workflow managers and with real processes.

mod agree;
mod change;
mod control;
mod index;
mod iobsub;
mod keys;
mod memory;
mod openlava;
mod words;

use crate::until::until;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

struct World {
    dir: tempfile::TempDir,
    host: String,
}

impl World {
    /// Makes two slots, a queue for storage, a closed queue, and one of another host.
    fn new() -> World {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let world = World { dir: tempfile::tempdir_in("/var/tmp").unwrap(), host };
        world.write("[queue.storage]\npriority = 30\nper_user = 4\n");
        let out = world.homing(&["lsf", "install", "bin"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        world
    }
    fn write(&self, more: &str) {
        let text = format!(
            "hosts = \"{0},other[1-2]\"\n[host.\"{0}\"]\nslots = 2\n[host.elsewhere]\nslots = 1\n[queue.normal]\ndefault = true\npriority = 20\n\
             [queue.shut]\nclosed = true\n[queue.far]\nhosts = \"elsewhere\"\n{more}",
            self.host
        );
        std::fs::write(self.path().join("cluster.toml"), text).unwrap();
    }
    fn path(&self) -> &Path {
        self.dir.path()
    }
    fn prepare(&self, mut command: Command) -> Command {
        let path = format!("{}:{}", self.path().join("bin").display(), std::env::var("PATH").unwrap());
        command.current_dir(self.path()).env("PATH", path).env("HOMING_RUNS", self.path().join("runs"));
        command.env("HOMING_QUEUE", self.path().join("queue")).env_remove("SLURM_CONF").env("HOMING_ENGINE", "local");
        command.env("HOMING_CLUSTER", self.path().join("cluster.toml")).env("SHELL", "/bin/sh").stdin(Stdio::null());
        command
    }
    fn homing(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(args);
        self.prepare(command).output().unwrap()
    }
    /// Runs a shell line with the LSF commands in PATH. Returns status, standard output and standard error.
    fn sh(&self, line: &str) -> (i32, String, String) {
        self.fed(line, "")
    }
    fn fed(&self, line: &str, input: &str) -> (i32, String, String) {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        let mut command = self.prepare(command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
    }
    fn out(&self, line: &str) -> String {
        let (code, out, err) = self.sh(line);
        assert_eq!(code, 0, "{line}: {out}{err}");
        out
    }
    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }
    fn stat(&self, id: &str) -> String {
        self.out(&format!("bjobs -noheader -o stat {id}")).trim().to_string()
    }
}

#[test]
fn messages_and_exit_statuses_are_lsfs() {
    let w = World::new();
    assert_eq!(w.out("bsub true"), "Job <1> is submitted to default queue <normal>.\n");
    assert_eq!(w.out("bsub -q storage true"), "Job <2> is submitted to queue <storage>.\n");
    for (line, code, message) in [
        ("bsub -q nosuch true", 255, "nosuch: No such queue. Job not submitted.\n"),
        ("bsub -q shut true", 255, "shut: Queue has been closed. Job not submitted.\n"),
        ("bsub -m nosuch true", 255, "nosuch: Bad host name, host group name or cluster name. Job not submitted.\n"),
        (
            "bsub -q far -m $(hostname) true",
            255,
            "HOST: Host or host group is not used by the queue. Job not submitted.\n",
        ),
        ("bsub -w 'done(99)' true", 255, "99: No matching job found. Job not submitted.\n"),
        ("bsub </dev/null", 255, "No command is specified. Job not submitted.\n"),
        ("bjobs 9999", 255, "Job <9999> is not found\n"),
        ("bkill 9999", 255, "Job <9999>: No matching job found\n"),
        ("bjobs -q shut", 255, "No unfinished job found in queue <shut>\n"),
        ("bjobs -p", 255, "No pending job found\n"),
        ("bjobs -s", 255, "No suspended job found\n"),
        ("bjobs -d -q shut", 255, "No DONE/EXIT job found in queue <shut>\n"),
    ] {
        let (got, out, err) = w.sh(line);
        assert_eq!((got, out.as_str(), err.as_str()), (code, "", message.replace("HOST", &w.host).as_str()), "{line}");
    }
    let (code, _, err) = w.sh("bsub -R 'select[foo>1]' true");
    assert!(code == 255 && err.contains("Bad resource requirement syntax"), "{err}");
}

#[test]
fn waiting_and_interactive_jobs_give_their_status() {
    let w = World::new();
    let (code, out, err) = w.sh("bsub -K -o o 'exit 3'");
    let submitted = |id: u32| format!("Job <{id}> is submitted to default queue <normal>.\n");
    let want = "<<Waiting for dispatch ...>>\n<<Job is finished>>\n";
    assert_eq!((code, out, err.as_str()), (3, submitted(1), want));
    // The job reads the submitter's standard input, and answers at once.
    let (code, out, err) = w.fed("bsub -I 'read x; echo got $x; echo bad >&2; exit 5'", "this\n");
    assert_eq!((code, out), (5, submitted(2) + "got this\n"), "{err}");
    assert_eq!(err, format!("<<Waiting for dispatch ...>>\n<<Starting on {}>>\nbad\n", w.host));
    let (code, out, err) = w.sh("BSUB_STDERR=1 bsub -Is 'test -t 1 && echo terminal; exit 4'");
    assert_eq!((code, out.trim_end()), (4, "terminal"));
    assert!(err.starts_with(&submitted(3)), "{err}");
    assert_eq!(w.sh("lsrun sh -c 'exit 7'").0, 7);
    assert_eq!(w.sh("lsrun -m $(hostname) printf '%s|' 'a b' \"c'd\"").1, "a b|c'd|");
}

#[test]
fn a_script_with_its_options_and_the_report_that_snakemake_reads() {
    let w = World::new();
    let script = "#!/bin/bash\n#BSUB -J nf-one\n#BSUB -o log.%J\n#BSUB -q storage\n#BSUB -n 2\n#BSUB -R \"span[hosts=1]\"\n\
        #BSUB -W 00:10\n#BSUB -M 512\n#BSUB -R \"select[mem>=1] rusage[mem=1]\"\n\
        echo \"$LSB_JOBID $LSB_JOBNAME $LSB_QUEUE $LSB_JOBINDEX\"\nif [[ $LSB_DJOB_NUMPROC == 2 ]]; then exit 9; fi\n";
    let (code, out, _) = w.fed("bsub", script);
    assert_eq!((code, out.as_str()), (0, "Job <1> is submitted to queue <storage>.\n"));
    until("the job ends", || w.stat("1") == "EXIT");
    let log = w.file("log.1");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[0], "1 nf-one storage 0", "{log}");
    let at = lines.iter().position(|l| *l == "Resource usage summary:").unwrap();
    assert_eq!(lines[at - 2], "Exited with exit code 9.", "{log}");
    assert!(
        log.contains("\nSubject: Job 1: <nf-one> ") && log.contains("\n# LSBATCH: User input\n#!/bin/bash\n"),
        "{log}"
    );
    // The call of Nextflow, which finds columns by their heads.
    let table = w.out("bjobs -w -a -q storage");
    let rows: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!((rows[0][0], rows[0][2], rows[1][0], rows[1][2]), ("JOBID", "STAT", "1", "EXIT"));
    // The call of Snakemake.
    assert_eq!(
        w.out("bjobs -noheader -o 'jobid stat' -aJ '*f-o*'").split_whitespace().collect::<Vec<_>>(),
        ["1", "EXIT"]
    );
    w.out("bsub -K -o ok true");
    assert!(w.file("ok").contains("\nSuccessfully completed.\n\nResource usage summary:\n"));
}

#[test]
fn arrays_conditions_holding_and_killing() {
    let w = World::new();
    w.out("bsub -J 'a[1-3]%1' -o out.%I 'echo $LSB_JOBINDEX; test $LSB_JOBINDEX != 2'");
    w.out("bsub -w 'ended(\"a\")' -J after -o after.out 'cat out.[123] | grep -c \"^[123]$\"'");
    w.out("bsub -w 'done(1)' -J never true");
    until("what waited for the array", || w.stat("2") == "DONE");
    assert!(w.file("after.out").starts_with("3\n"));
    assert_eq!(
        w.out("bjobs -A 1").lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>()[1..6],
        ["a[1-3]%1", &user(), "3", "0", "2"]
    );
    let (code, out, _) = w.sh("bjobs -p 3");
    assert!(code == 0 && out.contains(" Dependency condition invalid or never satisfied;\n"), "{out}");
    assert_eq!(w.out("bkill 3"), "Job <3> is being terminated\n");

    w.out("bsub -H -J held -o held.out 'echo ran'");
    assert_eq!(w.stat("4"), "PSUSP");
    assert_eq!(w.out("bresume 4"), "Job <4> is being resumed\n");
    until("the held job runs", || w.stat("4") == "DONE");

    w.out("bsub -J long 'echo begun; sleep 1000'");
    until("it runs", || w.stat("5") == "RUN" && w.out("bpeek 5").contains("begun"));
    assert!(w.out("bpeek -J long").starts_with("<< output from stdout >>\nbegun\n"));
    assert_eq!(w.out("bstop 5"), "Job <5> is being stopped\n");
    assert_eq!(w.stat("5"), "USUSP");
    w.out("bresume 5");
    assert_eq!(w.stat("5"), "RUN");
    assert_eq!(w.out("bkill -J 'lo*' 0"), "Job <5> is being terminated\n");
    until("it is gone", || w.stat("5") == "EXIT");
    assert_eq!(w.sh("bkill 5").0, 255);
}

#[test]
fn groups_and_applications_choose_jobs_and_no_option_is_taken_for_another() {
    let w = World::new();
    for (group, app) in [("/grp", "A"), ("/oth", "B"), ("/grp/below", "A")] {
        w.out(&format!("bsub -H -g {group} -app {app} 'sleep 1000'"));
    }
    w.out("bsub -H 'sleep 1000'");
    let ids =
        |options: &str| w.out(&format!("bjobs -noheader -o jobid {options}")).split_whitespace().collect::<String>();
    assert_eq!(
        (ids("-g /grp"), ids("-app A"), ids("-g /grp -app A"), ids("-g /")),
        ("1".into(), "13".into(), "1".into(), "4".into())
    );
    assert_eq!(w.sh("bkill -app nosuch 0").1, "");
    assert_eq!(w.out("bkill -g /grp 0"), "Job <1> is being terminated\n");
    assert_eq!(w.out("bresume -g /oth/ 0"), "Job <2> is being resumed\n");
    assert_eq!(ids(""), "234", "the others live");
    for (line, says) in [
        ("bsub -gpu num=1:mps=yes touch ran", "-gpu num=1:mps=yes: homing has no mps"),
        ("bsub -nosuch touch ran", "illegal option -- nosuch"),
        ("bsub -sp 5 touch ran", "use a queue"),
        ("bsub -g grp touch ran", "Invalid job group name"),
        ("LSB_DEFAULTQUEUE=nosuch bsub touch ran", "nosuch (of LSB_DEFAULTQUEUE): No such queue"),
        ("bjobs -sum", "-sum: "),
        ("bkill -stat run", "-stat: "),
    ] {
        let (code, out, err) = w.sh(line);
        assert!(code == 255 && out.is_empty() && err.contains(says), "{line}: {err}");
    }
    w.out("bkill 0");
    assert!(!w.path().join("ran").exists());
}

fn user() -> String {
    let out = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_string()
}

#[test]
fn what_monitors_read() {
    let w = World::new();
    w.out("bsub -q storage -n 2 sleep 1000");
    until("it runs", || w.stat("1") == "RUN");
    let queues = w.out("bqueues");
    assert_eq!(
        queues.lines().next().unwrap(),
        "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP "
    );
    assert_eq!(
        queues.lines().nth(1).unwrap(),
        "storage          30   Open:Active      -    4    -    -     2     0     2     0"
    );
    let hosts = w.out("bhosts");
    let row = hosts.lines().find(|l| l.starts_with(&w.host)).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..], ["closed", "-", "2", "2", "2", "0", "0", "0"]);
    let names: Vec<&str> = hosts.lines().skip(1).map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, [&w.host, "elsewhere", "other1", "other2"]);
    let load = w.out(&format!("lsload -l {}", w.host));
    let heads: Vec<&str> = load.lines().next().unwrap().split_whitespace().collect();
    assert_eq!((heads[5], heads[13], heads[14]), ("ut", "bio", "rpc"));
    let values: Vec<&str> = load.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((values.len(), values[1]), (heads.len(), "ok"));
    assert!(values[5].ends_with('%'), "{load}");
    assert!(
        w.out(&format!("lsload -I mem:bio -R 'mem>1' {}", w.host)).starts_with("HOST_NAME       status   mem    bio\n")
    );
    assert!(w.out("lsid").contains("My cluster name is homing\n"));
    assert!(w.out("badmin showconf mbd").contains("LSF_UNIT_FOR_LIMITS = MB\n"));
    w.out("bkill 0");
}

#[test]
fn load_thresholds_hold_dispatch() {
    let w = World::new();
    // Every machine has less available memory than this, MB.
    w.write("[queue.storage]\nload = { mem = \"900000000\" }\n");
    w.out("bsub -q storage -J waits true");
    w.out("bsub -K true");
    assert_eq!(w.stat("1"), "PEND");
    assert!(w.out("bjobs -p 1").contains(" Load index (mem) is beyond threshold: 1 host;"), "{}", w.out("bjobs -p 1"));
    assert!(w.out("bqueues -l storage").contains(" 900000000"));
    w.write("[queue.storage]\nload = { mem = \"1\" }\n");
    until("the threshold is no longer crossed", || w.stat("1") == "DONE");
}

/// Returns whether the process is stopped. The job wrote its process id to `file`.
fn stands(w: &World, file: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", w.file(file).trim())).unwrap();
    status.lines().any(|l| l.starts_with("State:\tT"))
}

#[test]
fn a_job_stands_still_above_the_second_threshold_and_goes_on_below_the_first() {
    let w = World::new();
    // Less memory is worse: no machine is below 1 MB, and all are below the other value.
    let thresholds = |first: u32, second: u32| {
        w.write(&format!("[queue.storage]\nload = {{ mem = \"{first}/{second}\" }}\n"));
    };
    thresholds(1, 1);
    // The job must start no process. A shell whose child stops between fork and exec does not stop, but waits for
    // that child.
    w.out("bsub -q storage 'mkfifo go; echo $$ > pid.new; mv pid.new pid; read line < go'");
    until("it runs", || w.path().join("pid").exists());
    thresholds(1, 900_000_000);
    until("it stands still", || w.stat("1") == "SSUSP" && stands(&w, "pid"));
    assert!(w.out("bjobs -s 1").contains("Host load exceeded threshold:  mem"), "{}", w.out("bjobs -s 1"));
    // Above the first threshold the job does not go on, however often the runner looks. Each job of another queue
    // makes it look.
    thresholds(900_000_000, 1);
    (0..2).for_each(|_| drop(w.out("bsub -K true")));
    assert_eq!(w.stat("1"), "SSUSP");
    assert!(stands(&w, "pid"));
    thresholds(1, 1);
    until("it goes on", || w.stat("1") == "RUN" && !stands(&w, "pid"));
    std::fs::write(w.path().join("go"), "on\n").unwrap();
    until("it ends", || w.stat("1") == "DONE");
}

#[test]
fn installing_spares_what_is_not_ours() {
    let w = World::new();
    assert_eq!(w.homing(&["lsf", "install", "bin"]).status.code(), Some(0));
    std::fs::create_dir(w.path().join("theirs")).unwrap();
    std::fs::write(w.path().join("theirs/bsub"), "#!/bin/sh\n").unwrap();
    let out = w.homing(&["lsf", "install", "theirs"]);
    assert_eq!(out.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&out.stderr).contains("was not made by homing"));
    assert_eq!(w.homing(&["lsf", "remove", "bin"]).status.code(), Some(0));
    assert!(!w.path().join("bin").exists());
    // The configuration of a real LSF is neither replaced nor removed.
    let conf = w.path().join("real/lsf/conf/lsf.conf");
    std::fs::create_dir_all(conf.parent().unwrap()).unwrap();
    std::fs::write(&conf, "LSF_MASTER_LIST=\"m1 m2\"\n").unwrap();
    assert_eq!(w.homing(&["lsf", "install", "real"]).status.code(), Some(0));
    assert_eq!(w.homing(&["lsf", "remove", "real"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&conf).unwrap(), "LSF_MASTER_LIST=\"m1 m2\"\n");
    assert!(!w.path().join("real/bsub").exists());
}

#[test]
fn elements_that_start_while_others_read_the_script_run_all_of_it() {
    let world = World::new();
    // The script is so long that a shell reads it for a while.
    let script =
        format!("#BSUB -J long[1-60]\n{}echo $LSB_JOBINDEX >> ran\n", format!("# {}\n", "x".repeat(76)).repeat(20_000));
    let (code, _, err) = world.fed("bsub", &script);
    assert_eq!(code, 0, "{err}");
    until("all have ended", || world.sh("bjobs").0 == 255);
    assert_eq!(world.file("ran").lines().count(), 60);
}

#[test]
fn what_ended_jobs_took_is_summed_and_conditions_are_waited_for() {
    let world = World::new();
    assert_eq!(world.sh("bwait -w 'done(99)'").0, 255, "no such job");
    world.out("bsub -J one 'sleep 1'; bsub -J two 'exit 3'; bwait -w 'done(one) && ended(two)'");
    assert_eq!((world.stat("1"), world.stat("2")), ("DONE".into(), "EXIT".into()));
    let (code, _, err) = world.sh("bwait -w 'done(two)'");
    assert_eq!((code, err.trim()), (255, "Dependency condition invalid or never satisfied. Wait failed."));
    world.out("bsub -J held -H true");
    assert_eq!(world.sh("bwait -t 0 -w 'ended(held)'").2.trim(), "Timeout limit reached. Wait failed.");
    let told = |line: &str| world.out(line).split_whitespace().collect::<Vec<_>>().join(" ");
    let all = told("bacct");
    assert!(all.contains("of done jobs: 1 Total number of exited jobs: 1 "), "{all}");
    let failed = told("bacct -e -q normal");
    assert!(failed.contains("of done jobs: 0 Total number of exited jobs: 1 "), "{failed}");
    assert!(failed.contains("submitted to queues normal."), "{failed}");
}

#[test]
fn what_was_interrupted_is_requeued() {
    let world = World::new();
    // In test builds a variable makes a keeper die. The runner that the first job starts passes it on.
    world.out("HOMING_QUEUE_DIE=keeper:spawned bsub 'test -e again || sleep 600'");
    // A command before that runner has its lock would start another runner, whose keepers have no such order.
    world.out("until test -e queue/*/1/start.0.json; do sleep 0.1; done");
    until("it is interrupted", || world.stat("1") == "EXIT");
    world.out("touch again");
    let mut said = String::new();
    // A runner that has the order for its keepers may still be there.
    until("it is done", || {
        said += &world.sh("brequeue 1").1;
        world.stat("1") == "DONE"
    });
    assert!(said.starts_with("Job <1> is being requeued\n"), "{said}");
}

#[test]
fn groups_of_hosts_are_those_of_node_sets() {
    let world = World::new();
    let none = "CLUSTERSHELL_CFGDIR=$PWD bmgroup";
    assert!(world.sh(none).2.contains("No host group is known"), "{}", world.sh(none).2);
    std::fs::create_dir(world.path().join("groups.d")).unwrap();
    std::fs::write(world.path().join("groups.d/cluster.yaml"), "roles:\n  gpu: 'g[1-2]'\n  all: '@gpu,c1'\n").unwrap();
    std::fs::write(
        world.path().join("groups.conf"),
        format!("[Main]\ndefault: roles\nautodir: {}\n", world.path().join("groups.d").display()),
    )
    .unwrap();
    assert_eq!(world.out(none), "GROUP_NAME    HOSTS\nall           c1 g1 g2\ngpu           g1 g2\n");
    assert_eq!(world.out(&format!("{none} gpu")), "GROUP_NAME    HOSTS\ngpu           g1 g2\n");
    assert_eq!(world.sh(&format!("{none} nosuch")).2.trim(), "nosuch: No such user/host group");
}
