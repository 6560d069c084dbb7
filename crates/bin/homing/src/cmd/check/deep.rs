//! `--deep`: hosts under load. What they could do at their best is kept, so that one that becomes slower is seen.

use homing_check::Answers;
use homing_check::burn_in::{self, Best, better, notes, rates, remember};
use homing_model::Failure;
use homing_os::folder::Kept;
use std::collections::BTreeMap;

/// What was measured, by host, in MB/s; and what could not be, with why.
#[derive(Default)]
pub struct Measured {
    /// By host, then by what.
    pub rates: BTreeMap<String, BTreeMap<String, f64>>,
    /// The host, and what, with why.
    pub unknown: Vec<homing_check::report::Unknown>,
}

/// What stands before the script: how long each part takes, and a secret for the network's part.
pub fn words(seconds: u64) -> Result<String, Failure> {
    let token =
        homing_os::folder::unguessable().map_err(|e| Failure::system(format!("drawing a random number: {e}")))?;
    Ok(burn_in::words(seconds, &token))
}

/// Tells the answers what is known of earlier looks, and keeps the best of both.
pub fn measured(answers: &mut Answers) -> Result<Measured, Failure> {
    let file = Kept::of("burn-in.json");
    let (mut known, mut measured) = (file.load::<BTreeMap<String, Best>>()?, Measured::default());
    let now = jiff::Timestamp::from_second(super::now() as i64).unwrap_or_default().strftime("%Y-%m-%d").to_string();
    for host in &mut answers.hosts {
        let best = known.entry(host.name.clone()).or_default();
        remember(host, best);
        better(best, host, &now);
        let rates = rates(host).into_iter().map(|(what, rate)| (what.to_string(), rate)).collect();
        measured.rates.insert(host.name.clone(), rates);
        measured.unknown.extend(notes(host).map(|note| (host.name.clone(), note.to_string())));
    }
    file.save(&known)?;
    Ok(measured)
}
