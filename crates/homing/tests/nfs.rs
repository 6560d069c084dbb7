//! Real kernel NFS between guests of a lab: where files lie, by whatever way
//! they are mounted, and the server as a host that takes tasks. Needs what `tests/packages nfs`
//! installs, and a kernel for the guests, which the lab fetches once; says so where they are missing.

mod support;

use homing_locate::{Locator, contract};
use homing_mounts::Kind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{EXE, Lab, err, missing};

/// Set in the process that runs inside a guest.
const INSIDE: &str = "HOMING_TEST_NFS";

/// What is said where the server may give a task a name space of its own.
const VIEW: &str = "tasks see it under the usual name";

/// The program without what only a debugger reads, which guests would hash and carry too: three times smaller.
struct Program(PathBuf);

impl Program {
    /// For the lab of this name, with which it goes.
    fn new(lab: &str) -> Program {
        let path = Path::new(EXE).with_file_name(format!("homing-{lab}{}", std::process::id()));
        let stripped = Command::new("strip").arg("-o").args([path.as_path(), Path::new(EXE)]).status();
        if !stripped.is_ok_and(|s| s.success()) {
            std::fs::copy(EXE, &path).unwrap();
        }
        Program(path)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Two guests on `kind`, of which n1 serves; `None` where they cannot be had.
fn guests(name: &str, kind: &str) -> Option<(Program, Lab)> {
    let program = if kind == "uml" { "linux.uml" } else { "qemu-system-x86_64" };
    if missing(&[program, "exportfs", "mount.nfs", "automount", "rpcbind", "busybox", "setpriv"]) {
        return None;
    }
    Some((Program::new(name), Lab::up(name, &["--hosts", "2", "--disk", "512M", "--nfs", "--guests", kind])))
}

/// Debian's user-mode Linux 6.1 does not start on these.
fn processors_have_amx() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").unwrap().contains(" amx_tile")
}

#[test]
fn between_guests() {
    let Some((program, lab)) = guests("nfs", "qemu") else { return };
    let exe = program.0.to_str().unwrap();
    // A file system of its own within the export, which clients see as a sub-mount.
    lab.ok(
        "n1",
        "cd /scratch; truncate -s 16M inner.img; mkfs.ext4 -q inner.img; mkdir export/inner; modprobe loop; \
         mount -o loop inner.img export/inner; chmod 1777 export/inner",
    );
    lab.ok(
        "n2",
        "mkdir -p /v3 /bound /folder /auto /data/sub; modprobe autofs4; \
         mount -t nfs -o vers=3,nolock n1:/scratch/export /v3; \
         mount --bind /data/sub /bound; mount -t nfs -o vers=4.2 $(getent hosts n1 | cut -d' ' -f1):/sub /folder; \
         echo '/auto /etc/auto.lab' >/etc/auto.master; echo 'data -fstype=nfs4 n1:/' >/etc/auto.lab; automount; \
         until grep -q ' autofs ' /proc/self/mountinfo; do sleep 0.1; done",
    );
    let me = std::env::current_exe().unwrap();
    lab.ok("n2", &format!("{INSIDE}=1 {} --exact inside_a_guest --nocapture", me.display()));
    files_for_a_batch(&lab);
    batch_at_the_server(&lab, &format!("{exe} run --hosts n1"), VIEW, "/data/in");
    nothing_is_left(&lab);
    another_host_is_let_in(&lab);
}

/// A volume that is there is mounted on a host that is new to it, and leaves it again.
fn another_host_is_let_in(lab: &Lab) {
    let state = tempfile::tempdir().unwrap();
    let volume = |words: &str| {
        let mut command = Command::new(EXE);
        command.arg("volume").args(words.split(' '));
        command.env("HOMING_SSH", format!("ssh -F /var/lib/homing/labs/{}/ssh_config", lab.name));
        let output = command.env("HOMING_VOLUMES", state.path()).env("XDG_RUNTIME_DIR", state.path()).output().unwrap();
        assert!(output.status.success(), "volume {words}: {}", err(&output));
    };
    volume("create files --kind nfs --hosts n1:/scratch/export/files");
    lab.ok("n1", "echo seen >/files/a");
    lab.ok("n2", "test ! -e /files");
    volume("mount files --on n2");
    assert_eq!(lab.ok("n2", "cat /files/a; grep -c ' /files nfs' /proc/mounts; echo too >/files/b"), "seen\n1\n");
    volume("unmount files --on n2");
    lab.ok("n2", "! grep -q /files /proc/mounts /etc/fstab");
    lab.ok("n1", "cat /files/b");
    volume("delete files --delete-files");
}

/// The same by other users and other ways to submit, which take emulated guests six minutes.
#[test]
fn between_guests_at_length() {
    let kind = if processors_have_amx() { "qemu" } else { "uml" };
    let Some((program, lab)) = guests("nfslong", kind) else { return };
    let exe = program.0.to_str().unwrap();
    lab.ok("n2", "mkdir /v3; mount -t nfs -o vers=3,nolock n1:/scratch/export /v3");
    the_server_takes_part(&lab, exe);
    iobsub_runs_at_the_server(&lab, exe);
}

/// In a mounted directory `iobsub` finds its server, says so, and runs there, in
/// the server's own path: below the root of version 4's name space, and by version 3.
fn iobsub_runs_at_the_server(lab: &Lab, exe: &str) {
    lab.ok("n2", &format!("{exe} lsf install /root/lsf; echo 'hosts = \"n[1-2]\"' >/root/cluster.toml"));
    // A folder each: what one mount was told is missing it may not see made by the other.
    for (mount, name) in [("/data", "v4"), ("/v3", "v3")] {
        let script = format!(
            "export PATH=/root/lsf:$PATH HOMING_CLUSTER=/root/cluster.toml SHELL=/bin/sh; \
             mkdir {mount}/jobs-{name} && cd {mount}/jobs-{name} && iobsub -K -o out 'hostname; pwd; echo made >here' && cat here out"
        );
        let said = lab.ok("n2", &script);
        let lines: Vec<&str> = said.lines().take(4).collect();
        assert_eq!(
            lines,
            ["Submitting job to run on fileserver n1", "made", "n1", &format!("/scratch/export/jobs-{name}")],
            "{mount}: {said}"
        );
    }
}

/// Tasks run on the server too, which has no /data: next to their bytes, under the usual names.
fn the_server_takes_part(lab: &Lab, exe: &str) {
    // Somebody with the same number and key everywhere.
    for host in ["n1", "n2"] {
        lab.ok(
            host,
            "useradd -m -u 4711 tester && cp -r /root/.ssh /home/tester/ && \
             sed -i 's/User root/User tester/; s#/root/#/home/tester/#' /home/tester/.ssh/config && \
             chown -R tester: /home/tester",
        );
    }
    files_for_a_batch(lab);
    let user = "setpriv --reuid=4711 --regid=4711 --clear-groups env HOME=/home/tester USER=tester";
    let words = "tasks get its path in their words";
    batch_at_the_server(lab, &format!("{exe} run --hosts 'n[1-2]'"), VIEW, "/data/in");
    batch_at_the_server(lab, &format!("{user} {exe} run --hosts n1"), VIEW, "/data/in");
    lab.ok("n1", "sysctl -q user.max_user_namespaces=0");
    batch_at_the_server(lab, &format!("{user} {exe} run --hosts n1"), words, "/scratch/export/in");
    nothing_is_left(lab);
}

fn files_for_a_batch(lab: &Lab) {
    lab.ok(
        "n2",
        "mkdir -m 1777 /data/in && cd /data/in && for i in 1 2 3 4; do head -c 300000 /dev/urandom >\"f $i\"; done",
    );
}

fn nothing_is_left(lab: &Lab) {
    lab.ok("n1", "test ! -e /data && ! ls -A /scratch/export /scratch/export/in | grep nonce");
}

/// One batch from n2; n1 shows its working directory as `there`.
fn batch_at_the_server(lab: &Lab, run: &str, told: &str, there: &str) {
    // The emulated server may join in late: no task of n2 ends before one has begun there.
    lab.ok("n1", "rm -f /tmp/begun");
    let task = "echo $HOMING_HOST $PWD {}; sum {} >/data/in/{#}.sum; cat /data/in/{#}.sum >/dev/null; \
                if [ $HOMING_HOST = n1 ]; then : >/tmp/begun; else until ssh n1 test -e /tmp/begun; do sleep 1; done; fi";
    let run = format!("cd /data/in && {run} -k --on ssh -j1 '{task}' ::: /data/in/f*");
    let output = lab.on("n2", &run);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), err(&output));
    assert!(output.status.success(), "{out}{err}");
    assert!(err.contains("n1: it serves /data from its own /scratch/export;") && err.contains(told), "{err}");
    let at_home = out.lines().filter(|l| l.starts_with(&format!("n1 {there} {there}/f "))).count();
    assert!(out.lines().count() == 4 && at_home >= 1, "at the server, in {there}: {out}{err}");
    assert_eq!(lab.ok("n2", "cat /data/in/*.sum | wc -l; rm /data/in/*.sum").trim(), "4");
}

/// The locator on each kind of mount.
#[test]
fn inside_a_guest() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let locator = Locator::new().unwrap();
    let n1 = BTreeSet::from(["n1".to_string()]);
    for mount in ["/data", "/v3", "/auto/data"] {
        let dir = PathBuf::from(mount).join(format!("contract{}", mount.len()));
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(locator.volume_of(&dir).unwrap().kind, Kind::Nfs);
        contract::check(&locator, &dir, &n1);
    }
    std::fs::write("/data/sub/f", "seen").unwrap();
    // On version 4 the server's path begins at its pseudo-root, which is /scratch/export here.
    on_server(&locator, "/data/sub/f", "n1:/", "/sub/f");
    on_server(&locator, "/v3/sub/f", "n1:/scratch/export", "/scratch/export/sub/f");
    on_server(&locator, "/auto/data/sub/f", "n1:/", "/sub/f");
    on_server(&locator, "/bound/f", "n1:/sub", "/sub/f");
    on_server(&locator, "/data/inner", "n1:/inner", "/inner");
    std::fs::write("/data/inner/g", "deeper").unwrap();
    on_server(&locator, "/data/inner/g", "n1:/inner", "/inner/g");
    let by_address = locator.locate(Path::new("/folder/f"));
    assert!(by_address.volume.starts_with("nfs:") && by_address.reason.is_none(), "{by_address:?}");
}

fn on_server(locator: &Locator, path: &str, source: &str, there: &str) {
    let path = Path::new(path);
    let volume = locator.volume_of(path).unwrap();
    assert_eq!(volume.mount.source, source.into(), "{}", path.display());
    if path.is_file() {
        let layout = locator.locate(path);
        assert_eq!(layout.reason, None, "{layout:?}");
        assert_eq!(layout.server_path, Some(there.into()), "{layout:?}");
    }
}

/// Notes, until the file `stop` is there, how many files are open at the server at once. It gives no delegations, by
/// which clients would open files without asking it.
const COUNT: &str = "echo 0 >/proc/sys/fs/leases-enable; rm -f stop most; most=0; \
    while [ ! -e stop ]; do \
    now=$(cat /proc/fs/nfsd/clients/*/states 2>/dev/null | grep -c 'type: open, access: r-.*filename: \"in/f'); \
    [ $now -gt $most ] && most=$now; done; echo $most >most";

/// How a task reads: it closes what it has opened a little before its end, since a client tells its server later.
const READS: &str = "exec 3<{}; sleep 0.2; cat <&3 >/dev/null; exec 3<&-; sleep 0.1; date +%s.%N";

/// An appliance: n1 serves, and is no host of any run. Its limit is that of all who use it: one run on three
/// hosts, then two runs of two users on two machines. A run that is killed gives back what it had.
#[test]
fn a_server_that_is_no_host_has_one_limit_for_all() {
    let kind = if processors_have_amx() { "qemu" } else { "uml" };
    let program = if kind == "uml" { "linux.uml" } else { "qemu-system-x86_64" };
    if missing(&[program, "exportfs", "mount.nfs", "rpcbind", "busybox", "setpriv"]) {
        return;
    }
    let program = Program::new("nfsone");
    let lab = Lab::up("nfsone", &["--hosts", "4", "--disk", "512M", "--nfs", "--guests", kind]);
    let exe = program.0.to_str().unwrap();
    lab.ok("n2", "mkdir -m 1777 /data/in; cd /data/in; for i in $(seq 60); do echo $i >f$i; done");
    for limit in [1, 4, 8] {
        let most = most_at_the_server(&lab, || {
            lab.ok(
                "n2",
                &format!(
                    "cd /data/in && HOMING_RUNS=/root/runs {exe} run --hosts 'n[2-4]' -j4 --io {limit} '{READS}' ::: f*"
                ),
            );
        });
        assert!(most >= 1 && most <= limit, "--io {limit}: {most}");
    }
    two_users_on_two_machines(&lab, exe);
    what_is_in_the_way_is_said(&lab, exe);
}

fn most_at_the_server(lab: &Lab, during: impl FnOnce()) -> u32 {
    lab.ok("n1", &format!("cd /root; ({COUNT}) >/dev/null 2>&1 &"));
    during();
    lab.ok("n1", "cd /root; : >stop; until [ -s most ]; do sleep 0.1; done; cat most").trim().parse().unwrap()
}

/// A run of one user on that user's own machine.
fn run_of(exe: &str, uid: u32, host: &str, words: &str) -> String {
    format!(
        "cd /data/in && setpriv --reuid={uid} --regid={uid} --clear-groups \
         env HOMING_RUNS=/tmp/runs{uid} HOME=/tmp {exe} run --hosts {host} -j6 {words}"
    )
}

fn two_users_on_two_machines(lab: &Lab, exe: &str) {
    let users = [(4711, "n2"), (4712, "n3")];
    let mut said = Vec::new();
    let most = most_at_the_server(lab, || {
        said = std::thread::scope(|scope| {
            let run = |(uid, host): (u32, &'static str)| {
                lab.ok(host, &run_of(exe, uid, host, &format!("--io 4 '{READS}' ::: f*")))
            };
            let all: Vec<_> = users.into_iter().map(|user| scope.spawn(move || run(user))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
    });
    assert!((1..=4).contains(&most), "{most} at once of both");
    assert!(said.iter().all(|out| out.lines().count() == 60), "{said:?}");
    lab.ok("n2", "grep -q '\"4711\",[1-4]\\],\\[\"4712\",[1-4]' /tmp/runs4711/*/journal.jsonl");
    // One has all leases and is killed: the other's tasks begin.
    let (first, second) = (
        run_of(exe, 4711, "n2", "--io 4 'sleep 600; cat' ::: f1 f2 f3 f4"),
        run_of(exe, 4712, "n3", "--io 4 'cat' ::: f*"),
    );
    lab.ok("n2", &format!("({first} & echo $! >/tmp/pid; wait) >/dev/null 2>&1 & until ls /data/.homing-leases/*@n2.*; do sleep 0.1; done"));
    lab.ok("n2", "until pgrep -f 'sleep 600' >/dev/null; do sleep 0.1; done");
    let out = std::thread::scope(|scope| {
        let second = scope.spawn(|| lab.ok("n3", &second));
        lab.ok("n3", "until ls /data/.homing-leases/*@n3.*; do sleep 0.1; done; sleep 2");
        lab.ok("n2", "pkill -9 -U 4711 homing; true");
        second.join().unwrap()
    });
    assert_eq!(out.lines().count(), 60);
}

/// Each of these is said in one line, and the run goes on.
fn what_is_in_the_way_is_said(lab: &Lab, exe: &str) {
    let run = |said: &str| {
        let output = lab.on("n2", &run_of(exe, 4711, "n2", "--io 2 'cat' ::: f1 f2 f3"));
        let (out, err) = (String::from_utf8_lossy(&output.stdout), err(&output));
        assert!(output.status.success() && out.lines().count() == 3, "{out}{err}");
        assert_eq!(err.lines().filter(|line| line.contains(said)).count(), 1, "{said}: {err}");
    };
    lab.ok("n2", "rm -rf /data/.homing-leases; ln -s /etc /data/.homing-leases");
    run(".homing-leases is a symbolic link, and was passed over");
    lab.ok("n2", "rm -rf /data/.homing-leases*; mkdir -m 700 /data/.homing-leases");
    run(".homing-leases is open to 700 and not to all (chmod 1777), and was passed over");
    lab.ok("n2", "rm -rf /data/.homing-leases*; chmod 755 /data");
    run(
        "is this run's alone, and not shared with other runs: /data/.homing-leases is not there, and /data cannot be written",
    );
    lab.ok("n2", "chmod 1777 /data; mount -o remount,ro /data");
    run("not shared with other runs: cannot make /data/.homing-leases: Read-only file system");
    lab.ok("n2", "mount -o remount,rw /data");
    lab.ok("n1", "dd if=/dev/zero of=/scratch/export/fill bs=1M >/dev/null 2>&1; dd if=/dev/zero of=/scratch/export/fill2 bs=1 >/dev/null 2>&1; true");
    let output = lab.on("n2", &run_of(exe, 4711, "n2", "--io 2 'cat' ::: f1 f2 f3"));
    assert!(output.status.success(), "a full volume: {}", err(&output));
}
