//! A recipe's stand-in: what make starts in place of the recipe. It hands the
//! recipe to the coordinator of the build and behaves as the recipe would:
//! the same output, the same exit status, the same death by a signal.

use super::part;
use homing_launch::wire::Stream;
use homing_launch::wire::stub::{FromStub, Part, ToStub};
use homing_model::{Outcome, RawText};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::io::{BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Environment variable that names the coordinator's socket.
pub const SOCKET: &str = "HOMING_MAKE";
/// Environment variable that names this program, for make's shell.
pub const SELF: &str = "HOMING_SELF";
/// Environment variable with the name by which make was started.
pub const PROGRAM: &str = "HOMING_MAKE_PROGRAM";
/// Variables that belong to one build. Those of a login are left out where it is known what make was given.
const NOT_SENT: [&str; 4] = [SOCKET, SELF, PROGRAM, part::OUTER];

/// The recipe of a makefile: what make knows of it in two words, then a shell, `-c` and its text.
pub fn recipe(mut words: Vec<OsString>) -> i32 {
    if words.len() < 2 {
        return 0;
    }
    let known: Vec<OsString> = words.drain(..2).collect();
    let outer = std::env::var_os(part::OUTER);
    let folder = working_directory().unwrap_or_default();
    let part = part::told(&known[0], &known[1], &folder, outer.as_deref());
    let text = words.last().map(|t| t.to_string_lossy().into_owned()).unwrap_or_default();
    let make = std::env::var(PROGRAM).unwrap_or_else(|_| "make".into());
    // What make's function $(shell) starts has none of make's variables.
    let of_function = std::env::var_os("MAKEFLAGS").is_none() && std::env::var_os("MAKELEVEL").is_none();
    if of_function || homing_make::runs_make(&text, &make) || holds_job_server() {
        return here_within(&words, Some(&part));
    }
    match std::env::var_os(SOCKET).map(UnixStream::connect) {
        Some(Ok(stream)) => hand_over(stream, words, part),
        _ => here(&words),
    }
}

/// Make leaves its job server's pipe open for recipes that are marked with `+`.
fn holds_job_server() -> bool {
    let flags = std::env::var("MAKEFLAGS").unwrap_or_default();
    let words = flags.split(' ');
    let auth =
        words.filter_map(|w| w.strip_prefix("--jobserver-auth=").or(w.strip_prefix("--jobserver-fds="))).next_back();
    let Some((read, write)) = auth.and_then(|a| a.split_once(',')) else { return false };
    let is_pipe = |fd: &str| {
        let link = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        link.is_ok_and(|to| to.to_string_lossy().starts_with("pipe:"))
    };
    is_pipe(read) && is_pipe(write)
}

/// Becomes the recipe.
pub fn here(words: &[OsString]) -> i32 {
    here_within(words, None)
}

/// The makes that it starts are told of its place.
fn here_within(words: &[OsString], part: Option<&Part>) -> i32 {
    let Some((program, arguments)) = words.split_first() else { return 0 };
    let outer = part.map(|part| (part::OUTER, part::outer(part)));
    let error = std::process::Command::new(program).args(arguments).envs(outer).exec();
    eprintln!("homing: cannot run {}: {error}", program.to_string_lossy());
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// The coordinator of the build runs it.
pub fn hand_over(stream: UnixStream, words: Vec<OsString>, part: Part) -> i32 {
    let signalled = match forward_signals(&stream) {
        Ok(signalled) => signalled,
        Err(error) => {
            eprintln!("homing: this recipe cannot be run: {error}");
            return crate::failure::exit::SYSTEM;
        }
    };
    match converse(&stream, &words, part, &signalled) {
        Ok(Some(status)) => status,
        Ok(None) => here(&words),
        Err(error) => {
            eprintln!("homing: the coordinator of this build is gone: {error}");
            crate::failure::exit::SYSTEM
        }
    }
}

/// `None` when the recipe has to run here.
fn converse(
    stream: &UnixStream,
    words: &[OsString],
    part: Part,
    signalled: &AtomicI32,
) -> Result<Option<i32>, homing_launch::wire::WireError> {
    let env = std::env::vars_os().filter(|(name, _)| !NOT_SENT.iter().any(|n| name == n));
    let recipe = FromStub::Recipe {
        words: words.iter().map(|w| RawText::from(w.as_os_str())).collect(),
        cwd: working_directory()?.as_path().into(),
        env: env.map(|(name, value)| (name.into(), value.into())).collect(),
        part,
    };
    let mut to = stream;
    // Whoever does not take it has said why.
    let sent = homing_launch::wire::send(&mut to, &recipe);
    let mut from = BufReader::new(stream);
    loop {
        match homing_launch::wire::receive(&mut from)? {
            Some(ToStub::Output { stream, bytes }) => print(stream, &bytes),
            Some(ToStub::Done(outcome)) => return Ok(Some(status(outcome, signalled))),
            Some(ToStub::Here) => return Ok(None),
            Some(ToStub::Failed(why)) => {
                eprintln!("homing: {why}");
                return Ok(Some(crate::failure::exit::SYSTEM));
            }
            None => return Err(sent.err().unwrap_or(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())),
        }
    }
}

/// The kernel does not tell it (ENOENT) at the moment in which the client of a network file system looks for the
/// folder's name anew: seen on GlusterFS once, in a build that other hosts wrote into.
fn working_directory() -> std::io::Result<PathBuf> {
    std::env::current_dir().or_else(|error| found_again(&std::fs::read_link("/proc/self/cwd")?).ok_or(error))
}

/// The folder by the name that it had, when that is still the one in which this process is.
fn found_again(link: &Path) -> Option<PathBuf> {
    let name = link.as_os_str().as_bytes();
    let path = Path::new(OsStr::from_bytes(name.strip_suffix(b" (deleted)").unwrap_or(name)));
    let [here, there] = [Path::new("."), path].map(|p| std::fs::metadata(p).ok().map(|m| (m.dev(), m.ino())));
    (here.is_some() && here == there).then(|| path.to_path_buf())
}

fn print(stream: Stream, bytes: &[u8]) {
    let done = match stream {
        Stream::Out => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
        Stream::Err => std::io::stderr().write_all(bytes),
    };
    if done.is_err() {
        // Nobody reads on: the recipe itself would have died of it.
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
}

/// Make removes what an interrupted recipe was making as soon as its stand-in
/// is gone. So that lives until the recipe has ended, and then dies of the signal.
fn forward_signals(stream: &UnixStream) -> std::io::Result<Arc<AtomicI32>> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let signalled = Arc::new(AtomicI32::new(0));
    let (last, mut to) = (signalled.clone(), stream.try_clone()?);
    homing_os::threads::begin(move || {
        for signal in signals.forever() {
            last.store(signal, Ordering::SeqCst);
            let _ = homing_launch::wire::send(&mut to, &FromStub::Signal(signal));
        }
    })?;
    Ok(signalled)
}

fn status(outcome: Outcome, signalled: &AtomicI32) -> i32 {
    let signal = match outcome {
        Outcome::Exit(status) => return status,
        Outcome::Signal(signal) => signal,
        Outcome::CannotStart(why) | Outcome::NotRun(why) => {
            eprintln!("homing: {why}");
            return 127;
        }
        Outcome::Lost(why) => {
            eprintln!("homing: {why}");
            return crate::failure::exit::SYSTEM;
        }
        Outcome::Killed | Outcome::TimedOut | Outcome::OutputLimit => match signalled.load(Ordering::SeqCst) {
            0 => SIGTERM,
            signal => signal,
        },
    };
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    128 + signal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_name_the_kernel_lost_is_found_by_the_name_that_it_had() {
        let here = std::env::current_dir().unwrap();
        let lost = |path: &Path| [path.as_os_str().as_bytes(), b" (deleted)"].concat();
        assert_eq!(found_again(Path::new(OsStr::from_bytes(&lost(&here)))), Some(here.clone()));
        let other = tempfile::tempdir().unwrap();
        assert_eq!(found_again(Path::new(OsStr::from_bytes(&lost(other.path())))), None, "another of the same name");
        assert_eq!(found_again(&other.path().join("none (deleted)")), None);
    }
}
