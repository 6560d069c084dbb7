//! Plans the clocks: one host serves the time, by chrony, and the others follow it. Other daemons that set the clock
//! are removed: Debian's packages of them conflict with chrony. The names of packages, units and files are in the
//! table of families.

use super::AreaResult;
use crate::families::unknown;
use crate::site::{AllSeen, ClusterSite};
use homing_steps::{FactQuery, HostRequirement, How, block_of};

const BLOCK: &str = "clock";
/// The stratum of a host without a better source: clients prefer a server with a lower one.
const STRATUM: u32 = 10;

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.files.extend(["clock.file", "clock.block"].into_iter().flat_map(|thing| site.callings(thing)));
    question.packages.extend(["clock.package", "clock.replaces"].into_iter().flat_map(|thing| site.callings(thing)));
    question.units.extend(site.callings("clock.unit"));
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let Some(Ok(there)) = seen.get(host) else { return Ok(Vec::new()) };
    let Some(server) = &site.up.clock else { return Ok(Vec::new()) };
    let (name, unit) = (site.called_one(there, "clock.package")?, site.called_one(there, "clock.unit")?);
    let own = site.called_one(there, "clock.file").ok();
    let path = match &own {
        Some(path) => path.clone(),
        None => site.called_one(there, "clock.block").map_err(|_| vec![unknown(there, "clock.file")])?,
    };
    let old = there.text(&path).unwrap_or("");
    let old = if own.is_some() { old } else { block_of(old, BLOCK).unwrap_or("") };
    let text = if host == server { serves(site, host, seen, old) } else { follows(site, server, seen)? };
    let file = match own {
        Some(path) => HostRequirement::file(&path, text),
        None => HostRequirement::Block { path: path.clone(), name: BLOCK.into(), lines: text, retire: Vec::new() },
    };
    // The package starts its unit before the file exists.
    let reads = HostRequirement::Reads { unit: unit.clone(), paths: vec![path], how: How::Restart, test: None };
    let replaces = site.called(there, "clock.replaces").unwrap_or_default();
    Ok(vec![HostRequirement::Package { name, replaces }, file, HostRequirement::Unit { name: unit, on: true }, reads])
}

/// Returns the server's settings. Addresses that were allowed stay so while their host does not answer.
fn serves(site: &ClusterSite, host: &str, seen: &AllSeen, there: &str) -> String {
    let others = site.hosts.iter().filter(|other| *other != host);
    let mut allow: Vec<String> = Vec::new();
    for other in others {
        let addresses = site.names(other, seen);
        if addresses.is_empty() {
            allow.extend(there.lines().filter(|line| line.starts_with("allow ")).map(String::from));
        }
        allow.extend(addresses.into_iter().map(|(_, address)| format!("allow {address}")));
    }
    allow.sort();
    allow.dedup();
    format!("local stratum {STRATUM}\nmakestep 1 3\n{}\n", allow.join("\n"))
}

fn follows(site: &ClusterSite, server: &str, seen: &AllSeen) -> Result<String, Vec<String>> {
    let names = site.names(server, seen);
    let (_, address) =
        names.first().ok_or_else(|| vec![format!("the address of the time server {server} is unknown")])?;
    Ok(format!("server {address} iburst\nmakestep 1 3\n"))
}
