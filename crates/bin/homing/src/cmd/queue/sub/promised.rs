//! Checks files of a job before it is queued: those that it reads, and the places of those that it writes.

use homing_batch::{InputOpener, InputSource};
use homing_model::{Failure, RawText};
use homing_os::folder::{unreadable, unwritable};
use homing_queue::JobSpec;
use std::fs::File;
use std::io::{self, BufReader, Cursor};
use std::path::{Path, PathBuf};

/// The machine and the time at which a job opens its files, as far as they are known.
#[derive(Clone, Copy)]
pub struct Opening {
    /// Whether that may be another machine. An absolute path may then be a folder of that machine alone.
    pub elsewhere: bool,
    /// Whether the job waits for other jobs, which may make a file or a folder.
    pub later: bool,
}

impl Opening {
    /// Whether the job will meet an error that a path has here and now.
    fn meets(self, path: &Path, error: &io::Error) -> bool {
        let may_come = self.later && error.kind() == io::ErrorKind::NotFound;
        !(may_come || self.elsewhere && path.is_absolute())
    }
}

/// Refuses a job whose standard input cannot be read, or whose output cannot be written.
pub fn refuse(spec: &JobSpec, opening: Opening) -> Result<(), Failure> {
    let fault = |name: &RawText, look: fn(&Path) -> Option<io::Error>| {
        let path = spec.cwd.as_path().join(name.as_path());
        let error = look(&path).filter(|error| opening.meets(name.as_path(), error));
        error.map(|error| format!("{}: {error}", path.display()))
    };
    for name in [&spec.stdout, &spec.stderr].into_iter().flatten() {
        // A name with %J or %I is complete only when the job runs.
        let is_known = !name.as_path().parent().is_some_and(has_mark);
        if let Some(why) = is_known.then(|| fault(name, unwritable)).flatten() {
            return Err(Failure::system(format!("cannot write the output of the job to {why}"))
                .hint("name a file in a folder that exists; without -o: homing peek ID"));
        }
    }
    let input = spec.stdin.as_ref().filter(|name| !has_mark(name.as_path()));
    match input.and_then(|name| fault(name, unreadable)) {
        Some(why) => Err(Failure::usage(format!("cannot read the standard input of the job from {why}"))
            .hint("name an existing file; or --after ID, if job ID makes it")),
        None => Ok(()),
    }
}

fn has_mark(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().contains(&b'%')
}

/// The inputs of a batch when it is submitted. Sources that cannot be read yet are empty.
pub struct PromisedInputs<'a> {
    /// The folder of the job.
    pub cwd: &'a Path,
    /// The text from the pipe, which is kept with the job.
    pub piped: Option<&'a RawText>,
    /// When and where the job opens them.
    pub opening: Opening,
    /// Whether a source was left unread: errors of the batch may then be due to that.
    pub unread: bool,
}

impl PromisedInputs<'_> {
    fn left_unread(&mut self) -> InputSource {
        self.unread = true;
        InputSource { from: Box::new(io::empty()), hold: false, copy: None, again: None }
    }
}

impl InputOpener for PromisedInputs<'_> {
    fn open(&mut self, path: &Path) -> io::Result<InputSource> {
        if path == Path::new("-") {
            let Some(text) = self.piped.take() else { return Ok(self.left_unread()) };
            return Ok(InputSource {
                from: Box::new(Cursor::new(text.0.clone())),
                hold: false,
                copy: None,
                again: None,
            });
        }
        if is_of_this_process(path) {
            return Err(io::Error::other("it ends with this command: name a file, or send the list through a pipe"));
        }
        let whole = self.cwd.join(path);
        match whole.metadata() {
            // Not held: it may be long, and only its beginning is read.
            Ok(known) if known.is_file() => {
                let from = Box::new(BufReader::new(File::open(&whole)?));
                Ok(InputSource { from, hold: false, copy: None, again: Some(whole) })
            }
            Ok(known) if known.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // A pipe or a device gives its bytes once, to the job.
            Ok(_) => Ok(self.left_unread()),
            Err(error) if self.opening.meets(path, &error) => Err(error),
            Err(_) => Ok(self.left_unread()),
        }
    }
}

/// Whether a path names an open file of the process that opens it, such as `<(COMMAND)` of a shell.
fn is_of_this_process(path: &Path) -> bool {
    let folders: [PathBuf; 3] = ["/dev/fd", "/proc/self/fd", "/dev/stdin"].map(PathBuf::from);
    folders.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_where_the_job_meets_it() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let meets = |elsewhere, later, path: &str, error| Opening { elsewhere, later }.meets(Path::new(path), error);
        assert!(meets(false, false, "/scratch/list", &missing));
        assert!(!meets(false, true, "/scratch/list", &missing) && meets(false, true, "list", &refused));
        assert!(!meets(true, false, "/scratch/list", &missing) && meets(true, false, "list", &missing));
    }

    #[test]
    fn inputs_that_are_made_later_or_give_their_bytes_once_are_left_unread() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("list"), "a\n").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let opened = |path: &str, later| {
            let opening = Opening { elsewhere: false, later };
            let mut inputs = PromisedInputs { cwd: dir.path(), piped: None, opening, unread: false };
            inputs.open(Path::new(path)).map(|_| inputs.unread).map_err(|e| e.kind())
        };
        assert_eq!((opened("list", false), opened("pipe", false)), (Ok(false), Ok(true)));
        assert_eq!((opened("gone", true), opened("gone", false)), (Ok(true), Err(io::ErrorKind::NotFound)));
        assert_eq!((opened(".", true), opened("-", true)), (Err(io::ErrorKind::IsADirectory), Ok(true)));
        assert!(opened("/dev/fd/63", true).is_err());
    }
}
