//! Samples hosts once a second, by a worker on each; no task runs there. The samples are the events of a run's
//! journal, so that one reader serves both.

use crate::cmd::asked::sampling;
use homing_launch::wire::{FromWorker, HEARTBEAT_S, ToWorker};
use homing_launch::{Channel, Options, Via};
use homing_model::Event;
use homing_model::event::EventKind;
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The interval between two samples of a host.
const SAMPLE: Duration = Duration::from_secs(1);
/// The interval between two attempts to reach a host.
const AGAIN: Duration = Duration::from_secs(10);

/// The state of a host until it answers or a reason is known.
pub const PENDING: &str = "not connected yet";

/// Begins to sample hosts. This machine, by whichever name, needs no worker. Sampling ends when the receiver is dropped.
pub fn sample(hosts: &[String]) -> std::io::Result<Receiver<Event>> {
    let (tell, heard) = channel();
    for name in hosts {
        let (tell, name) = (tell.clone(), name.clone());
        let _ = send_event(&tell, EventKind::HostLost { host: name.clone(), reason: PENDING.into() });
        homing_os::threads::begin(move || match homing_os::names::is_here(&name) {
            true => here(&name, &tell),
            false => there(&name, &tell),
        })?;
    }
    Ok(heard)
}

fn send_event(tell: &Sender<Event>, what: EventKind) -> Result<(), ()> {
    tell.send(Event { at_ns: homing_os::clock::wall_ns(), what }).map_err(drop)
}

fn here(name: &str, tell: &Sender<Event>) {
    let facts = homing_probe::facts();
    let up = EventKind::HostUp { host: name.into(), slots: facts.cores, facts };
    let mut heard = send_event(tell, up);
    while heard.is_ok() {
        heard = send_event(tell, EventKind::Sample { host: name.into(), sample: homing_probe::sample() });
        thread::sleep(SAMPLE);
    }
}

fn there(name: &str, tell: &Sender<Event>) {
    loop {
        let reason = match talk(name, tell) {
            Ok(()) => return,
            Err(reason) => reason,
        };
        if send_event(tell, EventKind::HostLost { host: name.into(), reason }).is_err() {
            return;
        }
        thread::sleep(AGAIN);
    }
}

/// Passes on samples until the receiver is dropped. If the host is lost, returns the reason.
fn talk(name: &str, tell: &Sender<Event>) -> Result<(), String> {
    let via = Via::Ssh { target: name.into() };
    let Channel { facts, mut to, mut from, keeper, .. } =
        homing_launch::open(name, &via, &Options::default()).map_err(|e| e.to_string())?;
    let begin = sampling("top", SAMPLE);
    let mut ask = |message: &ToWorker| {
        homing_launch::wire::send(&mut to, message).and_then(|()| Ok(to.flush()?)).map_err(|e| e.to_string())
    };
    let mut serve = || {
        ask(&begin)?;
        let mut asked = Instant::now();
        let mut heard =
            send_event(tell, EventKind::HostUp { host: name.into(), slots: facts.cores, facts: facts.clone() });
        while heard.is_ok() {
            match homing_launch::wire::receive(&mut from).map_err(|e| e.to_string())? {
                Some(FromWorker::Sample(sample)) => {
                    heard = send_event(tell, EventKind::Sample { host: name.into(), sample })
                }
                Some(_) => {}
                None => return Err("its worker ended".into()),
            }
            if asked.elapsed() >= Duration::from_secs(HEARTBEAT_S) {
                ask(&ToWorker::Ping)?;
                asked = Instant::now();
            }
        }
        Ok(())
    };
    let served = serve();
    keeper.end(Duration::from_secs(2));
    served
}
