//! The state of a folder of homes, and of the folder on a volume that is to replace it.

use std::collections::BTreeSet;

/// The facts of a host about its homes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homed {
    /// Whether the folder is the one of the volume.
    pub shared: bool,
    /// Folders in it, if it is not.
    pub homes: Vec<HomeFolder>,
    /// Users who work in it or own a home there and have processes: `USER: PROGRAM`.
    pub used: BTreeSet<String>,
    /// The progress of the copy on the volume.
    pub copied: Option<HomeCopyState>,
}

/// One home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeFolder {
    /// The name of its folder.
    pub name: String,
    /// Whether it holds more than a new home does.
    pub holds: bool,
}

/// The state of the copy, and the host whose homes it has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HomeCopyState {
    Partly(String),
    Whole(String),
    /// It has served as the homes of hosts: it is newer than the homes that it was made from.
    Used(String),
}

impl HomeCopyState {
    /// Reads the mark that `copy_tree` and `mount_over` write beside the copy.
    pub(crate) fn read(text: &str) -> Option<HomeCopyState> {
        let (word, host) = text.trim().split_once(' ')?;
        let of = |made: fn(String) -> HomeCopyState| Some(made(host.into()));
        match word {
            "copying" => of(HomeCopyState::Partly),
            "copied" => of(HomeCopyState::Whole),
            "used" => of(HomeCopyState::Used),
            _ => None,
        }
    }
}

impl Homed {
    /// Reads one line of the probe.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "shared" => self.shared = true,
            "holds" | "bare" => self.homes.push(HomeFolder { name: value.into(), holds: key == "holds" }),
            "used" => drop(self.used.insert(value.into())),
            "copied" => self.copied = Some(HomeCopyState::read(value)?),
            _ => return None,
        }
        Some(())
    }
}
