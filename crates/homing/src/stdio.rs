//! A standard output that does not take what is written: closed when we were
//! started (`>&-`), full, or with a reader that has seen enough (`| head`).

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

/// `println!` panics when standard output fails. Here it ends the program instead: in silence, with
/// what a shell says of SIGPIPE, when the reader is gone, and else with a line that says why.
/// Commands whose work goes on without a reader write with `writeln!` and decide themselves.
pub fn end_when_unwritten() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let said = info.payload().downcast_ref::<String>().map_or("", String::as_str);
        let Some(why) = said.strip_prefix("failed printing to stdout: ") else { return others(info) };
        if why.starts_with("Broken pipe") {
            std::process::exit(141);
        }
        eprintln!("homing: writing to standard output: {why}");
        std::process::exit(crate::failure::exit::SYSTEM);
    }));
}
