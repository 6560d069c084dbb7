//! Slurm's licences, one for each file server. Slurm counts them over all users and nodes, and starts nothing beyond
//! their number. Jobs and the workers of runs take them.

use crate::{Cluster, inputs};
use homing_dispatch::source::leases::{self, ServerSection};
use homing_dispatch::{Io, Licensed};
use homing_locate::Finder;
use homing_model::Failure;
use homing_os::say;
use homing_queue::JobSpec;
use homing_scheduler::Seat;
use homing_scheduler::slurm::License;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Returns the licences that each of these workers takes. The first argument has the servers that hold inputs of the
/// run; `own` is the number that the run may have.
pub fn shares(
    said: &BTreeMap<String, ServerSection>,
    known: &[License],
    own: Io,
    seats: &[Seat],
) -> Vec<(String, Licensed)> {
    let slots = seats.iter().map(|seat| seat.slots).max().unwrap_or(1);
    let one = |(section, server): (&String, &ServerSection)| {
        let license = server.license.clone()?;
        let total = known.iter().find(|known| known.name == license).map(|known| known.total);
        let own = if let Io::Fixed(limit) = own { Some(limit) } else { None };
        let limit = [own, server.io.map(|io| io.get()), total].into_iter().flatten().min();
        // All licences of the run, divided by the workers: a worker with too few waits until others give some back.
        let each = limit.map_or(slots, |limit| limit / seats.len().max(1) as u32).clamp(1, slots.max(1));
        let names = [vec![section.clone()], homing_os::names::addresses(section)].concat();
        Some((license, Licensed { names, each }))
    };
    said.iter().filter_map(one).collect()
}

/// Returns the licences as an argument for srun.
pub fn of_run(licensed: &[(String, Licensed)]) -> Option<String> {
    words(licensed.iter().map(|(name, server)| (name.as_str(), server.each)))
}

/// Returns the licences as an argument for sbatch, for a job that takes `each` of these servers.
fn of_job(used: &[(&String, &ServerSection)], each: u32) -> Option<String> {
    let taken = |server: &ServerSection| each.clamp(1, server.io.map_or(u32::MAX, |io| io.get()));
    let counts = used.iter().filter_map(|(_, server)| Some((server.license.as_deref()?, taken(server))));
    words(counts).map(|words| format!("--licenses={words}"))
}

/// Lets the job take `each` licences of every file server that has licences and holds its inputs or its working
/// directory.
pub fn take(spec: &mut JobSpec, inputs: &[PathBuf], each: u32) -> Result<(), Failure> {
    let mut said = Cluster::of_queue()?.servers();
    said.retain(|_, server| server.license.is_some() || server.io.is_some());
    if said.is_empty() {
        return Ok(());
    }
    let names = match servers(spec, inputs) {
        Ok(names) => names,
        Err(why) => {
            say!("homing: {why}; no file server counts the job");
            return Ok(());
        }
    };
    let used: Vec<(&String, &ServerSection)> =
        said.iter().filter(|(section, _)| leases::is_one_of(section, &names)).collect();
    for (section, _) in used.iter().filter(|(_, server)| server.license.is_none()) {
        say!(
            "homing: Slurm does not limit jobs at {section}: io of [server.{section}] limits runs only; \
             Licenses=NAME:N in slurm.conf and license = \"NAME\" in that section hold for jobs"
        );
    }
    // The user's own words come last, and thereby have priority.
    spec.extra.splice(0..0, of_job(&used, each));
    Ok(())
}

/// Returns the names and addresses of the servers of a job's files, and of its working directory.
fn servers(spec: &JobSpec, inputs: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let (of_files, _) = inputs::found(spec, inputs)?;
    let cwd = spec.cwd.to_path();
    let look = {
        let cwd = cwd.clone();
        move || Finder::with_own(Default::default()).locator().server_of(&cwd).map(|(server, _)| server)
    };
    let of_folder = homing_mounts::patiently(vec![cwd], homing_mounts::FS_TIMEOUT, look).map_err(Failure::system)?;
    let names: Vec<String> = of_files.into_keys().chain(of_folder).collect();
    let addresses = homing_os::names::addresses_of(&names).into_iter().flatten();
    Ok(addresses.chain(names).collect::<BTreeSet<_>>().into_iter().collect())
}

/// Joins licences and counts, each licence once: one server may have two names.
fn words<'w>(counts: impl Iterator<Item = (&'w str, u32)>) -> Option<String> {
    let counts: BTreeMap<&str, u32> = counts.collect();
    let words: Vec<String> = counts.into_iter().map(|(name, count)| format!("{name}:{count}")).collect();
    (!words.is_empty()).then(|| words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_together_take_what_the_run_may_have() {
        let said: BTreeMap<String, ServerSection> =
            toml::from_str("[\"192.0.2.1\"]\nlicense = \"nas\"\nio = 12\n[\"192.0.2.2\"]\nlicense = \"b@db\"\n")
                .unwrap();
        let nas = License { name: "nas".into(), total: 100, used: 0, users: BTreeMap::new() };
        let seats: Vec<Seat> = (0..4).map(|n| Seat { node: format!("n{n}"), slots: 8 }).collect();
        let of = |own, seats: &[Seat]| of_run(&shares(&said, std::slice::from_ref(&nas), own, seats)).unwrap();
        assert_eq!(of(Io::Fixed(8), &seats), "b@db:2,nas:2");
        assert_eq!(of(Io::Auto, &seats), "b@db:8,nas:3", "of one nothing is known");
        assert_eq!(of(Io::Fixed(2), &seats), "b@db:1,nas:1", "two workers begin");
        assert_eq!(of(Io::Auto, &seats[..1]), "b@db:8,nas:8", "no more than it has slots");
        assert_eq!(of_run(&[]), None);
    }

    #[test]
    fn a_job_takes_a_licence_of_each_server_and_no_more_than_all() {
        let said: BTreeMap<String, ServerSection> = toml::from_str(
            "[a]\nlicense = \"nas\"\nio = 4\n[b]\nlicense = \"scratch@slurmdb\"\n[c]\nio = 4\n[d]\nlicense = \"nas\"\n",
        )
        .unwrap();
        let of = |names: &[&str], each| {
            of_job(&said.iter().filter(|(n, _)| names.contains(&n.as_str())).collect::<Vec<_>>(), each)
        };
        assert_eq!(of(&["a", "b"], 1).as_deref(), Some("--licenses=nas:1,scratch@slurmdb:1"));
        assert_eq!(of(&["a"], 16).as_deref(), Some("--licenses=nas:4"));
        assert_eq!(of(&["a", "d"], 1).as_deref(), Some("--licenses=nas:1"), "two names of one server");
        assert_eq!(of(&["c"], 1), None);
    }

    #[test]
    fn a_name_that_slurm_reads_otherwise_is_refused() {
        let bad = toml::from_str::<ServerSection>("license = \"nas:8\"").unwrap_err().to_string();
        assert!(bad.contains("is not a valid name of a Slurm licence"), "{bad}");
    }
}
