//! The OSD map of a cluster. The program `ceph` fetches it as the user of the mount, and `osdmaptool` computes from
//! it the OSDs of each placement group, without a connection.

use super::hash;
use homing_model::Replica;
use homing_model::text::shown;
use homing_mounts::ceph::ReadFrom;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};

/// Seconds that the monitors have for their first answer.
const PATIENCE: &str = "5";
/// In place of an OSD that a group lacks (CRUSH_ITEM_NONE).
const NO_OSD: u32 = 0x7fff_ffff;
/// The number of the hash [`hash::rjenkins`] (CEPH_STR_HASH_RJENKINS).
const RJENKINS: u32 = 2;

/// The type of an erasure-coded pool (pg_pool_t::TYPE_ERASURE).
const ERASURE: u8 = 3;

/// The needed parts of the map.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OsdMap {
    /// The cluster's id.
    pub cluster: String,
    pools: HashMap<u64, Pool>,
    /// Addresses of OSDs that are up.
    osds: HashMap<u32, String>,
    groups: HashMap<(u64, u32), Acting>,
}

/// A pool.
#[derive(Debug, PartialEq)]
pub(super) struct Pool {
    number: u64,
    name: String,
    groups: u32,
    /// The part of an object that its primary stores itself.
    share: f64,
    /// Why its objects cannot be placed.
    odd: Option<&'static str>,
}

/// OSDs that serve a group.
#[derive(Debug, PartialEq)]
struct Acting {
    primary: u32,
    all: Vec<u32>,
}

/// Queries a cluster. `options` name the cluster and the user.
pub(super) fn query_map(options: &[String]) -> Result<OsdMap, String> {
    let mut ceph = Command::new("ceph");
    ceph.args(options).args(["--connect-timeout", PATIENCE, "osd", "getmap"]).stdin(Stdio::null());
    let map = output(ceph).map_err(|why| {
        format!("homing needs the OSD map to find its objects, and a key that may read the map (mon 'allow r'): {why}")
    })?;
    let dump = tool(&map, &["--dump", "json"])?;
    let groups = tool(&map, &["--test-map-pgs-dump-all"])?;
    read(&dump, &String::from_utf8_lossy(&groups))
}

/// Runs `osdmaptool` on the map, in a file without a name.
fn tool(map: &[u8], words: &[&str]) -> Result<Vec<u8>, String> {
    let file = memfd_create(c"osdmap", MemfdFlags::CLOEXEC).map(File::from).map_err(std::io::Error::from);
    let filled = file.and_then(|mut file| {
        file.write_all(map)?;
        file.rewind()?;
        Ok(file)
    });
    let mut command = Command::new("osdmaptool");
    command.arg("/dev/stdin").args(words).stdin(filled.map_err(|e| format!("keeping the OSD map in memory: {e}"))?);
    output(command).map_err(|why| format!("homing needs osdmaptool (package ceph-base) to find its objects: {why}"))
}

fn output(mut command: Command) -> Result<Vec<u8>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.env("LC_ALL", "C").output().map_err(|e| format!("cannot run {name}: {e}"))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    // The last line is `ceph`'s own message; others are from its libraries, with times and addresses.
    Err(format!("{name}: {}", shown(said.trim().lines().last().unwrap_or("it printed nothing"))))
}

#[derive(Deserialize)]
struct Dump {
    fsid: String,
    pools: Vec<DumpedPool>,
    osds: Vec<DumpedOsd>,
    #[serde(default)]
    erasure_code_profiles: HashMap<String, HashMap<String, String>>,
}

#[derive(Deserialize)]
struct DumpedPool {
    pool: u64,
    pool_name: String,
    pg_num: u32,
    /// 1: copies; 3: an erasure code.
    #[serde(rename = "type")]
    kind: u8,
    object_hash: u32,
    flags_names: String,
    #[serde(default)]
    erasure_code_profile: String,
    #[serde(default = "none")]
    read_tier: i64,
}

fn none() -> i64 {
    -1
}

#[derive(Deserialize)]
struct DumpedOsd {
    osd: u32,
    up: u8,
    /// `10.77.1.3:6801/2714`, `[fe80::1]:6801/2714`.
    public_addr: String,
}

fn read(dump: &[u8], groups: &str) -> Result<OsdMap, String> {
    let dump: Dump =
        serde_json::from_slice(dump).map_err(|e| format!("the JSON of osdmaptool has an unknown form: {e}"))?;
    let up = dump.osds.iter().filter(|osd| osd.up == 1);
    let osds = up.filter_map(|osd| Some((osd.osd, address(&osd.public_addr)?))).collect();
    let pools = dump.pools.iter().map(|pool| (pool.pool, pool.read(&dump.erasure_code_profiles))).collect();
    Ok(OsdMap { cluster: dump.fsid, pools, osds, groups: groups.lines().filter_map(group).collect() })
}

impl DumpedPool {
    fn read(&self, profiles: &HashMap<String, HashMap<String, String>>) -> Pool {
        let profile = profiles.get(&self.erasure_code_profile).filter(|_| self.kind == ERASURE);
        let shards = profile.and_then(|profile| profile.get("k")?.parse::<f64>().ok());
        let odd = match () {
            () if self.object_hash != RJENKINS => Some("uses another hash than rjenkins"),
            () if self.kind == ERASURE && shards.is_none() => {
                Some("has an erasure code with an unknown number of parts")
            }
            () if self.read_tier >= 0 => Some("is read through a cache tier"),
            () if !self.flags_names.split(',').any(|flag| flag == "hashpspool") => Some("lacks the flag hashpspool"),
            () => None,
        };
        let share = shards.filter(|k| *k >= 1.0).map_or(1.0, |k| 1.0 / k);
        Pool { number: self.pool, name: self.pool_name.clone(), groups: self.pg_num, share, odd }
    }
}

fn address(text: &str) -> Option<String> {
    let text = text.split('/').next()?;
    let (host, _) = text.rsplit_once(':')?;
    Some(host.trim_start_matches('[').trim_end_matches(']').to_string())
}

/// Parses `2.1f    raw ([1,0], p1) up ([1,0], p1) acting ([1,0], p1)`.
fn group(line: &str) -> Option<((u64, u32), Acting)> {
    let (name, rest) = line.split_once('\t').or_else(|| line.split_once(' '))?;
    let (pool, number) = name.trim().split_once('.')?;
    let key = (pool.parse().ok()?, u32::from_str_radix(number, 16).ok()?);
    let (list, primary) = rest.split_once("acting ([")?.1.split_once("], p")?;
    let all = list.split(',').filter_map(|osd| osd.parse().ok()).collect();
    let primary = primary.trim_end().trim_end_matches(')').parse::<i64>().ok()?;
    Some((key, Acting { primary: u32::try_from(primary).unwrap_or(NO_OSD), all }))
}

impl OsdMap {
    /// Returns the pool of a layout, by its name, or by its number if the client's key does not show the name.
    pub fn pool(&self, name: &str) -> Result<&Pool, String> {
        let by_name = self.pools.values().find(|pool| pool.name == name);
        let pool = by_name.or_else(|| self.pools.get(&name.parse().ok()?));
        let pool = pool.ok_or_else(|| format!("the OSD map has no pool {name:?}"))?;
        match pool.odd {
            Some(odd) => Err(format!("its pool {name:?} {odd}, so homing cannot compute the places of its objects")),
            None => Ok(pool),
        }
    }

    /// Returns the hosts from which an object is read; none if no OSD that is up has it.
    pub fn replicas(
        &self,
        pool: &Pool,
        space: Option<&str>,
        object: &str,
        from: ReadFrom,
    ) -> Result<Vec<Replica>, String> {
        /// The separator of a namespace and an object's name, which are hashed together.
        const BETWEEN: &str = "\u{1f}";
        let whole = space.map_or(object.to_string(), |space| [space, BETWEEN, object].concat());
        let number = hash::group(hash::rjenkins(whole.as_bytes()), pool.groups);
        let acting = self.groups.get(&(pool.number, number));
        let acting =
            acting.ok_or_else(|| format!("osdmaptool does not list the placement group {}.{number:x}", pool.number))?;
        // With an erasure code the primary gathers all shards. Clients read nothing from hosts of other shards.
        let all = from != ReadFrom::Primary && pool.share == 1.0;
        let osds = if all { acting.all.clone() } else { vec![acting.primary] };
        let mut hosts: Vec<&String> = osds.iter().filter_map(|osd| self.osds.get(osd)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let share = if from == ReadFrom::Any { pool.share / hosts.len().max(1) as f64 } else { pool.share };
        Ok(hosts.into_iter().map(|host| Replica { host: host.clone(), share }).collect())
    }
}

#[cfg(test)]
mod tests;
