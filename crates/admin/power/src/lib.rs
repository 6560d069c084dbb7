//! Which idle hosts may be switched off, and which of those that are off are to be switched on.
//!
//! A host answers [`SCRIPT`], and [`Seen::read`] tells from it what is at work there. [`save()`] takes what all hosts
//! said, what was [`Known`] of them before and the [`Rules`] of the site, and tells of each what becomes of it. Nothing
//! here asks a host or a clock.
//!
//! It does not: switch a host. The program runs the commands of `[power]`, and `launch` waits for hosts that start.

mod known;
mod save;
mod seen;
mod wake;
mod words;
mod work;

pub use known::{Known, Since};
pub use save::{Answer, Becomes, Rules, save};
pub use seen::{SCRIPT, Seen};
pub use wake::needed;
pub use words::{HERE, hindered, json, noteworthy, text};
pub use work::Work;
