//! The main job on real hosts: sshd, GlusterFS, shaped links. Needs root; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, err, homing, missing};
use homing_os::threads::lock;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// Allows one lab at a time: two would share the machine's processors, and each test expects undisturbed placement.
fn alone() -> MutexGuard<'static, ()> {
    static LAB: Mutex<()> = Mutex::new(());
    lock(&LAB)
}

/// Returns the bytes that all hosts received over their links, by the interface counters.
fn received(lab: &Lab) -> u64 {
    let status = homing(&["lab", "status", "--name", &lab.name, "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    status["hosts"].as_array().unwrap().iter().map(|h| h["rx_bytes"].as_u64().unwrap()).sum()
}

#[test]
fn commands_run_where_their_bytes_lie() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::up("mainjob", &["--hosts", "4", "--link", "200mbit", "--gluster", "2x2"]);
    lab.ok(
        "n1",
        "for i in $(seq 16); do head -c 4000000 /dev/urandom > \"/data/f $i\"; done; printf x > '/data/a>\nb'",
    );

    let labs: serde_json::Value = serde_json::from_slice(&homing(&["lab", "list", "--json"]).stdout).unwrap();
    let own = labs.as_array().unwrap().iter().find(|l| l["name"] == lab.name.as_str());
    assert_eq!(own, Some(&serde_json::json!({"name": lab.name, "up": true, "hosts": "n[1-4]", "version": 1})));

    // An ordinary user gets the layout too, for every file name.
    let text = lab.ok("n1", &format!("setpriv --reuid 65534 --clear-groups {EXE} where --json /data"));
    let layout: serde_json::Value = serde_json::from_str(&text).unwrap();
    for file in layout["files"].as_array().unwrap() {
        let hosts: Vec<&str> =
            file["extents"][0]["replicas"].as_array().unwrap().iter().map(|r| r["host"].as_str().unwrap()).collect();
        let mut sorted = hosts.clone();
        sorted.sort_unstable();
        assert!(sorted == ["n1", "n2"] || sorted == ["n3", "n4"], "{file}");
    }

    // A first run carries the program to the hosts: `homing hosts` waits until all have it.
    lab.ok("n1", &format!("{EXE} hosts --hosts 'n[1-4]'"));

    // The batch crosses no link; the same batch with round robin does.
    let size = 16 * 4_000_000;
    let before = received(&lab);
    let run = format!("cd /data && {EXE} run -q -k --on ssh --hosts 'n[1-4]' -j2 'cksum {{}}' ::: /data/f*");
    let sums = lab.ok("n1", &run);
    assert_eq!(sums.lines().count(), 16);
    let near = received(&lab) - before;
    // A few files of the sixteen may go to an idle host when their own are busy.
    assert!(near < size / 4, "{near} bytes crossed links");
    // All hosts share one kernel, so its caches can be dropped from here.
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let before = received(&lab);
    let in_turn = lab.ok("n1", &run.replace("run -q", "run --no-locality -q"));
    assert_eq!(in_turn, sums, "placement changes no result");
    assert!(received(&lab) - before > size / 4, "the control: without placement bytes do cross");

    // One host cuts standard input into blocks, and the blocks go to all hosts.
    let piped = format!("{EXE} run -q -k --on ssh --hosts 'n[1-4]' -j1 --pipe --block 200k 'cat; sleep 0.1'");
    let cut = lab.ok("n1", &format!("seq 300000 | {piped} | cksum"));
    assert_eq!(cut, lab.ok("n1", "seq 300000 | cksum"));

    an_output_folder_changes_no_placement(&lab);
    what_a_task_made_is_read_where_it_lies(&lab);
    a_sites_own_command_tells_where_bytes_lie(&lab);
    leases_of_a_killed_run_are_free(&lab);
    a_lost_host_is_news(&lab);
    drop(lab);
    assert!(!Path::new("/sys/class/net").join("n1").exists());
}

/// Runs the example of the manual on a bindfs, whose places homing does not know.
fn a_sites_own_command_tells_where_bytes_lie(lab: &Lab) {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/manual/data.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let example = manual.lines().skip_while(|line| line.trim() != "[locator.view]").take_while(|line| !line.is_empty());
    let example: Vec<&str> = example.map(str::trim).collect();
    let bin = Path::new(EXE).parent().unwrap().display();
    let view =
        "for h in n1 n2 n3 n4; do ssh $h 'mkdir -p /view && bindfs /data /view' || exit; done; mkdir -p /etc/homing";
    let file = format!("cat > /etc/homing/cluster.toml <<'END'\n{}\nEND\n", example.join("\n"));
    lab.ok("n1", &format!("{view}; {file}"));
    let on_view = |line: &str| lab.ok("n1", &format!("export PATH={bin}:$PATH; cd /view; {line}"));
    let hosts = |text: String| -> Vec<serde_json::Value> {
        let layout: serde_json::Value = serde_json::from_str(&text).unwrap();
        layout["files"].as_array().unwrap().iter().map(|file| file["extents"][0]["replicas"].clone()).collect()
    };
    let names = "f* 'a>\nb'";
    assert_eq!(
        hosts(on_view(&format!("homing where --json {names}"))),
        hosts(on_view(&format!("cd /data; homing where --json {names}")))
    );
    let told = on_view("homing plan --hosts 'n[1-4]' 'cksum {}' ::: f*");
    assert_eq!(told.matches("\tholds 100 % of 4.0 MB\t").count(), 16, "{told}");
    lab.ok("n1", "rm /etc/homing/cluster.toml; for h in n1 n2 n3 n4; do ssh $h umount /view; done");
}

/// The command names an output folder beside its files. homing must not take the folder for an input.
fn an_output_folder_changes_no_placement(lab: &Lab) {
    lab.ok("n1", "mkdir /data/none /data/many; cd /data/many; for i in $(seq 1000); do echo $i > $i; done");
    for out in ["none", "many"] {
        let told = lab.ok("n1", &format!("cd /data; {EXE} plan --hosts 'n[1-4]' 'cp {{}} /data/{out}/' ::: f*"));
        assert_eq!(told.matches("\tholds 100 % of 4.0 MB\t").count(), 16, "{told}");
    }
}

/// Each file of the volume has two copies. The host that wrote the file also has it in its caches.
fn what_a_task_made_is_read_where_it_lies(lab: &Lab) {
    let task = |command: String, from: String, to: String| {
        serde_json::json!({"command": command, "inputs": [from], "outputs": [to]}).to_string()
    };
    let tasks = (1..=16).flat_map(|i| {
        // A host on which tasks took twice as long as elsewhere counts as slower. Each task sleeps, so that a delay
        // of a few milliseconds by other tests does not matter.
        let read = format!("sleep 0.5; echo made.{i} $(hostname) $(cat maker.{i}); cksum made.{i} > sum.{i}");
        let make = format!("sleep 0.5; hostname > maker.{i}; cp 'f {i}' made.{i}");
        [task(read, format!("made.{i}"), format!("sum.{i}")), task(make, format!("f {i}"), format!("made.{i}"))]
    });
    let tasks = tasks.collect::<Vec<_>>().join("\n");
    let run = format!("{EXE} run -q --on ssh --hosts 'n[1-4]' -j16 --tasks tasks");
    let ran = lab.ok("n1", &format!("cd /data; cat > tasks <<'END'\n{tasks}\nEND\n{run}"));
    let layout = lab.ok("n1", &format!("cd /data; {EXE} where --json made.*"));
    let layout: serde_json::Value = serde_json::from_str(&layout).unwrap();
    let (mut near, mut chosen, mut other) = (0, 0, 0);
    for line in ran.lines() {
        let [made, reader, maker] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{ran}") };
        let file = layout["files"].as_array().unwrap().iter().find(|file| file["path"] == made).unwrap();
        let holds = |host: &str| file["extents"][0]["replicas"].as_array().unwrap().iter().any(|r| r["host"] == host);
        near += usize::from(holds(reader));
        if holds(reader) && holds(maker) {
            *if reader == maker { &mut chosen } else { &mut other } += 1;
        }
    }
    // One or two may go to a host that seems to be faster. Without regard to the writer, half of them would.
    let told = format!("{near} near, {chosen} by the writer, {other} by who has the other copy: {ran}");
    assert!(ran.lines().count() == 16 && near >= 12 && chosen >= 4 * other.max(1), "{told}");
}

/// On FUSE leases are files whose names describe them. The files of a run that was killed are removed.
fn leases_of_a_killed_run_are_free(lab: &Lab) {
    let run = |task: &str| format!("cd /data; {EXE} run -q --io 1 --on ssh --hosts 'n[1-4]' '{task}' ::: f*");
    let files = |pattern: &str| format!("ls /data/.homing-leases | grep -c '{pattern}'");
    let until = |told: &str| format!("until test $({told}) = 4; do sleep 0.1; done");
    let first = run("sleep 600 <{}");
    // One lease at each of four servers, then one wish.
    let taken = until(&files("@n2.*+1+1"));
    lab.ok(
        "n2",
        &format!("setsid sh -c 'echo $$ >/tmp/first; {}' >/dev/null 2>&1 & {taken}", first.replace('\'', "'\\''")),
    );
    let out = std::thread::scope(|scope| {
        let second = scope.spawn(|| lab.ok("n3", &run("basename {}")));
        lab.ok("n3", &until(&files("@n3.*+0+1w")));
        lab.ok("n2", "pkill -9 -P $(cat /tmp/first) homing || kill -9 $(cat /tmp/first)");
        second.join().unwrap()
    });
    assert_eq!(out.lines().count(), 16);
    assert_eq!(lab.told("n2", &files("@n2")).1.trim(), "0", "a shell has removed them");
}

/// A worker is killed in mid-run. Its tasks run once each on the host of the other copy. They start only after all
/// their processes on the lost host have ended. The test does not depend on the machine's speed. No task ends before
/// n4 has begun one, and n4's first task does not end by itself. The name of that task is written before another host
/// reads it, because a mount caches the attributes of a file for a second.
fn a_lost_host_is_news(lab: &Lab) {
    let beat = "setsid sh -c \"while :; do date +%s%N >> /tmp/beats; done\"";
    let task = format!(
        "if test $(hostname) = n4 && ! test -d /data/begun; then echo {{}} > /data/first; mkdir /data/begun; {beat} & sleep 600; fi; \
         until test -d /data/begun; do sleep 0.1; done; \
         if test -s /data/first && test {{}} = \"$(cat /data/first)\"; then date +%s%N > /data/again; fi; basename {{}}"
    );
    let script = format!(
        "cd /data; {EXE} run -k --on ssh --hosts 'n[1-4]' -j1 '{task}' ::: /data/f* 2>/tmp/err & \
         run=$!; until ssh n4 test -s /tmp/beats; do sleep 0.1; kill -0 $run || break; done; \
         ssh n4 'pkill -9 -n -f [w]orker'; wait $run; \
         s=$?; cat /tmp/err >&2; exit $s"
    );
    let output = lab.on("n1", &script);
    let err = err(&output);
    assert!(output.status.success(), "{err}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 16, "each task once: {err}");
    assert!(err.contains("n4 is lost") && err.contains("the worker was killed by signal 9"), "{err}");
    // All hosts share one clock.
    let ns = |said: String| said.lines().last().unwrap().parse::<u64>().unwrap();
    let (last, again) = (ns(lab.ok("n4", "tail -n 1 /tmp/beats")), ns(lab.ok("n1", "cat /data/again")));
    assert!(last < again, "the task ran twice at once: {last} {again}");
}

/// Runs on the machine itself, which is no host of the lab.
#[test]
fn a_lab_is_named_by_an_option_wherever_hosts_are_taken() {
    if missing(&[]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::up("named", &["--hosts", "2"]);
    let home = tempfile::tempdir().unwrap();
    let homing = |args: &[&str]| {
        let mut command = Command::new(EXE);
        command.args(args).current_dir("/").env("HOMING_RUNS", home.path()).env("XDG_CONFIG_HOME", home.path());
        command.env_remove("HOMING_CLUSTER").env_remove("HOMING_SSH").output().unwrap()
    };
    let out = |args: &[&str]| {
        let output = homing(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let name = lab.name.as_str();

    let ran = out(&["run", "-q", "--lab", name, "hostname #", ":::", "a", "b"]);
    assert!(ran.lines().count() == 2 && ran.lines().all(|host| host == "n1" || host == "n2"), "{ran}");
    // A resumed run goes to the lab again.
    let begun = homing(&["run", "-j1", "--lab", name, "test {} = a && hostname || exit 3", ":::", "b"]);
    assert_eq!(begun.status.code(), Some(1), "{}", err(&begun));
    let again = homing(&["resume", "--failed", "last"]);
    assert!(err(&again).contains("exit 3 on n1 (") || err(&again).contains("exit 3 on n2 ("), "{}", err(&again));

    assert_eq!(out(&["exec", "--lab", name, "-a", "-b", "hostname | tr 12 xx"]).matches("nx").count(), 1);
    assert!(out(&["push", "--lab", name, "-a", "/etc/hostname", "--dest", "/root/pushed"]).is_empty());
    assert_eq!(out(&["nodeset", "--lab", name, "-c", "-a"]), "2\n");
    let shown: serde_json::Value = serde_json::from_str(&out(&["hosts", "--lab", name, "--json"])).unwrap();
    assert_eq!(shown["hosts"].as_array().unwrap().len(), 2, "{shown}");
    // The option may be before or after the inner command.
    let asked = [["volume", "--lab", name, "list"], ["volume", "list", "--lab", name]];
    asked.iter().for_each(|words| drop(out(words)));

    // Each host has a machine id of its own, also in D-Bus's file.
    let ids = out(&["exec", "--lab", name, "-a", "-N", "cat /etc/machine-id /var/lib/dbus/machine-id"]);
    let mut ids: Vec<&str> = ids.lines().collect();
    assert_eq!(ids.len(), 4);
    let own = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    ids.push(own.trim());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");

    // The line runs in the shell there, with its streams and its status.
    let shell = homing(&["lab", "shell", "--name", name, "n2", "hostname | tr n m; exit 3"]);
    assert_eq!((shell.status.code(), shell.stdout.as_slice()), (Some(3), &b"m2\n"[..]), "{}", err(&shell));

    let absent = homing(&["run", "--lab", "nosuch", "echo", ":::", "1"]);
    assert_eq!(absent.status.code(), Some(255));
    let said = err(&absent);
    assert!(said.starts_with("homing: no lab named nosuch is up; up: ") && said.contains(name), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn the_demonstration_compares_and_its_runs_can_be_reported() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab { name: format!("demo{}", std::process::id()) };
    let runs = tempfile::tempdir().unwrap();
    let homing = |args: &[&str]| Command::new(EXE).args(args).env("HOMING_RUNS", runs.path()).output().unwrap();

    let shown = homing(&["lab", "demo", "--name", &lab.name, "--files", "4", "--size", "1M", "--down"]);
    assert!(shown.status.success(), "{}", err(&shown));
    let said = String::from_utf8(shown.stdout.clone()).unwrap();
    assert!(said.contains("over links; next to the data"), "{said}");

    let labs: serde_json::Value = serde_json::from_slice(&homing(&["lab", "list", "--json"]).stdout).unwrap();
    assert!(labs.as_array().unwrap().iter().all(|l| l["name"] != lab.name.as_str()), "{labs}");
    // The lab is gone; the journals of its runs remain.
    let told = err(&shown);
    let named: Vec<&str> = told.lines().filter_map(|l| l.rsplit_once(": homing report ")).map(|(_, id)| id).collect();
    assert_eq!(named.len(), 2, "{told}");
    for run in named {
        let report = homing(&["report", run]);
        assert!(report.status.success() && report.stdout.starts_with(b"tasks      4 done, 0 failed"), "{report:?}");
    }
}

#[test]
fn hosts_have_nothing_of_what_was_open_where_they_were_raised() {
    if missing(&["systemd-nspawn"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let name = format!("open{}", std::process::id());
    let up = format!("exec 9>lock; flock 9; {EXE} lab up --name {name} --hosts 1 >&2");
    let raised = Command::new("bash").args(["-c", &up]).current_dir(dir.path()).output().unwrap();
    let free = Command::new("flock").args(["-n", "lock", "true"]).current_dir(dir.path()).status().unwrap();
    let down = homing(&["lab", "down", "--name", &name]);
    assert!(raised.status.success() && down.status.success(), "{}{}", err(&raised), err(&down));
    assert!(free.success(), "a host holds the lock of the shell that raised it");
}

/// A folder on this machine that is removed however the test ends.
struct OfTheMachine(std::path::PathBuf);

impl Drop for OfTheMachine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn hosts_have_a_queue_homes_and_keys_of_their_own() {
    if missing(&["systemd-nspawn"]) {
        return;
    }
    let made = ["/home/homing-test-", "/var/tmp/homing-test-"].map(|path| {
        let path = format!("{path}{}", std::process::id());
        std::fs::create_dir(&path).unwrap();
        OfTheMachine(path.into())
    });
    let lab = Lab::up("own", &["--hosts", "1"]);
    for OfTheMachine(path) in &made {
        let seen = lab.on("n1", &format!("ls -d {}", path.display()));
        assert!(!seen.status.success() && path.is_dir(), "a host sees {}", path.display());
    }
    let (code, told, why) = lab.told("n1", &format!("{EXE} jobs -a --json; ls /root/.ssh /etc/homing /var/lib/homing"));
    let keys = "/root/.ssh:\nauthorized_keys\nconfig\nid_ed25519\nid_ed25519.pub\nknown_hosts\n";
    assert_eq!((code, told.trim_end()), (Some(2), format!("[]\n{keys}").trim_end()), "{why}");
}

#[test]
fn names_that_control_groups_have_are_refused() {
    let up = homing(&["lab", "up", "--name", "tasks", "--hosts", "1"]);
    assert!(!up.status.success() && err(&up).contains("control groups have a file of that name"), "{}", err(&up));
}
