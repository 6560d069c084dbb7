//! Changes that a command made to files of a shared file system, as one host saw them.

use crate::RawText;
use serde::{Deserialize, Serialize};

/// A file that was made, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Absolute path, the same on all hosts.
    pub path: RawText,
    /// The state of the file now; `None` if it was removed.
    pub now: Option<FileStamp>,
    /// Whether the file was made here and its name had never been seen before. Then no other host can remember an
    /// older one.
    pub fresh: bool,
    /// Inode number of the removed file, if its writer knew it and another file of that name has been made since.
    pub was: Option<u64>,
}

/// The attributes by which two hosts check whether they see the same state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Bytes; 0 for directories, because file systems define their sizes differently.
    pub size: u64,
    /// Inode number: the same for all clients on NFS, GlusterFS and MooseFS, and each client's own on sshfs.
    pub ino: u64,
    /// Time of the last change of content, ns since the epoch.
    pub mtime_ns: i64,
    /// Whether it is a directory.
    pub dir: bool,
}
