//! Licences of Slurm's that a job takes, one for each file server that it uses: Slurm counts them over all users and
//! nodes, and starts nothing beyond their number.

use super::near;
use crate::cluster::{Cluster, Server};
use crate::failure::Failure;
use homing_locate::Finder;
use homing_queue::JobSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Lets the job take `each` licences of every file server that has one and holds what it reads or where it works.
pub fn take(spec: &mut JobSpec, inputs: &[PathBuf], each: u32) -> Result<(), Failure> {
    let mut said = Cluster::of_queue()?.servers();
    said.retain(|_, server| server.license.is_some() || server.io.is_some());
    if said.is_empty() {
        return Ok(());
    }
    let names = match servers(spec, inputs) {
        Ok(names) => names,
        Err(why) => {
            eprintln!("homing: {why}; the job counts at no file server");
            return Ok(());
        }
    };
    let used: Vec<(&String, &Server)> =
        said.iter().filter(|(section, _)| crate::leases::is_one_of(section, &names)).collect();
    for (section, _) in used.iter().filter(|(_, server)| server.license.is_none()) {
        eprintln!(
            "homing: Slurm does not count jobs at {section}: io of [server.{section}] holds for runs; \
             Licenses=NAME:N in slurm.conf and license = \"NAME\" in that section hold for jobs"
        );
    }
    // The user's own words stand last, so that they win.
    spec.extra.splice(0..0, word(&used, each));
    Ok(())
}

/// What sbatch is told.
fn word(used: &[(&String, &Server)], each: u32) -> Option<String> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, server) in used {
        let Some(license) = &server.license else { continue };
        let most = server.io.map_or(u32::MAX, |io| io.get());
        counts.insert(license, each.clamp(1, most));
    }
    let counts: Vec<String> = counts.into_iter().map(|(name, count)| format!("{name}:{count}")).collect();
    (!counts.is_empty()).then(|| format!("--licenses={}", counts.join(",")))
}

/// Names and addresses of the servers of a job's files, and of the folder in which it works.
fn servers(spec: &JobSpec, inputs: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let (of_files, _) = near::found(spec, inputs)?;
    let cwd = spec.cwd.to_path();
    let look = {
        let cwd = cwd.clone();
        move || Finder::with_own(Default::default()).locator().server_of(&cwd).map(|(server, _)| server)
    };
    let of_folder = homing_mounts::patiently(vec![cwd], homing_mounts::FS_TIMEOUT, look).map_err(Failure::system)?;
    let names: BTreeSet<String> = of_files.into_keys().chain(of_folder).collect();
    let addresses = names.iter().flat_map(|name| homing_names::addresses(name));
    Ok(addresses.collect::<BTreeSet<_>>().into_iter().chain(names.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_takes_a_licence_of_each_server_and_no_more_than_all() {
        let said: BTreeMap<String, Server> = toml::from_str(
            "[a]\nlicense = \"nas\"\nio = 4\n[b]\nlicense = \"scratch@slurmdb\"\n[c]\nio = 4\n[d]\nlicense = \"nas\"\n",
        )
        .unwrap();
        let of = |names: &[&str], each| {
            word(&said.iter().filter(|(n, _)| names.contains(&n.as_str())).collect::<Vec<_>>(), each)
        };
        assert_eq!(of(&["a", "b"], 1).as_deref(), Some("--licenses=nas:1,scratch@slurmdb:1"));
        assert_eq!(of(&["a"], 16).as_deref(), Some("--licenses=nas:4"));
        assert_eq!(of(&["a", "d"], 1).as_deref(), Some("--licenses=nas:1"), "two names of one server");
        assert_eq!(of(&["c"], 1), None);
    }

    #[test]
    fn a_name_that_slurm_reads_otherwise_is_refused() {
        let bad = toml::from_str::<Server>("license = \"nas:8\"").unwrap_err().to_string();
        assert!(bad.contains("is no name of a licence"), "{bad}");
    }
}
