//! Processes as a whole: all that one of them started, ended to the last one,
//! and a guard that does so when that one cannot do it itself any more. And what
//! it may have open, and say when nobody may hear it.

mod ask;
mod bound;
mod files;
mod guard;
mod say;
mod sweep;
mod tree;
mod umask;

pub use ask::{ask, ended_within};
pub use bound::bound_to_thread;
pub use files::{give_back_files, raise_files, users_files};
pub use guard::{End, Guarded, Terms, guarded, guarded_to_the_end};
pub use say::write_error;
pub use sweep::{become_subreaper, bury, sweep};
pub use tree::{children, descendants, resident, signal};
pub use umask::umask;
