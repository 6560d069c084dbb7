//! A change of a host: from an observed state to another. Its undo is the same change, reversed.

use crate::content::FileContent;
use serde::{Deserialize, Serialize};

/// A regular file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its bytes.
    pub content: FileContent,
    /// Permissions, without the file's type.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A line of the user database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    pub home: String,
    pub shell: String,
}

/// A unit of systemd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// Whether it is started at boot.
    pub enabled: bool,
    /// Whether it runs.
    pub active: bool,
}

/// A mount point of fstab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountState {
    /// Whether the folder exists.
    pub exists: bool,
    /// Whether something is mounted on it.
    pub mounted: bool,
}

/// The mount over a folder that is not empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// The copy of the folder that replaces it.
    pub copy: String,
    /// Whether the copy is of this host, and is updated before the mount.
    pub is_source: bool,
}

/// A file system on a whole disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFs {
    /// Its type: `ext4`, `xfs`.
    pub kind: String,
    /// The UUID by which it is mounted.
    pub uuid: String,
}

/// The way to make a unit read its files again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Its service continues.
    Reload,
    /// The unit is stopped and started.
    Restart,
}

/// One change of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum HostChange {
    /// A file. With `block`, only the text between the markers of that name is homing's.
    File {
        path: String,
        from: Option<FileState>,
        to: Option<FileState>,
        block: Option<String>,
    },
    /// A group's number.
    Group {
        name: String,
        from: Option<u32>,
        to: Option<u32>,
    },
    User {
        name: String,
        from: Option<Account>,
        to: Option<Account>,
    },
    /// Whether a user is in a group besides the user's own one.
    Member {
        user: String,
        group: String,
        from: bool,
        to: bool,
    },
    Unit {
        name: String,
        from: UnitState,
        to: UnitState,
    },
    /// A unit reads its files again, after `test` has found no fault in them.
    Nudge {
        unit: String,
        how: How,
        test: Option<String>,
    },
    /// A value of the running kernel.
    Sysctl {
        key: String,
        from: String,
        to: String,
    },
    /// A setting of a network interface, by its name in [`crate::InterfaceSettings`].
    Link {
        interface: String,
        setting: String,
        from: String,
        to: String,
    },
    /// The name of the running kernel.
    Hostname {
        from: String,
        to: String,
    },
    /// A mount by its line in fstab.
    Mount {
        point: String,
        from: MountState,
        to: MountState,
        /// Only while no process uses the folder.
        #[serde(default)]
        over: Option<Over>,
        /// Whether it is a disk of the host itself.
        #[serde(default)]
        disk: bool,
    },
    /// A disk that holds nothing to be kept. `name` and `id` come first: a host finds the id by the name again.
    Disk {
        name: String,
        /// The maker's identifier of it.
        id: String,
        from: Option<DiskFs>,
        to: Option<DiskFs>,
        /// Its model and size, for people.
        told: String,
        /// Its content, which is erased.
        erases: String,
        /// The hash of all observed facts of it.
        facts: String,
    },
    /// A tree with all attributes of its files, compared byte by byte. There is no undo: the copy may be the newer
    /// one by now.
    Copy {
        from: String,
        to: String,
        /// The host on which it is made.
        host: String,
    },
    /// A package that is installed; packages of `replaces` may be removed for it. There is no undo: other packages
    /// may need it by now.
    Package {
        name: String,
        replaces: Vec<String>,
    },
}

impl HostChange {
    /// Names the thing that is changed, whatever the change is.
    pub fn thing(&self) -> String {
        match self {
            HostChange::File { path, .. } => path.clone(),
            HostChange::Group { name, .. } => format!("group {name}"),
            HostChange::User { name, .. } => format!("user {name}"),
            HostChange::Member { user, group, .. } => format!("{user} in group {group}"),
            HostChange::Unit { name, .. } => format!("unit {name}"),
            HostChange::Nudge { unit, .. } => format!("files of unit {unit}"),
            HostChange::Sysctl { key, .. } => format!("sysctl {key}"),
            HostChange::Link { interface, setting, .. } => format!("{setting} of {interface}"),
            HostChange::Hostname { .. } => "hostname".into(),
            HostChange::Mount { point, .. } => format!("mount {point}"),
            HostChange::Disk { name, id, .. } if id.is_empty() => format!("disk {name}"),
            HostChange::Disk { name, id, .. } => format!("disk {name} ({id})"),
            HostChange::Copy { from, to, .. } => format!("copy of {from} in {to}"),
            HostChange::Package { name, .. } => format!("package {name}"),
        }
    }

    /// Describes the change while it is made: "installing tree".
    pub fn action(&self) -> String {
        let thing = self.thing();
        let way = |is_new: bool| if is_new { "adding" } else { "removing" };
        match self {
            HostChange::File { from: None, .. } => format!("writing {thing}"),
            HostChange::File { to: None, .. } => format!("removing {thing}"),
            HostChange::File { .. } => format!("changing {thing}"),
            HostChange::Group { to, .. } => format!("{} {thing}", way(to.is_some())),
            HostChange::User { to, .. } => format!("{} {thing}", way(to.is_some())),
            HostChange::Member { to, .. } => format!("{} {thing}", way(*to)),
            HostChange::Unit { to, .. } => format!("{} {thing}", if to.active { "starting" } else { "stopping" }),
            HostChange::Nudge { unit, how: How::Reload, .. } => format!("reloading unit {unit}"),
            HostChange::Nudge { unit, .. } => format!("restarting unit {unit}"),
            HostChange::Sysctl { to, .. } | HostChange::Link { to, .. } => format!("setting {thing} = {to}"),
            HostChange::Hostname { to, .. } => format!("setting {thing} {to}"),
            HostChange::Mount { point, to, .. } => {
                format!("{} {point}", if to.mounted { "mounting" } else { "unmounting" })
            }
            HostChange::Disk { to: Some(_), .. } => format!("preparing {thing}"),
            HostChange::Disk { .. } => format!("removing the empty file system of {thing}"),
            HostChange::Copy { from, to, .. } => format!("copying {from} to {to}"),
            HostChange::Package { name, .. } => format!("installing {name}"),
        }
    }

    /// Describes the change in a few words, for people.
    pub fn description(&self) -> String {
        let thing = self.thing();
        match self {
            HostChange::File { from, to, block, .. } => match (from, to, block) {
                (None, _, _) => format!("{thing}: written"),
                (_, None, _) => format!("{thing}: removed"),
                (Some(from), Some(to), Some(block)) => {
                    let has = |state: &FileState| {
                        state.content.text().is_some_and(|text| crate::edit::block_of(text, block).is_some())
                    };
                    let what = match (has(from), has(to)) {
                        (false, true) => "added",
                        (true, false) => "removed",
                        _ => "changed",
                    };
                    format!("{thing}: block {block} {what}")
                }
                _ => format!("{thing}: changed"),
            },
            HostChange::Group { to: Some(gid), .. } => format!("{thing} with number {gid}"),
            HostChange::User { to: Some(account), .. } => format!("{thing} with number {}", account.uid),
            HostChange::Group { .. } | HostChange::User { .. } => format!("{thing}: removed"),
            HostChange::Member { to, .. } => {
                if *to {
                    thing
                } else {
                    format!("{thing}: removed")
                }
            }
            HostChange::Unit { to, .. } => {
                let boot = if to.enabled { "started at boot" } else { "not started at boot" };
                format!("{thing}: {boot}, {}", if to.active { "runs" } else { "stopped" })
            }
            HostChange::Nudge { unit, how: How::Reload, .. } => format!("unit {unit}: reloaded"),
            HostChange::Nudge { unit, .. } => format!("unit {unit}: restarted"),
            HostChange::Sysctl { to, .. } | HostChange::Link { to, .. } => format!("{thing} = {to}"),
            HostChange::Hostname { to, .. } => format!("{thing} {to}"),
            HostChange::Mount { to, .. } => {
                if to.mounted {
                    thing
                } else {
                    format!("{thing}: unmounted")
                }
            }
            HostChange::Disk { name, from: Some(_), to: Some(fs), told, .. } => {
                format!("disk {name} ({told}): the {} that homing made on it is kept", fs.kind)
            }
            HostChange::Disk { name, to: Some(fs), told, erases, .. } => {
                let erased =
                    if erases.is_empty() { String::new() } else { format!("EVERYTHING ON IT IS ERASED ({erases}), ") };
                format!("disk {name} ({told}): {erased}{} is made", fs.kind)
            }
            HostChange::Disk { .. } => format!("{thing}: its empty file system is removed"),
            HostChange::Copy { .. } => format!("{thing}: made and compared"),
            HostChange::Package { .. } => format!("{thing}: installed"),
        }
    }

    /// Returns the change that undoes it; `None` if there is none.
    pub fn inverse(&self) -> Option<HostChange> {
        let mut back = self.clone();
        match &mut back {
            HostChange::File { from, to, .. } => std::mem::swap(from, to),
            HostChange::Group { from, to, .. } => std::mem::swap(from, to),
            HostChange::User { from, to, .. } => std::mem::swap(from, to),
            HostChange::Member { from, to, .. } => std::mem::swap(from, to),
            HostChange::Unit { from, to, .. } => std::mem::swap(from, to),
            HostChange::Sysctl { from, to, .. }
            | HostChange::Link { from, to, .. }
            | HostChange::Hostname { from, to } => {
                std::mem::swap(from, to);
            }
            HostChange::Mount { from, to, .. } => std::mem::swap(from, to),
            HostChange::Disk { from, to, .. } => std::mem::swap(from, to),
            HostChange::Nudge { .. } | HostChange::Package { .. } | HostChange::Copy { .. } => return None,
        }
        Some(back)
    }

    /// Whether it would change nothing.
    pub fn is_nothing(&self) -> bool {
        self.inverse().is_some_and(|back| back == *self)
    }
}
