//! `--deep`: measures hosts under load. The best rates are kept, so that a host that becomes slower is noticed.

use homing_check::Answers;
use homing_check::burn_in::{self, PeakRates, better, notes, rates, remember};
use homing_model::Failure;
use homing_os::folder::RecordFile;
use std::collections::BTreeMap;

/// The rates by host in MB/s, and the measurements that failed, with the reason.
#[derive(Default)]
pub struct DeepMeasurements {
    /// Rates by host, then by quantity.
    pub rates: BTreeMap<String, BTreeMap<String, f64>>,
    /// Hosts, each with a failed measurement and its reason.
    pub unknown: Vec<homing_check::report::UnknownFacts>,
}

/// Returns the lines before the script: the length of each part, and a secret for the network's part.
pub fn words(seconds: u64) -> Result<String, Failure> {
    let token =
        homing_os::folder::unguessable().map_err(|e| Failure::system(format!("drawing a random number: {e}")))?;
    Ok(burn_in::words(seconds, &token))
}

/// Adds the best rates of earlier checks to the answers, and stores the better of both.
pub fn measured(answers: &mut Answers) -> Result<DeepMeasurements, Failure> {
    let file = RecordFile::of("burn-in.json");
    let (mut known, mut measured) = (file.load::<BTreeMap<String, PeakRates>>()?, DeepMeasurements::default());
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
