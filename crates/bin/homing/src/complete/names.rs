//! Looks up names for completions. A list that cannot be read is empty.

use super::line::NameKind;
use crate::cluster::Cluster;
use crate::cmd::queue::EngineArgs;

/// The most runs or jobs at one TAB. Ended jobs remain in the list for a while.
const MOST: usize = 200;

/// Returns all names of a kind, the likeliest first.
pub fn known(names: NameKind) -> Vec<String> {
    match names {
        NameKind::Runs => {
            ["last".to_string()].into_iter().chain(homing_journal::names(&homing_journal::root())).take(MOST).collect()
        }
        NameKind::Jobs => jobs().unwrap_or_default(),
        NameKind::Volumes => homing_volume::VolumeRecord::names(&homing_volume::folder()),
        NameKind::Hosts => Cluster::load(None).and_then(|cluster| cluster.hosts(None)).unwrap_or_default(),
        NameKind::Labs => homing_lab::names(),
    }
}

fn jobs() -> Option<Vec<String>> {
    let jobs = EngineArgs { engine: None }.open().ok()?.jobs().ok()?;
    Some(jobs.iter().rev().take(MOST).map(|job| job.id.to_string()).collect())
}
