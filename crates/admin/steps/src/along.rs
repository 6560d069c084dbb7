//! Runs scripts along a tree of hosts: a few of them, the leaders, start the scripts of the rest.

use crate::executor::{Call, CallResult, Executor, SshExecutor};
use homing_exec::{Command, CommandOutcome, Giver, HostResult, HostResults, Remote, Scripts};
use homing_os::threads::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

/// A request that goes along a tree.
pub enum Led {
    /// A query, the same on all hosts: it may run again on a host whose progress is unknown.
    Look(Command),
    /// A script for each host, run by the interpreter with these words. It is started once.
    Act(Vec<String>, Scripts),
}

/// Carries out a request on hosts along a tree.
pub type TreeRunner = dyn Fn(&Remote, &[String], Led) -> HostResults + Send + Sync;

/// Runs scripts like [`SshExecutor`], with fewer connections from this machine.
pub struct Along {
    /// The executor with direct connections from this machine.
    pub direct: SshExecutor,
    width: usize,
    tree: Box<TreeRunner>,
    /// Hosts that no leader could reach, and leaders that could not reach others.
    straight: Mutex<BTreeSet<String>>,
}

impl Along {
    /// Uses leaders for more hosts than `width`; with 0 and 1, never.
    pub fn new(direct: SshExecutor, width: usize, tree: Box<TreeRunner>) -> Along {
        Along { direct, width, tree, straight: Mutex::default() }
    }

    /// Forgets which hosts could not be reached along the tree: they may reach each other now.
    pub fn anew(&self) {
        self.straight().clear();
    }

    fn straight(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.straight)
    }

    /// Runs calls along the tree, and the rest directly at the same time.
    fn all(&self, calls: &[(String, Call)], is_look: bool) -> Vec<CallResult> {
        let (led, rest) = parts(calls, self.width, &self.straight());
        let part = |places: &Vec<usize>| places.iter().map(|n| calls[*n].clone()).collect::<Vec<_>>();
        let (led_calls, rest_calls) = (part(&led), part(&rest));
        let said = homing_os::threads::each(&[true, false], |is_led| match is_led {
            true if led.is_empty() => Vec::new(),
            true => self.lead(&led_calls, is_look),
            false => self.direct.run(&rest_calls),
        });
        let answers: BTreeMap<usize, CallResult> =
            led.into_iter().chain(rest).zip(said.into_iter().flatten()).collect();
        answers.into_values().collect()
    }

    /// Runs the scripts of hosts that have one script each along the tree.
    fn lead(&self, calls: &[(String, Call)], is_look: bool) -> Vec<CallResult> {
        let led = match self.led(calls, is_look) {
            Ok(Some(led)) => led,
            Ok(None) => return self.direct.run(calls),
            Err(why) => return vec![Err(why); calls.len()],
        };
        let hosts: Vec<String> = calls.iter().map(|(host, _)| host.clone()).collect();
        let results: Vec<HostResult> = (self.tree)(&self.direct.remote, &hosts, led).collect();
        self.straight().extend(unled(&hosts, &results));
        let answer = |result: HostResult| (result.host.clone(), SshExecutor::answer(result));
        let mut answers: BTreeMap<String, CallResult> = results.into_iter().map(answer).collect();
        hosts
            .iter()
            .map(|host| answers.remove(host).unwrap_or_else(|| Err("no result came from this host".into())))
            .collect()
    }

    /// Returns `None` for calls that are better sent directly.
    fn led(&self, calls: &[(String, Call)], is_look: bool) -> Result<Option<Led>, String> {
        let Some((_, first)) = calls.first() else { return Ok(None) };
        if is_look {
            let is_one = calls.iter().all(|(_, call)| call == first);
            return is_one.then(|| self.direct.command(first).map(Led::Look)).transpose();
        }
        let scripts = calls.iter().filter_map(|(host, call)| Some((host.as_str(), call.script()?)));
        let scripts = Scripts::of(scripts).map_err(|e| format!("making a temporary file for scripts: {e}"))?;
        Ok(Some(Led::Act(self.direct.shell(), scripts)))
    }
}

impl Executor for Along {
    fn run(&self, calls: &[(String, Call)]) -> Vec<CallResult> {
        self.all(calls, false)
    }

    fn look(&self, calls: &[(String, Call)]) -> Vec<CallResult> {
        self.all(calls, true)
    }
}

/// Divides calls, by their index, into scripts for the tree, if they are of more hosts than `width`, and the rest.
fn parts(calls: &[(String, Call)], width: usize, straight: &BTreeSet<String>) -> (Vec<usize>, Vec<usize>) {
    let mut seen = BTreeSet::new();
    let mut can_be_led = |n: &usize| {
        let (host, call) = &calls[*n];
        // If a host has two scripts, one of them is sent directly.
        call.script().is_some() && !straight.contains(host) && seen.insert(host)
    };
    let (led, rest): (Vec<usize>, Vec<usize>) = (0..calls.len()).partition(|n| can_be_led(n));
    if width > 1 && led.len() > width { (led, rest) } else { (Vec::new(), (0..calls.len()).collect()) }
}

/// Returns the hosts that were reached directly and not along the tree, and the leaders that led no host.
fn unled(hosts: &[String], results: &[HostResult]) -> Vec<String> {
    let leader = |result: &HostResult| match result.giver {
        Giver::Leader(at) => hosts.get(at).filter(|leader| **leader != result.host),
        Giver::Here | Giver::Load => None,
    };
    let busy: Vec<&String> = results.iter().filter_map(leader).collect();
    let is_unled = |result: &&HostResult| {
        let is_reached = !matches!(result.outcome, CommandOutcome::Unreachable(_));
        is_reached && leader(result).is_none() && !busy.contains(&&result.host)
    };
    results.iter().filter(is_unled).map(|result| result.host.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_exec::Options;
    use std::time::Duration;

    fn script(host: &str, text: &str) -> (String, Call) {
        (host.into(), Call::Script(text.into()))
    }

    fn split_calls(calls: &[(String, Call)], width: usize, straight: &[&str]) -> (Vec<usize>, Vec<usize>) {
        parts(calls, width, &straight.iter().map(|host| host.to_string()).collect())
    }

    #[test]
    fn one_script_of_each_of_many_hosts_is_led() {
        let mut calls: Vec<_> = (0..8).map(|n| script(&format!("n{n}"), "echo")).collect();
        calls[2].1 = Call::Program(vec!["date".into()]);
        calls[5].0 = "n4".into();
        assert_eq!(split_calls(&calls, 2, &[]), (vec![0, 1, 3, 4, 6, 7], vec![2, 5]));
        assert_eq!(split_calls(&calls, 2, &["n0", "n7"]), (vec![1, 3, 4, 6], vec![0, 2, 5, 7]));
        for width in [0, 1, 6] {
            assert_eq!(split_calls(&calls, width, &[]), (vec![], (0..8).collect()), "{width}");
        }
        assert_eq!(split_calls(&[], 2, &[]), (vec![], vec![]));
    }

    #[test]
    fn who_was_not_reached_along_the_tree_is_not_tried_so_again() {
        let hosts: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
        let of = |n: usize, giver, outcome| HostResult {
            host: format!("n{n}"),
            giver,
            outcome,
            stdout: Vec::new(),
            stderr: Vec::new(),
            dropped: 0,
            elapsed: Duration::ZERO,
        };
        let results = [
            of(0, Giver::Here, CommandOutcome::Exited(0)),
            of(1, Giver::Leader(0), CommandOutcome::Exited(1)),
            of(2, Giver::Here, CommandOutcome::Unreachable("no route".into())),
            of(3, Giver::Leader(3), CommandOutcome::Exited(0)),
            of(4, Giver::Here, CommandOutcome::Exited(0)),
            of(5, Giver::Here, CommandOutcome::Exited(0)),
            of(6, Giver::Leader(6), CommandOutcome::Exited(0)),
            of(7, Giver::Leader(6), CommandOutcome::Lost("cut".into())),
        ];
        // n0, which is spared, leads n1, and n6 leads n7. n2 cannot be reached from here either; n3 reaches no host.
        assert_eq!(unled(&hosts, &results), ["n3", "n4", "n5"]);
    }

    /// No tree is built here: a file records which hosts were led.
    #[test]
    fn looks_and_scripts_are_led_and_answers_come_in_the_order_of_the_questions() {
        let room = tempfile::tempdir().unwrap();
        let log = room.path().join("log").display().to_string();
        let to = log.clone();
        let direct = SshExecutor { remote: Remote::new(Options::default()), sudo: false };
        let tree = move |remote: &Remote, hosts: &[String], led: Led| {
            let (what, input) = match led {
                Led::Look(command) => ("look", command),
                Led::Act(words, scripts) => ("act", Command::argv(words).input(scripts.input(&hosts[0]))),
            };
            let line = format!("{what} {}\n", hosts.join(","));
            std::fs::write(&to, std::fs::read_to_string(&to).unwrap_or_default() + &line).unwrap();
            remote.run(&["localhost"], &input)
        };
        let along = Along::new(direct, 2, Box::new(tree));
        let calls = ["localhost", "n2", "n3"].map(|host| script(host, "echo here"));
        let said = along.look(&calls);
        assert_eq!(said[0], Ok("here\n".to_string()));
        assert!(said[1..] == vec![Err("no result came from this host".to_string()); 2]);
        along.anew();
        assert_eq!(along.run(&calls)[0], Ok("here\n".to_string()));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "look localhost,n2,n3\nact localhost,n2,n3\n");
    }
}
