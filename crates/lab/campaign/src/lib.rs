//! Faults at random against whole runs. A seed makes a run and its faults. `homing resume` continues the run until
//! all tasks are done. A model of a few lines reports whether anything is wrong.
//!
//! The method is that of Jepsen. The campaign kills and stops processes, sets clocks, fills disks, cuts links and
//! damages journals. Hostile neighbours act as well, and all of it is mixed and comes at random moments. The same
//! seed makes the same plan. The moments at which it meets the processes differ with the machine, so a failure is
//! repeated with its seed several times. Most seeds play a short scene beside their run, in [`surface`]: a neighbour,
//! a clock, a shell, a bank, a destination.
//!
//! A *deed* is one fault, a *stroke* a deed with its moment ([`scenario`]); `nemesis` carries them out. The *beats* of
//! a task are the begin and end of each of its executions, by a clock that no deed sets. To add a fault, add a deed to
//! [`scenario`] and its action to `nemesis`.
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
pub use place::CampaignEnvironment;
pub use summary::Summary;
