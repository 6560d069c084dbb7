//! Opens input sources. A run keeps the bytes that it reads, because it may be resumed; a plan only reads.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Files up to this size, in bytes, are held in memory: the number of tasks is then known at the start. Larger files
/// are read as the run goes on.
pub const HELD_FILE: u64 = 256 << 20;

/// An input source that is open.
pub struct InputSource {
    /// Its bytes.
    pub from: Box<dyn BufRead + Send>,
    /// Whether it may be held in memory.
    pub hold: bool,
    /// The file in which its bytes are kept before they are used; a plan keeps none.
    pub copy: Option<PathBuf>,
    /// A file with the same bytes, for reading them twice.
    pub again: Option<PathBuf>,
}

/// Opens the input sources that the user named, in the order of the command line.
pub trait InputOpener {
    /// Opens a path. `-` is standard input, which is opened at most once.
    fn open(&mut self, path: &Path) -> io::Result<InputSource>;
}

/// Opens input sources directly, without keeping them.
pub struct Files {
    cwd: PathBuf,
    stdin: Option<Box<dyn BufRead + Send>>,
}

impl Files {
    /// `cwd` is the folder for relative names.
    pub fn new(cwd: &Path, stdin: Box<dyn BufRead + Send>) -> Files {
        Files { cwd: cwd.into(), stdin: Some(stdin) }
    }
}

/// Returns a name by which standard input can be read a second time. It must be a regular file (`< FILE`) of which
/// nothing has been read.
pub fn stdin_again() -> Option<PathBuf> {
    let (name, stdin) = (Path::new("/proc/self/fd/0"), io::stdin());
    let unread = rustix::fs::tell(&stdin).is_ok_and(|at| at == 0);
    let regular = unread && name.metadata().is_ok_and(|known| known.is_file());
    (regular && File::open(name).is_ok()).then(|| name.into())
}

impl InputOpener for Files {
    fn open(&mut self, path: &Path) -> io::Result<InputSource> {
        if path == Path::new("-") {
            let from = self.stdin.take().unwrap_or_else(|| Box::new(io::empty()));
            return Ok(InputSource { from, hold: false, again: stdin_again(), copy: None });
        }
        let path = self.cwd.join(path);
        let file = File::open(&path)?;
        let known = file.metadata()?;
        let hold = known.is_file() && known.len() <= HELD_FILE;
        let again = known.is_file().then_some(path);
        Ok(InputSource { from: Box::new(BufReader::with_capacity(1 << 16, file)), hold, again, copy: None })
    }
}
