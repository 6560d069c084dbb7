//! Carries out phases of steps: a host on which a step fails is left, and the others go on.

use crate::executor::{Call, CallResult, Executor};
use crate::guard::Guard;
use crate::plan::ChangeStep;
use crate::script::{By, script};
use std::collections::BTreeMap;

/// Steps of hosts that do not depend on each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangePhase {
    /// Their common purpose.
    pub name: String,
    /// The steps of each host, in order.
    pub steps: BTreeMap<String, Vec<ChangeStep>>,
    /// By host: names of journal entries that are void.
    pub void: BTreeMap<String, Vec<String>>,
    /// Hosts undo the steps by themselves if no confirmation arrives in time.
    pub guard: Option<Guard>,
    /// The process whose query the plan is based on ([`crate::FactQuery::lead`]). A host that another process has
    /// queried since does nothing.
    pub lead: Option<String>,
    /// The set-up whose changes these are: its cluster file. It is noted in the journal of the host.
    pub owner: Option<String>,
}

/// The reason why a host did not complete its part of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A step failed, or the host cannot be reached.
    Failed(String),
    /// The host has changed since it was observed. Steps before the one that found this are done.
    Outdated(String),
    /// Settings, by their [`crate::HostChange::thing`], that the system refused, with its message. All other steps are
    /// done.
    Untaken(BTreeMap<String, String>),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Fault::Failed(why) => f.write_str(why),
            Fault::Outdated(why) => write!(f, "{why}; repeat the command: it examines the host again"),
            Fault::Untaken(settings) => f.write_str(&settings.values().cloned().collect::<Vec<_>>().join("; ")),
        }
    }
}

/// Reads the outcome of a script: a line for each refused setting, and a last line if the plan was out of date.
fn verdict(said: CallResult, phase: &str) -> Result<(), Fault> {
    let out = said.map_err(|why| Fault::Failed(format!("{phase}: {why}")))?;
    if let Some(why) = out.lines().last().and_then(|line| line.strip_prefix("outdated\t")) {
        return Err(Fault::Outdated(format!("{phase}: {why}")));
    }
    let untaken = out.lines().filter_map(|line| line.strip_prefix("untaken\t")?.split_once('\t'));
    let untaken: BTreeMap<String, String> =
        untaken.map(|(thing, why)| (thing.into(), format!("{phase}: {why}"))).collect();
    if untaken.is_empty() { Ok(()) } else { Err(Fault::Untaken(untaken)) }
}

/// Messages to the user while phases are carried out.
pub enum PhaseEvent<'a> {
    /// A phase begins.
    Phase(&'a ChangePhase),
    /// A host has completed its part of the phase, or failed with this fault.
    Host(&'a str, Result<(), &'a Fault>),
}

/// Carries out phases, one after another. Returns the hosts that failed, with the reason. They take no further part,
/// except hosts where only a setting was refused.
pub fn carry_out(
    executor: &dyn Executor,
    phases: &[ChangePhase],
    news: &mut dyn FnMut(PhaseEvent),
) -> BTreeMap<String, Fault> {
    let mut failed: BTreeMap<String, Fault> = BTreeMap::new();
    for phase in phases {
        let (none, nothing) = (Vec::new(), Vec::new());
        let hosts: Vec<&String> = phase.steps.keys().chain(phase.void.keys()).collect();
        let scripts: BTreeMap<String, Call> = hosts
            .into_iter()
            .filter(|host| failed.get(*host).is_none_or(|fault| matches!(fault, Fault::Untaken(_))))
            .map(|host| (host, phase.steps.get(host).unwrap_or(&none), phase.void.get(host).unwrap_or(&nothing)))
            .filter(|(_, steps, void)| !steps.is_empty() || !void.is_empty())
            .map(|(host, steps, void)| {
                let by = By { guard: phase.guard.as_ref(), lead: phase.lead.as_deref(), owner: phase.owner.as_deref() };
                (host.clone(), Call::Script(script(steps, void, &by)))
            })
            .collect();
        if scripts.is_empty() {
            continue;
        }
        news(PhaseEvent::Phase(phase));
        let scripts: Vec<(String, Call)> = scripts.into_iter().collect();
        for ((host, _), said) in scripts.iter().zip(executor.run(&scripts)) {
            match verdict(said, &phase.name) {
                Ok(()) => news(PhaseEvent::Host(host, Ok(()))),
                Err(fault) => {
                    news(PhaseEvent::Host(host, Err(&fault)));
                    let fault = match (failed.remove(host), fault) {
                        (Some(Fault::Untaken(mut all)), Fault::Untaken(more)) => {
                            all.extend(more);
                            Fault::Untaken(all)
                        }
                        (_, fault) => fault,
                    };
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
    use crate::{CallResult, HostChange};
    use std::sync::Mutex;

    struct FakeExecutor(Mutex<Vec<String>>);

    impl Executor for FakeExecutor {
        fn run(&self, scripts: &[(String, Call)]) -> Vec<CallResult> {
            let one = |(host, _): &(String, Call)| {
                self.0.lock().unwrap().push(host.clone());
                match host.as_str() {
                    "n2" => Err("disk full".to_string()),
                    "n4" => Ok("did 0\noutdated\t/etc/hosts was changed\n".to_string()),
                    "n5" => Ok("untaken\tsysctl a.b\ta.b is 1 after it was set to 2\ndid 0\n".to_string()),
                    _ => Ok("did 0\n".to_string()),
                }
            };
            scripts.iter().map(one).collect()
        }
    }

    #[test]
    fn a_host_that_fails_takes_no_further_part_and_the_others_go_on() {
        let step = ChangeStep { change: HostChange::Hostname { from: "a".into(), to: "b".into() }, undoes: None };
        let hosts = || ["n1", "n2", "n3", "n4", "n5"].map(|h| (h.to_string(), vec![step.clone()])).into();
        let phase = |name: &str| ChangePhase { name: name.into(), steps: hosts(), ..ChangePhase::default() };
        let fake = FakeExecutor(Mutex::default());
        let failed = carry_out(&fake, &[phase("names"), phase("users")], &mut |_| {});
        let outdated = Fault::Outdated("names: /etc/hosts was changed".into());
        let failed_at = Fault::Failed("names: disk full".into());
        let why = "users: a.b is 1 after it was set to 2".to_string();
        let untaken = Fault::Untaken([("sysctl a.b".to_string(), why)].into());
        let of = |host: &str, fault: Fault| (host.to_string(), fault);
        assert_eq!(failed, [of("n2", failed_at), of("n4", outdated), of("n5", untaken)].into());
        assert_eq!(*fake.0.lock().unwrap(), ["n1", "n2", "n3", "n4", "n5", "n1", "n3", "n5"]);
    }
}
