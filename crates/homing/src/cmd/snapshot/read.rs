//! The verbs that read a vault, and those that write back.

use super::args::{Cat, Diff, List, One, Past, Restore, Verify};
use super::engine::{Asked, not_with_restic};
use super::far;
use super::home;
use super::metrics;
use super::show;
use super::target::{Target, all, target, when};
use crate::cluster::ClusterArgs;
use crate::failure::{Failure, exit};
use homing_model::RawText;
use homing_snapshot::ask::{self, Answer, Ask, Later, Listed};
use homing_snapshot::image::When;
use homing_snapshot::repository::{self, Act};
use homing_snapshot::rsync::At;
use homing_snapshot::section::{self, Engine};
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
        match listed(cluster, &target) {
            Ok(listed) => vaults.push((target, listed)),
            Err(failure) => {
                eprintln!("{failure}");
                status = failure.status;
            }
        }
    }
    match &args.prometheus {
        Some(file) => metrics::write(file, &vaults)?,
        None if args.json => show::list_json(&vaults)?,
        None => show::list(&vaults)?,
    };
    Ok(status)
}

/// What a vault holds.
pub fn listed(cluster: &ClusterArgs, target: &Target) -> Result<Listed, Failure> {
    let listed = |asked: Asked| match asked.answer()? {
        Answer::Listed(listed) => Ok(*listed),
        other => Err(odd(target, &other)),
    };
    let bank = || Asked { host: target.host.clone(), ask: Ask::List(target.site.clone()) };
    if target.section.engine == Engine::Rsync {
        return listed(bank());
    }
    // The bank's host knows its disk, and what came of trials.
    let of_bank = listed(bank())?;
    let asked = Asked::of(cluster, target, Ask::List(target.site.clone()), || Ok(Act::List))?;
    let Listed { images, unfinished, .. } = listed(asked)?;
    Ok(Listed { images, unfinished, ..of_bank })
}

fn odd(target: &Target, answer: &Answer) -> Failure {
    Failure::system(format!("{} answered {answer:?}", target.host))
}

fn meant(cluster: &ClusterArgs, past: &Past) -> Result<(Target, When, RawText), Failure> {
    let target = target(cluster, &past.what, &past.vault)?;
    let below = target.below.as_path().into();
    Ok((target, when(past.at.as_deref())?, below))
}

/// `cat`.
pub fn cat(cluster: &ClusterArgs, args: Cat) -> Result<i32, Failure> {
    let (target, when, below) = meant(cluster, &args.past)?;
    let act = Act::Cat(when.clone(), below.clone());
    let asked = Asked::of(cluster, &target, Ask::Cat(target.site.clone(), when, below), || Ok(act))?;
    let (_to, mut from) = asked.begin()?;
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
    let with = args.with.as_deref().map(|words| when(Some(words))).transpose()?;
    let restic = target.section.engine == Engine::Restic;
    if restic && (with.is_none() || !below.0.is_empty()) {
        let hint = format!("homing snapshot diff {} --at WHEN --with WHEN, or restore it --into a folder", target.name);
        return Err(not_with_restic("comparing with what is there now, or a part", &hint));
    }
    let act = with.clone().map(|with| Act::Diff(earlier.clone(), with));
    let later = match with {
        Some(with) => Later::Image(with),
        None => Later::Now(parent(now(cluster, &target)?, &target), target.section.ssh.clone()),
    };
    let plain = Ask::Diff(target.site.clone(), earlier, below, later);
    let asked = Asked::of(cluster, &target, plain, || act.ok_or_else(|| not_with_restic("this", "--with WHEN")))?;
    let (_to, mut from) = asked.begin()?;
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
    let act = || {
        let ask::Restore { when, below, into, overwrite, .. } = order.clone();
        Ok(Act::Restore(repository::Restore {
            when,
            below,
            into: from_source(cluster, &target, into, &args)?,
            overwrite,
        }))
    };
    match Asked::of(cluster, &target, Ask::Restore(Box::new(order.clone())), act)?.answer()? {
        Answer::Restored(restored) => {
            show::restored(&target, &into, &restored)?;
            Ok(i32::from(restored.left > 0))
        }
        other => Err(odd(&target, &other)),
    }
}

/// Where a restore goes as the source's host sees it, which runs restic: the place where it was is its own.
fn from_source(cluster: &ClusterArgs, target: &Target, into: At, args: &Restore) -> Result<At, Failure> {
    let source = target.section.source.as_deref().unwrap_or_default();
    let home = home::home(source, &target.host, &cluster.load()?)?;
    if args.into.is_some() {
        let here = match &into.host {
            Some(host) => home::identity(host)? == home.identity,
            None => true,
        };
        let elsewhere = || not_with_restic("restoring to another host", &format!("--into {}:/PATH", home.host));
        return here.then_some(At { host: None, ..into }).ok_or_else(elsewhere);
    }
    Ok(parent(At { host: None, path: home.path }, target))
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
    let (when, files) = (when(args.at.as_deref())?, args.files.max(1));
    let plain = Ask::Verify(target.site.clone(), when.clone(), files);
    match Asked::of(cluster, &target, plain, || Ok(Act::Verify(when, files)))?.answer()? {
        Answer::Verified(proof) => {
            if target.section.engine == Engine::Restic {
                far::answer(&target.host, &Ask::Prove(target.site.clone(), proof.clone()))?;
            }
            show::verified(&target, &proof)?;
            Ok(if proof.bad.is_empty() { 0 } else { exit::SYSTEM })
        }
        other => Err(odd(&target, &other)),
    }
}

/// Has the bank's host keep others off a vault, for as long as what is returned lives.
pub fn keep(target: &Target) -> Result<(far::To, far::From), Failure> {
    let (to, mut from) = far::ask(&target.host, &Ask::Keep(target.site.clone()))?;
    match from.next()? {
        Answer::Kept => Ok((to, from)),
        other => Err(odd(target, &other)),
    }
}

/// `expire`.
pub fn expire(cluster: &ClusterArgs, args: One) -> Result<i32, Failure> {
    let target = target(cluster, &args.what, &args.vault)?;
    let _kept = match target.section.engine {
        Engine::Rsync => None,
        Engine::Restic => Some(keep(&target)?),
    };
    match Asked::of(cluster, &target, Ask::Expire(target.site.clone()), || Ok(Act::Expire))?.answer()? {
        Answer::Expired(names) => show::expired(&target, &names).map(|()| 0),
        other => Err(odd(&target, &other)),
    }
}
