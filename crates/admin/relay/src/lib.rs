//! Passes things from some hosts on to others: files and scripts along a tree, and packages that one host has
//! fetched.
//!
//! Main types: [`Passed`] is an errand that leaders carry out, [`patiently`] runs one command on all hosts until a
//! deadline. [`CopyResult`] is the result of a copy, [`Packages`] are those that hosts lack.
//!
//! It does not: open connections or build the tree (`exec`), or decide which packages a host needs (`setup`).

mod bring;
mod came;
mod copied;
mod errand;
mod folder;
mod host;
mod indexes;
mod packages;
mod patient;
mod rsync;
mod template;
mod transfer;

pub use bring::{DeliveryRequest, Unbrought, bring};
pub use came::{Fetched, PackageReport};
pub use copied::{CopyResult, HostLine, collected};
pub use errand::{Passed, along, copies, given_by, note};
pub use host::host;
pub use indexes::bring as indexes;
pub use packages::{Packages, lacking, query_packages, say_what};
pub use patient::{QueryState, Watcher, patiently};
pub use rsync::{RsyncRequest, base, same_name};
pub use template::written;
pub use transfer::{Fetch, PackagesByHost, Sent, TransferReport, fetch_once, send};
