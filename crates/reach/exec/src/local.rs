//! Commands on this machine, without ssh: as children of this process.

use crate::command::Command;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command as Process, Stdio};

/// A child that leads a process group, and is killed with the group.
pub(crate) struct Local {
    pub(crate) child: Child,
    pub(crate) pidfd: OwnedFd,
}

impl Local {
    /// Starts the child. `bound`: it ends with this thread, which waits for it.
    pub(crate) fn start(command: &Command, [stdin, stdout, stderr]: [OwnedFd; 3], bound: bool) -> io::Result<Local> {
        let words = command.local_words();
        let (program, rest) = words.split_first().ok_or_else(|| io::Error::other("no command was given"))?;
        let mut process = Process::new(program);
        process.args(rest).stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        process.process_group(0);
        if bound {
            homing_os::process::bound_to_thread(&mut process, Signal::KILL);
        }
        let child = process.spawn()?;
        let pid = Pid::from_raw(child.id() as i32).ok_or_else(|| io::Error::other("a child without a number"))?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Local { child, pidfd })
    }

    /// Waits and returns the exit status as in a shell.
    pub(crate) fn status(&mut self) -> i32 {
        match self.child.wait() {
            Ok(status) => status.code().or(status.signal().map(|s| 128 + s)).unwrap_or(-1),
            Err(_) => -1,
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
