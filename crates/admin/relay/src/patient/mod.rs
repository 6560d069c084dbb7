//! Runs one command on all hosts, and waits for silent ones no longer than the deadline.

mod hearing;
#[cfg(test)]
mod tests;

pub use hearing::QueryState;

use crate::Passed;
use hearing::{Hearing, QueryRoute};
use homing_exec::{Command, Giver, HostEventKind, HostProgress, Note, Options, PoolEvents, Remote};
use homing_model::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval of reports to the watcher while nothing happens.
const TOLD: Duration = Duration::from_millis(300);

/// Receives the results so far, and how long homing still waits for hosts, again and again.
pub type Watcher<'a> = dyn FnMut(&[QueryState], Duration) + 'a;

/// Runs a command that may be started twice. Threads talk to the hosts, and are left behind if some do not answer.
pub fn patiently(
    options: Options,
    hosts: &[String],
    command: &Command,
    deadline: Duration,
    note: &Note,
    watcher: &mut Watcher,
) -> Result<Vec<QueryState>, Failure> {
    let mut hearing = Hearing::new(hosts.len(), leaders(hosts, options.tree), deadline, Instant::now());
    let (to, events) = channel();
    let asked = QueryContext { hosts, command, note, to, stop: Arc::default() };
    let straight = Options { tree: 0, ..options.clone() };
    let mut threads = vec![asked.begin(options, (0..hosts.len()).collect(), QueryRoute::First)?];
    while !hearing.has_ended() {
        let left = hearing.left(Instant::now());
        match events.recv_timeout(left.min(TOLD)) {
            Ok((way, at, event)) => {
                let is_end = matches!(event.what, HostEventKind::Done(..));
                hearing.record_event(way, at, event, Instant::now());
                if is_end {
                    watcher(&hearing.states, hearing.left(Instant::now()));
                }
            }
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => watcher(&hearing.states, left),
            Err(_) => break,
        }
        let more = hearing.take_quiet(Instant::now());
        if !more.is_empty() {
            threads.push(asked.begin(straight.clone(), more, QueryRoute::Besides)?);
        }
    }
    asked.stop.store(true, Ordering::Relaxed);
    // If all have ended, connections that are not to be kept are closed before this returns.
    if hearing.has_ended() {
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
    let served: Vec<String> = hearing.served_besides().map(|host| hosts[host].clone()).collect();
    if !served.is_empty() {
        note(&homing_launch::from_here("served", served, "their leader did not report on them in time"));
    }
    Ok(hearing.states)
}

/// Returns the hosts that lead others.
fn leaders(hosts: &[String], width: usize) -> Vec<usize> {
    let far: Vec<usize> = (0..hosts.len()).filter(|host| !homing_os::names::is_here(&hosts[*host])).collect();
    homing_launch::branches(far.len(), width).into_iter().map(|branch| far[branch.start]).collect()
}

/// The command and its hosts.
struct QueryContext<'a> {
    hosts: &'a [String],
    command: &'a Command,
    note: &'a Note,
    to: Sender<(QueryRoute, f64, HostProgress)>,
    /// Whether the receiver is gone.
    stop: Arc<AtomicBool>,
}

impl QueryContext<'_> {
    /// Queries some hosts, in a thread that ends with them, or when it is to stop.
    fn begin(&self, options: Options, of: Vec<usize>, way: QueryRoute) -> Result<JoinHandle<()>, Failure> {
        let names: Vec<String> = of.iter().map(|host| self.hosts[*host].clone()).collect();
        let errand = Passed::Run { command: self.command.clone(), again: true };
        let (note, to, stop) = (self.note.clone(), self.to.clone(), self.stop.clone());
        let ask = move || {
            let stream = Remote::new(options).stream_tree(&names, errand, note);
            pass(stream, &stop, |event| {
                to.send((way, homing_os::clock::system_s(), HostProgress { host: of[event.host], ..event })).is_ok()
            });
        };
        homing_os::threads::begin(ask).map_err(Failure::system)
    }
}

/// Passes events on until the receiver is gone.
fn pass(mut stream: PoolEvents, stop: &AtomicBool, to: impl Fn(HostProgress) -> bool) {
    while !stop.load(Ordering::Relaxed) {
        match stream.next_within(TOLD) {
            Err(_) => {}
            Ok(Some(event)) => {
                if event.giver != Giver::Load && !to(event) {
                    return;
                }
            }
            Ok(None) => return,
        }
    }
}
