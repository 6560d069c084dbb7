//! A worker's program as a leader, which holds the channels to the workers of a branch. It is guarded like a worker.
//! Its children are the processes behind these channels, and the worker of its own host.

use crate::{UNGUARDED, begin, end_all};

/// Serves a branch on standard input and output; returns the exit status.
pub fn lead_stdio() -> i32 {
    let Some(guarded) = begin("leader", "received no message", "its links") else { return UNGUARDED };
    let mut out = std::io::stdout();
    if homing_launch::wire::send_hello(&mut out, &homing_probe::facts()).is_err() {
        return 1;
    }
    let served = homing_launch::serve(std::io::stdin(), out, move || guarded.renew());
    if let Err(error) = &served {
        homing_os::say!("homing: the leader failed: {error}");
    }
    end_all();
    i32::from(served.is_err())
}
