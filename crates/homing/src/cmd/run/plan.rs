//! `homing plan`: the same way as a run, up to the moment before anything runs.

use super::args::Args;
use super::source::{Source, Sourcing};
use crate::failure::Failure;
use homing_dispatch::{Hosts, Incoming};
use homing_locate::Locator;
use std::collections::HashSet;
use std::io::{self, BufReader};

/// Prints who would run where, and why.
pub fn plan(args: Args) -> Result<i32, Failure> {
    let cwd = std::env::current_dir().map_err(Failure::system)?;
    let locator = Locator::new().map_err(Failure::system)?;
    let targets = super::targets::targets(&args, &cwd, &locator)?;
    let batch = super::batch(&args, &cwd, "plan", Box::new(BufReader::new(io::stdin())))?;
    let slots = super::slots(&args)?;
    let spread = targets.len() > 1;
    let mut hosts = Hosts::default();
    let mut shapes = Vec::new();
    for (ix, target) in targets.iter().enumerate() {
        let facts = match &target.via {
            homing_launch::Via::Local => homing_probe::facts(),
            via => {
                let opened = homing_launch::open(&target.name, via, &homing_launch::Options::default());
                opened.map_err(|e| Failure::system(format!("{}: {e}", target.name)))?.facts
            }
        };
        let count = target.slots.unwrap_or_else(|| slots(facts.cores)).max(1);
        shapes.push((count, facts.nic_bytes_per_s));
        hosts.up(ix, &target.name, count, facts);
    }
    let sourcing =
        Sourcing { cwd, detect: !args.no_detect, skip_newer: args.skip_newer, done: HashSet::new(), spread };
    let mut needs = Vec::new();
    let mut commands = std::collections::BTreeMap::new();
    for incoming in Source::new(batch, sourcing, locator) {
        match incoming {
            Incoming::Task { offer, .. } => {
                needs.push((offer.task.id, hosts.need(&offer)));
                commands.insert(offer.task.id, offer.task.command.display());
            }
            Incoming::Skip { task, reason } => println!("{task}\t-\tskipped: {}", reason.unwrap_or_default()),
            Incoming::Broken(text) => return Err(Failure::usage(text)),
            Incoming::Note(text) => eprintln!("homing: {text}"),
        }
    }
    let params = homing_place::Params { locality: !args.no_locality, ..Default::default() };
    for (task, host, why) in homing_place::simulate(params, &shapes, needs) {
        println!("{task}\t{}\t{why}\t{}", hosts.name(host), commands[&task]);
    }
    Ok(0)
}
