//! Services of the operating system, each with one owner.
//!
//! | module | owns |
//! |---|---|
//! | [`clock`] | the monotonic clock for decisions, wall time for records |
//! | [`folder`] | folders of one user in a place for all, locks on files, files written whole, a reserve of disk space |
//! | [`names`] | users, groups, homes, addresses of hosts, the words of ssh, the variables that travel with a task |
//! | [`process`] | the processes that one started: found, signalled and ended to the last one, also by a guard |
//! | [`threads`] | threads where the system may refuse one more |
//!
//! It does not: parse what users write (`model`), read mount tables (`mounts`), measure a host (`probe`), or keep leases
//! (`lease`). `process` is for Linux; the rest also compiles for macOS and FreeBSD.

pub mod clock;
pub mod folder;
pub mod names;
#[cfg(target_os = "linux")]
pub mod process;
pub mod threads;

#[cfg(test)]
#[path = "../../../../tests/script.rs"]
mod script;
