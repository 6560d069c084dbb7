//! A build whose recipes run on many hosts. What decides is pure: which host
//! gets a recipe (`place`, `order`), which changes it must see before it starts
//! (`changes`), which recipes it waited for (`chains`), what is told while it goes on (`told`) and at the end (`evidence`). Around that are one loop
//! that knows the hosts and recipes (`core`), what it asks of file systems here
//! (`near`), and the threads that bring it news ([`Session`]). How make hands its recipes over is in [`hook`].
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
mod running;
mod seen;
mod session;
mod told;
mod trace;
mod words;

pub use build::Build;
pub use changes::ChangeLog;
pub use evidence::{Evidence, Ran};
pub use missing::missing_files;
pub use order::{order, room};
pub use place::{Candidate, Choice, Why, choose};
pub use seen::Seen;
pub use session::{Asker, Session, Traffic};
pub use told::Listener;
pub use trace::trace;
pub use words::{Recipe, Step, file_words, folders_named, runs_make, runs_on, text_of};
