//! Checks whether a host is known by its name, without a login there.

use crate::LaunchError;
use crate::error::ssh_verdict;
use homing_os::names::{OWN_COMMAND, is_here, ssh_words};
use std::net::ToSocketAddrs;
use std::process::{Command, Stdio};

/// The time for ssh to connect. A silent host is a known one.
const CONNECTS_WITHIN: &str = "-oConnectTimeout=3";

/// Refuses a target of ssh, `host` or `user@host`, with an unknown host. A host that is down, or refuses the login, is
/// known.
///
/// The resolver of this machine is queried first. ssh has the last word, because its configuration may hold aliases and
/// jump hosts.
///
/// # Errors
/// [`LaunchError::UnknownHost`], with the message of ssh.
pub fn refuse_unknown(target: &str) -> Result<(), LaunchError> {
    let name = target.rsplit('@').next().unwrap_or(target);
    if is_here(name) || (name, 22).to_socket_addrs().is_ok_and(|mut found| found.next().is_some()) {
        return Ok(());
    }
    let words = ssh_words();
    let Some((program, options)) = words.split_first() else { return Ok(()) };
    let mut ssh = Command::new(program);
    ssh.args(options).args(["-oBatchMode=yes", CONNECTS_WITHIN, "-oConnectionAttempts=1", OWN_COMMAND]);
    let answer = ssh.args([target, "true"]).stdin(Stdio::null()).stdout(Stdio::null()).output();
    // Without a working ssh, the job itself reports the fault.
    let Ok(answer) = answer else { return Ok(()) };
    match ssh_verdict(target, &String::from_utf8_lossy(&answer.stderr)) {
        Some(unknown @ LaunchError::UnknownHost { .. }) if !answer.status.success() => Err(unknown),
        _ => Ok(()),
    }
}
