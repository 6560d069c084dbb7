//! Reads the processes of a host.

use crate::Work;
use std::collections::{HashMap, HashSet};

/// Prints load, processors and processes, in the `sh` of a host. No part of it waits for a mount that hangs, as
/// reading a command line may.
pub const SCRIPT: &str = r#"echo "self $$"
echo "load $(cat /proc/loadavg)"
echo "cores $(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc)"
stat -c 'uid %u %n' /proc/[0-9]* 2>/dev/null
cat /proc/[0-9]*/stat 2>/dev/null
grep -H . /proc/[0-9]*/cgroup 2>/dev/null
exit 0
"#;

/// Names of programs that serve others, as the kernel has them: cut after 15 letters. A host that runs one of them is
/// never switched off automatically.
const SERVERS: [&str; 23] = [
    "glusterfsd",
    "mfsmaster",
    "mfschunkserver",
    "mfsmetalogger",
    "ceph-osd",
    "ceph-mon",
    "ceph-mds",
    "ceph-mgr",
    "nfsd",
    "ganesha.nfsd",
    "smbd",
    "beegfs-storage",
    "beegfs-meta",
    "beegfs-mgmtd",
    "minio",
    "slurmctld",
    "slurmdbd",
    "named",
    "dnsmasq",
    "slapd",
    "ypserv",
    "postgres",
    "mariadbd",
];
/// Beginnings of further such names.
const SERVERS_BEGIN: [&str; 3] = ["ll_ost", "mdt0", "qemu-system"];
/// Processes that systemd keeps for an inactive user.
const RESTING: [&str; 5] = ["systemd", "(sd-pam)", "dbus-daemon", "dbus-broker", "dbus-broker-lau"];
/// Processes that wait at a terminal for a login.
const WAITING: [&str; 3] = ["agetty", "getty", "login"];
/// Numbers of people, by the usual `login.defs`, and those that systemd uses for its own services.
const PEOPLE: u32 = 1000;
const DYNAMIC: std::ops::RangeInclusive<u32> = 61184..=65535;

/// The present state of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostActivity {
    /// The greater of its load averages over one and five minutes.
    pub load: f64,
    /// Its processors.
    pub cores: u32,
    /// The work of its processes, if there is any.
    pub work: Option<Work>,
}

/// A process.
struct ProcessRow<'a> {
    name: &'a str,
    parent: u32,
    terminal: bool,
    uid: u32,
    session: bool,
}

impl HostActivity {
    /// Reads the output of [`SCRIPT`]; `None` if something is missing.
    pub fn read(text: &str) -> Option<HostActivity> {
        let after = |word: &str| text.lines().find_map(|line| line.strip_prefix(word));
        let own: u32 = after("self ")?.trim().parse().ok()?;
        let loads: Vec<f64> = after("load ")?.split(' ').take(2).filter_map(|load| load.parse().ok()).collect();
        let cores = after("cores ")?.trim().parse().ok()?;
        let load = loads.into_iter().reduce(f64::max)?;
        let all = processes(text);
        // A user who cannot see process 1 sees no processes of other users (hidepid).
        let whole = all.contains_key(&own) && all.contains_key(&1);
        whole.then(|| HostActivity { load, cores, work: work(&all, own) })
    }
}

/// Returns the processes by number. A name may contain blanks and brackets: the other fields follow the last bracket.
fn processes(text: &str) -> HashMap<u32, ProcessRow<'_>> {
    let uid = |line: &str| {
        let (uid, path) = line.strip_prefix("uid ")?.split_once(" /proc/")?;
        Some((path.parse::<u32>().ok()?, uid.parse::<u32>().ok()?))
    };
    let uids: HashMap<u32, u32> = text.lines().filter_map(uid).collect();
    let sessions: HashSet<u32> = text.lines().filter_map(of_session).collect();
    let process = |line| process(line, &uids, &sessions);
    text.lines().filter_map(process).collect()
}

/// Reads a line of `/proc/PID/stat`. A process that ended before its user was read is left out.
fn process<'a>(line: &'a str, uids: &HashMap<u32, u32>, sessions: &HashSet<u32>) -> Option<(u32, ProcessRow<'a>)> {
    let (pid, rest) = line.split_once(" (")?;
    let pid: u32 = pid.parse().ok()?;
    let (name, after) = rest.rsplit_once(") ")?;
    let mut fields = after.split(' ').skip(1);
    let parent = fields.next()?.parse().ok()?;
    let terminal = fields.nth(2)? != "0";
    Some((pid, ProcessRow { name, parent, terminal, uid: *uids.get(&pid)?, session: sessions.contains(&pid) }))
}

/// Returns the process of a line of `/proc/PID/cgroup`, if a logged-in user started it, even if its parents have
/// ended. Without logind, such processes stay in the group of sshd.
fn of_session(line: &str) -> Option<u32> {
    let (pid, group) = line.strip_prefix("/proc/")?.split_once("/cgroup:")?;
    let last = group.rsplit('/').next()?;
    let session = last.starts_with("session-") && last.ends_with(".scope");
    let ssh = last.ends_with(".service") && (last.starts_with("ssh.") || last.starts_with("sshd"));
    (session || ssh).then(|| pid.parse().ok()).flatten()
}

/// Returns the work of processes, services first, because they keep a host on permanently. `own` is the process of
/// the script.
fn work(all: &HashMap<u32, ProcessRow>, own: u32) -> Option<Work> {
    let mine = family(all, own);
    let mut found: Vec<(u8, u32, Work)> = all
        .iter()
        .filter(|(pid, _)| !mine.contains(pid))
        .filter_map(|(pid, process)| {
            let work = of_process(process, || beyond_ssh(all, *pid))?;
            Some((rank(&work), *pid, work))
        })
        .collect();
    found.sort_by_key(|(rank, pid, _)| (*rank, *pid));
    found.into_iter().next().map(|(_, _, work)| work)
}

fn rank(work: &Work) -> u8 {
    match work {
        Work::Slurm => 0,
        Work::Serves(_) => 1,
        Work::Homing => 2,
        Work::Login(_) => 3,
        Work::User(..) | Work::Load(_) => 4,
    }
}

fn of_process(process: &ProcessRow, by_ssh: impl Fn() -> bool) -> Option<Work> {
    let ProcessRow { name, terminal, uid, session, .. } = process;
    let serves = SERVERS.contains(name) || SERVERS_BEGIN.iter().any(|begin| name.starts_with(begin));
    let waits = WAITING.contains(name) || RESTING.contains(name) || is_sshd(name);
    let person = *uid >= PEOPLE && !DYNAMIC.contains(uid);
    match () {
        () if *name == "slurmd" => Some(Work::Slurm),
        () if serves => Some(Work::Serves(name.to_string())),
        () if name.starts_with("homing") => Some(Work::Homing),
        () if waits => None,
        () if *terminal || *session || by_ssh() => Some(Work::Login(*uid)),
        () if person => Some(Work::User(*uid, name.to_string())),
        () => None,
    }
}

/// Whether it is `sshd`, or from OpenSSH 9.8 on `sshd-session` or `sshd-auth`.
fn is_sshd(name: &str) -> bool {
    name.starts_with("sshd")
}

/// Whether a process was started over ssh. An open connection alone does no work.
fn beyond_ssh(all: &HashMap<u32, ProcessRow>, pid: u32) -> bool {
    above(all, pid).any(|parent| all.get(&parent).is_some_and(|process| is_sshd(process.name)))
}

/// Returns the ancestors of a process. Processes are read one by one: a number may have been reused, and the
/// ancestors may form a loop.
fn above<'a>(all: &'a HashMap<u32, ProcessRow>, pid: u32) -> impl Iterator<Item = u32> + 'a {
    std::iter::successors(Some(pid), |pid| Some(all.get(pid)?.parent)).skip(1).take(all.len())
}

/// Returns the process of the script, its ancestors and its descendants.
fn family(all: &HashMap<u32, ProcessRow>, own: u32) -> HashSet<u32> {
    let below = all.keys().copied().filter(|pid| above(all, *pid).any(|parent| parent == own));
    below.chain(above(all, own)).chain([own]).collect()
}

#[cfg(test)]
mod tests;
