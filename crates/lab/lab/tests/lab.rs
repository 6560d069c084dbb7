//! Tests of the lab itself, with real hosts. Needs root and the programs that the lab needs.

#[path = "../../../../tests/skipped.rs"]
mod skipped;

use homing_lab::{HostState, LabSpec};
use skipped::skipped;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A lab that goes down when the test ends, however it ends.
struct Lab(String);

impl Lab {
    fn up(suffix: &str, hosts: u32, change: impl FnOnce(&mut LabSpec)) -> Option<Lab> {
        if !rustix::process::geteuid().is_root() {
            skipped(&format!("{suffix}: the lab needs root; run the tests as root to test it"));
            return None;
        }
        let name = format!("test-{suffix}-{}", std::process::id());
        let mut spec = LabSpec { name: name.clone(), hosts, disk_bytes: 256 << 20, ..LabSpec::default() };
        change(&mut spec);
        let lab = Lab(name);
        homing_lab::up(&spec).expect("lab up");
        Some(lab)
    }

    fn dir(&self) -> PathBuf {
        homing_lab::LabPlan::dir_of(&self.0)
    }

    /// Waits until nothing of the lab is left. The kernel frees a device a moment after its last holder ends.
    fn freed(&self, number: u8) {
        let until = Instant::now() + Duration::from_secs(60);
        while !self.traces(number).is_empty() {
            assert!(Instant::now() < until, "the kernel frees it: {:?}", self.traces(number));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts a process in a mount namespace of its own, whose working directory is on the first host's disk.
    fn held(&self) -> std::process::Child {
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c"])
            .args(["cd \"$1\" && echo there && exec sleep 1000", "sh"])
            .arg(self.dir().join("n1/scratch"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare");
        let mut said = [0; 6];
        holder.stdout.take().expect("pipe").read_exact(&mut said).expect("the namespace is there");
        holder
    }

    fn run(&self, host: &str, words: &[&str]) -> Output {
        let mut c = homing_lab::exec(&self.0, host).expect("host runs");
        c.args(words).stdin(Stdio::null()).output().expect("nsenter starts")
    }

    fn says(&self, host: &str, words: &[&str]) -> String {
        let out = self.run(host, words);
        assert!(out.status.success(), "{words:?} on {host}: {out:?}");
        String::from_utf8_lossy(&out.stdout).trim().to_string()
    }

    /// Returns everything of the lab that the machine's own tools show.
    fn traces(&self, number: u8) -> Vec<String> {
        let dir = format!("{}/", self.dir().display());
        let mut found = Vec::new();
        let mut grep = |program: &str, args: &[&str], marks: &[&str]| {
            let out = Command::new(program).args(args).output().expect(program);
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            found.extend(
                text.lines().filter(|l| marks.iter().any(|m| l.contains(m))).map(|l| format!("{program}: {l}")),
            );
        };
        let bridge = format!(": hl{number}:");
        let veth = format!("vb-hl{number}-");
        grep("cat", &["/proc/self/mountinfo"], &[&dir]);
        grep("losetup", &["--list", "--noheadings"], &[&dir]);
        grep("ip", &["link"], &[&bridge, &veth]);
        grep("ps", &["-eo", "pid,args"], &[&dir]);
        grep("find", &["/sys/fs/cgroup", "-type", "d", "-name", &self.0], &["/"]);
        found.extend(self.dir().exists().then(|| self.dir().display().to_string()));
        found
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let gone = homing_lab::down(&self.0);
        assert!(std::thread::panicking() || gone.is_ok(), "{gone:?}");
    }
}

fn number_of(lab: &Lab) -> u8 {
    homing_lab::load(&lab.0).expect("record").number
}

#[test]
fn two_hosts_from_up_to_nothing() {
    let Some(lab) = Lab::up("two", 2, |s| {
        s.link_bits_per_s = Some(100_000_000);
        s.cpus = Some(0.5);
    }) else {
        return;
    };
    let status = homing_lab::status(&lab.0).expect("status");
    assert!(status.up);
    assert!(status.hosts.iter().all(|h| h.state == HostState::Running && h.pid.is_some()), "{status:?}");

    assert_eq!(lab.run("n1", &["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(lab.says("n1", &["hostname"]), "n1");
    for host in ["n1", "n2"] {
        let own = lab.says(host, &["getent", "hosts", host]);
        assert!(own.starts_with("10.77."), "a host's own name is its link address: {own}");
    }
    assert_eq!(lab.says("n1", &["ssh", "n2", "hostname"]), "n2");
    let config = status.ssh_config.display().to_string();
    let out = Command::new("ssh").args(["-F", &config, "n2", "hostname"]).output().expect("ssh");
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "n2", "{out:?}");

    let disks = ["n1", "n2"].map(|h| lab.says(h, &["stat", "-c", "%d", "/scratch"]));
    assert_ne!(disks[0], disks[1], "each host has a disk of its own");
    assert_eq!(lab.says("n1", &["stat", "-f", "-c", "%T", "/scratch"]), "ext2/ext3");
    let shaped = lab.says("n1", &["tc", "qdisc", "show", "dev", "host0"]);
    assert!(shaped.contains("tbf") && shaped.contains("100Mbit"), "{shaped}");
    lab.says("n1", &["touch", "/etc/only-on-n1"]);
    assert!(!lab.run("n2", &["test", "-e", "/etc/only-on-n1"]).status.success());
    assert!(!PathBuf::from("/etc/only-on-n1").exists());

    link_counters_count_what_crosses(&lab);
    assert!(homing_lab::up(&LabSpec { name: lab.0.clone(), ..LabSpec::default() }).is_err(), "it is up already");
    let number = number_of(&lab);
    assert!(lab.traces(number).len() > 6, "the test sees what it compares: {:?}", lab.traces(number));
    assert!(homing_lab::down(&lab.0).expect("down"));
    assert_eq!(lab.traces(number), Vec::<String>::new());
    assert!(!homing_lab::down(&lab.0).expect("down again"));
}

fn link_counters_count_what_crosses(lab: &Lab) {
    let received = |i: usize| homing_lab::status(&lab.0).expect("status").hosts[i].rx_bytes.expect("link");
    let before = (received(0), received(1));
    lab.says("n1", &["sh", "-c", "head -c 4000000 /dev/urandom | ssh n2 'cat > /dev/null'"]);
    let crossed = (received(0) - before.0, received(1) - before.1);
    assert!(crossed.1 > 4_000_000 && crossed.0 < 1_000_000, "n2 received, n1 sent: {crossed:?}");
}

#[test]
fn down_clears_a_lab_whose_nspawn_was_killed() {
    let Some(lab) = Lab::up("killed", 2, |_| {}) else { return };
    let number = number_of(&lab);
    let root = format!("--directory={}/n1/root", lab.dir().display());
    let listed = Command::new("pgrep").args(["-f", "--", &root]).output().expect("pgrep");
    for pid in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
        Command::new("kill").args(["-9", pid]).status().expect("kill");
    }
    while homing_lab::is_up(&lab.0) {
        std::thread::yield_now();
    }
    let again = homing_lab::up(&LabSpec { name: lab.0.clone(), ..LabSpec::default() });
    assert!(again.is_err_and(|e| e.to_string().contains("homing lab down")), "a stale lab is not built upon");
    assert!(homing_lab::down(&lab.0).expect("down"));
    assert_eq!(lab.traces(number), Vec::<String>::new());
}

const CRASH: &str = "HOMING_LAB_TEST_CRASH";

/// The victim of the next test, in a process of its own. Run as a test, it does nothing.
#[test]
fn raise_until_killed() {
    if let Ok(name) = std::env::var(CRASH) {
        let spec = LabSpec { name, hosts: 2, disk_bytes: 256 << 20, ..LabSpec::default() };
        homing_lab::up(&spec).expect("lab up");
    }
}

#[test]
fn down_clears_what_a_killed_up_had_made() {
    if !rustix::process::geteuid().is_root() {
        skipped("the lab needs root; run the tests as root to test it");
        return;
    }
    // Each of these files exists only from some moment of `up` on.
    for moment in ["id_ed25519", "n1/disk.img", "n2/console.log"] {
        let lab = Lab(format!("test-crash-{}", std::process::id()));
        let me = std::env::current_exe().expect("own program");
        let mut victim = Command::new(me)
            .args(["--exact", "raise_until_killed"])
            .env(CRASH, &lab.0)
            .stdout(Stdio::null())
            .spawn()
            .expect("victim");
        while !lab.dir().join(moment).exists() && victim.try_wait().expect("victim").is_none() {
            std::thread::yield_now();
        }
        victim.kill().expect("kill");
        victim.wait().expect("wait");
        let number = number_of(&lab);
        assert!(homing_lab::down(&lab.0).expect("down"));
        assert_eq!(lab.traces(number), Vec::<String>::new(), "killed when {moment} was there");
    }
}

/// Checks that `down` ends although a disk is in use. A namespace that another program made holds a copy of the
/// disk's mount, and a process has its working directory in it. Without that process the kernel removes the copy with
/// the folder below it.
#[test]
fn down_goes_on_without_a_disk_that_another_namespace_holds() {
    let Some(lab) = Lab::up("held", 1, |_| {}) else { return };
    let number = number_of(&lab);
    let device = lab.traces(number).into_iter().find(|t| t.starts_with("losetup")).expect("a loop device");
    let mut holder = lab.held();

    assert!(homing_lab::down(&lab.0).expect("down"));
    let left = lab.traces(number);
    let name = device.split_whitespace().nth(1).expect("its name");
    assert!(left.len() == 1 && left[0].contains(name), "only the device that is held: {left:?}");
    assert!(holder.try_wait().expect("holder").is_none(), "who holds it is no process of the lab, and lives");

    holder.kill().expect("kill");
    holder.wait().expect("wait");
    lab.freed(number);
}

#[test]
fn a_one_head_disk_is_served_and_goes_away() {
    let Some(lab) = Lab::up("hdd", 1, |s| s.disk_model = homing_lab::DiskModel::Hdd(1)) else { return };
    let number = number_of(&lab);
    lab.says("n1", &["sh", "-c", "head -c 1000000 /dev/urandom > /scratch/f && sync && cmp /scratch/f /scratch/f"]);
    assert!(lab.traces(number).iter().any(|t| t.contains("nbdkit")));
    let device = lab.traces(number).into_iter().find(|t| t.starts_with("losetup")).expect("a loop device");
    let disk = device.split_whitespace().nth(1).and_then(|d| d.strip_prefix("/dev/")).expect("its name").to_string();
    let errors = || {
        let log = Command::new("dmesg").output().expect("dmesg").stdout;
        let log = String::from_utf8_lossy(&log).into_owned();
        log.lines().filter(|line| line.contains("error") && line.contains(&disk)).count()
    };
    let before = errors();
    // `down` writes all data to the disk before its server ends, also where another namespace holds a copy of its
    // mount.
    let mut holder = lab.held();
    lab.says("n1", &["sh", "-c", "head -c 1000000 /dev/urandom > /scratch/g"]);
    homing_lab::down(&lab.0).expect("down");
    holder.kill().expect("kill");
    holder.wait().expect("wait");
    assert_eq!(errors(), before, "the kernel's log says that {disk} lost writes");
    lab.freed(number);
}

#[test]
fn a_gluster_volume_is_seen_by_every_host() {
    let shape = homing_lab::GlusterSpec { replica: 2, sets: None };
    let Some(lab) = Lab::up("gluster", 2, |s| s.gluster = Some(shape)) else { return };
    lab.says("n1", &["sh", "-c", "echo seen > /data/f"]);
    assert_eq!(lab.says("n2", &["cat", "/data/f"]), "seen");
    for host in ["n1", "n2"] {
        assert_eq!(lab.says(host, &["cat", "/scratch/brick/f"]), "seen", "a copy on {host}");
    }
}

#[test]
fn moosefs_keeps_as_many_copies_as_its_goal() {
    let goal = homing_lab::MooseSpec { goal: 2 };
    let Some(lab) = Lab::up("moose", 3, |s| {
        s.moosefs = Some(goal);
        s.disk_bytes = 512 << 20;
    }) else {
        return;
    };
    lab.says("n1", &["sh", "-c", "echo seen > /data/f"]);
    assert_eq!(lab.says("n3", &["cat", "/data/f"]), "seen");
    let places = lab.says("n2", &["mfsfileinfo", "/data/f"]);
    assert_eq!(places.matches("status:VALID").count(), 2, "{places}");
}
