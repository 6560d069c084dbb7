//! Runs commands of a job over several hosts on hosts other than its first, as processes of the job. Each command
//! lives as long as the process that requested it, and all its descendants end with it.

use super::RemoteJobMessage;
use crate::QueueError;
use crate::job::{JobEnd, Kill};
use homing_launch::wire::{MAX_FRAME, lines};
use homing_model::RawText;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The pause between two looks at the remaining processes.
const LOOK: Duration = Duration::from_millis(50);

/// The first line to the host. When the lines end, the command ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rank {
    /// Its working directory.
    pub cwd: RawText,
    /// The command line for /bin/sh.
    pub line: RawText,
    /// Variables of the job.
    pub env: Vec<(RawText, RawText)>,
    /// File mode creation mask of the job.
    pub umask: u32,
}

/// Puts this process under a guard, which ends all that it started. It must be called before anything else.
pub fn guard() -> Result<(), QueueError> {
    homing_os::process::guarded_to_the_end(false, || ())
        .map_err(|e| QueueError::Program(format!("cannot start a guard: {e}")))
}

/// Serves the host's end: sends the command's output, and its end when none of its processes is left. A daemon that
/// it started is waited for. It needs its [`guard`].
pub fn serve(mut orders: impl BufRead + Send + 'static, news: &mut dyn Write) -> Result<(), QueueError> {
    let mut line = String::new();
    orders.read_line(&mut line).map_err(|e| QueueError::Program(format!("received no command: {e}")))?;
    let rank: Rank =
        serde_json::from_str(&line).map_err(|e| QueueError::Request(format!("received no valid command: {e}")))?;
    let (to, told) = channel();
    let mut child = match start(&rank, &to) {
        Ok(child) => child,
        Err(why) => return send_message(news, &RemoteJobMessage::Refused(why)),
    };
    let gone = to.clone();
    let listen = move || {
        let _ = io::copy(&mut orders, &mut io::sink());
        gone.send(None)
    };
    homing_os::threads::begin(listen).map_err(|e| QueueError::Program(e.to_string()))?;
    let mut exit = None;
    loop {
        match told.recv_timeout(LOOK) {
            Ok(Some(what)) => send_message(news, &what)?,
            // The process that requested the command has gone.
            Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let (None, Ok(Some(status))) = (exit, child.try_wait()) {
                    exit = Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
                }
                if let Some(exit) = exit.filter(|_| homing_os::process::descendants(own()).is_empty()) {
                    return send_message(news, &RemoteJobMessage::Ended(JobEnd { exit, ..JobEnd::default() }));
                }
            }
        }
    }
    let _ = homing_os::process::sweep(Duration::ZERO);
    Ok(())
}

fn own() -> libc::pid_t {
    std::process::id() as libc::pid_t
}

fn start(rank: &Rank, to: &Sender<Option<RemoteJobMessage>>) -> Result<Child, String> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(rank.line.as_os()).current_dir(rank.cwd.as_path());
    command.envs(rank.env.iter().map(|(name, value)| (name.as_os(), value.as_os())));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(rank.umask));
    let mut child = command.spawn().map_err(|e| format!("cannot start it in {}: {e}", rank.cwd.display()))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let pass = |stream: Option<Box<dyn Read + Send>>, what: fn(RawText) -> RemoteJobMessage| {
        let (Some(mut stream), to) = (stream, to.clone()) else { return Ok(()) };
        let read = move || {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(n @ 1..) = stream.read(&mut bytes) {
                let _ = to.send(Some(what(RawText(bytes[..n].to_vec()))));
            }
        };
        homing_os::threads::begin(read).map(drop).map_err(|e| e.to_string())
    };
    pass(out.map(|out| Box::new(out) as Box<dyn Read + Send>), RemoteJobMessage::Out)?;
    pass(err.map(|err| Box::new(err) as Box<dyn Read + Send>), RemoteJobMessage::Err)?;
    Ok(child)
}

fn send_message(news: &mut dyn Write, what: &RemoteJobMessage) -> Result<(), QueueError> {
    let told = lines::write_message(news, what, &[]);
    told.map_err(|e| QueueError::Program(format!("the requester of the command has ended: {e}")))
}

/// Returns the signal that ended a command with this exit status: the command itself or the last process of its
/// shell.
fn signal_of(exit: i32) -> Option<i32> {
    (129..=192).contains(&exit).then(|| exit - 128)
}

/// Ends the job of this process if the end of one of its ranks is to end it. LSF's `LSB_DJOB_RTASK_GONE_ACTION`
/// decides; by default a rank that a signal ended does.
pub fn ended(host: &str, exit: i32) -> Result<(), QueueError> {
    let action = std::env::var("LSB_DJOB_RTASK_GONE_ACTION").unwrap_or_default();
    let folder = std::env::var(crate::tree::MARK).unwrap_or_default();
    let (Some(why), Some((dir, index))) = (fatal(&action, host, exit), folder.rsplit_once(':')) else { return Ok(()) };
    let path = std::path::Path::new(dir).join(format!("kill.{index}.json"));
    // This is another host than the one where the job was started.
    if !path.parent().is_some_and(std::path::Path::is_dir) {
        return Ok(());
    }
    let by = crate::user_name(crate::uid());
    let kill = Kill { by, signal: None, at_ns: homing_os::clock::system_ns(), died: Some((why, exit)) };
    crate::files::write_json(&path, &kill, 0o600).map_err(QueueError::io("write", &path))
}

/// Returns why such an end of a rank ends the job, if it does.
fn fatal(action: &str, host: &str, exit: i32) -> Option<String> {
    let asked = |word: &str| action.split_whitespace().any(|known| known == word);
    match (signal_of(exit), exit) {
        (Some(signal), _) if !asked("IGNORE_TASKCRASH") => Some(format!("a rank on {host} ended by signal {signal}")),
        (None, 1..) if asked("KILLJOB_TASKEXIT") => Some(format!("a rank on {host} ended with exit status {exit}")),
        (None, 0) if asked("KILLJOB_TASKDONE") => Some(format!("a rank on {host} has ended")),
        _ => None,
    }
}

/// Serves the requesting end: prints the command's output. Returns its exit status, or why there is none.
pub fn follow(mut from: impl BufRead) -> Result<i32, String> {
    while let Ok(Some(line)) = lines::next(&mut from, MAX_FRAME) {
        match serde_json::from_slice(&line) {
            Ok(RemoteJobMessage::Out(text)) => io::stdout().write_all(&text.0).and_then(|()| io::stdout().flush()),
            Ok(RemoteJobMessage::Err(text)) => io::stderr().write_all(&text.0),
            Ok(RemoteJobMessage::Ended(end)) => return Ok(end.exit),
            Ok(RemoteJobMessage::Refused(why)) => return Err(why),
            _ => Ok(()),
        }
        .map_err(|e| format!("cannot pass its output on: {e}"))?;
    }
    Err("the connection has ended before the command".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_dies_ends_the_job_unless_lsfs_variable_says_otherwise() {
        assert_eq!(fatal("", "n2", 137).as_deref(), Some("a rank on n2 ended by signal 9"));
        assert_eq!((fatal("", "n2", 7), fatal("", "n2", 0), fatal("", "n2", 255)), (None, None, None));
        assert_eq!(fatal("IGNORE_TASKCRASH", "n2", 137), None);
        let told = fatal("IGNORE_TASKCRASH KILLJOB_TASKEXIT", "n2", 7);
        assert_eq!(told.as_deref(), Some("a rank on n2 ended with exit status 7"));
        assert_eq!(fatal("KILLJOB_TASKDONE", "n2", 0).as_deref(), Some("a rank on n2 has ended"));
    }
}
