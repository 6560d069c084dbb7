//! Gets a worker onto a host and yields a byte channel to it.
//!
//! A channel is a child process with piped standard input and output: the
//! worker itself on this machine, or `ssh` or `srun` with the worker behind it. Messages
//! are moved between it and its owner; only the first line, the hello, is understood here.
//!
//! Main types: [`HostPlan`] is the way to a host, [`Links`] the hosts of a run, [`Attempts`] the tasks that run there,
//! [`LaunchError`] the reason why a host has no worker. [`wire`] defines the messages, their framing and the hello; a
//! leader ([`serve`]) starts workers on the hosts behind it.
//!
//! It does not: choose tasks (`dispatch`), run them (`worker`), or keep connections between commands (`exec`).

mod attempts;
mod attend;
mod bootstrap;
mod branch;
mod carrier;
mod end;
mod error;
mod guard;
mod handshake;
mod keeper;
mod links;
mod payload;
mod rouse;
mod silence;
mod slurm;
mod window;
pub mod wire;

pub use attempts::{Attempt, Attempts, MOST_LOSSES, lose};
pub use attend::{Heard, attend};
pub use branch::{LEADER, Member, WIDTH, attend_all, beside_the_tree, branches, from_here, serve};
pub use error::{LaunchError, ssh_verdict};
pub use guard::Guard;
pub use homing_slurm::Fate;
pub use keeper::Keeper;
pub use links::{HostNews, Link, Links};
pub use payload::{Carried, program_hash};
pub use rouse::{Asleep, Switch};
pub use slurm::{Obituary, SlurmSeat, Stop, wanted_empty};
pub use window::FAN_OUT;

use carrier::Carrier;
use error::verdict;
use handshake::{Ends, Progress};
use homing_model::HostFacts;
use homing_os::names::{is_ssh_target, ssh_words};
use payload::Payload;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use window::Place;

/// The way to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// A child of this process.
    Local,
    /// OpenSSH, with the user's own configuration, keys and jump hosts.
    Ssh {
        /// What `ssh` is given: a host, an alias of its configuration, or `user@host`.
        target: String,
    },
    /// A Slurm job or step of its own, through `srun`.
    Slurm(Box<SlurmSeat>),
}

/// A host to use.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// As the user names it.
    pub name: String,
    /// How to reach it.
    pub via: Via,
    /// Slots, when they do not follow from its cores.
    pub slots: Option<u32>,
}

impl HostPlan {
    /// A host by its name; this machine by its own name is a child, not an ssh.
    pub fn named(name: String, slots: Option<u32>) -> HostPlan {
        let via = if homing_os::names::is_here(&name) { Via::Local } else { Via::Ssh { target: name.clone() } };
        HostPlan { name, via, slots }
    }
}

/// What all channels of a run share.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that is the worker, started as `EXE worker`.
    pub exe: PathBuf,
    /// `ssh` and options that precede ours, so that they win over ours.
    pub ssh: Vec<OsString>,
    /// Seconds that ssh may take to connect; also, with some reserve, the
    /// longest silence that is borne before the hello.
    pub connect_timeout_s: u32,
    /// The word that the program is started with, a plain one: what speaks on the channel after the hello.
    pub role: &'static str,
    /// A worker that is a child of this process has a lease, too: the coordinator is another process elsewhere.
    pub leased: bool,
    /// What a host is sent that does not have it: `role` says what is needed there.
    pub carried: Carried,
    /// Hosts that are switched off, by name: they are switched on when they are connected to.
    pub asleep: Arc<HashMap<String, Asleep>>,
    /// `ssh` and options for a target to which a connection is kept, asked for when it is that one's turn.
    pub kept: fn(&str) -> Option<Vec<OsString>>,
}

/// The role of a worker.
pub const WORKER: &str = "worker";

impl Default for Options {
    /// This very program, and the `ssh` of `HOMING_SSH` (words quoted as in a shell).
    fn default() -> Self {
        Options {
            exe: own_executable(),
            ssh: ssh_words(),
            connect_timeout_s: 10,
            role: WORKER,
            leased: false,
            carried: Carried::Worker,
            asleep: Arc::default(),
            kept: |_| None,
        }
    }
}

impl Options {
    /// How long a host, or a leader of hosts that are awaited, may be silent.
    fn patience(&self) -> Duration {
        Duration::from_secs(u64::from(self.connect_timeout_s) + 20)
    }

    /// What machines as this one are sent.
    fn payload(&self) -> Result<Arc<Payload>, LaunchError> {
        let path = payload::beside(&self.exe, payload::OWN_ARCH, self.carried).unwrap_or_else(|none| none.first);
        payload::load(&path).map_err(|source| LaunchError::Executable { path, source })
    }
}

/// Refuses what ssh would not take for a host.
pub fn check_target(host: &str, target: &str) -> Result<(), LaunchError> {
    match is_ssh_target(target) {
        true => Ok(()),
        false => Err(LaunchError::BadTarget { host: host.into(), target: target.into() }),
    }
}

/// A program that was replaced on disk while it runs has no path any more,
/// but can still be started and read through `/proc`.
fn own_executable() -> PathBuf {
    let link = PathBuf::from("/proc/self/exe");
    match std::fs::read_link(&link) {
        Ok(path) if path.exists() => path,
        _ => link,
    }
}

/// A worker that has said hello.
pub struct Channel {
    /// What it told of its host.
    pub facts: HostFacts,
    /// To the worker; dropping it is the worker's signal to end.
    pub to: Box<dyn Write + Send>,
    /// From the worker, right behind the hello.
    pub from: Box<dyn BufRead + Send>,
    /// Ends what carries the channel.
    pub keeper: Keeper,
    /// Tells how Slurm ended it, where Slurm carries it.
    pub obituary: Option<Obituary>,
}

impl Channel {
    fn of(facts: HostFacts, ends: Ends, carrier: Carrier, obituary: Option<Obituary>) -> Channel {
        Channel { facts, to: Box::new(ends.to), from: Box::new(ends.from), keeper: carrier.into(), obituary }
    }
}

/// Starts a worker on `host`, copying it there first when it is missing, and
/// blocks until its hello was read. Silence ends the attempt; a slow but
/// steady copy does not. One that is switched off is switched on, and waited for. Where many hosts are opened at once,
/// some wait until others are connected to.
pub fn open(host: &str, via: &Via, options: &Options) -> Result<Channel, LaunchError> {
    match options.asleep.get(host).filter(|_| *via != Via::Local) {
        Some(asleep) => rouse::rouse(host, asleep, || open_one(host, via, options)),
        None => open_one(host, via, options),
    }
}

fn open_one(host: &str, via: &Via, options: &Options) -> Result<Channel, LaunchError> {
    match via {
        Via::Local => open_child(host, None, options),
        Via::Ssh { target } => open_child(host, Some(target), options),
        Via::Slurm(seat) => slurm::open(host, seat, options),
    }
}

/// The worker itself as a child of this process, or ssh to that target, when it is its turn. Apart from the other ways, none of which leads
/// from a leader: the worker alone, which is one too, is smaller without them.
pub(crate) fn open_child(host: &str, target: Option<&str>, options: &Options) -> Result<Channel, LaunchError> {
    // A child of ours needs no network.
    let _place = target.map(|_| Place::wait_for());
    let (mut command, payload) = match target {
        None => (local_command(options), None),
        Some(target) => {
            let payload = options.payload()?;
            (ssh_command(host, target, options, &payload)?, Some(payload))
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C at the terminal is the coordinator's to interpret: it must not reach the channel.
    command.process_group(0);
    homing_os::process::give_back_files(&mut command);
    let mut child = command.spawn().map_err(|source| LaunchError::Start {
        host: host.into(),
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    let ends = Ends::take_from(&mut child);
    // Killed, a guard would leave its worker unguarded.
    let carrier = if target.is_none() { Carrier::polite(child) } else { Carrier::new(child) };
    let reports = conversed(host, ends, payload, options)?;
    let patience = options.patience();
    let failure = loop {
        match reports.recv_timeout(patience) {
            Ok(Progress::Alive | Progress::Job(_)) => {}
            Ok(Progress::Hello { facts, ends }) => return Ok(Channel::of(*facts, ends, carrier, None)),
            Ok(Progress::Failed(failure)) => break failure,
            Err(RecvTimeoutError::Timeout) => break handshake::Failure::Silent(patience),
            // The thread ends only after a last report, unless it panicked.
            Err(RecvTimeoutError::Disconnected) => break handshake::Failure::Ended,
        }
    };
    Err(verdict(host, failure, carrier))
}

/// Talks with the far side up to its hello, in a thread of its own.
fn conversed(
    host: &str,
    ends: Ends,
    payload: Option<Arc<Payload>>,
    options: &Options,
) -> Result<Receiver<Progress>, LaunchError> {
    let (progress, reports) = mpsc::channel();
    let carried = options.carried;
    let talk = move || handshake::run(ends, payload, carried, &progress);
    homing_os::threads::begin(talk).map_err(|source| LaunchError::Thread { host: host.into(), source })?;
    Ok(reports)
}

fn local_command(options: &Options) -> Command {
    let mut command = Command::new(&options.exe);
    command.arg(options.role);
    if options.role == WORKER && !options.leased {
        command.arg(crate::wire::CHILD);
    }
    command
}

fn ssh_command(host: &str, target: &str, options: &Options, payload: &Payload) -> Result<Command, LaunchError> {
    check_target(host, target)?;
    let words = (options.kept)(target).unwrap_or_else(|| options.ssh.clone());
    let (program, extra) = match words.split_first() {
        Some((program, extra)) => (program.clone(), extra),
        None => (OsString::from("ssh"), &[][..]),
    };
    let mut command = Command::new(program);
    command.args(extra).args(homing_os::names::SSH_PLAIN).args(["-o", "BatchMode=yes", "-o"]);
    command.arg(format!("ConnectTimeout={}", options.connect_timeout_s.max(1)));
    command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4", "--", target]);
    command.arg(bootstrap::remote_command(payload, options.role));
    Ok(command)
}
