//! `list`, `status` and `balance-report`: print the answers of the hosts, and no more.

use super::args::{List, One, Shown, VolumeOptions};
use super::{drive, found};
use homing_model::NodeSet;
use homing_model::text::aligned;
use homing_model::units::{bytes, count};
use homing_model::{Failure, alike, document, exit};
use homing_steps::Executor;
use homing_volume::observe::StrayPool;
use homing_volume::{ChangedOption, Drive, OnHost, Spec, VolumeKind, VolumeRecord, stores, tasks};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn set(hosts: &[String]) -> String {
    hosts.iter().cloned().collect::<NodeSet>().to_string()
}

/// Lists the volumes with a record here, and those that the queried hosts know.
pub fn list(way: &VolumeOptions, args: List) -> Result<i32, Failure> {
    let folder = homing_volume::folder();
    let (mut specs, mut silent): (BTreeMap<String, Spec>, _) = (BTreeMap::new(), Vec::new());
    for name in VolumeRecord::names(&folder) {
        let record = VolumeRecord::load(&folder, &name)
            .map_err(|e| Failure::system(format!("reading the record of volume {name}: {e}")))?;
        specs.extend(record.map(|r| (name, r.spec)));
    }
    let hosts = args.query.chosen(way.cluster.load()?, None)?;
    if !hosts.is_empty() {
        let drive = drive(way, None)?;
        let names;
        (names, silent) = names_on(&drive, &hosts);
        let mut strays: BTreeSet<String> = BTreeSet::new();
        for name in names {
            if !specs.contains_key(&name) {
                let (spec, seen) = drive.adopted(&name, &hosts);
                specs.extend(spec.map(|s| (name, s)));
                strays.extend(
                    seen.strays().map(|(host, pool)| format!("{host}: {}: {}", pool.text(), StrayPool::remedy(host))),
                );
            }
        }
        strays.iter().for_each(|stray| eprintln!("note: {stray}"));
    }
    if args.json {
        let rows: Vec<Value> = specs.values().map(row).collect();
        print!("{}", document::line(json!({ "volumes": rows })));
        return listed(&silent);
    }
    let head = ["NAME", "KIND", "MOUNT", "COPIES", "HOSTS"].map(String::from);
    let volumes = specs.values();
    let rows =
        volumes.map(|s| [s.name.clone(), s.kind.to_string(), s.mount.clone(), s.copies.to_string(), set(&s.servers())]);
    print!("{}", aligned(&[vec![head], rows.collect()].concat(), 0..0));
    listed(&silent)
}

/// Fails if hosts did not answer: their volumes may be missing in the list.
fn listed(silent: &[String]) -> Result<i32, Failure> {
    match silent {
        [] => Ok(0),
        all => Err(Failure::system(format!("the list of volumes may be incomplete: {}", all.join("; ")))
            .hint("homing exec -w HOSTS true")),
    }
}

fn row(s: &Spec) -> Value {
    json!({
        "name": s.name, "kind": s.kind, "mount": s.mount, "hosts": s.servers(), "clients": s.clients,
        "copies": s.copies, "arbiter": s.arbiter, "stripe_bytes": s.stripe,
        "export": (s.kind == VolumeKind::Nfs).then(|| s.export.to_string()),
    })
}

/// Returns the names of volumes on hosts, from GlusterFS's own list and from homing's lines in fstab. Returns the
/// hosts that did not answer too, with the reason.
fn names_on(drive: &Drive, hosts: &[String]) -> (BTreeSet<String>, Vec<String>) {
    let argv = homing_volume::observe::names_question();
    let questions: Vec<_> = hosts.iter().map(|h| (h.clone(), argv.clone())).collect();
    let answers = drive.executor.programs(&questions);
    let whys = hosts.iter().zip(&answers).filter_map(|(host, answer)| Some((host.as_str(), answer.as_ref().err()?)));
    let silent = alike::folded(whys.map(|(host, why)| (host, why.as_str())));
    let lines = answers.iter().flatten().flat_map(|text| text.lines().map(String::from));
    (lines.filter(|name| !name.is_empty()).collect(), silent)
}

/// A volume as JSON, if that is wanted, and whether it is well.
type VolumeJson = Result<(Value, bool), Failure>;

/// Shows the named volume, or each known one. `show` prints a volume unless JSON is wanted. It returns the volume as
/// JSON, and whether it is well.
fn each(
    way: &VolumeOptions,
    args: &Shown,
    show: fn(&Drive, &VolumeRecord, bool) -> VolumeJson,
) -> Result<i32, Failure> {
    let drive = drive(way, None)?;
    let names = args.name.clone().map_or_else(|| all_names(&drive, way, args), |name| Ok([name].into()))?;
    let (mut shown, mut unknown) = (Vec::new(), false);
    for name in names {
        match found(&drive, way, &One { name, query: args.query.clone() }) {
            Ok(record) => shown.push(show(&drive, &record, args.json)?),
            // A volume that is not there does not hide the others.
            Err(failure) if args.name.is_none() => {
                eprintln!("{failure}");
                unknown = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    let well = !unknown && shown.iter().all(|(_, well)| *well);
    if args.json {
        let mut all = shown.into_iter().map(|(volume, _)| volume);
        let all =
            if args.name.is_some() { all.next().unwrap_or_default() } else { json!({"volumes": Vec::from_iter(all)}) };
        print!("{}", document::line(all));
    }
    Ok(if well { 0 } else { exit::SYSTEM })
}

/// Returns the names of all volumes with a record here, and of those that the hosts of -w know.
fn all_names(drive: &Drive, way: &VolumeOptions, args: &Shown) -> Result<BTreeSet<String>, Failure> {
    let mut names: BTreeSet<String> = VolumeRecord::names(&homing_volume::folder()).into_iter().collect();
    let hosts = args.query.chosen(way.cluster.load()?, None)?;
    if !hosts.is_empty() {
        names.extend(names_on(drive, &hosts).0);
    }
    if names.is_empty() {
        if let Some(why) = (!hosts.is_empty()).then(|| drive.why_none(&hosts)).flatten() {
            return Err(why);
        }
        return Err(Failure::usage("this machine has no record of a volume").hint("-w 'n[1-4]' queries hosts, as root"));
    }
    Ok(names)
}

/// Shows daemons, mounts and changes under way.
pub fn status(way: &VolumeOptions, args: Shown) -> Result<i32, Failure> {
    each(way, &args, status_of)
}

fn status_of(drive: &Drive, record: &VolumeRecord, as_json: bool) -> VolumeJson {
    let spec = &record.spec;
    let seen = drive.observe(spec, &spec.hosts());
    let rows: Vec<OnHost> = spec.hosts().iter().map(|h| OnHost::of(spec, &seen, h)).collect();
    let tasks: Vec<String> = tasks(spec, &seen);
    let pending = record.pending.as_ref().map(|p| p.what.to_string());
    let findings = drive.findings(spec, &seen);
    let options = drive.changed_options(spec, &seen);
    let well = rows.iter().all(|row| row.well) && !findings.iter().any(|f| f.ill);
    if as_json {
        let mut all = row(spec);
        all["on_hosts"] = json!(rows);
        all["tasks"] = tasks.into();
        all["findings"] = json!(findings);
        all["changed_options"] = json!(options);
        all["interrupted"] = pending.into();
        return Ok((all, well));
    }
    let copies = if spec.copies == 1 { "1 copy".into() } else { format!("{} copies", spec.copies) };
    println!("{} ({}): {copies} on {}, at {}", spec.name, spec.kind, set(&spec.servers()), spec.mount);
    println!("{:<16} {:<10} MOUNT", "HOST", "DAEMON");
    for r in &rows {
        let (mount, why) = (r.mount.unwrap_or("-"), r.why.as_deref().unwrap_or(""));
        let line = format!("{:<16} {:<10} {mount:<12} {why}", r.host, r.daemon);
        println!("{}", line.trim_end());
    }
    print!("{}", option_rows(&options));
    if spec.kind == VolumeKind::Nfs {
        println!("exported with {}", spec.export);
    }
    // A daemon that is down is the cause of bricks that are down, and comes first.
    for fault in rows.iter().flat_map(|row| &row.faults) {
        println!("{}: {}", fault.what, fault.remedy);
    }
    let server = spec.servers().into_iter().find(|host| seen.host(host).is_some()).unwrap_or_default();
    findings.iter().for_each(|f| println!("{}: {}", f.what, f.command(&server)));
    tasks.iter().for_each(|t| println!("last movement of files: {t}"));
    if let Some(what) = pending {
        println!("{what} was interrupted: homing volume resume {0}, or homing volume undo {0}", spec.name);
    }
    Ok((Value::Null, well))
}

/// Returns the options that differ from the default, as a table. Those that every volume has are counted.
fn option_rows(options: &[ChangedOption]) -> String {
    let (own, others): (Vec<&ChangedOption>, Vec<_>) = options.iter().partition(|option| option.recommended);
    let row = |option: &&ChangedOption| {
        [option.name.clone(), option.value.clone(), option.default.clone().unwrap_or_else(|| "-".into())]
    };
    let mut text = String::new();
    if !others.is_empty() {
        let rows = [vec![["OPTION", "VALUE", "DEFAULT"].map(String::from)], others.iter().map(row).collect()];
        text += &aligned(&rows.concat(), 0..0);
    }
    if !own.is_empty() {
        let count = count(own.len() as u64, "option");
        text += &format!("{count} as homing sets them on each volume (--json lists them)\n");
    }
    text
}

/// Shows how full each store is.
pub fn balance(way: &VolumeOptions, args: Shown) -> Result<i32, Failure> {
    each(way, &args, balance_of)
}

fn balance_of(drive: &Drive, record: &VolumeRecord, as_json: bool) -> VolumeJson {
    let spec = &record.spec;
    let seen = drive.observe(spec, &spec.hosts());
    let rows = stores(spec, &seen);
    let silent = alike::folded(seen.silent());
    if as_json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(h, s)| json!({"host": h, "path": s.path, "size_bytes": s.size, "used_bytes": s.size - s.free.min(s.size), "free_bytes": s.free}))
            .collect();
        return Ok((json!({ "name": spec.name, "stores": rows }), silent.is_empty()));
    }
    println!("{}:\n{:<12} {:<28} {:>10} {:>10} {:>6}", spec.name, "HOST", "STORE", "USED", "FREE", "FULL");
    for (host, s) in &rows {
        let used = s.size.saturating_sub(s.free);
        let percent = 100.0 * used as f64 / s.size.max(1) as f64;
        println!("{host:<12} {:<28} {:>10} {:>10} {percent:>5.0}%", s.path, bytes(used), bytes(s.free));
    }
    println!("USED includes all other files on the disk");
    silent.iter().for_each(|why| println!("unknown: {why}"));
    Ok((Value::Null, silent.is_empty()))
}
