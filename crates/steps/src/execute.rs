//! Phases of steps: a host on which one fails is left, the others go on.

use crate::executor::{Answer, Call, Executor};
use crate::guard::Guard;
use crate::plan::Step;
use crate::script::script;
use std::collections::BTreeMap;

/// Steps of hosts that do not wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// What they do together.
    pub name: String,
    /// By host, in order.
    pub steps: BTreeMap<String, Vec<Step>>,
    /// By host: entries of the journal that are void.
    pub void: BTreeMap<String, Vec<String>>,
    /// Hosts take it back by themselves when nobody says in time that it is well.
    pub guard: Option<Guard>,
    /// Who had the look that it was planned from ([`crate::Question::lead`]); a host at which another has looked since
    /// does nothing.
    pub lead: Option<String>,
}

/// Why a host did not do all of its part of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A step failed, or the host cannot be reached.
    Failed(String),
    /// It is not as it was seen any more. Steps before the one that found this are done.
    Outdated(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Fault::Failed(why) => f.write_str(why),
            Fault::Outdated(why) => write!(f, "{why}; the same command once more looks again"),
        }
    }
}

/// What a script came to, which says in its last line when the plan was out of date.
fn verdict(said: Answer, phase: &str) -> Result<(), Fault> {
    let out = said.map_err(|why| Fault::Failed(format!("{phase}: {why}")))?;
    match out.lines().last().and_then(|line| line.strip_prefix("outdated\t")) {
        Some(why) => Err(Fault::Outdated(format!("{phase}: {why}"))),
        None => Ok(()),
    }
}

/// What the user is told while phases are carried out.
pub enum News<'a> {
    /// A phase begins.
    Phase(&'a Phase),
    /// A host has done its part of the phase, or not, and why.
    Host(&'a str, Result<(), &'a Fault>),
}

/// Carries phases out, one after another; returns the hosts that failed, and at what. They take no further part.
pub fn carry_out(executor: &dyn Executor, phases: &[Phase], news: &mut dyn FnMut(News)) -> BTreeMap<String, Fault> {
    let mut failed: BTreeMap<String, Fault> = BTreeMap::new();
    for phase in phases {
        let (none, nothing) = (Vec::new(), Vec::new());
        let hosts: Vec<&String> = phase.steps.keys().chain(phase.void.keys()).collect();
        let scripts: BTreeMap<String, Call> = hosts
            .into_iter()
            .filter(|host| !failed.contains_key(*host))
            .map(|host| (host, phase.steps.get(host).unwrap_or(&none), phase.void.get(host).unwrap_or(&nothing)))
            .filter(|(_, steps, void)| !steps.is_empty() || !void.is_empty())
            .map(|(host, steps, void)| {
                (host.clone(), Call::Script(script(steps, void, phase.guard.as_ref(), phase.lead.as_deref())))
            })
            .collect();
        if scripts.is_empty() {
            continue;
        }
        news(News::Phase(phase));
        let scripts: Vec<(String, Call)> = scripts.into_iter().collect();
        for ((host, _), said) in scripts.iter().zip(executor.run(&scripts)) {
            match verdict(said, &phase.name) {
                Ok(()) => news(News::Host(host, Ok(()))),
                Err(fault) => {
                    news(News::Host(host, Err(&fault)));
                    failed.insert(host.clone(), fault);
                }
            }
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Change};
    use std::sync::Mutex;

    struct Fake(Mutex<Vec<String>>);

    impl Executor for Fake {
        fn run(&self, scripts: &[(String, Call)]) -> Vec<Answer> {
            let one = |(host, _): &(String, Call)| {
                self.0.lock().unwrap().push(host.clone());
                match host.as_str() {
                    "n2" => Err("disk full".to_string()),
                    "n4" => Ok("did 0\noutdated\t/etc/hosts was changed\n".to_string()),
                    _ => Ok("did 0\n".to_string()),
                }
            };
            scripts.iter().map(one).collect()
        }
    }

    #[test]
    fn a_host_that_fails_takes_no_further_part_and_the_others_go_on() {
        let step = Step { change: Change::Hostname { from: "a".into(), to: "b".into() }, undoes: None };
        let hosts = || ["n1", "n2", "n3", "n4"].map(|h| (h.to_string(), vec![step.clone()])).into();
        let phase = |name: &str| Phase { name: name.into(), steps: hosts(), ..Phase::default() };
        let fake = Fake(Mutex::default());
        let failed = carry_out(&fake, &[phase("names"), phase("users")], &mut |_| {});
        let outdated = Fault::Outdated("names: /etc/hosts was changed".into());
        let failed_at = Fault::Failed("names: disk full".into());
        assert_eq!(failed, [("n2".to_string(), failed_at), ("n4".to_string(), outdated)].into());
        assert_eq!(*fake.0.lock().unwrap(), ["n1", "n2", "n3", "n4", "n1", "n3"]);
    }
}
