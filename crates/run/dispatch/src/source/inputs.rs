//! The input sources of a run. They are kept in its folder as they are read, and read from there when the run is
//! resumed.

use crate::source::stream::{Cut, NotKept, follow, is_same, not_kept};
use homing_batch::{BatchError, HELD_FILE, InputSource, stdin_again};
use homing_journal::{EarlierInput, JournalError, Keeping};
use homing_model::exit;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// The name under which standard input is kept.
const STDIN: &str = "stdin";

/// Opens the inputs of one run. Files are kept as `input.1`, `input.2`, ... in the order of the command line.
pub struct RunInputs {
    cwd: PathBuf,
    dir: PathBuf,
    resumed: bool,
    files: usize,
    /// Notes on the inputs for the user.
    pub notes: Vec<String>,
}

impl RunInputs {
    /// `cwd`: where relative names begin; `dir`: the run's folder.
    pub fn new(cwd: &Path, dir: &Path, resumed: bool) -> RunInputs {
        RunInputs { cwd: cwd.into(), dir: dir.into(), resumed, files: 0, notes: Vec::new() }
    }

    /// Whether standard input would be typed by hand if it was read.
    pub fn stdin_is_typed(&self) -> bool {
        io::stdin().is_terminal() && !(self.resumed && self.dir.join(STDIN).exists())
    }

    /// Frees the space of standard input, once no task is left to be made of it.
    pub fn forget_stdin(&self) {
        // On an error, the file only takes space until the run is pruned.
        let _ = homing_journal::forget(&self.dir, STDIN);
    }

    fn name(&mut self, path: &Path) -> String {
        if path == Path::new("-") {
            return STDIN.into();
        }
        self.files += 1;
        format!("input.{}", self.files)
    }

    /// Opens the source itself, from its beginning. Returns `None` if it cannot be read a second time.
    fn again(&self, path: &Path) -> Option<Box<dyn Read + Send>> {
        if path == Path::new("-") {
            return (!io::stdin().is_terminal() && !stdin_is_null()).then(|| Box::new(io::stdin()) as _);
        }
        let path = self.cwd.join(path);
        path.metadata().ok().filter(|m| m.is_file())?;
        Some(Box::new(File::open(path).ok()?))
    }

    /// Opens an input that this run has never read.
    fn first(&mut self, path: &Path, name: &str) -> io::Result<InputSource> {
        let mut keeping = Keeping::begin(&self.dir, name).map_err(not_kept)?;
        if path == Path::new("-") {
            let (copy, again) = (keeping.copy().to_path_buf(), stdin_again());
            return Ok(InputSource { again, ..stream(follow(Box::new(io::stdin()), keeping, None)?, copy) });
        }
        let given = self.cwd.join(path);
        let mut file = File::open(&given)?;
        let known = file.metadata()?;
        if self.resumed {
            self.notes.push(format!(
                "{}: the run has no copy of this input, so homing cannot detect changes in it",
                path.display()
            ));
        }
        let copy = keeping.copy().to_path_buf();
        if !known.is_file() || known.len() > HELD_FILE {
            let again = known.is_file().then_some(given);
            return Ok(InputSource { again, ..stream(follow(Box::new(file), keeping, None)?, copy) });
        }
        copy_all(&mut file, &mut keeping)?;
        keeping.end().map_err(not_kept)?;
        let again = Some(copy.clone());
        Ok(InputSource { from: Box::new(BufReader::new(File::open(&copy)?)), hold: true, again, copy: Some(copy) })
    }

    /// Opens an input whose end was read before.
    fn whole(&mut self, path: &Path, name: &str, kept: &EarlierInput) -> io::Result<InputSource> {
        if let Some(said) = self.difference(path, kept) {
            let kept = kept.copy.display();
            self.notes.push(format!("{} {said}; the tasks use its earlier content, kept in {kept}", path.display()));
        }
        let hold = name != STDIN && kept.length <= HELD_FILE;
        let from = Box::new(BufReader::new(File::open(&kept.copy)?));
        let copy = Some(kept.copy.clone());
        Ok(InputSource { from, hold, again: copy.clone(), copy })
    }

    /// Returns how a file differs from the copy that the run has read.
    fn difference(&self, path: &Path, kept: &EarlierInput) -> Option<&'static str> {
        if path == Path::new("-") {
            return None;
        }
        match self.cwd.join(path).metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Some("was removed after the run read it"),
            // A pipe cannot be compared.
            Ok(known) if !known.is_file() => None,
            _ => {
                let same = self.again(path).zip(File::open(&kept.copy).ok());
                let same = same.is_some_and(|(mut now, mut then)| is_same(&mut now, &mut then).unwrap_or(false));
                (!same).then_some("has changed since the run read it")
            }
        }
    }

    /// Opens an input of which only the beginning was read before.
    fn partial(&mut self, path: &Path, kept: EarlierInput) -> io::Result<InputSource> {
        let Some(source) = self.again(path) else {
            let cut = Cut { known: kept.length, why: "it cannot be read again" };
            let known = File::open(&kept.copy)?;
            return Ok(stream(known.chain(cut), kept.copy));
        };
        if path == Path::new("-") {
            let text = "the run was interrupted while it read its input; now standard input must provide the whole \
                input again (/dev/null: run only the known tasks)";
            self.notes.push(text.into());
        }
        let (keeping, copy) = (Keeping::go_on(&kept).map_err(not_kept)?, kept.copy.clone());
        let again = Some(self.cwd.join(path)).filter(|file| path != Path::new("-") && file.is_file());
        Ok(InputSource { again, ..stream(follow(source, keeping, Some(kept))?, copy) })
    }
}

impl homing_batch::InputOpener for RunInputs {
    fn open(&mut self, path: &Path) -> io::Result<InputSource> {
        let name = self.name(path);
        let kept = if self.resumed { homing_journal::kept(&self.dir, &name) } else { Ok(None) };
        match kept.map_err(io::Error::other)? {
            None => self.first(path, &name),
            Some(kept) if kept.whole => self.whole(path, &name, &kept),
            Some(kept) => self.partial(path, kept),
        }
    }
}

/// The input sources of a run from its copies, for a reader of the run. It makes no copies, and reads nothing from
/// standard input.
pub struct KeptInputs {
    cwd: PathBuf,
    dir: PathBuf,
    files: usize,
}

impl KeptInputs {
    /// `cwd`: where relative names begin; `dir`: the run's folder.
    pub fn new(cwd: &Path, dir: &Path) -> KeptInputs {
        KeptInputs { cwd: cwd.into(), dir: dir.into(), files: 0 }
    }
}

impl homing_batch::InputOpener for KeptInputs {
    fn open(&mut self, path: &Path) -> io::Result<InputSource> {
        let mut inputs = RunInputs { files: self.files, ..RunInputs::new(&self.cwd, &self.dir, true) };
        let name = inputs.name(path);
        self.files = inputs.files;
        let kept = homing_journal::kept(&self.dir, &name).map_err(io::Error::other)?;
        let kept = kept.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the run has no copy of it"))?;
        inputs.whole(path, &name, &kept)
    }
}

/// Whether standard input is /dev/null. Programs without an input get it, so its end is not the end of the input that
/// was cut off.
fn stdin_is_null() -> bool {
    let null = rustix::fs::makedev(1, 3);
    rustix::fs::fstat(io::stdin()).is_ok_and(|s| {
        rustix::fs::FileType::from_raw_mode(s.st_mode) == rustix::fs::FileType::CharacterDevice && s.st_rdev == null
    })
}

fn stream(from: impl Read + Send + 'static, copy: PathBuf) -> InputSource {
    InputSource { from: Box::new(BufReader::with_capacity(64 << 10, from)), hold: false, again: None, copy: Some(copy) }
}

fn copy_all(from: &mut impl Read, keeping: &mut Keeping) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => keeping.add(&piece[..n]).map_err(not_kept)?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Returns the exit status for a batch that cannot be read. If the kept input of a run is damaged, cut or refused by
/// the disk, the request of the user is not at fault.
pub fn status_of(error: &BatchError) -> i32 {
    let (BatchError::Open { source, .. } | BatchError::Read { source, .. }) = error else { return exit::USAGE };
    let kept = |e: &(dyn Error + Send + Sync + 'static)| e.is::<Cut>() || e.is::<NotKept>() || e.is::<JournalError>();
    if source.get_ref().is_some_and(kept) { exit::SYSTEM } else { exit::USAGE }
}
