//! A build whose recipes run on many hosts. The decisions are pure. They choose the host of a recipe (`place`,
//! `order`). They find the changes that it must see before it starts (`changes`), and the recipes that it waited for
//! (`chains`). The events of the build ([`Listener`]) and its summary (`evidence`) are pure, too. Around them is one
//! loop that knows the hosts and recipes (`core`). `near` queries the file systems here, and threads bring the loop
//! its messages ([`Session`]). Make passes its recipes on by [`hook`].
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
pub use place::{Candidate, Choice, Why, choose};
pub use reporter::Listener;
pub use seen::Seen;
pub use session::{Asker, Session, Traffic};
pub use trace::trace;
pub use words::{Recipe, Step, file_words, folders_named, runs_make, runs_on, text_of};
