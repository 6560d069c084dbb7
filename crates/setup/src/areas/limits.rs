//! Limits of a login's processes, by pam_limits: for every user but root.

use crate::site::Site;
use homing_steps::{Question, Wanted};

const FILE: &str = "/etc/security/limits.d/60-homing.conf";

pub(super) fn ask(question: &mut Question) {
    question.files.insert(FILE.into());
}

pub(super) fn wanted(site: &Site) -> Vec<Wanted> {
    let line = |(item, value): (&String, &String)| match value.split_once(':') {
        Some((soft, hard)) => format!("* soft {item} {soft}\n* hard {item} {hard}\n"),
        None => format!("* - {item} {value}\n"),
    };
    vec![Wanted::file(FILE, site.up.limits.iter().map(line).collect::<String>())]
}
