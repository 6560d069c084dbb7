//! Runs a command inside a host, and an action for every host.

use crate::error::Result;
use crate::plan::{HostPlan, LabPlan};
use crate::{cgroup, folder, process, program};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The capability to set the clock, by its number in capability.h.
const CAP_SYS_TIME: libc::c_ulong = 25;

/// Returns a command that runs in a host of a lab as root, in `/root`. It runs within the host's share of processor
/// time. The caller adds program and arguments. Standard streams are the caller's, and the exit status is the
/// program's.
pub fn exec(lab: &str, host: &str) -> Result<Command> {
    program::need_root()?;
    let plan = folder::load(lab)?;
    inside(&plan.known_host(host)?).ok_or_else(|| plan.no_host(host))
}

/// Returns the command like [`exec`]; `None` when the host does not run.
pub(crate) fn inside(host: &HostPlan) -> Option<Command> {
    let leader = process::leader_of(host)?;
    if host.is_guest() {
        return Some(over_ssh(host));
    }
    let mut c = program::command("nsenter");
    c.args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--wdns=/root"]);
    c.args(["--target", &leader.to_string(), "--"]);
    c.env_clear().env("PATH", PATH).env("HOME", "/root").env("USER", "root").env("LOGNAME", "root");
    c.env("SHELL", "/bin/bash");
    for kept in ["TERM", "LANG"] {
        if let Some(value) = std::env::var_os(kept) {
            c.env(kept, value);
        }
    }
    c.stdin(Stdio::inherit());
    // SAFETY: a system call with plain numbers between fork and exec.
    unsafe {
        c.pre_exec(|| {
            // As for the other processes of the host: the clock is that of the machine.
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0);
            Ok(())
        });
    }
    if let Some(mut door) = cgroup::enter_cpu(&host.cgroup()) {
        // SAFETY: writing to a descriptor opened before the fork is async-signal-safe.
        unsafe {
            c.pre_exec(move || door.write_all(b"0"));
        }
    }
    Some(c)
}

/// Returns a command that runs in a guest by ssh: the machine cannot enter the namespaces of a guest's processes. ssh
/// joins words with blanks, so a shell quotes the words that the caller adds.
fn over_ssh(host: &HostPlan) -> Command {
    let mut c = program::command("sh");
    c.args(["-c", QUOTED, "ssh"]).arg(host.ssh_config()).arg(host.name());
    c.args(["env", &format!("PATH={PATH}")]).stdin(Stdio::inherit());
    c
}

const QUOTED: &str = r#"config=$1 host=$2; shift 2; line=
for word; do
  word=$(printf '%sx' "$word" | sed "s/'/'\\\\''/g"); line="$line '${word%x}'"
done
exec ssh -F "$config" "$host" "$line""#;

/// Runs a program in a host to its end and returns its standard output.
pub(crate) fn output(plan: &LabPlan, host: &HostPlan, doing: &str, args: &[&str]) -> Result<String> {
    let mut c = inside(host).ok_or_else(|| plan.no_host(&host.name()))?;
    c.args(args).stdin(Stdio::null());
    program::finish(&format!("{doing} on {}", host.name()), &mut c)
}

/// Carries out an action for every host at once. Returns the first failure, in the hosts' order.
pub(crate) fn on_each(plan: &LabPlan, act: impl Fn(&HostPlan) -> Result<()> + Sync) -> Result<()> {
    let hosts = plan.hosts();
    homing_os::threads::each(&hosts, act).into_iter().collect()
}
