//! Makes an image: connects the host that reads, the hosts that pause, and the answers.

use super::channel::{self, To};
use super::crew::{Crew, Readers};
use super::engine::{HostRequest, repository};
use super::home::{self, ClusterContext, SourceHome};
use super::reading;
use crate::ask::{self, CopyWatch, Freeze, Make, SnapshotReply, SnapshotRequest};
use crate::instant::{InstantMethod, InstantPolicy};
use crate::repository::{self as restic, Act, RepositoryRequest};
use crate::rsync::{self, HostFolder};
use crate::section::Engine;
use crate::split;
use crate::target::Target;
use homing_model::{Failure, RawText};

/// The wishes for an image, besides its section.
pub struct Wishes {
    /// Further patterns to leave out.
    pub exclude: Vec<String>,
    /// The kinds of instant copies.
    pub instant: Option<InstantPolicy>,
    /// When several hosts read a volume.
    pub split: Option<split::When>,
}

/// The image that was made.
pub struct CreatedImage {
    /// The host that was read.
    pub source: Option<String>,
    /// The kind of instant copy that was read, if any.
    pub way: Option<InstantMethod>,
    /// The report of its host.
    pub made: ask::ImageReport,
}

/// Makes an image of a vault's source.
pub fn make(
    known: &ClusterContext,
    target: &Target,
    wishes: &Wishes,
    note: &dyn Fn(&str),
) -> Result<CreatedImage, Failure> {
    let is_restic = target.section.engine == Engine::Restic;
    if is_restic && target.section.source.is_none() {
        return Err(Failure::usage(
            "restic runs on the source's host, but the source is missing: set source = \"HOST:/PATH\"",
        ));
    }
    let home = match &target.section.source {
        Some(source) => Some(home::home(source, &target.host, known)?),
        None => None,
    };
    home.iter().flat_map(|home| &home.passed).for_each(|why| note(&format!("skipped: {why}")));
    let bank = home::seen(&target.host)?;
    if !is_restic {
        let here = home.as_ref().filter(|home| home.identity != bank.identity);
        let hosts = here.map(|home| (home.host.as_str(), home.rsync.as_deref()));
        let hosts = hosts.into_iter().chain([(target.host.as_str(), bank.rsync.as_deref())]);
        hosts.filter_map(|(host, line)| rsync::warning(host, line)).for_each(|why| note(&why));
    }
    let bank = home.is_some().then_some(bank.identity);
    let order = order(target, wishes, home.as_ref(), bank.as_deref())?;
    let lease = match &home {
        Some(home) => Some(Lease::take(&home.host, watch(home, &order), note)?),
        None => None,
    };
    let wanted = wishes.instant.unwrap_or(target.section.instant);
    let instant = home.as_ref().map(|home| Instant::make(home, &order, wanted, note)).transpose()?.flatten();
    let when = wishes.split.unwrap_or(target.section.split);
    let readers = home.as_ref().zip(bank.as_deref()).filter(|_| !is_restic && instant.is_none());
    let mut readers = readers.and_then(|(home, bank)| Readers::of(home, bank, when, note));
    let split = readers.is_some();
    let clocks = home::clocks(known, home.as_ref());
    let order = Make { instant: instant.as_ref().map(|instant| instant.path.clone()), split, clocks, ..order };
    // With restic this lock is the only part of the bank's host.
    let _kept = is_restic.then(|| reading::keep(target)).transpose()?;
    let asked = match home.as_ref().filter(|_| is_restic) {
        Some(home) => HostRequest { host: home.host.clone(), request: to_restic(target, home, order)? },
        None => HostRequest { host: target.host.clone(), request: SnapshotRequest::Make(Box::new(order)) },
    };
    let (to, mut from) = asked.begin()?;
    let crew = Crew::new(to);
    if let Some(lease) = lease {
        lease.pass_on(&crew)?;
    }
    let made = loop {
        match from.receive_reply()? {
            SnapshotReply::Made(made) => break made,
            SnapshotReply::Note(text) => note(&text),
            SnapshotReply::Deal(deal) => crew.deal(readers.take(), deal, note)?,
            SnapshotReply::Ended(number) => crew.ended(number),
            _ => {}
        }
    };
    let way = instant.as_ref().filter(|_| made.instant).map(|instant| instant.way);
    if let Some(instant) = instant {
        instant.remove(note);
    }
    Ok(CreatedImage { source: home.map(|home| home.host), way, made: *made })
}

/// Returns the order. `bank`: the identity of its host, if a source is known.
fn order(target: &Target, wishes: &Wishes, home: Option<&SourceHome>, bank: Option<&str>) -> Result<Make, Failure> {
    let section = &target.section;
    let local = home.is_some_and(|home| Some(home.identity.as_str()) == bank);
    let at = |home: &SourceHome| HostFolder { host: (!local).then(|| home.host.clone()), path: home.path.clone() };
    Ok(Make {
        site: target.site.clone(),
        source: home.map(at),
        instant: None,
        mark: if local { None } else { Some(homing_os::folder::unguessable().map_err(Failure::system)?) },
        server: target.host.clone(),
        exclude: section.exclude.iter().chain(&wishes.exclude).cloned().collect(),
        xdev: section.xdev,
        image: section.image.clone(),
        expire: section.expire.clone(),
        rules: section.rules.clone(),
        ssh: section.ssh.clone(),
        split: false,
        clocks: Vec::new(),
    })
}

/// Returns the same order for a repository.
fn to_restic(target: &Target, home: &SourceHome, order: Make) -> Result<SnapshotRequest, Failure> {
    let act = Act::Make(restic::Make {
        source: home.path.clone(),
        instant: order.instant.filter(|_| order.xdev != Some(false)),
        exclude: order.exclude,
        xdev: order.xdev.unwrap_or(true),
        expire: order.expire.unwrap_or_default(),
        rules: order.rules,
        clocks: order.clocks,
    });
    Ok(SnapshotRequest::Restic(Box::new(RepositoryRequest { repository: repository(target, &home.identity)?, act })))
}

/// Returns the things to watch while the source is read. If its host keeps the bank, too, writes may be homing's own.
fn watch(home: &SourceHome, order: &Make) -> CopyWatch {
    let reads_only = order.source.as_ref().is_some_and(|source| source.host.is_none());
    CopyWatch { gate: home.gate.clone(), folder: home.path.clone(), reads_only, mark: order.mark.clone() }
}

/// An instant copy of the source, kept by its host.
struct Instant {
    way: InstantMethod,
    path: RawText,
    to: To,
    from: channel::From,
}

impl Instant {
    /// Makes a copy. `None`: its file system has none, or files below it on other file systems are wanted, too.
    fn make(
        home: &SourceHome,
        order: &Make,
        wanted: InstantPolicy,
        note: &dyn Fn(&str),
    ) -> Result<Option<Instant>, Failure> {
        if wanted == InstantPolicy::None || order.xdev == Some(false) {
            return Ok(None);
        }
        let (to, mut from) =
            channel::send_request(&home.host, &SnapshotRequest::Freeze(Freeze { folder: home.path.clone(), wanted }))?;
        loop {
            match from.receive_reply()? {
                SnapshotReply::Frozen(made) => return Ok(made.map(|(way, path)| Instant { way, path, to, from })),
                SnapshotReply::Note(text) => note(&text),
                _ => {}
            }
        }
    }

    /// Waits until the copy is gone; passes on a message about a failure.
    fn remove(mut self, note: &dyn Fn(&str)) {
        self.to.close();
        while let Ok(answer) = self.from.receive_reply() {
            match answer {
                SnapshotReply::Note(text) => note(&text),
                _ => break,
            }
        }
    }
}

/// A lease of the source's file server, and a watch of others' use of it, kept on its host.
struct Lease {
    to: To,
    from: channel::From,
}

impl Lease {
    /// Takes a lease, and waits until it is granted.
    fn take(host: &str, watch: CopyWatch, note: &dyn Fn(&str)) -> Result<Lease, Failure> {
        let (to, mut from) = channel::send_request(host, &SnapshotRequest::Lease(watch))?;
        let mut waits = false;
        loop {
            match from.receive_reply()? {
                SnapshotReply::Lease(leases) if leases > 0 => return Ok(Lease { to, from }),
                SnapshotReply::Lease(_) if !waits => {
                    waits = true;
                    note(&format!("waiting for other users of the file server of {host}"));
                }
                SnapshotReply::Note(text) => note(&text),
                _ => {}
            }
        }
    }

    /// Pauses all hosts that read while others need the file server.
    fn pass_on(self, crew: &Crew) -> Result<(), Failure> {
        let Lease { to, mut from } = self;
        let crew = crew.with_lease(to);
        let pass = move || {
            while let Ok(answer) = from.receive_reply() {
                if let SnapshotReply::Lease(leases) = answer {
                    crew.may_read(leases);
                }
            }
        };
        homing_os::threads::begin(pass).map(drop).map_err(Failure::system)
    }
}
