//! Finds files of a set-up on a host whose journal is gone: homing cannot undo them, and must report them.

use crate::areas::{names, slurm};
use homing_steps::{FactQuery, Observed};

/// Returns the query for [`remains`].
pub fn remains_question() -> FactQuery {
    FactQuery { files: [names::HOSTS, slurm::CONF].map(String::from).into(), ..FactQuery::default() }
}

/// Returns the remaining files of a set-up, each with a remedy. Every set-up writes the names: they reveal all
/// others.
pub fn remains(there: &Observed) -> Vec<String> {
    let names =
        names::is_left(there).then(|| format!("{} still has the block of names that homing up wrote", names::HOSTS));
    let slurm = slurm::is_left(there).then(|| {
        format!(
            "{} of homing up is still there (systemctl disable --now slurmd munge; then remove the file)",
            slurm::CONF
        )
    });
    names.into_iter().chain(slurm).collect()
}
