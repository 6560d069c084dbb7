//! Steps that may cut hosts off: set under a guard of each, proved over new connections, then kept or taken back.

use crate::change::Change;
use crate::execute::{Phase, carry_out};
use crate::executor::SshExecutor;
use crate::guard::Guard;
use crate::observe::{Question, observe};
use crate::plan::Step;
use crate::undo::undo;
use homing_exec::{Command, Outcome, Remote};
use homing_model::NodeSet;
use homing_model::text::shown;
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

/// Steps of hosts, all at the same time.
pub struct Guarded<'a> {
    /// What they do together.
    pub name: &'a str,
    /// By host.
    pub steps: &'a BTreeMap<String, Vec<Step>>,
    /// The connections that are kept. A script that sets something and does not answer within their time is one of a
    /// host that is cut off: the guard has not fired by then.
    pub executor: &'a SshExecutor,
    /// A connection that was not there before.
    pub fresh: &'a dyn Fn() -> Remote,
    /// Letters and digits that no other homing uses for a guard.
    pub token: &'a str,
    /// As [`Phase::lead`] has it.
    pub lead: Option<String>,
    /// Changes of the journal that such steps make.
    pub is_own: fn(&Change) -> bool,
}

impl Guarded<'_> {
    fn hosts(&self) -> Vec<String> {
        self.steps.keys().cloned().collect()
    }

    /// Sets it, and proves that nobody is cut off from here. Hosts are guarded still for three minutes.
    pub fn set(&self) -> Result<(), String> {
        let guard = Guard { seconds: GUARDED_S, token: self.token.into() };
        let (name, steps, lead) = (self.name.into(), self.steps.clone(), self.lead.clone());
        let phase = Phase { name, steps, guard: Some(guard), lead, ..Phase::default() };
        let failed = carry_out(self.executor, &[phase], &mut |_| {});
        // A host that drops its connection over a setting is asked once more; one that refused it is not.
        let silent = self.calls(&self.hosts(), &Guard::extended(MEASURED_S));
        if !silent.is_empty() {
            let each =
                silent.iter().map(|(host, why)| format!("{host}: no new connection came through in time: {why}"));
            return Err(each.collect::<Vec<_>>().join("; "));
        }
        if !failed.is_empty() {
            return Err(failed.iter().map(|(host, why)| format!("{host}: {why}")).collect::<Vec<_>>().join("; "));
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

    /// Stops the guards.
    pub fn keep(&self) -> Result<(), String> {
        let failed = self.calls(&self.hosts(), Guard::KEEP);
        let each: Vec<String> = failed.iter().map(|(host, why)| format!("{host}: {why}")).collect();
        if each.is_empty() { Ok(()) } else { Err(each.join("; ")) }
    }

    /// All hosts as they were: at once where they are reached, else by their guard. `why`: for what. Tells what became of
    /// them, and nothing where nobody asked why and all went well.
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
                    text += &format!("; {}: taken back", names(at_once.iter()));
                }
                if !back.is_empty() {
                    text += &format!("; {back}: took it back without being asked, and answers again");
                }
                if !left.is_empty() {
                    text += &format!("; {}: does not answer still, look at its console", names(left.iter()));
                }
                Some(text)
            }
            None if !left.is_empty() => Some(format!("{}: does not answer any more", names(left.iter()))),
            None => tidied,
        }
    }

    /// Entries of the journals of what is back are removed; what is not back is told.
    fn tidied(&self) -> Option<String> {
        let changes = self.steps.values().flatten().map(|step| &step.change);
        let question = Question { lead: self.lead.clone(), ..Question::of_changes(changes) };
        let found = observe(self.executor, &self.hosts(), &question);
        let (mut void, mut not_back) = (BTreeMap::new(), Vec::new());
        for (host, there) in found {
            let Ok(mut there) = there else { continue };
            there.journal.retain(|(_, change)| (self.is_own)(change));
            let things: BTreeSet<String> = self.steps[&host].iter().map(|step| step.change.thing()).collect();
            let undone = undo(&there);
            let still = |step: &&Step| things.contains(&step.change.thing());
            let back = |change: &Change| change.inverse();
            let same =
                |step: &Step| self.steps[&host].iter().any(|own| back(&own.change).as_ref() == Some(&step.change));
            if let Some(step) = undone.steps.iter().filter(still).find(|step| same(step)) {
                not_back.push(format!("{host}: {} did not go back", step.change.thing()));
            }
            void.insert(host, undone.void);
        }
        let phase = Phase { name: "the journal".into(), void, lead: self.lead.clone(), ..Phase::default() };
        carry_out(self.executor, &[phase], &mut |_| {});
        (!not_back.is_empty()).then(|| not_back.join("; "))
    }
}

fn names<'n>(hosts: impl Iterator<Item = &'n String>) -> NodeSet {
    hosts.cloned().collect()
}
