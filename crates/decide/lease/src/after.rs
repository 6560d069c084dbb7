//! A shell that takes care of a process's file of leases when the process ends, even by SIGKILL. It removes a file
//! that publishes by its name, or keeps the file for a successor. Locks without a successor need no shell: they end
//! with their process.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The process that takes over the leases of a killed one, when the users of the server, such as jobs, go on without
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// The name of the line: of all processes that succeed each other. It is unique for its user on this host. One
    /// process of a line runs at a time.
    pub line: String,
    /// The program of the next process.
    pub program: PathBuf,
    /// Its only argument.
    pub word: OsString,
}

/// Waits for the end of its input, which comes with the end of the run, whatever ends it. Ignores signals for the
/// run.
const REMOVE: &str = r#"trap '' HUP INT QUIT TERM; read -r end; exec rm -f -- "$1" "$1"+*"#;

/// Like [`REMOVE`], but starts the next process of the line. This shell holds the file's locks until that process has
/// published its own leases and removed the file, for at most 15 s. The file is its standard output. It also keeps
/// the file young, by its time or by new names.
///
/// SIGTERM for all of a user's processes ends this one too, and with it the line. The command that starts the next
/// process is not among the arguments of this one: a user who kills all processes of that name does not mean this
/// one. The next process starts a second later, so that one that fails at once is not started more often.
///
/// The folder is open to all users, and a name there may hold any text. No name is calculated with: a shell that is
/// bash runs `$(...)` in an operand. The counts of beats are literals of this script, larger than a run can reach
/// (one each 3 s). A name counts only if its file is a regular file of this user. It never counts as a folder to move
/// something into (`-T`).
pub(super) const SUCCEED: &str = r#"trap '' HUP INT QUIT; read -r end; file=$1
( PATH=/usr/bin:/bin
  for beat in 4294967280 4294967281 4294967282 4294967283 4294967284 4294967285 4294967286 4294967287 \
    4294967288 4294967289 4294967290 4294967291 4294967292 4294967293 4294967294; do
    own=
    for found in "$file" "$file"+*; do [ -f "$found" ] && [ ! -L "$found" ] && [ -O "$found" ] && own=$found && break; done
    [ -n "$own" ] || exit
    case ${own#"$file"} in
    +*) new=${own%+*}+$beat
        if ln -T -- "$own" "$new" 2>/dev/null; then rm -- "$own" 2>/dev/null || rm -f -- "$new"
        elif [ ! -e "$new" ] && [ ! -L "$new" ]; then mv -T -- "$own" "$new" 2>/dev/null; fi ;;
    *) touch -c -- "$own" ;;
    esac
    sleep 1
  done
  rm -f -- "$file" "$file"+* ) &
trap - HUP INT QUIT; sleep 1; exec "$HOMING_NEXT" "$HOMING_NEXT_WORD" >/dev/null"#;

/// The shell; killed when this is dropped.
#[derive(Debug)]
pub(super) struct After(Child);

impl After {
    /// Starts a shell that will remove the file, so that others need not wait until its run counts as gone.
    pub(super) fn remove(path: &Path) -> io::Result<After> {
        let mut shell = shell(REMOVE, path);
        shell.stdout(Stdio::null()).stderr(Stdio::null()).env_clear().env("PATH", "/usr/bin:/bin");
        shell.spawn().map(After)
    }

    /// Starts a shell that will start the next process, and hold this one's leases until then.
    pub(super) fn succeed(path: &Path, file: &File, next: &Successor) -> io::Result<After> {
        let mut shell = shell(SUCCEED, path);
        shell.env("HOMING_NEXT", &next.program).env("HOMING_NEXT_WORD", &next.word);
        shell.stdout(file.try_clone()?).spawn().map(After)
    }
}

fn shell(script: &str, path: &Path) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "homing-leases"]).arg(path).stdin(Stdio::piped()).current_dir("/").process_group(0);
    // SAFETY: only a system call that is allowed between fork and exec.
    unsafe { shell.pre_exec(keep_no_other) };
    shell
}

/// Closes all other descriptors. Another thread may be about to pass on a job's lock, which would stay locked as long
/// as the shell runs. A kernel before 5.11 does not have the call.
#[cfg(target_os = "linux")]
fn keep_no_other() -> io::Result<()> {
    // SAFETY: plain numbers. The call is not in every C library.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Ok(())
}

/// Does nothing: jobs exist only on Linux.
#[cfg(not(target_os = "linux"))]
fn keep_no_other() -> io::Result<()> {
    Ok(())
}

impl Drop for After {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_file_of_a_run_that_was_killed_is_removed_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nas@it's *.1.0");
        let (said, other) = (dir.path().join("nas@it's *.1.0+3+8w+2"), dir.path().join("nas@it's *.1.01+3+8+2"));
        [&said, &other].into_iter().for_each(|path| fs::write(path, "").unwrap());
        let mut after = After::remove(&file).unwrap();
        drop(after.0.stdin.take());
        assert!(after.0.wait().unwrap().success());
        assert_eq!((said.exists(), other.exists()), (false, true));
    }
}
