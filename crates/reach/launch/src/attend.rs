//! One reader and one writer thread a worker: they only move messages.

use crate::end::Left;
use crate::keeper::Witness;
use crate::wire::{FromWorker, HEARTBEAT_S, HOST_LOST_S, ToWorker};
use crate::{Channel, Fate, HostPlan, Keeper, LaunchError, Obituary, Options, Via};
use homing_model::HostFacts;
use serde::Serialize;
use std::fmt::Debug;
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
    /// Its leader has no way to it, or was lost: it may be connected to from here. If it was up, its tasks may run until
    /// `Gone` follows, as after `Cut`.
    Astray {
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
/// until `tell` says that nobody listens any more. An error says that there is no thread for it.
pub fn attend(plan: HostPlan, options: Options, tell: impl Fn(Heard) -> bool + Send + 'static) -> io::Result<()> {
    let attended = move || match crate::open(&plan.name, &plan.via, &options) {
        Ok(channel) => carry(plan.name, &plan.via, channel, tell),
        Err(error) => drop(tell(Heard::Refused(error))),
    };
    homing_os::threads::begin(attended).map(drop)
}

/// Tells all that is heard of a worker which has said hello, until it is gone or nobody listens any more.
pub(crate) fn carry(name: String, via: &Via, channel: Channel, tell: impl Fn(Heard) -> bool) {
    let Channel { facts, to, from, keeper, obituary } = channel;
    let witness = keeper.witness();
    let (frames, outbox) = std::sync::mpsc::channel();
    if let Err(source) = homing_os::threads::begin(move || write(to, &outbox, &frame(&ToWorker::Ping))) {
        tell(Heard::Refused(LaunchError::Thread { host: name, source }));
        return;
    }
    if tell(Heard::Up { facts: Box::new(facts), to: frames, keeper }) {
        read(from, obituary, via, &witness, tell);
    }
}

fn read(
    mut from: Box<dyn BufRead + Send>,
    obituary: Option<Obituary>,
    via: &Via,
    witness: &Witness,
    tell: impl Fn(Heard) -> bool,
) {
    let mut parted = false;
    let mut heard = Instant::now();
    let broke = loop {
        match crate::wire::receive_some(&mut from) {
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
    let mut end = witness.end(via);
    if let Some(broke) = broke.filter(|_| end.left != Left::Unled) {
        end.why = broke;
    }
    let (left, reason) = (end.left, end.reason());
    // Here and not in the coordinator: Slurm may take seconds to answer.
    let fate = obituary.filter(|_| !parted).and_then(|o| o.read());
    if !parted && fate.is_none() && left != Left::Nothing {
        let reason = reason.clone();
        let told = if left == Left::Unled { Heard::Astray { reason } } else { Heard::Cut { reason } };
        if !tell(told) {
            return;
        }
        thread::sleep((heard + Duration::from_secs(HOST_LOST_S)).saturating_duration_since(Instant::now()));
    }
    tell(Heard::Gone { reason, fate });
}

/// Frames, and a heartbeat when there is nothing to say; none where that is empty. It runs apart from
/// the coordinator, so that one that is held up by a slow reader of its output
/// does not look dead to its workers.
pub(crate) fn write(mut to: impl Write, frames: &Receiver<Vec<u8>>, heartbeat: &[u8]) {
    loop {
        let bytes = match frames.recv_timeout(Duration::from_secs(HEARTBEAT_S)) {
            Ok(bytes) => bytes,
            Err(RecvTimeoutError::Timeout) => heartbeat.into(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // A broken pipe shows on the reading side, where it is reported.
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

/// A message of names and of pieces, which are short.
pub(crate) fn frame(message: &(impl Serialize + Debug)) -> Vec<u8> {
    let mut frame = Vec::new();
    crate::wire::encode(message, &mut frame).expect("names and pieces are short");
    frame
}
