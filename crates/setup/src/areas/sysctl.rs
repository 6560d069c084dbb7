//! Values of the kernel: now, and at each boot.

use crate::site::Site;
use homing_steps::{Question, Wanted};

const FILE: &str = "/etc/sysctl.d/60-homing.conf";

pub(super) fn ask(site: &Site, question: &mut Question) {
    question.files.insert(FILE.into());
    question.sysctls.extend(site.up.sysctl.keys().cloned());
}

pub(super) fn wanted(site: &Site) -> Vec<Wanted> {
    let text: String = site.up.sysctl.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let file = Wanted::file(FILE, text);
    let value = |(key, value): (&String, &String)| Wanted::Sysctl { key: key.clone(), value: value.clone() };
    std::iter::once(file).chain(site.up.sysctl.iter().map(value)).collect()
}
