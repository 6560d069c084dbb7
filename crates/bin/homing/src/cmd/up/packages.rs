//! Brings the files of packages to the hosts of a phase. One host fetches them and the others get them from it, as
//! with `homing cache install`. A host that gets no file this way fetches by itself.

use super::UpSession;
use homing_model::alike;
use homing_relay::{DeliveryRequest, Fetch, Fetched, Packages, Unbrought, bring, query_packages};
use homing_setup::HostFailures;
use homing_setup::cache::{self, Purpose};
use homing_steps::{Call, ChangePhase, ChangeStep, Executor, HostChange, Lost, take_packages};

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
    /// host of the cluster can fetch, because that host passes files on. This takes seconds and not the minutes of a
    /// failed installation.
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
        let has_way = |ways: &[(String, Option<String>)]| ways.iter().any(|(_, why)| why.is_none());
        // Others are queried only if these have no way. One that lacks nothing may have the access that they lack.
        let others = self.site.hosts.iter().filter(|host| !lack.contains_key(*host));
        if has_way(&ways) || has_way(&self.ways(&others.map(|host| (host.clone(), Vec::new())).collect())) {
            return Vec::new();
        }
        let line = |why| {
            format!("packages: no mirror can be reached: {why} (try: apt-get update on the host, or --only AREA,...)")
        };
        ways.into_iter().filter_map(|(host, why)| Some((host, line(why?)))).collect()
    }

    /// Returns for each host that answers why it cannot fetch its packages; `None` if it can.
    fn ways(&self, of: &Packages) -> Vec<(String, Option<String>)> {
        let call = |(host, packages): (&String, &Vec<String>)| (host.clone(), Call::Script(cache::way(packages)));
        let answers = self.executor.direct.run(&of.iter().map(call).collect::<Vec<_>>());
        let answered = of.keys().zip(answers);
        answered.filter_map(|(host, said)| Some((host.clone(), cache::no_way(&said.ok()?)))).collect()
    }

    /// Brings the package files of a phase to its hosts. Returns the fetched files, if any.
    pub fn bring_packages(&self, phase: &ChangePhase, lost: &Lost) -> Option<Fetched> {
        let lack = phase.steps.iter().filter(|(host, _)| !lost.has(host));
        let lack = lack.map(|(host, steps)| (host.clone(), packages(steps)));
        let lack: Packages = lack.filter(|(_, packages)| !packages.is_empty()).collect();
        if lack.is_empty() || self.site.hosts.len() < 2 {
            return None;
        }
        let say = |text: &str| self.print_message(&format!("{}: {text}", phase.name));
        let others: Vec<String> =
            self.site.hosts.iter().filter(|host| !lack.contains_key(*host) && !lost.has(host)).cloned().collect();
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
        let load =
            DeliveryRequest { wanted: &wanted, others: others.cloned().collect(), fetch: &fetch, script: &script };
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
