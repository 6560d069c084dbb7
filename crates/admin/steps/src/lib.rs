//! Sets hosts up, with a plan first and an undo.
//!
//! [`plan()`] compares the wanted state of a host ([`HostRequirement`]s) with its [`Observed`] state, and returns
//! [`ChangeStep`]s. Each step is a [`HostChange`] from the present state to the wanted one; a state that is as wanted
//! needs no step. Planning does no input or output.
//!
//! [`carry_out`] runs one script on each host for the steps of a [`ChangePhase`]. Before each step, the host writes
//! the change into its own journal. That journal and the present state of the host are all that [`undo()`] needs.
//! Things that were changed by others since are left alone and reported. A host that is lost in the middle of a phase
//! keeps that journal: the same command continues there. If two processes set up one host, the one whose query came
//! last leads, and the other does nothing there.
//!
//! It does not: know the needs of a cluster (`setup`), or keep records on this machine.

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
mod phase;
mod plan;
mod script;
mod show;
mod summary;
mod undo;
mod wanted;

pub use along::{Along, Led, TreeRunner};
pub use change::{Account, DiskFs, FileState, HostChange, How, MountState, Over, UnitState};
pub use content::FileContent;
pub use disk::DiskFacts;
pub use edit::{begin as block_begin, block_of, retired};
pub use execute::{ChangePhase, Fault, PhaseEvent, carry_out};
pub use executor::{Call, CallResult, Executor, SshExecutor};
pub use guard::Guard;
pub use guarded::Guarded;
pub use home::{HomeCopyState, HomeFolder, Homed};
pub use lasting::{Lasting, lasting, merged};
pub use link::{InterfaceSetting, InterfaceSettings};
pub use lost::Lost;
pub use observe::{FactQuery, MountEntry, Observed, PathState, observe};
pub use phase::guarded;
pub use plan::{ChangeStep, plan};
pub use script::{APT, take_packages};
pub use show::{diff, diff_for_people};
pub use summary::summary;
pub use undo::{Drift, Undone, drift, of_owner, undo};
pub use wanted::HostRequirement;
