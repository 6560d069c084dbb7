//! Looks up names for completions. A list that cannot be read is empty.

use super::line::Names;
use crate::cluster::Cluster;
use crate::cmd::queue::EngineArgs;

/// The most runs or jobs at one TAB. Ended jobs remain in the list for a while.
const MOST: usize = 200;

/// Returns all names of a kind, the likeliest first.
pub fn known(names: Names) -> Vec<String> {
    match names {
        Names::Runs => {
            ["last".to_string()].into_iter().chain(homing_journal::names(&homing_journal::root())).take(MOST).collect()
        }
        Names::Jobs => jobs().unwrap_or_default(),
        Names::Volumes => homing_volume::Record::names(&homing_volume::folder()),
        Names::Hosts => Cluster::load(None).and_then(|cluster| cluster.hosts(None)).unwrap_or_default(),
        Names::Labs => homing_lab::names(),
    }
}

fn jobs() -> Option<Vec<String>> {
    let jobs = EngineArgs { engine: None }.open().ok()?.jobs().ok()?;
    Some(jobs.iter().rev().take(MOST).map(|job| job.id.to_string()).collect())
}
