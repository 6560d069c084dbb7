//! Keeps the orders of administrators about queues and hosts.
//!
//! Administrators are root and the owner of the folder with the queue; `/var/tmp` belongs to root. Each writes into
//! their own folder, as every user does, so that no user can block another. Of several orders for one name the newest
//! counts.

use crate::control::{Control, ControlOrder, Target};
use crate::files::{self, read_short, write_json};
use crate::places::Places;
use crate::plan::Config;
use crate::{JobSpool, QueueError};
use homing_os::folder::lock::FileLock;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Its name, in the folder of the user who gave the orders.
const NAME: &str = "control.json";
/// The longest file that is read, bytes: some hundred queues and hosts.
const LONGEST: u64 = 256 << 10;

/// Returns the users who may give orders.
fn controllers(places: &Places) -> BTreeSet<u32> {
    let owner = fs::metadata(places.base()).ok().map(|meta| meta.uid());
    owner.into_iter().chain([0]).collect()
}

impl JobSpool {
    /// Returns the orders in force.
    pub fn control(&self) -> Control {
        let told = controllers(&self.places).into_iter().filter_map(|uid| {
            let read = read_short::<Control>(&self.places.of(uid).join(NAME), LONGEST);
            read.filter(|(_, owner)| *owner == uid).map(|(control, _)| control)
        });
        told.fold(Control::default(), Control::join)
    }

    /// Adds the present orders and time to the settings of the cluster files.
    pub(crate) fn now(&self, config: Config) -> Config {
        let now = jiff::Zoned::now();
        let day = now.weekday().to_sunday_zero_offset() as u32;
        let minute = (day * 24 + now.hour() as u32) * 60 + now.minute() as u32;
        Config { control: self.control(), minute, ..config }
    }

    /// Gives an order about these queues or hosts; only administrators may.
    pub fn set_control(
        &self,
        target: Target,
        names: &[String],
        shut: bool,
        why: Option<String>,
    ) -> Result<(), QueueError> {
        let (may, uid) = (controllers(&self.places), files::uid());
        if !may.contains(&uid) {
            let names: Vec<String> = may.into_iter().map(files::user_name).collect();
            let base = self.places.base().display();
            return Err(QueueError::Request(format!(
                "only {} may do this, because the queue is in {base}",
                names.join(" and ")
            )));
        }
        let own = self.places.own()?;
        let (path, lock) = (own.join(NAME), own.join("control.lock"));
        let _one_at_a_time = FileLock::take(&lock).map_err(QueueError::io("lock", &lock))?;
        let known = read_short::<Control>(&path, LONGEST).filter(|(_, owner)| *owner == uid);
        let known = known.map_or_else(Control::default, |(control, _)| control);
        let order = ControlOrder { shut, by: files::user_name(uid), at_ns: homing_os::clock::system_ns(), why };
        write_json(&path, &known.with(target, names, &order), 0o644).map_err(QueueError::io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_kept_and_what_others_write_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let spool = JobSpool::at(dir.path().into()).unwrap();
        let names = ["a".to_string(), "b".to_string()];
        spool.set_control(Target::Submission, &names, true, Some("a disk".into())).unwrap();
        spool.set_control(Target::Host, &names[..1], true, None).unwrap();
        spool.set_control(Target::Submission, &names[1..], false, None).unwrap();
        let now = JobSpool::at(dir.path().into()).unwrap().control();
        assert_eq!(now.shut(Target::Submission, "a").unwrap().why.as_deref(), Some("a disk"));
        assert_eq!(now.shut(Target::Submission, "b"), None);
        assert!(now.shut(Target::Host, "a").is_some());
        if files::uid() == 0 {
            let path = spool.places.own().unwrap().join(NAME);
            std::os::unix::fs::chown(&path, Some(7), None).unwrap();
            assert_eq!(spool.control(), Control::default());
        }
    }
}
