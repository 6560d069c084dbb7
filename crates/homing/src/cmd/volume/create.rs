//! `homing volume create`.

use super::args::{Create, Way};
use super::drive::Drive;
use crate::cluster::Cluster;
use crate::failure::Failure;
use homing_model::NodeSet;
use homing_volume::{Change, Danger, Kind, Observed, Place, Record, Spec, gluster, moosefs, nfs};
use std::time::Instant;

/// `n[1-4]:/brick` as hosts and path; `n1:/a,n2:/b` as several of these.
pub fn places(texts: &[String], cluster: &Cluster) -> Result<Vec<Place>, Failure> {
    let mut places = Vec::new();
    for text in texts.iter().flat_map(|text| each(text)) {
        let wrong = || Failure::usage(format!("{text:?} names no folder of hosts")).hint("n[1-4]:/brick");
        let (hosts, path) = text.split_once(":/").ok_or_else(wrong)?;
        let hosts = cluster.hosts(Some(hosts))?;
        let path = format!("/{}", path.trim_end_matches('/'));
        places.extend(hosts.into_iter().map(|host| Place { host, path: path.clone() }));
    }
    Ok(places)
}

/// A list's parts, each with a path of its own: a comma behind a path ends it.
fn each(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split(',') {
        match parts.last_mut().filter(|last| !last.contains(":/")) {
            Some(last) => *last = format!("{last},{word}"),
            None => parts.push(word.into()),
        }
    }
    parts
}

fn spec(way: &Way, args: &Create) -> Result<Spec, Failure> {
    let places = places(&args.hosts, &way.cluster.load()?)?;
    let clients = match &args.clients {
        Some(text) => way.cluster.load()?.hosts(Some(text))?,
        None => Vec::new(),
    };
    let mut spec = Spec {
        name: args.name.clone(),
        kind: args.kind,
        places,
        copies: args.copies,
        arbiter: args.arbiter,
        stripe: args.stripe,
        mount: args.mount.clone().unwrap_or_else(|| format!("/{}", args.name)),
        clients,
        master: args.master.clone(),
    };
    if args.clients.is_none() {
        spec.clients = spec.servers();
    }
    spec.check().map_err(Failure::usage)?;
    Ok(spec)
}

/// Makes it, or completes it.
pub fn run(way: &Way, args: Create) -> Result<i32, Failure> {
    let begun = Instant::now();
    let spec = spec(way, &args)?;
    make(way, &spec, args.allow.list())?;
    if !way.dry_run {
        let clients: NodeSet = spec.clients.iter().cloned().collect();
        let took = begun.elapsed().as_secs_f64();
        println!("volume {} is mounted at {} on {clients} ({took:.1} s)", spec.name, spec.mount);
    }
    Ok(0)
}

/// From hosts with a disk to a volume that is mounted.
pub fn make(way: &Way, spec: &Spec, allowed: Vec<Danger>) -> Result<(), Failure> {
    let drive = Drive::new(way, Some(&spec.name))?.allowing(allowed);
    let folder = homing_volume::folder();
    let old = Record::load(&folder, &spec.name).map_err(|e| Failure::system(format!("reading the record: {e}")))?;
    let mut record = match old {
        Some(mut old) if old.pending.as_ref().is_some_and(|p| p.what == Change::Create) => {
            old.spec = spec.clone();
            old
        }
        Some(old) if old.spec != *spec => {
            let failure = Failure::usage(format!("there is a volume {} already, made otherwise", spec.name));
            return Err(failure.hint(format!("homing volume status {}", spec.name)));
        }
        Some(old) => old,
        None => Record::new(&folder, spec.clone()),
    };
    drive.reach(&mut record, &Change::Create, true, &plan)
}

/// The plan of a kind.
pub fn plan(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> super::drive::Answer {
    match spec.kind {
        Kind::Gluster => gluster::create(spec, seen, allowed),
        Kind::Moosefs => moosefs::create(spec, seen, allowed),
        Kind::Nfs => nfs::create(spec, seen, allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_may_have_a_path_of_its_own() {
        for (text, parts) in [
            ("n[1-4]:/brick", vec!["n[1-4]:/brick"]),
            ("n1:/a,n2:/b", vec!["n1:/a", "n2:/b"]),
            ("n[1,3],n5:/a,n[2,4]:/b", vec!["n[1,3],n5:/a", "n[2,4]:/b"]),
            ("n1", vec!["n1"]),
        ] {
            assert_eq!(each(text), parts, "{text}");
        }
    }
}
