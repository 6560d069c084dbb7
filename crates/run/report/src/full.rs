//! The links and processors of hosts that were full during a run, and the most that more of them would save. Pure:
//! from steps between samples, and rates of links.

use crate::change::{ClusterChange, Saves};
use crate::load::HostInterval;
use homing_model::NodeSet;
use homing_model::alike::label;
use homing_model::units::bytes;
use serde_json::{Value, json};
use std::fmt::{self, Display};

/// The fill level from which a link or a processor counts as full. A link with frames of 1,538 bytes carries at most
/// 98.7 % as counted by its interface, 1,518 bytes of each (IEEE 802.3). The rest of the margin is for
/// acknowledgements of the opposite direction, and for samples that begin and end within a transfer.
const FULL: f64 = 0.9;
/// The part of the run's time from which a full resource is reported. A shorter period did not set the length of the
/// run.
const TOLD: f64 = 0.5;
/// A part of a host that can be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostResource {
    /// The sending direction of a link, bytes per second.
    Sent(u64),
    /// The receiving direction of a link, bytes per second.
    Received(u64),
    /// All processors.
    Processors,
}

impl HostResource {
    /// Returns the name for JSON, and the rate of a link.
    fn named(self) -> (&'static str, Option<u64>) {
        match self {
            HostResource::Sent(rate) => ("sent", Some(rate)),
            HostResource::Received(rate) => ("received", Some(rate)),
            HostResource::Processors => ("processors", None),
        }
    }
}

/// The time in which a part was full, microseconds, and the same time weighted by the fill level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Gauge {
    full_us: u64,
    filled_us: f64,
}

impl Gauge {
    fn add(&mut self, us: u64, part: f64) {
        if part >= FULL {
            self.full_us += us;
            self.filled_us += us as f64 * part.min(1.0);
        }
    }

    /// Returns the part of a run of `wall_us` in which it was full.
    fn share(self, wall_us: u64) -> f64 {
        self.full_us as f64 / wall_us.max(1) as f64
    }

    /// Returns the mean fill level during that time, 0 to 1.
    fn filled(self) -> f64 {
        self.filled_us / self.full_us as f64
    }
}

/// The gauges of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    sent: Gauge,
    received: Gauge,
    processors: Gauge,
    /// Time of all processors in the steps in which they were full, microseconds.
    processors_us: u64,
    /// Processor time of the run's own tasks, microseconds.
    own_us: u64,
}

impl Gauges {
    /// Adds a step. `link` is the rate of the host's link, bytes per second.
    pub(crate) fn add(&mut self, step: &HostInterval, link: Option<u64>) {
        if let (Some((received, sent)), Some(link)) = (step.busiest, link.filter(|_| step.us > 0)) {
            let part = |n: u64| n as f64 * 1e6 / (step.us as f64 * link as f64);
            self.received.add(step.us, part(received));
            self.sent.add(step.us, part(sent));
        }
        if let Some((busy, all)) = step.processors.filter(|(_, all)| *all > 0) {
            let part = busy as f64 / all as f64;
            self.processors.add(step.us, part);
            self.processors_us += if part >= FULL { all } else { 0 };
        }
    }

    /// Adds the processor time of an ended task of the run, microseconds.
    pub(crate) fn add_own(&mut self, us: u64) {
        self.own_us += us;
    }

    /// Whether the run itself filled the processors, rather than other users of the host.
    fn is_own(&self) -> bool {
        self.own_us as f64 >= TOLD * self.processors_us as f64
    }

    /// Returns each part with its gauge.
    fn each(&self, link: Option<u64>) -> impl Iterator<Item = (HostResource, Gauge)> {
        let links =
            link.map(|rate| [(HostResource::Sent(rate), self.sent), (HostResource::Received(rate), self.received)]);
        let processors = self.is_own().then_some((HostResource::Processors, self.processors));
        links.into_iter().flatten().chain(processors)
    }

    /// Returns as JSON the parts that were full at any time of a run of `wall_us`.
    pub(crate) fn json(&self, link: Option<u64>, wall_us: u64) -> Value {
        let row = |(what, gauge): (HostResource, Gauge)| {
            let (name, rate) = what.named();
            json!({
                "what": name, "bytes_per_s": rate, "part_of_run": gauge.share(wall_us), "filled": gauge.filled(),
            })
        };
        self.each(link).filter(|(_, gauge)| gauge.full_us > 0).map(row).collect()
    }
}

/// A part that was full for most of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Full {
    /// The hosts on which it was full.
    pub hosts: NodeSet,
    /// The part.
    pub what: HostResource,
    /// The part of the run's time in which it was full: the mean of the hosts, 0 to 1.
    pub share: f64,
    /// The mean fill level during that time, 0 to 1.
    pub filled: f64,
    /// The savings of changes to it.
    pub more: Vec<(ClusterChange, Saves)>,
    /// The reason why the savings are only bounds.
    pub unpredicted: Option<String>,
}

/// Returns the parts that were full for most of a run of `wall_us`, the worst first.
pub(crate) fn of<'a>(hosts: impl Iterator<Item = (&'a str, &'a Gauges, Option<u64>)>, wall_us: u64) -> Vec<Full> {
    let mut found: Vec<Full> = Vec::new();
    for (host, gauges, link) in hosts {
        for (what, gauge) in gauges.each(link) {
            let share = gauge.share(wall_us).min(1.0);
            if share < TOLD {
                continue;
            }
            let filled = gauge.filled();
            match found.iter_mut().find(|full| full.what == what) {
                Some(full) => full.join(host, share, filled),
                None => found.push(Full::new(host, what, share, filled)),
            }
        }
    }
    found.iter_mut().for_each(|full| full.more = full.bounds());
    found.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.what.cmp(&b.what)));
    found
}

impl Full {
    fn new(host: &str, what: HostResource, share: f64, filled: f64) -> Full {
        let hosts = std::iter::once(host.to_string()).collect();
        Full { hosts, what, share, filled, more: Vec::new(), unpredicted: None }
    }

    fn join(&mut self, host: &str, share: f64, filled: f64) {
        let n = self.hosts.len() as f64;
        let mean = |sum: f64, one: f64| (sum * n + one) / (n + 1.0);
        (self.share, self.filled) = (mean(self.share, share), mean(self.filled, filled));
        self.hosts = self.hosts.union(&std::iter::once(host.to_string()).collect());
    }

    /// Returns possible changes. `holder` is the host for a copy.
    pub(crate) fn changes(&self, holder: Option<String>) -> Vec<ClusterChange> {
        match self.what {
            HostResource::Sent(rate) => [ClusterChange::Copy(holder), ClusterChange::Host]
                .into_iter()
                .chain(ClusterChange::wider(rate))
                .collect(),
            HostResource::Received(rate) => {
                [ClusterChange::Host].into_iter().chain(ClusterChange::wider(rate)).collect()
            }
            HostResource::Processors => vec![ClusterChange::Host],
        }
    }

    /// Returns the upper bound of the saving, as a part of the run's time: the saving if no other part limits the
    /// run. The time in which the part was full shrinks by the added capacity. The rest of the run does not change.
    fn bound(&self, change: &ClusterChange) -> Option<f64> {
        match (change, self.what) {
            (ClusterChange::Link { from, to }, _) => Some(self.share * (1.0 - self.filled * *from as f64 / *to as f64)),
            (ClusterChange::Host, HostResource::Sent(_)) => None,
            (ClusterChange::Copy(_) | ClusterChange::Host, _) => Some(self.share / (self.hosts.len() as f64 + 1.0)),
        }
    }

    /// Sets the savings to a prediction, or keeps the bounds with the reason.
    pub(crate) fn set_savings(&mut self, predicted: Result<Vec<(ClusterChange, f64)>, String>) {
        match predicted {
            Ok(predicted) => {
                self.more = predicted.into_iter().map(|(change, part)| (change, Saves::About(part))).collect()
            }
            Err(why) => self.unpredicted = Some(why),
        }
    }

    fn bounds(&self) -> Vec<(ClusterChange, Saves)> {
        let bound = |change: ClusterChange| Some((change.clone(), Saves::AtMost(self.bound(&change)?)));
        self.changes(None).into_iter().filter_map(bound).collect()
    }

    /// Returns the same as JSON.
    pub(crate) fn json(&self) -> Value {
        let (what, rate) = self.what.named();
        json!({
            "hosts": self.hosts.to_string(), "what": what, "bytes_per_s": rate, "part_of_run": self.share,
            "filled": self.filled, "unpredicted": self.unpredicted,
            "changes": self.more.iter().map(|(change, saves)| saves.json(change)).collect::<Vec<_>>(),
        })
    }
}

impl Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (hosts, percent) = (label(&self.hosts), |part: f64| format!("{:.0} %", part * 100.0));
        let (filled, share) = (percent(self.filled), percent(self.share));
        let link = |rate: u64| format!("the link of {hosts} ({}/s)", bytes(rate));
        match self.what {
            HostResource::Sent(rate) => write!(f, "{} sent, {filled} full for {share} of the run", link(rate))?,
            HostResource::Received(rate) => write!(f, "{} received, {filled} full for {share} of the run", link(rate))?,
            HostResource::Processors => write!(f, "the processors of {hosts}, {filled} busy for {share} of the run")?,
        }
        let is_bound = |(_, saves): &(ClusterChange, Saves)| matches!(saves, Saves::AtMost(_));
        if matches!(self.what, HostResource::Sent(_)) && self.more.iter().any(is_bound) {
            write!(f, "; more hosts that read from it would gain nothing")?;
        }
        self.more.iter().try_for_each(|(change, saves)| write!(f, "; {change}: {saves}"))?;
        self.unpredicted.iter().try_for_each(|why| write!(f, " (no prediction: {why})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;
    use homing_model::event::EventKind;
    use homing_model::{Event, HostFacts, HostSample};
    use std::collections::BTreeMap;

    const LINK: u64 = 12_500_000;

    fn step(received: u64, sent: u64, busy: u64) -> HostInterval {
        HostInterval {
            us: 1_000_000,
            busiest: Some((received, sent)),
            processors: Some((busy * 10_000, 1_000_000)),
            ..HostInterval::default()
        }
    }

    /// For tasks that used half a processor all the time.
    fn report_lines(hosts: &[(&str, &[HostInterval])], seconds: u64) -> Vec<String> {
        told_of(hosts, seconds, 500_000)
    }

    fn told_of(hosts: &[(&str, &[HostInterval])], seconds: u64, own_us: u64) -> Vec<String> {
        let gauges: Vec<(&str, Gauges)> = hosts
            .iter()
            .map(|(host, steps)| {
                let mut gauges = Gauges::default();
                steps.iter().for_each(|step| gauges.add(step, Some(LINK)));
                gauges.add_own(own_us * seconds);
                (*host, gauges)
            })
            .collect();
        let all = of(gauges.iter().map(|(host, gauges)| (*host, gauges, Some(LINK))), seconds * 1_000_000);
        all.iter().map(Full::to_string).collect()
    }

    #[test]
    fn the_link_of_a_server_is_named_with_what_more_would_bring() {
        let full = [step(0, LINK * 96 / 100, 10); 8];
        assert_eq!(
            report_lines(&[("n1", &full), ("n2", &[step(LINK * 40 / 100, 0, 20); 8])], 10),
            ["the link of n1 (12.5 MB/s) sent, 96 % full for 80 % of the run; more hosts that read from it would \
                 gain nothing; the same bytes on one more host: at most -40 %; a link of 1 Gbit/s: at most -72 %"]
        );
    }

    #[test]
    fn what_is_full_for_less_than_half_of_the_run_or_nearly_full_is_not_told() {
        assert_eq!(report_lines(&[("n1", &[step(0, LINK, 10); 4])], 10), [""; 0]);
        assert_eq!(report_lines(&[("n1", &[step(0, LINK * 89 / 100, 89); 10])], 10), [""; 0]);
    }

    #[test]
    fn hosts_of_which_the_same_is_full_are_told_together() {
        let busy = [step(0, 0, 95); 10];
        assert_eq!(
            report_lines(&[("n1", &busy), ("n2", &busy), ("n3", &busy)], 10),
            ["the processors of n[1-3] (3), 95 % busy for 100 % of the run; one more host: at most -25 %"]
        );
        assert_eq!(told_of(&[("n1", &busy)], 10, 490_000), [""; 0], "others used most of them");
        let received = report_lines(&[("n1", &[step(LINK, 0, 0); 10])], 10);
        assert!(received[0].contains("received, 100 % full") && received[0].contains("one more host: at most -50 %"));
    }

    /// From the events of a journal: the line, its JSON, and the page.
    #[test]
    fn a_run_tells_it_everywhere() {
        let sample = |s: i64, sent: u64| HostSample {
            at_ns: s * 1_000_000_000,
            net: BTreeMap::from([("eth0".to_string(), (0, sent))]),
            ..HostSample::default()
        };
        let facts = HostFacts { nic_bytes_per_s: Some(LINK), ..HostFacts::default() };
        let up = EventKind::HostUp { host: "n1".into(), slots: 1, facts };
        let samples = (0..=10).map(|s| EventKind::Sample { host: "n1".into(), sample: sample(s, s as u64 * LINK) });
        let events: Vec<Event> = std::iter::once(up)
            .chain(samples)
            .enumerate()
            .map(|(n, what)| Event { at_ns: n.saturating_sub(1) as i64 * 1_000_000_000, what })
            .collect();
        let mut tally = Tally::new();
        events.iter().for_each(|event| tally.add(event));
        let line = "the link of n1 (12.5 MB/s) sent, 100 % full for 100 % of the run";
        assert!(tally.text(false).contains(&format!("full       {line}")), "{}", tally.text(false));
        let row = &tally.json()["hosts"]["n1"]["full"][0];
        assert_eq!(
            (&row["what"], &row["part_of_run"], &row["bytes_per_s"]),
            (&json!("sent"), &json!(1.0), &json!(LINK))
        );
        assert!(crate::html(&events, &tally).contains(&format!("<p>Full: {line}")));
    }

    #[test]
    fn a_link_whose_rate_nobody_told_is_never_full() {
        let mut gauges = Gauges::default();
        gauges.add(&step(u64::MAX, u64::MAX, 0), None);
        assert_eq!(gauges.json(None, 1), json!([]));
    }
}
