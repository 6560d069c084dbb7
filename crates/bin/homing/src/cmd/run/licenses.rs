//! Slurm licences that the workers of a run take for the file servers of its inputs. All jobs and runs on Slurm then
//! share one limit and need no leases.

use super::args::Args;
use super::options::io_limit;
use crate::cluster::{Cluster, licenses::shares};
use homing_dispatch::{Io, Licensed};
use homing_model::Failure;
use homing_scheduler::slurm::ask;
use homing_scheduler::{Seat, System};

/// Returns the licences that each of these workers takes, each with its file server; none on other systems than Slurm.
pub fn of(
    system: System,
    args: &Args,
    cluster: &Cluster,
    holders: &[String],
    seats: &[Seat],
) -> Result<Vec<(String, Licensed)>, Failure> {
    let mut said = cluster.servers();
    said.retain(|_, server| server.license.is_some());
    let own = io_limit(&args.io)?;
    if system != System::Slurm || args.no_share || own == Io::Off || said.is_empty() {
        return Ok(Vec::new());
    }
    let addresses = homing_os::names::addresses_of(holders).into_iter().flatten();
    let names: Vec<String> = holders.iter().cloned().chain(addresses).collect();
    said.retain(|section, _| homing_dispatch::source::leases::is_one_of(section, &names));
    let known = if said.is_empty() { Vec::new() } else { ask::licenses().map_err(Failure::system)? };
    Ok(shares(&said, &known, own, seats))
}
