//! `homing lab`: a cluster on one machine.

mod demo;
mod show;

use crate::failure::Failure;
use clap::Subcommand;
use homing_lab::{DiskModel, GlusterSpec, Guests, LabError, LabSpec, MooseSpec, NfsSpec};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Raise hosts n1 to nN and wait until they answer
    Up(UpArgs),
    /// Run a command on a host as root, with its input, output and exit status
    Exec {
        #[command(flatten)]
        lab: Name,
        /// The host, such as n1
        host: String,
        /// Program and arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Show the hosts: address, state, bytes over their links
    Status {
        #[command(flatten)]
        lab: Name,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the labs of this machine
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a lab down, whatever is left of it
    Down {
        #[command(flatten)]
        lab: Name,
    },
    /// Run the same batch over a GlusterFS volume twice: placed in turn, then next to the data
    Demo(demo::DemoArgs),
}

#[derive(clap::Args)]
struct Name {
    /// Name of the lab; several may be up at once
    #[arg(long, default_value = "lab")]
    name: String,
}

#[derive(clap::Args)]
struct UpArgs {
    #[command(flatten)]
    lab: Name,
    /// Number of hosts
    #[arg(long, default_value_t = 4)]
    hosts: u32,
    /// Rate of each host's link, such as 200mbit; not limited when left out
    #[arg(long, value_parser = homing_lab::parse_rate)]
    link: Option<u64>,
    /// Processors of each host, such as 0.5; not limited when left out
    #[arg(long)]
    cpus: Option<f64>,
    /// Size of each host's disk at /scratch
    #[arg(long, default_value = "4G", value_parser = homing_lab::parse_size)]
    disk: u64,
    /// What the disk is like: plain (a file), hdd (one head: seeks cost time)
    #[arg(long, default_value = "plain")]
    disk_model: DiskModel,
    /// Make a GlusterFS volume at /data: SETSxCOPIES such as 2x2, or replica=2
    #[arg(long, value_name = "SHAPE")]
    gluster: Option<GlusterSpec>,
    /// Make MooseFS, master on n1, at /data, with so many copies
    #[arg(long, value_name = "goal=N", num_args = 0..=1, default_missing_value = "goal=2")]
    moosefs: Option<MooseSpec>,
    /// Make hosts guests with kernels of their own: n1 serves NFS, the others mount it at /data
    #[arg(long, value_name = "vers=V", num_args = 0..=1, default_missing_value = "vers=4.2")]
    nfs: Option<NfsSpec>,
    /// What guests run on: qemu (emulated, slow, runs everywhere) or uml (user-mode Linux, which
    /// computes at this machine's speed)
    #[arg(long, value_name = "qemu|uml", default_value = "qemu")]
    guests: Guests,
    /// Run Slurm: slurmctld on n1, slurmd on all; partitions lab and urgent
    #[arg(long)]
    slurm: bool,
}

/// Runs it.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Up(args) => up(args),
        Verb::Exec { lab, host, command } => exec(&lab.name, &host, command),
        Verb::Status { lab, json } => show::status(&lab.name, json),
        Verb::List { json } => show::list(json),
        Verb::Down { lab } => down(&lab.name),
        Verb::Demo(args) => demo::run(args),
    }
}

fn up(args: UpArgs) -> Result<i32, Failure> {
    let spec = LabSpec {
        name: args.lab.name,
        hosts: args.hosts,
        link_bits_per_s: args.link,
        cpus: args.cpus,
        disk_bytes: args.disk,
        disk_model: args.disk_model,
        gluster: args.gluster,
        moosefs: args.moosefs,
        nfs: args.nfs,
        guests: args.guests,
        slurm: args.slurm,
    };
    let plan = homing_lab::up(&spec).map_err(failure)?;
    let (names, config) = (plan.names(), plan.ssh_config());
    println!("lab {} is up: {names} (ssh -F {} n1)", plan.spec.name, config.display());
    println!(
        "  try: HOMING_SSH='ssh -F {}' homing run --hosts '{names}' 'hostname; echo {{}}' ::: a b c",
        config.display()
    );
    Ok(0)
}

fn exec(lab: &str, host: &str, command: Vec<OsString>) -> Result<i32, Failure> {
    let mut c = homing_lab::exec(lab, host).map_err(failure)?;
    // Replaced, not waited for: signals and the exit status need no passing on.
    let refused = c.args(command).exec();
    Err(Failure::system(format!("starting nsenter for {host} of lab {lab}: {refused}")))
}

fn down(name: &str) -> Result<i32, Failure> {
    match homing_lab::down(name).map_err(failure)? {
        true => println!("lab {name} is down"),
        false => println!("no lab named {name} was up; nothing of it is left"),
    }
    Ok(0)
}

/// Mistakes of the caller end with another status than failures of the machine.
fn failure(e: LabError) -> Failure {
    match &e {
        LabError::Down(name) => {
            let failure = Failure::usage(&e);
            failure.hint(format!("homing lab up --name {name}"))
        }
        LabError::NotRoot => Failure::usage(&e).hint("sudo homing lab ..."),
        LabError::Up(name) => {
            let failure = Failure::usage(&e);
            failure.hint(format!("homing lab status --name {name}"))
        }
        LabError::Request(_) | LabError::NoHost { .. } | LabError::Stale { .. } => Failure::usage(e),
        _ => Failure::system(e),
    }
}
