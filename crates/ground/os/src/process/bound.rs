//! A child that ends with the thread that started it, however that ends.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel send `signal` to what `command` starts when the thread that starts it ends. That thread has to wait for
/// it, or to live as long as this process does.
pub fn bound_to_thread(command: &mut Command, signal: Signal) -> &mut Command {
    let own = std::process::id();
    // SAFETY: the hook makes two system calls with plain numbers.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
            // Whoever started it may have died before that.
            match libc::getppid() as u32 == own {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        })
    }
}
