//! Energy that a host uses, and the kind of meter that measured it.

use serde::{Deserialize, Serialize};

/// The energy that a host has used since its worker began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Energy {
    /// Microjoules.
    pub uj: u64,
    /// Time in which it was measured, microseconds.
    pub us: u64,
    /// The kind of meter.
    pub by: MeteredBy,
}

/// The kinds of energy meters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeteredBy {
    /// Counters of the processors (RAPL), which leave out disks, fans, interfaces and the losses of the supply.
    #[default]
    Rapl,
    /// A power meter of the firmware's, by ACPI.
    Hwmon,
    /// The site's command: a controller of the board, a switched outlet, a meter in between.
    Meter,
}

impl Energy {
    /// Returns the energy used since an earlier reading of the same counter. If the counter began anew, returns all
    /// of it.
    pub fn since(&self, before: Option<&Energy>) -> Energy {
        let before = before.filter(|before| before.by == self.by && before.us <= self.us);
        let grown = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0));
        Energy { uj: grown(self.uj, before.map(|b| b.uj)), us: grown(self.us, before.map(|b| b.us)), by: self.by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_began_anew_counts_from_nothing() {
        let at = |uj, us, by| Energy { uj, us, by };
        let now = at(50, 5, MeteredBy::Meter);
        assert_eq!(now.since(Some(&at(20, 2, MeteredBy::Meter))), at(30, 3, MeteredBy::Meter));
        assert_eq!(
            [None, Some(at(90, 9, MeteredBy::Meter)), Some(at(1, 1, MeteredBy::Rapl))].map(|b| now.since(b.as_ref())),
            [now; 3]
        );
    }
}
