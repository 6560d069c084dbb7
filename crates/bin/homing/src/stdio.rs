//! Handles a standard output that cannot be written. If its reader is gone (`| head`), the program ends silently. If
//! it was closed before the start (`>&-`), is full, or exceeds the limit of `ulimit -f`, the program prints the
//! reason and ends.

use homing_model::exit;
use rustix::fs::{Mode, OFlags};
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`. Before it calls `main`, the standard library opens /dev/null in place of a closed descriptor.
/// After that, the descriptor looks like a user's own `>/dev/null`, so only this moment is left.
extern "C" fn look() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()) == Err(rustix::io::Errno::BADF);
    CLOSED.store(closed, Ordering::Relaxed);
}

// SAFETY: the C library calls each function of this section once, in the only thread. This function makes a system
// call and sets a flag.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Makes writes fail as on a closed descriptor. The descriptor's number stays taken, so that no file that is opened
/// later gets the user's output.
pub fn keep_closed() {
    if !CLOSED.load(Ordering::Relaxed) {
        return;
    }
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Makes writes beyond the limit of `ulimit -f` fail as on a full disk, which is reported. The signal would end this
/// program without a message. It is caught and not ignored, so that programs that homing starts have it as before.
pub fn outlive_file_limit() {
    // SAFETY: the handler does nothing.
    let _ = unsafe { signal_hook::low_level::register(signal_hook::consts::SIGXFSZ, || {}) };
}

/// As the standard macros of these names, but without a panic if standard error cannot be written. No user would see
/// the panic, and the work goes on.
macro_rules! eprint {
    ($($words:tt)*) => { homing_os::process::write_error(format_args!($($words)*), "") };
}
macro_rules! eprintln {
    ($($words:tt)*) => { homing_os::say!($($words)*) };
}

/// Replaces the panic of `println!` when standard output fails. If the reader is gone, the program ends silently with
/// a shell's status for SIGPIPE. For other reasons it prints a line with the reason and ends.
///
/// Commands that go on without a reader write with `writeln!` and decide themselves.
///
/// Any other panic, in any thread, is a fault of homing and ends it with a status of its own. The library's status
/// 101 would mean that more than a hundred tasks failed, and the other threads would wait for the missing one.
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
    eprintln!("homing: internal error: {said}{at}");
    eprintln!(
        "  try: `homing resume last` if this was a run, whose finished tasks are recorded; please report this error"
    );
    std::process::exit(exit::FAULT);
}

#[cfg(test)]
mod tests {
    /// Runs in a process of its own, which is this test again.
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
        assert!(String::from_utf8_lossy(&output.stderr).contains("internal error: on purpose (crates/"));
    }
}
