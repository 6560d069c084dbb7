//! The reasons why a host gave no worker: one line each, with a remedy.

use crate::carrier::Carrier;
use crate::handshake::Failure;
use crate::payload::OWN_ARCH;
use crate::wire::WireError;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// A worker could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The name is no valid destination for ssh.
    #[error("host {host}: {target:?} is not a valid name for ssh; correct it in --hosts or in the configuration")]
    BadTarget {
        /// The host.
        host: String,
        /// The destination for ssh.
        target: String,
    },
    /// This program itself cannot be read for copying.
    #[error("reading the worker's program {} failed: {source}", path.display())]
    Executable {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// No thread could be started for its channel.
    #[error("host {host}: cannot start a thread for its connection: {source}")]
    Thread {
        /// The host.
        host: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The child did not start.
    #[error("host {host}: starting {program:?} failed: {source}; is it installed and in PATH?")]
    Start {
        /// The host.
        host: String,
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The resolver does not know it.
    #[error("host {host} is unknown: {said}; check the spelling, or give it an address in ~/.ssh/config or /etc/hosts")]
    UnknownHost {
        /// The host.
        host: String,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// The host refused the login.
    #[error(
        "host {host} refuses the login: {said}; use `ssh-copy-id {}` or an ssh agent to log in without a password",
        login_of(.host, .said)
    )]
    KeyRefused {
        /// The host.
        host: String,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// It answers with another key than the recorded one.
    #[error(
        "host {host} answers with another host key than the recorded one: if it was reinstalled, run `ssh-keygen -R \
         {host}`; if not, another machine answers in its name"
    )]
    HostKeyChanged {
        /// The host.
        host: String,
    },
    /// Its key was never accepted.
    #[error("host {host}: its host key is not recorded: `homing hosts --trust -w {host}` shows and records it")]
    HostKeyUnknown {
        /// The host.
        host: String,
    },
    /// Refused, timed out, no route.
    #[error("host {host} cannot be reached: {said}; is it up, and does sshd run there?")]
    Unreachable {
        /// The host.
        host: String,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// The bootstrap misses a program.
    #[error("host {host} has no {tool}, which is needed to check the worker's copy; install coreutils there")]
    NoTool {
        /// The host.
        host: String,
        /// The missing program.
        tool: String,
    },
    /// The copy could not be written.
    #[error(
        "host {host}: writing the worker's copy failed: {said}; free some space there, or set XDG_CACHE_HOME there"
    )]
    CannotWrite {
        /// The host.
        host: String,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// No folder is fit for the copy.
    #[error(
        "host {host} has no folder for the worker's copy: {said}: neither is private to you, writable \
         and on a file system that may execute; set XDG_CACHE_HOME there"
    )]
    NoFolder {
        /// The host.
        host: String,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// The copy arrived damaged.
    #[error("host {host}: the worker's copy arrived incomplete or damaged and was removed; try again")]
    DamagedCopy {
        /// The host.
        host: String,
    },
    /// Another kind of machine.
    #[error(
        "host {host} is {theirs}, this homing is for {ours}: {} is missing; install it from the archive of homing for \
         {theirs} or from the packages", missing.display()
    )]
    Architecture {
        /// The host.
        host: String,
        /// Its `uname -m`.
        theirs: String,
        /// The machines that this program is for.
        ours: &'static str,
        /// The first path at which its worker was looked for.
        missing: PathBuf,
    },
    /// The program for the host cannot be read here.
    #[error("host {host}: cannot read the worker's program for it on this machine: {source}")]
    Program {
        /// The host.
        host: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The program was copied but does not run.
    #[error("host {host}: the worker's program does not run on it: {said}; use a statically linked homing")]
    DoesNotRun {
        /// The host.
        host: String,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// It fell silent.
    #[error("host {host}: no answer for {seconds} s during the start of the worker; {said}")]
    Silent {
        /// The host.
        host: String,
        /// The length of the silence.
        seconds: u64,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// It ended without a hello.
    #[error("host {host}: the worker ended before its first message ({status}): {said}")]
    Ended {
        /// The host.
        host: String,
        /// Exit status of the child.
        status: String,
        /// The message of ssh, or of the far system.
        said: String,
    },
    /// It is off, and the site's command does not switch it on.
    #[error("host {host} is switched off, and the command [power] on failed: {said}; try: homing power on {host}")]
    NotSwitchedOn {
        /// The host.
        host: String,
        /// The message of the command, or of this system.
        said: String,
    },
    /// It was switched on and is not there yet.
    #[error("host {host} was switched on {seconds} s ago and still does not answer: {last}")]
    StillOff {
        /// The host.
        host: String,
        /// Seconds since then.
        seconds: u64,
        /// The error of the last try.
        last: Box<LaunchError>,
    },
    /// A batch system gave no worker.
    #[error("host {host}: {system} granted no worker: {message}")]
    Ungranted {
        /// The host.
        host: String,
        /// The batch system.
        system: &'static str,
        /// Its message.
        message: String,
    },
    /// The run ended before a batch system granted a worker.
    #[error("host {host}: the run ended before {system} granted a worker")]
    NotNeeded {
        /// The host.
        host: String,
        /// The batch system.
        system: &'static str,
    },
    /// Its hello was not valid.
    #[error("host {host}: {source}")]
    Hello {
        /// The host.
        host: String,
        /// The error of the hello.
        source: WireError,
    },
}

/// Combines the failure of the stream with the last words of the child.
pub(crate) fn verdict(host: &str, failure: Failure, carrier: Carrier) -> LaunchError {
    // All children but a silent one are about to end by themselves and to tidy up.
    let grace = if matches!(failure, Failure::Silent(_)) { Duration::ZERO } else { Duration::from_secs(2) };
    let (status, words) = carrier.last_words(grace);
    let host = host.to_string();
    match failure {
        Failure::Ended => ended(host, status, &words),
        Failure::Silent(patience) => {
            let said = last_line(&words).unwrap_or("it printed no message").to_string();
            LaunchError::Silent { host, seconds: patience.as_secs(), said }
        }
        Failure::Boot { kind, detail } => boot_failed(host, &kind, detail),
        Failure::Architecture(none) => {
            LaunchError::Architecture { host, theirs: none.arch, ours: OWN_ARCH, missing: none.first }
        }
        Failure::Program(source) => LaunchError::Program { host, source },
        Failure::Wire(source) => LaunchError::Hello { host, source },
    }
}

fn boot_failed(host: String, kind: &str, detail: String) -> LaunchError {
    match kind {
        "tool" => LaunchError::NoTool { host, tool: detail },
        "write" => LaunchError::CannotWrite { host, said: detail },
        "copy" => LaunchError::DamagedCopy { host },
        "folder" => LaunchError::NoFolder { host, said: detail },
        _ => LaunchError::Ended { host, status: "its bootstrap failed".into(), said: format!("{kind} {detail}") },
    }
}

/// The exit status with which ssh reports each failure of its own.
const SSH_FAILED: i32 = 255;

fn ended(host: String, status: Option<ExitStatus>, words: &str) -> LaunchError {
    let code = status.and_then(|s| s.code());
    if code == Some(SSH_FAILED)
        && let Some(error) = ssh_verdict(&host, words)
    {
        return error;
    }
    let said = |line: &str| line.trim().trim_end_matches('.').to_string();
    for line in words.lines() {
        let libraries = line.contains("GLIBC_") || line.contains("error while loading shared libraries");
        if libraries || line.contains("Exec format error") {
            return LaunchError::DoesNotRun { host, said: said(line) };
        }
        if matches!(code, Some(126 | 127)) && line.contains("/bin/sh") {
            return LaunchError::NoTool { host, tool: "/bin/sh".into() };
        }
    }
    let status = status.map_or_else(|| "status unknown".into(), |s| s.to_string());
    LaunchError::Ended { host, status, said: said(last_line(words).unwrap_or("it printed no message")) }
}

/// Returns the error in ssh's messages. OpenSSH has one exit status for all; its messages are stable and not
/// translated.
pub fn ssh_verdict(host: &str, words: &str) -> Option<LaunchError> {
    let host = host.to_string();
    // Checked first: the lines that follow it look like a refused or unknown key.
    if words.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return Some(LaunchError::HostKeyChanged { host });
    }
    for line in words.lines().rev() {
        let said = line.trim().trim_end_matches('.').to_string();
        let has = |needles: &[&str]| needles.iter().any(|n| line.contains(n));
        if has(&["Could not resolve hostname"]) {
            return Some(LaunchError::UnknownHost { host, said });
        }
        if has(&["Permission denied (", "Too many authentication failures"]) {
            return Some(LaunchError::KeyRefused { host, said });
        }
        if has(&["Host key verification failed"]) {
            return Some(LaunchError::HostKeyUnknown { host });
        }
        let dead =
            ["Connection refused", "timed out", "No route to host", "Network is unreachable", "Connection closed"];
        if has(&dead) {
            return Some(LaunchError::Unreachable { host, said });
        }
    }
    None
}

pub(crate) fn last_line(words: &str) -> Option<&str> {
    words.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// Returns the words of `ssh-copy-id` for the account that was refused: ssh's message begins with `USER@HOST: `.
fn login_of(host: &str, said: &str) -> String {
    match said.split_once('@').map(|(user, _)| user).filter(|user| !user.is_empty() && !user.contains([' ', ':'])) {
        Some(user) if !host.contains('@') => format!("{user}@{host}"),
        _ => host.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_names_the_account() {
        assert_eq!(login_of("n1", "alice@10.77.1.1: Permission denied (publickey)."), "alice@n1");
        assert_eq!(login_of("bob@n1", "bob@n1: Permission denied"), "bob@n1");
        assert_eq!(login_of("n1", "Too many authentication failures"), "n1");
    }

    #[test]
    fn the_words_of_ssh_become_one_clear_line() {
        let cases = [
            ("ssh: Could not resolve hostname n9: Name or service not known", "host n9 is unknown"),
            ("Warning: Permanently added 'n9'\nroot@n9: Permission denied (publickey).", "refuses the login"),
            (
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.",
                "another host key",
            ),
            ("No ED25519 host key is known for n9\nHost key verification failed.", "`homing hosts --trust -w n9`"),
            ("ssh: connect to host n9 port 22: Connection refused", "cannot be reached"),
            ("ssh: connect to host n9 port 22: Connection timed out", "cannot be reached"),
            ("Connection timed out during banner exchange", "cannot be reached"),
        ];
        for (words, expected) in cases {
            let line = ssh_verdict("n9", words).unwrap_or_else(|| panic!("{words}")).to_string();
            assert!(line.contains(expected), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
        assert!(ssh_verdict("n9", "").is_none());
    }
}
