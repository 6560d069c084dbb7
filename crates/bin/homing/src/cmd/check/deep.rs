//! `--deep`: measures hosts under load. The best rates are kept, so that a host that becomes slower is noticed.

use crate::cmd::bench::TELL;
use homing_bench::ends::{self, EndOrder, FlowOrder, FlowReport};
use homing_check::Answers;
use homing_check::burn_in::{self, PeakRates, add_flow, add_note, better, notes, rates, remember};
use homing_exec::{Options, Remote};
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

/// Makes each host send to the next one, and the last to the first, all at the same time. Adds the rates to the
/// answers. A host that cannot take part gets a note, and the others do without it.
pub fn send_around(options: Options, answers: &mut Answers, seconds: u64) -> Result<(), Failure> {
    let hosts = burn_in::ring(answers);
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    if names.len() > 1 {
        (TELL.progress)("network: each host sends to the next");
    }
    let (remote, mut ring, mut open) = (Remote::new(options), Vec::new(), Vec::new());
    // A host alone would have the program copied to it in vain.
    let ends = if names.len() > 1 { ends::open(&remote, &names) } else { Vec::new() };
    for (host, end) in hosts.into_iter().zip(ends) {
        match end {
            Ok(end) => {
                ring.push(host);
                open.push(end);
            }
            Err(why) => add_note(answers, &host.name, &why),
        }
    }
    if ring.len() < 2 {
        let alone = if names.len() == 1 { names } else { ring.into_iter().map(|host| host.name).collect() };
        alone.iter().for_each(|host| add_note(answers, host, "it needs a second host"));
        return Ok(());
    }
    let token =
        homing_os::folder::unguessable().map_err(|e| Failure::system(format!("drawing a random number: {e}")))?;
    let at = |nth: usize| &ring[nth % ring.len()];
    let order = |nth: usize| {
        let (own, to, from) = (at(nth).own, at(nth + 1).own, at(nth + ring.len() - 1).own);
        EndOrder::Flow(FlowOrder { token: token.clone(), seconds: seconds as f64, own, to, from })
    };
    let orders = open.into_iter().enumerate().map(|(nth, end)| (end, order(nth))).collect();
    for (nth, report) in ends::carry_out::<FlowReport>(orders).into_iter().enumerate() {
        add_flow(answers, &at(nth).name, &at(nth + 1).name, &report.and_then(|rate| rate));
    }
    Ok(())
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
