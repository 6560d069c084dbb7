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
    file().save(&all)?;
    let text = all.last().map(|mute| added(mute, &jiff::tz::TimeZone::system())).unwrap_or_default();
    crate::cmd::runs::to_stdout(&text)
}

/// Returns the line that confirms a mute.
fn added(mute: &Mute, zone: &jiff::tz::TimeZone) -> String {
    let until = jiff::Timestamp::from_second(i64::try_from(mute.until).unwrap_or(i64::MAX));
    let until = until.map_or("ever".into(), |at| zone.to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string());
    let hosts = if mute.hosts.is_empty() { "all hosts" } else { &mute.hosts };
    format!("{} is muted on {hosts} until {until}\n", mute.code)
}

/// Removes the mutes of a code.
pub fn remove(code: &str) -> Result<i32, Failure> {
    let mut all = load()?;
    let (code, before) = (code.to_ascii_uppercase(), all.len());
    all.retain(|mute| !mute.code.eq_ignore_ascii_case(&code));
    file().save(&all)?;
    let state = if all.len() < before { "is not muted any more" } else { "was not muted" };
    crate::cmd::runs::to_stdout(&format!("{code} {state}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mute_is_confirmed_with_its_hosts_and_end() {
        let mute = |hosts: &str| Mute { code: "HC-SVC-01".into(), hosts: hosts.into(), until: 60, because: "x".into() };
        let line = |hosts| added(&mute(hosts), &jiff::tz::TimeZone::UTC);
        assert_eq!(line("n[1-2]"), "HC-SVC-01 is muted on n[1-2] until 1970-01-01 00:01\n");
        assert!(line("").contains("on all hosts until"));
    }
}
