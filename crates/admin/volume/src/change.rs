//! A change of a volume, as its record keeps it until the change is complete.

use crate::export::ExportOptions;
use crate::spec::OptionChanges;
use homing_model::NodeSet;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::fmt;

/// The verb of a change with its object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum VolumeChange {
    Create,
    Mount,
    Heal,
    Rebalance,
    Delete,
    Unmount { hosts: Vec<String> },
    AddHost { hosts: Vec<String> },
    DrainHost { host: String },
    SetCopies { path: String, copies: u32 },
    SetStripe { path: String, size: Option<u64> },
    SetOption { options: OptionChanges },
    SetExport { export: ExportOptions },
}

impl fmt::Display for VolumeChange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let set = |hosts: &[String]| hosts.iter().cloned().collect::<NodeSet>();
        match self {
            VolumeChange::Create => f.write_str("create"),
            VolumeChange::Mount => f.write_str("mount"),
            VolumeChange::Heal => f.write_str("heal"),
            VolumeChange::Rebalance => f.write_str("rebalance"),
            VolumeChange::Delete => f.write_str("delete"),
            VolumeChange::Unmount { hosts } => write!(f, "unmount {}", set(hosts)),
            VolumeChange::AddHost { hosts } => write!(f, "add-host {}", set(hosts)),
            VolumeChange::DrainHost { host } => write!(f, "drain-host {host}"),
            VolumeChange::SetCopies { path, copies } => write!(f, "set-copies {path} {copies}"),
            VolumeChange::SetStripe { path, size: Some(size) } => write!(f, "set-stripe {path} {size}"),
            VolumeChange::SetStripe { path, size: None } => write!(f, "set-stripe {path}"),
            VolumeChange::SetOption { options } => {
                f.write_str("set-option")?;
                let mut all = options.iter().map(|(key, value)| (key, value.as_deref().unwrap_or("")));
                all.try_for_each(|(key, value)| write!(f, " {key}={value}"))
            }
            VolumeChange::SetExport { export } => write!(f, "set-export {export}"),
        }
    }
}

impl VolumeChange {
    /// Whether a part of it changes neither the definition of the volume nor its mounts: there is nothing to undo, and
    /// a repetition is a new change.
    pub(crate) fn leaves_nothing(&self) -> bool {
        *self == VolumeChange::Heal
    }

    /// Reads the text in records of homing 0.1. Only the last blank separates a number: a path may contain others.
    fn of_text(text: &str) -> Option<VolumeChange> {
        let (verb, rest) = text.split_once(' ')?;
        let hosts = || Some(NodeSet::parse(rest).ok()?.iter().map(String::from).collect());
        Some(match verb {
            "unmount" => VolumeChange::Unmount { hosts: hosts()? },
            "add-host" => VolumeChange::AddHost { hosts: hosts()? },
            "drain-host" => VolumeChange::DrainHost { host: rest.into() },
            "set-copies" => {
                let (path, copies) = rest.rsplit_once(' ')?;
                VolumeChange::SetCopies { path: path.into(), copies: copies.parse().ok()? }
            }
            "set-stripe" => {
                let (path, size) = rest.rsplit_once(' ')?;
                VolumeChange::SetStripe { path: path.into(), size: Some(size.parse().ok()?) }
            }
            _ => return None,
        })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SavedChange {
    Change(VolumeChange),
    Text(String),
}

/// Reads a change in the current form, or in that of homing 0.1.
pub(crate) fn kept<'de, D: Deserializer<'de>>(from: D) -> Result<VolumeChange, D::Error> {
    match SavedChange::deserialize(from)? {
        SavedChange::Change(change) => Ok(change),
        SavedChange::Text(text) => VolumeChange::of_text(&text)
            .ok_or_else(|| D::Error::custom(format!("{text:?} is not a change of a volume"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<VolumeChange> {
        kept(&mut serde_json::Deserializer::from_str(json)).ok()
    }

    #[test]
    fn a_heal_that_failed_is_no_interrupted_change() {
        assert!(VolumeChange::Heal.leaves_nothing());
        for change in [VolumeChange::Create, VolumeChange::Rebalance, VolumeChange::DrainHost { host: "n1".into() }] {
            assert!(!change.leaves_nothing(), "{change}");
        }
    }

    #[test]
    fn a_path_with_blanks_stays_whole() {
        let change = VolumeChange::SetCopies { path: "/data/my dir".into(), copies: 2 };
        assert_eq!(read(&serde_json::to_string(&change).unwrap()), Some(change.clone()));
        assert_eq!(read("\"set-copies /data/my dir 2\""), Some(change));
        assert_eq!(read("\"set-copies /data/my dir\""), None, "no number is made up");
    }

    #[test]
    fn a_change_of_options_is_recorded_with_its_values() {
        let options = [("auth.allow".to_string(), Some("n1,n2".to_string())), ("a.b".into(), None)].into();
        let change = VolumeChange::SetOption { options };
        assert_eq!(change.to_string(), "set-option a.b= auth.allow=n1,n2");
        let export = VolumeChange::SetExport { export: ExportOptions { anonuid: Some(7), ..Default::default() } };
        for change in [change, export] {
            assert_eq!(read(&serde_json::to_string(&change).unwrap()), Some(change));
        }
    }

    #[test]
    fn each_change_is_read_as_it_is_written_and_as_it_was() {
        let hosts = || vec!["n1".to_string(), "n2".to_string()];
        for change in [
            VolumeChange::Create,
            VolumeChange::Mount,
            VolumeChange::Heal,
            VolumeChange::Rebalance,
            VolumeChange::Delete,
            VolumeChange::Unmount { hosts: hosts() },
            VolumeChange::AddHost { hosts: hosts() },
            VolumeChange::DrainHost { host: "n4".into() },
            VolumeChange::SetStripe { path: "/data".into(), size: Some(64 << 20) },
        ] {
            assert_eq!(read(&serde_json::to_string(&change).unwrap()).as_ref(), Some(&change));
            assert_eq!(read(&format!("\"{change}\"")), Some(change));
        }
        assert_eq!(read("\"grow\""), None);
    }
}
