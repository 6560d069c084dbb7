//! Starts a program as `posix_spawn` does: by a child that shares this memory until it executes. The cost does not
//! grow with the worker, as that of fork would. `posix_spawn` itself cannot set the program's limit on descriptors,
//! and afterwards is too late, since the program already runs.

use crate::environment::{TaskEnvironment, c_string};
use crate::view::MountView;
use homing_model::{Command, RawText};
use homing_os::threads::lock;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A started program and its pipes.
pub(crate) struct TaskProcess {
    pub pid: libc::pid_t,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// The writing ends. While they are open here, the end of a program wakes its slot once, by the pidfd. Otherwise
    /// each pipe would wake it before.
    pub writers: [OwnedFd; 2],
}

/// Returns the words to execute: those of the shell, or the program's own.
pub(crate) fn words(command: &Command, env: &TaskEnvironment) -> Vec<RawText> {
    match command {
        Command::Argv(words) => words.clone(),
        Command::Shell(line) => {
            vec![shell(env), "-c".into(), line.clone()]
        }
    }
}

fn shell(env: &TaskEnvironment) -> RawText {
    env.value("HOMING_SHELL").unwrap_or_else(|| homing_os::process::SHELL.into())
}

/// Returns the words by which the shell runs `script`, as execvp(3) does. Its arguments are those of `words`, and the
/// path is its `$0`, as with a `#!` line.
pub(crate) fn words_by_shell(script: &Path, words: &[RawText], env: &TaskEnvironment) -> Vec<RawText> {
    let before = homing_os::process::before_script(script).map(RawText::from);
    let script = [shell(env)].into_iter().chain(before).chain([RawText::from(script)]);
    script.chain(words.iter().skip(1).cloned()).collect()
}

/// Programs found so far, by name, for the run's own PATH and directory.
#[derive(Default)]
pub(crate) struct PathCache(std::sync::Mutex<std::collections::HashMap<Vec<u8>, PathBuf>>);

impl PathCache {
    /// Like `program`, but remembered as in a shell: a program that has disappeared is looked for again.
    pub fn program(
        &self,
        word: &RawText,
        env: &TaskEnvironment,
        cwd: &Path,
        view: &MountView,
    ) -> Result<PathBuf, String> {
        let mut known = lock(&self.0);
        if let Some(path) = known.get(&word.0).filter(|p| view.real(p).exists()) {
            return Ok(path.clone());
        }
        let path = program(word, env, cwd, view)?;
        known.insert(word.0.clone(), path.clone());
        Ok(path)
    }
}

/// Finds the program as execvp would, but in the task's own PATH and view.
pub(crate) fn program(word: &RawText, env: &TaskEnvironment, cwd: &Path, view: &MountView) -> Result<PathBuf, String> {
    let is_program = |path: &Path| homing_os::process::is_program(&view.real(path));
    if word.0.contains(&b'/') {
        let path = cwd.join(word.as_path());
        return match () {
            // A script sees the path by which it is executed as `$0`, relative to the folder that is then current.
            () if is_program(&path) && view.is_plain() => Ok(word.to_path()),
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

/// Signals that this program ignores or handles; after execve(2) the first three would still be ignored.
const CHANGED: [libc::c_int; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM, libc::SIGHUP];
/// Stack of a child: it calls only wrappers of system calls, which need some hundred bytes.
const STACK: usize = 32 << 10;

/// All that a child needs, made before it exists, since it may not allocate.
struct Birth {
    /// The files for standard input, output and error output.
    files: [RawFd; 3],
    cwd: *const libc::c_char,
    path: *const libc::c_char,
    argv: *const *const libc::c_char,
    envp: *const *const libc::c_char,
    limit: libc::rlimit,
    /// The error of a start that failed; 0 until then.
    error: libc::c_int,
}

impl Birth {
    /// Makes the child. Returns when its program has begun, or has failed to.
    fn give(&mut self) -> io::Result<libc::pid_t> {
        let mut stack = Vec::<u8>::with_capacity(STACK);
        // SAFETY: signal sets are plain data that the calls fill in. The stack and `self` outlive the child's use of
        // them: this thread is suspended until the child has executed or exited. All signals are blocked, so that no
        // handler can run in the child before its dispositions are its own.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let top = stack.as_mut_ptr().add(STACK).cast();
            let pid = libc::clone(become_task, top, flags, std::ptr::from_mut(self).cast());
            let failed = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            match (pid, self.error) {
                (-1, _) => Err(failed),
                (pid, 0) => Ok(pid),
                (pid, error) => {
                    libc::waitpid(pid, std::ptr::null_mut(), 0);
                    Err(io::Error::from_raw_os_error(error))
                }
            }
        }
    }
}

/// The child. It may not lock or allocate: its memory is that of a running program.
extern "C" fn become_task(birth: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the parent is suspended and does not touch it; its pointers are to live, NUL-terminated data, the
    // arrays end with NULL. The dispositions of signals are the child's own (no CLONE_SIGHAND), its mask as well.
    unsafe {
        let birth = &mut *birth.cast::<Birth>();
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        CHANGED.iter().for_each(|signal| _ = libc::signal(*signal, libc::SIG_DFL));
        let [input, out, err] = birth.files;
        if libc::setpgid(0, 0) == 0
            && libc::dup2(input, 0) >= 0
            && libc::dup2(out, 1) >= 0
            && libc::dup2(err, 2) >= 0
            && libc::chdir(birth.cwd) == 0
            && libc::setrlimit(libc::RLIMIT_NOFILE, &birth.limit) == 0
            && libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) == 0
        {
            libc::execve(birth.path, birth.argv, birth.envp);
        }
        birth.error = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        libc::_exit(127)
    }
}

/// Returns the resource that was short when a program could not be started, if a later start may succeed.
pub(crate) fn scarce(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE => Some("descriptors (ulimit -n)"),
        libc::ENFILE => Some("descriptors of the whole host (sysctl fs.file-max)"),
        libc::EAGAIN => Some("processes (ulimit -u, or pids.max of the control group)"),
        libc::ENOMEM => Some("memory"),
        _ => None,
    }
}

/// The resources with which all tasks of a run are started.
pub(crate) struct Ground {
    null: File,
}

impl Ground {
    pub fn new() -> io::Result<Ground> {
        Ok(Ground { null: File::open("/dev/null")? })
    }

    /// Starts `words` in `cwd`, as leader of its own process group; its input is `stdin`, or /dev/null.
    pub fn spawn(
        &self,
        program: &Path,
        words: &[RawText],
        env: &TaskEnvironment,
        cwd: &Path,
        stdin: Option<&File>,
    ) -> io::Result<TaskProcess> {
        let (stdout, out) = pipe()?;
        let (stderr, err) = pipe()?;
        let cwd = c_string(cwd.as_os_str().as_bytes())?;
        let path = c_string(program.as_os_str().as_bytes())?;
        let argv: Vec<CString> = words.iter().map(|w| c_string(&w.0)).collect::<io::Result<_>>()?;
        let argv: Vec<*const libc::c_char> = argv.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
        let envp = env.pointers();
        let mut birth = Birth {
            files: [stdin.unwrap_or(&self.null).as_raw_fd(), out.as_raw_fd(), err.as_raw_fd()],
            cwd: cwd.as_ptr(),
            path: path.as_ptr(),
            argv: argv.as_ptr(),
            envp: envp.as_ptr(),
            limit: homing_os::process::users_files(),
            error: 0,
        };
        let pid = birth.give()?;
        Ok(TaskProcess { pid, stdout, stderr, writers: [out, err] })
    }
}

/// Returns a pidfd, which reports the end of exactly this process through `poll`.
pub(crate) fn pidfd(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: the call takes plain numbers; the descriptor that it returns is ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: see above; it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
