//! The cost of a run: its part of its hosts, and their energy.

use homing_cluster::{Cluster, Cost};
use homing_model::text::shown;
use homing_model::units::span;
use homing_report::{RunUsage, Taken, Used, between, two};
use serde_json::{Value, json};

/// The resources that a run used, and the energy that its hosts took for it.
#[derive(Default)]
pub struct Bill {
    /// The part of its hosts.
    pub used: Used,
    /// Their energy.
    pub taken: Taken,
}

impl Bill {
    /// Makes the bill of a run.
    pub fn of(usage: RunUsage, cluster: &Cluster) -> Bill {
        let mut bill = Bill::default();
        for (key, used) in usage.rows() {
            bill.taken.add(&used.taken(&key.host, cluster.watts(&key.host)));
            bill.used.add(&used);
        }
        bill
    }

    /// Returns a part of it, of the hosts and the energy.
    pub fn part(&self, part: f64) -> Bill {
        let host_us = (self.used.host_us as f64 * part) as u64;
        Bill {
            used: Used { host_us, held: self.used.held.part(part), ..Used::default() },
            taken: self.taken.part(part),
        }
    }

    /// Formats it as further lines of the evidence.
    pub fn lines(&self, cost: Option<&Cost>) -> String {
        let currency = cost.map_or(String::new(), |cost| shown(&cost.currency));
        let (used, held) = (span(self.used.host_us), span(self.used.held.us));
        let hosts = match cost.and_then(Cost::host_hour) {
            Some(price) => format!(
                "{} {currency}: {used} of host time at {} an hour; {} for the {held} for which hosts were held",
                money(self.used.cost(price)),
                (price * 1e4).round() / 1e4,
                money(price_of(self.used.held.us, price)),
            ),
            None => format!("{used} of host time; hosts were held for {held}; [cost] has no price of a host"),
        };
        let mut lines = vec![("cost", hosts), ("energy", self.taken.to_string())];
        if let Some((cost, amount)) = cost.and_then(|cost| Some((cost, cost.of_energy(&self.taken)?))) {
            let price = cost.kwh.unwrap_or_default();
            lines.push(("power", format!("{} {currency} at {price} a kWh", bounds(amount))));
        }
        lines.into_iter().map(|(label, text)| format!("{label:<11}{text}\n")).collect()
    }

    /// Returns it for programs.
    pub fn json(&self, cost: Option<&Cost>) -> Value {
        let price = cost.and_then(Cost::host_hour);
        json!({
            "amount": price.map(|price| self.used.cost(price)), "currency": cost.map(|cost| &cost.currency),
            "host_us": self.used.host_us,
            "held_us": self.used.held.us, "held_amount": price.map(|price| price_of(self.used.held.us, price)),
            "energy": self.taken.json(), "energy_amount": cost.and_then(|cost| cost.of_energy(&self.taken)),
        })
    }
}

/// Returns the price of so many microseconds of whole hosts.
pub(crate) fn price_of(host_us: u64, host_hour: f64) -> f64 {
    Used { host_us, ..Used::default() }.cost(host_hour)
}

/// Formats an amount; below a hundredth with its first significant digits.
pub(crate) fn money(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { two(amount) } else { format!("{amount:.2}") }
}

/// Formats the two bounds of an amount.
pub(crate) fn bounds(amount: [f64; 2]) -> String {
    between(amount, money)
}
