//! The energy of hosts while runs had them: measured or by a model, with a lower and an upper bound. Pure.

use homing_model::{Energy, HostSample, MeteredBy, NodeSet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

/// The upper bound of a host's energy, as a multiple of RAPL's count. Of 350 servers, loaded ones took 1.8 and 1.9
/// times RAPL's count at their supplies (hubblo-org/scaphandre, issue 201). With many disks it is more.
const RAPL_MOST: f64 = 2.0;
/// The unmeasured part of a run's time is assumed to be like the rest up to this limit. It may also be as long as the
/// time between the last sample and the end of the run, `LAST_US` microseconds.
const UNMEASURED: f64 = 0.05;
const LAST_US: u64 = 1_500_000;
/// The microjoules of a Wh.
const WH: f64 = 3.6e9;

/// The use of a host while a run had it, or a part of that use. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUsage {
    /// The time for which the run had the host.
    pub us: u64,
    /// Processor time that any program used.
    pub busy_us: u64,
    /// Processor time of all processors.
    pub all_us: u64,
    /// The measured energy by meter: microjoules, and the part of the time that they cover.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<MeteredBy, (u64, u64)>,
}

impl HostUsage {
    pub(crate) fn add(&mut self, other: &HostUsage) {
        self.us = self.us.saturating_add(other.us);
        self.busy_us = self.busy_us.saturating_add(other.busy_us);
        self.all_us = self.all_us.saturating_add(other.all_us);
        for (by, (uj, us)) in &other.measured {
            let sum = self.measured.entry(*by).or_default();
            *sum = (sum.0.saturating_add(*uj), sum.1.saturating_add(*us));
        }
    }

    /// Returns this part of the use, 0 to 1.
    pub fn part(&self, part: f64) -> HostUsage {
        let of = |n: u64| (n as f64 * part).round() as u64;
        let measured = self.measured.iter().map(|(by, (uj, us))| (*by, (of(*uj), of(*us)))).collect();
        HostUsage { us: of(self.us), busy_us: of(self.busy_us), all_us: of(self.all_us), measured }
    }
}

/// The state of a host that a run has, from its samples.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// The start of its worker, or of the counted period if that is later.
    since_ns: Option<i64>,
    /// Processor time at the last sample, all and idle.
    processors: Option<(u64, u64)>,
    energy: Option<Energy>,
    held: HostUsage,
}

impl Holding {
    /// Starts a period of a worker.
    pub fn begin(&mut self, at_ns: i64) {
        self.end(at_ns);
        self.since_ns = Some(at_ns);
    }

    /// Ends the period. The time until the next worker starts does not belong to this run.
    pub fn end(&mut self, at_ns: i64) {
        let since_ns = self.since_ns.take().unwrap_or(at_ns);
        self.held.us += (at_ns - since_ns).max(0) as u64 / 1000;
        (self.processors, self.energy) = (None, None);
    }

    /// Adds a sample. `counts`: whether the step since the last sample counts.
    pub fn add(&mut self, sample: &HostSample, counts: bool) {
        let now = sample.cpu_total_us.zip(sample.cpu_idle_us);
        let before = std::mem::replace(&mut self.processors, now);
        let energy = sample.energy.map(|energy| energy.since(self.energy.replace(energy).as_ref()));
        if !counts {
            return;
        }
        let grown = |(now, before): ((u64, u64), (u64, u64))| {
            let all = now.0.checked_sub(before.0)?;
            Some((all, all.saturating_sub(now.1.checked_sub(before.1)?)))
        };
        let (all_us, busy_us) = now.zip(before).and_then(grown).unwrap_or_default();
        let measured = energy.map(|energy| (energy.by, (energy.uj, energy.us))).into_iter().collect();
        self.held.add(&HostUsage { us: 0, busy_us, all_us, measured });
    }

    /// Returns the whole use, whose period ended at `at_ns`.
    pub fn whole(mut self, at_ns: i64) -> HostUsage {
        self.end(at_ns);
        let mut held = self.held;
        let measured_us = held.measured.values().map(|(_, us)| us).sum::<u64>();
        let rest = held.us.saturating_sub(measured_us);
        if measured_us > 0 && rest <= LAST_US.max((held.us as f64 * UNMEASURED) as u64) {
            let more = held.us.max(measured_us) as f64 / measured_us as f64;
            let whole = |n: &mut u64| *n = (*n as f64 * more) as u64;
            held.measured.values_mut().for_each(|(uj, us)| [uj, us].into_iter().for_each(whole));
        }
        held
    }
}

/// The energy of hosts, and its source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// The lower bound, microjoules: the used part of the slots, less the processor use of other programs.
    pub least_uj: f64,
    /// The upper bound, microjoules: all energy of the hosts.
    pub most_uj: f64,
    by: BTreeMap<MeteredBy, BTreeSet<String>>,
    model: BTreeSet<String>,
    /// The lowest and the highest power in the model, watts.
    model_w: Option<(f64, f64)>,
    unknown: BTreeSet<String>,
}

impl Taken {
    /// Returns the energy of a host while it was held. `cpu_us` is the processor time of its attempts, `host_us`
    /// their time as a part of the host's slots. `watts` are the configured idle and full power of the host.
    pub(crate) fn of(host: &str, held: &HostUsage, [cpu_us, host_us]: [u64; 2], watts: Option<[f64; 2]>) -> Taken {
        let (mut taken, host) = (Taken::default(), BTreeSet::from([host.to_string()]));
        let mut measured_us = 0;
        for (by, (uj, us)) in &held.measured {
            measured_us += us;
            taken.least_uj += *uj as f64;
            taken.most_uj += *uj as f64 * if *by == MeteredBy::Rapl { RAPL_MOST } else { 1.0 };
            taken.by.insert(*by, host.clone());
        }
        let rest = held.us.saturating_sub(measured_us) as f64;
        if held.us == 0 && measured_us == 0 {
            taken.unknown = host;
        } else if rest > held.us as f64 * UNMEASURED {
            match watts {
                Some(watts) => {
                    let busy = [part(held.busy_us, held.all_us), part(host_us, held.us)];
                    taken.add_model(watts, busy, rest, host);
                }
                None => taken.unknown = host,
            }
        }
        let others = part(held.busy_us.saturating_sub(cpu_us), held.all_us);
        taken.least_uj *= part(host_us, held.us) * (1.0 - others);
        taken
    }

    /// Adds the energy of a linear model between idle and full power, by Fan, Weber and Barroso (ISCA 2007). One
    /// bound uses the processors in use, the other the slots. Tasks that wait for disks lie between both.
    fn add_model(&mut self, [idle, full]: [f64; 2], busy: [f64; 2], rest_us: f64, host: BTreeSet<String>) {
        let full = full.max(idle);
        let uj = |busy: f64| (idle + (full - idle) * busy) * rest_us;
        self.least_uj += uj(busy[0].min(busy[1]));
        self.most_uj += uj(busy[0].max(busy[1]));
        (self.model, self.model_w) = (host, Some((idle, full)));
    }

    /// Adds the energy of others.
    pub fn add(&mut self, other: &Taken) {
        self.least_uj += other.least_uj;
        self.most_uj += other.most_uj;
        for (by, hosts) in &other.by {
            self.by.entry(*by).or_default().extend(hosts.iter().cloned());
        }
        self.model.extend(other.model.iter().cloned());
        let both = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        self.model_w = match (self.model_w, other.model_w) {
            (Some(a), Some(b)) => Some(both(a, b)),
            (a, b) => a.or(b),
        };
        self.unknown.extend(other.unknown.iter().cloned());
    }

    /// Returns this part of the energy, 0 to 1.
    pub fn part(&self, part: f64) -> Taken {
        Taken { least_uj: self.least_uj * part, most_uj: self.most_uj * part, ..self.clone() }
    }

    /// Returns the bounds, kWh.
    pub fn kwh(&self) -> [f64; 2] {
        [self.least_uj, self.most_uj].map(|uj| uj / (1e3 * WH))
    }

    /// Whether any part of the energy is known.
    pub fn is_known(&self) -> bool {
        !self.by.is_empty() || !self.model.is_empty()
    }

    /// Returns the bounds as text, `-` where the energy is unknown.
    pub fn amount(&self) -> String {
        let (unit, size) = match self.most_uj {
            _ if !self.is_known() => return "-".into(),
            most if most < WH => ("J", 1e6),
            most if most < 1e3 * WH => ("Wh", WH),
            most if most < 1e6 * WH => ("kWh", 1e3 * WH),
            _ => ("MWh", 1e6 * WH),
        };
        format!("{} {unit}", between([self.least_uj, self.most_uj].map(|uj| uj / size), two))
    }

    /// Returns the source of the energy, with its hosts.
    pub fn how(&self) -> String {
        let on = |hosts: &BTreeSet<String>| hosts.iter().cloned().collect::<NodeSet>().to_string();
        let measured = self.by.iter().map(|(by, hosts)| match by {
            MeteredBy::Rapl => {
                format!("RAPL on {}, without disks, fans and losses: the hosts may use up to twice as much", on(hosts))
            }
            MeteredBy::Hwmon => format!("the firmware's meter on {}", on(hosts)),
            MeteredBy::Meter => format!("the meter of [power] on {}", on(hosts)),
        });
        let model = self.model_w.map(|(idle, full)| format!("a model on {}, {idle} to {full} W each", on(&self.model)));
        let unknown = (!self.unknown.is_empty()).then(|| format!("not measured on {}", on(&self.unknown)));
        measured.chain(model).chain(unknown).collect::<Vec<_>>().join("; ")
    }

    /// Returns the energy as JSON, null where it is unknown.
    pub fn json(&self) -> Value {
        match self.is_known() {
            true => json!({
                "least_j": self.least_uj / 1e6, "most_j": self.most_uj / 1e6,
                "measured": self.by, "model": self.model, "unknown": self.unknown,
            }),
            false => Value::Null,
        }
    }
}

/// Returns `n` as a part of `of`, 0 to 1.
fn part(n: u64, of: u64) -> f64 {
    if of > 0 { (n as f64 / of as f64).min(1.0) } else { 0.0 }
}

/// Formats two bounds, as one if they look the same. A lower bound below a hundredth of the upper one is printed as
/// 0.
pub fn between([least, most]: [f64; 2], show: impl Fn(f64) -> String) -> String {
    let least = if least < most / 100.0 { "0".into() } else { show(least) };
    let most = show(most);
    if least == most { most } else { format!("{least} to {most}") }
}

/// Formats a number with two significant digits.
pub fn two(number: f64) -> String {
    let order = if number > 0.0 { number.log10().floor() as i32 } else { 0 };
    let step = 10f64.powi(order - 1);
    format!("{:.*}", (1 - order).max(0) as usize, (number / step).round() * step)
}

impl Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_known() { write!(f, "{}: {}", self.amount(), self.how()) } else { write!(f, "{}", self.how()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Used;

    const SECOND: u64 = 1_000_000;

    /// Ten seconds of a host with four processors. Two were busy, one of them for the run, which used one of two
    /// slots.
    fn used(measured: &[(MeteredBy, u64, u64)]) -> Used {
        let measured = measured.iter().map(|(by, joules, s)| (*by, (joules * SECOND, s * SECOND))).collect();
        let held = HostUsage { us: 10 * SECOND, busy_us: 20 * SECOND, all_us: 40 * SECOND, measured };
        Used { attempts: 1, cpu_us: 10 * SECOND, host_us: 5 * SECOND, held, ..Used::default() }
    }

    fn joules(taken: &Taken) -> (f64, f64) {
        (taken.least_uj / 1e6, taken.most_uj / 1e6)
    }

    #[test]
    fn what_is_measured_lies_between_the_tasks_part_and_all() {
        let meter = used(&[(MeteredBy::Meter, 2000, 10)]).taken("n1", Some([1.0, 2.0]));
        assert_eq!(
            (joules(&meter), meter.to_string()),
            ((750.0, 2000.0), "750 to 2000 J: the meter of [power] on n1".into())
        );
        let mut rapl = used(&[(MeteredBy::Rapl, 1000, 10)]).taken("n2", None);
        assert_eq!(joules(&rapl), (375.0, 2000.0));
        rapl.add(&meter);
        rapl.add(&Used { attempts: 1, ..Used::default() }.taken("n3", None));
        assert_eq!(
            rapl.to_string(),
            "0.31 to 1.1 Wh: RAPL on n2, without disks, fans and losses: the hosts may use up to twice as much; the \
             meter of [power] on n1; not measured on n3"
        );
        assert_eq!(rapl.json()["measured"], json!({"rapl": ["n2"], "meter": ["n1"]}));
    }

    #[test]
    fn without_a_meter_the_watts_that_are_said_give_a_model_and_else_nothing_is_said() {
        let none = used(&[]).taken("n1", None);
        assert_eq!(
            (none.to_string(), none.amount(), none.json()),
            ("not measured on n1".into(), "-".into(), Value::Null)
        );
        // Half of the processors and half of the slots are in use.
        let model = used(&[]).taken("n1", Some([100.0, 200.0]));
        assert_eq!((joules(&model), model.how()), ((562.5, 1500.0), "a model on n1, 100 to 200 W each".into()));
        let slots = Used { host_us: 10 * SECOND, ..used(&[]) };
        assert_eq!(joules(&slots.taken("n1", Some([100.0, 200.0]))), (1125.0, 2000.0));
        // The meter stopped after a fifth of the time.
        let silent = used(&[(MeteredBy::Hwmon, 400, 2)]);
        assert_eq!(silent.taken("n1", None).how(), "the firmware's meter on n1; not measured on n1");
        assert_eq!(joules(&silent.taken("n1", Some([100.0, 200.0]))), (600.0, 1600.0));
    }

    #[test]
    fn a_holding_adds_up_what_lies_between_samples_of_one_worker() {
        let sample = |s: i64, joules: Option<u64>| HostSample {
            cpu_total_us: Some(s as u64 * 4 * SECOND),
            cpu_idle_us: Some(s as u64 * SECOND),
            energy: joules.map(|j| Energy { uj: j * SECOND, us: (s as u64 % 100) * SECOND, by: MeteredBy::Meter }),
            ..HostSample::default()
        };
        let mut holding = Holding::default();
        let ns = 1_000_000_000;
        holding.begin(100 * ns);
        holding.add(&sample(100, Some(5)), false);
        holding.add(&sample(101, None), true);
        holding.add(&sample(103, Some(50)), true);
        holding.end(103 * ns);
        holding.begin(200 * ns);
        holding.add(&sample(203, Some(7)), true);
        let measured = BTreeMap::from([(MeteredBy::Meter, (52 * SECOND, 6 * SECOND))]);
        let held = holding.whole(203 * ns);
        assert_eq!(held, HostUsage { us: 6 * SECOND, busy_us: 9 * SECOND, all_us: 12 * SECOND, measured });
        let half = held.part(0.5);
        assert_eq!((half.us, half.measured[&MeteredBy::Meter].0), (3 * SECOND, 26 * SECOND));
    }

    #[test]
    fn the_end_behind_the_last_sample_counts_like_the_rest_and_more_does_not() {
        let measured = |seconds: i64| {
            let mut holding = Holding::default();
            holding.begin(0);
            let energy = Some(Energy { uj: 10 * SECOND, us: 2 * SECOND, by: MeteredBy::Rapl });
            holding.add(&HostSample { energy, ..HostSample::default() }, true);
            holding.whole(seconds * 1_000_000_000).measured[&MeteredBy::Rapl]
        };
        assert_eq!(
            [1, 3, 4].map(measured),
            [(10 * SECOND, 2 * SECOND), (15 * SECOND, 3 * SECOND), (10 * SECOND, 2 * SECOND)]
        );
    }

    #[test]
    fn bounds_that_read_alike_are_one() {
        let told = |bounds| between(bounds, two);
        assert_eq!([told([1.01, 1.02]), told([0.5, 1.0]), told([0.001, 1.0])], ["1.0", "0.50 to 1.0", "0 to 1.0"]);
    }

    #[test]
    fn no_more_than_two_digits_count() {
        assert_eq!(
            [0.0, 0.004_56, 0.123, 1.0, 9.96, 12.3, 456.0].map(two),
            ["0.0", "0.0046", "0.12", "1.0", "10.0", "12", "460"]
        );
    }
}
