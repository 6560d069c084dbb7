//! Waits for several descriptors at once, with a deadline.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// The read end of a pipe, whose write end closes when the caller cancels.
pub(crate) struct Cancel(OwnedFd);

impl Cancel {
    /// Returns it with the write end.
    pub(crate) fn new() -> Result<(Cancel, OwnedFd), String> {
        let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        ends.map(|(read, write)| (Cancel(read), write)).map_err(|e| format!("cannot make a pipe: {e}"))
    }
}

/// Waits until one of `fds` can be read (or has ended), `deadline` has passed or the work was cancelled.
pub(crate) fn ready(fds: &[BorrowedFd], cancel: &Cancel, deadline: Option<Instant>) -> Woken {
    let mut polled: Vec<PollFd> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    polled.push(PollFd::from_borrowed_fd(cancel.0.as_fd(), PollFlags::IN));
    loop {
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Woken::Late,
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Woken::Cancelled,
        }
    }
    if !polled[fds.len()].revents().is_empty() {
        return Woken::Cancelled;
    }
    Woken::Ready(polled[..fds.len()].iter().map(|p| !p.revents().is_empty()).collect())
}

/// Why [`ready`] returned.
pub(crate) enum Woken {
    /// For each descriptor, whether it is ready.
    Ready(Vec<bool>),
    Late,
    Cancelled,
}
