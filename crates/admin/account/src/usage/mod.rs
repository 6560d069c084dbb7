//! Adds up the resources that runs and jobs used, and their cost.

mod bill;
mod ended;
mod far;
mod in_force;
mod jobs;
mod metrics;
mod pruned;
mod sizes;
mod sums;
mod table;

pub use bill::Bill;
pub use ended::ended_jobs;
pub use far::{UsageRequest, lines as lines_of_hosts};
pub use in_force::{InForce, Serves, prometheus_of_servers};
pub use jobs::{JobFilter, books, lines as lines_of_jobs, use_of, use_of_booked};
pub use pruned::lines as pruned_lines;
pub use sizes::Sizes;
pub use sums::Sums;
pub use table::table;

use homing_cluster::Cost;
use homing_report::{UsageKey, Used};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use table::sorted;

/// The key of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UsageGrouping {
    Command,
    Host,
    Run,
    User,
    Project,
}

impl UsageGrouping {
    /// All keys.
    pub const ALL: [UsageGrouping; 5] =
        [UsageGrouping::Command, UsageGrouping::Host, UsageGrouping::Run, UsageGrouping::User, UsageGrouping::Project];

    /// Returns its label.
    pub fn word(self) -> &'static str {
        match self {
            UsageGrouping::Command => "command",
            UsageGrouping::Host => "host",
            UsageGrouping::Run => "run",
            UsageGrouping::User => "user",
            UsageGrouping::Project => "project",
        }
    }

    /// Returns the row to which a user's attempts belong.
    fn row<'a>(self, user: &'a str, key: &'a UsageKey) -> &'a str {
        match self {
            UsageGrouping::Command => &key.command,
            UsageGrouping::Host => &key.host,
            UsageGrouping::Run => &key.run,
            UsageGrouping::User => user,
            UsageGrouping::Project if key.project.is_empty() => "-",
            UsageGrouping::Project => &key.project,
        }
    }
}

/// The resources that one user's attempts of one run used on one host, or that a job used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UsageLine {
    /// The user.
    pub user: String,
    /// The run or job, with its host, command and project.
    pub key: UsageKey,
    /// The resources.
    pub used: Used,
}

/// Returns rows in the format of Prometheus.
pub fn prometheus_of(rows: &BTreeMap<String, Used>, by: UsageGrouping, cost: Option<&Cost>) -> String {
    metrics::text(sorted(rows), by.word(), cost, homing_os::clock::system_ns())
}

/// Returns the sums of the runs in these folders by user, in the format of Prometheus, and the reasons why parts are
/// missing. If a folder cannot be read, there are no sums: counters that fall and rise again would count all of it
/// twice.
pub fn prometheus(folders: &[PathBuf], cost: Option<&Cost>) -> Result<(String, Vec<String>), String> {
    let mut sums = Sums::new(None);
    folders.iter().try_for_each(|folder| sums.take_folder(folder))?;
    Ok((prometheus_of(&sums.by(UsageGrouping::User), UsageGrouping::User, cost), sums.damaged))
}
