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
pub use ended::told as ended;
pub use far::{Asked, lines as lines_of_hosts};
pub use in_force::{InForce, Serves, prometheus_of_servers};
pub use jobs::{Wanted, books, lines as lines_of_jobs, use_of, use_of_booked};
pub use pruned::lines as pruned_lines;
pub use sizes::Sizes;
pub use sums::Sums;
pub use table::table;

use homing_cluster::Cost;
use homing_report::{Key, Used};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use table::sorted;

/// The key of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum By {
    Command,
    Host,
    Run,
    User,
    Project,
}

impl By {
    /// All keys.
    pub const ALL: [By; 5] = [By::Command, By::Host, By::Run, By::User, By::Project];

    /// Returns its label.
    pub fn word(self) -> &'static str {
        match self {
            By::Command => "command",
            By::Host => "host",
            By::Run => "run",
            By::User => "user",
            By::Project => "project",
        }
    }

    /// Returns the row to which a user's attempts belong.
    fn row<'a>(self, user: &'a str, key: &'a Key) -> &'a str {
        match self {
            By::Command => &key.command,
            By::Host => &key.host,
            By::Run => &key.run,
            By::User => user,
            By::Project if key.project.is_empty() => "-",
            By::Project => &key.project,
        }
    }
}

/// The resources that one user's attempts of one run used on one host, or that a job used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The user.
    pub user: String,
    /// The run or job, with its host, command and project.
    pub key: Key,
    /// The resources.
    pub used: Used,
}

/// Returns rows in the format of Prometheus.
pub fn prometheus_of(rows: &BTreeMap<String, Used>, by: By, cost: Option<&Cost>) -> String {
    metrics::text(sorted(rows), by.word(), cost, homing_os::clock::system_ns())
}

/// Returns the sums of the runs in these folders by user, in the format of Prometheus, and the reasons why parts are
/// missing. If a folder cannot be read, there are no sums: counters that fall and rise again would count all of it
/// twice.
pub fn prometheus(folders: &[PathBuf], cost: Option<&Cost>) -> Result<(String, Vec<String>), String> {
    let mut sums = Sums::new(None);
    folders.iter().try_for_each(|folder| sums.take_folder(folder))?;
    Ok((prometheus_of(&sums.by(By::User), By::User, cost), sums.damaged))
}
