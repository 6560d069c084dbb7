//! `homing sub --attach`: prints the output of the job here, and ends the job when this process ends.

use homing_model::{Failure, exit};
use homing_queue::{ElementState, Engine, Followed, JobElement, until_over};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a signal arrived that ends the job. This process ends only after the job.
pub struct EndSignal(Arc<AtomicBool>);

impl EndSignal {
    /// Catches SIGHUP, SIGINT and SIGTERM from now on.
    pub fn listen() -> EndSignal {
        let asked = Arc::<AtomicBool>::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            let _ = signal_hook::flag::register(signal, asked.clone());
        }
        EndSignal(asked)
    }
}

/// Follows the job to its end, and returns its exit status.
pub fn follow(engine: &dyn Engine, id: u64, asked: &EndSignal) -> Result<i32, Failure> {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let mut files: Vec<Followed> = Vec::new();
    let none = || Failure::system(format!("job {id} has no element"));
    let job = until_over(engine, id, None, |job| {
        if asked.0.swap(false, Ordering::Relaxed) {
            engine.kill(job, None, None)?;
        }
        let part = job.parts.first().ok_or_else(none)?;
        if files.is_empty() && part.start.is_some() {
            files = Followed::all(job, part);
        }
        for (nth, file) in files.iter_mut().enumerate() {
            if nth == 0 { file.copy_to(&mut out)? } else { file.copy_to(&mut err)? }
        }
        Ok::<(), Failure>(())
    })?;
    Ok(ended(id, job.parts.first().ok_or_else(none)?))
}

/// Returns the exit status of the job. If something ended the job, prints the reason.
fn ended(id: u64, part: &JobElement) -> i32 {
    match &part.end {
        Some(end) => {
            end.reason.iter().for_each(|why| eprintln!("homing: job {id}: {why}"));
            end.exit
        }
        None => {
            let why =
                if part.state == ElementState::Lost { "it was interrupted" } else { "its exit status is unknown" };
            eprintln!("homing: job {id}: {why}");
            exit::SYSTEM
        }
    }
}
