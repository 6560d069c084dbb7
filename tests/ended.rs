//! The end of a task in a journal, for tests of programs that read it.

use homing_model::event::EventKind;
use homing_model::{IoCounters, IoWait, Outcome, TaskId};

/// The end of an attempt. By default it is the first and last attempt, succeeds on n1 and uses nothing.
pub struct End {
    pub task: TaskId,
    pub host: String,
    pub outcome: Outcome,
    pub start_ns: i64,
    pub wall_us: u64,
    pub io: IoCounters,
    pub io_wait: Option<IoWait>,
    /// Bytes of both outputs.
    pub printed: [u64; 2],
    pub said: Option<String>,
    pub ran: Option<u64>,
}

impl Default for End {
    fn default() -> End {
        let (io, io_wait, printed, said, ran) = Default::default();
        let (task, host, outcome) = (1, "n1".into(), Outcome::Exit(0));
        End { task, host, outcome, start_ns: 0, wall_us: 0, io, io_wait, printed, said, ran }
    }
}

impl From<End> for EventKind {
    fn from(ended: End) -> EventKind {
        let End { task, host, outcome, start_ns, wall_us, io, io_wait, printed, said, ran } = ended;
        let ([stdout_bytes, stderr_bytes], attempt, last) = (printed, 1, true);
        EventKind::TaskEnded {
            task,
            attempt,
            host,
            outcome,
            start_ns,
            wall_us,
            io,
            io_wait,
            stdout_bytes,
            stderr_bytes,
            said,
            last,
            ran,
        }
    }
}
