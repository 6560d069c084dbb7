//! Ends all processes that a process started, watches a process by a guard, and sets limits for its children. It also
//! writes to a standard error that may be closed, and explains why a program does not start.

mod ask;
mod bound;
mod files;
mod guard;
mod hook;
mod say;
mod script;
mod stat;
mod sweep;
mod tree;
mod umask;

pub use ask::{ended_within, run_shell};
pub use bound::bound_to_thread;
pub use files::{give_back_files, raise_files, users_files};
pub use guard::{GuardReport, GuardRules, Guarded, guarded, guarded_to_the_end};
pub use hook::run_hook;
pub use say::write_error;
pub use script::{SHELL, become_program, before_script, is_on_path, is_program, is_shell_script, refusal};
pub use stat::ProcessStat;
pub use sweep::{REMOVER, become_subreaper, reap_orphans, sweep};
pub use tree::{children, descendants, resident, resident_below, signal};
pub use umask::umask;
