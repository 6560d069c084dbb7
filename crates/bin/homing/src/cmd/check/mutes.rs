//! Loads and stores mutes.

use homing_check::mute::{self, Mute};
use homing_model::Failure;
use homing_os::folder::RecordFile;

fn file() -> RecordFile {
    RecordFile::of("mutes.json")
}

/// Loads all mutes, ended ones too.
pub fn load() -> Result<Vec<Mute>, Failure> {
    file().load()
}

/// Mutes a code for a number of seconds.
pub fn add(code: &str, hosts: Vec<String>, span: u64, because: String) -> Result<i32, Failure> {
    let mut all = load()?;
    mute::add(&mut all, code, hosts, because, super::now(), span);
    file().save(&all).map(|()| 0)
}

/// Removes the mutes of a code.
pub fn remove(code: &str) -> Result<i32, Failure> {
    let mut all = load()?;
    all.retain(|mute| !mute.code.eq_ignore_ascii_case(code));
    file().save(&all).map(|()| 0)
}
