//! One reader and one writer thread a worker: they only move messages.

use crate::{Channel, Fate, Keeper, LaunchError, Obituary, Options, Via};
use homing_model::HostFacts;
use homing_wire::{FromWorker, HEARTBEAT_S, ToWorker};
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

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
    /// Nothing more will come.
    Gone {
        /// For people.
        reason: String,
        /// How Slurm ended it, when it did.
        fate: Option<Fate>,
    },
}

/// Opens a channel to a host in a thread of its own and keeps reading from it,
/// until `tell` says that nobody listens any more.
pub fn attend(name: String, via: Via, options: Options, tell: impl Fn(Heard) -> bool + Send + 'static) {
    thread::spawn(move || {
        let channel = match crate::open(&name, &via, &options) {
            Ok(channel) => channel,
            Err(error) => {
                tell(Heard::Refused(error));
                return;
            }
        };
        let Channel { facts, to, from, keeper, obituary } = channel;
        let (frames, outbox) = std::sync::mpsc::channel();
        thread::spawn(move || write(to, &outbox));
        if tell(Heard::Up { facts: Box::new(facts), to: frames, keeper }) {
            read(from, obituary, tell);
        }
    });
}

fn read(mut from: Box<dyn BufRead + Send>, obituary: Option<Obituary>, tell: impl Fn(Heard) -> bool) {
    let mut parted = false;
    let reason = loop {
        match homing_wire::receive_some(&mut from) {
            Ok(messages) if messages.is_empty() => break "its worker ended".to_string(),
            Ok(messages) => {
                parted |= messages.contains(&FromWorker::Bye);
                if !tell(Heard::From(messages)) {
                    return;
                }
            }
            Err(error) => break error.to_string(),
        }
    };
    // Here and not in the coordinator: Slurm may take seconds to answer.
    let fate = obituary.filter(|_| !parted).and_then(|o| o.read());
    tell(Heard::Gone { reason, fate });
}

/// Frames, and a heartbeat when there is nothing to say. It runs apart from
/// the coordinator, so that one that is held up by a slow reader of its output
/// does not look dead to its workers.
fn write(mut to: Box<dyn Write + Send>, frames: &Receiver<Vec<u8>>) {
    let mut ping = Vec::new();
    homing_wire::encode(&ToWorker::Ping, &mut ping);
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
