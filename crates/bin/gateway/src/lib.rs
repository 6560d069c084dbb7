//! Runs homing on a member of the cluster for a machine outside of it. ssh starts the same words there. Their output
//! and exit status become those of this terminal, whose signals are passed on. It compiles on every Unix, since such
//! a machine need not be Linux. If the connection breaks, the status is ssh's 255: the end of the program on the member
//! is unknown then.
//!
//! It does not: copy files to the member, keep a connection, or run a task on this machine.

mod script;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

/// The interval between two checks whether the far program has ended or a signal has come.
const LOOK: Duration = Duration::from_millis(50);

/// The program of the member that is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program that was carried there: the name of its file in one of the two folders where hosts keep it.
    Carried(String),
    /// The `homing` that is installed there.
    Installed,
}

/// A member, and the way to reach it.
pub struct ClusterMember {
    /// A host, an alias of ssh's configuration, or `user@host`.
    pub host: String,
    /// `ssh` and options that precede those of this crate.
    pub ssh: Vec<OsString>,
}

impl ClusterMember {
    /// Runs `PROGRAM WORDS` in `folder` on the member. Returns its exit status, or `None` if a signal ended ssh.
    pub fn run(&self, program: &Program, folder: &[u8], words: &[OsString]) -> io::Result<Option<i32>> {
        let running = running();
        let script = script::start(program, folder, words, &running);
        let ends = [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()];
        match ends {
            // With a terminal on the member, which passes Ctrl-C on and shows colours and progress.
            [true, true, true] => Ok(self.command("-t", &script).status()?.code()),
            _ => self.attend(&script, &running),
        }
    }

    /// Runs the script without a terminal. ssh itself ignores signals: they are for the far program, whose last
    /// output and status must still arrive.
    fn attend(&self, script: &[u8], running: &str) -> io::Result<Option<i32>> {
        let (count, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicI32::new(0)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let (count, last) = (count.clone(), last.clone());
            let note = move || {
                last.store(signal, Ordering::SeqCst);
                count.fetch_add(1, Ordering::SeqCst);
            };
            // SAFETY: it stores two numbers.
            let _ = unsafe { signal_hook::low_level::register(signal, note) };
        }
        let plain = self.command("-T", script);
        let mut deaf = Command::new("sh");
        deaf.args(["-c", "trap '' INT TERM HUP; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
        let mut child = deaf.spawn()?;
        let mut told = 0;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status.code());
            }
            if count.load(Ordering::SeqCst) > told {
                told += 1;
                self.send_signal(last.load(Ordering::SeqCst), running, &mut child);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Sends the program a signal. If that fails, ends ssh without waiting for the program.
    fn send_signal(&self, signal: i32, running: &str, ssh: &mut Child) {
        let script = script::signal(signal, running);
        let told = self.command("-T", &script).stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !told.is_ok_and(|status| status.success()) {
            let _ = ssh.kill();
        }
    }

    fn command(&self, terminal: &str, script: &[u8]) -> Command {
        let mut command = Command::new(self.ssh.first().cloned().unwrap_or_else(|| "ssh".into()));
        command.args(self.ssh.iter().skip(1)).args([terminal, homing_os::names::OWN_COMMAND, "--", &self.host]);
        command.arg(OsString::from_vec(script::word(script)));
        command
    }
}

/// Returns the name of a file on the member that holds the process number of the program while it runs.
fn running() -> String {
    let here = homing_os::names::own_name().replace(|c: char| !c.is_alphanumeric(), "-");
    format!("at-gateway-{here}-{}", std::process::id())
}
