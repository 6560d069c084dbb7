//! New files of sshd are kept when a new connection shows that they let us in, and go back else.

use super::{Session, options, token};
use homing_exec::{Command, Fresh, HostResult, Outcome};
use homing_setup::{Area, question};
use homing_steps::{Call, Executor, Guard, Phase, Question, Step, carry_out, observe, undo};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Further tries of a new connection, and the time between them, before new files of sshd are taken back.
const LOGINS: usize = 20;
const LOGIN_PAUSE: Duration = Duration::from_millis(500);
/// After so many seconds a host takes new files of sshd back by itself. All tries of a new connection take ten, and before
/// them the slowest host has to be through with its files.
const GUARDED_S: u64 = 120;

impl Session {
    /// A host whose sshd was told something else must let us in by a new connection, which tells it to keep that; else
    /// it is taken back over the one that is kept. A host that neither reaches takes it back by itself.
    pub fn prove_login(&self, hosts: &[String], take_back: &dyn Fn(&str) -> bool) -> BTreeMap<String, String> {
        if hosts.is_empty() {
            return BTreeMap::new();
        }
        let fresh = match Fresh::new(options(&self.args)) {
            Ok(fresh) => fresh,
            Err(e) => {
                let why = format!(
                    "ssh: no new connection was tried, since {e}; the host takes the new files back within {GUARDED_S} s"
                );
                return hosts.iter().map(|host| (host.clone(), why.clone())).collect();
            }
        };
        let fresh = fresh.remote();
        let refused = |outcome: &Outcome| matches!(outcome, Outcome::Unreachable(_) | Outcome::Lost(_));
        let sudo: &[&str] = if self.args.sudo { &["sudo", "-n"] } else { &[] };
        let confirm = Command::argv(sudo.iter().chain(&["sh", "-c", Guard::CONFIRM]).copied());
        let ask = |hosts: &[String]| -> Vec<HostResult> {
            fresh.run(hosts, &confirm).filter(|r| r.outcome != Outcome::Exited(0)).collect()
        };
        let mut out = ask(hosts);
        // While sshd starts itself anew it listens to nobody.
        for _ in 0..LOGINS {
            if out.is_empty() {
                break;
            }
            std::thread::sleep(LOGIN_PAUSE);
            out = ask(&out.iter().map(|r| r.host.clone()).collect::<Vec<_>>());
        }
        let back = |host: &str, outcome: &Outcome| {
            let taken = match take_back(host) {
                true => "it was taken back".to_string(),
                false => format!("the host takes it back by itself within {GUARDED_S} s"),
            };
            let what = if refused(outcome) { "a new connection fails" } else { "a new connection is no good" };
            format!("ssh: with the new files {what}, and {taken}: {outcome}")
        };
        out.into_iter().map(|r| (r.host.clone(), back(&r.host, &r.outcome))).collect()
    }

    /// Lets the host take back what it is guarded for, over the connection that is kept. Nothing is left to be guarded.
    pub fn fire(&self, host: &str) -> bool {
        self.executor.run(&[(host.into(), Call::Script(Guard::FIRE.into()))]).iter().all(Result::is_ok)
    }

    /// Undoes what a phase did to a host.
    pub fn take_back(&self, host: &str, phase: &Phase) -> bool {
        let things: BTreeSet<String> = phase.steps[host].iter().map(|step| step.change.thing()).collect();
        let hosts = [host.to_string()];
        let changes = Question { journal: true, lead: self.lead.clone(), ..question(&self.site, &[Area::Ssh]) };
        let seen = observe(&self.executor, &hosts, &changes);
        let Some(Ok(there)) = seen.get(host) else { return false };
        let steps: Vec<Step> = undo(there).steps.into_iter().filter(|s| things.contains(&s.change.thing())).collect();
        let phase = Phase {
            name: "ssh".into(),
            steps: [(host.to_string(), steps)].into(),
            lead: self.lead.clone(),
            ..Phase::default()
        };
        carry_out(&self.executor, &[phase], &mut |_| {}).is_empty()
    }
}

/// A guard of this process.
pub fn guard() -> Guard {
    Guard { seconds: GUARDED_S, token: token() }
}
