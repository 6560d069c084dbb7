//! Measures hosts under load, for `--deep`: whether they compute right, and whether each is as fast as its twins and
//! as before. It takes minutes and the whole host, and therefore only runs on request. The parts run one after
//! another: none disturbs the next.

mod disk;
mod memory;
mod network;
mod processors;

pub use network::{RingHost, add_flow, add_note, ring};

use crate::compare::middle;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding};
use std::collections::BTreeMap;

/// All parts. The usual check of processors comes first: it shows which hosts are twins.
pub static CHECKS: &[&HostCheck] =
    &[&super::processors::CHECK, &processors::CHECK, &memory::CHECK, &disk::CHECK, &network::CHECK];

/// The least part of the usual rate. Twins of one kind differ by a tenth; a host that others use at the time by more.
const SHARE: f64 = 0.75;
/// The least number of twins that show a usual rate.
const TWINS: usize = 2;

/// Returns variables for the parts: the seconds for which each loads the host.
pub fn words(seconds: u64) -> String {
    format!("BURN={seconds}; export BURN\n")
}

/// Returns the longest time of all parts of the script, in seconds: each of four measurements, and filling memory.
/// The hosts send to each other afterwards.
pub fn longest(seconds: u64) -> u64 {
    4 * seconds + 90
}

/// The part of a host's answers with the best of earlier measurements: quantity, MB/s, day.
const KEPT: &str = "kept";

/// The best rates of a host, in MB/s, and their days.
pub type PeakRates = BTreeMap<String, (f64, String)>;

/// Adds the best earlier rates to a host.
pub fn remember(host: &mut HostAnswers, best: &PeakRates) {
    let rows = best.iter().map(|(what, (rate, when))| vec![what.clone(), rate.to_string(), when.clone()]);
    host.set_rows(KEPT, rows.collect());
}

/// Replaces rates by the present ones that are better.
pub fn better(best: &mut PeakRates, host: &HostAnswers, now: &str) {
    for (what, rate) in rates(host) {
        let known = best.entry(what.into()).or_insert((rate, now.into()));
        if rate > known.0 {
            *known = (rate, now.into());
        }
    }
}

/// Returns a host's rates in MB/s, by quantity.
pub fn rates(host: &HostAnswers) -> BTreeMap<&str, f64> {
    rows_of_kind(host, "rate").filter_map(|row| Some((row.get(1)?.as_str(), positive(row.get(2)?)?))).collect()
}

/// Returns the quantities that could not be measured on a host, and why.
pub fn notes(host: &HostAnswers) -> impl Iterator<Item = &str> {
    rows_of_kind(host, "note").filter_map(|row| Some(row.get(1)?.as_str()))
}

/// Returns the rows of all parts that begin with a word.
fn rows_of_kind<'a>(host: &'a HostAnswers, first: &'a str) -> impl Iterator<Item = &'a [String]> {
    let rows = CHECKS.iter().flat_map(|check| host.begun(check.key));
    rows.filter(move |row| row[0] == first).map(Vec::as_slice)
}

fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
}

/// Returns findings of the hosts that are slow in the quantities that begin with this word.
fn slow(answers: &Answers, code: &'static Code, word: &str, look: &str) -> Vec<HostFinding> {
    let of_host = |host| {
        let all = rates(host).into_iter().filter(|(what, _)| what.split(' ').next() == Some(word));
        all.filter_map(|(what, rate)| {
            let right = [than_twins(answers, host, what, rate), than_before(host, what, rate)];
            let right: Vec<String> = right.into_iter().flatten().collect();
            let seen = format!("--deep: {what} {rate:.0} MB/s");
            let text = format!("{what}: {rate:.0} MB/s, but {}", right.join(" and "));
            (!right.is_empty()).then(|| code.on(host, text, seen).look(look))
        })
        .collect::<Vec<_>>()
    };
    answers.hosts.iter().flat_map(of_host).collect()
}

fn than_twins(answers: &Answers, host: &HostAnswers, what: &str, rate: f64) -> Option<String> {
    let twins = answers.hosts.iter().filter(|other| other.name != host.name && other.kind() == host.kind());
    let middle = middle(twins.filter_map(|twin| rates(twin).get(what).copied()), TWINS)?;
    (rate < middle * SHARE).then(|| format!("{middle:.0} MB/s on others of its model"))
}

fn than_before(host: &HostAnswers, what: &str, rate: f64) -> Option<String> {
    let row = host.begun(KEPT).iter().find(|row| row.len() == 3 && row[0] == what)?;
    let was = positive(&row[1])?;
    (rate < was * SHARE).then(|| format!("{was:.0} MB/s on {}", row[2]))
}
