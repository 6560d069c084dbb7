//! Keeps the queue served as long as this process wants it.

use crate::Embedded;
use homing_model::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause between two looks whether a runner serves the queue; the same as the queue's own.
const LOOK: Duration = Duration::from_millis(100);

/// Ensures that a runner serves the queue while the run lasts: a runner that a task starts would end with the task.
pub struct Tender {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tender {
    /// Begins; it ends when dropped.
    pub fn begin(engine: Embedded) -> Result<Tender, Failure> {
        let ended = Arc::<AtomicBool>::default();
        let seen = ended.clone();
        let tend = move || {
            let mut told = None;
            while !seen.load(Ordering::Relaxed) {
                if let Err(why) = engine.serve()
                    && told.replace(why.to_string()) != Some(why.to_string())
                {
                    homing_os::say!("homing: cannot serve the queue: {why}");
                }
                std::thread::sleep(LOOK);
            }
        };
        let thread = homing_os::threads::begin(tend).map_err(Failure::system)?;
        Ok(Tender { ended, thread: Some(thread) })
    }
}

impl Drop for Tender {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
