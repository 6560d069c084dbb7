//! `homing plan`: the same way as a run, up to the moment before anything runs.

use super::args::Args;
use super::order::in_order;
use super::source::{Source, Sourcing};
use crate::failure::Failure;
use homing_batch::Files;
use homing_dispatch::{Hosts, Incoming};
use homing_model::{Command, HostFacts, Task, TaskId};
use homing_place::HostModel;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, IsTerminal};

/// Whether a server's tasks would wait for those of others now.
fn tell_waits(server: &str, place: &homing_folder::lease::Place) {
    let place = place.clone();
    let seen = homing_mounts::within(homing_mounts::FS_TIMEOUT, move || homing_folder::lease::look(&place)).flatten();
    let Some((limit, seen)) = seen.and_then(|seen| Some((seen.limit?, seen))) else { return };
    let users: Vec<_> = seen.users.iter().map(|(uid, held)| (homing_queue::user_name(*uid), *held)).collect();
    if let Some(text) = super::listen::waits(server, limit, &users) {
        eprintln!("homing: {}", homing_model::text::shown(&text));
    }
}

/// Prints who would run where, and why.
pub fn plan(args: Args) -> Result<i32, Failure> {
    if let Some(ended) = super::at_gateway(&args) {
        return ended;
    }
    if args.ppn.is_some() {
        return Err(Failure::usage("--ppn: the hosts of a task over several are chosen when the queue takes it")
            .hint("homing run --dry-run lists the commands; homing jobs ID tells the hosts of each"));
    }
    let cwd = std::env::current_dir().map_err(Failure::system)?;
    let finder = super::finder(&args)?;
    let super::targets::Targets { hosts: targets, links, .. } = super::targets::targets(&args, &cwd, "plan", None)?;
    let mut inputs = Files::new(&cwd, Box::new(BufReader::new(io::stdin())));
    let batch = super::batch(&args, &cwd, "plan", &mut inputs, io::stdin().is_terminal())?;
    let slots = super::slots(&args)?;
    let mut hosts = Hosts::default();
    let mut shapes = Vec::new();
    for (ix, target) in targets.iter().enumerate() {
        let facts = match &target.via {
            homing_launch::Via::Local => homing_probe::facts(),
            // A plan takes nothing from the cluster: of Slurm's node the name is known, and the volumes are taken to be ours.
            homing_launch::Via::Slurm(_) => HostFacts {
                hostname: target.name.clone(),
                mounts: homing_probe::facts().mounts,
                ..HostFacts::default()
            },
            via => {
                let opened = homing_launch::open(&target.name, via, &homing_launch::Options::default());
                opened.map_err(|e| Failure::system(format!("{}: {e}", target.name)))?.facts
            }
        };
        let count = target.slots.unwrap_or_else(|| slots(facts.cores)).max(1);
        shapes.push(HostModel {
            slots: count,
            nic_bytes_per_s: links.rate(&target.name, facts.nic_bytes_per_s),
            serving: 0.0,
            switch: links.leaf(&target.name),
        });
        hosts.up(ix, &target.name, count, facts);
    }
    let sourcing = Sourcing {
        cwd,
        detect: !args.no_detect,
        handed_on: false,
        skip_newer: args.skip_newer,
        makes_workdir: false,
        done: HashMap::new(),
        listed: HashMap::new(),
        missing: None,
        hosts: targets.len(),
        fenced: false,
        nonces: None,
        servers: args.cluster.load()?.servers(),
        own: args.cluster.load()?.locators(),
        fs_timeout: std::time::Duration::from_secs(args.fs_timeout.into()),
    };
    let mut needs = Vec::new();
    let mut commands = BTreeMap::new();
    let (mut others, mut later) = (Vec::new(), Vec::new());
    for incoming in Source::new(batch, sourcing, finder) {
        match incoming {
            Incoming::Task { offer, .. } => {
                needs.push((offer.task.id, offer.need(&hosts)));
                commands.insert(offer.task.id, offer.task.command.display());
            }
            Incoming::Served(_) | Incoming::Again(_) => {}
            Incoming::Server(names, place) => place.iter().for_each(|place| tell_waits(&names[0], place)),
            Incoming::Unread { task, reason } => {
                println!("{}\t-\t{reason}", task.id);
                others.push(task.id);
            }
            Incoming::Skip(skipped) => {
                others.push(skipped.task);
                println!("{}\t-\tskipped: {}", skipped.task, skipped.reason.unwrap_or_default());
            }
            Incoming::After(task) => later.push(*task),
            Incoming::Broken { text, .. } => return Err(Failure::usage(text)),
            Incoming::Note(text) => eprintln!("homing: {text}"),
        }
    }
    let params = homing_place::Params { locality: !args.no_locality, links, ..Default::default() };
    // Nothing is known yet of how long a command takes: as long as it takes to read its bytes.
    let bytes: BTreeMap<TaskId, u64> = needs.iter().map(|(task, need)| (*task, need.total)).collect();
    let work_us = |task: TaskId, _| (bytes[&task] as f64 / params.default_bytes_per_s * 1e6) as u64;
    for planned in homing_place::simulate(params.clone(), &shapes, &needs, work_us) {
        let why = planned.why.text(|host| hosts.name(host));
        println!("{}\t{}\t{}\t{}", planned.task, hosts.name(planned.host), why, commands[&planned.task]);
    }
    others.extend(commands.keys());
    let first = others.into_iter().map(|id| Task { id, ..Task::of(Command::Argv(Vec::new())) });
    in_order(first.chain(later).map(Ok::<Task, Failure>), |task| {
        if !task.after.is_empty() {
            let after: Vec<String> = task.after.iter().map(TaskId::to_string).collect();
            println!(
                "{}\t-\tafter {}, where its inputs are then\t{}",
                task.id,
                after.join(" "),
                task.command.display()
            );
        }
        Ok(())
    })?;
    Ok(0)
}
