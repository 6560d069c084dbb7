//! `homing snapshot schedule`: sets timers of systemd on one host, and takes them back.

use super::args::Schedule as Args;
use super::target::all;
use crate::cluster::ClusterArgs;
use homing_exec::{Options, Remote};
use homing_model::Failure;
use homing_snapshot::timers::{Timer, TimerHost, TimerPlan};
use homing_steps::{ChangeStep, SshExecutor, diff};
use std::path::Path;
use std::time::Duration;

/// The time limit for the units of a host. A running unit is waited for while it stops.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Sets timers, or takes them back.
pub fn run(cluster: &ClusterArgs, args: Args) -> Result<i32, Failure> {
    if !args.dry_run {
        args.consent.possible("changing timers")?;
    }
    let host = args.on.clone().unwrap_or_else(|| "localhost".into());
    let options = Options { command_timeout: Some(TIMEOUT), ..Options::default() };
    let place = TimerHost { host, executor: SshExecutor { remote: Remote::new(options), sudo: args.sudo } };
    let timers = if args.undo { Vec::new() } else { timers(cluster, args.spread)? };
    let TimerPlan { steps, changed } = place.way(&timers, args.undo)?;
    if args.dry_run {
        print_plan(&place.host, &steps);
    } else {
        let descriptions: Vec<String> = steps.iter().map(|step| step.change.description()).collect();
        if !steps.is_empty() {
            let things: String = descriptions.iter().map(|text| format!("  {text}\n")).collect();
            args.consent.confirm("changing timers", &format!("{}:\n{things}", place.host))?;
        }
        place.carry_out(steps)?;
        descriptions.iter().for_each(|text| println!("{}: {text}", place.host));
        timers.iter().for_each(|t| println!("{}: {} on {} ({}.timer)", t.vault, t.calendar, place.host, t.unit));
    }
    if changed.is_empty() {
        return Ok(0);
    }
    Err(Failure::system(format!("{}: undo incomplete: {}", place.host, changed.join("; "))))
}

/// Prints the steps that would be carried out, with the changes of files.
fn print_plan(host: &str, steps: &[ChangeStep]) {
    for step in steps {
        println!("{host}: {}", step.change.description());
        let text = diff(&step.change).unwrap_or_default();
        text.lines().for_each(|line| println!("    {line}"));
    }
    println!("{host}: nothing was changed (--dry-run)");
}

/// Returns the timers of all vaults of the cluster file that have a schedule.
fn timers(cluster: &ClusterArgs, spread: u32) -> Result<Vec<Timer>, Failure> {
    let program = crate::programs::homing().map_err(Failure::system)?;
    let program = program.to_str().ok_or_else(|| Failure::system("the path of this program is not UTF-8"))?;
    let file = cluster.own_file().map(|file| sound(&file)).transpose()?;
    Timer::of(&all(cluster)?, program, file.as_deref(), spread)
}

/// Returns the full path of the cluster file. Root will follow this file, so no other user may be able to replace it.
fn sound(file: &Path) -> Result<String, Failure> {
    let told = |why: String| Failure::usage(format!("the cluster file {}: {why}", file.display()));
    let real = file.canonicalize().map_err(|e| told(e.to_string()))?;
    let folder = real.parent().unwrap_or(Path::new("/"));
    if let Some(loose) = homing_os::folder::who_could_swap(folder).map_err(|e| told(e.to_string()))? {
        return Err(told(format!("root would follow it, but other users could replace files in {}", loose.display())));
    }
    real.to_str().map(String::from).ok_or_else(|| told("its path is not UTF-8".into()))
}
