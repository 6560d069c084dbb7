//! `homing power`: shows which hosts are on. Switches idle hosts off and on, with the site's own commands.

mod look;
mod switch;

use crate::cluster::{Cluster, ClusterArgs, Switching};
use crate::cmd::runs::to_stdout;
use crate::cmd::targets::HostArgs;
use crate::consent::Consent;
use crate::switched::{self, PowerLedger};
use clap::Subcommand;
use homing_model::alike;
use homing_model::units::seconds as span;
use homing_model::{Failure, exit};
use homing_power::{ActivityResult, Becomes, PowerFacts, Rules, save};
use homing_queue::user_name;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Subcommand)]
enum Verb {
    /// Show which hosts are on, idle or off, and the reason why they stay on
    Status {
        #[command(flatten)]
        targets: HostArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Switch off hosts of cluster.toml that were idle for long enough; for a timer, every few minutes
    Save {
        /// List hosts that would be switched off, and switch none
        #[arg(long)]
        dry_run: bool,
    },
    /// Switch hosts off now, idle for long or not
    Off {
        /// Hosts, as a node set
        #[arg(value_name = "NODESET")]
        hosts: String,
        /// Also switch off hosts that serve others, are at work, or do not answer
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Switch hosts on, and wait until they answer
    On {
        /// Hosts, as a node set
        #[arg(value_name = "NODESET")]
        hosts: String,
        /// Do not wait
        #[arg(long)]
        no_wait: bool,
    },
}

/// Executes the subcommand.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cluster = args.cluster.load()?;
    match args.verb.unwrap_or(Verb::Status { targets: HostArgs::default(), json: false }) {
        Verb::Status { targets, json } => status(cluster, &some(targets.chosen(cluster, None)?)?, json),
        Verb::Save { dry_run } => save_power(cluster, dry_run),
        Verb::Off { hosts, force, consent } => {
            switch::off(cluster, &some(cluster.hosts(Some(&hosts))?)?, force, consent)
        }
        Verb::On { hosts, no_wait } => switch::on(cluster, &some(cluster.hosts(Some(&hosts))?)?, no_wait),
    }
}

fn some(names: Vec<String>) -> Result<Vec<String>, Failure> {
    if names.is_empty() {
        return Err(Failure::usage("no hosts are named").hint("hosts = \"n[1-4]\" in cluster.toml, or 'n[1-4]' here"));
    }
    Ok(names)
}

/// Decides about each of these hosts. The last host is switched off first, as the first host is switched on first.
fn decided(
    cluster: &Cluster,
    switching: &Switching,
    names: &[String],
    known: &mut PowerFacts,
) -> Vec<(String, Becomes)> {
    let keep = cluster.kept(&switching.keep, &homing_volume::holders(), names);
    let said: Vec<(String, ActivityResult)> = look::all(names, &keep).into_iter().rev().collect();
    let rules = Rules { keep, idle_s: switching.idle.as_secs(), load: switching.load, most_off: switching.most_off };
    let becomes = save(&rules, known, &said, switched::now_s());
    let mut all: Vec<_> = said.into_iter().map(|(host, _)| host).zip(becomes).collect();
    all.reverse();
    all
}

/// Prints the state of hosts and writes nothing. The idle times are those that `save` saw.
fn status(cluster: &Cluster, names: &[String], json: bool) -> Result<i32, Failure> {
    let switching = cluster.switching()?;
    let all = decided(cluster, &switching, names, &mut switched::all());
    to_stdout(&if json {
        homing_power::json(&all, user_name)
    } else {
        homing_power::text(&all, switching.idle, user_name)
    })?;
    Ok(if all.iter().any(|(_, one)| matches!(one, Becomes::Silent(_))) { exit::SYSTEM } else { 0 })
}

fn save_power(cluster: &Cluster, dry_run: bool) -> Result<i32, Failure> {
    let names = some(cluster.hosts(None)?)?;
    let switching = cluster.switching()?;
    // Checked before any query: a timer without a command would query hosts for ever.
    names.first().map_or(Ok(()), |host| switching.off(host).map(drop))?;
    let mut book = PowerLedger::open()?;
    let all = decided(cluster, &switching, &names, &mut book.known);
    if !dry_run {
        book.write()?;
    }
    let mut failed = Vec::new();
    for (host, one) in all.iter().rev() {
        let Becomes::SwitchedOff(for_s) = one else {
            homing_power::noteworthy(host, one, user_name).iter().for_each(|line| println!("{line}"));
            continue;
        };
        if dry_run {
            println!("{host} would be switched off: idle for {}", span(*for_s));
        } else if let Err(why) = switch::off_one(&switching, &mut book, host)? {
            failed.push((host.as_str(), why));
        } else {
            println!("{host} switched off: idle for {}", span(*for_s));
        }
    }
    let lines = alike::folded(failed.iter().map(|(host, why)| (*host, why.as_str())));
    lines.iter().for_each(|line| eprintln!("homing: {line}"));
    Ok(if failed.is_empty() { 0 } else { exit::SYSTEM })
}
