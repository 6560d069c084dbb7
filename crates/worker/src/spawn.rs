//! Starting a program with `posix_spawn`: vfork underneath, so that the cost
//! does not grow with the worker, as fork's would. A group of its own for
//! each task; no hook runs in the child, which would make that impossible.

use crate::environment::{TaskEnvironment, c_string};
use crate::view::View;
use homing_model::{Command, RawText};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A started program and its pipes.
pub(crate) struct Started {
    pub pid: libc::pid_t,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// The writing ends. While they are open here, the end of a program wakes
    /// its slot once, by the pidfd, and not once for each pipe before.
    pub writers: [OwnedFd; 2],
}

/// The words to execute: the shell's, or the program's own.
pub(crate) fn words(command: &Command, env: &TaskEnvironment) -> Vec<RawText> {
    match command {
        Command::Argv(words) => words.clone(),
        Command::Shell(line) => {
            let shell = env.value("HOMING_SHELL").unwrap_or_else(|| "/bin/sh".into());
            vec![shell, "-c".into(), line.clone()]
        }
    }
}

/// Programs found so far, by name, for the run's own PATH and directory.
#[derive(Default)]
pub(crate) struct Found(std::sync::Mutex<std::collections::HashMap<Vec<u8>, PathBuf>>);

impl Found {
    /// As `program`, remembered as a shell does: a program that went away is looked for again.
    pub fn program(&self, word: &RawText, env: &TaskEnvironment, cwd: &Path, view: &View) -> Result<PathBuf, String> {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(path) = known.get(&word.0).filter(|p| view.real(p).exists()) {
            return Ok(path.clone());
        }
        let path = program(word, env, cwd, view)?;
        known.insert(word.0.clone(), path.clone());
        Ok(path)
    }
}

/// Finds the program as execvp would, but in the task's own PATH and view.
pub(crate) fn program(word: &RawText, env: &TaskEnvironment, cwd: &Path, view: &View) -> Result<PathBuf, String> {
    let is_program = |path: &Path| {
        let path = &view.real(path);
        path.metadata().is_ok_and(|m| m.is_file()) && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if word.0.contains(&b'/') {
        let path = cwd.join(word.as_path());
        return match () {
            () if is_program(&path) => Ok(path),
            () if view.real(&path).exists() => Err(format!("{} is not executable", word.display())),
            () => Err(format!("{}: no such program", word.display())),
        };
    }
    let path = env.value("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let folders = path.0.split(|b| *b == b':');
    let mut found = folders.map(|f| cwd.join(std::ffi::OsStr::from_bytes(f)).join(word.as_path()));
    found.find(|p| is_program(p)).ok_or_else(|| format!("{}: command not found", word.display()))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Frees what `posix_spawn` was set up with.
struct Setup {
    actions: libc::posix_spawn_file_actions_t,
    attributes: libc::posix_spawnattr_t,
}

impl Drop for Setup {
    fn drop(&mut self) {
        // SAFETY: both were initialised in `setup` and are destroyed once.
        unsafe {
            libc::posix_spawn_file_actions_destroy(&mut self.actions);
            libc::posix_spawnattr_destroy(&mut self.attributes);
        }
    }
}

fn setup(null: RawFd, out: RawFd, err: RawFd, cwd: &CString) -> io::Result<Setup> {
    let check = |code: libc::c_int| if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) };
    // SAFETY: the structures are initialised before use and outlive each call;
    // signal sets are plain data filled in by sigemptyset and sigfillset.
    unsafe {
        let mut setup = Setup { actions: std::mem::zeroed(), attributes: std::mem::zeroed() };
        check(libc::posix_spawn_file_actions_init(&mut setup.actions))?;
        check(libc::posix_spawnattr_init(&mut setup.attributes))?;
        for (from, to) in [(null, 0), (out, 1), (err, 2)] {
            check(libc::posix_spawn_file_actions_adddup2(&mut setup.actions, from, to))?;
        }
        check(libc::posix_spawn_file_actions_addchdir_np(&mut setup.actions, cwd.as_ptr()))?;
        let mut none: libc::sigset_t = std::mem::zeroed();
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        // Only what this program changed: exec resets handlers by itself, and
        // the library makes a system call in the child for each signal named.
        libc::sigemptyset(&mut all);
        for ignored in [libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE] {
            libc::sigaddset(&mut all, ignored);
        }
        check(libc::posix_spawnattr_setsigmask(&mut setup.attributes, &none))?;
        check(libc::posix_spawnattr_setsigdefault(&mut setup.attributes, &all))?;
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETPGROUP;
        check(libc::posix_spawnattr_setflags(&mut setup.attributes, flags as libc::c_short))?;
        Ok(setup)
    }
}

/// What the tasks of a run are started with.
pub(crate) struct Ground {
    null: std::fs::File,
}

impl Ground {
    pub fn new() -> io::Result<Ground> {
        Ok(Ground { null: std::fs::File::open("/dev/null")? })
    }

    /// Starts `words` in `cwd`, leader of its own process group, input from /dev/null.
    pub fn spawn(&self, program: &Path, words: &[RawText], env: &TaskEnvironment, cwd: &Path) -> io::Result<Started> {
        let (stdout, out) = pipe()?;
        let (stderr, err) = pipe()?;
        let cwd = c_string(cwd.as_os_str().as_bytes())?;
        let setup = setup(self.null.as_raw_fd(), out.as_raw_fd(), err.as_raw_fd(), &cwd)?;
        let path = c_string(program.as_os_str().as_bytes())?;
        let argv: Vec<CString> = words.iter().map(|w| c_string(&w.0)).collect::<io::Result<_>>()?;
        let argv_p: Vec<*mut libc::c_char> =
            argv.iter().map(|s| s.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect();
        let envp = env.pointers();
        let mut pid = 0;
        // SAFETY: all pointers are to live, NUL-terminated data; the arrays end with NULL.
        let code = unsafe {
            libc::posix_spawn(
                &mut pid,
                path.as_ptr(),
                &setup.actions,
                &setup.attributes,
                argv_p.as_ptr(),
                envp.as_ptr(),
            )
        };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        Ok(Started { pid, stdout, stderr, writers: [out, err] })
    }
}

/// A pidfd: tells of the end of exactly this process, by `poll`.
pub(crate) fn pidfd(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: the call takes plain numbers; the descriptor that it returns is ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: see above; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
