//! Setting hosts up, with a plan first and a way back.
//!
//! What is [`Wanted`] of a host and what was [`Observed`] of it make [`Step`]s, each a [`Change`] from what is there to
//! what is wanted; nothing is planned that is so already. Planning is pure. One script a host and [`Phase`] carries the
//! steps out ([`carry_out`]); before each, the host writes the change into a journal of its own. That journal, and a
//! look at the host as it is now, are all that [`undo`] needs: what somebody has changed since is left alone and named.
//!
//! It does not: know what a cluster needs (`setup`), or keep records on this machine.

mod along;
mod change;
mod content;
mod disk;
mod disk_change;
mod edit;
mod execute;
mod executor;
mod guard;
mod guarded;
mod home;
mod lasting;
mod link;
mod lost;
mod observe;
mod phase_told;
mod plan;
mod script;
mod show;
mod summary;
mod undo;
mod wanted;

pub use along::{Along, Led, Tree};
pub use change::{Account, Change, DiskFs, FileState, How, MountState, Over, UnitState};
pub use content::Content;
pub use disk::Disk;
pub use edit::{block_of, retired};
pub use execute::{Fault, News, Phase, carry_out};
pub use executor::{Answer, Call, Executor, SshExecutor};
pub use guard::Guard;
pub use guarded::Guarded;
pub use home::{Copied, Home, Homed};
pub use lasting::{Lasting, lasting, merged};
pub use link::{Links, Setting};
pub use lost::Lost;
pub use observe::{MountEntry, Observed, Question, Seen, observe};
pub use phase_told::guarded;
pub use plan::{Step, plan};
pub use script::{APT, take_packages};
pub use show::diff;
pub use summary::summary;
pub use undo::{Undone, drift, undo};
pub use wanted::Wanted;
