//! Runs one trial: sets a value under guard, checks it, measures it, and keeps it or takes it back.

use super::compare::{Compared, Sample};
use super::lasting::{self, is_own};
use super::trials::{Trial, TunableKind};
use crate::ProgressReporter;
use crate::net::Hosts;
use homing_exec::Remote;
use homing_model::{Failure, NodeSet};
use homing_network::{BackgroundTraffic, RoundOrder, circle};
use homing_steps::{ChangePhase, ChangeStep, Guarded, Observed, SshExecutor, carry_out, plan};
use std::collections::BTreeMap;

/// Samples before a change, and as many after: if nothing has changed, all four of one side are better by chance once
/// in 70.
const SAMPLES: usize = 4;

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialResult {
    /// Better by more than the noise, and kept. `lasting`: whether it outlives a reboot.
    #[allow(missing_docs)]
    Kept { lasting: bool },
    /// No better by more than the noise, or something is worse; taken back.
    Left,
    /// Failed with this reason and taken back: a host refused the value, a large packet was lost, or a host was cut
    /// off.
    Failed(String),
}

/// A trial with its measurements and its result.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The trial.
    pub trial: Trial,
    /// Quantities before and after; empty where they could not be measured.
    pub compared: Vec<Compared>,
    /// Its result.
    pub fate: TrialResult,
}

/// Carries out trials.
pub struct Tuner<'a> {
    /// All hosts, measured over connections of their own.
    pub hosts: &'a Hosts,
    /// Runs scripts on the hosts.
    pub executor: &'a SshExecutor,
    /// Opens a connection that was not there before.
    pub fresh: &'a dyn Fn() -> Remote,
    /// Letters and digits that no other homing uses for a guard.
    pub token: String,
    /// Whether kept values are also written to files for the next boot.
    pub lasting: bool,
    /// Shows progress and notes to the user.
    pub reporter: ProgressReporter,
}

impl Tuner<'_> {
    /// Carries out a trial. `seen` has the state of the hosts, and is updated if the trial is kept.
    pub fn tries(&self, trial: Trial, seen: &mut BTreeMap<String, Observed>) -> Result<Tried, Failure> {
        (self.reporter.progress)(&format!("{}: measuring the current value", trial.name));
        let before = self.samples()?;
        let steps = match planned(&trial, seen) {
            Ok(steps) => steps,
            Err(why) => return Ok(Tried { trial, compared: Vec::new(), fate: TrialResult::Failed(why) }),
        };
        (self.reporter.progress)(&format!("{}: setting it on {}", trial.name, names(steps.keys())));
        let guarded = self.guarded(&trial, &steps);
        let compared = match self.set(&trial, &guarded) {
            Ok(()) => {
                (self.reporter.progress)(&format!("{}: measuring the new value", trial.name));
                self.samples().map(|after| Compared::all(&before, &after)).map_err(|e| e.message)
            }
            Err(why) => Err(why),
        };
        let (compared, fate) = match compared {
            Ok(compared) => {
                let fate = if is_worth_it(&compared) { self.keep(&trial, &guarded, seen) } else { TrialResult::Left };
                (compared, fate)
            }
            Err(why) => (Vec::new(), TrialResult::Failed(why)),
        };
        let fate = match fate {
            TrialResult::Kept { .. } => fate,
            TrialResult::Failed(why) => TrialResult::Failed(guarded.taken_back(Some(why)).unwrap_or_default()),
            left => guarded.taken_back(None).map_or(left, TrialResult::Failed),
        };
        Ok(Tried { trial, compared, fate })
    }

    fn samples(&self) -> Result<Vec<Sample>, Failure> {
        let all: Vec<usize> = (0..self.hosts.known.len()).collect();
        let matchings = circle(&all);
        (0..SAMPLES).map(|nth| self.sample(&matchings[nth % matchings.len()])).collect()
    }

    fn sample(&self, pairs: &[(usize, usize)]) -> Result<Sample, Failure> {
        let round = self.hosts.carry_out(&RoundOrder {
            load: BackgroundTraffic::Crowd,
            brief: false,
            pairs: pairs.to_vec(),
        })?;
        Sample::of(&round).ok_or_else(|| {
            let bad = round.pairs.iter().find(|pair| pair.stalled || pair.failed.is_some());
            let (who, why) = bad.map_or((String::new(), None), |pair| {
                let names = [pair.a, pair.b].map(|at| self.hosts.known[at].name.as_str());
                (names.join(" and "), pair.failed.clone())
            });
            Failure::system(format!(
                "measuring between {who}: {}",
                why.as_deref().unwrap_or("small packets pass, large ones do not")
            ))
            .hint("`homing bench net` finds the fault; tuning starts once the network has none")
        })
    }

    fn guarded<'g>(&'g self, trial: &'g Trial, steps: &'g BTreeMap<String, Vec<ChangeStep>>) -> Guarded<'g> {
        let (executor, fresh, token) = (self.executor, self.fresh, self.token.as_str());
        Guarded { name: &trial.name, steps, executor, fresh, token, lead: None, is_own }
    }

    /// Sets the value, and checks that packets of a new MTU pass between all hosts.
    fn set(&self, trial: &Trial, guarded: &Guarded) -> Result<(), String> {
        guarded.set()?;
        // A set value may break connections: packets that are too large may be lost without an error.
        let Some(bytes) = trial_mtu(trial) else { return Ok(()) };
        let lost = self.hosts.lost(bytes);
        if !lost.is_empty() {
            return Err(format!("packets of {bytes} bytes do not arrive: {}", lost.join(", ")));
        }
        Ok(())
    }

    fn keep(&self, trial: &Trial, guarded: &Guarded, seen: &mut BTreeMap<String, Observed>) -> TrialResult {
        if let Err(why) = guarded.keep() {
            return TrialResult::Failed(format!("the new value was better, but keeping it failed: {why}"));
        }
        for (host, steps) in guarded.steps {
            let of = seen.entry(host.clone()).or_default();
            steps.iter().for_each(|step| of.apply(&step.change));
        }
        let hosts: Vec<String> = guarded.steps.keys().cloned().collect();
        let lasting = self.lasting && self.written(trial, &hosts, seen);
        TrialResult::Kept { lasting }
    }

    /// Writes the value for the next boot. Returns whether all hosts have it.
    fn written(&self, trial: &Trial, hosts: &[String], seen: &mut BTreeMap<String, Observed>) -> bool {
        let mut all = BTreeMap::new();
        for host in hosts {
            match lasting::steps(trial, host, seen.entry(host.clone()).or_default()) {
                Ok(steps) => drop(all.insert(host.clone(), steps)),
                Err(why) => (self.reporter.note)(&format!(
                    "{host}: {} is lost at the next boot of this host: {why}",
                    trial.name
                )),
            }
        }
        let phase = ChangePhase { name: "files for the next boot".into(), steps: all, ..ChangePhase::default() };
        let failed = carry_out(self.executor, &[phase], &mut |_| {});
        let lost = failed
            .iter()
            .map(|(host, why)| format!("{host}: {} is lost at the next boot of this host: {why}", trial.name));
        lost.for_each(|line| (self.reporter.note)(&line));
        failed.is_empty()
    }
}

/// Plans the steps of each host; returns an error if one host cannot have its value.
fn planned(trial: &Trial, seen: &BTreeMap<String, Observed>) -> Result<BTreeMap<String, Vec<ChangeStep>>, String> {
    let of = |(host, wanted): (&String, &Vec<_>)| {
        let mut there = seen.get(host).cloned().unwrap_or_default();
        let steps = plan(wanted, &mut there).map_err(|why| format!("{host}: {}", why.join("; ")))?;
        Ok((host.clone(), steps))
    };
    trial.wanted.iter().map(of).collect()
}

pub(super) fn is_worth_it(compared: &[Compared]) -> bool {
    compared.iter().any(Compared::is_better) && !compared.iter().any(Compared::is_worse)
}

fn trial_mtu(trial: &Trial) -> Option<u32> {
    let value = |wanted: &homing_steps::HostRequirement| match wanted {
        homing_steps::HostRequirement::Link { value, .. } => value.parse().ok(),
        _ => None,
    };
    trial.wanted.values().flatten().find_map(value).filter(|_| trial.kind == TunableKind::Mtu)
}

fn names<'n>(hosts: impl Iterator<Item = &'n String>) -> NodeSet {
    hosts.cloned().collect()
}
