//! One reader and one writer thread a worker; the signals; the source. All of
//! them only move messages into the coordinator's queue, or out of it.

use crate::run::{HostPlan, Incoming};
use homing_launch::{Channel, Fate, Keeper, LaunchError, Obituary, Options};
use homing_model::HostFacts;
use homing_wire::{FromWorker, HEARTBEAT_S, ToWorker};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::thread;
use std::time::Duration;

/// Often enough to be out of the way soon, and seldom enough for a busy slurmctld.
const LOOK_AT_NODES: Duration = Duration::from_secs(10);

/// What arrives at the coordinator. `at` is the index of the host in the plan.
pub(crate) enum Arrival {
    Up {
        at: usize,
        facts: Box<HostFacts>,
        to: Sender<Vec<u8>>,
        keeper: Keeper,
    },
    Refused {
        at: usize,
        error: LaunchError,
    },
    From {
        at: usize,
        messages: Vec<FromWorker>,
    },
    Gone {
        at: usize,
        reason: String,
        fate: Option<Fate>,
    },
    Task(Box<Incoming>),
    SourceEnded,
    /// Nodes that their administrators want empty, and why.
    WantedEmpty(Vec<(String, String)>),
}

/// Opens a channel to a host in a thread of its own and keeps reading from it.
pub(crate) fn connect(at: usize, plan: HostPlan, options: Options, queue: SyncSender<Arrival>) {
    thread::spawn(move || {
        let channel = match homing_launch::open(&plan.name, &plan.via, &options) {
            Ok(channel) => channel,
            Err(error) => return drop(queue.send(Arrival::Refused { at, error })),
        };
        let Channel { facts, to, from, keeper, obituary } = channel;
        let (frames, outbox) = channel_of_frames(to);
        thread::spawn(outbox);
        let facts = Box::new(facts);
        if queue.send(Arrival::Up { at, facts, to: frames, keeper }).is_ok() {
            read(at, from, obituary, &queue);
        }
    });
}

fn read(at: usize, mut from: Box<dyn BufRead + Send>, obituary: Option<Obituary>, queue: &SyncSender<Arrival>) {
    let mut parted = false;
    let reason = loop {
        match homing_wire::receive_some(&mut from) {
            Ok(messages) if messages.is_empty() => break "its worker ended".to_string(),
            Ok(messages) => {
                parted |= messages.contains(&FromWorker::Bye);
                if queue.send(Arrival::From { at, messages }).is_err() {
                    return;
                }
            }
            Err(error) => break error.to_string(),
        }
    };
    // Here and not in the coordinator: Slurm may take seconds to answer.
    let fate = obituary.filter(|_| !parted).and_then(|o| o.read());
    let _ = queue.send(Arrival::Gone { at, reason, fate });
}

/// The writer side: frames in, and a heartbeat when there is nothing to say.
/// It runs apart from the coordinator, so that a coordinator that is held up
/// by a slow reader of its output does not look dead to its workers.
fn channel_of_frames(mut to: Box<dyn Write + Send>) -> (Sender<Vec<u8>>, impl FnOnce() + Send) {
    let (sender, receiver): (Sender<Vec<u8>>, Receiver<Vec<u8>>) = channel();
    let outbox = move || {
        let mut ping = Vec::new();
        homing_wire::encode(&ToWorker::Ping, &mut ping);
        loop {
            let frames = match receiver.recv_timeout(Duration::from_secs(HEARTBEAT_S)) {
                Ok(frames) => frames,
                Err(RecvTimeoutError::Timeout) => ping.clone(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // A broken pipe shows on the reading side, where it is reported.
            if to.write_all(&frames).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    };
    (sender, outbox)
}

/// Looks now and then whether Slurm's nodes are drained while the run is on them.
pub(crate) fn watch_nodes(names: Vec<String>, queue: SyncSender<Arrival>) {
    thread::spawn(move || {
        loop {
            thread::sleep(LOOK_AT_NODES);
            let found = homing_launch::wanted_empty(&names);
            if !found.is_empty() && queue.send(Arrival::WantedEmpty(found)).is_err() {
                return;
            }
        }
    });
}

/// Pulls tasks from their source, ahead of need by the queue's bound.
pub(crate) fn feed(
    source: Box<dyn Iterator<Item = Incoming> + Send>,
    queue: SyncSender<Arrival>,
    tickets: Receiver<()>,
    stop: Arc<AtomicBool>,
) {
    thread::spawn(move || {
        for incoming in source {
            let counts = matches!(incoming, Incoming::Task { .. });
            if stop.load(Ordering::Relaxed) || queue.send(Arrival::Task(Box::new(incoming))).is_err() {
                return;
            }
            if counts && tickets.recv().is_err() {
                return;
            }
        }
        let _ = queue.send(Arrival::SourceEnded);
    });
}
