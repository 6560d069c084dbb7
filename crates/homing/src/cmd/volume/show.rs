//! `list`, `status` and `balance-report`: what the hosts say, and no more.

use super::args::{List, One, Shown, Way};
use super::drive::Drive;
use crate::cluster::ClusterArgs;
use crate::failure::{Failure, exit};
use homing_model::NodeSet;
use homing_model::text::aligned;
use homing_model::units::bytes;
use homing_steps::Executor;
use homing_volume::health::{self, Finding};
use homing_volume::observe::MountPoint;
use homing_volume::{Observed, Record, Spec, adopt, execute, gluster};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn set(hosts: &[String]) -> String {
    hosts.iter().cloned().collect::<NodeSet>().to_string()
}

/// Volumes with a record here, and those that the hosts asked know.
pub fn list(way: &Way, args: List) -> Result<i32, Failure> {
    let folder = homing_volume::folder();
    let mut specs: BTreeMap<String, Spec> = BTreeMap::new();
    for name in Record::names(&folder) {
        let record = Record::load(&folder, &name).map_err(|e| Failure::system(format!("the record of {name}: {e}")))?;
        specs.extend(record.map(|r| (name, r.spec)));
    }
    let hosts = way.cluster.load()?.hosts(args.hosts.as_deref())?;
    if !hosts.is_empty() {
        let drive = Drive::new(way, None)?;
        for name in names_on(&drive, &hosts) {
            if !specs.contains_key(&name) {
                let seen = execute::observe(&drive.executor, &adopt::unknown(&name, &hosts), &hosts, &[]);
                specs.extend(adopt::spec(&name, &hosts, &seen).map(|s| (name, s)));
            }
        }
    }
    if args.json {
        let rows: Vec<Value> = specs.values().map(row).collect();
        println!("{}", json!({ "volumes": rows }));
        return Ok(0);
    }
    let head = ["NAME", "KIND", "MOUNT", "COPIES", "HOSTS"].map(String::from);
    let volumes = specs.values();
    let rows =
        volumes.map(|s| [s.name.clone(), s.kind.to_string(), s.mount.clone(), s.copies.to_string(), set(&s.servers())]);
    print!("{}", aligned(&[vec![head], rows.collect()].concat(), 0..0));
    Ok(0)
}

fn row(s: &Spec) -> Value {
    json!({
        "name": s.name, "kind": s.kind, "mount": s.mount, "hosts": s.servers(), "clients": s.clients,
        "copies": s.copies, "arbiter": s.arbiter, "stripe_bytes": s.stripe,
    })
}

/// Names of volumes on hosts: GlusterFS's own list, and what homing wrote into fstab.
fn names_on(drive: &Drive, hosts: &[String]) -> BTreeSet<String> {
    let argv = homing_volume::observe::names_question();
    let questions: Vec<_> = hosts.iter().map(|h| (h.clone(), argv.clone())).collect();
    let answers = drive.executor.programs(&questions);
    answers.iter().flatten().flat_map(|text| text.lines().map(String::from)).filter(|n| !n.is_empty()).collect()
}

/// A volume as JSON, where that is wanted, and whether it is well.
type Told = Result<(Value, bool), Failure>;

/// Shows the volume that was named, or each that is known. `show` prints it unless JSON is wanted, and tells
/// what it is as JSON and whether it is well.
fn each(way: &Way, args: &Shown, show: fn(&Drive, &Record, bool) -> Told) -> Result<i32, Failure> {
    let drive = Drive::new(way, None)?;
    let names = args.name.clone().map_or_else(|| all_names(&drive, way, args), |name| Ok([name].into()))?;
    let mut shown = Vec::new();
    for name in names {
        let record = drive.find(&One { name, hosts: args.hosts.clone() })?;
        shown.push(show(&drive, &record, args.json)?);
    }
    let well = shown.iter().all(|(_, well)| *well);
    if args.json {
        let mut all = shown.into_iter().map(|(volume, _)| volume);
        let all =
            if args.name.is_some() { all.next().unwrap_or_default() } else { json!({"volumes": Vec::from_iter(all)}) };
        println!("{all}");
    }
    Ok(if well { 0 } else { exit::SYSTEM })
}

/// Of all volumes with a record here, or that the hosts of -w know.
fn all_names(drive: &Drive, way: &Way, args: &Shown) -> Result<BTreeSet<String>, Failure> {
    let mut names: BTreeSet<String> = Record::names(&homing_volume::folder()).into_iter().collect();
    let hosts = way.cluster.load()?.hosts(args.hosts.as_deref())?;
    if !hosts.is_empty() {
        names.extend(names_on(drive, &hosts));
    }
    if names.is_empty() {
        return Err(Failure::usage("no volume is known here").hint("-w 'n[1-4]' asks hosts, as root"));
    }
    Ok(names)
}

/// Daemons, mounts, what is under way.
pub fn status(way: &Way, args: Shown) -> Result<i32, Failure> {
    each(way, &args, status_of)
}

fn status_of(drive: &Drive, record: &Record, as_json: bool) -> Told {
    let spec = &record.spec;
    let seen = drive.observe(spec, &spec.hosts());
    let rows: Vec<Value> = spec.hosts().iter().map(|h| host_row(spec, &seen, h)).collect();
    let tasks: Vec<String> = tasks(spec, &seen);
    let pending = record.pending.as_ref().map(|p| p.what.to_string());
    let findings = findings(drive, spec, &seen);
    let well = rows.iter().all(|r| r["well"] == true) && !findings.iter().any(|f| f.ill);
    if as_json {
        let mut all = row(spec);
        all["on_hosts"] = rows.into();
        all["tasks"] = tasks.into();
        all["findings"] = json!(findings);
        all["interrupted"] = pending.into();
        return Ok((all, well));
    }
    let copies = if spec.copies == 1 { "1 copy".into() } else { format!("{} copies", spec.copies) };
    println!("{} ({}): {copies} on {}, at {}", spec.name, spec.kind, set(&spec.servers()), spec.mount);
    println!("{:<16} {:<10} MOUNT", "HOST", "DAEMON");
    for r in rows {
        let text = |k: &str| r[k].as_str().unwrap_or("-").to_string();
        let why = r["why"].as_str().unwrap_or("");
        let line = format!("{:<16} {:<10} {:<12} {why}", text("host"), text("daemon"), text("mount"));
        println!("{}", line.trim_end());
    }
    findings.iter().for_each(|f| println!("{}: {}", f.what, f.remedy));
    tasks.iter().for_each(|t| println!("last movement of files: {t}"));
    if let Some(what) = pending {
        println!("{what} was interrupted: homing volume resume {0}, or homing volume undo {0}", spec.name);
    }
    Ok((Value::Null, well))
}

fn findings(drive: &Drive, spec: &Spec, seen: &Observed) -> Vec<Finding> {
    let answer = health::question(spec, seen).and_then(|question| drive.executor.programs(&[question]).pop()?.ok());
    health::findings(spec, seen, answer.as_deref())
}

/// Seconds for a command on a host that is only looked at.
const PATIENCE: u64 = 5;

fn looking(cluster: &ClusterArgs) -> Way {
    Way { cluster: cluster.clone(), dry_run: false, sudo: false, quiet: true, timeout: PATIENCE, silent: true }
}

/// The hosts of a volume.
pub fn hosts_of(cluster: &ClusterArgs, name: &str) -> Result<Vec<String>, Failure> {
    let way = looking(cluster);
    let record = Drive::new(&way, None)?.find(&One { name: name.into(), hosts: None })?;
    Ok(record.spec.hosts())
}

/// What `status` would tell of a volume, as findings of `homing check`. Hosts that are known to be silent are not asked.
pub fn checked(cluster: &ClusterArgs, name: &str, silent: &[&str]) -> Result<Vec<homing_check::Finding>, Failure> {
    let way = looking(cluster);
    let drive = Drive::new(&way, None)?;
    let spec = drive.find(&One { name: name.into(), hosts: None })?.spec;
    let hosts: Vec<String> = spec.hosts().into_iter().filter(|h| !silent.contains(&h.as_str())).collect();
    let seen = drive.observe(&spec, &hosts);
    let mut found = Vec::new();
    if let Some(speaker) = hosts.first() {
        found.extend(findings(&drive, &spec, &seen).iter().map(|f| homing_check::volume::of_health(name, speaker, f)));
    }
    for host in &hosts {
        let Some(facts) = seen.host(host) else { continue };
        let row = host_row(&spec, &seen, host);
        for unit in homing_volume::units(&spec, host).iter().filter(|unit| !facts.active.contains(**unit)) {
            found.push(homing_check::volume::of_host(name, host, &format!("{unit} does not run"), Some(unit)));
        }
        if !matches!(row["mount"].as_str(), Some("mounted" | "-")) {
            found.push(homing_check::volume::of_host(name, host, &format!("{} is not mounted", spec.mount), None));
        }
    }
    Ok(found)
}

fn tasks(spec: &Spec, seen: &Observed) -> Vec<String> {
    let views = seen.hosts.values().flatten().filter_map(|f| f.gluster.as_ref());
    let tasks = views.flat_map(|c| c.tasks.iter().flatten()).filter(|t| t.volume == spec.name);
    let lines: BTreeSet<String> = tasks.map(|t| format!("{} ({})", t.what.to_lowercase(), t.status)).collect();
    lines.into_iter().collect()
}

fn host_row(spec: &Spec, seen: &Observed, host: &str) -> Value {
    let Some(facts) = seen.host(host) else {
        let why = seen.hosts.get(host).and_then(|f| f.as_ref().err()).cloned();
        return json!({"host": host, "well": false, "daemon": "unavail", "why": why});
    };
    let units = homing_volume::units(spec, host);
    let runs = units.iter().all(|u| facts.active.contains(*u));
    let client = spec.clients.iter().any(|c| c == host);
    let mount = match &facts.point {
        MountPoint::Ours => "mounted",
        MountPoint::Other(_) => "other",
        _ => "unmounted",
    };
    json!({
        "host": host, "daemon": if units.is_empty() { "-" } else if runs { "ok" } else { "down" },
        "mount": if client { mount } else { "-" },
        "well": runs && (!client || facts.point == MountPoint::Ours),
    })
}

/// How full each store is.
pub fn balance(way: &Way, args: Shown) -> Result<i32, Failure> {
    each(way, &args, balance_of)
}

fn balance_of(drive: &Drive, record: &Record, as_json: bool) -> Told {
    let spec = &record.spec;
    let seen = drive.observe(spec, &spec.hosts());
    let own = gluster::volume(spec, &seen).map(|v| v.bricks.clone()).unwrap_or_default();
    let mut rows = Vec::new();
    for (host, facts) in seen.hosts.iter().filter_map(|(h, f)| Some((h, f.as_ref().ok()?))) {
        let is_own = |path: &str| own.is_empty() || own.iter().any(|b| b.host == *host && b.path == path);
        for store in facts.stores.iter().filter(|s| is_own(&s.path)) {
            rows.push((host.clone(), store.clone()));
        }
    }
    if as_json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(h, s)| json!({"host": h, "path": s.path, "size_bytes": s.size, "used_bytes": s.size - s.free.min(s.size), "free_bytes": s.free}))
            .collect();
        return Ok((json!({ "name": spec.name, "stores": rows }), true));
    }
    println!("{}:\n{:<12} {:<28} {:>10} {:>10} {:>6}", spec.name, "HOST", "STORE", "USED", "FREE", "FULL");
    for (host, s) in &rows {
        let used = s.size.saturating_sub(s.free);
        let percent = 100.0 * used as f64 / s.size.max(1) as f64;
        println!("{host:<12} {:<28} {:>10} {:>10} {percent:>5.0}%", s.path, bytes(used), bytes(s.free));
    }
    println!("USED is of the whole disk, whatever else is on it");
    Ok((Value::Null, true))
}
