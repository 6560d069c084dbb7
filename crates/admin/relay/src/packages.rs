//! Queries hosts for the files of packages that they need.

use crate::{PackagesByHost, indexes};
use homing_setup::cache::{self, MissingPackageAction, Purpose, STALE};
use homing_steps::{Call, Executor, SshExecutor};
use std::collections::BTreeMap;

/// Packages by the host that is to have them.
pub type Packages = BTreeMap<String, Vec<String>>;

/// Returns the files that hosts want, and the hosts that could not list them. Hosts that do not know a package get
/// indexes first. One of the other hosts fetches these, or one of them; if none can, each fetches its own.
pub fn query_packages(
    executor: &SshExecutor,
    packages: &Packages,
    purpose: Purpose,
    others: &[String],
    say: &dyn Fn(&str),
) -> Result<(PackagesByHost, Vec<(String, String)>), String> {
    let (mut wanted, mut failed, stale) = say_what(executor, packages, purpose, |_| MissingPackageAction::Ask);
    if !stale.is_empty() {
        let known = packages.keys().filter(|host| wanted.contains_key(*host)).chain(others).cloned();
        let came = indexes::bring(executor, &stale, &known.collect::<Vec<_>>(), say)?;
        came.failed.iter().for_each(|(host, why)| say(&format!("{host}: fetching package indexes: {why}")));
        let left = packages.iter().filter(|(host, _)| stale.contains(host));
        let left: Packages = left.map(|(host, packages)| (host.clone(), packages.clone())).collect();
        let has = |host: &String| {
            if came.installed.contains(host) { MissingPackageAction::Fail } else { MissingPackageAction::FetchIndexes }
        };
        let (more, ill, _) = say_what(executor, &left, purpose, has);
        wanted.extend(more);
        failed.extend(ill);
    }
    Ok((wanted, failed))
}

/// Returns the files that these hosts, which should have all by now, still lack.
pub fn lacking(executor: &SshExecutor, packages: &Packages, hosts: &[String]) -> BTreeMap<String, String> {
    let of = packages.iter().filter(|(host, _)| hosts.contains(host));
    let of: Packages = of.map(|(host, packages)| (host.clone(), packages.clone())).collect();
    let (wanted, failed, _) = say_what(executor, &of, Purpose::Install, |_| MissingPackageAction::Fail);
    let lack = wanted.into_iter().filter_map(|(host, files)| Some((host, format!("it lacks {}", files.first()?.name))));
    lack.chain(failed).collect()
}

/// Returns the files that hosts want, the hosts that could not list them, and those that do not know a package.
pub fn say_what(
    executor: &SshExecutor,
    packages: &Packages,
    purpose: Purpose,
    unknown: impl Fn(&String) -> MissingPackageAction,
) -> (PackagesByHost, Vec<(String, String)>, Vec<String>) {
    let call = |(host, packages): (&String, &Vec<String>)| {
        (host.clone(), Call::Script(cache::wanted(packages, purpose, unknown(host))))
    };
    let said = executor.run(&packages.iter().map(call).collect::<Vec<_>>());
    let (mut wanted, mut failed, mut stale) = (PackagesByHost::new(), Vec::new(), Vec::new());
    for (host, said) in packages.keys().cloned().zip(said) {
        match said {
            Ok(said) if said == STALE => stale.push(host),
            said => match said.and_then(|said| cache::files(&said)) {
                Ok(files) => drop(wanted.insert(host, files)),
                Err(why) => failed.push((host, why)),
            },
        }
    }
    (wanted, failed, stale)
}
