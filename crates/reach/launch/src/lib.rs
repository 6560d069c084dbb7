//! Starts a worker on a host and yields a byte channel to it.
//!
//! A channel is a child process with piped standard input and output. It is the worker itself on this machine, or
//! `ssh` or `srun` with the worker behind it. This crate moves messages between the channel and its owner. It parses
//! only the first line, the hello.
//!
//! Main types: [`HostPlan`] is the way to a host, [`HostLinks`] the hosts of a run. [`Attempts`] are the tasks that run
//! there, [`LaunchError`] is the reason why a host has no worker. [`wire`] defines the messages, their framing and
//! the hello. A leader ([`serve`]) starts workers on the hosts behind it.
//!
//! If a channel breaks, its host counts as lost. The worker there ends itself with all its tasks when its lease is over
//! ([`wire::WORKER_LEASE_S`]), so that no task runs twice.
//!
//! It does not: choose tasks (`dispatch`), run them (`worker`), or keep connections between commands (`exec`).

mod attempts;
mod attend;
mod batch;
mod bootstrap;
mod branch;
mod carrier;
mod channel_child;
mod end;
mod error;
mod guard;
mod handshake;
mod links;
mod payload;
mod resolve;
mod rouse;
mod silence;
mod window;
pub mod wire;

pub use attempts::{Attempt, Attempts, MOST_LOSSES, lose};
pub use attend::{HostEvent, attend};
pub use batch::{BatchSeat, Obituary, Stop};
pub use branch::{BranchMember, LEADER, WIDTH, attend_all, beside_the_tree, branches, from_here, serve};
pub use channel_child::ChannelChild;
pub use error::{LaunchError, ssh_verdict};
pub use guard::Guard;
pub use homing_scheduler::BatchEnd;
use homing_scheduler::System;
pub use links::{HostLink, HostLinks, HostNews};
pub use payload::{Carried, program_hash};
pub use resolve::refuse_unknown;
pub use rouse::{Asleep, SwitchCommand};
pub use window::FAN_OUT;

use carrier::Carrier;
use error::verdict;
use handshake::{ChildPipes, HandshakeProgress};
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
use window::FanOutSlot;

/// The way to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// A child of this process.
    Local,
    /// OpenSSH, with the user's own configuration, keys and jump hosts.
    Ssh {
        /// The destination for `ssh`: a host, an alias of its configuration, or `user@host`.
        target: String,
    },
    /// A job of a batch system, or a part of the job around this process.
    Batch(Box<BatchSeat>),
}

/// A host to use.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// The name that the user gave it.
    pub name: String,
    /// The way to reach it.
    pub via: Via,
    /// The number of slots, unless it follows from its cores.
    pub slots: Option<u32>,
}

impl HostPlan {
    /// Returns the plan for a host by its name. A host with the name of this machine becomes a child process, without
    /// ssh.
    pub fn named(name: String, slots: Option<u32>) -> HostPlan {
        let via = if homing_os::names::is_here(&name) { Via::Local } else { Via::Ssh { target: name.clone() } };
        HostPlan { name, via, slots }
    }

    /// Returns the batch system that grants it; `None` for a host that needs no grant.
    pub fn system(&self) -> Option<System> {
        if let Via::Batch(seat) = &self.via { Some(seat.system) } else { None }
    }
}

/// The settings that all channels of a run share.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that is the worker, started as `EXE worker`.
    pub exe: PathBuf,
    /// `ssh` and options of the user. They precede the options added here, and therefore take precedence.
    pub ssh: Vec<OsString>,
    /// Seconds that ssh may take to connect. The longest silence before the hello is this value plus 20 s.
    pub connect_timeout_s: u32,
    /// The plain word with which the program is started. It decides which protocol follows the hello.
    pub role: &'static str,
    /// Whether a worker that is a child of this process has a lease, too: its coordinator is a process on another
    /// machine.
    pub leased: bool,
    /// The program that is copied to a host without it; `role` decides which one is needed there.
    pub carried: Carried,
    /// Hosts that are switched off, by name. They are switched on when a connection to them is wanted.
    pub asleep: Arc<HashMap<String, Asleep>>,
    /// Returns `ssh` and options for a target to which a connection is kept. Called when it is that target's turn.
    pub kept: fn(&str) -> Option<Vec<OsString>>,
}

/// The role of a worker.
pub const WORKER: &str = "worker";

impl Default for Options {
    /// This program, and the `ssh` of `HOMING_SSH` (words quoted as in a shell).
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
    /// Returns how long a host, or a leader of hosts that are awaited, may be silent.
    fn patience(&self) -> Duration {
        Duration::from_secs(u64::from(self.connect_timeout_s) + 20)
    }

    /// Returns the program that is copied to machines of the same architecture as this one.
    fn payload(&self) -> Result<Arc<Payload>, LaunchError> {
        let path = payload::beside(&self.exe, payload::OWN_ARCH, self.carried).unwrap_or_else(|none| none.first);
        payload::load(&path).map_err(|source| LaunchError::Executable { path, source })
    }
}

/// Refuses a target that ssh would not take for a host.
pub fn check_target(host: &str, target: &str) -> Result<(), LaunchError> {
    match is_ssh_target(target) {
        true => Ok(()),
        false => Err(LaunchError::BadTarget { host: host.into(), target: target.into() }),
    }
}

/// Returns the path of this program. A program that was replaced on disk while it runs has no path any more, but can
/// still be started and read through `/proc`.
fn own_executable() -> PathBuf {
    let link = PathBuf::from("/proc/self/exe");
    match std::fs::read_link(&link) {
        Ok(path) if path.exists() => path,
        _ => link,
    }
}

/// A channel to a worker whose hello was read.
pub struct Channel {
    /// The facts about its host, from the hello.
    pub facts: HostFacts,
    /// The input of the worker; dropping it is the signal to end.
    pub to: Box<dyn Write + Send>,
    /// The output of the worker, right behind the hello.
    pub from: Box<dyn BufRead + Send>,
    /// Handle of the process behind the channel; it ends that process.
    pub keeper: ChannelChild,
    /// Reports how a batch system ended the worker, for a channel through it.
    pub obituary: Option<Obituary>,
}

impl Channel {
    fn of(facts: HostFacts, ends: ChildPipes, carrier: Carrier, obituary: Option<Obituary>) -> Channel {
        Channel { facts, to: Box::new(ends.to), from: Box::new(ends.from), keeper: carrier.into(), obituary }
    }
}

/// Starts a worker on `host` and blocks until its hello was read. Copies the program there first when it is missing.
///
/// Silence ends the attempt; a slow but steady copy does not. A host that is switched off is switched on, and this
/// waits for it. At most [`FAN_OUT`] connections over ssh are opened at once; further calls wait.
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
        Via::Batch(seat) => batch::open(host, seat, options),
    }
}

/// Starts the worker as a child of this process, or over ssh to `target` when it is its turn. Separate from batch systems and
/// from switching on, which a leader never uses: the worker program, which can lead, is smaller without them.
pub(crate) fn open_child(host: &str, target: Option<&str>, options: &Options) -> Result<Channel, LaunchError> {
    // A child on this machine needs no network, and therefore no place.
    let _place = target.map(|_| FanOutSlot::wait_for());
    let (mut command, payload) = match target {
        None => (local_command(options), None),
        Some(target) => {
            let payload = options.payload()?;
            (ssh_command(host, target, options, &payload)?, Some(payload))
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The coordinator handles Ctrl-C at the terminal: the signal must not reach the channel.
    command.process_group(0);
    homing_os::process::give_back_files(&mut command);
    let mut child = command.spawn().map_err(|source| LaunchError::Start {
        host: host.into(),
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    let ends = ChildPipes::take_from(&mut child);
    // A guard that is killed at once would leave its worker unguarded.
    let carrier = if target.is_none() { Carrier::polite(child) } else { Carrier::new(child) };
    let reports = conversed(host, ends, payload, options)?;
    let patience = options.patience();
    let failure = loop {
        match reports.recv_timeout(patience) {
            Ok(HandshakeProgress::Alive | HandshakeProgress::Job(_)) => {}
            Ok(HandshakeProgress::Hello { facts, ends }) => return Ok(Channel::of(*facts, ends, carrier, None)),
            Ok(HandshakeProgress::Failed(failure)) => break failure,
            Err(RecvTimeoutError::Timeout) => break handshake::Failure::Silent(patience),
            // The thread sends a last report before it ends, unless it panicked.
            Err(RecvTimeoutError::Disconnected) => break handshake::Failure::Ended,
        }
    };
    Err(verdict(host, failure, carrier))
}

/// Runs the exchange with the far side up to its hello in a separate thread, and returns the receiver of its reports.
fn conversed(
    host: &str,
    ends: ChildPipes,
    payload: Option<Arc<Payload>>,
    options: &Options,
) -> Result<Receiver<HandshakeProgress>, LaunchError> {
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
