//! The sums as a table, for people.

use crate::usage::UsageGrouping;
use crate::usage::bill::{bounds, money};
use homing_cluster::Cost;
use homing_model::fit::aligned;
use homing_model::text::shown;
use homing_model::units::{bytes, count, span};
use homing_report::{Taken, Used};
use std::collections::BTreeMap;

/// Returns the rows in order of the time that they held slots, the longest first.
pub(crate) fn sorted(rows: &BTreeMap<String, Used>) -> Vec<(&String, &Used)> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|(_, used)| std::cmp::Reverse(used.slot_us));
    rows
}

/// Returns a line for each row, and one for all; `energy` is empty if it is not wanted. With more than
/// `columns` columns it becomes several tables.
pub fn table(
    rows: &BTreeMap<String, Used>,
    all: &Used,
    by: UsageGrouping,
    cost: Option<&Cost>,
    energy: &BTreeMap<String, Taken>,
    columns: Option<usize>,
) -> String {
    let first = by.word().to_ascii_uppercase();
    // Runs reserve no memory and wait in no queue: without jobs these columns are empty.
    let [memory_use, queued] = if all.queued_us.is_some() { ["MEM USE", "QUEUED"] } else { ["", ""] };
    let price = cost.filter(|cost| cost.host_hour().is_some()).map_or("", |cost| &cost.currency);
    let power = cost.filter(|cost| cost.kwh.is_some() && !energy.is_empty());
    let power = power.map_or(String::new(), |cost| format!("{} POWER", cost.currency));
    let taken = if energy.is_empty() { "" } else { "ENERGY" };
    let head = [
        first.as_str(),
        "ATTEMPTS",
        "FAILED",
        "SLOT TIME",
        "HOST TIME",
        "CPU TIME",
        "CPU USE",
        "GB-HOURS",
        "AT HOME",
        "NETWORK",
        "READ",
        price,
        memory_use,
        queued,
        taken,
        &power,
    ];
    let mut cells = vec![head.map(shown)];
    cells.extend(sorted(rows).into_iter().map(|(name, used)| row(&shown(name), used, cost, energy.get(name))));
    let of_all = energy_of_all(energy);
    if rows.len() > 1 {
        let of_all = of_all.as_ref();
        cells.push(row(&format!("({})", count(rows.len() as u64, "row")), all, cost, of_all));
    }
    aligned(&cells, 1..head.len(), columns) + &of_all.map_or(String::new(), |all| format!("energy: {}\n", all.how()))
}

/// Returns the sum of the energy; none if it is not wanted.
pub(crate) fn energy_of_all(energy: &BTreeMap<String, Taken>) -> Option<Taken> {
    let all = energy.values().fold(Taken::default(), |mut all, taken| {
        all.add(taken);
        all
    });
    (!energy.is_empty()).then_some(all)
}

fn row(name: &str, used: &Used, cost: Option<&Cost>, energy: Option<&Taken>) -> [String; 16] {
    let placed = used.attempts > used.unplaced;
    let known = |n: u64| if placed { bytes(n) } else { "-".into() };
    let share = |part: Option<f64>| part.map_or("-".into(), |part| format!("{:.0} %", 100.0 * part));
    let jobs = |text: String| if used.queued_us.is_some() { text } else { String::new() };
    [
        name.to_string(),
        used.attempts.to_string(),
        used.failed.to_string(),
        span(used.slot_us),
        span(used.host_us),
        span(used.cpu_us),
        share(used.cpu_use()),
        format!("{:.2}", used.memory_byte_s as f64 / 1e9 / 3600.0),
        known(used.local_bytes),
        known(used.remote_bytes),
        used.read_bytes.map_or("-".into(), bytes),
        cost.and_then(Cost::host_hour).map_or(String::new(), |price| money(used.cost(price))),
        jobs(share(used.memory_use())),
        jobs(span(used.queued_us.unwrap_or(0))),
        energy.map_or(String::new(), Taken::amount),
        energy.zip(cost).and_then(|(energy, cost)| cost.of_energy(energy)).map_or(String::new(), bounds),
    ]
}
