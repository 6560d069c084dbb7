//! What a command did to files of a shared file system, as one host saw it.

use crate::RawText;
use serde::{Deserialize, Serialize};

/// A file that was made, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Absolute path, the same on all hosts.
    pub path: RawText,
    /// What is there now; `None` when it is gone.
    pub now: Option<Stamp>,
    /// It was made here and nothing of that name had been seen before, so that
    /// no other host can remember an older one.
    pub fresh: bool,
    /// Inode number of what is gone, where its writer knew it: another file of
    /// that name has been made since.
    pub was: Option<u64>,
}

/// By what two hosts tell whether they see the same state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Bytes; 0 for directories, whose size is the file system's own affair.
    pub size: u64,
    /// Inode number: the same for all clients on NFS, GlusterFS and MooseFS, and each client's own on sshfs.
    pub ino: u64,
    /// Time of the last change of content, ns since the epoch.
    pub mtime_ns: i64,
    /// It is a directory.
    pub dir: bool,
}
