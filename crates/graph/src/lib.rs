//! Which task waits for which: names and files to numbers, circles, and who
//! may run when another has ended. Pure: no clock, no I/O, and no commands.

mod circle;
mod makers;
mod waits;

pub use circle::circle;
pub use makers::{Clash, Maker, Makers, Other, Unknown};
pub use waits::{Ended, Place, Waits};
