//! The summary at the end of a build.

use crate::place::Why;
use homing_model::units::count;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One recipe that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Its first words.
    pub label: String,
    /// Name of the host.
    pub host: String,
    /// Number of the slot there, for the trace.
    pub slot: u32,
    /// The reason for this host.
    pub why: Why,
    /// Time of the request, microseconds since the build began.
    pub asked_us: u64,
    /// Time of sending to the host, likewise.
    pub sent_us: u64,
    /// Time when its end was known here, likewise.
    pub ended_us: u64,
    /// The command itself, microseconds.
    pub wall_us: u64,
    /// Its processor time, microseconds.
    pub cpu_us: u64,
    /// Time in fences on its host and on this one, microseconds.
    pub fence_us: u64,
    /// Whether it exited with another status than 0.
    pub failed: bool,
    /// Whether it was the second attempt, because a missing file was found by a fresh look.
    pub again: bool,
}

impl Ran {
    /// Returns the time between sending and the known end with visible files, without the command itself: transport
    /// both ways, and fences.
    pub fn beyond_us(&self) -> u64 {
        self.ended_us.saturating_sub(self.sent_us).saturating_sub(self.wall_us)
    }
}

/// All recipes of a build.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// In the order in which they ended.
    pub ran: Vec<Ran>,
    /// Recipes that ran on this host without a worker, by reason.
    pub here: BTreeMap<String, u64>,
    /// Files that recipes changed.
    pub changes: u64,
}

impl Evidence {
    /// Returns the lines for the end of a build.
    pub fn text(&self, wall_us: u64) -> String {
        let mut out = String::new();
        let seconds = |us: u64| us as f64 / 1e6;
        let total: u64 = self.ran.iter().map(|r| r.wall_us).sum();
        let ms_each = |us: u64| us as f64 / 1e3 / self.ran.len().max(1) as f64;
        let beyond: u64 = self.ran.iter().map(Ran::beyond_us).sum();
        if self.ran.is_empty() {
            // Only workers report time and changes of recipes.
            let here = count(self.here.values().sum(), "recipe");
            return format!("homing make: {here} in {:.1} s\n", seconds(wall_us)) + &self.here_text();
        }
        let _ = writeln!(
            out,
            "homing make: {} in {:.1} s, {:.1} s of commands, {} changed",
            count(self.ran.len() as u64, "recipe"),
            seconds(wall_us),
            seconds(total),
            count(self.changes, "file"),
        );
        let _ = writeln!(
            out,
            "  {:.1} ms of overhead for each recipe, {:.1} % of its time; {:.1} ms of that in fences",
            ms_each(beyond),
            100.0 * beyond as f64 / (beyond + total).max(1) as f64,
            ms_each(self.ran.iter().map(|r| r.fence_us).sum()),
        );
        for (host, ran) in self.by_host() {
            let busy: u64 = ran.iter().map(|r| r.wall_us).sum();
            let mut whys: BTreeMap<Why, usize> = BTreeMap::new();
            ran.iter().for_each(|r| *whys.entry(r.why).or_default() += 1);
            let whys: Vec<String> = whys.iter().map(|(why, n)| format!("{why} {n}")).collect();
            let recipes = count(ran.len() as u64, "recipe");
            let _ = writeln!(out, "  {host:<12} {recipes:>14} {:>8.1} s  ({})", seconds(busy), whys.join(", "));
        }
        out += &self.here_text();
        let mut slow: Vec<&Ran> = self.ran.iter().collect();
        slow.sort_by_key(|r| std::cmp::Reverse(r.wall_us));
        for r in slow.iter().take(3).filter(|r| r.wall_us > 500_000) {
            let _ = writeln!(out, "  slowest: {:.1} s on {}: {}", seconds(r.wall_us), r.host, r.label);
        }
        out
    }

    fn here_text(&self) -> String {
        let line = |(reason, n): (&String, &u64)| format!("  on this machine, without a worker: {n} ({reason})\n");
        self.here.iter().map(line).collect()
    }

    fn by_host(&self) -> BTreeMap<&str, Vec<&Ran>> {
        let mut hosts: BTreeMap<&str, Vec<&Ran>> = BTreeMap::new();
        self.ran.iter().for_each(|r| hosts.entry(&r.host).or_default().push(r));
        hosts
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn ran(host: &str, wall_us: u64) -> Ran {
        Ran {
            label: "cc -c a.c".into(),
            host: host.into(),
            slot: 1,
            why: Why::Load,
            asked_us: 10,
            sent_us: 20,
            ended_us: 4020 + wall_us,
            wall_us,
            cpu_us: wall_us,
            fence_us: 1000,
            failed: false,
            again: false,
        }
    }

    #[test]
    fn hosts_reasons_fences_and_the_slowest_are_told() {
        let evidence = Evidence { ran: vec![ran("n1", 900_000), ran("n2", 100_000)], ..Evidence::default() };
        let text = evidence.text(1_000_000);
        assert!(text.contains("2 recipes in 1.0 s, 1.0 s of commands, 0 files changed"), "{text}");
        assert!(text.contains("4.0 ms of overhead for each recipe, 0.8 % of its time; 1.0 ms of"), "{text}");
        assert!(text.contains("n1                 1 recipe      0.9 s  (least loaded 1)"), "{text}");
        assert!(text.contains("slowest: 0.9 s on n1: cc -c a.c"), "{text}");
    }

    #[test]
    fn recipes_that_ran_without_a_worker_are_counted_too() {
        let evidence =
            Evidence { here: BTreeMap::from([("why".into(), 2), ("else".into(), 1)]), ..Evidence::default() };
        let told = "homing make: 3 recipes in 1.0 s\n  on this machine, without a worker: 1 (else)\n  on this \
            machine, without a worker: 2 (why)\n";
        assert_eq!(evidence.text(1_000_000), told);
    }
}
