//! The verbs that change a volume.

use super::args::{AddHost, Allow, Delete, DrainHost, Heal, On, One, SetCopies, SetStripe, Way};
use super::create;
use super::drive::Drive;
use crate::failure::Failure;
use homing_model::NodeSet;
use homing_steps::Executor;
use homing_volume::moosefs::goals::{self, Goals};
use homing_volume::{
    Change, Danger, Kind, Observed, Record, Refusal, Spec, execute, gluster, lustre, moosefs, mounts, nfs,
};
use std::path::Path;

fn not_for(spec: &Spec, verb: &str) -> Failure {
    Failure::usage(format!("volume {} is {}, which has no {verb}", spec.name, spec.kind))
}

/// Mounts on more hosts.
pub fn mount(way: &Way, args: On) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.one.name))?.allowing(args.allow.list());
    let mut record = drive.find(&args.one)?;
    for host in hosts(way, &args, &record)? {
        if !record.spec.clients.contains(&host) {
            record.spec.clients.push(host);
        }
    }
    drive.reach(&mut record, &Change::Mount, true, &mounts::mount)?;
    Ok(0)
}

/// Unmounts.
pub fn unmount(way: &Way, args: On) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.one.name))?;
    let mut record = drive.find(&args.one)?;
    let gone = hosts(way, &args, &record)?;
    let what = Change::Unmount { hosts: gone.clone() };
    drive.reach(&mut record, &what, true, &|spec, seen, _| Ok(mounts::unmount(spec, seen, &gone)))?;
    if !way.dry_run {
        record.spec.clients.retain(|c| !gone.contains(c));
        record.save().map_err(Failure::system)?;
    }
    Ok(0)
}

fn hosts(way: &Way, args: &On, record: &Record) -> Result<Vec<String>, Failure> {
    match &args.on {
        Some(text) => way.cluster.load()?.hosts(Some(text)),
        None => Ok(record.spec.clients.clone()),
    }
}

/// Takes in more space.
pub fn add_host(way: &Way, args: AddHost) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.one.name))?.allowing(args.allow.list());
    let mut record = drive.find(&args.one)?;
    let places = create::places(&args.places, &way.cluster.load()?)?;
    let set: NodeSet = places.iter().map(|p| p.host.clone()).collect();
    for place in places {
        if !record.spec.clients.contains(&place.host) {
            record.spec.clients.push(place.host.clone());
        }
        if !record.spec.places.contains(&place) {
            record.spec.places.push(place);
        }
    }
    let what = Change::AddHost { hosts: set.iter().map(String::from).collect() };
    drive.reach(&mut record, &what, true, &|spec, seen, allowed| match spec.kind {
        Kind::Gluster => gluster::add_host(spec, seen, allowed),
        Kind::Moosefs => moosefs::add_host(spec, seen, allowed),
        Kind::Nfs => Err(vec![Refusal::never("NFS serves a volume from one host, in one copy")]),
    })?;
    tell(way, &format!("volume {} has space on {set} too", record.spec.name));
    Ok(0)
}

/// Moves all bytes off a host.
pub fn drain_host(way: &Way, args: DrainHost) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.one.name))?.allowing(args.allow.list());
    let mut record = drive.find(&args.one)?;
    if !record.spec.places.iter().any(|p| p.host == args.host) {
        let name = &record.spec.name;
        return Err(Failure::usage(format!("{} gives no space to volume {name}", args.host))
            .hint(format!("homing volume status {name}")));
    }
    let host = args.host.clone();
    let what = Change::DrainHost { host: host.clone() };
    drive.reach(&mut record, &what, false, &|spec, seen, allowed| match spec.kind {
        Kind::Gluster => gluster::drain_host(spec, seen, &host, allowed),
        Kind::Moosefs => moosefs::drain_host(spec, seen, &host),
        Kind::Nfs => Err(vec![Refusal::never("NFS serves a volume from one host, in one copy")]),
    })?;
    if !way.dry_run {
        record.spec.places.retain(|p| p.host != host);
        record.save().map_err(Failure::system)?;
    }
    tell(way, &format!("no byte of volume {} is left on {host}", record.spec.name));
    Ok(0)
}

/// Changes the number of copies.
pub fn set_copies(way: &Way, args: SetCopies) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.one.name))?.allowing(args.allow.list());
    let mut record = drive.find(&args.one)?;
    let (path, copies) = (args.path.trim_end_matches('/').to_string(), args.copies as usize);
    let what = Change::SetCopies { path: path.clone(), copies: args.copies };
    if record.spec.kind == Kind::Gluster && path != record.spec.mount {
        let mount = &record.spec.mount;
        return Err(Failure::usage(format!(
            "GlusterFS has one number of copies for the whole volume, {mount}; {path} cannot differ"
        ))
        .hint("a volume of kind moosefs has one per file"));
    }
    if !Path::new(&path).starts_with(&record.spec.mount) {
        return Err(Failure::usage(format!(
            "{path} is not on volume {}, which is at {}",
            record.spec.name, record.spec.mount
        )));
    }
    let once = record.spec.kind == Kind::Moosefs;
    drive.reach(&mut record, &what, once, &|spec, seen, allowed| match spec.kind {
        Kind::Gluster => gluster::set_copies(spec, seen, copies, allowed),
        Kind::Moosefs => {
            let goals = goals_below(&drive, spec, seen, &path)?;
            moosefs::set_copies(spec, seen, (&path, args.copies), &goals, allowed)
        }
        Kind::Nfs => Err(vec![Refusal::never("NFS serves a volume from one host, in one copy")]),
    })?;
    if !way.dry_run && path == record.spec.mount {
        record.spec.copies = args.copies;
        record.save().map_err(Failure::system)?;
    }
    Ok(0)
}

/// What files below the path are promised now, by a host that has it mounted.
fn goals_below(drive: &Drive, spec: &Spec, seen: &Observed, path: &str) -> Result<Goals, Vec<Refusal>> {
    let client = goals::client(spec, seen).ok_or_else(moosefs::nowhere_mounted)?;
    let said = drive.executor.programs(&[(client.clone(), goals::question(path))]).remove(0);
    let never = |why: String| vec![Refusal::never(format!("{client}: the goals below {path} are not told: {why}"))];
    goals::read(&said.map_err(never)?).ok_or_else(|| never("mfsgetgoal counted nothing".into()))
}

/// Changes how new files are cut.
pub fn set_stripe(way: &Way, args: SetStripe) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.one.name))?.allowing(args.allow.list());
    if let Some(host) = &args.lustre_client {
        let plan = lustre::set_stripe(host, &args.path, args.count, args.size);
        let mut record = Record::unwritten(homing_volume::adopt::unknown(&args.one.name, &[]));
        let what = Change::SetStripe { path: args.path.clone(), size: args.size };
        return drive.reach(&mut record, &what, true, &|_, _, _| Ok(plan.clone())).map(|()| 0);
    }
    let mut record = drive.find(&args.one)?;
    let size = args.size.ok_or_else(|| Failure::usage("--size is needed: the size of the pieces"))?;
    if record.spec.kind != Kind::Gluster {
        return Err(not_for(&record.spec, "size of pieces to set (MooseFS: always 64 MiB)"));
    }
    if args.path.trim_end_matches('/') != record.spec.mount {
        return Err(Failure::usage(format!("GlusterFS cuts files of the whole volume alike: {}", record.spec.mount)));
    }
    let what = Change::SetStripe { path: args.path.clone(), size: Some(size) };
    drive.reach(&mut record, &what, true, &|spec, seen, allowed| gluster::set_stripe(spec, seen, size, allowed))?;
    if !way.dry_run {
        record.spec.stripe = Some(size);
        record.save().map_err(Failure::system)?;
    }
    Ok(0)
}

/// Brings copies up to date.
pub fn heal(way: &Way, args: Heal) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.one.name))?;
    let mut record = drive.find(&args.one)?;
    drive.reach(&mut record, &Change::Heal, true, &|spec, seen, _| match spec.kind {
        Kind::Gluster => gluster::heal(spec, seen, args.full),
        Kind::Moosefs => moosefs::heal(spec, seen),
        Kind::Nfs => Err(vec![Refusal::never("NFS serves a volume from one host, in one copy")]),
    })?;
    Ok(0)
}

/// Spreads files again.
pub fn rebalance(way: &Way, args: One) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.name))?;
    let mut record = drive.find(&args)?;
    drive.reach(&mut record, &Change::Rebalance, true, &|spec, seen, _| match spec.kind {
        Kind::Gluster => gluster::rebalance(spec, seen),
        Kind::Moosefs => moosefs::rebalance(spec, seen),
        Kind::Nfs => Err(vec![Refusal::never("NFS serves a volume from one host, in one copy")]),
    })?;
    Ok(0)
}

/// Takes the volume away.
pub fn delete(way: &Way, args: Delete) -> Result<i32, Failure> {
    let told = args.delete_files.then_some(Danger::DeleteFiles).into_iter().collect();
    let drive = Drive::new(way, Some(&args.one.name))?.allowing(told);
    let mut record = drive.find(&args.one)?;
    drive.reach(&mut record, &Change::Delete, true, &|spec, seen, allowed| match spec.kind {
        Kind::Gluster => gluster::delete(spec, seen, allowed),
        Kind::Moosefs => moosefs::delete(spec, seen, allowed),
        Kind::Nfs => nfs::delete(spec, seen, allowed),
    })?;
    if !way.dry_run {
        record.remove().map_err(Failure::system)?;
        tell(way, &format!("volume {} is gone", args.one.name));
    }
    Ok(0)
}

/// Finishes an interrupted change by its own verb.
pub fn resume(way: &Way, args: One) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.name))?;
    let record = drive.find(&args)?;
    let Some(pending) = &record.pending else {
        tell(way, &format!("volume {}: nothing was interrupted", args.name));
        return Ok(0);
    };
    drop(drive);
    again(way, &record, pending.what.clone(), &pending.allowed)
}

fn again(way: &Way, record: &Record, what: Change, allowed: &[Danger]) -> Result<i32, Failure> {
    let one = || One { name: record.spec.name.clone(), hosts: None };
    let allow = || Allow::of(allowed);
    match what {
        Change::Create => {
            let drive = Drive::new(way, Some(&record.spec.name))?.allowing(allowed.to_vec());
            let mut record = record.clone();
            drive.reach(&mut record, &what, true, &create::plan)?;
            Ok(0)
        }
        Change::DrainHost { host } => drain_host(way, DrainHost { one: one(), host, allow: allow() }),
        Change::AddHost { hosts } => {
            let mine = record.spec.places.iter().filter(|p| hosts.contains(&p.host));
            let places = mine.map(|p| format!("{}:{}", p.host, p.path)).collect();
            add_host(way, AddHost { one: one(), places, allow: allow() })
        }
        Change::SetCopies { path, copies } => set_copies(way, SetCopies { one: one(), path, copies, allow: allow() }),
        Change::Delete => delete(way, Delete { one: one(), delete_files: allowed.contains(&Danger::DeleteFiles) }),
        Change::Rebalance => rebalance(way, one()),
        Change::Heal => heal(way, Heal { one: one(), full: false }),
        Change::Mount => mount(way, On { one: one(), on: None, allow: allow() }),
        Change::Unmount { hosts } => {
            let set: NodeSet = hosts.into_iter().collect();
            unmount(way, On { one: one(), on: Some(set.to_string()), allow: allow() })
        }
        Change::SetStripe { path, size } => {
            set_stripe(way, SetStripe { one: one(), path, size, count: None, lustre_client: None, allow: allow() })
        }
    }
}

/// Takes an interrupted change back.
pub fn undo(way: &Way, args: One) -> Result<i32, Failure> {
    let drive = Drive::new(way, Some(&args.name))?;
    let mut record = drive.find(&args)?;
    let Some(pending) = record.pending.clone() else {
        return Err(Failure::usage(format!("volume {}: nothing was interrupted", args.name)));
    };
    let left = execute::undo(&drive.executor, &record, &mut |news| drive.tell_back(news));
    if !left.is_empty() {
        return Err(Failure::system(format!("{} is not taken back whole:\n  {}", pending.what, left.join("\n  "))));
    }
    let ended = if pending.what == Change::Create { record.remove() } else { record.finish() };
    ended.map_err(Failure::system)?;
    tell(way, &format!("{} is taken back", pending.what));
    Ok(0)
}

fn tell(way: &Way, text: &str) {
    if !way.dry_run && !way.silent {
        println!("{text}");
    }
}
