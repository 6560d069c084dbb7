//! Compares runs by the size of the cluster that they had: the time and the cost of one.

use crate::usage::bill::{Bill, bounds, money, price_of};
use homing_cluster::Cost;
use homing_model::fit::aligned;
use homing_model::text::shown;
use homing_model::units::span;
use homing_report::{Taken, Tally};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs by the hosts and slots that they had.
#[derive(Default)]
pub struct Sizes(BTreeMap<(u64, u64), Size>);

/// The runs of one size, and their sums.
#[derive(Default)]
struct Size {
    runs: Vec<String>,
    tasks: u64,
    wall_us: u64,
    bill: Bill,
}

impl Size {
    /// Returns the average tasks, time and bill of one of them.
    fn mean(&self) -> (u64, u64, Bill) {
        let n = self.runs.len().max(1) as u64;
        (self.tasks / n, self.wall_us / n, self.bill.part(1.0 / n as f64))
    }
}

impl Sizes {
    /// Adds a run.
    pub fn add(&mut self, run: String, tally: &Tally, bill: &Bill) {
        let size = self.0.entry(tally.size()).or_default();
        size.runs.push(run);
        size.tasks += tally.counts().done;
        size.wall_us += tally.wall_us();
        size.bill.used.add(&bill.used);
        size.bill.taken.add(&bill.taken);
    }

    /// Returns a line for each size, and the source of the energy.
    pub fn table(&self, cost: Option<&Cost>, columns: Option<usize>) -> String {
        let price = cost.and_then(Cost::host_hour);
        let currency = cost.map_or(String::new(), |cost| shown(&cost.currency));
        let named = |what: &str, there: bool| if there { format!("{currency} {what}") } else { String::new() };
        let head = ["HOSTS", "SLOTS", "RUNS", "TASKS", "TIME", "SPEED", "HOST TIME", "HELD", "ENERGY"];
        let mut cells: Vec<[String; 12]> = vec![row(
            head.map(String::from),
            [
                named("USED", price.is_some()),
                named("HELD", price.is_some()),
                named("POWER", cost.is_some_and(|cost| cost.kwh.is_some())),
            ],
        )];
        let first_us = self.0.values().next().map_or(0, |size| size.mean().1);
        for ((hosts, slots), size) in &self.0 {
            let (tasks, wall_us, Bill { used, taken }) = size.mean();
            let at = |us| price.map_or(String::new(), |price| money(price_of(us, price)));
            let power = cost.and_then(|cost| cost.of_energy(&taken)).map_or(String::new(), bounds);
            let known = [
                hosts.to_string(),
                slots.to_string(),
                size.runs.len().to_string(),
                tasks.to_string(),
                span(wall_us),
                format!("{:.2}", first_us as f64 / wall_us.max(1) as f64),
                span(used.host_us),
                span(used.held.us),
                taken.amount(),
            ];
            cells.push(row(known, [at(used.host_us), at(used.held.us), power]));
        }
        let all = self.0.values().fold(Taken::default(), |mut all, size| {
            all.add(&size.bill.taken);
            all
        });
        aligned(&cells, 0..12, columns) + &format!("energy: {}\n", all.how())
    }

    /// Returns, for programs, the average run of each size.
    pub fn json(&self, cost: Option<&Cost>) -> Value {
        let size = |((hosts, slots), size): (&(u64, u64), &Size)| {
            let (tasks, wall_us, bill) = size.mean();
            json!({
                "hosts": hosts, "slots": slots, "runs": size.runs, "tasks": tasks, "wall_us": wall_us,
                "cost": bill.json(cost),
            })
        };
        json!({ "sizes": self.0.iter().map(size).collect::<Vec<_>>() })
    }
}

fn row([a, b, c, d, e, f, g, h, i]: [String; 9], [j, k, l]: [String; 3]) -> [String; 12] {
    [a, b, c, d, e, f, g, h, i, j, k, l]
}
