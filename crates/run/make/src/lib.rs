//! Runs the recipes of a build on many hosts. GNU make decides which recipe runs when; [`hook`] makes it start a stub
//! in place of each recipe, and the stub hands the recipe to this crate.
//!
//! | modules | do |
//! |---|---|
//! | `place`, `order` | choose the host of a recipe, and the recipe that goes first, pure. |
//! | `changes`, `chains` | find the changes that a recipe must see, and the recipes that it waited for, pure. |
//! | `reporter`, `evidence` | the events of the build, and its summary, pure. |
//! | `core` | the one loop that owns the state of hosts and recipes. |
//! | `near` | queries the file systems of this machine. |
//! | `session` | threads that bring the loop its messages. |
//!
//! The recipes of a lost host run again on other hosts.
//!
//! It does not: parse makefiles, which GNU make does, or run recipes itself (`worker`).

mod asked;
mod build;
mod chains;
mod changes;
mod connection;
mod core;
mod evidence;
pub mod hook;
mod host;
mod missing;
mod near;
mod order;
mod place;
mod reporter;
mod running;
mod seen;
mod session;
mod trace;
mod words;

pub use build::Build;
pub use changes::ChangeLog;
pub use evidence::{Evidence, Ran};
pub use missing::missing_files;
pub use order::{order, room};
pub use place::{Candidate, HostChoice, Why, choose};
pub use reporter::Listener;
pub use seen::BuildSnapshot;
pub use session::{Asker, BuildSession, Traffic};
pub use trace::trace;
pub use words::{RecipeTraits, RecipeWork, file_words, folders_named, runs_make, runs_on, text_of};
