//! Read amplification: the bytes that interfaces and disks moved for each byte that tasks read. Its baseline is the
//! rate of the disks. Pure.

use homing_model::units::bytes;
use serde_json::{Value, json};

/// The text where the activity of hosts is unknown.
pub(crate) const UNKNOWN: &str = "unknown: fewer than two load samples of each host";

/// The bytes that tasks of a run read, and the bytes that its hosts moved meanwhile for any program. `None` is
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Amplified {
    /// Bytes of the tasks' read calls.
    pub read_bytes: Option<u64>,
    /// Bytes that the interfaces of the run's hosts received.
    pub received: Option<u64>,
    /// Bytes that their disks read and wrote.
    pub disks: Option<u64>,
}

impl Amplified {
    fn per_byte(&self, moved: Option<u64>) -> Option<f64> {
        let asked = self.read_bytes.filter(|asked| *asked > 0)?;
        Some(moved? as f64 / asked as f64)
    }

    /// Returns the amplification by interfaces as text, to follow their bytes.
    pub(crate) fn by_interfaces(&self) -> String {
        each(self.per_byte(self.received))
    }

    /// Returns the bytes that disks moved as text, beside the rate of all tasks in a run of `us` microseconds. Names
    /// the host with the highest disk rate.
    pub(crate) fn by_disks<'a>(&self, hosts: impl Iterator<Item = (&'a str, Disks)>, us: u64) -> String {
        let best =
            hosts.filter_map(|(name, disks)| Some((name, disks, disks.most?))).max_by(|a, b| a.2.total_cmp(&b.2));
        let (Some(moved), Some((name, disks, most))) = (self.disks, best) else { return UNKNOWN.into() };
        let per_s = |bytes_per_s: f64| format!("{}/s", bytes(bytes_per_s as u64));
        let rate = |moved: u64, us: u64| per_s(moved as f64 * 1e6 / us.max(1) as f64);
        let given = self.read_bytes.map_or("unknown".into(), |asked| rate(asked, us));
        let (moved, each, mean) = (bytes(moved), each(self.per_byte(self.disks)), rate(disks.moved, disks.us));
        format!(
            "{moved} moved ({each}); {name} moved at most {} and {mean} on average; all tasks read {given}",
            per_s(most)
        )
    }

    /// Returns both amplifications as JSON. `null` means unknown.
    pub(crate) fn json(&self) -> Value {
        json!({"received": self.per_byte(self.received), "disks": self.per_byte(self.disks)})
    }
}

/// Returns an amplification as text, to follow the moved bytes.
fn each(per_byte: Option<f64>) -> String {
    match per_byte {
        Some(times) => format!("{times:.2} for each byte requested"),
        None => "unknown for each byte requested".into(),
    }
}

/// The activity of a host's disks in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Disks {
    /// The highest rate between two samples, bytes per second.
    most: Option<f64>,
    moved: u64,
    us: u64,
}

impl Disks {
    /// Adds the bytes that the disks moved in `us` microseconds.
    pub(crate) fn add(&mut self, moved: Option<u64>, us: u64) {
        let Some(moved) = moved.filter(|_| us > 0) else { return };
        let rate = moved as f64 * 1e6 / us as f64;
        self.most = Some(self.most.map_or(rate, |most| most.max(rate)));
        (self.moved, self.us) = (self.moved + moved, self.us + us);
    }

    /// Returns the highest rate between two samples, bytes per second, or `None` without samples.
    pub(crate) fn most(&self) -> Option<f64> {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;
    use crate::made::{ended, started};
    use homing_model::event::EventKind;
    use homing_model::{Event, HostFacts, HostSample, IoCounters, Outcome};
    use std::collections::BTreeMap;

    #[test]
    fn what_is_not_known_is_said_to_be() {
        let of = |asked, received| Amplified { read_bytes: asked, received, disks: None }.by_interfaces();
        assert_eq!(of(Some(4), Some(64)), "16.00 for each byte requested");
        for (asked, received) in [(None, Some(64)), (Some(0), Some(64)), (Some(4), None)] {
            assert_eq!(of(asked, received), "unknown for each byte requested");
        }
        let mut disks = Disks::default();
        disks.add(None, 1_000_000);
        disks.add(Some(5), 0);
        let none = Amplified { read_bytes: Some(1), received: None, disks: None };
        assert_eq!(none.by_disks([("n1", disks)].into_iter(), 1), UNKNOWN);
    }

    /// Makes a run whose only task reads so many bytes, while 64 KB are moved.
    fn tally_of(asked: u64) -> Tally {
        let sample = |s: i64, blocks: u64, received: u64| HostSample {
            at_ns: s * 1_000_000_000,
            disk_blocks: Some(blocks),
            net: BTreeMap::from([("eth0".to_string(), (received, 0))]),
            ..HostSample::default()
        };
        let up = |host: &str| EventKind::HostUp { host: host.into(), slots: 1, facts: HostFacts::default() };
        let of = |host: &str, sample| EventKind::Sample { host: host.into(), sample };
        let io = IoCounters { rchar: Some(asked), ..IoCounters::default() };
        let whats = [
            up("n1"),
            up("n2"),
            of("n1", sample(0, 0, 0)),
            of("n2", sample(0, 0, 0)),
            started(1, "n2", 1, "grep x y", None),
            of("n1", sample(1, 100, 0)),
            of("n2", sample(1, 0, 40_000)),
            of("n1", sample(2, 125, 0)),
            of("n2", sample(2, 0, 64_000)),
            ended(1, "n2", Outcome::Exit(0), 2_000_000, io),
        ];
        let mut tally = Tally::new();
        for (n, what) in whats.into_iter().enumerate() {
            tally.add(&Event { at_ns: if n < 9 { 0 } else { 2_000_000_000 }, what });
        }
        tally
    }

    #[test]
    fn a_run_tells_what_was_moved_and_what_disks_alone_gave() {
        let text = tally_of(40_000).text(false);
        let network =
            "network    64.0 kB received (1.60 for each byte requested) and 0 B sent by the hosts' interfaces";
        let disks = "disks      64.0 kB moved (1.60 for each byte requested); n1 moved at most 51.2 kB/s and 32.0 \
            kB/s on average; all tasks read 20.0 kB/s";
        assert!(text.contains(network) && text.contains(disks), "{text}");
        let json = tally_of(4_000).json();
        assert_eq!(json["amplification"], json!({"received": 16.0, "disks": 16.0}));
        assert_eq!(json["hosts"]["n1"]["disk_most_bytes_per_s"], json!(51_200.0));
        assert_eq!(Tally::new().json()["amplification"], json!({"received": null, "disks": null}));
    }

    /// Interfaces and disks also count the bytes of other programs.
    #[test]
    fn figures_that_the_tasks_explain_less_than_half_of_are_not_shown() {
        let text = tally_of(31_999).text(false);
        assert!(!text.contains("network    ") && !text.contains("disks      "), "{text}");
        let text = tally_of(32_000).text(false);
        assert!(text.contains("network    ") && text.contains("disks      "), "{text}");
    }

    #[test]
    fn disks_that_moved_nothing_have_no_line() {
        let lines = |blocks: u64| {
            let up = |host: &str| EventKind::HostUp { host: host.into(), slots: 1, facts: HostFacts::default() };
            let of = |seconds: i64, blocks: u64| {
                let at_ns = seconds * 1_000_000_000;
                let sample = HostSample { at_ns, disk_blocks: Some(blocks), ..HostSample::default() };
                EventKind::Sample { host: "n1".into(), sample }
            };
            let io = IoCounters { rchar: Some(1 << 20), ..IoCounters::default() };
            let begin = started(1, "n1", 1, "cat a", None);
            let end = ended(1, "n1", Outcome::Exit(0), 1, io);
            let mut tally = Tally::new();
            let whats = [up("n1"), up("n2"), of(0, 0), begin, of(1, blocks), end];
            whats.into_iter().for_each(|what| tally.add(&Event { at_ns: 0, what }));
            tally.text(false).lines().filter(|line| line.starts_with("disks ")).count()
        };
        assert_eq!((lines(0), lines(8)), (0, 1));
    }

    #[test]
    fn containers_of_one_machine_have_its_disks_once() {
        let mut tally = Tally::new();
        for (host, boot) in [("n1", "a"), ("n2", "a"), ("n3", "b")] {
            let facts = HostFacts { boot_id: boot.into(), ..HostFacts::default() };
            tally.add(&Event { at_ns: 0, what: EventKind::HostUp { host: host.into(), slots: 1, facts } });
            for s in [0, 1] {
                let sample =
                    HostSample { at_ns: s * 1_000_000_000, disk_blocks: Some(100 * s as u64), ..HostSample::default() };
                tally.add(&Event { at_ns: 0, what: EventKind::Sample { host: host.into(), sample } });
            }
        }
        assert_eq!(tally.amplified().disks, Some(2 * 51_200));
    }
}
