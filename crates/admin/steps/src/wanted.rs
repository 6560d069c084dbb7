//! What a host is to be like, one thing at a time.

use crate::change::{Account, DiskFs, How, Over};
use crate::content::Content;

/// One thing that is wanted of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is installed; packages of `replaces` may be removed for it.
    #[allow(missing_docs)]
    Package { name: String, replaces: Vec<String> },
    /// A file with these bytes; `owner`: the numbers of its user and group.
    #[allow(missing_docs)]
    File { path: String, content: Content, mode: u32, owner: (u32, u32) },
    /// These lines between markers of that name, and lines elsewhere in the file that are put out of force.
    #[allow(missing_docs)]
    Block { path: String, name: String, lines: String, retire: Vec<String> },
    /// A group with this number.
    #[allow(missing_docs)]
    Group { name: String, gid: u32 },
    /// A user with this number; the home and the shell of one who is there stay.
    #[allow(missing_docs)]
    User { name: String, account: Account },
    /// The user is in the group.
    #[allow(missing_docs)]
    Member { user: String, group: String },
    /// It runs and is started at boot, or neither.
    #[allow(missing_docs)]
    Unit { name: String, on: bool },
    /// It is started at boot; whether it runs now stays.
    AtBoot(String),
    /// The unit has read these files since they were changed.
    #[allow(missing_docs)]
    Reads { unit: String, paths: Vec<String>, how: How, test: Option<String> },
    /// A value of the running kernel; its file is another thing.
    #[allow(missing_docs)]
    Sysctl { key: String, value: String },
    /// A setting of a network interface, until it is made anew.
    #[allow(missing_docs)]
    Link { interface: String, setting: String, value: String },
    /// The name of the running kernel.
    Hostname(String),
    /// Mounted by its line in fstab, which is another thing. What is there is hidden only when it is said what takes its
    /// place. `disk`: it is of a disk of the host's own.
    #[allow(missing_docs)]
    Mount { point: String, over: Option<Over>, disk: bool },
    /// A file system on a whole disk that holds nothing, or whose id `wipe` names.
    #[allow(missing_docs)]
    Disk { name: String, fs: DiskFs, wipe: Option<String> },
    /// A copy of a tree, that is not there or not whole.
    #[allow(missing_docs)]
    Copy { from: String, to: String, host: String },
}

impl Wanted {
    /// A file of root's that all may read.
    pub fn file(path: &str, content: impl Into<Content>) -> Wanted {
        Wanted::File { path: path.into(), content: content.into(), mode: 0o644, owner: (0, 0) }
    }
}
