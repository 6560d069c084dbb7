//! What is in a folder of homes, and in the one on a volume that is to take its place.

use std::collections::BTreeSet;

/// What a host says of its homes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homed {
    /// The folder is the one of the volume.
    pub shared: bool,
    /// Folders in it, when it is not.
    pub homes: Vec<Home>,
    /// Who works in it or owns a home there and has processes: `USER: PROGRAM`.
    pub used: BTreeSet<String>,
    /// How far the copy on the volume is.
    pub copied: Option<Copied>,
}

/// One home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Of its folder.
    pub name: String,
    /// It holds more than a new one.
    pub holds: bool,
}

/// The state of the copy, and the host whose homes it has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Copied {
    Partly(String),
    Whole(String),
    /// It has been the homes of hosts: it is newer than what it was made of.
    Used(String),
}

impl Copied {
    /// As `copy_tree` and `mount_over` write it beside the copy.
    pub(crate) fn read(text: &str) -> Option<Copied> {
        let (word, host) = text.trim().split_once(' ')?;
        let of = |made: fn(String) -> Copied| Some(made(host.into()));
        match word {
            "copying" => of(Copied::Partly),
            "copied" => of(Copied::Whole),
            "used" => of(Copied::Used),
            _ => None,
        }
    }
}

impl Homed {
    /// One line of the probe.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "shared" => self.shared = true,
            "holds" | "bare" => self.homes.push(Home { name: value.into(), holds: key == "holds" }),
            "used" => drop(self.used.insert(value.into())),
            "copied" => self.copied = Some(Copied::read(value)?),
            _ => return None,
        }
        Some(())
    }
}
