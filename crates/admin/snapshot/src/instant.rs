//! Instant copies of file systems: the kind that a folder can have, and the commands for it.

use homing_model::Mount;
use homing_mounts::FileSystemKind;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::Path;

/// The folder for instant copies, in the root of the volume or subvolume.
pub const FOLDER: &str = ".homing-instant";
/// The beginnings of the names of homing's own folders in the root of a source; they are no data.
pub const OWN: [&str; 2] = [homing_lease::FOLDER, FOLDER];

/// Returns patterns for rsync that leave them out.
pub fn own_patterns() -> [String; 2] {
    OWN.map(|folder| format!("/{folder}*"))
}

/// The kinds of instant copies that the cluster file permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstantPolicy {
    /// Only a kind that costs next to nothing and keeps everything of the source: btrfs.
    #[default]
    Auto,
    /// Also MooseFS, which makes each name of a hard link a file of its own, and XFS, which takes an inode for each
    /// file. Also ZFS, whose commands are from its manual and were never run.
    Any,
    /// None.
    None,
}

/// How an instant copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstantMethod {
    /// A read-only snapshot of the subvolume: one moment for all files.
    Btrfs,
    /// A snapshot of the dataset: one moment for all files.
    Zfs,
    /// `mfsmakesnapshot`: one moment for all files, unless the source is a whole volume.
    MooseFs,
    /// `cp --reflink`: one moment for each file.
    Reflink,
}

impl InstantMethod {
    /// Returns the name for users.
    pub fn name(self) -> &'static str {
        match self {
            InstantMethod::Btrfs => "btrfs",
            InstantMethod::Zfs => "ZFS",
            InstantMethod::MooseFs => "MooseFS",
            InstantMethod::Reflink => "reflink",
        }
    }

    /// Returns the kind that a mount offers; `None`: none, or none that is wanted.
    pub fn of(mount: &Mount, wanted: InstantPolicy) -> Option<InstantMethod> {
        let way = match mount.fstype.as_str() {
            "btrfs" => InstantMethod::Btrfs,
            "zfs" => InstantMethod::Zfs,
            "xfs" => InstantMethod::Reflink,
            _ if FileSystemKind::of(mount) == FileSystemKind::Moose => InstantMethod::MooseFs,
            _ => return None,
        };
        (wanted == InstantPolicy::Any || wanted == InstantPolicy::Auto && way == InstantMethod::Btrfs).then_some(way)
    }

    /// Returns the commands that make a copy of `from`, in order.
    /// `from`: the subvolume's root (btrfs), the dataset's name (ZFS), else folders or files.
    /// `to`: a path that does not exist yet; for ZFS the snapshot's name alone.
    /// With `parts` the path exists, and gets them all.
    pub fn make(self, from: &[&Path], to: &Path, parts: bool) -> Vec<Vec<OsString>> {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let one = |head: Vec<OsString>, from: &Path| [head, vec![from.into(), to.into()]].concat();
        let all = |head: &[&str]| from.iter().map(|from| one(words(head), from)).collect();
        match self {
            InstantMethod::Btrfs => all(&["btrfs", "subvolume", "snapshot", "-r"]),
            InstantMethod::Zfs => {
                from.iter().map(|from| [words(&["zfs", "snapshot"]), vec![named(from, to)]].concat()).collect()
            }
            InstantMethod::MooseFs => all(&["mfsmakesnapshot"]),
            InstantMethod::Reflink if parts => all(&["cp", "-a", "--reflink=always", "--one-file-system", "--"]),
            InstantMethod::Reflink => all(&["cp", "-a", "--reflink=always", "--one-file-system", "-T", "--"]),
        }
    }

    /// Returns the command that removes the copy; `None`: it is removed like any folder.
    pub fn remove(self, from: &Path, to: &Path) -> Option<Vec<OsString>> {
        let words = |words: &[&str], last: OsString| words.iter().map(OsString::from).chain([last]).collect::<Vec<_>>();
        match self {
            InstantMethod::Btrfs => Some(words(&["btrfs", "subvolume", "delete"], to.into())),
            InstantMethod::Zfs => Some(words(&["zfs", "destroy"], named(from, to))),
            InstantMethod::MooseFs => Some(words(&["mfsrmsnapshot"], to.into())),
            InstantMethod::Reflink => None,
        }
    }
}

/// Returns `DATASET@NAME`: without a name `zfs destroy` would destroy the dataset.
fn named(dataset: &Path, name: &Path) -> OsString {
    let mut all = OsString::from(dataset);
    all.push("@homing-");
    all.push(name.file_name().unwrap_or_default());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(fstype: &str, wanted: InstantPolicy) -> Option<InstantMethod> {
        InstantMethod::of(&Mount { point: "/data".into(), fstype: fstype.into(), source: "x:9421".into() }, wanted)
    }

    #[test]
    fn what_loses_or_costs_something_or_was_never_tried_is_taken_only_when_asked_for() {
        assert_eq!(way("btrfs", InstantPolicy::Auto), Some(InstantMethod::Btrfs));
        assert_eq!((way("zfs", InstantPolicy::Auto), way("zfs", InstantPolicy::Any)), (None, Some(InstantMethod::Zfs)));
        assert_eq!(
            (way("fuse.mfs", InstantPolicy::Auto), way("fuse.mfs", InstantPolicy::Any)),
            (None, Some(InstantMethod::MooseFs))
        );
        assert_eq!(
            (way("xfs", InstantPolicy::Auto), way("xfs", InstantPolicy::Any)),
            (None, Some(InstantMethod::Reflink))
        );
        assert_eq!((way("ext4", InstantPolicy::Any), way("btrfs", InstantPolicy::None)), (None, None));
    }

    #[test]
    fn a_dataset_itself_is_never_destroyed() {
        let text = |words: Vec<OsString>| words.join(" ".as_ref()).into_string().unwrap();
        let (set, copy) = (Path::new("tank/home"), Path::new("/tank/home/.homing-instant/0af"));
        assert_eq!(text(InstantMethod::Zfs.make(&[set], copy, false).remove(0)), "zfs snapshot tank/home@homing-0af");
        assert_eq!(text(InstantMethod::Zfs.remove(set, copy).unwrap()), "zfs destroy tank/home@homing-0af");
        assert_eq!(text(InstantMethod::Zfs.remove(set, Path::new("/")).unwrap()), "zfs destroy tank/home@homing-");
    }
}
