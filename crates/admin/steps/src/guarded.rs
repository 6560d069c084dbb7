//! Carries out steps that may cut hosts off: under a guard on each host, checked over new connections, then kept or
//! undone.

use crate::change::HostChange;
use crate::execute::{ChangePhase, carry_out};
use crate::executor::SshExecutor;
use crate::guard::Guard;
use crate::observe::{FactQuery, observe};
use crate::plan::ChangeStep;
use crate::undo::undo;
use homing_exec::{Command, CommandOutcome, Remote};
use homing_model::NodeSet;
use homing_model::text::shown;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Seconds after which a host undoes steps that were not confirmed over a new connection.
const GUARDED_S: u64 = 10;
/// Seconds for which a host that a new connection has reached keeps the tried values, while they are measured.
const MEASURED_S: u64 = 180;
/// Attempts to make a new connection: some cards take their link down for a second or two when a setting changes.
const CALLS: usize = 3;
/// Time to wait for a host that was cut off, in addition to that of its guard.
const BESIDES: Duration = Duration::from_secs(20);
/// Pause before a host that is cut off is called again.
const PAUSE: Duration = Duration::from_millis(300);

/// Steps of hosts, all at the same time.
pub struct Guarded<'a> {
    /// Their common purpose.
    pub name: &'a str,
    /// The steps of each host.
    pub steps: &'a BTreeMap<String, Vec<ChangeStep>>,
    /// The permanent connections. If a script sets something and does not answer within their time limit, its host is
    /// cut off: the guard has not fired by then.
    pub executor: &'a SshExecutor,
    /// Opens a connection that was not there before.
    pub fresh: &'a dyn Fn() -> Remote,
    /// Letters and digits that no other homing uses for a guard.
    pub token: &'a str,
    /// As in [`ChangePhase::lead`].
    pub lead: Option<String>,
    /// Whether a change of the journal is one that such steps make.
    pub is_own: fn(&HostChange) -> bool,
}

impl Guarded<'_> {
    fn hosts(&self) -> Vec<String> {
        self.steps.keys().cloned().collect()
    }

    /// Carries out the steps, and checks that no host is cut off from here. The guards stay active for three more
    /// minutes.
    pub fn set(&self) -> Result<(), String> {
        let guard = Guard { seconds: GUARDED_S, token: self.token.into() };
        let (name, steps, lead) = (self.name.into(), self.steps.clone(), self.lead.clone());
        let phase = ChangePhase { name, steps, guard: Some(guard), lead, ..ChangePhase::default() };
        let failed = carry_out(self.executor, &[phase], &mut |_| {});
        // All hosts are called over new connections, also those whose steps failed: a setting may drop the connection
        // of its own script.
        let silent = self.calls(&self.hosts(), &Guard::extended(MEASURED_S));
        if !silent.is_empty() {
            let each = silent.iter().map(|(host, why)| format!("{host}: no new connection succeeded in time: {why}"));
            return Err(each.collect::<Vec<_>>().join("; "));
        }
        if !failed.is_empty() {
            return Err(failed.iter().map(|(host, why)| format!("{host}: {why}")).collect::<Vec<_>>().join("; "));
        }
        Ok(())
    }

    /// Runs a script on hosts over new connections. Returns the hosts where it fails, with the reason.
    fn calls(&self, hosts: &[String], script: &str) -> BTreeMap<String, String> {
        let sudo: &[&str] = if self.executor.sudo { &["sudo", "-n"] } else { &[] };
        let command = Command::argv(sudo.iter().chain(&["sh", "-c", script]).copied());
        let mut left = hosts.to_vec();
        let mut failed = BTreeMap::new();
        for _ in 0..CALLS {
            let results = (self.fresh)().run(&left, &command);
            let ill = results.filter(|result| result.outcome != CommandOutcome::Exited(0));
            failed = ill.map(|result| (result.host.clone(), shown(&result.why()))).collect();
            left = failed.keys().cloned().collect();
            if left.is_empty() {
                break;
            }
        }
        failed
    }

    /// Stops the guards.
    pub fn keep(&self) -> Result<(), String> {
        let failed = self.calls(&self.hosts(), Guard::KEEP);
        let each: Vec<String> = failed.iter().map(|(host, why)| format!("{host}: {why}")).collect();
        if each.is_empty() { Ok(()) } else { Err(each.join("; ")) }
    }

    /// Undoes the steps on all hosts: at once on hosts that can be reached, else by their guard. `why` is the reason.
    /// Returns a message about the hosts; `None` if `why` is `None` and all went well.
    pub fn taken_back(&self, why: Option<String>) -> Option<String> {
        let begun = Instant::now();
        let mut left = self.hosts();
        let at_once: BTreeSet<String> = {
            let failed = self.calls(&left, Guard::FIRE);
            left.retain(|host| failed.contains_key(host));
            self.steps.keys().filter(|host| !failed.contains_key(*host)).cloned().collect()
        };
        while !left.is_empty() && begun.elapsed() < Duration::from_secs(GUARDED_S) + BESIDES {
            let failed = self.calls(&left, Guard::FIRE);
            left.retain(|host| failed.contains_key(host));
            std::thread::sleep(PAUSE);
        }
        let hosts = self.steps.keys();
        let back: NodeSet = hosts.filter(|h| !left.contains(h) && !at_once.contains(*h)).cloned().collect();
        let tidied = self.tidied();
        match why {
            Some(mut text) => {
                if !at_once.is_empty() {
                    text += &format!("; {}: undone", names(at_once.iter()));
                }
                if !back.is_empty() {
                    text += &format!("; {back}: undid it by its own timer, and answers again");
                }
                if !left.is_empty() {
                    text += &format!("; {}: still no answer; see its console", names(left.iter()));
                }
                Some(text)
            }
            None if !left.is_empty() => {
                Some(format!("{}: no answer since the change was undone; see its console", names(left.iter())))
            }
            None => tidied,
        }
    }

    /// Removes the journal entries of settings that were undone. Returns the settings that were not.
    fn tidied(&self) -> Option<String> {
        let changes = self.steps.values().flatten().map(|step| &step.change);
        let question = FactQuery { lead: self.lead.clone(), ..FactQuery::of_changes(changes) };
        let found = observe(self.executor, &self.hosts(), &question);
        let (mut void, mut not_back) = (BTreeMap::new(), Vec::new());
        for (host, there) in found {
            let Ok(mut there) = there else { continue };
            there.journal.retain(|(_, change)| (self.is_own)(change));
            let things: BTreeSet<String> = self.steps[&host].iter().map(|step| step.change.thing()).collect();
            let undone = undo(&there);
            let still = |step: &&ChangeStep| things.contains(&step.change.thing());
            let back = |change: &HostChange| change.inverse();
            let same = |step: &ChangeStep| {
                self.steps[&host].iter().any(|own| back(&own.change).as_ref() == Some(&step.change))
            };
            if let Some(step) = undone.steps.iter().filter(still).find(|step| same(step)) {
                not_back.push(format!("{host}: {} was not undone", step.change.thing()));
            }
            void.insert(host, undone.void);
        }
        let phase = ChangePhase { name: "the journal".into(), void, lead: self.lead.clone(), ..ChangePhase::default() };
        carry_out(self.executor, &[phase], &mut |_| {});
        (!not_back.is_empty()).then(|| not_back.join("; "))
    }
}

fn names<'n>(hosts: impl Iterator<Item = &'n String>) -> NodeSet {
    hosts.cloned().collect()
}
