//! Resolves a word of the command line to a vault and a path in it.

use super::args::VaultArgs;
use crate::cluster::ClusterArgs;
use homing_dispatch::source::leases;
use homing_model::Failure;
use homing_snapshot::asking::ClusterContext;
use homing_snapshot::target::{Target, VaultOptions};
use homing_volume::VolumeRecord;

/// Returns the vault and the path that a word means.
pub fn target(cluster: &ClusterArgs, what: &str, vault: &VaultArgs) -> Result<Target, Failure> {
    let said = VaultOptions {
        to: vault.to.clone(),
        vault: vault.vault.clone(),
        engine: vault.engine,
        password_file: vault.password_file.clone(),
    };
    let mount = |name: &str| Some(VolumeRecord::load(&homing_volume::folder(), name).ok()??.spec.mount);
    Target::of(&cluster.load()?.snapshots(), what, &said, &mount)
}

/// Returns the faults of sections of the cluster file that are used by other commands than those that set up and
/// check hosts: queues and vaults.
pub fn section_faults(cluster: &ClusterArgs) -> Result<Vec<String>, Failure> {
    let mut faults = cluster.load()?.section_faults();
    faults.extend(all(cluster).err().map(|failure| failure.message));
    Ok(faults)
}

/// Returns all vaults of the cluster file.
pub fn all(cluster: &ClusterArgs) -> Result<Vec<Target>, Failure> {
    Target::all(cluster.load()?.snapshots())
}

/// Returns the facts about the cluster that this machine knows.
pub fn known(cluster: &ClusterArgs) -> Result<ClusterContext, Failure> {
    let servers = cluster.load()?.servers();
    let place = move |names: &[String], volumes: &[homing_locate::Volume]| leases::place(names, volumes, &servers);
    Ok(ClusterContext { own: homing_queue::host_name(), leases: Box::new(place) })
}
