//! Faults at random against whole runs: a seed makes a run and what befalls
//! it, `homing resume` takes it up until all is done, and a model of a few
//! lines says whether anything is wrong.
//!
//! As Jepsen does it: processes are killed and stopped, clocks set, disks
//! filled, links cut, journals damaged, and neighbours are hostile, mixed and
//! at random moments. The same seed makes the same plan; the moments at which
//! it meets the processes differ with the machine, so a failure is repeated
//! with its seed several times. Most seeds play a short scene beside their run,
//! in [`surface`]: a neighbour, a clock, a shell, a bank, a destination.
//!
//! It does not: measure speed, or belong to the program that users install.

pub mod drive;
pub mod journal;
mod many;
pub mod model;
mod nemesis;
mod observe;
pub mod place;
mod processes;
mod random;
pub mod scenario;
pub mod summary;
pub mod surface;

pub use drive::run_seed;
pub use many::campaign;
pub use place::Place;
pub use summary::Summary;
