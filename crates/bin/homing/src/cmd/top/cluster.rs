//! Shows the hosts of a cluster as they are now, with the jobs of its queue.

use super::jobs::{self, Jobs};
use super::screen::Screen;
use super::{Args, LOOK, hosts, table_columns};
use crate::cmd::runs::to_stdout;
use crate::progress;
use homing_model::live::SHOWN_BYTES;
use homing_model::units::count;
use homing_model::{Failure, alike, document, exit};
use homing_report::Now;
use homing_watch::{About, Scene, Shown, ViewRequest, WatchView};
use serde_json::json;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// The longest wait of a table for two samples of each host. It is as long as ssh tries to connect to a dead host.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest wait of a table for connections: a host that has no copy of the worker yet receives one first.
const CONNECTING: Duration = Duration::from_secs(60);

/// Shows the hosts.
pub fn run(args: Args) -> Result<i32, Failure> {
    let names = names(&args)?;
    let heard = hosts::sample(&names).map_err(Failure::system)?;
    let screen = if args.once || args.json { None } else { Screen::open().map_err(Failure::system)? };
    match screen {
        Some(screen) => follow(&args, &names, &heard, screen),
        None => once(&args, &names, &heard),
    }
}

/// Returns the named hosts, those of cluster.toml, or this machine.
pub fn names(args: &Args) -> Result<Vec<String>, Failure> {
    args.targets.names(args.cluster.load()?)
}

fn once(args: &Args, names: &[String], heard: &Receiver<homing_model::Event>) -> Result<i32, Failure> {
    let (begun, mut now) = (Instant::now(), Now::default());
    let jobs = jobs::now(&args.engine);
    let mut pending = Instant::now();
    while !now.has_rates(names) && pending.elapsed() < PATIENCE && begun.elapsed() < CONNECTING {
        heard.recv_timeout(LOOK).into_iter().for_each(|event| now.add(&event));
        if now.is_lost_for(hosts::PENDING) {
            pending = Instant::now();
        }
    }
    let scene = scene(&now, names, &jobs);
    let silent = scene.hosts.iter().any(|host| host.trouble.is_some());
    if args.json {
        let all = json!({"hosts": now.json(homing_os::clock::wall_ns())["hosts"], "jobs": scene.tasks.iter().map(|task| json!({
            "job": task.name, "host": task.host, "seconds": task.age.as_secs_f64(), "command": task.command,
        })).collect::<Vec<_>>(), "waiting": scene.waits});
        to_stdout(&document::line(all))?;
    } else {
        to_stdout(&homing_watch::text(&scene, table_columns()))?;
        let troubles = scene.hosts.iter().filter_map(|host| Some((host.name.as_str(), host.trouble.as_deref()?)));
        alike::folded(troubles).iter().for_each(|line| eprintln!("homing: {line}"));
    }
    Ok(if silent { exit::SYSTEM } else { 0 })
}

fn follow(
    args: &Args,
    names: &[String],
    heard: &Receiver<homing_model::Event>,
    mut screen: Screen,
) -> Result<i32, Failure> {
    let (mut view, mut now, mut last) =
        (WatchView::new(progress::has_colors(std::io::stdout())), Now::default(), Jobs::default());
    let looked = jobs::look(args.engine.clone()).map_err(Failure::system)?;
    loop {
        heard.try_iter().for_each(|event| now.add(&event));
        looked.try_iter().for_each(|jobs| last = jobs);
        let scene = scene(&now, names, &last);
        screen.draw(&scene, &mut view).map_err(Failure::system)?;
        match screen.wish(LOOK, &scene, &mut view).map_err(Failure::system)? {
            Some(ViewRequest::Leave) => return Ok(0),
            Some(ViewRequest::End(row)) => {
                let ended = jobs::end(&args.engine, row);
                view.message = ended.map_or_else(|failure| failure.message, |()| "the job is being ended".into());
            }
            Some(ViewRequest::Output(row)) => show(args, row, &mut view),
            None => {
                if let Shown::Output { task, .. } = view.shown {
                    show(args, task, &mut view);
                }
            }
            Some(_) => {}
        }
    }
}

fn show(args: &Args, row: u64, view: &mut WatchView) {
    match jobs::output(&args.engine, row, SHOWN_BYTES) {
        Ok(text) => view.output(row, text),
        Err(failure) => view.message = failure.message,
    }
}

fn scene(now: &Now, names: &[String], jobs: &Jobs) -> Scene {
    let mut hosts = now.host_states(homing_os::clock::wall_ns());
    for host in &mut hosts {
        host.running = jobs.tasks.iter().filter(|task| task.host == host.name).count();
    }
    let waiting: u64 = jobs.waits.iter().map(|waits| waits.tasks).sum();
    let known = format!("{} under way, {waiting} waiting", count(jobs.tasks.len() as u64, "job"));
    Scene {
        about: About::Hosts,
        title: names.iter().cloned().collect::<homing_model::NodeSet>().to_string(),
        progress: jobs.why.as_ref().map_or(known, |why| format!("no data on jobs: {why}")),
        hosts,
        waits: jobs.waits.clone(),
        tasks: jobs.tasks.clone(),
        is_live: true,
        ..Scene::default()
    }
}
