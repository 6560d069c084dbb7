//! `bsub -I` on Slurm: srun carries input, output and signals.

use super::Refusal;
use homing_queue::Joined;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Waits until the job has ended; returns its exit status. `submitted` is called as soon as the job has a number.
pub fn wait(joined: Joined, submitted: impl Fn(u64)) -> Result<i32, Refusal> {
    let salloc = Pid::from_raw(joined.process() as i32);
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]) {
        let heeding = homing_os::threads::begin(move || {
            for signal in signals.forever() {
                // A signal of the terminal has reached salloc and srun, too.
                if let (SIGTERM | SIGHUP, Some(salloc)) = (signal, salloc) {
                    let _ = kill_process(salloc, Signal::TERM);
                }
            }
        });
        if let Err(error) = heeding {
            let _ = salloc.map(|salloc| kill_process(salloc, Signal::TERM));
            return Err(super::not_submitted(format!("cannot listen to signals: {error}")));
        }
    }
    Ok(joined.wait(submitted)?)
}
