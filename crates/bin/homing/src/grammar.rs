//! The command line. The doc comments here and on the arguments are the help
//! text and the command reference.

use crate::cmd::{self, administration};
use clap::{Parser, Subcommand};

/// Run each command on the host that holds its data.
#[derive(Parser)]
#[command(name = "homing", version = crate::programs::version(), max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    /// The command to execute.
    pub command: Sub,
}

/// The commands.
#[derive(Subcommand)]
pub enum Sub {
    /// Run many commands, each next to its data
    Run(cmd::run::Args),
    /// Show where each task would run, and why, and run nothing
    Plan(cmd::run::Args),
    /// Continue a run that was interrupted
    Resume(cmd::resume::Args),
    /// List runs
    Runs(cmd::runs::Args),
    /// Show the evidence of a run
    Report(cmd::report::Args),
    /// Add up the resources that runs used, and their cost
    Usage(cmd::usage::Args),
    /// Show which folders runs read over the network, and the gain from more copies
    Advise(cmd::advise::Args),
    /// Show the present state of a run, or replay it
    #[command(visible_alias = "watch")]
    Top(cmd::top::Args),
    /// Submit a command, or a batch, that runs detached
    #[command(name = "sub")]
    Submit(cmd::queue::sub::Args),
    /// List submitted jobs
    Jobs(cmd::queue::jobs::Args),
    /// End submitted jobs
    Kill(cmd::queue::act::KillArgs),
    /// Show the output of a submitted job so far
    Peek(cmd::queue::act::PeekArgs),
    /// Wait for submitted jobs
    Wait(cmd::queue::act::WaitArgs),
    /// LSF's commands: bsub, bjobs, lsload and the others
    Lsf(cmd::lsf::Args),
    /// Show which hosts hold the bytes of files
    Where(cmd::whereis::Args),
    /// Show hosts and their load now
    Hosts(cmd::hosts::Args),
    /// Switch idle hosts off, and on again
    Power(administration::Power),
    /// Run one command on many hosts and gather its output
    Exec(cmd::exec::Args),
    /// Find faults of a cluster, with the commands that repair them
    Check(administration::Check),
    /// Copy files and folders to many hosts
    Push(cmd::copy::PushArgs),
    /// Fetch files and folders from many hosts, each under its host's name
    Pull(cmd::copy::Args),
    /// Fold, expand and combine node sets
    Nodeset(cmd::nodeset::Args),
    /// Run make, its recipes on the hosts of the cluster
    Make(cmd::make::Args),
    /// Run one command on the host where it ends first: CC="homing on gcc"
    On(cmd::make::on::Args),
    /// Set up hosts with ssh as a cluster, with a plan first and an undo
    Up(administration::Up),
    /// Drain a host and take it out of the cluster
    Down(administration::Down),
    /// Install packages on many hosts, with each file fetched once
    Cache(administration::Cache),
    /// Make, grow, shrink and delete volumes of GlusterFS, MooseFS and NFS
    Volume(administration::Volume),
    /// Take snapshots of folders next to their bytes, list and restore them
    Snapshot(administration::Snapshot),
    /// Measure shared folders from their clients, and the network
    Bench(administration::Bench),
    /// Try settings of the network, and keep the better ones
    Tune(administration::Tune),
    /// Show which host is on which switch
    Topology(administration::Topology),
    /// Run a cluster on one machine, for trials and tests
    Lab(administration::Lab),
    /// Print completions for a shell
    Completions(cmd::generate::Completions),
    /// Write man pages
    Man(cmd::generate::Man),
    /// Takes a terminal over from `bsub -I`
    #[command(hide = true)]
    LsfAttach(cmd::lsf::AttachArgs),
}

/// Moves make's own words of `homing make` behind homing's.
pub fn make_words_last(words: &mut Vec<std::ffi::OsString>) {
    if words.get(1).is_some_and(|w| w == "make") {
        let rest = cmd::make::own_first(words.split_off(2));
        words.extend(rest);
    }
}
