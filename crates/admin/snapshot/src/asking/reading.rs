//! What verbs that read a vault, and write back, ask, and of whom.

use super::channel::{self, From, To};
use super::engine::{Asked, source};
use super::home::{self, Known};
use crate::ask::{self, Answer, Ask, Control, Expire, Expired, Listed, Restored, Seen};
use crate::destination::{Presence, RestoreEntry};
use crate::image::When;
use crate::repository::{self, Act};
use crate::rsync::{self, At};
use crate::section::{self, Engine};
use crate::target::Target;
use homing_model::{Failure, RawText};
use std::path::PathBuf;

/// What a vault holds.
pub fn listed(known: &Known, target: &Target) -> Result<Listed, Failure> {
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
    let asked = Asked::of(known, target, Ask::List(target.site.clone()), || Ok(Act::List))?;
    let Listed { images, unfinished, .. } = listed(asked)?;
    Ok(Listed { images, unfinished, ..of_bank })
}

fn odd(target: &Target, answer: &Answer) -> Failure {
    Failure::system(format!("{} answered {answer:?}", target.host))
}

/// Where the folder that was copied is now, as the bank's host reaches it.
pub fn now(known: &Known, target: &Target) -> Result<At, Failure> {
    let source = target.section.source.as_deref();
    let source =
        source.ok_or_else(|| Failure::usage("nothing says where that was").hint("--into DIR, or --with WHEN"))?;
    let home = home::home(source, &target.host, known)?;
    let local = home.identity == home::identity(&target.host)?;
    Ok(At { host: (!local).then_some(home.host), path: home.path })
}

/// The folder that something below a source is in.
pub fn parent(root: At, target: &Target) -> At {
    let folder = target.below.parent().map_or(PathBuf::new(), PathBuf::from);
    let path = root.path.as_path().join(folder).components().collect::<PathBuf>();
    At { path: path.as_path().into(), ..root }
}

/// What is written back.
pub struct Restore {
    /// Of which image.
    pub when: When,
    /// What of it, below the source.
    pub below: RawText,
    /// What is there and differs is replaced.
    pub overwrite: bool,
    /// Only what would be written is found out.
    pub trial: bool,
}

/// Writes something back; `named`: a person has named the place.
pub fn restore(
    known: &Known,
    target: &Target,
    into: &At,
    named: bool,
    wanted: Restore,
    note: &dyn Fn(&str),
) -> Result<Restored, Failure> {
    let Restore { when, below, overwrite, trial } = wanted;
    let asked = if target.section.engine == Engine::Restic {
        let order = |into: At| repository::Restore { when, below, into, overwrite, trial };
        from_repository(known, target, into, named, order)?
    } else {
        let (site, ssh) = (target.site.clone(), target.section.ssh.clone());
        let order = ask::Restore { site, when, below, into: near(target, into, note)?, overwrite, trial, ssh };
        Asked { host: target.host.clone(), ask: Ask::Restore(Box::new(order)) }
    };
    let (mut to, mut from) = asked.begin()?;
    let mut there = Folder::new(into);
    loop {
        match from.hear()? {
            Answer::Restored(restored) => return Ok(restored),
            Answer::Examine(entries) => to.control(&Control::Present(there.examine(entries)?))?,
            _ => {}
        }
    }
}

/// The destination as the bank's host reaches it: a place of its own without ssh.
fn near(target: &Target, into: &At, note: &dyn Fn(&str)) -> Result<At, Failure> {
    let bank = home::seen(&target.host)?;
    let warn =
        |host: &str, seen: &Seen| rsync::warning(host, seen.rsync.as_deref()).into_iter().for_each(|why| note(&why));
    warn(&target.host, &bank);
    let Some(host) = &into.host else { return Ok(into.clone()) };
    let there = home::seen(host)?;
    let own = there.identity == bank.identity;
    if !own {
        warn(host, &there);
    }
    Ok(At { host: (!own).then(|| host.clone()), path: into.path.clone() })
}

/// A folder that its own host looks at, by a channel that is opened when it is needed.
pub struct Folder<'a> {
    at: &'a At,
    examiner: Option<(To, From)>,
}

impl Folder<'_> {
    /// A folder of a host as the bank's host reaches it.
    pub fn new(at: &At) -> Folder<'_> {
        Folder { at, examiner: None }
    }

    /// What it has under these names.
    ///
    /// # Errors
    /// Why its host does not tell.
    pub fn examine(&mut self, entries: Vec<RestoreEntry>) -> Result<Vec<Presence>, Failure> {
        let host = self.at.host.as_deref().unwrap_or("localhost");
        let (to, from) = match &mut self.examiner {
            Some(channel) => channel,
            None => self.examiner.insert(channel::ask(host, &Ask::Examine(self.at.path.clone()))?),
        };
        to.control(&Control::Entries(entries))?;
        match from.hear()? {
            Answer::Present(present) => Ok(present),
            other => Err(Failure::system(format!("{host} answered {other:?} to a look at {}", self.at.path.display()))),
        }
    }
}

/// The host that gets the files runs restic: the one that is named, else the source's, where the place is its own.
fn from_repository(
    known: &Known,
    target: &Target,
    into: &At,
    named: bool,
    order: impl FnOnce(At) -> repository::Restore,
) -> Result<Asked, Failure> {
    let there = |path: RawText| At { host: None, path };
    if let Some(host) = into.host.as_deref().filter(|_| named) {
        return Asked::restore(target, host, order(there(into.path.clone())));
    }
    let home = source(known, target)?;
    let into = if named { there(into.path.clone()) } else { parent(there(home.path), target) };
    Asked::restore(target, &home.host, order(into))
}

/// Where files are to go: /PATH on this machine or HOST:/PATH.
pub fn place(into: &str) -> Result<At, Failure> {
    if let Some((host, path)) = section::place(into) {
        return Ok(At { host: Some(host.into()), path: path.into() });
    }
    let absolute = into.starts_with('/').then(|| At { host: None, path: into.into() });
    absolute.ok_or_else(|| Failure::usage(format!("--into {into:?} is neither /PATH nor HOST:/PATH")))
}

/// Removes what has expired; the names. `trust`: a person has looked at the clock.
///
/// # Errors
/// Also that the clock of the host cannot be believed.
pub fn expire(known: &Known, target: &Target, trust: bool) -> Result<Vec<String>, Failure> {
    let is_restic = target.section.engine == Engine::Restic;
    let _kept = is_restic.then(|| keep(target)).transpose()?;
    let source = target.section.source.as_deref().filter(|source| section::place(source).is_some());
    // A host that does not answer has no say.
    let home = source.and_then(|source| home::home(source, &target.host, known).ok());
    let clocks = home::clocks(known, home.as_ref());
    let order = Expire { site: target.site.clone(), clocks: clocks.clone(), trust };
    let asked = Asked::of(known, target, Ask::Expire(order), || Ok(Act::Expire { clocks, trust }))?;
    match asked.answer()? {
        Answer::Expired(Expired { names, doubt: None }) => Ok(names),
        Answer::Expired(Expired { doubt: Some(why), .. }) => {
            let what = format!("{}: nothing was removed, whatever has expired: {why}", asked.host);
            let bank = format!("{}:{}", target.host, target.site.bank.display());
            let again = format!("homing snapshot expire {} --to {bank} --trust-clock", target.name);
            let hint = format!("ssh {} date -u\n  then, if that is right: {again}", asked.host);
            Err(Failure::system(what).hint(hint))
        }
        other => Err(odd(target, &other)),
    }
}

/// Has the bank's host keep others off a vault, for as long as what is returned lives.
pub fn keep(target: &Target) -> Result<(To, From), Failure> {
    let (to, mut from) = channel::ask(&target.host, &Ask::Keep(target.site.clone()))?;
    match from.hear()? {
        Answer::Kept => Ok((to, from)),
        other => Err(odd(target, &other)),
    }
}
