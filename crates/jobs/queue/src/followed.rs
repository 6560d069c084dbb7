//! A job that is waited for, and what it prints, as it grows.

use crate::{Engine, Job, Part, QueueError};
use homing_model::Failure;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Looks at a job, or one element of it, until that is over; the job as it was at the last look. What `seen` does at a
/// look comes before it is asked whether that was the last: nothing that was printed before the end is missed.
pub fn until_over<E: From<QueueError>>(
    engine: &dyn Engine,
    id: u64,
    index: Option<u32>,
    mut seen: impl FnMut(&Job) -> Result<(), E>,
) -> Result<Job, E> {
    loop {
        let job = engine.job(id)?;
        seen(&job)?;
        if job.is_over(index) {
            return Ok(job);
        }
        std::thread::sleep(engine.pace());
    }
}

/// A file that grows, as far as it was copied.
pub struct Followed {
    path: PathBuf,
    at: u64,
}

impl Followed {
    /// What an element writes: its output, and its errors where they go elsewhere.
    pub fn all(job: &Job, part: &Part) -> Vec<Followed> {
        job.outputs(part).iter().map(|path| Followed::new(path)).collect()
    }
    /// From its beginning.
    fn new(path: &Path) -> Followed {
        Followed { path: path.to_path_buf(), at: 0 }
    }
    /// Copies what is new to standard output.
    pub fn copy(&mut self) -> Result<(), Failure> {
        self.copy_to(&mut std::io::stdout())
    }
    /// Copies what is new to there.
    pub fn copy_to(&mut self, to: &mut dyn Write) -> Result<(), Failure> {
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.at))?;
            file.read_to_end(&mut text)
        });
        match read {
            // Not made yet.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Failure::system(format!("cannot read {}: {e}", self.path.display()))),
            Ok(_) => {}
        }
        self.at += text.len() as u64;
        to.write_all(&text).and_then(|()| to.flush()).map_err(Failure::system)
    }
}
