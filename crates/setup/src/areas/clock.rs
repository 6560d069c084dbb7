//! One host serves the time, by chrony, and the others follow it. Other daemons that set the clock go: Debian's packages
//! of them cannot be beside chrony.

use super::{Asked, known_family};
use crate::site::{AllSeen, Site};
use homing_steps::{How, Question, Wanted};

const CONF: &str = "/etc/chrony/conf.d/homing.conf";
const PACKAGE: &str = "chrony";
const UNIT: &str = "chrony";
/// Packages of others that set the clock, which may go for it.
const OTHERS: [&str; 4] = ["systemd-timesyncd", "ntp", "ntpsec", "openntpd"];
/// A host that is alone says the time with this distance from a true clock, so that a better server is preferred.
const STRATUM: u32 = 10;

pub(super) fn ask(question: &mut Question) {
    question.files.insert(CONF.into());
    question.packages.insert(PACKAGE.into());
    question.units.insert(UNIT.into());
}

pub(super) fn wanted(site: &Site, host: &str, seen: &AllSeen) -> Asked {
    let Some(Ok(there)) = seen.get(host) else { return Ok(Vec::new()) };
    let Some(server) = &site.up.clock else { return Ok(Vec::new()) };
    known_family(there, "chrony")?;
    let text = if host == server {
        serves(site, host, seen, there.text(CONF).unwrap_or(""))
    } else {
        follows(site, server, seen)?
    };
    let mut wanted = vec![Wanted::Package { name: PACKAGE.into(), replaces: OTHERS.map(String::from).into() }];
    wanted.push(Wanted::file(CONF, text));
    wanted.push(Wanted::Unit { name: UNIT.into(), on: true });
    // The package starts its unit: before the file is there.
    wanted.push(Wanted::Reads { unit: UNIT.into(), paths: vec![CONF.into()], how: How::Restart, test: None });
    Ok(wanted)
}

/// What was allowed stays so while a host does not answer.
fn serves(site: &Site, host: &str, seen: &AllSeen, there: &str) -> String {
    let others = site.hosts.iter().filter(|other| *other != host);
    let mut allow: Vec<String> = Vec::new();
    for other in others {
        let addresses = site.names(other, seen);
        if addresses.is_empty() {
            allow.extend(there.lines().filter(|line| line.starts_with("allow ")).map(String::from));
        }
        allow.extend(addresses.into_iter().map(|(_, address)| format!("allow {address}")));
    }
    allow.sort();
    allow.dedup();
    format!("local stratum {STRATUM}\nmakestep 1 3\n{}\n", allow.join("\n"))
}

fn follows(site: &Site, server: &str, seen: &AllSeen) -> Result<String, Vec<String>> {
    let names = site.names(server, seen);
    let (_, address) =
        names.first().ok_or_else(|| vec![format!("the address of {server}, which serves the time, is not known")])?;
    Ok(format!("server {address} iburst\nmakestep 1 3\n"))
}
