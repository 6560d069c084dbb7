//! Which task waits for which. Resolves names and files to numbers, finds circles, and determines which tasks may run
//! when another has ended. Pure: no clock, no I/O, and no commands.

mod circle;
mod makers;
mod order;
mod waits;

pub use circle::circle;
pub use makers::{Clash, Maker, Makers, Other, UnknownTask, plain};
pub use order::in_order;
pub use waits::{TaskEndEffect, TaskReadiness, TaskWaits};
