//! One command on one host: its two outputs and its end, over either way to the host.

use crate::CommandOutcome;
use crate::command::{Command, CommandInput};
use crate::connect::{Connector, NoWay};
use crate::local::Local;
use crate::mux::{MasterNews, Mux, Refused};
use crate::wait::{Cancel, Woken, ready};
use homing_os::names::is_here;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes read at a time.
const CHUNK: usize = 32 << 10;
/// Time after the limit until this side ends a command: `timeout -k 2` on the far side goes first.
const FAR_RESERVE: Duration = Duration::from_secs(4);
/// The statuses of coreutils' `timeout` when time was up, and when it had to use SIGKILL.
const TIMEOUT_STATUS: [i32; 2] = [124, 137];

/// One of the two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Out,
    Err,
}

/// Receives output; returns false if no more is wanted.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(Which, &[u8]) -> bool;

/// Where a command runs.
enum Far {
    Mux(Mux),
    Local(Local),
}

/// A running command.
struct CommandSession {
    far: Far,
    outputs: [Option<OwnedFd>; 2],
    status: Option<i32>,
    over: bool,
    /// A time before its start: a limit that is kept on the far side ends it no earlier than that.
    begun: Instant,
}

/// Runs `command` on this machine, whatever host it is about. `None` if it was cancelled.
pub(crate) fn here(connector: &Connector, command: &Command, cancel: &Cancel, sink: Sink) -> Option<CommandOutcome> {
    let ended = FeederStop::default();
    match local(command, &ended, false) {
        Ok(session) => session.watch(cancel, connector.options.command_timeout.map(|l| Instant::now() + l), sink),
        Err(NoWay::Outcome(outcome)) => Some(outcome),
        Err(NoWay::Cancelled) => None,
    }
}

/// Runs `command` on `host`. `None` if it was cancelled.
pub(crate) fn run(
    connector: &Connector,
    host: &str,
    command: &Command,
    cancel: &Cancel,
    sink: Sink,
) -> Option<CommandOutcome> {
    let ended = FeederStop::default();
    let opened =
        if is_here(host) { local(command, &ended, false) } else { remote(connector, host, command, cancel, &ended) };
    let session = match opened {
        Ok(session) => session,
        Err(NoWay::Outcome(outcome)) => return Some(outcome),
        Err(NoWay::Cancelled) => return None,
    };
    let begun = session.begun;
    let limit = connector.options.command_timeout;
    let reserve = if is_here(host) { Duration::ZERO } else { FAR_RESERVE };
    let outcome = session.watch(cancel, limit.map(|l| begun + l + reserve), sink)?;
    Some(match outcome {
        CommandOutcome::Exited(s) if TIMEOUT_STATUS.contains(&s) && limit.is_some_and(|l| begun.elapsed() >= l) => {
            CommandOutcome::TimedOut
        }
        CommandOutcome::Killed if !connector.alive(host) => {
            CommandOutcome::Lost(format!("host {host}: the connection was lost while the command ran"))
        }
        other => other,
    })
}

/// The words to start `ssh` with, for a program here that reaches a host over the kept connection. None for this
/// machine.
pub type SshCommand<'a> = Option<&'a [OsString]>;

/// Runs a program of this machine that connects to `host` by itself, such as rsync.
pub(crate) fn through(
    connector: &Connector,
    host: &str,
    program: &(dyn Fn(&str, SshCommand) -> Command + Send + Sync),
    cancel: &Cancel,
    sink: Sink,
) -> Option<CommandOutcome> {
    let ended = FeederStop::default();
    let opened = if is_here(host) {
        local(&program(host, None), &ended, true)
    } else {
        connector.ssh_through(host, cancel).and_then(|words| local(&program(host, Some(&words)), &ended, true))
    };
    match opened {
        Ok(session) => {
            let deadline = connector.options.command_timeout.map(|l| Instant::now() + l);
            session.watch(cancel, deadline, sink)
        }
        Err(NoWay::Outcome(outcome)) => Some(outcome),
        Err(NoWay::Cancelled) => None,
    }
}

/// Stops the thread that feeds the standard input, once the command has ended.
#[derive(Default)]
struct FeederStop(Arc<AtomicBool>);

impl Drop for FeederStop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The ends of the pipes for the command, and ours.
struct Pipes {
    theirs: [OwnedFd; 3],
    ours: [OwnedFd; 2],
}

fn pipes(command: &Command, ended: &FeederStop) -> io::Result<Pipes> {
    let (out, their_out) = pipe_with(PipeFlags::CLOEXEC)?;
    let (err, their_err) = pipe_with(PipeFlags::CLOEXEC)?;
    let their_err = if command.merged { their_out.try_clone()? } else { their_err };
    let stdin = match &command.input {
        CommandInput::Nothing => File::open("/dev/null")?.into(),
        CommandInput::Spool(spool) => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            let (spool, stop) = (spool.clone(), ended.0.clone());
            homing_os::threads::begin(move || spool.feed(File::from(ours), &stop))?;
            theirs
        }
        CommandInput::Parts(spool, parts) => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            let (spool, parts, stop) = (spool.clone(), parts.clone(), ended.0.clone());
            let mut ours = File::from(ours);
            let feed = move || parts.into_iter().all(|part| spool.copy(part, &mut ours, &stop).is_some());
            homing_os::threads::begin(feed)?;
            theirs
        }
    };
    Ok(Pipes { theirs: [stdin, their_out, their_err], ours: [out, err] })
}

fn broken(host: &str, e: impl std::fmt::Display) -> NoWay {
    NoWay::Outcome(CommandOutcome::Unreachable(format!("host {host}: cannot start the command: {e}")))
}

fn local(command: &Command, ended: &FeederStop, bound: bool) -> Result<CommandSession, NoWay> {
    let Pipes { theirs, ours: [out, err] } = pipes(command, ended).map_err(|e| broken("localhost", e))?;
    let begun = Instant::now();
    match Local::start(command, theirs, bound) {
        Ok(child) => Ok(CommandSession::new(Far::Local(child), [out, err], begun)),
        // The status of a shell for a missing program.
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(NoWay::Outcome(CommandOutcome::Exited(homing_model::exit::NO_PROGRAM)))
        }
        Err(e) => Err(broken("localhost", e)),
    }
}

fn remote(
    connector: &Connector,
    host: &str,
    command: &Command,
    cancel: &Cancel,
    ended: &FeederStop,
) -> Result<CommandSession, NoWay> {
    let line = command.remote_line(connector.options.command_timeout);
    let deadline = connector.deadline();
    let mut again = true;
    loop {
        let mut mux = connector.connect(host, cancel, deadline)?;
        let Pipes { theirs, ours } = pipes(command, ended).map_err(|e| broken(host, e))?;
        let fds = [theirs[0].as_fd(), theirs[1].as_fd(), theirs[2].as_fd()];
        let begun = Instant::now();
        match mux.session(&line, fds, deadline) {
            Ok(()) => return Ok(CommandSession::new(Far::Mux(mux), ours, begun)),
            // The master's time was up between our two messages, or it has as many sessions as sshd allows (10). A
            // new master is made.
            Err(Refused::Gone | Refused::Said(_)) if again => connector.retire(host),
            Err(Refused::Said(said)) => return Err(broken(host, said)),
            Err(Refused::Gone) => return Err(broken(host, "the connection was closed")),
            Err(Refused::Silent) => {
                connector.retire(host);
                let said = format!("host {host}: the connection no longer answers; is the host up?");
                return Err(NoWay::Outcome(CommandOutcome::Unreachable(said)));
            }
        }
        again = false;
    }
}

impl CommandSession {
    fn new(far: Far, [out, err]: [OwnedFd; 2], begun: Instant) -> CommandSession {
        if let Far::Mux(mux) = &far {
            let _ = mux.socket.set_nonblocking(true);
        }
        CommandSession { far, outputs: [Some(out), Some(err)], status: None, over: false, begun }
    }

    fn watch(mut self, cancel: &Cancel, deadline: Option<Instant>, sink: Sink) -> Option<CommandOutcome> {
        let mut chunk = vec![0; CHUNK];
        while !self.over || self.outputs.iter().any(Option::is_some) {
            let seen = {
                let fds = self.descriptors();
                let plain: Vec<BorrowedFd> = fds.iter().map(|(_, fd)| *fd).collect();
                match ready(&plain, cancel, deadline) {
                    Woken::Ready(seen) => {
                        fds.iter().zip(seen).filter(|(_, s)| *s).map(|((w, _), _)| *w).collect::<Vec<_>>()
                    }
                    woken => {
                        self.end();
                        return matches!(woken, Woken::Late).then_some(CommandOutcome::TimedOut);
                    }
                }
            };
            for which in seen {
                match which {
                    None => self.update_status(),
                    Some(which) if self.take(which, &mut chunk, sink) => {}
                    Some(_) => {
                        self.end();
                        return None;
                    }
                }
            }
        }
        Some(self.status.map_or(CommandOutcome::Killed, CommandOutcome::Exited))
    }

    /// Returns the open descriptors; `None` marks the end of the command.
    fn descriptors(&self) -> Vec<(Option<Which>, BorrowedFd<'_>)> {
        let mut fds = Vec::with_capacity(3);
        let [out, err] = &self.outputs;
        fds.extend(out.as_ref().map(|fd| (Some(Which::Out), fd.as_fd())));
        fds.extend(err.as_ref().map(|fd| (Some(Which::Err), fd.as_fd())));
        if !self.over {
            let fd = match &self.far {
                Far::Mux(mux) => mux.socket.as_fd(),
                Far::Local(local) => local.pidfd.as_fd(),
            };
            fds.push((None, fd));
        }
        fds
    }

    /// Passes on the bytes of an output; returns false if they are not wanted.
    fn take(&mut self, which: Which, chunk: &mut [u8], sink: Sink) -> bool {
        let slot = &mut self.outputs[which as usize];
        let Some(fd) = slot else { return true };
        match rustix::io::read(fd, &mut *chunk) {
            Ok(n @ 1..) => sink(which, &chunk[..n]),
            Err(rustix::io::Errno::INTR) => true,
            _ => {
                *slot = None;
                true
            }
        }
    }

    fn update_status(&mut self) {
        match &mut self.far {
            Far::Local(local) => {
                self.status = Some(local.status());
                self.over = true;
            }
            Far::Mux(mux) => match mux.poll_status() {
                MasterNews::Exit(status) => self.status = Some(status),
                MasterNews::Over => self.over = true,
                MasterNews::Nothing => {}
            },
        }
    }

    fn end(&mut self) {
        if let Far::Local(local) = &mut self.far {
            local.kill();
        }
    }
}
