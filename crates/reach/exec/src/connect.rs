//! Connects to the control master of a host, and starts one if there is none.

use crate::mux::{Mux, Refused};
use crate::wait::{Cancel, Woken, ready};
use crate::{CommandOutcome, Options, folder};
use homing_os::threads::lock;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Time that ssh may take beyond its own limit: proxy commands, authentication.
const RESERVE: Duration = Duration::from_secs(5);

/// Makes and finds connections.
pub(crate) struct Connector {
    pub(crate) options: Options,
    folder: OnceLock<Result<PathBuf, String>>,
    used: Mutex<BTreeSet<PathBuf>>,
}

/// Why there is no connection.
pub(crate) enum NoWay {
    /// A failure, for one line to the user.
    Outcome(CommandOutcome),
    /// The caller cancelled it.
    Cancelled,
}

impl Connector {
    pub(crate) fn new(options: Options) -> Connector {
        Connector { options, folder: OnceLock::new(), used: Mutex::default() }
    }

    /// Returns the time at which an attempt that begins now has failed.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.options.connect_timeout + RESERVE
    }

    /// Returns a channel to the master of `host`.
    pub(crate) fn connect(&self, host: &str, cancel: &Cancel, deadline: Instant) -> Result<Mux, NoWay> {
        let unreachable = |why: String| NoWay::Outcome(CommandOutcome::Unreachable(why));
        homing_launch::check_target(host, host).map_err(|e| unreachable(e.to_string()))?;
        let path = self.socket(host).map_err(unreachable)?;
        match Mux::connect(&path, deadline) {
            Ok(mux) => return Ok(mux),
            Err(Refused::Silent) => retire(&path),
            Err(_) => {}
        }
        let _lock = lock_file(&path, cancel, deadline).map_err(|e| match e {
            Some(e) => unreachable(format!("host {host}: locking its connection {} failed: {e}", path.display())),
            None => NoWay::Cancelled,
        })?;
        // Another process may have started the master while this one waited for the lock.
        if let Ok(mux) = Mux::connect(&path, deadline) {
            return Ok(mux);
        }
        let _ = std::fs::remove_file(&path);
        self.start_master(host, &path, cancel, deadline)?;
        Mux::connect(&path, deadline)
            .map_err(|_| unreachable(format!("host {host}: ssh connected, but its control socket does not answer")))
    }

    /// Forgets a master that does not answer.
    pub(crate) fn retire(&self, host: &str) {
        if let Ok(path) = self.socket(host) {
            retire(&path);
        }
    }

    /// Whether the connection is still there.
    pub(crate) fn alive(&self, host: &str) -> bool {
        let deadline = Instant::now() + Duration::from_secs(2);
        let path = self.socket(host).ok();
        path.and_then(|p| Mux::connect(&p, deadline).ok()).is_some_and(|mut mux| mux.alive(deadline))
    }

    /// Returns the words that start an `ssh` over the kept connection.
    pub(crate) fn ssh_through(&self, host: &str, cancel: &Cancel) -> Result<Vec<OsString>, NoWay> {
        self.connect(host, cancel, self.deadline())?;
        let path = self.socket(host).map_err(|why| NoWay::Outcome(CommandOutcome::Unreachable(why)))?;
        let mut words = self.options.ssh.clone();
        words.extend(homing_os::names::SSH_PLAIN.map(OsString::from));
        words.extend(["-oControlMaster=no".into(), "-S".into(), path.into_os_string()]);
        words.extend(self.options.user.iter().flat_map(|u| ["-l".into(), OsString::from(u)]));
        Ok(words)
    }

    fn socket(&self, host: &str) -> Result<PathBuf, String> {
        let folder = self.folder.get_or_init(|| {
            let no = |e: io::Error| format!("no folder for control sockets: {e}; set XDG_RUNTIME_DIR to a short path");
            folder::private(self.options.folder.as_deref()).map_err(no)
        });
        let mut words: Vec<&[u8]> = self.options.ssh.iter().map(|w| w.as_bytes()).collect();
        words.push(self.options.user.as_deref().unwrap_or("").as_bytes());
        words.push(host.as_bytes());
        let path = folder.clone()?.join(folder::name(&words));
        lock(&self.used).insert(path.clone());
        Ok(path)
    }

    fn start_master(&self, host: &str, path: &Path, cancel: &Cancel, deadline: Instant) -> Result<(), NoWay> {
        let mut command = self.master(host, path);
        let child = command.spawn().map_err(|e| {
            let program = command.get_program().to_string_lossy().into_owned();
            NoWay::Outcome(CommandOutcome::Unreachable(format!(
                "host {host}: starting {program:?} failed: {e}; is it installed and in PATH?"
            )))
        })?;
        authenticated(host, child, cancel, deadline)
    }

    /// Returns the command of a master. With `-f` it returns once the connection is authenticated and its socket
    /// exists.
    fn master(&self, host: &str, path: &Path) -> Command {
        let default = [OsString::from("ssh")];
        let words = if self.options.ssh.is_empty() { &default[..] } else { &self.options.ssh[..] };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(homing_os::names::SSH_PLAIN).args(["-M", "-N", "-f", "-S"]).arg(path);
        let option = |name: &str, value: u64| format!("-o{name}={value}");
        // homing closes the connection at its end. If homing is killed, ssh closes it after this time.
        let persist = if self.options.persist.is_zero() { 30 } else { self.options.persist.as_secs().max(1) };
        command.arg(option("ControlPersist", persist));
        command.arg(option("ConnectTimeout", self.options.connect_timeout.as_secs().max(1)));
        command.args(["-oBatchMode=yes", "-oPermitLocalCommand=no"]);
        command.args(["-oServerAliveInterval=5", "-oServerAliveCountMax=4", "-oUpdateHostKeys=no"]);
        command.args(self.options.user.iter().flat_map(|u| [OsStr::new("-l"), OsStr::new(u)]));
        command.arg("--").arg(host);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C at the terminal ends commands, not connections.
        command.process_group(0);
        command
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        if !self.options.persist.is_zero() {
            return;
        }
        for path in std::mem::take(&mut *lock(&self.used)) {
            if let Ok(mut mux) = Mux::connect(&path, Instant::now() + Duration::from_secs(1)) {
                mux.terminate();
            }
        }
    }
}

fn retire(path: &Path) {
    if let Ok(mut mux) = Mux::connect(path, Instant::now() + Duration::from_millis(200)) {
        mux.retire();
    }
    let _ = std::fs::remove_file(path);
}

/// Locks a host's connection, so that only one process makes it. `Err(None)` is a cancelled wait.
fn lock_file(path: &Path, cancel: &Cancel, deadline: Instant) -> Result<File, Option<io::Error>> {
    let file = File::options().create(true).append(true).open(path.with_extension("lock"))?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {}
            Err(e) => return Err(Some(e.into())),
        }
        if matches!(ready(&[], cancel, Some(Instant::now() + Duration::from_millis(5))), Woken::Cancelled) {
            return Err(None);
        }
    }
}

/// Waits until ssh has gone into the background, or has failed.
fn authenticated(host: &str, mut child: Child, cancel: &Cancel, deadline: Instant) -> Result<(), NoWay> {
    let words = match watch(&mut child, cancel, deadline) {
        Ok(words) => words,
        Err(woken) => {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            return Err(match woken {
                Woken::Cancelled => NoWay::Cancelled,
                _ => NoWay::Outcome(CommandOutcome::Unreachable(format!(
                    "host {host}: no connection in time; is the host overloaded?"
                ))),
            });
        }
    };
    let status = child.wait();
    if status.as_ref().is_ok_and(|s| s.success()) {
        return Ok(());
    }
    let line = homing_launch::ssh_verdict(host, &words).map(|e| e.to_string()).unwrap_or_else(|| {
        let last = words.lines().map(str::trim).rfind(|l| !l.is_empty()).unwrap_or("it printed no message");
        format!("host {host}: ssh could not connect: {last}")
    });
    Err(NoWay::Outcome(CommandOutcome::Unreachable(line)))
}

/// Returns the messages of ssh when it has ended. Its error output is not read to the end: old versions keep it open
/// in the background.
fn watch(child: &mut Child, cancel: &Cancel, deadline: Instant) -> Result<String, Woken> {
    let failed = |_| Woken::Cancelled;
    let mut stderr = child.stderr.take().map(OwnedFd::from);
    let pid = Pid::from_raw(child.id() as i32).ok_or(Woken::Cancelled)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    let mut words = Vec::new();
    loop {
        let mut fds = vec![pidfd.as_fd()];
        fds.extend(stderr.as_ref().map(|e| e.as_fd()));
        let seen = match ready(&fds, cancel, Some(deadline)) {
            Woken::Ready(seen) => seen,
            other => return Err(other),
        };
        if let (Some(fd), Some(true)) = (&stderr, seen.get(1)) {
            let mut chunk = [0; 4096];
            match rustix::io::read(fd, &mut chunk) {
                Ok(n @ 1..) if words.len() < 16 << 10 => words.extend(&chunk[..n]),
                Ok(1..) => {}
                _ => stderr = None,
            }
        } else if seen[0] {
            return Ok(String::from_utf8_lossy(&words).into_owned());
        }
    }
}
