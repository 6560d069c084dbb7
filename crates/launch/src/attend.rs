//! One reader and one writer thread a worker: they only move messages.

use crate::keeper::Witness;
use crate::window::Place;
use crate::{Channel, Fate, Keeper, LaunchError, Obituary, Options, Via};
use homing_model::HostFacts;
use homing_wire::{ALL_ENDED, FromWorker, HEARTBEAT_S, HOST_LOST_S, ToWorker};
use rustix::process::WaitIdStatus;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// What is to be known of a host and its worker, in this order: up or refused,
/// messages, gone.
pub enum Heard {
    /// Its worker has said hello.
    Up {
        /// What it told of its host.
        facts: Box<HostFacts>,
        /// Frames for it; dropping this is its signal to end.
        to: Sender<Vec<u8>>,
        /// The process that carries the channel.
        keeper: Keeper,
    },
    /// There is no worker there.
    Refused(LaunchError),
    /// At least one message.
    From(Vec<FromWorker>),
    /// The channel has ended and nobody has said what became of the tasks: they
    /// may run until `Gone` follows, when the worker's lease is over.
    Cut {
        /// For people.
        reason: String,
    },
    /// Nothing more will come, and nothing of the worker's runs any more.
    Gone {
        /// For people.
        reason: String,
        /// How Slurm ended it, when it did.
        fate: Option<Fate>,
    },
}

/// Opens a channel to a host in a thread of its own and keeps reading from it,
/// until `tell` says that nobody listens any more. Where there are many hosts, some wait until others are
/// connected to; `options` is called when it is this one's turn. An error says that there is no thread for it.
pub fn attend(
    name: String,
    via: Via,
    options: impl FnOnce() -> Options + Send + 'static,
    tell: impl Fn(Heard) -> bool + Send + 'static,
) -> io::Result<()> {
    let attended = move || {
        // What Slurm grants may come in an hour, and a child of ours needs no network.
        let place = matches!(via, Via::Ssh { .. }).then(Place::wait_for);
        let opened = crate::open(&name, &via, &options());
        drop(place);
        let channel = match opened {
            Ok(channel) => channel,
            Err(error) => {
                tell(Heard::Refused(error));
                return;
            }
        };
        let Channel { facts, to, from, keeper, obituary } = channel;
        let witness = Witness::of(&keeper);
        let (frames, outbox) = std::sync::mpsc::channel();
        if let Err(source) = homing_threads::begin(move || write(to, &outbox)) {
            tell(Heard::Refused(LaunchError::Thread { host: name, source }));
            return;
        }
        if tell(Heard::Up { facts: Box::new(facts), to: frames, keeper }) {
            read(from, obituary, &via, witness, tell);
        }
    };
    homing_threads::begin(attended).map(drop)
}

fn read(
    mut from: Box<dyn BufRead + Send>,
    obituary: Option<Obituary>,
    via: &Via,
    witness: Witness,
    tell: impl Fn(Heard) -> bool,
) {
    let mut parted = false;
    let mut heard = Instant::now();
    let broke = loop {
        match homing_wire::receive_some(&mut from) {
            Ok(messages) if messages.is_empty() => break None,
            Ok(messages) => {
                parted |= messages.contains(&FromWorker::Bye);
                if !tell(Heard::From(messages)) {
                    return;
                }
                // What lay unread meanwhile may have been the end.
                heard = Instant::now();
            }
            Err(error) => break Some(error.to_string()),
        }
    };
    let status = witness.status();
    let broke = broke.unwrap_or_else(|| why_ended(via, status.as_ref()));
    let reason = match witness.last_line() {
        Some(said) => format!("{broke} ({said})"),
        None => broke,
    };
    // Here and not in the coordinator: Slurm may take seconds to answer.
    let fate = obituary.filter(|_| !parted).and_then(|o| o.read());
    if !parted && fate.is_none() && !is_word_of_guard(status.as_ref()) {
        if !tell(Heard::Cut { reason: reason.clone() }) {
            return;
        }
        thread::sleep((heard + Duration::from_secs(HOST_LOST_S)).saturating_duration_since(Instant::now()));
    }
    tell(Heard::Gone { reason, fate });
}

/// What is known of the end of a worker that said nothing of it, from the end of the process that carried it.
fn why_ended(via: &Via, status: Option<&WaitIdStatus>) -> String {
    let signal = status.and_then(WaitIdStatus::terminating_signal);
    let exit = status.and_then(WaitIdStatus::exit_status);
    match (via, signal, exit) {
        (Via::Local, Some(signal), _) => format!("the guard of its worker was killed by signal {signal}"),
        (_, Some(signal), _) => format!("the process that carries the link to it was killed by signal {signal}"),
        (Via::Ssh { .. }, None, Some(255)) => "the link to it was lost, or its worker was killed".into(),
        (_, None, Some(exit)) if exit != ALL_ENDED => format!("its worker ended with status {exit}"),
        (_, None, _) => "its worker ended".into(),
    }
}

/// Whether the channel's process ended with a status by which the worker's guard says that nothing is left.
fn is_word_of_guard(status: Option<&WaitIdStatus>) -> bool {
    matches!(status.and_then(WaitIdStatus::exit_status), Some(0 | ALL_ENDED))
}

/// Frames, and a heartbeat when there is nothing to say. It runs apart from
/// the coordinator, so that one that is held up by a slow reader of its output
/// does not look dead to its workers.
fn write(mut to: Box<dyn Write + Send>, frames: &Receiver<Vec<u8>>) {
    let mut ping = Vec::new();
    homing_wire::encode(&ToWorker::Ping, &mut ping).expect("a message without a list");
    loop {
        let bytes = match frames.recv_timeout(Duration::from_secs(HEARTBEAT_S)) {
            Ok(bytes) => bytes,
            Err(RecvTimeoutError::Timeout) => ping.clone(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // A broken pipe shows on the reading side, where it is reported.
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
