//! Files that execve(2) refuses although they are executable: scripts without a `#!` line, which a shell runs, and
//! files whose interpreter is missing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a file that are examined. The kernel reads as many of a `#!` line (`BINPRM_BUF_SIZE` of
/// include/uapi/linux/binfmts.h).
const HEAD: u64 = 256;
/// First bytes of a compiled program: elf(5).
const ELF: &[u8] = b"\x7fELF";

/// The shell where nothing names another one.
pub const SHELL: &str = "/bin/sh";

/// Whether a shell runs `file`, which execve(2) refused with `error`. It runs a text without a `#!` line, as in
/// execvp(3). A program for other processors is refused with the same error, but has a NUL byte in its first line.
/// Bash distinguishes them by the same test.
pub fn is_shell_script(file: &Path, error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOEXEC) && head(file).is_ok_and(|head| !first_line(&head).contains(&0))
}

/// Returns the word between a shell and the path of a script, if there must be one. Otherwise the shell would take
/// the path `-x/script` for options.
pub fn before_script(file: &Path) -> Option<&'static str> {
    let first = file.as_os_str().as_bytes().first();
    first.is_some_and(|byte| b"-+".contains(byte)).then_some("--")
}

/// Returns why the program `file` did not start in `cwd`: the fault of its first line, or the words of the system.
pub fn refusal(file: &Path, cwd: &Path, error: &io::Error) -> String {
    fault(&cwd.join(file), cwd, error).unwrap_or_else(|| error.to_string())
}

fn fault(file: &Path, cwd: &Path, error: &io::Error) -> Option<String> {
    let code = error.raw_os_error().filter(|code| [libc::ENOENT, libc::EACCES].contains(code))?;
    let head = head(file).ok()?;
    if code == libc::ENOENT && head.starts_with(ELF) {
        return Some("the loader that it names is not there: it was built for another system".into());
    }
    let named = interpreter(&head)?;
    let path = cwd.join(OsStr::from_bytes(named));
    let shown = String::from_utf8_lossy(named);
    match code {
        libc::ENOENT if !path.exists() && named.ends_with(b"\r") => {
            Some(format!("its interpreter {shown:?} is not there (line 1 has a Windows line end: sed -i 's/\\r$//')"))
        }
        libc::ENOENT if !path.exists() => Some(format!("its interpreter {shown:?} is not there")),
        libc::EACCES if path.exists() && !may_execute(&path) => {
            Some(format!("its interpreter {shown:?} is not executable"))
        }
        _ => None,
    }
}

/// Becomes the program of `command`; returns only if that failed. A shell script without a `#!` line becomes `shell`.
/// The library of the static programs, musl, does not do this in execvp(3), that of GNU does.
pub fn become_program(command: &mut Command, shell: &OsStr) -> io::Error {
    let refused = command.exec();
    let file = found(command.get_program());
    if !is_shell_script(&file, &refused) {
        return refused;
    }
    let mut by_shell = Command::new(shell);
    by_shell.args(before_script(&file)).arg(&file).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => by_shell.env(name, value),
            None => by_shell.env_remove(name),
        };
    }
    by_shell.exec()
}

/// Returns the path of a program, which is looked for in `PATH` if it has no folder.
fn found(program: &OsStr) -> PathBuf {
    let named = PathBuf::from(program);
    if program.as_bytes().contains(&b'/') {
        return named;
    }
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|folder| folder.join(program));
    all.find(|path| is_program(path)).unwrap_or(named)
}

/// Whether `PATH` has a program of this name.
pub fn is_on_path(program: &str) -> bool {
    is_program(&found(OsStr::new(program)))
}

/// Whether this user may execute the file, as execvp(3) finds out while it looks through `PATH`.
pub fn is_program(path: &Path) -> bool {
    path.is_file() && may_execute(path)
}

fn may_execute(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn head(file: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// Returns the interpreter that a `#!` line names, as the kernel reads it: up to a blank.
fn interpreter(head: &[u8]) -> Option<&[u8]> {
    let mut words = first_line(head).strip_prefix(b"#!")?.split(|byte| b" \t\0".contains(byte));
    words.find(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    fn written(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let file = dir.join(name);
        std::fs::write(&file, bytes).unwrap();
        file
    }

    #[test]
    fn a_shell_runs_text_that_the_kernel_does_not_know_and_no_foreign_program() {
        let dir = tempfile::tempdir().unwrap();
        let is = |bytes: &[u8], code| is_shell_script(&written(dir.path(), "s", bytes), &raw(code));
        assert!(is(b"echo hi $1\n", libc::ENOEXEC));
        assert!(is(b"", libc::ENOEXEC));
        assert!(is(b"echo \xff\n\0 data behind the first line", libc::ENOEXEC));
        assert!(!is(b"echo hi\n", libc::ENOENT));
        assert!(!is(b"echo hi\n", libc::EACCES));
        assert!(!is(b"\x7fELF\x02\x01\x01\0\0\0", libc::ENOEXEC));
        assert!(!is_shell_script(&dir.path().join("none"), &raw(libc::ENOEXEC)));
    }

    #[test]
    fn a_path_is_no_option_of_the_shell() {
        assert_eq!(before_script(Path::new("-x/s.sh")), Some("--"));
        assert_eq!(before_script(Path::new("+x/s.sh")), Some("--"));
        assert_eq!(before_script(Path::new("./s.sh")), None);
    }

    #[test]
    fn the_missing_interpreter_is_named_and_not_the_file_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let why = |bytes: &[u8], code| {
            written(dir.path(), "s", bytes);
            refusal(Path::new("s"), dir.path(), &raw(code))
        };
        let windows = why(b"#!/bin/sh\r\necho\r\n", libc::ENOENT);
        assert!(windows.starts_with(r#"its interpreter "/bin/sh\r" is not there (line 1 has a Windows"#), "{windows}");
        assert_eq!(why(b"#! no/python -E\n", libc::ENOENT), r#"its interpreter "no/python" is not there"#);
        assert!(why(b"\x7fELF\x02\x01\x01\0", libc::ENOENT).contains("loader"));
        written(dir.path(), "plain", b"");
        assert_eq!(why(b"#!plain\n", libc::EACCES), r#"its interpreter "plain" is not executable"#);
        // An interpreter that is there explains nothing.
        assert_eq!(why(b"#!/bin/sh\n", libc::ENOENT), raw(libc::ENOENT).to_string());
        assert_eq!(why(b"echo\n", libc::ENOEXEC), raw(libc::ENOEXEC).to_string());
    }
}
