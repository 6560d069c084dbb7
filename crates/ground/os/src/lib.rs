//! Services of the operating system, each with one owner.
//!
//! | module | owns |
//! |---|---|
//! | [`clock`] | the monotonic clock for decisions, wall time for records. |
//! | [`folder`] | folders of one user in shared places, locks on files, files written whole, a reserve of disk space. |
//! | [`names`] | users, groups, homes, names of this machine, the command of ssh, variables that travel with a task. |
//! | [`process`] | descendants of a process: finds, signals and ends all of them, also by a guard. |
//! | [`threads`] | threads, on systems that may refuse one more. |
//!
//! It does not: parse the input of users (`model`), read mount tables (`mounts`), measure a host (`probe`), or keep
//! leases (`lease`). `process` is for Linux; the rest also compiles for macOS and FreeBSD.

pub mod clock;
pub mod folder;
pub mod names;
#[cfg(target_os = "linux")]
pub mod process;
pub mod threads;

#[cfg(test)]
#[path = "../../../../tests/script.rs"]
mod script;
#[cfg(test)]
#[path = "../../../../tests/until.rs"]
mod until;
