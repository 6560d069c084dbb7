//! The trial of connections: it uses an extra mount beside the existing ones, which keep their connections.

use super::apply::{TrialResult, Tried, Tuner};
use super::compare::{Compared, Quantity};
use super::nfs;
use super::trials::{Through, Trial};
use crate::net::input;
use homing_exec::{Command, CommandOutcome};
use homing_model::Failure;
use homing_model::text::shown;
use homing_steps::{ChangePhase, ChangeStep, Observed, carry_out, observe, plan, undo};
use std::collections::BTreeMap;

/// Mounts, writes, reads, and removes all of that.
const CARRIES: &str = include_str!("mounts.sh");
/// As many samples as in the other trials; an extra one comes first, because it includes one-time costs.
const SAMPLES: usize = 4;
/// Size of each of four streams, MiB: at 1 Gbit/s, 8 MiB each take a quarter of a second together.
const STREAM: std::ops::RangeInclusive<f64> = 8.0..=512.0;
/// Assumed speed of a link that does not report it, Mbit/s.
const SPEED: u32 = 1000;

/// Mbit/s of all hosts together, written and read, one value for each sample.
#[derive(Default)]
struct Rates {
    written: Vec<f64>,
    read: Vec<f64>,
}

impl Tuner<'_> {
    /// Carries out a trial of connections. `seen` has the state of the hosts, and is updated if the trial is kept.
    pub fn widens(&self, trial: Trial, seen: &mut BTreeMap<String, Observed>) -> Result<Tried, Failure> {
        let Some(through) = trial.through.clone() else { return self.tries(trial, seen) };
        let hosts: Vec<String> = trial.wanted.keys().cloned().collect();
        let now =
            hosts.iter().filter_map(|host| seen.get(host)).map(|seen| nfs::connections(seen, &through.mounted.server));
        let now = now.min().unwrap_or(1);
        let (compared, fate) = match self.both(&trial, &through, now, &hosts) {
            Ok(compared) if super::apply::is_worth_it(&compared) => {
                let fate = self.told_to_mount(&through, &hosts, seen)?;
                (compared, fate)
            }
            Ok(compared) => (compared, TrialResult::Left),
            Err(why) => (Vec::new(), TrialResult::Failed(why.message)),
        };
        Ok(Tried { trial, compared, fate })
    }

    fn both(&self, trial: &Trial, through: &Through, now: u32, hosts: &[String]) -> Result<Vec<Compared>, Failure> {
        (self.reporter.progress)(&format!("{}: measuring with {now} per server", trial.name));
        self.sample_mounts(through, now, hosts)?;
        let before = self.rates(through, now, hosts)?;
        (self.reporter.progress)(&format!("{}: measuring", trial.name));
        let after = self.rates(through, through.connections, hosts)?;
        let written = Compared::rates(Quantity::Written, before.written, after.written);
        Ok(written.into_iter().chain(Compared::rates(Quantity::Read, before.read, after.read)).collect())
    }

    fn rates(&self, through: &Through, connections: u32, hosts: &[String]) -> Result<Rates, Failure> {
        let mut rates = Rates::default();
        for _ in 0..SAMPLES {
            let (written, read) = self.sample_mounts(through, connections, hosts)?;
            rates.written.push(written);
            rates.read.push(read);
        }
        Ok(rates)
    }

    /// Measures all hosts at once, as they use a server.
    fn sample_mounts(&self, through: &Through, connections: u32, hosts: &[String]) -> Result<(f64, f64), Failure> {
        let speed =
            self.hosts.known.iter().filter(|host| hosts.contains(&host.name)).filter_map(|host| host.speed).min();
        let mib = f64::from(speed.unwrap_or(SPEED)) * self.hosts.seconds() / 8.0 / 4.0;
        let mib = mib.clamp(*STREAM.start(), *STREAM.end()) as u32;
        let said = self.carries(through, &format!(",nconnect={connections}"), connections, mib, hosts)?;
        let sum = |word: &str| {
            let of = |text: &String| {
                let line = text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse::<f64>().ok());
                line.filter(|rate| rate.is_finite())
            };
            said.iter().map(of).sum::<Option<f64>>()
        };
        sum("written").zip(sum("read")).ok_or_else(|| Failure::system("a host printed no rate of its mount"))
    }

    fn carries(
        &self,
        through: &Through,
        options: &str,
        connections: u32,
        mib: u32,
        hosts: &[String],
    ) -> Result<Vec<String>, Failure> {
        let sudo: &[&str] = if self.executor.sudo { &["sudo", "-n"] } else { &[] };
        let (connections, mib) = (connections.to_string(), mib.to_string());
        let Through { mounted, .. } = through;
        let words = [
            "sh",
            "-s",
            "--",
            &mounted.source,
            nfs::beside(&mounted.version),
            options,
            &connections,
            &self.token,
            &mib,
        ];
        let command = Command::argv(sudo.iter().copied().chain(words)).input(input(CARRIES)?);
        let said = self.hosts.on(hosts, &command);
        said.into_iter()
            .map(|said| match said.outcome {
                CommandOutcome::Exited(0) => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
                _ => {
                    Err(Failure::system(format!("{}: mounting {}: {}", said.host, mounted.source, shown(&said.why()))))
                }
            })
            .collect()
    }

    /// Writes the file, and checks that a mount whose options name no number of connections obeys it.
    fn told_to_mount(
        &self,
        through: &Through,
        hosts: &[String],
        seen: &mut BTreeMap<String, Observed>,
    ) -> Result<TrialResult, Failure> {
        let mut steps: BTreeMap<String, Vec<ChangeStep>> = BTreeMap::new();
        for host in hosts {
            let there = seen.entry(host.clone()).or_default();
            let wanted = nfs::wanted(there, &through.mounted.server, through.connections);
            match plan(&[wanted], &mut there.clone()) {
                Ok(planned) => drop(steps.insert(host.clone(), planned)),
                Err(why) => return Ok(TrialResult::Failed(format!("{host}: {}", why.join("; ")))),
            }
        }
        let phase = |steps: &BTreeMap<String, Vec<ChangeStep>>| ChangePhase {
            name: "connections of mounts".into(),
            steps: steps.clone(),
            ..ChangePhase::default()
        };
        let failed = carry_out(self.executor, &[phase(&steps)], &mut |_| {});
        if !failed.is_empty() {
            let each: Vec<String> = failed.iter().map(|(host, why)| format!("{host}: {why}")).collect();
            return Ok(TrialResult::Failed(format!(
                "the new value was better, but keeping it failed: {}",
                each.join("; ")
            )));
        }
        for (host, steps) in &steps {
            let there = seen.entry(host.clone()).or_default();
            steps.iter().for_each(|step| there.apply(&step.change));
        }
        let Err(why) = self.carries(through, "", through.connections, 0, hosts) else {
            return Ok(TrialResult::Kept { lasting: true });
        };
        let (file, number) = (nfs::FILE, through.connections);
        let back = self.file_back(hosts);
        Ok(TrialResult::Failed(format!(
            "the new value was better, but {file} does not set it: {}; {back}; put nconnect={number} into /etc/fstab",
            why.message
        )))
    }

    /// Restores the file to its state before tuning, if mount.nfs does not read it.
    fn file_back(&self, hosts: &[String]) -> String {
        let seen = observe(self.executor, hosts, &super::question(None));
        let mut phase = ChangePhase { name: "connections of mounts".into(), ..ChangePhase::default() };
        for (host, there) in seen {
            let Ok(mut there) = there else { continue };
            there.journal.retain(|(_, change)| change.thing() == nfs::FILE);
            let undone = undo(&there);
            phase.steps.insert(host.clone(), undone.steps);
            phase.void.insert(host, undone.void);
        }
        let failed = carry_out(self.executor, &[phase], &mut |_| {});
        let each: Vec<String> = failed.iter().map(|(host, why)| format!("{host}: {why}")).collect();
        if each.is_empty() { "the file was restored".into() } else { each.join("; ") }
    }
}
