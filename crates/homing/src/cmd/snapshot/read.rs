//! The verbs that read a vault, and those that write back.

use super::args::{Cat, Diff, List, One, Past, Restore, Verify};
use super::far;
use super::home;
use super::show;
use super::target::{Target, all, target, when};
use crate::cluster::ClusterArgs;
use crate::failure::{Failure, exit};
use homing_model::RawText;
use homing_snapshot::ask::{self, Answer, Ask, Later, Listed};
use homing_snapshot::rsync::At;
use homing_snapshot::section;
use std::io::Write;
use std::path::PathBuf;

/// `list`.
pub fn list(cluster: &ClusterArgs, args: List) -> Result<i32, Failure> {
    let targets = match &args.what {
        Some(what) => vec![target(cluster, what, &args.vault)?],
        None => all(cluster)?,
    };
    if targets.is_empty() {
        return Err(
            Failure::usage("no cluster file has a [snapshot.NAME]").hint("homing snapshot list NAME --to HOST:/bank")
        );
    }
    let mut status = 0;
    let mut vaults = Vec::new();
    for target in targets {
        match listed(&target) {
            Ok(listed) => vaults.push((target, listed)),
            Err(failure) => {
                eprintln!("{failure}");
                status = failure.status;
            }
        }
    }
    if args.json {
        show::list_json(&vaults)?
    } else {
        show::list(&vaults)?
    };
    Ok(status)
}

fn listed(target: &Target) -> Result<Listed, Failure> {
    match far::answer(&target.host, &Ask::List(target.site.clone()))? {
        Answer::Listed(listed) => Ok(*listed),
        other => Err(odd(target, &other)),
    }
}

/// A vault by its name, its bank's host, and whether its last good image is too old.
type Watched = (String, String, Result<Option<String>, Failure>);

/// The vaults of the cluster file that have a window.
pub fn overdue(cluster: &ClusterArgs) -> Result<Vec<Watched>, Failure> {
    let watched = all(cluster)?.into_iter().filter(|target| target.section.window.is_some());
    let look = |target: Target| {
        let told = listed(&target).map(|listed| show::overdue(&target, &listed));
        (target.name, target.host, told)
    };
    Ok(watched.map(look).collect())
}

fn odd(target: &Target, answer: &Answer) -> Failure {
    Failure::system(format!("{} answered {answer:?}", target.host))
}

fn meant(cluster: &ClusterArgs, past: &Past) -> Result<(Target, ask::When, RawText), Failure> {
    let target = target(cluster, &past.what, &past.vault)?;
    let below = target.below.as_path().into();
    Ok((target, when(past.at.as_deref())?, below))
}

/// `cat`.
pub fn cat(cluster: &ClusterArgs, args: Cat) -> Result<i32, Failure> {
    let (target, when, below) = meant(cluster, &args.past)?;
    let (_to, mut from) = far::ask(&target.host, &Ask::Cat(target.site.clone(), when, below))?;
    let mut out = std::io::stdout().lock();
    let unwritten = |e: std::io::Error| Failure::unwritten("writing the file to standard output", &e);
    loop {
        match from.next()? {
            Answer::Piece(bytes) => out.write_all(&bytes.0).map_err(unwritten)?,
            _ => return out.flush().map(|()| 0).map_err(unwritten),
        }
    }
}

/// Where the folder that was copied is now, as the bank's host reaches it.
fn now(cluster: &ClusterArgs, target: &Target) -> Result<At, Failure> {
    let source = target.section.source.as_deref();
    let source =
        source.ok_or_else(|| Failure::usage("nothing says where that was").hint("--into DIR, or --with WHEN"))?;
    let home = home::home(source, &target.host, &cluster.load()?)?;
    let local = home.identity == home::identity(&target.host)?;
    Ok(At { host: (!local).then_some(home.host), path: home.path })
}

/// The folder that something below a source is in.
fn parent(root: At, target: &Target) -> At {
    let folder = target.below.parent().map_or(PathBuf::new(), PathBuf::from);
    let path = root.path.as_path().join(folder).components().collect::<PathBuf>();
    At { path: path.as_path().into(), ..root }
}

/// `diff`. 1: there are differences.
pub fn diff(cluster: &ClusterArgs, args: Diff) -> Result<i32, Failure> {
    let (target, earlier, below) = meant(cluster, &args.past)?;
    let later = match &args.with {
        Some(words) => Later::Image(when(Some(words))?),
        None => Later::Now(parent(now(cluster, &target)?, &target), target.section.ssh.clone()),
    };
    let (_to, mut from) = far::ask(&target.host, &Ask::Diff(target.site.clone(), earlier, below, later))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let unwritten = |e: std::io::Error| Failure::unwritten("writing the differences to standard output", &e);
    let mut any = false;
    loop {
        match from.next()? {
            Answer::Change(change) => {
                any = true;
                show::change(&mut out, &change, args.json).map_err(unwritten)?;
            }
            _ => return out.flush().map(|()| i32::from(any)).map_err(unwritten),
        }
    }
}

/// `restore`. 1: something was there, differed and was left.
pub fn restore(cluster: &ClusterArgs, args: Restore) -> Result<i32, Failure> {
    let (target, when, below) = meant(cluster, &args.past)?;
    let into = match args.into.as_deref() {
        Some(into) => place(into)?,
        None => parent(now(cluster, &target)?, &target),
    };
    let order = ask::Restore {
        site: target.site.clone(),
        when,
        below,
        into: into.clone(),
        overwrite: args.overwrite,
        ssh: target.section.ssh.clone(),
    };
    match far::answer(&target.host, &Ask::Restore(Box::new(order)))? {
        Answer::Restored(restored) => {
            show::restored(&target, &into, &restored)?;
            Ok(i32::from(restored.left > 0))
        }
        other => Err(odd(&target, &other)),
    }
}

fn place(into: &str) -> Result<At, Failure> {
    if let Some((host, path)) = section::place(into) {
        return Ok(At { host: Some(host.into()), path: path.into() });
    }
    let absolute = into.starts_with('/').then(|| At { host: None, path: into.into() });
    absolute.ok_or_else(|| Failure::usage(format!("--into {into:?} is neither /PATH nor HOST:/PATH")))
}

/// `verify`.
pub fn verify(cluster: &ClusterArgs, args: Verify) -> Result<i32, Failure> {
    let target = target(cluster, &args.one.what, &args.one.vault)?;
    let ask = Ask::Verify(target.site.clone(), when(args.at.as_deref())?, args.files.max(1));
    match far::answer(&target.host, &ask)? {
        Answer::Verified(proof) => {
            show::verified(&target, &proof)?;
            Ok(if proof.bad.is_empty() { 0 } else { exit::SYSTEM })
        }
        other => Err(odd(&target, &other)),
    }
}

/// `expire`.
pub fn expire(cluster: &ClusterArgs, args: One) -> Result<i32, Failure> {
    let target = target(cluster, &args.what, &args.vault)?;
    match far::answer(&target.host, &Ask::Expire(target.site.clone()))? {
        Answer::Expired(names) => show::expired(&target, &names).map(|()| 0),
        other => Err(odd(&target, &other)),
    }
}
