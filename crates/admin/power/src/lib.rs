//! Decides which idle hosts may be switched off, and which hosts are to be switched on.
//!
//! A host runs [`SCRIPT`], and [`HostActivity::read`] derives its work from the output. [`save()`] takes the answers of
//! all hosts, the earlier [`PowerFacts`] and the [`Rules`] of the site, and returns the fate of each host. A host that
//! does not answer is left alone. Nothing here queries a host or a clock.
//!
//! It does not: switch a host. The program runs the commands of `[power]`, and `launch` waits for hosts that start.

mod known;
mod save;
mod seen;
mod wake;
mod words;
mod work;

pub use known::{PowerFacts, Since};
pub use save::{ActivityResult, Becomes, Rules, save};
pub use seen::{HostActivity, SCRIPT};
pub use wake::needed;
pub use words::{HERE, hindered, json, noteworthy, text};
pub use work::Work;
