//! Waits for a job and copies its output as it grows.

use crate::{Engine, Job, JobElement, QueueError};
use homing_model::Failure;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Looks at a job, or one element of it, until it is over; returns the job as at the last look. `seen` runs at each
/// look before the check for the end, so no output from before the end is missed.
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

/// A growing file, with the offset up to which it was copied.
pub struct Followed {
    path: PathBuf,
    at: u64,
}

impl Followed {
    /// Returns the files that an element writes: its output, and its errors if they go elsewhere.
    pub fn all(job: &Job, part: &JobElement) -> Vec<Followed> {
        job.outputs(part).iter().map(|path| Followed::new(path)).collect()
    }
    /// Follows a file from its beginning.
    fn new(path: &Path) -> Followed {
        Followed { path: path.to_path_buf(), at: 0 }
    }
    /// Copies new content to standard output.
    pub fn copy(&mut self) -> Result<(), Failure> {
        self.copy_to(&mut std::io::stdout())
    }
    /// Copies new content to `to`.
    pub fn copy_to(&mut self, to: &mut dyn Write) -> Result<(), Failure> {
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.at))?;
            file.read_to_end(&mut text)
        });
        match read {
            // The file does not exist yet.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Failure::system(format!("cannot read {}: {e}", self.path.display()))),
            Ok(_) => {}
        }
        self.at += text.len() as u64;
        to.write_all(&text).and_then(|()| to.flush()).map_err(Failure::system)
    }
}
