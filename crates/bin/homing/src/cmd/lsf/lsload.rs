//! `lsload`, `lsmon`, `lsplace`: print the hosts by their load.

use super::load::{loaded, requirement};
use super::{Refusal, lsf_refusal, options, print};
use crate::cluster::Cluster;
use homing_lsf::grammar::{LSLOAD, LSMON, LSPLACE};
use homing_lsf::options::{Parsed, text};
use homing_lsf::tables::{self, BatchHost, Show};
use homing_model::RawText;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Prints the load once.
pub fn lsload(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lsload", &LSLOAD, words)? else { return Ok(0) };
    print(&shown(&parsed)?)
}

/// Prints the load repeatedly, until it is interrupted or its reader is gone.
pub fn lsmon(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lsmon", &LSMON, words)? else { return Ok(0) };
    let every = parsed.text("i").map_or(Ok(10), |text| text.parse().map_err(|_| text));
    let every = every.map_err(|text| lsf_refusal(format!("{text}: Bad argument for option -i: whole seconds")))?;
    let clear = if std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    loop {
        let text = format!("{clear}{}", shown(&parsed)?);
        let mut out = std::io::stdout();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            return Ok(0);
        }
        std::thread::sleep(Duration::from_secs(every));
    }
}

/// Prints the requested number of hosts, those with the least load.
pub fn lsplace(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lsplace", &LSPLACE, words)? else { return Ok(0) };
    let number = |option: &str, usual: usize| match parsed.text(option) {
        None => Ok(usual),
        Some(text) => text.parse().map_err(|_| lsf_refusal(format!("{text}: Bad argument for option -{option}"))),
    };
    let least = number("n", 1)?.max(1);
    let most = number("w", least)?;
    let found = least_loaded(&parsed)?;
    let names: Vec<&str> = found.iter().filter(|h| h.is_up()).map(|h| h.name.as_str()).take(most).collect();
    if names.len() < least {
        return Err(lsf_refusal("lsplace: Not enough hosts satisfy the resource requirement"));
    }
    print(&format!("{}\n", names.join(" ")))
}

fn least_loaded(parsed: &Parsed) -> Result<Vec<BatchHost>, Refusal> {
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    let mut found = loaded(&asked, requirement(parsed)?.as_ref())?;
    tables::by_load(&mut found);
    Ok(found)
}

/// Returns the requested table of load.
fn shown(parsed: &Parsed) -> Result<String, Refusal> {
    let own: Vec<String> = Cluster::of_queue()?.indices().into_keys().collect();
    let show = match (parsed.text("I"), parsed.has("l")) {
        (Some(names), _) => Show::only(&names, &own).map_err(lsf_refusal)?,
        (None, true) => Show::Long,
        (None, false) => Show::Short,
    };
    let mut found = least_loaded(parsed)?;
    let count = parsed.text("n").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    found.truncate(count);
    if found.is_empty() {
        return Err(lsf_refusal("No host satisfies the resource requirement"));
    }
    Ok(tables::load(&found, &show, parsed.has("w"), &own))
}
