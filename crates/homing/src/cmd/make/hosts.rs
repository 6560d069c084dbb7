//! One reader and one writer thread a worker: they only move messages.

use super::asked::News;
use homing_launch::{Channel, Options, Via};
use homing_wire::{HEARTBEAT_S, ToWorker};
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// A host of the build.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As the user names it.
    pub name: String,
    /// How to reach it.
    pub via: Via,
    /// Recipes at once, when that does not follow from its cores.
    pub slots: Option<u32>,
}

/// The hosts of the user's set; this machine by its own name is a child, not an ssh.
pub fn plans(names: Vec<String>, cluster: Option<&std::path::Path>) -> Vec<Plan> {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plan = |name: String| {
        let here = name == own || own.split('.').next() == Some(name.as_str()) || name == "localhost";
        let via = if here { Via::Local } else { Via::Ssh { target: name.clone() } };
        Plan { slots: crate::hostlist::slots_of(&name, cluster), name, via }
    };
    names.into_iter().map(plan).collect()
}

/// Opens a channel in a thread of its own and keeps reading from it.
pub fn connect(at: usize, plan: Plan, news: Sender<News>) {
    thread::spawn(move || {
        let channel = match homing_launch::open(&plan.name, &plan.via, &Options::default()) {
            Ok(channel) => channel,
            Err(error) => return drop(news.send(News::Refused { at, why: error.to_string() })),
        };
        let Channel { facts, to, from, keeper, .. } = channel;
        let (frames, outbox) = std::sync::mpsc::channel();
        thread::spawn(move || write(to, &outbox));
        if news.send(News::Up { at, facts: Box::new(facts), to: frames, keeper }).is_ok() {
            read(at, from, &news);
        }
    });
}

fn read(at: usize, mut from: Box<dyn BufRead + Send>, news: &Sender<News>) {
    let why = loop {
        match homing_wire::receive_some(&mut from) {
            Ok(messages) if messages.is_empty() => break "its worker ended".to_string(),
            Ok(messages) => {
                if news.send(News::From { at, messages }).is_err() {
                    return;
                }
            }
            Err(error) => break error.to_string(),
        }
    };
    let _ = news.send(News::Gone { at, why });
}

/// A heartbeat when there is nothing else to say.
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

/// The sending half of a channel of news.
pub fn news() -> (Sender<News>, Receiver<News>) {
    channel()
}
