//! The record of hosts that are switched off: its writers and its readers.
//!
//! All users can read root's record, because root's timer usually switches hosts off; a user's own record is private.
//! It is believed only about hosts that do not answer: somebody may have pressed the power button.

use crate::Switching;
use homing_launch::Asleep;
use homing_model::Failure;
use homing_os::folder::lock;
use homing_power::PowerFacts;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Root's record, which all users can read.
const ROOTS: &str = "/var/lib/homing/power.json";
/// The name of another record.
const FILE: &str = "power.json";
/// Permissions of the record.
const MODE: u32 = 0o644;

/// The record that this user writes, locked.
pub struct PowerLedger {
    /// Its content.
    pub known: PowerFacts,
    file: PathBuf,
    _lock: File,
}

impl PowerLedger {
    /// Opens it; fails if another process has it open.
    pub fn open() -> Result<PowerLedger, Failure> {
        let file = own();
        let doing =
            |e: &dyn std::fmt::Display| Failure::system(format!("reading the power record {}: {e}", file.display()));
        file.parent().map_or(Ok(()), |folder| homing_os::names::make_folder(folder, 0o777)).map_err(|e| doing(&e))?;
        let lock = lock::file(&file.with_extension("lock"), 0o600).map_err(|e| doing(&e))?;
        if !lock::try_lock_all(&lock).map_err(|e| doing(&e))? {
            return Err(doing(&"another homing power is running").hint("repeat the command when it has ended"));
        }
        let known = read(&file).map_err(|e| doing(&e))?.unwrap_or_default();
        Ok(PowerLedger { known, file, _lock: lock })
    }

    /// Writes the whole record.
    pub fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(&self.known).map_err(Failure::system)?;
        homing_os::folder::write_whole(&self.file, &text, Some(MODE))
            .map_err(|e| Failure::system(format!("writing the power record {}: {e}", self.file.display())))
    }
}

/// Returns the only record of this call: a named one, or that of a cluster with an ssh configuration of its own, such
/// as a lab. Its hosts may have the names of this machine's hosts.
fn named() -> Option<PathBuf> {
    let set = std::env::var_os("HOMING_POWER").filter(|name| !name.is_empty()).map(PathBuf::from);
    set.or_else(|| homing_os::names::ssh_config().map(|file| homing_os::folder::cluster_state_of(&file).join(FILE)))
}

fn own() -> PathBuf {
    let usual = || if homing_queue::uid() == 0 { ROOTS.into() } else { homing_os::folder::state().join(FILE) };
    named().unwrap_or_else(usual)
}

fn read(file: &Path) -> io::Result<Option<PowerFacts>> {
    match fs::read(file) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(io::Error::from),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Merges the records of root and this user. A record that cannot be read counts as empty: records matter only for
/// hosts that do not answer.
pub fn all() -> PowerFacts {
    let both = match named() {
        Some(file) => vec![file],
        None => vec![ROOTS.into(), own()],
    };
    let mut all = PowerFacts::default();
    for known in both.iter().filter_map(|file| read(file).ok().flatten()) {
        all.looked_s = all.looked_s.max(known.looked_s);
        known.hosts.into_iter().for_each(|(host, since)| {
            let one = all.hosts.entry(host).or_default();
            let called_s = one.called_s.max(since.called_s);
            if one.off_s.is_none() {
                *one = since;
            }
            one.called_s = called_s;
        });
    }
    all
}

/// Describes a host that is off.
pub fn off_reason(known: &PowerFacts, host: &str) -> Option<String> {
    let for_s = now_s().saturating_sub(known.off_s(host)?);
    Some(format!("switched off for {}; `homing power on {host}` switches it on", homing_model::units::seconds(for_s)))
}

/// Returns the seconds since 1970.
pub fn now_s() -> u64 {
    u64::try_from(homing_os::clock::system_ns() / 1_000_000_000).unwrap_or(0)
}

/// Returns how those of these hosts that are off are switched on when homing connects to them.
pub fn asleep<'h>(hosts: impl IntoIterator<Item = &'h str>, switching: &Switching) -> Arc<HashMap<String, Asleep>> {
    let known = all();
    let off = hosts.into_iter().filter(|host| known.off_s(host).is_some());
    let how = |host: &str| {
        let switch = switching.on(host).ok()?;
        Some((host.to_string(), Asleep { switch, patience: switching.boot }))
    };
    let asleep: HashMap<String, Asleep> = off.filter_map(how).collect();
    // If this write fails, or the record is root's, it takes some minutes until the hosts count as on.
    if let Ok(mut book) = PowerLedger::open()
        && asleep.keys().filter(|host| book.known.called(host, now_s())).count() > 0
    {
        let _ = book.write();
    }
    Arc::new(asleep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_homing_switched_off_is_reported_with_the_command_that_switches_it_on() {
        let mut known = PowerFacts::default();
        known.switched_off("n4", now_s() - 7200);
        let text = off_reason(&known, "n4").unwrap();
        assert!(
            text.starts_with("switched off for 2") && text.ends_with("; `homing power on n4` switches it on"),
            "{text}"
        );
        assert_eq!(off_reason(&known, "n1"), None);
    }
}
