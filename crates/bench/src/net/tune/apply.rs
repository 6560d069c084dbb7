//! One trial: guarded, proved, measured, kept or taken back.

use super::compare::{Compared, Sample};
use super::lasting::{self, is_own};
use super::trials::{Kind, Trial};
use crate::net::Hosts;
use crate::{BenchError, Tell};
use homing_exec::{Command, Outcome, Remote};
use homing_model::NodeSet;
use homing_model::text::shown;
use homing_network::{Load, Order, circle};
use homing_steps::{Guard, Observed, Phase, SshExecutor, Step, carry_out, observe, plan, undo};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// After so many seconds a host takes back what nobody has confirmed over a new connection.
const GUARDED_S: u64 = 10;
/// A host that a new connection has reached keeps what is tried for so long while it is measured.
const MEASURED_S: u64 = 180;
/// Further tries of a new connection: some cards take their link down for a second or two over a setting.
const CALLS: usize = 3;
/// A host that was cut off is waited for as long as its guard and this.
const BESIDES: Duration = Duration::from_secs(20);
/// Before a host that is cut off is called again.
const PAUSE: Duration = Duration::from_millis(300);
/// Rounds before, and as many after: where nothing has changed, all four of one side are the better ones once in 70.
const SAMPLES: usize = 4;

/// What became of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Better by more than the noise. `lasting`: it outlives a reboot.
    #[allow(missing_docs)]
    Kept { lasting: bool },
    /// No better by more than the noise, or something is worse: taken back.
    Left,
    /// Hosts refused it, or a large packet did not get through, or somebody was cut off: taken back, and why.
    Failed(String),
}

/// A trial, and what was seen.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What was tried.
    pub trial: Trial,
    /// Before and after; empty where it could not be measured.
    pub compared: Vec<Compared>,
    /// What became of it.
    pub fate: Fate,
}

/// What tries.
pub struct Tuner<'a> {
    /// All hosts, measured over connections of their own.
    pub hosts: &'a Hosts,
    /// The connections that are kept.
    pub executor: &'a SshExecutor,
    /// A connection that was not there before.
    pub fresh: &'a dyn Fn() -> Remote,
    /// Letters and digits that no other homing uses for a guard.
    pub token: String,
    /// What is kept is written down for the next boot.
    pub lasting: bool,
    /// The user.
    pub tell: Tell,
}

impl Tuner<'_> {
    /// Tries it. `seen`: what hosts are like, and are like afterwards.
    pub fn tries(&self, trial: Trial, seen: &mut BTreeMap<String, Observed>) -> Result<Tried, BenchError> {
        (self.tell.progress)(&format!("{}: measured as it is", trial.name));
        let before = self.samples()?;
        let steps = match planned(&trial, seen) {
            Ok(steps) => steps,
            Err(why) => return Ok(Tried { trial, compared: Vec::new(), fate: Fate::Failed(why) }),
        };
        (self.tell.progress)(&format!("{}: set on {}", trial.name, names(steps.keys())));
        let compared = match self.guarded(&trial, &steps) {
            Ok(()) => {
                (self.tell.progress)(&format!("{}: measured again", trial.name));
                self.samples().map(|after| Compared::all(&before, &after)).map_err(|e| e.message)
            }
            Err(why) => Err(why),
        };
        let (compared, fate) = match compared {
            Ok(compared) => {
                let fate = if is_worth_it(&compared) { self.keep(&trial, &steps, seen) } else { Fate::Left };
                (compared, fate)
            }
            Err(why) => (Vec::new(), Fate::Failed(why)),
        };
        let fate = match fate {
            Fate::Kept { .. } => fate,
            other => self.taken_back(&steps, other),
        };
        Ok(Tried { trial, compared, fate })
    }

    fn samples(&self) -> Result<Vec<Sample>, BenchError> {
        let all: Vec<usize> = (0..self.hosts.known.len()).collect();
        let matchings = circle(&all);
        (0..SAMPLES).map(|nth| self.sample(&matchings[nth % matchings.len()])).collect()
    }

    fn sample(&self, pairs: &[(usize, usize)]) -> Result<Sample, BenchError> {
        let round = self.hosts.carry_out(&Order { load: Load::Crowd, brief: false, pairs: pairs.to_vec() })?;
        Sample::of(&round).ok_or_else(|| {
            let bad = round.pairs.iter().find(|pair| pair.stalled || pair.failed.is_some());
            let (who, why) = bad.map_or((String::new(), None), |pair| {
                let names = [pair.a, pair.b].map(|at| self.hosts.known[at].name.as_str());
                (names.join(" and "), pair.failed.clone())
            });
            BenchError::failed(format!(
                "measuring between {who}: {}",
                why.as_deref().unwrap_or("small packets pass, large ones do not")
            ))
            .hint("homing bench net tells what is wrong; nothing is tuned on top of that")
        })
    }

    /// Sets it, under a guard of each host, and proves that nobody is cut off from here, and that packets of a new MTU pass
    /// between all hosts.
    fn guarded(&self, trial: &Trial, steps: &BTreeMap<String, Vec<Step>>) -> Result<(), String> {
        let guard = Guard { seconds: GUARDED_S, token: self.token.clone() };
        let phase = Phase { name: trial.name.clone(), steps: steps.clone(), guard: Some(guard), ..Phase::default() };
        let failed = carry_out(self.executor, &[phase], &mut |_| {});
        // A host that drops its connection over a setting is asked once more; one that refused it is not.
        let hosts: Vec<String> = steps.keys().cloned().collect();
        let silent = self.calls(&hosts, &Guard::extended(MEASURED_S));
        if !silent.is_empty() {
            let each =
                silent.iter().map(|(host, why)| format!("{host}: no new connection came through in time: {why}"));
            return Err(each.collect::<Vec<_>>().join("; "));
        }
        if !failed.is_empty() {
            return Err(failed.iter().map(|(host, why)| format!("{host}: {why}")).collect::<Vec<_>>().join("; "));
        }
        // Whatever is measured next goes over new connections from other hosts; large packets may be lost in silence.
        let Some(bytes) = trial_mtu(trial) else { return Ok(()) };
        let lost = self.hosts.lost(bytes);
        if !lost.is_empty() {
            return Err(format!("packets of {bytes} bytes do not come through: {}", lost.join(", ")));
        }
        Ok(())
    }

    /// Runs a script on all over new connections; those that fail, and why.
    fn calls(&self, hosts: &[String], script: &str) -> BTreeMap<String, String> {
        let sudo: &[&str] = if self.executor.sudo { &["sudo", "-n"] } else { &[] };
        let command = Command::argv(sudo.iter().chain(&["sh", "-c", script]).copied());
        let mut left = hosts.to_vec();
        let mut failed = BTreeMap::new();
        for _ in 0..CALLS {
            let results = (self.fresh)().run(&left, &command);
            let ill = results.filter(|result| result.outcome != Outcome::Exited(0));
            failed = ill.map(|result| (result.host.clone(), shown(&result.why()))).collect();
            left = failed.keys().cloned().collect();
            if left.is_empty() {
                break;
            }
        }
        failed
    }

    fn keep(&self, trial: &Trial, steps: &BTreeMap<String, Vec<Step>>, seen: &mut BTreeMap<String, Observed>) -> Fate {
        let hosts: Vec<String> = steps.keys().cloned().collect();
        let failed = self.calls(&hosts, Guard::KEEP);
        if !failed.is_empty() {
            let each: Vec<String> = failed.iter().map(|(host, why)| format!("{host}: {why}")).collect();
            return Fate::Failed(format!("it was better, and could not be kept: {}", each.join("; ")));
        }
        for (host, steps) in steps {
            let of = seen.entry(host.clone()).or_default();
            steps.iter().for_each(|step| of.apply(&step.change));
        }
        let lasting = self.lasting && self.written(trial, &hosts, seen);
        Fate::Kept { lasting }
    }

    /// Whether all hosts have it written down for the next boot.
    fn written(&self, trial: &Trial, hosts: &[String], seen: &mut BTreeMap<String, Observed>) -> bool {
        let mut all = BTreeMap::new();
        for host in hosts {
            match lasting::steps(trial, host, seen.entry(host.clone()).or_default()) {
                Ok(steps) => drop(all.insert(host.clone(), steps)),
                Err(why) => (self.tell.note)(&format!("{host}: {} is lost at its next boot: {why}", trial.name)),
            }
        }
        let phase = Phase { name: "files for the next boot".into(), steps: all, ..Phase::default() };
        let failed = carry_out(self.executor, &[phase], &mut |_| {});
        let lost = failed.iter().map(|(host, why)| format!("{host}: {} is lost at its next boot: {why}", trial.name));
        lost.for_each(|line| (self.tell.note)(&line));
        failed.is_empty()
    }

    /// All hosts as they were: at once where they are reached, else by their guard.
    fn taken_back(&self, steps: &BTreeMap<String, Vec<Step>>, fate: Fate) -> Fate {
        let begun = Instant::now();
        let mut left: Vec<String> = steps.keys().cloned().collect();
        let at_once: BTreeSet<String> = {
            let failed = self.calls(&left, Guard::FIRE);
            left.retain(|host| failed.contains_key(host));
            steps.keys().filter(|host| !failed.contains_key(*host)).cloned().collect()
        };
        while !left.is_empty() && begun.elapsed() < Duration::from_secs(GUARDED_S) + BESIDES {
            let failed = self.calls(&left, Guard::FIRE);
            left.retain(|host| failed.contains_key(host));
            std::thread::sleep(PAUSE);
        }
        let back: NodeSet = steps.keys().filter(|h| !left.contains(h) && !at_once.contains(*h)).cloned().collect();
        let tidied = self.tidied(steps);
        match fate {
            Fate::Failed(why) => {
                let mut text = why;
                if !at_once.is_empty() {
                    text += &format!("; {}: taken back", names(at_once.iter()));
                }
                if !back.is_empty() {
                    text += &format!("; {back}: took it back without being asked, and answers again");
                }
                if !left.is_empty() {
                    text += &format!("; {}: does not answer still, look at its console", names(left.iter()));
                }
                Fate::Failed(text)
            }
            _ if !left.is_empty() => Fate::Failed(format!("{}: does not answer any more", names(left.iter()))),
            other => tidied.map_or(other, Fate::Failed),
        }
    }

    /// Entries of the journals of what is back are removed; what is not back is told.
    fn tidied(&self, steps: &BTreeMap<String, Vec<Step>>) -> Option<String> {
        let hosts: Vec<String> = steps.keys().cloned().collect();
        let changes = steps.values().flatten().map(|step| &step.change);
        let found = observe(self.executor, &hosts, &homing_steps::Question::of_changes(changes));
        let (mut void, mut not_back) = (BTreeMap::new(), Vec::new());
        for (host, there) in found {
            let Ok(mut there) = there else { continue };
            there.journal.retain(|(_, change)| is_own(change));
            let things: BTreeSet<String> = steps[&host].iter().map(|step| step.change.thing()).collect();
            let undone = undo(&there);
            let still = |step: &&Step| things.contains(&step.change.thing());
            let back = |change: &homing_steps::Change| change.inverse();
            let same = |step: &Step| steps[&host].iter().any(|own| back(&own.change).as_ref() == Some(&step.change));
            if let Some(step) = undone.steps.iter().filter(still).find(|step| same(step)) {
                not_back.push(format!("{host}: {} did not go back", step.change.thing()));
            }
            void.insert(host, undone.void);
        }
        let phase = Phase { name: "the journal".into(), void, ..Phase::default() };
        carry_out(self.executor, &[phase], &mut |_| {});
        (!not_back.is_empty()).then(|| not_back.join("; "))
    }
}

/// What hosts are to do, by host; nothing on any of them where one cannot.
fn planned(trial: &Trial, seen: &BTreeMap<String, Observed>) -> Result<BTreeMap<String, Vec<Step>>, String> {
    let of = |(host, wanted): (&String, &Vec<_>)| {
        let mut there = seen.get(host).cloned().unwrap_or_default();
        let steps = plan(wanted, &mut there).map_err(|why| format!("{host}: {}", why.join("; ")))?;
        Ok((host.clone(), steps))
    };
    trial.wanted.iter().map(of).collect()
}

fn is_worth_it(compared: &[Compared]) -> bool {
    compared.iter().any(Compared::is_better) && !compared.iter().any(Compared::is_worse)
}

fn trial_mtu(trial: &Trial) -> Option<u32> {
    let value = |wanted: &homing_steps::Wanted| match wanted {
        homing_steps::Wanted::Link { value, .. } => value.parse().ok(),
        _ => None,
    };
    trial.wanted.values().flatten().find_map(value).filter(|_| trial.kind == Kind::Mtu)
}

fn names<'n>(hosts: impl Iterator<Item = &'n String>) -> NodeSet {
    hosts.cloned().collect()
}
