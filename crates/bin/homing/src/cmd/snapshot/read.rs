//! The commands that read a vault, and those that write files back.

use super::args::{self, Cat, Diff, Expire, List, Past, Verify};
use super::show;
use super::target::{all, known, target};
use crate::cluster::ClusterArgs;
use homing_model::{Failure, RawText, exit};
use homing_snapshot::ask::{Control, Later, SnapshotReply, SnapshotRequest};
use homing_snapshot::asking::{self, ExaminedFolder, HostRequest, Restore, listed, not_with_restic, now, parent};
use homing_snapshot::image::When;
use homing_snapshot::output;
use homing_snapshot::repository::Act;
use homing_snapshot::section::Engine;
use homing_snapshot::target::{Target, when};
use std::io::Write;

/// Executes `list`.
pub fn list(cluster: &ClusterArgs, args: List) -> Result<i32, Failure> {
    let targets = match &args.what {
        Some(what) => vec![target(cluster, what, &args.vault)?],
        None => all(cluster)?,
    };
    if targets.is_empty() {
        return Err(
            Failure::usage("the cluster file has no [snapshot.NAME]").hint("homing snapshot list NAME --to HOST:/bank")
        );
    }
    let mut status = 0;
    let mut vaults = Vec::new();
    for target in targets {
        match listed(&known(cluster)?, &target) {
            Ok(listed) => vaults.push((target, listed)),
            Err(failure) => {
                eprintln!("{failure}");
                status = failure.status;
            }
        }
    }
    match &args.prometheus {
        Some(file) => show::prometheus(file, &vaults)?,
        None if args.json => show::print(&output::list_json(&vaults))?,
        None => show::print(&output::list(&vaults))?,
    };
    Ok(status)
}

fn odd(target: &Target, answer: &SnapshotReply) -> Failure {
    Failure::system(format!("unexpected answer from {}: {answer:?}", target.host))
}

fn meant(cluster: &ClusterArgs, past: &Past) -> Result<(Target, When, RawText), Failure> {
    let target = target(cluster, &past.what, &past.vault)?;
    let below = target.below.as_path().into();
    Ok((target, when(past.at.as_deref()), below))
}

/// Executes `cat`.
pub fn cat(cluster: &ClusterArgs, args: Cat) -> Result<i32, Failure> {
    let (target, when, below) = meant(cluster, &args.past)?;
    let act = Act::Cat(when.clone(), below.clone());
    let asked =
        HostRequest::of(&known(cluster)?, &target, SnapshotRequest::Cat(target.site.clone(), when, below), || Ok(act))?;
    let (_to, mut from) = asked.begin()?;
    let mut out = std::io::stdout().lock();
    let unwritten = |e: std::io::Error| Failure::unwritten("writing the file to standard output", &e);
    loop {
        match from.receive_reply()? {
            SnapshotReply::Piece(bytes) => out.write_all(&bytes.0).map_err(unwritten)?,
            _ => return out.flush().map(|()| 0).map_err(unwritten),
        }
    }
}

/// Executes `diff`. Returns 1 if there are differences.
pub fn diff(cluster: &ClusterArgs, args: Diff) -> Result<i32, Failure> {
    let (target, earlier, below) = meant(cluster, &args.past)?;
    let with = args.with.as_deref().map(|words| when(Some(words)));
    let restic = target.section.engine == Engine::Restic;
    if restic && (with.is_none() || !below.0.is_empty()) {
        let hint = format!("homing snapshot diff {} --at WHEN --with WHEN, or restore it --into a folder", target.name);
        return Err(not_with_restic("comparing with the present files, or a part of an image", &hint));
    }
    let act = with.clone().map(|with| Act::Diff(earlier.clone(), with));
    let now = with.is_none().then(|| Ok::<_, Failure>(parent(now(&known(cluster)?, &target)?, &target))).transpose()?;
    let later = match (with, &now) {
        (Some(with), _) => Later::Image(with),
        (None, Some(now)) => Later::Now(now.clone(), target.section.ssh.clone()),
        (None, None) => return Err(Failure::usage("no state to compare with is named").hint("--with WHEN")),
    };
    let plain = SnapshotRequest::Diff(target.site.clone(), earlier, below, later);
    let asked = HostRequest::of(&known(cluster)?, &target, plain, || {
        act.ok_or_else(|| not_with_restic("this", "--with WHEN"))
    })?;
    let (mut to, mut from) = asked.begin()?;
    let mut folder = now.as_ref().map(|now| ExaminedFolder::new(now, false));
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let unwritten = |e: std::io::Error| Failure::unwritten("writing the differences to standard output", &e);
    let mut any = false;
    loop {
        match from.receive_reply()? {
            SnapshotReply::Change(change) => {
                any = true;
                output::change(&mut out, &change, args.json).map_err(unwritten)?;
            }
            SnapshotReply::Examine(entries) => {
                let present = folder.as_mut().map(|folder| folder.examine(entries)).transpose()?;
                to.control(&Control::Present(present.unwrap_or_default()))?;
            }
            _ => return out.flush().map(|()| i32::from(any)).map_err(unwritten),
        }
    }
}

/// Executes `restore`. Returns 1 if an existing file differed and was left.
pub fn restore(cluster: &ClusterArgs, args: args::Restore) -> Result<i32, Failure> {
    let replaces = args.overwrite && !args.dry_run;
    if replaces {
        args.consent.possible("restoring over files")?;
    }
    let (target, when, below) = meant(cluster, &args.past)?;
    let known = known(cluster)?;
    let into = match args.into.as_deref() {
        Some(into) => asking::place(into)?,
        None => parent(now(&known, &target)?, &target),
    };
    if replaces {
        let to = args.into.as_deref().unwrap_or("its source");
        let summary = format!("{} will be written to {to}, replacing existing files", args.past.what);
        args.consent.confirm("restoring over files", &summary)?;
    }
    let wanted = Restore { when, below, overwrite: args.overwrite, trial: args.dry_run };
    let restored =
        asking::restore(&known, &target, &into, args.into.is_some(), wanted, &|text| eprintln!("homing: {text}"))?;
    show::print(&output::restored(&target, &into, &restored))?;
    Ok(match restored.failed.is_empty() {
        true => i32::from(restored.left > 0),
        false => exit::SYSTEM,
    })
}

/// Executes `verify`.
pub fn verify(cluster: &ClusterArgs, args: Verify) -> Result<i32, Failure> {
    let target = target(cluster, &args.one.what, &args.one.vault)?;
    let (when, files) = (when(args.at.as_deref()), args.files.max(1));
    let plain = SnapshotRequest::Verify(target.site.clone(), when.clone(), files);
    match HostRequest::of(&known(cluster)?, &target, plain, || Ok(Act::Verify(when, files)))?.answer()? {
        SnapshotReply::Verified(proof) => {
            if target.section.engine == Engine::Restic {
                asking::answer(&target.host, &SnapshotRequest::Prove(target.site.clone(), proof.clone()))?;
            }
            show::print(&output::verified(&target, &proof))?;
            Ok(if proof.is_sound() { 0 } else { exit::SYSTEM })
        }
        other => Err(odd(&target, &other)),
    }
}

/// Executes `expire`.
pub fn expire(cluster: &ClusterArgs, args: Expire) -> Result<i32, Failure> {
    let target = target(cluster, &args.one.what, &args.one.vault)?;
    let known = known(cluster)?;
    match output::expirable(&target, &listed(&known, &target)?) {
        Some(summary) => args.consent.confirm("removing expired images", &summary)?,
        None if args.consent.must_confirm() => return show::print(&output::expired(&target, &[])).map(|()| 0),
        // A timer must report a doubtful clock, which may hide that images are due.
        None => {}
    }
    let names = asking::expire(&known, &target, args.trust_clock)?;
    show::print(&output::expired(&target, &names)).map(|()| 0)
}
