//! Packages that all hosts have.

use crate::site::Site;
use homing_steps::{Question, Wanted};

pub(super) fn ask(site: &Site, question: &mut Question) {
    question.packages.extend(site.up.packages.iter().cloned());
}

pub(super) fn wanted(site: &Site) -> Vec<Wanted> {
    let one = |name: &String| Wanted::Package { name: name.clone(), replaces: Vec::new() };
    site.up.packages.iter().map(one).collect()
}
