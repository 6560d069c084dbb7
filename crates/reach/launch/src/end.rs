//! How a channel ended, and which processes of its worker may be left.

use crate::Via;
use crate::carrier::{Carrier, Tail};
use crate::wire::ALL_ENDED;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Longest time between the end of a child's output and the end of the child.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

/// The end of a channel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChannelEnd {
    /// For people.
    pub why: String,
    /// The last line on the error output of the process behind the channel.
    pub last_line: Option<String>,
    pub left: Left,
}

/// The processes that the worker may have left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Left {
    /// No process, as its guard reported.
    Nothing,
    /// It is unknown.
    Unknown,
    /// It is unknown, but the host may be well: its leader was lost.
    Unled,
}

/// Observes how a carrier's child ends, whichever thread owns the carrier by then.
pub(crate) struct Witness {
    pidfd: Option<OwnedFd>,
    tail: Arc<Tail>,
}

impl Witness {
    pub fn of(carrier: &Carrier) -> Witness {
        let pidfd = carrier.group().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Witness { pidfd, tail: carrier.tail() }
    }

    /// Returns how it ended, if it ends soon and was not reaped before. Its last words have arrived by then.
    pub fn end(&self, via: &Via) -> ChannelEnd {
        let status = self.status();
        let left = if is_word_of_guard(status.as_ref()) { Left::Nothing } else { Left::Unknown };
        let said = self.tail.text().lines().last().map(|line| line.trim().to_string());
        ChannelEnd { why: why_ended(via, status.as_ref()), last_line: said, left }
    }

    fn status(&self) -> Option<WaitIdStatus> {
        let pidfd = self.pidfd.as_ref()?;
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        let _ = poll(&mut fds, Timespec::try_from(LAST_WORDS).ok().as_ref());
        self.tail.wait_for_end(Duration::from_millis(300));
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::PidFd(pidfd.as_fd()), look).ok().flatten()
    }
}

impl ChannelEnd {
    /// Returns all that is known, in a line.
    pub fn reason(self) -> String {
        match self.last_line {
            Some(said) => format!("{} ({said})", self.why),
            None => self.why,
        }
    }
}

/// Infers how a silent worker ended from the status of the process behind its channel.
fn why_ended(via: &Via, status: Option<&WaitIdStatus>) -> String {
    let signal = status.and_then(WaitIdStatus::terminating_signal);
    let exit = status.and_then(WaitIdStatus::exit_status);
    match (via, signal, exit) {
        (Via::Local, Some(signal), _) => format!("the guard of its worker was killed by signal {signal}"),
        (_, Some(signal), _) => format!("the process of its connection was killed by signal {signal}"),
        (Via::Ssh { .. }, None, Some(255)) => "the connection was lost, or its worker was killed".into(),
        (_, None, Some(exit)) if exit != ALL_ENDED => format!("its worker ended with status {exit}"),
        (_, None, _) => "its worker ended".into(),
    }
}

/// Whether the process ended with a status by which the worker's guard reports that no process is left.
fn is_word_of_guard(status: Option<&WaitIdStatus>) -> bool {
    matches!(status.and_then(WaitIdStatus::exit_status), Some(0 | ALL_ENDED))
}
