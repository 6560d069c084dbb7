//! Errands along a tree of hosts. This machine gives a few hosts the data of an errand. Each of these leads a branch,
//! to which it passes the data on over its own ssh. A leader is this same program and runs while its channel is open.
//! This machine serves the hosts that are not served along the tree.

mod at_work;
mod branch;
mod lead;
mod serve;
mod words;

pub use homing_launch::WIDTH;
pub use serve::serve;

use crate::pool::{Giver, HostEventKind, HostProgress, NoEvent, PIECES, PoolEvents};
use crate::wait::{Cancel, Woken, ready};
use crate::{CommandOutcome, InputSpool, Remote};
use homing_os::names::is_here;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The argument that starts a leader's end.
pub const WORD: &str = "tree-host";

/// Interval at which a thread checks whether the work was cancelled.
const LOOK: Duration = Duration::from_millis(200);

/// The work on each host, and the way in which a leader gets its data.
pub trait Errand: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Begins it on these hosts from this machine.
    fn begin(&self, remote: &Remote, hosts: &[String]) -> PoolEvents;

    /// Puts its data into a folder of the leader.
    fn load(&self, _: &Remote, _leader: &str, _folder: &str) -> PoolEvents {
        PoolEvents::nothing()
    }

    /// Returns the errand for these hosts only, which is sent to their leader.
    fn only(&self, _hosts: &[String]) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Whether a leader does not serve its own host: the machine above serves it, too.
    fn spares_leaders(&self) -> bool {
        false
    }

    /// Returns the standard input of all hosts, which leaders are sent as it comes.
    fn input(&self) -> Option<Arc<InputSpool>> {
        None
    }

    /// Returns the errand as the leader runs it, with its data in that folder and the hosts' standard input in its
    /// own spool.
    fn from(&self, folder: &str, input: Option<Arc<InputSpool>>) -> Self;

    /// Whether it may begin again on hosts where its progress is unknown.
    fn can_be_repeated(&self) -> bool {
        true
    }

    /// Whether another way to the host may give a better outcome.
    fn is_open(&self, outcome: &CommandOutcome) -> bool {
        matches!(outcome, CommandOutcome::Unreachable(_) | CommandOutcome::Lost(_))
    }
}

/// Receives a line for the user: which hosts were not served along the tree.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

impl Remote {
    /// Like [`Remote::stream`], along a tree if one machine cannot serve all hosts ([`crate::Options::tree`]).
    pub fn stream_tree<E: Errand>(&self, hosts: &[String], errand: E, note: Note) -> PoolEvents {
        let (mut here, far): (Vec<usize>, Vec<usize>) = (0..hosts.len()).partition(|host| is_here(&hosts[*host]));
        let branches = homing_launch::branches(far.len(), self.options().tree);
        if branches.is_empty() {
            return errand.begin(self, hosts);
        }
        // A branch of one host needs no leader.
        let (alone, branches): (Vec<_>, Vec<_>) = branches.into_iter().partition(|branch| branch.len() == 1);
        here.extend(alone.into_iter().flatten().map(|host| far[host]));
        let spared = branches.iter().map(|branch| far[branch.start]).filter(|_| errand.spares_leaders()).collect();
        let (to, events) = sync_channel(PIECES);
        let (cancel, write) = match Cancel::new() {
            Ok(ends) => ends,
            Err(why) => return PoolEvents::refused(hosts.len(), &why),
        };
        let remote = Remote { shared: self.shared.clone() };
        let all = Arc::new(All { remote, hosts: hosts.to_vec(), errand, note, cancel, to });
        let left = begin(&all, branches.into_iter().map(|branch| far[branch].to_vec()));
        match all.begin_here(here, spared, left) {
            Ok(threads) => PoolEvents::new(events, write, threads),
            Err(e) => PoolEvents::refused(hosts.len(), &e.to_string()),
        }
    }
}

/// Makes leaders serve their branches. The receiver gets the hosts that are left to this machine.
fn begin<E: Errand>(all: &Arc<All<E>>, branches: impl Iterator<Item = Vec<usize>>) -> Receiver<Left> {
    let (to, left) = channel();
    for of in branches {
        let (theirs, of_all, back) = (of.clone(), all.clone(), to.clone());
        // The thread is not joined: it may still be connecting when the work is cancelled.
        if let Err(e) = homing_os::threads::begin(move || back.send(lead::lead(&of_all, &theirs))) {
            let _ = to.send(Left { whys: vec![(all.hosts[of[0]].clone(), e.to_string())], hosts: of });
        }
    }
    left
}

/// Hosts that are left to this machine, with reasons.
#[derive(Default)]
struct Left {
    hosts: Vec<usize>,
    whys: Vec<(String, String)>,
}

/// The state that all threads of a tree share.
struct All<E> {
    remote: Remote,
    hosts: Vec<String>,
    errand: E,
    note: Note,
    cancel: Cancel,
    to: SyncSender<HostProgress>,
}

impl<E: Errand> All<E> {
    fn is_cancelled(&self) -> bool {
        matches!(ready(&[], &self.cancel, Some(Instant::now())), Woken::Cancelled)
    }

    /// Serves hosts from here. Leaders that do not serve themselves have a thread of their own: neither they nor the
    /// others wait.
    fn begin_here(
        self: Arc<Self>,
        here: Vec<usize>,
        spared: Vec<usize>,
        left: Receiver<Left>,
    ) -> io::Result<Vec<JoinHandle<()>>> {
        let all = self.clone();
        let leaders = homing_os::threads::begin(move || drop(all.straight(&spared)))?;
        let others = homing_os::threads::begin(move || self.serve(&here, &left))?;
        Ok(vec![leaders, others])
    }

    /// Serves these hosts, then those that are left to this machine. It serves them in one batch after another, so
    /// that no more connections are being made at a time than without a tree.
    fn serve(&self, here: &[usize], left: &Receiver<Left>) {
        self.straight(here);
        let mut told = Left::default();
        while !self.is_cancelled() {
            let mut batch = match left.recv_timeout(LOOK) {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            for more in left.try_iter() {
                batch.hosts.extend(more.hosts);
                batch.whys.extend(more.whys);
            }
            let served = self.straight(&batch.hosts);
            if !served.is_empty() {
                told.hosts.extend(served);
                told.whys.extend(batch.whys);
            }
        }
        // Also after a cancel: a caller that has received the last end may drop the stream before the connections are
        // closed.
        if !told.hosts.is_empty() {
            (self.note)(&self.line(&told));
        }
    }

    /// Serves these hosts from here. Returns those whose end was reported.
    fn straight(&self, hosts: &[usize]) -> Vec<usize> {
        let names: Vec<String> = hosts.iter().map(|host| self.hosts[*host].clone()).collect();
        let mut served = Vec::new();
        if names.is_empty() {
            return served;
        }
        let mut stream = self.errand.begin(&self.remote, &names);
        while !self.is_cancelled() {
            match stream.next_within(LOOK) {
                Ok(None) => break,
                Err(NoEvent) => {}
                Ok(Some(event)) => {
                    let (host, is_end) = (hosts[event.host], matches!(event.what, HostEventKind::Done(..)));
                    if self.to.send(HostProgress { host, giver: Giver::Here, ..event }).is_err() {
                        break;
                    }
                    if is_end {
                        served.push(host);
                    }
                }
            }
        }
        served
    }

    fn line(&self, told: &Left) -> String {
        let names = told.hosts.iter().map(|host| self.hosts[*host].clone());
        homing_launch::beside_the_tree("served", names, &told.whys)
    }
}

#[cfg(test)]
mod tests;
