//! Binds a child to the thread that started it: when the thread ends, the child gets a signal.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel send `signal` to the started process when the thread that starts it ends. That thread must wait for
/// the process, or live as long as its own process.
pub fn bound_to_thread(command: &mut Command, signal: Signal) -> &mut Command {
    let own = std::process::id();
    // SAFETY: the hook makes two system calls with plain numbers.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
            // The parent may have died before that.
            match libc::getppid() as u32 == own {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        })
    }
}
