//! A standard output that was closed when we were started (`>&-`).

use rustix::fs::{Mode, OFlags};
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`. The standard library opens /dev/null in the place of a
/// closed descriptor before it calls us, after which nothing tells that from a
/// user's own `>/dev/null`: so this is the only moment to look.
extern "C" fn look() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()) == Err(rustix::io::Errno::BADF);
    CLOSED.store(closed, Ordering::Relaxed);
}

// SAFETY: the section holds functions that the C library calls once each, in
// the one thread there is; this one makes a system call and sets a flag.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Makes writing fail as it does on a closed descriptor, with the number still
/// taken, so that no file that is opened later gets what was meant for the user.
pub fn keep_closed() {
    if !CLOSED.load(Ordering::Relaxed) {
        return;
    }
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}
