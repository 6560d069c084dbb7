//! Brings the files of packages to the hosts of a phase. One host fetches them and the others get them from it, as
//! with `homing cache install`. A host that gets no file this way fetches by itself.

use super::UpSession;
use homing_model::alike;
use homing_relay::{DeliveryRequest, Fetch, Fetched, Packages, Unbrought, bring, query_packages};
use homing_setup::HostFailures;
use homing_setup::cache::{self, NoWay, Purpose};
use homing_steps::{Call, ChangePhase, ChangeStep, Executor, HostChange, Lost, take_packages};
use std::collections::BTreeSet;

/// Returns the packages that the steps install.
fn packages(steps: &[ChangeStep]) -> Vec<String> {
    let name = |step: &ChangeStep| match &step.change {
        HostChange::Package { name, .. } => Some(name.clone()),
        _ => None,
    };
    steps.iter().filter_map(name).collect()
}

/// Prints a line for each message of hosts.
fn say_folded<'a>(say: &dyn Fn(&str), whys: impl Iterator<Item = (&'a str, &'a str)>) {
    alike::folded(whys).iter().for_each(|line| say(line));
}

impl UpSession {
    /// Returns the hosts for which packages of these phases cannot be had, each with the reason. There are none if any
    /// host of the cluster or this machine can fetch, because it passes files on. This takes seconds and not the
    /// minutes of a failed installation.
    pub fn without_packages(&self, phases: &[ChangePhase]) -> HostFailures {
        let mut lack = Packages::new();
        for (host, steps) in phases.iter().flat_map(|phase| &phase.steps) {
            lack.entry(host.clone()).or_default().extend(packages(steps));
        }
        lack.retain(|_, packages| !packages.is_empty());
        if lack.is_empty() {
            return Vec::new();
        }
        let ways = self.ways(&lack);
        let has_way = |ways: &[(String, Option<NoWay>)]| ways.iter().any(|(_, no)| no.is_none());
        // Others are queried only if these have no way. One that lacks nothing may have the access that they lack.
        let others = self.site.hosts.iter().filter(|host| !lack.contains_key(*host));
        if has_way(&ways) || has_way(&self.ways(&others.map(|host| (host.clone(), Vec::new())).collect())) {
            return Vec::new();
        }
        let mirrors: BTreeSet<String> =
            ways.iter().flat_map(|(_, no)| no.iter().flat_map(|no| &no.mirrors)).cloned().collect();
        let try_here = self.here().map(|name| (name, Call::Script(cache::reach(&mirrors)))).collect::<Vec<_>>();
        if !mirrors.is_empty() && has_way(&self.ways_of(&try_here)) {
            self.only_from_here.set(true);
            return Vec::new();
        }
        let line = |why| {
            format!(
                "packages: no mirror can be reached: {why}; this machine reaches none of them (try: apt-get update on \
                 the host, or --only AREA,...)"
            )
        };
        ways.into_iter().filter_map(|(host, no)| Some((host, line(no?.why)))).collect()
    }

    /// Returns the name of this machine as a further one that may fetch; none if it is one of the hosts.
    fn here(&self) -> impl Iterator<Item = String> {
        let is_host = self.site.hosts.iter().any(|host| homing_os::names::is_here(host));
        (!is_host).then(|| "localhost".to_string()).into_iter()
    }

    /// Returns all that may fetch, in this order: the hosts that want files, then the others, and this machine. This
    /// machine is first if only it has a way to a mirror: the others would fail one after the other.
    fn fetchers<'h>(&self, hosts: impl Iterator<Item = &'h String>) -> Vec<String> {
        let hosts = hosts.cloned();
        if self.only_from_here.get() { self.here().chain(hosts).collect() } else { hosts.chain(self.here()).collect() }
    }

    /// Returns for each host that answers why it cannot fetch its packages; `None` if it can.
    fn ways(&self, of: &Packages) -> Vec<(String, Option<NoWay>)> {
        let call = |(host, packages): (&String, &Vec<String>)| (host.clone(), Call::Script(cache::way(packages)));
        self.ways_of(&of.iter().map(call).collect::<Vec<_>>())
    }

    fn ways_of(&self, calls: &[(String, Call)]) -> Vec<(String, Option<NoWay>)> {
        let answered = calls.iter().zip(self.executor.direct.run(calls));
        answered.filter_map(|((host, _), said)| Some((host.clone(), cache::no_way(&said.ok()?)))).collect()
    }

    /// Brings the package files of a phase to its hosts. Returns the fetched files, if any.
    pub fn bring_packages(&self, phase: &ChangePhase, lost: &Lost) -> Option<Fetched> {
        let lack = phase.steps.iter().filter(|(host, _)| !lost.has(host));
        let lack = lack.map(|(host, steps)| (host.clone(), packages(steps)));
        let lack: Packages = lack.filter(|(_, packages)| !packages.is_empty()).collect();
        if lack.is_empty() || (self.site.hosts.len() < 2 && !self.only_from_here.get()) {
            return None;
        }
        let say = |text: &str| self.print_message(&format!("{}: {text}", phase.name));
        let others = self.site.hosts.iter().filter(|host| !lack.contains_key(*host) && !lost.has(host));
        let here = self.here().filter(|_| self.only_from_here.get());
        let others: Vec<String> = here.chain(others.cloned()).collect();
        // If a host fails to answer, its own step reports the reason: the step runs the same query.
        let (mut wanted, _) = match query_packages(&self.executor.direct, &lack, Purpose::Steps, &others, &say) {
            Ok(said) => said,
            Err(why) => {
                say(&why);
                return None;
            }
        };
        wanted.values_mut().for_each(|files| files.retain(|file| !file.is_at_hand()));
        let (_, odd) = cache::union(&wanted);
        odd.iter().for_each(|(host, _)| drop(wanted.remove(host)));
        wanted.retain(|_, files| !files.is_empty());
        let (files, _) = cache::union(&wanted);
        if files.is_empty() {
            return None;
        }
        let mut fetched = Fetched::of(&files, &wanted);
        let by_themselves = |why: &str| say(&format!("{why}; each host fetches its own packages"));
        let others = self.site.hosts.iter().filter(|host| !wanted.contains_key(*host) && !lost.has(host));
        let (fetch, script) = (Fetch::packages(&files), take_packages(self.lead.as_deref()));
        let fetchers = self.fetchers(wanted.keys().chain(others));
        let load = DeliveryRequest { wanted: &wanted, fetchers, fetch: &fetch, script: &script };
        match bring(&self.executor.direct, &load, &say) {
            Ok((by, gone)) => {
                (fetched.by, fetched.sent) = (Some(by), gone.bytes);
                let ill = gone.came.iter().filter_map(|(host, said)| Some((host.as_str(), said.as_ref().err()?)));
                say_folded(&say, ill.map(|(host, why)| (host, why.as_str())));
            }
            Err(Unbrought::Nobody(whys)) => {
                say_folded(&say, whys.iter().map(|(host, why)| (host.as_str(), why.as_str())));
                by_themselves("no host could fetch packages for the others");
                return None;
            }
            Err(Unbrought::Here(failure)) => {
                by_themselves(&failure.message);
                return None;
            }
        }
        Some(fetched)
    }
}
