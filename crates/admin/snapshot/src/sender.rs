//! Pauses rsync's end on the source's host, which another host has started over ssh. It is found by a variable in its
//! environment. Stopping only the end on the bank's host would not be enough. Both ends and ssh buffer two megabytes,
//! which for small files on a slow disk is many seconds of reading.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

/// The variable that marks the process.
pub const MARK: &str = "HOMING_COPY";
/// rsync on the source's host, with the lowest priority for processor and disk.
pub const POLITE_RSYNC: &str = "nice -n 19 ionice -c 3 rsync";
/// The time between two searches among all processes of the host while nothing has to be stopped.
const LOOK: Duration = Duration::from_millis(500);
/// The shell script that continues a stopped process when this process ends for any reason; no other process would do
/// it.
const GUARD: &str = "cat >/dev/null; kill -CONT \"$1\"";

/// Returns a command with the mark in its environment.
pub fn marked(mark: &str, command: &str) -> String {
    format!("env {MARK}={mark} {command}")
}

/// The marked process, once it exists.
#[derive(Debug)]
pub struct Sender {
    mark: String,
    found: Option<SenderProcess>,
    looked: Option<Instant>,
}

#[derive(Debug)]
struct SenderProcess {
    id: i32,
    guard: Child,
}

impl Sender {
    /// Returns a value that has not searched yet.
    pub fn new(mark: String) -> Sender {
        Sender { mark, found: None, looked: None }
    }

    /// Stops or continues the process. It does nothing if the process does not exist yet, or is another user's.
    pub fn may_run(&mut self, may_run: bool) {
        self.look_for();
        if let Some(found) = &self.found {
            let signal = if may_run { libc::SIGCONT } else { libc::SIGSTOP };
            // SAFETY: an rsync that was started for this copy alone.
            unsafe { libc::kill(found.id, signal) };
        }
    }

    /// Returns the bytes that it has read from a disk (proc_pid_io(5)).
    pub fn read_bytes(&mut self) -> Option<u64> {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            self.look_for();
        }
        let text = fs::read_to_string(format!("/proc/{}/io", self.found.as_ref()?.id)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
    }

    fn look_for(&mut self) {
        if self.found.is_none() {
            self.looked = Some(Instant::now());
            self.found = self.find().and_then(|id| SenderProcess::new(id).ok());
        }
    }

    fn find(&self) -> Option<i32> {
        let word = format!("{MARK}={}", self.mark);
        let is_it = |id: &i32| {
            let of = |what: &str| fs::read(format!("/proc/{id}/{what}")).unwrap_or_default();
            of("comm") == b"rsync\n" && of("environ").split(|byte| *byte == 0).any(|one| one == word.as_bytes())
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_it)
    }
}

/// Starts a shell that runs `script` when its input ends, which is when this process ends for any reason. `word`: the
/// script's `$1`.
pub fn guard(script: &str, word: &OsStr) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(word).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn()
}

impl SenderProcess {
    fn new(id: i32) -> io::Result<SenderProcess> {
        Ok(SenderProcess { id, guard: guard(GUARD, id.to_string().as_ref())? })
    }
}

impl Drop for SenderProcess {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(id: u32) -> String {
        homing_os::process::ProcessStat::of(id).map(|stat| stat.state().to_string()).unwrap_or_default()
    }

    fn until(id: u32, wanted: &[&str]) {
        for _ in 0..15_000 {
            if wanted.contains(&state(id).as_str()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{id} is {:?}, not {wanted:?}", state(id));
    }

    #[test]
    fn it_is_found_by_its_mark_stopped_and_goes_on_when_nobody_watches() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("rsync");
        // `cp` copies it: a child of another thread could inherit the open file, and then it could not be executed.
        assert!(Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
        let start = |mark: &str| Command::new(&program).arg("600").env(MARK, mark).spawn().unwrap();
        let (mut other, mut it) = (start("this"), start("that"));
        let mut sender = Sender::new("that".into());
        until(it.id(), &["S"]);
        sender.may_run(false);
        until(it.id(), &["T"]);
        assert_eq!(state(other.id()), "S");
        sender.may_run(true);
        until(it.id(), &["S"]);
        sender.may_run(false);
        until(it.id(), &["T"]);
        drop(sender);
        until(it.id(), &["S"]);
        for child in [&mut other, &mut it] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
