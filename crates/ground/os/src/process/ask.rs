//! Runs a command of the site and reads a few words from it, within a time limit.

use crate::threads::lock;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The most output that is read, bytes. A pipe holds as much, and output is read after the command has ended.
const LONGEST: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(10);
/// A killed process ends within this time, unless it waits for a disk.
const GONE: Duration = Duration::from_secs(5);

/// Commands that could not be killed: `sudo` belongs to root, so this user's signals do not reach it. They are not
/// started again while they still run, because each start would leave one more.
static LEFT: Mutex<BTreeMap<String, Child>> = Mutex::new(BTreeMap::new());

/// Runs a line by `/bin/sh` and returns its output. At the time limit the command is killed, with all that it left in
/// its process group.
///
/// # Errors
/// For people, in one line: it did not start, failed, or took too long.
pub fn run_shell(line: &str, limit: Duration) -> Result<Vec<u8>, String> {
    if left().get_mut(line).is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
        return Err(format!("{line:?} has not ended since its last start"));
    }
    left().remove(line);
    answer(line, start(line).map_err(|e| format!("{line:?} cannot be started: {e}"))?, limit)
}

fn left() -> MutexGuard<'static, BTreeMap<String, Child>> {
    lock(&LEFT)
}

fn start(line: &str) -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir("/").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

fn answer(line: &str, mut child: Child, limit: Duration) -> Result<Vec<u8>, String> {
    let status = ended(&mut child, limit);
    let pid = Pid::from_child(&child);
    let may_kill = status.is_some() || kill_process(pid, Signal::KILL) != Err(Errno::PERM);
    // Processes that the command left behind must not hold its output open.
    let _ = kill_process_group(pid, Signal::KILL);
    match status {
        None => {
            let late = format!("{line:?} did not end within {} s", limit.as_secs());
            if may_kill && ended(&mut child, GONE).is_some() {
                return Err(late);
            }
            left().insert(line.into(), child);
            Err(late + ", nor when it was killed")
        }
        Some(status) if !status.success() => Err(format!("{line:?} failed: {status}")),
        Some(_) => Ok(printed(&mut child)),
    }
}

/// Returns how a child ended; `None` if it still runs after `limit`.
///
/// # Errors
/// It cannot be waited for.
pub fn ended_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        let status = child.try_wait()?;
        if status.is_some() || begun.elapsed() >= limit {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
}

fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    ended_within(child, limit).ok().flatten()
}

/// Reads the content of the child's pipe, without waiting for other processes that have it open.
fn printed(child: &mut Child) -> Vec<u8> {
    let Some(mut output) = child.stdout.take() else { return Vec::new() };
    let _ = rustix::io::ioctl_fionbio(&output, true);
    let mut text = vec![0; LONGEST];
    let n = output.read(&mut text).unwrap_or(0);
    text.truncate(n);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::test_kill_process;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn what_it_prints_is_read_whole_and_what_hangs_is_ended() {
        let long = Duration::from_secs(60);
        assert_eq!(run_shell("echo 7", long), Ok(b"7\n".to_vec()));
        assert_eq!(run_shell("head -c 50000 /dev/zero", long).map(|text| text.len()), Ok(50_000));
        assert_eq!(run_shell("setsid sleep 20 & echo 7", long), Ok(b"7\n".to_vec()), "what goes on is not waited for");
        assert!(run_shell("exit 4", long).unwrap_err().contains("failed: exit status: 4"));
        let late = run_shell("sleep 1000", Duration::ZERO).unwrap_err();
        assert!(late.ends_with("did not end within 0 s"), "{late}");
    }

    /// Folder of the program that makes itself root, for the part of the test that runs as an ordinary user.
    const FOLDER: &str = "HOMING_TEST_ASK";

    #[test]
    fn what_this_user_may_not_kill_is_left_and_not_asked_again() {
        if let Ok(folder) = std::env::var(FOLDER) {
            return as_an_ordinary_user(&folder);
        }
        if !rustix::process::geteuid().is_root() {
            return eprintln!("left out: only root makes a program of root's");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let copy = |from: &Path, name: &str, mode: u32| {
            let to = folder.path().join(name);
            // Another process writes the file. Otherwise a child that another test forks meanwhile could inherit a
            // descriptor that is open for writing, and Linux would not execute the file.
            let install = Command::new("install").arg(format!("-m{mode:o}")).args([from, &to]).status();
            assert!(install.unwrap().success(), "{} is copied", to.display());
            to
        };
        copy(Path::new("/usr/bin/setpriv"), "setpriv", 0o4755);
        let own = copy(&std::env::current_exe().unwrap(), "tests", 0o755);
        let mut part = Command::new(own);
        part.args([
            "--exact",
            "process::ask::tests::what_this_user_may_not_kill_is_left_and_not_asked_again",
            "--nocapture",
        ]);
        let said = part.env(FOLDER, folder.path()).current_dir("/").uid(65534).gid(65534).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        let pid = text.lines().find_map(|line| line.split("left: ").nth(1)?.parse().ok()).and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
        assert!(said.status.success() && pid.is_some(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    }

    fn as_an_ordinary_user(folder: &str) {
        let line = format!("exec {folder}/setpriv --reuid 0 --regid 0 --clear-groups sleep 600");
        let child = start(&line).unwrap();
        println!("\nleft: {}", child.id());
        // /proc may hide processes of other users, so their status cannot be used.
        while test_kill_process(Pid::from_child(&child)) != Err(Errno::PERM) {
            std::thread::yield_now();
        }
        let why = answer(&line, child, Duration::ZERO).unwrap_err();
        assert!(why.ends_with("did not end within 0 s, nor when it was killed"), "{why}");
        let again = run_shell(&line, Duration::ZERO).unwrap_err();
        assert!(again.contains("has not ended since its last start"), "{again}");
    }
}
