//! The requests of commands that read a vault, or restore from it, and their hosts.

use super::channel::{self, From, To};
use super::engine::{HostRequest, source};
use super::home::{self, ClusterContext};
use crate::ask::{self, Control, Expire, Expired, HostView, Listed, Restored, SnapshotReply, SnapshotRequest, Staging};
use crate::destination::{Presence, RestoreEntry};
use crate::image::When;
use crate::repository::{self, Act};
use crate::rsync::{self, HostFolder};
use crate::section::{self, Engine};
use crate::target::Target;
use homing_model::{Failure, RawText};
use std::path::PathBuf;

/// Returns the content of a vault.
pub fn listed(known: &ClusterContext, target: &Target) -> Result<Listed, Failure> {
    let listed = |asked: HostRequest| match asked.answer()? {
        SnapshotReply::Listed(listed) => Ok(*listed),
        other => Err(odd(target, &other)),
    };
    let bank = || HostRequest { host: target.host.clone(), request: SnapshotRequest::List(target.site.clone()) };
    if target.section.engine == Engine::Rsync {
        return listed(bank());
    }
    // The bank's host knows its disk, and the results of trials.
    let of_bank = listed(bank())?;
    let asked = HostRequest::of(known, target, SnapshotRequest::List(target.site.clone()), || Ok(Act::List))?;
    let Listed { images, unfinished, .. } = listed(asked)?;
    Ok(Listed { images, unfinished, ..of_bank })
}

fn odd(target: &Target, answer: &SnapshotReply) -> Failure {
    Failure::system(format!("{} answered {answer:?}", target.host))
}

/// Returns the present folder of the source, as the bank's host reaches it.
pub fn now(known: &ClusterContext, target: &Target) -> Result<HostFolder, Failure> {
    let source = target.section.source.as_deref();
    let source = source.ok_or_else(|| {
        Failure::usage("the original path is unknown")
            .hint("name a folder with --into DIR, or an image with --with WHEN")
    })?;
    let home = home::home(source, &target.host, known)?;
    let local = home.identity == home::identity(&target.host)?;
    Ok(HostFolder { host: (!local).then_some(home.host), path: home.path })
}

/// Returns the folder that contains the target's part of the source.
pub fn parent(root: HostFolder, target: &Target) -> HostFolder {
    let folder = target.below.parent().map_or(PathBuf::new(), PathBuf::from);
    let path = root.path.as_path().join(folder).components().collect::<PathBuf>();
    HostFolder { path: path.as_path().into(), ..root }
}

/// A restore that the user wants.
pub struct Restore {
    /// The image.
    pub when: When,
    /// The part of the image, below the source.
    pub below: RawText,
    /// Whether to replace files that differ.
    pub overwrite: bool,
    /// Whether to report only the files that would be written.
    pub trial: bool,
}

/// Restores files; `named`: the user has named the destination.
pub fn restore(
    known: &ClusterContext,
    target: &Target,
    into: &HostFolder,
    named: bool,
    wanted: Restore,
    note: &dyn Fn(&str),
) -> Result<Restored, Failure> {
    let Restore { when, below, overwrite, trial } = wanted;
    let stages = !overwrite && !trial;
    let asked = if target.section.engine == Engine::Restic {
        let order = |into: HostFolder| repository::Restore { when, below, into, overwrite, trial };
        from_repository(known, target, into, named, order)?
    } else {
        let (site, ssh) = (target.site.clone(), target.section.ssh.clone());
        let order = ask::Restore { site, when, below, into: near(target, into, note)?, overwrite, trial, ssh };
        HostRequest { host: target.host.clone(), request: SnapshotRequest::Restore(Box::new(order)) }
    };
    let (mut to, mut from) = asked.begin()?;
    let mut there = ExaminedFolder::new(into, stages);
    loop {
        match from.receive_reply()? {
            SnapshotReply::Restored(restored) => return Ok(restored),
            SnapshotReply::Examine(entries) => to.control(&Control::Present(there.examine(entries)?))?,
            SnapshotReply::Stage => to.control(&Control::Staged(there.stage()?))?,
            SnapshotReply::Place(done) => to.control(&Control::Placed(there.place(done)?))?,
            _ => {}
        }
    }
}

/// Returns the destination as the bank's host reaches it: without ssh if it is on the bank's host itself.
fn near(target: &Target, into: &HostFolder, note: &dyn Fn(&str)) -> Result<HostFolder, Failure> {
    let bank = home::seen(&target.host)?;
    let warn = |host: &str, seen: &HostView| {
        rsync::warning(host, seen.rsync.as_deref()).into_iter().for_each(|why| note(&why))
    };
    warn(&target.host, &bank);
    let Some(host) = &into.host else { return Ok(into.clone()) };
    let there = home::seen(host)?;
    let own = there.identity == bank.identity;
    if !own {
        warn(host, &there);
    }
    Ok(HostFolder { host: (!own).then(|| host.clone()), path: into.path.clone() })
}

/// A folder that its own host examines, by a channel that is opened when it is needed.
pub struct ExaminedFolder<'a> {
    at: &'a HostFolder,
    stages: bool,
    examiner: Option<(To, From)>,
}

impl ExaminedFolder<'_> {
    /// Returns a folder of a host as the bank's host reaches it. `stages`: the missing entries will be written there.
    pub fn new(at: &HostFolder, stages: bool) -> ExaminedFolder<'_> {
        ExaminedFolder { at, stages, examiner: None }
    }

    /// Returns the entries that it has under these names.
    ///
    /// # Errors
    /// Why its host does not answer.
    pub fn examine(&mut self, entries: Vec<RestoreEntry>) -> Result<Vec<Presence>, Failure> {
        match self.request(&Control::Entries(entries))? {
            SnapshotReply::Present(present) => Ok(present),
            other => Err(self.odd(&other)),
        }
    }

    /// Returns the private folders for its missing entries.
    ///
    /// # Errors
    /// Why its host does not answer.
    pub fn stage(&mut self) -> Result<Staging, Failure> {
        match self.request(&Control::Stage)? {
            SnapshotReply::Staged(staging) => Ok(staging),
            other => Err(self.odd(&other)),
        }
    }

    /// Has the restored entries moved to their places.
    ///
    /// # Errors
    /// Why its host does not do it.
    pub fn place(&mut self, done: Box<Restored>) -> Result<Box<Restored>, Failure> {
        match self.request(&Control::Place(done))? {
            SnapshotReply::Placed(done) => Ok(done),
            other => Err(self.odd(&other)),
        }
    }

    fn host(&self) -> &str {
        self.at.host.as_deref().unwrap_or("localhost")
    }

    fn request(&mut self, what: &Control) -> Result<SnapshotReply, Failure> {
        let (host, ask) = (self.host().to_string(), SnapshotRequest::Examine(self.at.path.clone(), self.stages));
        let (to, from) = match &mut self.examiner {
            Some(channel) => channel,
            None => self.examiner.insert(channel::send_request(&host, &ask)?),
        };
        to.control(what)?;
        from.receive_reply()
    }

    fn odd(&self, answer: &SnapshotReply) -> Failure {
        Failure::system(format!("{} answered {answer:?} about {}", self.host(), self.at.path.display()))
    }
}

/// Returns the request for a restore from a repository. restic runs on the host that gets the files: the named one,
/// else the source's host.
fn from_repository(
    known: &ClusterContext,
    target: &Target,
    into: &HostFolder,
    named: bool,
    order: impl FnOnce(HostFolder) -> repository::Restore,
) -> Result<HostRequest, Failure> {
    let there = |path: RawText| HostFolder { host: None, path };
    if let Some(host) = into.host.as_deref().filter(|_| named) {
        return HostRequest::restore(target, host, order(there(into.path.clone())));
    }
    let home = source(known, target)?;
    let into = if named { there(into.path.clone()) } else { parent(there(home.path), target) };
    HostRequest::restore(target, &home.host, order(into))
}

/// Parses a destination: /PATH on this machine or HOST:/PATH.
pub fn place(into: &str) -> Result<HostFolder, Failure> {
    if let Some((host, path)) = section::place(into) {
        return Ok(HostFolder { host: Some(host.into()), path: path.into() });
    }
    let absolute = into.starts_with('/').then(|| HostFolder { host: None, path: into.into() });
    absolute.ok_or_else(|| Failure::usage(format!("--into {into:?} must be /PATH or HOST:/PATH")))
}

/// Removes the images that have expired, and returns their names. `trust`: a person has checked the clock.
///
/// # Errors
/// Also that the clock of the host is in doubt.
pub fn expire(known: &ClusterContext, target: &Target, trust: bool) -> Result<Vec<String>, Failure> {
    let is_restic = target.section.engine == Engine::Restic;
    let _kept = is_restic.then(|| keep(target)).transpose()?;
    let source = target.section.source.as_deref().filter(|source| section::place(source).is_some());
    // The clock of a host that does not answer is left out.
    let home = source.and_then(|source| home::home(source, &target.host, known).ok());
    let clocks = home::clocks(known, home.as_ref());
    let order = Expire { site: target.site.clone(), clocks: clocks.clone(), trust };
    let asked = HostRequest::of(known, target, SnapshotRequest::Expire(order), || Ok(Act::Expire { clocks, trust }))?;
    match asked.answer()? {
        SnapshotReply::Expired(Expired { names, doubt: None }) => Ok(names),
        SnapshotReply::Expired(Expired { doubt: Some(why), .. }) => {
            let what = format!("{}: homing removed no expired image: {why}", asked.host);
            let bank = format!("{}:{}", target.host, target.site.bank.display());
            let again = format!("homing snapshot expire {} --to {bank} --trust-clock", target.name);
            let hint = format!("ssh {} date -u\n  then, if it is right: {again}", asked.host);
            Err(Failure::system(what).hint(hint))
        }
        other => Err(odd(target, &other)),
    }
}

/// Has the bank's host lock a vault, for as long as the returned channel lives.
pub fn keep(target: &Target) -> Result<(To, From), Failure> {
    let (to, mut from) = channel::send_request(&target.host, &SnapshotRequest::Keep(target.site.clone()))?;
    match from.receive_reply()? {
        SnapshotReply::Kept => Ok((to, from)),
        other => Err(odd(target, &other)),
    }
}
