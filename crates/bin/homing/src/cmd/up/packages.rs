//! Brings the files of packages to the hosts of a phase. One host fetches them and the others get them from it, as
//! with `homing cache install`. A host that gets no file this way fetches by itself.

use super::Session;
use homing_relay::{Fetch, Fetched, Load, Packages, Unbrought, ask, bring};
use homing_setup::cache::{self, Purpose};
use homing_steps::{Change, Lost, Phase, Step, take_packages};

/// Returns the packages that the steps install.
fn packages(steps: &[Step]) -> Vec<String> {
    let name = |step: &Step| match &step.change {
        Change::Package { name, .. } => Some(name.clone()),
        _ => None,
    };
    steps.iter().filter_map(name).collect()
}

impl Session {
    /// Brings the package files of a phase to its hosts. Returns the fetched files, if any.
    pub fn bring_packages(&self, phase: &Phase, lost: &Lost) -> Option<Fetched> {
        let lack = phase.steps.iter().filter(|(host, _)| !lost.has(host));
        let lack = lack.map(|(host, steps)| (host.clone(), packages(steps)));
        let lack: Packages = lack.filter(|(_, packages)| !packages.is_empty()).collect();
        if lack.is_empty() || self.site.hosts.len() < 2 {
            return None;
        }
        let say = |text: &str| self.say(&format!("{}: {text}", phase.name));
        let others: Vec<String> =
            self.site.hosts.iter().filter(|host| !lack.contains_key(*host) && !lost.has(host)).cloned().collect();
        // If a host fails to answer, its own step reports the reason: the step runs the same query.
        let (mut wanted, _) = match ask(&self.executor.direct, &lack, Purpose::Steps, &others, &say) {
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
        let by_themselves = |why: &str| say(&format!("{why}; each host fetches by itself"));
        let others = self.site.hosts.iter().filter(|host| !wanted.contains_key(*host) && !lost.has(host));
        let (fetch, script) = (Fetch::packages(&files), take_packages(self.lead.as_deref()));
        let load = Load { wanted: &wanted, others: others.cloned().collect(), fetch: &fetch, script: &script };
        match bring(&self.executor.direct, &load, &say) {
            Ok((by, gone)) => {
                (fetched.by, fetched.sent) = (Some(by), gone.bytes);
                let ill = gone.came.into_iter().filter_map(|(host, said)| Some((host, said.err()?)));
                ill.for_each(|(host, why)| say(&format!("{host}: {why}")));
            }
            Err(Unbrought::Nobody(whys)) => {
                whys.iter().for_each(|(host, why)| say(&format!("{host}: {why}")));
                by_themselves("no host could fetch for all");
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
