//! Sets the MTU of networks on all hosts at once, under a guard. Packets of that size prove it; otherwise it is taken
//! back.

use super::{UpSession, options, token};
use homing_bench::net::pings;
use homing_exec::{Fresh, Options, Remote};
use homing_model::text::shown;
use homing_steps::{Call, ChangePhase, Executor, Guarded, HostChange, SshExecutor};
use std::collections::BTreeSet;
use std::time::Duration;

/// The time limit of a script that changes a setting. A host that is silent for longer is cut off, and its guard has
/// not fired yet.
const SETS: Duration = Duration::from_secs(5);
/// The time limit of a new connection, which is tried again.
const CALLED: Duration = Duration::from_secs(3);

/// The most pairs of hosts that a message names. Most have the same cause.
const TOLD: usize = 6;

/// Returns whether a change is made under a guard. Only changes of interfaces are.
fn is_own(change: &HostChange) -> bool {
    matches!(change, HostChange::Link { .. })
}

/// Returns whether a phase changes an interface.
pub fn may_cut(phase: &ChangePhase) -> bool {
    phase.steps.values().flatten().any(|step| matches!(step.change, HostChange::Link { .. }))
}

impl UpSession {
    /// Sets the MTU on all hosts of the phase. The error is the reason why none of them keeps it.
    pub fn set_mtu(&self, phase: &ChangePhase) -> Result<(), String> {
        let quick = Options { command_timeout: Some(SETS), connect_timeout: CALLED, ..options(&self.args) };
        let fresh = Fresh::new(quick.clone())?;
        let executor = SshExecutor { remote: Remote::new(quick), sudo: self.args.sudo };
        let guarded = Guarded {
            name: &phase.name,
            steps: &phase.steps,
            executor: &executor,
            fresh: &|| fresh.remote(),
            token: &format!("net-{}", token()),
            lead: self.lead.clone(),
            is_own,
        };
        let came = guarded.set().and_then(|()| self.large_packets(phase)).and_then(|()| guarded.keep());
        came.map_err(|why| guarded.taken_back(Some(why)).unwrap_or_default())
    }

    /// Checks that unfragmented packets reach each host of a network of the phase from each other one.
    fn large_packets(&self, phase: &ChangePhase) -> Result<(), String> {
        let mut lost = Vec::new();
        for (network, bytes) in &self.site.up.mtu {
            let hosts = self.site.of_network(network);
            if !hosts.iter().any(|(host, _)| phase.steps.contains_key(host)) {
                continue;
            }
            let addresses: Vec<_> = hosts.iter().map(|(_, address)| *address).collect();
            let script = Call::Script(pings(*bytes, &addresses));
            let calls: Vec<(String, Call)> = hosts.into_iter().map(|(host, _)| (host, script.clone())).collect();
            let mut of_network = BTreeSet::new();
            for ((host, _), said) in calls.iter().zip(self.executor.run(&calls)) {
                match said {
                    Ok(said) => of_network.extend(said.lines().map(|to| format!("{host} to {}", shown(to)))),
                    Err(why) => drop(of_network.insert(format!("{host}: {why}"))),
                }
            }
            if !of_network.is_empty() {
                let more = match of_network.len().saturating_sub(TOLD) {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                let each: Vec<String> = of_network.into_iter().take(TOLD).collect();
                lost.push(format!("packets of {bytes} bytes do not arrive: {}{more}", each.join(", ")));
            }
        }
        if lost.is_empty() { Ok(()) } else { Err(lost.join("; ")) }
    }
}
