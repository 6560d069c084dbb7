//! `homing snapshot NAME`: an image.

use super::args::Make as Args;
use super::far::{self, To};
use super::home::{self, Home};
use super::show;
use super::target::{Target, target};
use crate::cluster::ClusterArgs;
use crate::failure::Failure;
use homing_snapshot::ask::{Answer, Ask, Control, Gate, Make};
use homing_snapshot::rsync::At;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes it and tells of it. 1: some of the source could not be read.
pub fn run(cluster: &ClusterArgs, args: Args) -> Result<i32, Failure> {
    let what = args.what.as_deref().ok_or_else(|| Failure::usage("what is to be copied?"))?;
    let target = target(cluster, what, &args.vault)?;
    if !target.below.as_os_str().is_empty() {
        let whole = format!("{what} is a part of what [snapshot.{}] copies", target.name);
        return Err(Failure::usage(whole).hint(format!("homing snapshot {}", target.name)));
    }
    let note = |text: &str| {
        if !args.quiet {
            eprintln!("homing: {text}");
        }
    };
    let home = match &target.section.source {
        Some(source) => Some(home::home(source, &target.host, &cluster.load()?)?),
        None => None,
    };
    home.iter().flat_map(|home| &home.passed).for_each(|why| note(&format!("passed over: {why}")));
    let order = order(&target, &args, home.as_ref())?;
    let lease = home.as_ref().and_then(|home| Some((home.host.clone(), home.gate.clone()?)));
    let lease = lease.map(|(host, gate)| Lease::take(&host, gate, &note)).transpose()?;
    let (to, mut from) = far::ask(&target.host, &Ask::Make(Box::new(order)))?;
    let to = Arc::new(Mutex::new(to));
    if let Some(lease) = lease {
        lease.pass_on(to.clone())?;
    }
    let made = loop {
        match from.next()? {
            Answer::Made(made) => break made,
            Answer::Note(text) => note(&text),
            _ => {}
        }
    };
    let source = home.as_ref().map_or("its host", |home| home.host.as_str());
    if args.json {
        show::made_json(&target, &made)?
    } else {
        show::made(&target, source, &made)?
    };
    Ok(i32::from(!made.unreadable.is_empty()))
}

fn order(target: &Target, args: &Args, home: Option<&Home>) -> Result<Make, Failure> {
    let section = &target.section;
    let local = match home {
        Some(home) => home.identity == home::identity(&target.host)?,
        None => false,
    };
    let at = |home: &Home| At { host: (!local).then(|| home.host.clone()), path: home.path.clone() };
    Ok(Make {
        site: target.site.clone(),
        source: home.map(at),
        server: target.host.clone(),
        exclude: section.exclude.iter().chain(&args.exclude).cloned().collect(),
        xdev: section.xdev,
        image: section.image.clone(),
        expire: section.expire.clone(),
        rules: section.rules.clone(),
        ssh: section.ssh.clone(),
    })
}

/// A lease of the source's file server, kept on its host.
struct Lease {
    to: To,
    from: far::From,
}

impl Lease {
    /// Waits for it.
    fn take(host: &str, gate: Gate, note: &dyn Fn(&str)) -> Result<Lease, Failure> {
        let (to, mut from) = far::ask(host, &Ask::Lease(gate))?;
        let mut waits = false;
        loop {
            match from.next()? {
                Answer::Lease(true) => return Ok(Lease { to, from }),
                Answer::Lease(false) if !waits => {
                    waits = true;
                    note(&format!("waits for others at the file server of {host}"));
                }
                Answer::Note(text) => note(&text),
                _ => {}
            }
        }
    }

    /// Has the bank's host pause while others need the file server.
    fn pass_on(self, bank: Arc<Mutex<To>>) -> Result<(), Failure> {
        let Lease { to, mut from } = self;
        let pass = move || {
            let _held = to;
            while let Ok(answer) = from.next() {
                if let Answer::Lease(has) = answer {
                    let control = if has { Control::Resume } else { Control::Pause };
                    let _ = bank.lock().unwrap_or_else(PoisonError::into_inner).control(control);
                }
            }
        };
        homing_threads::begin(pass).map(drop).map_err(Failure::system)
    }
}
