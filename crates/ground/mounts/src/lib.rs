//! Reads the mount table of a host and recognizes the kind of each mount. Only this crate knows the types and sources
//! of file systems.
//!
//! Main types: [`MountLine`], a line of the table; [`FileSystemKind`], the one table of file-system types;
//! [`Bounded`], a look at files with a time limit.
//!
//! It does not: find the bytes of a file (`locate`), or mount anything (`volume`).

pub mod ceph;
mod ceph_source;
mod kind;
pub mod nfs;
mod patience;
mod pnfs;
mod shared;
mod source;
mod split;
pub mod sshfs;
mod stats;
mod table;

pub use kind::{FileSystemKind, network_patterns, same_volume, volume_name};
pub use patience::{Bounded, FS_TIMEOUT, LookFunction, Looking, Silent, patiently, silence};
pub use pnfs::pnfs;
pub use shared::{identified, network};
pub use source::{plain_source, server};
pub use split::split;
pub use stats::{Counted, STATS, counted};
pub use table::{MountLine, holding, of_process, parse, read, unescape};
