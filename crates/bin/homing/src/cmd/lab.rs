//! `homing lab`: a cluster on one machine.

mod demo;
mod show;

use clap::Subcommand;
use homing_lab::{
    CephSpec, DiskModel, GlusterSpec, Guests, HostSystem, LabError, LabSpec, MooseSpec, NetworkSpec, NfsSpec,
    SwitchesSpec,
};
use homing_model::Failure;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::Command;

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
    /// Open a login shell on a host by ssh, or run a command line there
    Shell {
        #[command(flatten)]
        lab: Name,
        /// The host, such as n1
        host: String,
        /// A command line for the shell there, as ssh takes it
        #[arg(trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Cut the power of a host: all its processes end at once
    Off {
        #[command(flatten)]
        lab: Name,
        /// The host, such as n1
        host: String,
    },
    /// Boot a host that is off, and wait until it answers
    On {
        #[command(flatten)]
        lab: Name,
        /// The host, such as n1
        host: String,
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
    /// Take a lab down
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
    /// Rate of each host's link, such as 200mbit (default: no limit)
    #[arg(long, value_parser = homing_lab::parse_rate)]
    link: Option<u64>,
    /// Give the hosts a further network of this name: n1 is n1-NAME there, and its interface is NAME. With a rate its
    /// links are shaped, as in storage:1gbit. May be repeated
    #[arg(long, value_name = "NAME[:RATE]")]
    network: Vec<NetworkSpec>,
    /// Put the hosts in equal parts on N switches, which one more joins; they announce themselves (LLDP)
    #[arg(long, value_name = "N")]
    switches: Option<u32>,
    /// Rate of the link from each switch to the one that joins them, such as 1gbit (default: no limit)
    #[arg(long, value_name = "RATE", requires = "switches", value_parser = homing_lab::parse_rate)]
    uplink: Option<u64>,
    /// System of the hosts: this (this machine's root), bookworm or trixie (made once by debootstrap), or a folder with
    /// a whole root. Several are given to the hosts in turn
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',')]
    os: Vec<HostSystem>,
    /// Processors of each host, such as 0.5 (default: no limit)
    #[arg(long)]
    cpus: Option<f64>,
    /// Size of each host's disk at /scratch
    #[arg(long, default_value = "4G", value_parser = homing_lab::parse_size)]
    disk: u64,
    /// Kind of disk: plain (a file), hdd (one head: seeks cost time), hdd/5 (five times as slow)
    #[arg(long, default_value = "plain")]
    disk_model: DiskModel,
    /// Give each host a second, empty disk of this size at /dev/disk/by-id/lab-spare
    #[arg(long, value_name = "SIZE", value_parser = homing_lab::parse_size)]
    spare_disk: Option<u64>,
    /// Make a GlusterFS volume at /data: SETSxCOPIES such as 2x2, or replica=2
    #[arg(long, value_name = "SHAPE")]
    gluster: Option<GlusterSpec>,
    /// Make MooseFS, master on n1, at /data, with N copies
    #[arg(long, value_name = "goal=N", num_args = 0..=1, default_missing_value = "goal=2")]
    moosefs: Option<MooseSpec>,
    /// Make CephFS at /data by ceph-fuse: monitor, manager and MDS on n1, an OSD on each host, pools of N copies. With
    /// `,kernel` the last host is a guest without an OSD, whose kernel mounts it
    #[arg(long, value_name = "size=N[,kernel]", num_args = 0..=1, default_missing_value = "size=2")]
    ceph: Option<CephSpec>,
    /// Make hosts guests with kernels of their own: n1 serves NFS, the others mount it at /data, with `,rdma` by RDMA
    #[arg(long, value_name = "vers=V[,rdma]", num_args = 0..=1, default_missing_value = "vers=4.2")]
    nfs: Option<NfsSpec>,
    /// Emulation of guests: qemu (slow, runs everywhere) or uml (user-mode Linux, which computes at this machine's
    /// speed)
    #[arg(long, value_name = "qemu|uml", default_value = "qemu")]
    guests: Guests,
    /// Run Slurm: slurmctld on n1, slurmd on all; partitions lab and urgent
    #[arg(long)]
    slurm: bool,
}

/// Executes the subcommand.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Up(args) => up(args),
        Verb::Exec { lab, host, command } => exec(&lab.name, &host, command),
        Verb::Shell { lab, host, command } => shell(&lab.name, &host, command),
        Verb::Off { lab, host } => {
            let was = homing_lab::power_off(&lab.name, &host)?;
            println!("{host} of lab {} is off{}", lab.name, if was { "" } else { " already" });
            Ok(0)
        }
        Verb::On { lab, host } => {
            let was = homing_lab::power_on(&lab.name, &host)?;
            println!("{host} of lab {} is on{}", lab.name, if was { "" } else { " already" });
            Ok(0)
        }
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
        systems: args.os,
        networks: args.network,
        switches: args.switches.map(|count| SwitchesSpec { count, uplink_bits_per_s: args.uplink }),
        cpus: args.cpus,
        disk_bytes: args.disk,
        disk_model: args.disk_model,
        spare_bytes: args.spare_disk,
        gluster: args.gluster,
        moosefs: args.moosefs,
        ceph: args.ceph,
        nfs: args.nfs,
        guests: args.guests,
        slurm: args.slurm,
    };
    let plan = homing_lab::up_with(&spec, &|text| eprintln!("lab {}: {text}", spec.name))?;
    let name = &plan.spec.name;
    println!("lab {name} is up: {} (ssh -F {} n1)", plan.names(), plan.ssh_config().display());
    println!("  try: homing run --lab {name} --wd / 'hostname; echo {{}}' ::: a b c");
    println!("  or, on a host of it: homing lab shell --name {name} n1");
    Ok(0)
}

fn exec(lab: &str, host: &str, command: Vec<OsString>) -> Result<i32, Failure> {
    let mut c = homing_lab::exec(lab, host)?;
    // This process is replaced, so that signals and the exit status need no forwarding.
    let refused = c.args(command).exec();
    Err(Failure::system(format!("starting nsenter for {host} of lab {lab}: {refused}")))
}

fn shell(lab: &str, host: &str, command: Vec<OsString>) -> Result<i32, Failure> {
    let plan = homing_lab::reach(lab)?;
    let known = plan.names();
    let planned = plan.host(host).ok_or_else(|| LabError::NoHost { lab: lab.into(), host: host.into(), known });
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(plan.ssh_config()).arg(if std::io::stdin().is_terminal() { "-t" } else { "-T" });
    let refused = ssh.arg("--").arg(planned?.name()).args(command).exec();
    Err(Failure::system(format!("starting ssh to {host} of lab {lab}: {refused}")))
}

fn down(name: &str) -> Result<i32, Failure> {
    let config = homing_lab::reach(name).ok().map(|plan| plan.ssh_config());
    let was_up = homing_lab::down(name)?;
    // The kept state of its volumes must not be taken for that of a later lab with the same name.
    let kept = config.map(|config| homing_os::folder::cluster_state_of(&config)).filter(|kept| kept.exists());
    if let Some(Err(e)) = kept.as_ref().map(std::fs::remove_dir_all) {
        return Err(Failure::system(format!("lab {name} is down; removing its files failed: {e}")));
    }
    if !was_up {
        return Err(Failure::usage(format!("there is no lab {name}")).hint("homing lab list"));
    }
    println!("lab {name} is down");
    Ok(0)
}
