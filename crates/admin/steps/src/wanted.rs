//! The wanted state of a host, one thing at a time.

use crate::change::{Account, DiskFs, How, Over};
use crate::content::FileContent;

/// One thing that is wanted of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRequirement {
    /// A package that is installed; packages of `replaces` may be removed for it.
    #[allow(missing_docs)]
    Package { name: String, replaces: Vec<String> },
    /// A file with these bytes; `owner` has the numbers of its user and group.
    #[allow(missing_docs)]
    File { path: String, content: FileContent, mode: u32, owner: (u32, u32) },
    /// These lines between markers of that name, and lines elsewhere in the file that are disabled.
    #[allow(missing_docs)]
    Block { path: String, name: String, lines: String, retire: Vec<String> },
    /// A group with this number.
    #[allow(missing_docs)]
    Group { name: String, gid: u32 },
    /// A user with this number; an existing user keeps home and shell.
    #[allow(missing_docs)]
    User { name: String, account: Account },
    /// A user's membership in a group.
    #[allow(missing_docs)]
    Member { user: String, group: String },
    /// A unit that runs and is started at boot, or neither.
    #[allow(missing_docs)]
    Unit { name: String, on: bool },
    /// A unit that is started at boot; whether it runs now stays.
    AtBoot(String),
    /// A unit that has read these files since they were changed.
    #[allow(missing_docs)]
    Reads { unit: String, paths: Vec<String>, how: How, test: Option<String> },
    /// A value of the running kernel; its file is a separate thing.
    #[allow(missing_docs)]
    Sysctl { key: String, value: String },
    /// A setting of a network interface, until the interface is recreated.
    #[allow(missing_docs)]
    Link { interface: String, setting: String, value: String },
    /// The name of the running kernel.
    Hostname(String),
    /// A mount by its line in fstab, which is a separate thing. It hides files only if `over` names their
    /// replacement. `disk`: it is of a disk of the host itself.
    #[allow(missing_docs)]
    Mount { point: String, over: Option<Over>, disk: bool },
    /// A file system on a whole disk that is blank, or whose id `wipe` names.
    #[allow(missing_docs)]
    Disk { name: String, fs: DiskFs, wipe: Option<String> },
    /// A copy of a tree that is missing or incomplete.
    #[allow(missing_docs)]
    Copy { from: String, to: String, host: String },
}

impl HostRequirement {
    /// Makes a file that belongs to root and that all users may read.
    pub fn file(path: &str, content: impl Into<FileContent>) -> HostRequirement {
        HostRequirement::File { path: path.into(), content: content.into(), mode: 0o644, owner: (0, 0) }
    }
}
