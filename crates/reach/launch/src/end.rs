//! How a channel ended: what became of the worker, as far as that is known.

use crate::Via;
use crate::carrier::{Carrier, Tail};
use crate::wire::ALL_ENDED;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Time between the end of a child's output and its own.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

/// The end of a channel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    /// For people.
    pub why: String,
    /// The last line of what the process said that carried it.
    pub said: Option<String>,
    pub left: Left,
}

/// What the worker may have left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Left {
    /// Nothing that it started, as its guard has said.
    Nothing,
    /// Nobody knows.
    Unknown,
    /// The same, and the host may be well: it was its leader that was lost.
    Unled,
}

/// Sees how a carrier's child ends, whoever has the carrier by then.
pub(crate) struct Witness {
    pidfd: Option<OwnedFd>,
    tail: Arc<Tail>,
}

impl Witness {
    pub fn of(carrier: &Carrier) -> Witness {
        let pidfd = carrier.group().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Witness { pidfd, tail: carrier.tail() }
    }

    /// How it ended, when it does so soon and nobody has asked before. Its last words have arrived then.
    pub fn end(&self, via: &Via) -> End {
        let status = self.status();
        let left = if is_word_of_guard(status.as_ref()) { Left::Nothing } else { Left::Unknown };
        let said = self.tail.text().lines().last().map(|line| line.trim().to_string());
        End { why: why_ended(via, status.as_ref()), said, left }
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

impl End {
    /// All that is known, in a line.
    pub fn reason(self) -> String {
        match self.said {
            Some(said) => format!("{} ({said})", self.why),
            None => self.why,
        }
    }
}

/// What is known of the end of a worker that said nothing of it, from the end of the process that carried it.
fn why_ended(via: &Via, status: Option<&WaitIdStatus>) -> String {
    let signal = status.and_then(WaitIdStatus::terminating_signal);
    let exit = status.and_then(WaitIdStatus::exit_status);
    match (via, signal, exit) {
        (Via::Local, Some(signal), _) => format!("the guard of its worker was killed by signal {signal}"),
        (_, Some(signal), _) => format!("the process that carries the link to it was killed by signal {signal}"),
        (Via::Ssh { .. }, None, Some(255)) => "the link to it was lost, or its worker was killed".into(),
        (_, None, Some(exit)) if exit != ALL_ENDED => format!("its worker ended with status {exit}"),
        (_, None, _) => "its worker ended".into(),
    }
}

/// Whether the channel's process ended with a status by which the worker's guard says that nothing is left.
fn is_word_of_guard(status: Option<&WaitIdStatus>) -> bool {
    matches!(status.and_then(WaitIdStatus::exit_status), Some(0 | ALL_ENDED))
}
