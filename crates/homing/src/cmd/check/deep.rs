//! `--deep`: hosts under load. What they could do at their best is kept, so that one that becomes slower is seen.

use super::mutes::write_whole;
use crate::failure::Failure;
use homing_check::Answers;
use homing_check::burn_in::{self, Best, better, notes, rates, remember};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What was measured, by host, in MB/s; and what could not be, with why.
#[derive(Default)]
pub struct Measured {
    /// By host, then by what.
    pub rates: BTreeMap<String, BTreeMap<String, f64>>,
    /// The host, and what, with why.
    pub unknown: Vec<super::Unknown>,
}

/// What stands before the script: how long each part takes, and a secret for the network's part.
pub fn words(seconds: u64) -> Result<String, Failure> {
    let token = homing_folder::unguessable().map_err(|e| Failure::system(format!("drawing a random number: {e}")))?;
    Ok(burn_in::words(seconds, &token))
}

fn file() -> PathBuf {
    homing_folder::state().join("burn-in.json")
}

fn known() -> Result<BTreeMap<String, Best>, Failure> {
    let file = file();
    match std::fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text).map_err(|e| {
            Failure::system(format!("{} is damaged: {e}", file.display())).hint(format!("rm {}", file.display()))
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(e) => Err(Failure::system(format!("reading {}: {e}", file.display()))),
    }
}

/// Tells the answers what is known of earlier looks, and keeps the best of both.
pub fn measured(answers: &mut Answers) -> Result<Measured, Failure> {
    let (mut known, mut measured) = (known()?, Measured::default());
    let now = jiff::Timestamp::from_second(super::now() as i64).unwrap_or_default().strftime("%Y-%m-%d").to_string();
    for host in &mut answers.hosts {
        let best = known.entry(host.name.clone()).or_default();
        remember(host, best);
        better(best, host, &now);
        let rates = rates(host).into_iter().map(|(what, rate)| (what.to_string(), rate)).collect();
        measured.rates.insert(host.name.clone(), rates);
        measured.unknown.extend(notes(host).map(|note| (host.name.clone(), note.to_string())));
    }
    let folder = homing_folder::state();
    std::fs::create_dir_all(&folder).map_err(|e| Failure::system(format!("making {}: {e}", folder.display())))?;
    write_whole(&file(), &(serde_json::to_string_pretty(&known).map_err(Failure::system)? + "\n"))?;
    Ok(measured)
}
