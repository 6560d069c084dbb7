//! What a set-up left on a host whose journal is gone: nobody can take that back, and it must not go unsaid.

use crate::areas::{names, slurm};
use homing_steps::{Observed, Question};

/// What has to be looked at for [`remains`].
pub fn remains_question() -> Question {
    Question { files: [names::HOSTS, slurm::CONF].map(String::from).into(), ..Question::default() }
}

/// Files of a set-up that are there still, each with what to do about it. Every set-up writes the names, so that they
/// tell of all others.
pub fn remains(there: &Observed) -> Vec<String> {
    let names = names::is_left(there).then(|| format!("the names of homing up are in {}", names::HOSTS));
    let slurm = slurm::is_left(there)
        .then(|| format!("{} of homing up is there (systemctl disable --now slurmd munge; rm it)", slurm::CONF));
    names.into_iter().chain(slurm).collect()
}
