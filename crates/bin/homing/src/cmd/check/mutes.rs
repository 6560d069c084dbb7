//! Where mutes are kept, and files that are written whole.

use homing_check::mute::{self, Mute};
use homing_model::Failure;
use homing_os::folder::Kept;

fn file() -> Kept {
    Kept::of("mutes.json")
}

/// All that there are, those that have ended too.
pub fn load() -> Result<Vec<Mute>, Failure> {
    file().load()
}

/// Mutes a code for so many seconds.
pub fn add(code: &str, hosts: Vec<String>, span: u64, because: String) -> Result<i32, Failure> {
    let mut all = load()?;
    mute::add(&mut all, code, hosts, because, super::now(), span);
    file().save(&all).map(|()| 0)
}

/// Tells of a code again.
pub fn remove(code: &str) -> Result<i32, Failure> {
    let mut all = load()?;
    all.retain(|mute| !mute.code.eq_ignore_ascii_case(code));
    file().save(&all).map(|()| 0)
}
