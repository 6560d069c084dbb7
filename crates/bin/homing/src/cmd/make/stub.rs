//! The stub that make starts instead of a recipe.
//!
//! It hands the recipe to the coordinator of the build and behaves as the recipe would. It has the same output, the
//! same exit status and the same death by a signal.

use super::part;
use homing_launch::wire::OutputStream;
use homing_launch::wire::stub::{FromStub, RecipePosition, ToStub};
use homing_model::{Outcome, RawText};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// A program that make was about to start for a recipe.
pub struct RecipeProgram {
    /// The path of the program.
    program: OsString,
    /// Its words; the first is its name.
    words: Vec<OsString>,
    part: RecipePosition,
    /// Variables for the makes and the `homing on` that the recipe starts.
    inner: Vec<(&'static str, OsString)>,
}

impl RecipeProgram {
    /// Makes the recipe of a command that gets no data from make.
    pub fn of(words: Vec<OsString>) -> RecipeProgram {
        let program = words.first().cloned().unwrap_or_default();
        RecipeProgram { program, words, part: RecipePosition::default(), inner: Vec::new() }
    }

    /// Returns the words for another host, which searches the recipe's `PATH` for the program. If a relative folder
    /// of `PATH` held the program here, the other host uses the same relative path.
    fn sought_elsewhere(&self) -> impl Iterator<Item = &OsStr> {
        let is_relative = !self.program.as_bytes().starts_with(b"/");
        let name = self.words.first().map(|name| if is_relative { &self.program } else { name });
        name.into_iter().chain(self.words.iter().skip(1)).map(OsString::as_os_str)
    }
}

/// Executes the stub as the library in make starts it. `words`: the socket, the library, make's program, a descriptor
/// with the data of make, the program of the recipe, and its words.
pub fn recipe(mut words: Vec<OsString>) -> i32 {
    if words.len() < 6 {
        return 0;
    }
    let rest = words.split_off(5);
    let [socket, hook, make, known, program] = <[OsString; 5]>::try_from(words).unwrap_or_default();
    let folder = working_directory().unwrap_or_default();
    let part = taken(&known).map_or_else(RecipePosition::default, |known| part::read(known, &folder));
    let mut recipe = RecipeProgram { program, part, ..RecipeProgram::of(rest) };
    let text = homing_make::text_of(recipe.words.iter().map(|word| word.to_string_lossy()));
    if homing_make::runs_make(&text, &make.to_string_lossy()) || homing_make::runs_on(&text) || holds_job_server() {
        recipe.inner = inner(&socket, &hook, &recipe.part);
        return here(&recipe);
    }
    match UnixStream::connect(&socket) {
        Ok(stream) => hand_over(stream, recipe),
        Err(_) => here(&recipe),
    }
}

/// Takes the descriptor that the library left open. No recipe may inherit it.
fn taken(known: &OsStr) -> Option<File> {
    let fd: i32 = known.to_str()?.parse().ok()?;
    // SAFETY: it was opened for this process, and nothing else here has it.
    (fd > 2).then(|| unsafe { File::from_raw_fd(fd) })
}

/// Returns the variables by which an inner make hands its recipes over.
fn inner(socket: &OsStr, hook: &OsStr, part: &RecipePosition) -> Vec<(&'static str, OsString)> {
    let own = std::env::current_exe().unwrap_or_default().into_os_string();
    let preload = homing_make::hook::preload(hook, std::env::var_os(homing_make::hook::PRELOAD).as_deref(), None);
    vec![
        (homing_make::hook::SOCKET, socket.into()),
        (homing_make::hook::SELF, own),
        (homing_make::hook::HOOK, hook.into()),
        (homing_make::hook::OUTER, part::outer(part)),
        (homing_make::hook::PRELOAD, preload),
    ]
}

/// Returns whether make left its job server's pipe open, as it does for recipes that are marked with `+`.
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

/// Replaces this process by the recipe.
pub fn here(recipe: &RecipeProgram) -> i32 {
    let Some((name, arguments)) = recipe.words.split_first() else { return 0 };
    let exec = |inner: &[(&'static str, OsString)]| {
        let mut command = Command::new(&recipe.program);
        command.arg0(name).args(arguments).envs(inner.iter().cloned());
        homing_os::process::become_program(&mut command, OsStr::new(homing_os::process::SHELL))
    };
    let mut error = exec(&recipe.inner);
    // The recipe must start even if its words leave no room for more variables.
    if error.raw_os_error() == Some(rustix::io::Errno::TOOBIG.raw_os_error()) && !recipe.inner.is_empty() {
        error = exec(&[]);
    }
    let why = homing_os::process::refusal(Path::new(&recipe.program), Path::new(""), &error);
    eprintln!("homing: cannot run {}: {why}", name.to_string_lossy());
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Has the coordinator of the build run the recipe.
pub fn hand_over(stream: UnixStream, recipe: RecipeProgram) -> i32 {
    let signalled = match forward_signals(&stream) {
        Ok(signalled) => signalled,
        Err(error) => {
            eprintln!("homing: cannot run this recipe: {error}");
            return crate::failure::exit::SYSTEM;
        }
    };
    match converse(&stream, &recipe, &signalled) {
        Ok(Some(status)) => status,
        Ok(None) => here(&recipe),
        Err(error) => {
            eprintln!("homing: the coordinator of this build is gone: {error}");
            crate::failure::exit::SYSTEM
        }
    }
}

/// Sends the recipe and prints its output. Returns `None` if the recipe must run here.
fn converse(
    stream: &UnixStream,
    recipe: &RecipeProgram,
    signalled: &AtomicI32,
) -> Result<Option<i32>, homing_launch::wire::WireError> {
    let recipe = FromStub::Recipe {
        words: recipe.sought_elsewhere().map(RawText::from).collect(),
        cwd: working_directory()?.as_path().into(),
        env: environment().map(|(name, value)| (name.into(), value.into())).collect(),
        part: recipe.part.clone(),
    };
    let mut to = stream;
    // A coordinator that refuses the recipe has sent the reason: `sent` counts only if no answer arrives.
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

/// Returns the environment without the variables that belong to one build on this host.
fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    let hook = std::env::var_os(homing_make::hook::HOOK);
    std::env::vars_os().filter_map(move |(name, value)| match &hook {
        _ if homing_make::hook::OURS.iter().any(|ours| name == *ours) => None,
        Some(hook) if name == homing_make::hook::PRELOAD => {
            homing_make::hook::others(&value, hook).map(|others| (name, others))
        }
        _ => Some((name, value)),
    })
}

/// Returns the working directory. The kernel fails with ENOENT while the client of a network file system looks up the
/// folder's name again. This was seen once, on GlusterFS, in a build that other hosts wrote into.
fn working_directory() -> std::io::Result<PathBuf> {
    std::env::current_dir().or_else(|error| found_again(&std::fs::read_link("/proc/self/cwd")?).ok_or(error))
}

/// Returns the folder by its old name, if that still is the folder of this process.
fn found_again(link: &Path) -> Option<PathBuf> {
    let name = link.as_os_str().as_bytes();
    let path = Path::new(OsStr::from_bytes(name.strip_suffix(b" (deleted)").unwrap_or(name)));
    let [here, there] = [Path::new("."), path].map(|p| std::fs::metadata(p).ok().map(|m| (m.dev(), m.ino())));
    (here.is_some() && here == there).then(|| path.to_path_buf())
}

fn print(stream: OutputStream, bytes: &[u8]) {
    let done = match stream {
        OutputStream::Out => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
        OutputStream::Err => std::io::stderr().write_all(bytes),
    };
    if done.is_err() {
        // The reader is gone: the recipe itself would have died of SIGPIPE.
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
}

/// Forwards signals to the recipe. When the stub ends, make removes the file that an interrupted recipe was making.
/// The stub therefore lives until the recipe has ended, and then dies of the same signal.
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
