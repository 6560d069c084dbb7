//! Makes an image: connects the host that reads, the hosts that pause, and the answers.

use super::channel::{self, To};
use super::crew::{Crew, Readers};
use super::engine::{Asked, repository};
use super::home::{self, Home, Known};
use super::reading;
use crate::ask::{self, Answer, Ask, Freeze, Make, Watch};
use crate::instant::{Wanted, Way};
use crate::repository::{self as restic, Act, Order};
use crate::rsync::{self, At};
use crate::section::Engine;
use crate::split;
use crate::target::Target;
use homing_model::{Failure, RawText};

/// The wishes for an image, besides its section.
pub struct Wishes {
    /// Further patterns to leave out.
    pub exclude: Vec<String>,
    /// The kinds of instant copies.
    pub instant: Option<Wanted>,
    /// When several hosts read a volume.
    pub split: Option<split::When>,
}

/// The image that was made.
pub struct Done {
    /// The host that was read.
    pub source: Option<String>,
    /// The kind of instant copy that was read, if any.
    pub way: Option<Way>,
    /// The report of its host.
    pub made: ask::Made,
}

/// Makes an image of a vault's source.
pub fn make(known: &Known, target: &Target, wishes: &Wishes, note: &dyn Fn(&str)) -> Result<Done, Failure> {
    let is_restic = target.section.engine == Engine::Restic;
    if is_restic && target.section.source.is_none() {
        return Err(Failure::usage("restic runs where the source is, which nothing tells"));
    }
    let home = match &target.section.source {
        Some(source) => Some(home::home(source, &target.host, known)?),
        None => None,
    };
    home.iter().flat_map(|home| &home.passed).for_each(|why| note(&format!("passed over: {why}")));
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
        Some(home) => Asked { host: home.host.clone(), ask: to_restic(target, home, order)? },
        None => Asked { host: target.host.clone(), ask: Ask::Make(Box::new(order)) },
    };
    let (to, mut from) = asked.begin()?;
    let crew = Crew::new(to);
    if let Some(lease) = lease {
        lease.pass_on(&crew)?;
    }
    let made = loop {
        match from.hear()? {
            Answer::Made(made) => break made,
            Answer::Note(text) => note(&text),
            Answer::Deal(deal) => crew.deal(readers.take(), deal, note)?,
            Answer::Ended(number) => crew.ended(number),
            _ => {}
        }
    };
    let way = instant.as_ref().filter(|_| made.instant).map(|instant| instant.way);
    if let Some(instant) = instant {
        instant.remove(note);
    }
    Ok(Done { source: home.map(|home| home.host), way, made: *made })
}

/// Returns the order. `bank`: the identity of its host, if a source is known.
fn order(target: &Target, wishes: &Wishes, home: Option<&Home>, bank: Option<&str>) -> Result<Make, Failure> {
    let section = &target.section;
    let local = home.is_some_and(|home| Some(home.identity.as_str()) == bank);
    let at = |home: &Home| At { host: (!local).then(|| home.host.clone()), path: home.path.clone() };
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
fn to_restic(target: &Target, home: &Home, order: Make) -> Result<Ask, Failure> {
    let act = Act::Make(restic::Make {
        source: home.path.clone(),
        instant: order.instant.filter(|_| order.xdev != Some(false)),
        exclude: order.exclude,
        xdev: order.xdev.unwrap_or(true),
        expire: order.expire.unwrap_or_default(),
        rules: order.rules,
        clocks: order.clocks,
    });
    Ok(Ask::Restic(Box::new(Order { repository: repository(target, &home.identity)?, act })))
}

/// Returns the things to watch while the source is read. If its host keeps the bank, too, writes may be homing's own.
fn watch(home: &Home, order: &Make) -> Watch {
    let reads_only = order.source.as_ref().is_some_and(|source| source.host.is_none());
    Watch { gate: home.gate.clone(), folder: home.path.clone(), reads_only, mark: order.mark.clone() }
}

/// An instant copy of the source, kept by its host.
struct Instant {
    way: Way,
    path: RawText,
    to: To,
    from: channel::From,
}

impl Instant {
    /// Makes a copy. `None`: its file system has none, or files below it on other file systems are wanted, too.
    fn make(home: &Home, order: &Make, wanted: Wanted, note: &dyn Fn(&str)) -> Result<Option<Instant>, Failure> {
        if wanted == Wanted::None || order.xdev == Some(false) {
            return Ok(None);
        }
        let (to, mut from) = channel::ask(&home.host, &Ask::Freeze(Freeze { folder: home.path.clone(), wanted }))?;
        loop {
            match from.hear()? {
                Answer::Frozen(made) => return Ok(made.map(|(way, path)| Instant { way, path, to, from })),
                Answer::Note(text) => note(&text),
                _ => {}
            }
        }
    }

    /// Waits until the copy is gone; passes on a message about a failure.
    fn remove(mut self, note: &dyn Fn(&str)) {
        self.to.close();
        while let Ok(answer) = self.from.hear() {
            match answer {
                Answer::Note(text) => note(&text),
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
    fn take(host: &str, watch: Watch, note: &dyn Fn(&str)) -> Result<Lease, Failure> {
        let (to, mut from) = channel::ask(host, &Ask::Lease(watch))?;
        let mut waits = false;
        loop {
            match from.hear()? {
                Answer::Lease(leases) if leases > 0 => return Ok(Lease { to, from }),
                Answer::Lease(_) if !waits => {
                    waits = true;
                    note(&format!("waits for others at the file server of {host}"));
                }
                Answer::Note(text) => note(&text),
                _ => {}
            }
        }
    }

    /// Pauses all hosts that read while others need the file server.
    fn pass_on(self, crew: &Crew) -> Result<(), Failure> {
        let Lease { to, mut from } = self;
        let crew = crew.with_lease(to);
        let pass = move || {
            while let Ok(answer) = from.hear() {
                if let Answer::Lease(leases) = answer {
                    crew.may_read(leases);
                }
            }
        };
        homing_os::threads::begin(pass).map(drop).map_err(Failure::system)
    }
}
