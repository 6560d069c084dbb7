//! Every constant of the controller, with its unit and its source.
//!
//! `cargo run --release -p homing-admit --example ablation` halves and doubles each of them over the simulated
//! devices; a constant without effect has to go.

/// The constants. The default is in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Below this share of the time in which tasks wait for I/O, storage is not the bottleneck.
    pub quiet: f64,
    /// Shortest time between two steps of a slow start, microseconds. A seek of a disk with 7,200 turns per minute
    /// takes 8 ms and shows in the pressure while it lasts.
    pub step_us: u64,
    /// Bytes that each task gets before a step is judged under pressure: 8 ms of a disk that streams 120 MB/s.
    pub step_bytes: f64,
    /// Looks before a step is judged under pressure: the kernel of a client reads data ahead before its program gets
    /// it.
    pub looks: u64,
    /// Longest wait, microseconds, for programs to begin before a step without pressure. The step otherwise waits
    /// until tasks have read `step_bytes` or half of their inputs. Python with its libraries begins in a tenth of a
    /// second, and R in two tenths.
    pub starts_us: u64,
    /// A slow start goes back at once if twice as many tasks are served less than this share of the rate before.
    pub plain: f64,
    /// Time for which it measures a rate between the two bounds, microseconds. A task of a batch that is worth a
    /// limit takes about as long.
    pub vain_us: u64,
    /// Factor by which another number must serve more than the best: rates of one number differ by 5 % from second to
    /// second.
    pub gain: f64,
    /// Shortest time over which the search measures, microseconds: three looks of 40 ms.
    pub measure_us: u64,
    /// Share of the time since the start that trials may cost.
    pub price: f64,
    /// Share of the page cache's room that tasks may fill. The cache also holds the data of tasks that have ended,
    /// until all else is younger.
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
