//! Proves new files of sshd by a new connection. Files that do not let homing in are taken back.

use super::{UpSession, options, token};
use homing_exec::{Command, CommandOutcome, Fresh, HostResult};
use homing_setup::{Area, question};
use homing_steps::{Call, ChangePhase, ChangeStep, Executor, FactQuery, Guard, carry_out, observe, of_owner, undo};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The number of further attempts to connect, and the pause between two, before new sshd files are taken back.
const LOGINS: usize = 20;
const LOGIN_PAUSE: Duration = Duration::from_millis(500);
/// Seconds after which a host takes new sshd files back by itself. All attempts to connect take ten, and before them
/// the slowest host must have finished its files.
const GUARDED_S: u64 = 120;

impl UpSession {
    /// Proves the new sshd files of hosts, and returns the hosts that failed, with the reason. A new connection to
    /// each host must work, and confirms the files. Otherwise they are taken back over the connection that is kept. A
    /// host that neither connection reaches takes them back by itself.
    pub fn prove_login(&self, hosts: &[String], take_back: &dyn Fn(&str) -> bool) -> BTreeMap<String, String> {
        if hosts.is_empty() {
            return BTreeMap::new();
        }
        let fresh = match Fresh::new(options(&self.args)) {
            Ok(fresh) => fresh,
            Err(e) => {
                let why = format!(
                    "ssh: cannot try a new connection: {e}; the host restores the old files within {GUARDED_S} s"
                );
                return hosts.iter().map(|host| (host.clone(), why.clone())).collect();
            }
        };
        let fresh = fresh.remote();
        let refused =
            |outcome: &CommandOutcome| matches!(outcome, CommandOutcome::Unreachable(_) | CommandOutcome::Lost(_));
        let sudo: &[&str] = if self.args.sudo { &["sudo", "-n"] } else { &[] };
        let confirm = Command::argv(sudo.iter().chain(&["sh", "-c", Guard::CONFIRM]).copied());
        let ask = |hosts: &[String]| -> Vec<HostResult> {
            fresh.run(hosts, &confirm).filter(|r| r.outcome != CommandOutcome::Exited(0)).collect()
        };
        let mut out = ask(hosts);
        // sshd accepts no connections while it restarts.
        for _ in 0..LOGINS {
            if out.is_empty() {
                break;
            }
            std::thread::sleep(LOGIN_PAUSE);
            out = ask(&out.iter().map(|r| r.host.clone()).collect::<Vec<_>>());
        }
        let back = |host: &str, outcome: &CommandOutcome| {
            let taken = match take_back(host) {
                true => "they were undone".to_string(),
                false => format!("the host undoes them within {GUARDED_S} s"),
            };
            let what = if refused(outcome) { "a new connection fails" } else { "a new connection does not work" };
            format!("ssh: with the new files {what}, and {taken}: {outcome}")
        };
        out.into_iter().map(|r| (r.host.clone(), back(&r.host, &r.outcome))).collect()
    }

    /// Makes the host take back its guarded changes, over the connection that is kept. No guard is left then.
    pub fn fire(&self, host: &str) -> bool {
        self.executor.run(&[(host.into(), Call::Script(Guard::FIRE.into()))]).iter().all(Result::is_ok)
    }

    /// Undoes the steps of a phase on one host.
    pub fn take_back(&self, host: &str, phase: &ChangePhase) -> bool {
        let things: BTreeSet<String> = phase.steps[host].iter().map(|step| step.change.thing()).collect();
        let hosts = [host.to_string()];
        let changes = FactQuery { journal: true, lead: self.lead.clone(), ..question(&self.site, &[Area::Ssh]) };
        let seen = observe(&self.executor, &hosts, &changes);
        let Some(Ok(there)) = seen.get(host) else { return false };
        let (own, _) = of_owner(there, |owner| self.record.may_undo(owner));
        let steps: Vec<ChangeStep> =
            undo(&own).steps.into_iter().filter(|s| things.contains(&s.change.thing())).collect();
        let phase = ChangePhase {
            name: "ssh".into(),
            steps: [(host.to_string(), steps)].into(),
            lead: self.lead.clone(),
            ..ChangePhase::default()
        };
        carry_out(&self.executor, &[phase], &mut |_| {}).is_empty()
    }
}

/// Returns a guard of this process.
pub fn guard() -> Guard {
    Guard { seconds: GUARDED_S, token: token() }
}
