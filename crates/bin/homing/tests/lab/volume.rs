//! Volumes on real hosts with real daemons. Needs root; otherwise prints a note and is skipped.

use crate::support::{EXE, err, missing};
use homing_os::threads::lock;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Allows one lab at a time: two are slow on a small machine.
static TURN: Mutex<()> = Mutex::new(());

struct Lab {
    hosts: crate::support::Lab,
    state: tempfile::TempDir,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Lab {
    fn up(hosts: &str) -> Lab {
        let turn = lock(&TURN);
        Lab { _turn: Some(turn), ..Lab::beside("vol", hosts) }
    }

    /// Raises a lab beside another one, for a test that mostly waits.
    fn beside(name: &str, hosts: &str) -> Lab {
        let hosts = crate::support::Lab::up(name, &["--hosts", hosts, "--disk", "1G"]);
        Lab { hosts, state: tempfile::tempdir().unwrap(), _turn: None }
    }

    fn on(&self, host: &str, script: &str) -> String {
        self.hosts.ok(host, script)
    }

    fn volume(&self, words: &str) -> Output {
        let mut words: Vec<&str> = ["volume"].into_iter().chain(words.split(' ')).collect();
        if !["list", "status", "balance-report"].contains(&words[1]) {
            words.push("--yes");
        }
        homing(self, &words)
    }

    fn ok(&self, words: &str) -> String {
        let output = self.volume(words);
        assert!(output.status.success(), "volume {words}: {}", err(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn command(lab: &Lab, args: &[&str]) -> Command {
    let config = PathBuf::from("/var/lib/homing/labs").join(&lab.hosts.name).join("ssh_config");
    let mut command = Command::new(EXE);
    command
        .args(args)
        .env("HOMING_SSH", format!("ssh -F {} -o ConnectTimeout=5", config.display()))
        .env("HOMING_VOLUMES", lab.state.path())
        .env("XDG_RUNTIME_DIR", lab.state.path());
    command
}

fn homing(lab: &Lab, args: &[&str]) -> Output {
    command(lab, args).output().unwrap()
}

#[test]
fn a_gluster_volume_from_nothing_to_drained_and_gone() {
    if missing(&["systemd-nspawn", "glusterd", "mount.glusterfs"]) {
        return;
    }
    let lab = Lab::up("3");
    let create = "create data --kind gluster --hosts n[1-2]:/scratch --copies 2 --clients n[1-3]";
    refusals(&lab, create);
    interrupted(&lab, create, "glusterd");

    killed(&lab, create, "create", 2);
    lab.ok(create);
    let list: serde_json::Value = serde_json::from_str(&lab.ok("list --json")).unwrap();
    let row = &list["volumes"][0];
    assert_eq!((row["name"].as_str(), row["mount"].as_str()), (Some("data"), Some("/data")));
    assert_eq!((row["copies"].as_u64(), row["hosts"].to_string().as_str()), (Some(2), r#"["n1","n2"]"#));
    lab.on(
        "n3",
        "for i in $(seq 40); do head -c 100000 /dev/urandom > /data/f$i; done; cd /data; sha256sum * > /tmp/sums",
    );
    lab.on("n1", "test $(ls /data | wc -l) = 40");
    assert!(lab.ok(create).contains("is mounted"), "a second call changes nothing");

    let refused = lab.volume("delete data");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--delete-files"), "{}", err(&refused));
    let refused = lab.volume("drain-host data n2");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--allow-losing-copies"), "{}", err(&refused));

    in_use(&lab, "n3");

    let refused = lab.volume("set-copies data /data 1");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--allow-losing-copies"), "{}", err(&refused));
    assert!(lab.ok("set-copies data /data 1 --allow-losing-copies --dry-run").contains("remove-brick"));
    a_brick_that_is_down_is_told(&lab);

    let load = Load::begin(&lab, "n3", "/data");
    killed(&lab, "add-host data n3:/scratch", "add-host n3", 2);
    lab.ok("add-host data n3:/scratch");
    lab.on("n3", "cd /data && sha256sum -c --quiet /tmp/sums");
    // homing reads the layout from the hosts alone, because the record is lost.
    std::fs::remove_file(lab.state.path().join("data.json")).unwrap();
    killed(&lab, "drain-host data n1 -w n[1-3]", "drain-host n1", 1);
    lab.ok("drain-host data n1");
    load.end("n2");
    lab.on("n1", "! ls -d /scratch/data* 2>/dev/null");
    lab.on("n3", "cd /data && sha256sum -c --quiet /tmp/sums");
    lab.on("n2", "cd /data && test $(ls f* | wc -l) = 40");
    let status = lab.volume("status data --json");
    let mut status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["hosts"].to_string(), r#"["n2","n3"]"#, "{status}");
    // The version is one of the document, not of each volume.
    assert_eq!(status.as_object_mut().unwrap().remove("version"), Some(1.into()));
    let all = lab.volume("status --json");
    let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!((&all["volumes"], &all["version"]), (&serde_json::json!([status]), &1.into()), "{all}");
    files_move_before_ones_eyes(&lab);
    lab.ok("heal data");
    lab.ok("delete data --delete-files");
    for host in ["n1", "n2", "n3"] {
        lab.on(host, "! ls -d /scratch/data* 2>/dev/null && ! grep -q homing /etc/fstab && ! mountpoint -q /data");
    }
}

/// A program of n1 that fails where GlusterFS resets an option.
const FAILING_RESET: &str = "printf '%s\\n' '#!/bin/sh' 'case \"$*\" in *\"volume reset\"*) echo no reset >&2; exit 1;; esac' \
    'exec /usr/sbin/gluster \"$@\"' >/usr/local/bin/gluster; chmod 755 /usr/local/bin/gluster";

#[test]
fn options_of_a_gluster_volume_are_in_force_compared_and_undone() {
    if missing(&["systemd-nspawn", "glusterd", "mount.glusterfs"]) {
        return;
    }
    let lab = Lab::up("3");
    lab.ok("create data --kind gluster --hosts n[1-2]:/scratch --copies 2 --clients n[1-3] \
         --option performance.io-thread-count=8 --option performance.io-cache=on --option auth.allow=10.*");
    let value = |key: &str| lab.on("n1", &format!("gluster volume get data {key} | awk 'END {{print $2}}'"));
    assert_eq!((value("performance.io-thread-count").trim(), value("auth.allow").trim()), ("8", "10.*"));
    lab.on("n3", "echo seen >/data/a");
    let status = || String::from_utf8(lab.volume("status data").stdout).unwrap();
    let row = status().lines().find(|line| line.starts_with("performance.io-thread-count")).map(String::from);
    assert_eq!(row.unwrap().split_whitespace().collect::<Vec<_>>(), ["performance.io-thread-count", "8", "16"]);

    let refused = lab.volume("set-option data io-threads=8");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("near: "), "{}", err(&refused));
    let refused = lab.volume("set-option data auth.allow=n1");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("does not let in n3"), "{}", err(&refused));
    lab.on("n3", "cat /data/a");
    // GlusterFS alone knows the range. No change stays behind.
    let refused = lab.volume("set-option data performance.io-thread-count=800");
    assert!(refused.status.code() == Some(254) && err(&refused).contains("out of range"), "{}", err(&refused));
    assert!(!status().contains("interrupted"), "{}", status());

    lab.on("n1", "gluster volume set data performance.io-thread-count 2");
    let differs = "performance.io-thread-count is 2, and the record has 8";
    assert!(status().contains(differs), "{}", status());
    let checked = homing(&lab, &["check", "--volume", "data", "--only", "volumes"]);
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(told.contains("HC-VOL-08") && told.contains(differs), "{told}");
    lab.ok("set-option data performance.io-thread-count=8");
    assert!(!status().contains(differs), "{}", status());

    lab.on("n1", FAILING_RESET);
    let stopped = lab.volume("set-option data performance.io-thread-count=4 performance.io-cache=");
    assert!(stopped.status.code() == Some(254) && err(&stopped).contains("no reset"), "{}", err(&stopped));
    assert_eq!(value("performance.io-thread-count").trim(), "4");
    lab.on("n1", "rm /usr/local/bin/gluster");
    lab.ok("undo data");
    assert_eq!((value("performance.io-thread-count").trim(), value("performance.io-cache").trim()), ("8", "on"));
    lab.ok("set-option data performance.io-cache=");
    assert_eq!(value("performance.io-cache").trim(), "off");
    lab.ok("delete data --delete-files");
}

fn refusals(lab: &Lab, create: &str) {
    let one_host = create.replace("n[1-2]:/scratch", "n1:/scratch/a --hosts n1:/scratch/b");
    for (words, lifts) in
        [(create.replace(":/scratch", ":/srv"), "--allow-system-disk"), (one_host, "--allow-copies-on-one-host")]
    {
        let refused = lab.volume(&words);
        assert!(refused.status.code() == Some(255) && err(&refused).contains(lifts), "{}", err(&refused));
        assert!(lab.ok(&format!("{words} {lifts} --dry-run")).contains("gluster --mode=script volume create data"));
    }
    let dry = lab.ok(&format!("{create} --dry-run"));
    assert!(dry.contains("n1: gluster --mode=script volume create data replica 2 n1:/scratch/data n2:/scratch/data"));
    lab.on("n1", "! systemctl is-active --quiet glusterd && ! test -e /scratch/data");
}

/// The second host cannot mount. homing names the unfinished operation; undo takes it back and leaves nothing.
fn interrupted(lab: &Lab, create: &str, units: &str) {
    lab.on("n2", "touch /data; chattr +i /data 2>/dev/null || true");
    let stopped = lab.volume(create);
    assert_eq!(stopped.status.code(), Some(254), "{}", err(&stopped));
    assert!(err(&stopped).contains("homing volume resume data"), "{}", err(&stopped));
    lab.on("n2", "chattr -i /data 2>/dev/null; rm /data");
    lab.ok("undo data");
    lab.on(
        "n1",
        &format!("for u in {units}; do systemctl is-active --quiet $u && exit 1; done; ! test -e /scratch/data"),
    );
    lab.on("n1", "! grep -q homing /etc/fstab && ! mountpoint -q /data");
}

/// A brick is killed: `status` names it and the remedy, and that remedy mends it.
fn a_brick_that_is_down_is_told(lab: &Lab) {
    let status =
        |lab: &Lab| -> serde_json::Value { serde_json::from_slice(&lab.volume("status data --json").stdout).unwrap() };
    assert_eq!(status(lab)["findings"].to_string(), "[]");
    lab.on("n2", "pkill -9 glusterfsd; while pgrep glusterfsd; do sleep 0.1; done");
    let deadline = Instant::now() + Duration::from_secs(60);
    // glusterd learns of its death by a closed socket.
    while status(lab)["findings"][0]["what"] != "brick n2:/scratch/data is down" {
        assert!(Instant::now() < deadline, "{}", status(lab));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(status(lab)["findings"][0]["remedy"], "homing volume heal data");
    let check = || -> serde_json::Value {
        let words = ["check", "--volume", "data", "--only", "volumes", "--deadline", "60", "--json"];
        serde_json::from_slice(&homing(lab, &words).stdout).unwrap()
    };
    let found = check();
    assert_eq!((&found["findings"][0]["code"], &found["exit"]), (&"HC-VOL-01".into(), &2.into()), "{found}");
    assert_eq!(found["findings"][0]["command"], "homing volume heal data");
    lab.ok("heal data");
    assert_eq!(status(lab)["findings"].to_string(), "[]");
    assert_eq!(check()["findings"].to_string(), "[]");
}

/// Kills the program while the hosts are at work, after so many phases. The next call finishes the work.
fn killed(lab: &Lab, words: &str, what: &str, phases: u64) {
    let words: Vec<&str> = ["volume", "--yes"].into_iter().chain(words.split(' ')).collect();
    let mut child = command(lab, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let done = || {
        let text = std::fs::read(lab.state.path().join("data.json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()?["pending"]["done"].as_u64()
    };
    while done().is_none_or(|ended| ended < phases) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // On a busy machine the program may have ended before the signal.
    if done().is_some() {
        let refused = lab.volume("rebalance data");
        assert!(err(&refused).contains(&format!("{what} was interrupted")), "{}", err(&refused));
    }
}

/// A terminal shows the progress while bytes move. The links are so slow that this takes a while.
fn files_move_before_ones_eyes(lab: &Lab) {
    let link = |words: &str| {
        for host in ["n1", "n2", "n3"] {
            lab.on(host, &format!("tc qdisc {words}"));
        }
    };
    link("add dev host0 root tbf rate 2mbit burst 32k latency 400ms");
    let words = format!("{EXE} volume add-host data n1:/scratch --yes");
    let usual = command(lab, &[]);
    let mut terminal = Command::new("script");
    terminal.args(["-qefc", &words, "/dev/null"]).stdin(Stdio::null());
    terminal.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = terminal.output().unwrap();
    link("del dev host0 root");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let how_far = |line: &str| line.starts_with("rebalance: ") && line.contains("B of ") && line.contains(" moved, ");
    assert!(said.lines().any(how_far), "{said}");
}

/// A mount in use stays as it is, and nothing else is changed.
fn in_use(lab: &Lab, host: &str) {
    lab.on(host, "cd /data; setsid sh -c 'echo $$ > /tmp/user; exec sleep 1000' </dev/null >/dev/null 2>&1 & until [ -s /tmp/user ]; do sleep 0.1; done");
    let said = lab.volume(&format!("unmount data --on {host}"));
    assert!(said.status.code() == Some(254) && err(&said).contains("in use by process"), "{}", err(&said));
    assert!(err(&said).contains("nothing was changed"), "{}", err(&said));
    lab.on(host, "kill $(cat /tmp/user); grep -q homing /etc/fstab; mountpoint -q /data");
}

/// A process that writes new files and reads all of them while hosts come and go.
struct Load<'a> {
    lab: &'a Lab,
    host: &'static str,
    mount: &'static str,
}

impl Load<'_> {
    fn begin<'a>(lab: &'a Lab, host: &'static str, mount: &'static str) -> Load<'a> {
        // Writes few new files, since each one has to be moved, and reads often.
        let work = "mkdir -p $1/load; cd $1/load; : > /tmp/load; i=0; until [ -e /tmp/stop ]; do i=$((i+1)); \
             [ $i -gt 12 ] || { head -c 20000 /dev/urandom | tee $i | sha256sum | sed s/-/$i/ >> /tmp/load; } || echo write $i >> /tmp/bad; \
             sha256sum -c --quiet /tmp/load >> /tmp/bad 2>&1; (cd $1 && sha256sum -c --quiet /tmp/sums) >> /tmp/bad 2>&1; sleep 0.3; done; touch /tmp/stopped";
        lab.on(host, &format!("rm -f /tmp/stop*; cat > /tmp/work <<'E'\n{work}\nE\nsetsid sh /tmp/work {mount} </dev/null >/dev/null 2>&1 &"));
        Load { lab, host, mount }
    }

    /// Checks that no read or write failed, and that another host reads the same data.
    fn end(self, other: &str) {
        self.lab.on(self.host, "touch /tmp/stop; until [ -e /tmp/stopped ]; do sleep 0.1; done; cat /tmp/bad >&2; test ! -s /tmp/bad; test -s /tmp/load");
        let sums = self.lab.on(self.host, "cat /tmp/load");
        self.lab.on(other, &format!("cd {}/load && sha256sum -c --quiet <<'E'\n{sums}E", self.mount));
    }
}

#[test]
fn a_moosefs_volume_grows_and_shrinks_under_load() {
    if missing(&["systemd-nspawn", "mfsmaster", "mfschunkserver", "mfsmount"]) {
        return;
    }
    // MooseFS checks all chunks once in a minute, and moves them then.
    let lab = Lab::beside("grow", "3");
    let create = "create data --kind moosefs --hosts n[1-2]:/scratch --copies 2 --clients n[1-2]";
    for (words, lifts) in [
        (create.replace(":/scratch", ":/srv"), "--allow-system-disk"),
        (create.replace("--copies 2", "--copies 3"), "--allow-losing-copies"),
    ] {
        let refused = lab.volume(&words);
        assert!(refused.status.code() == Some(255) && err(&refused).contains(lifts), "{}", err(&refused));
        assert!(lab.ok(&format!("{words} {lifts} --dry-run")).contains("n1: mfssetgoal"));
    }
    interrupted(&lab, create, "moosefs-master moosefs-chunkserver");
    killed(&lab, create, "create", 2);
    lab.ok(create);
    // The master knows its clients by address, so it must admit a new client first.
    lab.ok("mount data --on n3");
    assert_eq!(lab.on("n3", "mfsgetgoal /data").trim(), "/data: 2");
    lab.on("n3", "cd /data; for i in $(seq 8); do head -c 100000 /dev/urandom > f$i; done; sha256sum * > /tmp/sums");
    let load = Load::begin(&lab, "n3", "/data");
    let refused = lab.volume("drain-host data n2");
    let first = "first run homing volume set-copies data /data 1";
    assert!(refused.status.code() == Some(255) && err(&refused).contains(first), "{}", err(&refused));
    lab.ok("add-host data n3:/scratch");
    lab.ok("drain-host data n2");
    load.end("n1");
    lab.on("n2", "test ! -e /scratch/data && ! systemctl is-active --quiet moosefs-chunkserver");
    lab.on("n1", "cd /data; mfscheckfile f* | grep -q 'chunks with 2 copies' && ! mfscheckfile f* | grep -E 'chunks with [013] copies:'");
    // As on GlusterFS, a copy is given up only with the option for it.
    let refused = lab.volume("set-copies data /data 1");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--allow-losing-copies"), "{}", err(&refused));
    assert!(lab.ok("set-copies data /data 1 --allow-losing-copies --dry-run").contains("mfssetgoal -r 1 /data"));
    let elsewhere = lab.volume("set-copies data /etc 1");
    assert!(elsewhere.status.code() == Some(255) && err(&elsewhere).contains("is not on volume data"));
    let refused = lab.volume("delete data");
    assert!(refused.status.code() == Some(255) && err(&refused).contains("--delete-files"), "{}", err(&refused));
}

#[test]
fn a_batch_on_gluster_ends_right_whatever_is_killed_under_it() {
    if !missing(&["systemd-nspawn", "glusterd", "mount.glusterfs"]) {
        survive("gluster", "pkill -9 glusterfsd", "true");
    }
}

#[test]
fn a_batch_on_moosefs_ends_right_whatever_is_killed_under_it() {
    if !missing(&["systemd-nspawn", "mfsmaster", "mfschunkserver", "mfsmount"]) {
        survive("moosefs", "pkill -9 mfschunkserver", "systemctl restart moosefs-master");
    }
}

/// 200 files have two copies. During a run over them n2 loses its daemon, n1 restarts the master, and n4 fails as a
/// whole.
fn survive(kind: &str, daemon: &str, master: &str) {
    let lab = Lab::up("4");
    lab.ok(&format!("create data --kind {kind} --hosts n[1-4]:/scratch --copies 2"));
    let files = "cd /data; for i in $(seq -w 200); do head -c 20000 /dev/urandom > f$i; done; sha256sum f* | LC_ALL=C sort > /root/sums";
    lab.on("n1", files);
    let run = begin_run(&lab);
    lab.on("n2", daemon);
    lab.on("n1", master);
    kill_host(&lab, "n4");
    for host in ["n1", "n2", "n3"] {
        lab.on(host, "touch /run/homing-go");
    }
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let mut said: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    said.sort_unstable();
    assert_eq!(said.join("\n"), lab.on("n1", "cat /root/sums").trim_end());

    // A dead host is reported, and the rows of the other hosts are still there.
    let status = lab.volume("status data --json");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let daemon = |host: &str| {
        let rows = status["on_hosts"].as_array().unwrap();
        rows.iter().find(|r| r["host"] == host).unwrap()["daemon"].clone()
    };
    assert_eq!((daemon("n1"), daemon("n4")), ("ok".into(), "unavail".into()), "{status}");
    // Killed daemons are started again; the copies on the dead host are made anew on others.
    eprintln!("heal: {}", err(&lab.volume("heal data")));
    lab.ok("drain-host data n4");
    let sums = lab.on("n1", "cat /root/sums");
    lab.on("n3", &format!("cd /data && sha256sum -c --quiet <<'E'\n{sums}E"));
    let list: serde_json::Value = serde_json::from_str(&lab.ok("list --json")).unwrap();
    assert_eq!(list["volumes"][0]["hosts"].to_string(), r#"["n1","n2","n3"]"#);
}

/// Starts a run. Tasks after the 60th wait until the hosts that are left have a file `homing-go`.
fn begin_run(lab: &Lab) -> Child {
    let task =
        "touch /run/homing-begun; until [ {#} -lt 60 ] || [ -e /run/homing-go ]; do sleep 0.1; done; sha256sum {}";
    let script = format!(
        "cd /data; {EXE} hosts --hosts 'n[1-4]' >/dev/null; {EXE} run -q -j2 --on ssh --hosts 'n[1-4]' '{task}' ::: f*"
    );
    let args = ["lab", "exec", "--name", &lab.hosts.name, "n1", "--", "sh", "-c", &script];
    let child = command(lab, &args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for host in ["n1", "n2", "n3", "n4"] {
        lab.on(
            host,
            "i=0; until [ -e /run/homing-begun ] || [ $i -gt 600 ]; do sleep 0.1; i=$((i+1)); done; [ -e /run/homing-begun ]",
        );
    }
    child
}

/// Cuts the power: kills the first process of the host, without a clean shutdown.
fn kill_host(lab: &Lab, host: &str) {
    let root = format!("/var/lib/homing/labs/{}/{host}/", lab.hosts.name);
    let pids = || std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let nspawn = pids().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("systemd-nspawn") && line.contains(&root)
    });
    let nspawn = nspawn.expect("no host to kill");
    let children = std::fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children")).unwrap();
    for child in children.split_whitespace() {
        let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
