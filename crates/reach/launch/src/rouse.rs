//! Switches hosts on with a command of the site, and waits for them.

use crate::LaunchError;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pause between two tries to connect.
const PAUSE: Duration = Duration::from_secs(2);
/// Bytes that are read from the end of a command's output.
const SAID: usize = 400;

/// A command that switches a host.
#[derive(Clone, Debug)]
pub struct SwitchCommand {
    /// A line for this machine's `sh`.
    pub command: String,
    /// The longest time that it may run.
    pub patience: Duration,
}

/// How a host is switched on.
#[derive(Clone, Debug)]
pub struct Asleep {
    /// The command.
    pub switch: SwitchCommand,
    /// The longest time that it may boot.
    pub patience: Duration,
}

/// Switches a host on unless it answers, and opens it as soon as it does.
pub(crate) fn rouse<T>(
    host: &str,
    asleep: &Asleep,
    mut open: impl FnMut() -> Result<T, LaunchError>,
) -> Result<T, LaunchError> {
    match open() {
        Err(LaunchError::Unreachable { .. } | LaunchError::Silent { .. }) => {}
        other => return other,
    }
    asleep.switch.run().map_err(|said| LaunchError::NotSwitchedOn { host: host.into(), said })?;
    let begun = Instant::now();
    loop {
        match open() {
            // A booting host refuses logins for a moment, with messages of many kinds.
            Err(last) if begun.elapsed() >= asleep.patience => {
                let seconds = begun.elapsed().as_secs();
                return Err(LaunchError::StillOff { host: host.into(), seconds, last: Box::new(last) });
            }
            Err(
                last @ (LaunchError::HostKeyChanged { .. }
                | LaunchError::HostKeyUnknown { .. }
                | LaunchError::UnknownHost { .. }),
            ) => return Err(last),
            Err(_) => sleep(PAUSE.min(asleep.patience)),
            opened => return opened,
        }
    }
}

impl SwitchCommand {
    /// Runs it. The error is the last line of its output.
    pub fn run(&self) -> Result<(), String> {
        let SwitchCommand { command, patience } = self;
        let cannot = |e: std::io::Error| format!("{command}: {e}");
        // A file in memory, not a pipe: a process that the command leaves behind may keep it open. homing does not
        // wait for that process.
        let said = rustix::fs::memfd_create("said", MemfdFlags::CLOEXEC).map_err(|e| cannot(e.into()))?;
        let said = File::from(said);
        let mut words = Command::new("/bin/sh");
        words.args(["-c", command]).stdin(Stdio::null()).process_group(0);
        words.stdout(said.try_clone().map_err(cannot)?).stderr(said.try_clone().map_err(cannot)?);
        let mut child = words.spawn().map_err(cannot)?;
        let Some(status) = homing_os::process::ended_within(&mut child, *patience).map_err(cannot)? else {
            // homing does not wait for its end: a command under sudo belongs to root, and this user's signals do not
            // reach it.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let seconds = patience.as_secs();
            return Err(format!(
                "{command}: it had not ended after {seconds} s ([power] switch_s in the cluster file)"
            ));
        };
        ended(command, status, &said)
    }
}

/// Returns an error with the last line of a failed command, where most programs print the reason.
fn ended(command: &str, status: ExitStatus, said: &File) -> Result<(), String> {
    if status.success() {
        return Ok(());
    }
    let mut bytes = vec![0; SAID];
    let from = said.metadata().map_or(0, |meta| meta.len()).saturating_sub(SAID as u64);
    let read = said.read_at(&mut bytes, from).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..read]);
    Err(format!("{command}: {status}: {}", crate::error::last_line(&text).unwrap_or("it printed no message")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn unreachable() -> LaunchError {
        LaunchError::Unreachable { host: "n3".into(), said: "no route".into() }
    }

    fn asleep(command: &str, patience_ms: u64) -> Asleep {
        let switch = SwitchCommand { command: command.into(), patience: Duration::from_secs(60) };
        Asleep { switch, patience: Duration::from_millis(patience_ms) }
    }

    #[test]
    fn a_host_is_switched_on_once_and_only_when_it_does_not_answer() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let host = asleep(&format!("echo on >> '{}'", log.display()), 60_000);
        assert_eq!(rouse("n3", &host, || Ok(7)).unwrap(), 7);
        assert!(!log.exists());
        // It answers as soon as it was switched on.
        let open = || if log.exists() { Ok(8) } else { Err(unreachable()) };
        assert_eq!(rouse("n3", &host, open).unwrap(), 8);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "on\n");
    }

    #[test]
    fn who_cannot_switch_it_on_is_told_what_the_command_said() {
        let tries = Cell::new(0);
        let open = || -> Result<(), _> {
            tries.set(tries.get() + 1);
            Err(unreachable())
        };
        let failed = rouse("n3", &asleep("echo 'no such board' >&2; exit 3", 0), open).unwrap_err().to_string();
        assert!(failed.contains("no such board") && failed.contains("homing power on n3"), "{failed}");
        assert_eq!(tries.get(), 1);
        let failed = rouse("n3", &asleep("true", 0), || -> Result<(), _> { Err(unreachable()) }).unwrap_err();
        assert!(failed.to_string().starts_with("host n3 was switched on 0 s ago"), "{failed}");
        let refused = || -> Result<(), _> { Err(LaunchError::KeyRefused { host: "n3".into(), said: "x".into() }) };
        assert!(matches!(rouse("n3", &asleep("false", 0), refused), Err(LaunchError::KeyRefused { .. })));
    }

    #[test]
    fn a_command_that_hangs_is_ended_and_the_setting_is_named() {
        let switch = SwitchCommand { command: "exec sleep 600".into(), patience: Duration::ZERO };
        let said = switch.run().unwrap_err();
        assert_eq!(said, "exec sleep 600: it had not ended after 0 s ([power] switch_s in the cluster file)");
    }
}
