//! Every constant of the controller, with its unit and where it is from.
//!
//! `cargo run --release -p homing-admit --example ablation` halves and doubles
//! each of them over the simulated devices; one that moves nothing has to go.

/// The constants. The default is what runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Below this share of the time in which tasks wait for I/O, storage is not the bottleneck.
    pub quiet: f64,
    /// Shortest time between two steps of a slow start, microseconds. A seek of a disk that turns
    /// 7,200 times a minute takes 8 ms and shows in the pressure while it lasts.
    pub step_us: u64,
    /// Under pressure a step is judged when each task has got so many bytes: 8 ms of a disk that streams 120 MB/s.
    pub step_bytes: f64,
    /// And after so many looks: what a client's kernel has read ahead is there before its program has it.
    pub looks: u64,
    /// Without pressure not before that, or half of their inputs, but for programs that have not asked for them so
    /// long after they began, microseconds: Python with its libraries begins in a tenth of a second, and R in two.
    pub starts_us: u64,
    /// It goes back at once where twice as many are served less than this share.
    pub plain: f64,
    /// In between it measures for so long, microseconds: a task of a batch that is worth a limit takes about as long.
    pub vain_us: u64,
    /// Another number must serve this much more than the best: rates of one number differ by 5 % from second to second.
    pub gain: f64,
    /// Shortest time over which the search measures, microseconds: three looks of 40 ms.
    pub measure_us: u64,
    /// Trials may cost this share of the time since the start.
    pub price: f64,
    /// Tasks may fill this share of the page cache's room, since it also holds what those that ended
    /// have read, until all else is younger.
    pub filled: f64,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            quiet: 0.10,
            step_us: 4_000,
            step_bytes: 1e6,
            looks: 2,
            starts_us: 250_000,
            plain: 0.6,
            vain_us: 1_000_000,
            gain: 1.25,
            measure_us: 120_000,
            price: 0.03,
            filled: 0.4,
        }
    }
}
