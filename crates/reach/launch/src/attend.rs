//! One reader thread and one writer thread for each worker; they only move messages.

use crate::channel_child::Witness;
use crate::end::Left;
use crate::wire::{FromWorker, HEARTBEAT_S, HOST_LOST_S, ToWorker};
use crate::{BatchEnd, Channel, ChannelChild, HostPlan, LaunchError, Obituary, Options, Via};
use homing_model::HostFacts;
use serde::Serialize;
use std::fmt::Debug;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// An event of a host and its worker. The order is: up or refused, messages, gone.
pub enum HostEvent {
    /// The hello of its worker was read.
    Up {
        /// The facts about its host.
        facts: Box<HostFacts>,
        /// Frames for it; dropping this is its signal to end.
        to: Sender<Vec<u8>>,
        /// The process that carries the channel.
        keeper: ChannelChild,
    },
    /// It has no worker.
    Refused(LaunchError),
    /// At least one message.
    From(Vec<FromWorker>),
    /// The channel has ended, and it is unknown whether the tasks have. They may run until `Gone` follows, when the
    /// worker's lease is over.
    Cut {
        /// For people.
        reason: String,
    },
    /// Its leader has no way to it, or was lost: the coordinator may connect to it. If it was up, its tasks may run
    /// until `Gone` follows, as after `Cut`.
    Astray {
        /// For people.
        reason: String,
    },
    /// Last event: no task of the worker runs any more.
    Gone {
        /// For people.
        reason: String,
        /// How a batch system ended it, if it did.
        fate: Option<BatchEnd>,
    },
}

/// Opens a channel to a host in a separate thread and keeps reading from it, until the callback returns that no
/// reader is left. An error means that no thread could be started.
pub fn attend(
    plan: HostPlan,
    options: Options,
    on_event: impl Fn(HostEvent) -> bool + Send + 'static,
) -> io::Result<()> {
    let attended = move || match crate::open(&plan.name, &plan.via, &options) {
        Ok(channel) => carry(plan.name, &plan.via, channel, on_event),
        Err(error) => drop(on_event(HostEvent::Refused(error))),
    };
    homing_os::threads::begin(attended).map(drop)
}

/// Reports all events of a connected worker, until it is gone or no reader is left.
pub(crate) fn carry(name: String, via: &Via, channel: Channel, tell: impl Fn(HostEvent) -> bool) {
    let Channel { facts, to, from, keeper, obituary } = channel;
    let witness = keeper.witness();
    let (frames, outbox) = std::sync::mpsc::channel();
    if let Err(source) = homing_os::threads::begin(move || write(to, &outbox, &frame(&ToWorker::Ping))) {
        tell(HostEvent::Refused(LaunchError::Thread { host: name, source }));
        return;
    }
    if tell(HostEvent::Up { facts: Box::new(facts), to: frames, keeper }) {
        read(from, obituary, via, &witness, tell);
    }
}

fn read(
    mut from: Box<dyn BufRead + Send>,
    obituary: Option<Obituary>,
    via: &Via,
    witness: &Witness,
    tell: impl Fn(HostEvent) -> bool,
) {
    let mut parted = false;
    let mut heard = Instant::now();
    let broke = loop {
        match crate::wire::receive_some(&mut from) {
            Ok(messages) if messages.is_empty() => break None,
            Ok(messages) => {
                parted |= messages.contains(&FromWorker::Bye);
                if !tell(HostEvent::From(messages)) {
                    return;
                }
                // Taken after the callback: messages that lay unread meanwhile may include the end.
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
    // Here and not in the coordinator, since a batch system may take seconds to answer.
    let fate = obituary.filter(|_| !parted).and_then(|o| o.read());
    if !parted && fate.is_none() && left != Left::Nothing {
        let reason = reason.clone();
        let told = if left == Left::Unled { HostEvent::Astray { reason } } else { HostEvent::Cut { reason } };
        if !tell(told) {
            return;
        }
        thread::sleep((heard + Duration::from_secs(HOST_LOST_S)).saturating_duration_since(Instant::now()));
    }
    tell(HostEvent::Gone { reason, fate });
}

/// Writes frames, and `heartbeat` when there is nothing else to send; an empty one is none. Runs apart from the
/// coordinator: one that waits for a slow reader of its output must not look dead to its workers.
pub(crate) fn write(mut to: impl Write, frames: &Receiver<Vec<u8>>, heartbeat: &[u8]) {
    loop {
        let bytes = match frames.recv_timeout(Duration::from_secs(HEARTBEAT_S)) {
            Ok(bytes) => bytes,
            Err(RecvTimeoutError::Timeout) => heartbeat.into(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // A broken pipe is reported by the reading side.
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

/// Encodes a message of names or pieces, which are short.
pub(crate) fn frame(message: &(impl Serialize + Debug)) -> Vec<u8> {
    let mut frame = Vec::new();
    crate::wire::encode(message, &mut frame).expect("names and pieces are short");
    frame
}
