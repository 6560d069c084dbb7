//! A standard output that does not take what is written: closed when we were
//! started (`>&-`), full, beyond the limit of `ulimit -f`, or with a reader that
//! has seen enough (`| head`).

use homing_model::exit;
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

/// Makes writing beyond the limit of `ulimit -f` fail as on a full disk, which is told; the signal of it would end this
/// program without a word. Programs that it starts have the signal as it was, which they would not if it were ignored.
pub fn outlive_file_limit() {
    // SAFETY: the handler does nothing.
    let _ = unsafe { signal_hook::low_level::register(signal_hook::consts::SIGXFSZ, || {}) };
}

/// What the standard macros of these names do, without a panic when standard error cannot be written:
/// nobody is there to be told, and the work goes on.
macro_rules! eprint {
    ($($words:tt)*) => { homing_os::process::write_error(format_args!($($words)*), "") };
}
macro_rules! eprintln {
    ($($words:tt)*) => { homing_os::say!($($words)*) };
}

/// `println!` panics when standard output fails. Here it ends the program instead: in silence, with
/// what a shell says of SIGPIPE, when the reader is gone, and else with a line that says why.
/// Commands whose work goes on without a reader write with `writeln!` and decide themselves.
/// Every other panic, in whichever thread, is a fault of homing and ends it with a status of its own:
/// the library's 101 would mean that more than a hundred tasks failed, and a thread that is
/// missed would leave the others waiting.
pub fn end_on_panic() {
    std::panic::set_hook(Box::new(|info| {
        let (words, made) = (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>());
        let said = words.copied().or(made.map(String::as_str)).unwrap_or("unknown");
        let Some(why) = said.strip_prefix("failed printing to stdout: ") else {
            end_with_a_fault(said, info.location())
        };
        if why.starts_with("Broken pipe") {
            std::process::exit(exit::UNREAD);
        }
        eprintln!("homing: writing to standard output: {why}");
        std::process::exit(exit::SYSTEM);
    }));
}

fn end_with_a_fault(said: &str, at: Option<&std::panic::Location>) -> ! {
    let at = at.map_or(String::new(), |at| format!(" ({}:{})", at.file(), at.line()));
    eprintln!("homing: cannot go on, by a fault of its own: {said}{at}");
    eprintln!("  try: `homing resume last` where this was a run: what is done is recorded; please report the fault");
    std::process::exit(exit::FAULT);
}

#[cfg(test)]
mod tests {
    /// In a process of its own, which is this test again.
    #[test]
    fn a_fault_of_homing_is_not_taken_for_a_hundred_failures() {
        if std::env::var_os("HOMING_TEST_FAULT").is_some() {
            super::end_on_panic();
            panic!("on purpose");
        }
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "stdio::tests::a_fault_of_homing_is_not_taken_for_a_hundred_failures", "--nocapture"]);
        let output = again.env("HOMING_TEST_FAULT", "1").output().unwrap();
        assert_eq!(output.status.code(), Some(70));
        assert!(String::from_utf8_lossy(&output.stderr).contains("by a fault of its own: on purpose (crates/"));
    }
}
