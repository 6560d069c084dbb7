//! Errands along a tree of hosts: a few are given what is needed from here, and each of these leads a branch, to which it
//! passes that on over its own ssh. A leader is this same program, at work as long as its channel is open. What does not
//! come this way is done from here.

mod at_work;
mod branch;
mod lead;
mod serve;
mod words;

pub use homing_launch::WIDTH;
pub use serve::serve;

use crate::pool::{Event, Giver, PIECES, Stream, Waiting, What};
use crate::wait::{Cancel, Woken, ready};
use crate::{Outcome, Remote, Spool};
use homing_os::names::is_here;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The word that starts a leader's end.
pub const WORD: &str = "tree-host";

/// Between two looks whether anybody still wants it.
const LOOK: Duration = Duration::from_millis(200);

/// What is done on each host, and how a leader gets what that needs.
pub trait Errand: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Does it on these hosts from this machine.
    fn begin(&self, remote: &Remote, hosts: &[String]) -> Stream;

    /// Puts what it needs into a folder of the leader.
    fn load(&self, _: &Remote, _leader: &str, _folder: &str) -> Stream {
        Stream::nothing()
    }

    /// The same for these hosts alone: what their leader is sent.
    fn only(&self, _hosts: &[String]) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Whether a leader does nothing to its own host: whoever asks it to lead serves that, too.
    fn spares_leaders(&self) -> bool {
        false
    }

    /// What all hosts read, which leaders are sent as it comes.
    fn input(&self) -> Option<Arc<Spool>> {
        None
    }

    /// The same for the leader, which has what it needs in that folder, and what hosts read in a spool of its own.
    fn from(&self, folder: &str, input: Option<Arc<Spool>>) -> Self;

    /// Whether it may be begun again where nobody knows how far it has come.
    fn can_be_repeated(&self) -> bool {
        true
    }

    /// Whether another way to the host may bring more than this end of it.
    fn is_open(&self, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Unreachable(_) | Outcome::Lost(_))
    }
}

/// Takes a line for the user: what was not done along the tree.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

impl Remote {
    /// As [`Remote::stream`], along a tree where there are more hosts than one serves ([`crate::Options::tree`]).
    pub fn stream_tree<E: Errand>(&self, hosts: &[String], errand: E, note: Note) -> Stream {
        let (mut here, far): (Vec<usize>, Vec<usize>) = (0..hosts.len()).partition(|host| is_here(&hosts[*host]));
        let branches = homing_launch::branches(far.len(), self.options().tree);
        if branches.is_empty() {
            return errand.begin(self, hosts);
        }
        // One that would lead nobody needs no leader's end.
        let (alone, branches): (Vec<_>, Vec<_>) = branches.into_iter().partition(|branch| branch.len() == 1);
        here.extend(alone.into_iter().flatten().map(|host| far[host]));
        let spared = branches.iter().map(|branch| far[branch.start]).filter(|_| errand.spares_leaders()).collect();
        let (to, events) = sync_channel(PIECES);
        let (cancel, write) = match Cancel::new() {
            Ok(ends) => ends,
            Err(why) => return Stream::refused(hosts.len(), &why),
        };
        let remote = Remote { shared: self.shared.clone() };
        let all = Arc::new(All { remote, hosts: hosts.to_vec(), errand, note, cancel, to });
        let left = begin(&all, branches.into_iter().map(|branch| far[branch].to_vec()));
        match all.begin_here(here, spared, left) {
            Ok(threads) => Stream::new(events, write, threads),
            Err(e) => Stream::refused(hosts.len(), &e.to_string()),
        }
    }
}

/// Has leaders serve their branches; what comes is left to this machine.
fn begin<E: Errand>(all: &Arc<All<E>>, branches: impl Iterator<Item = Vec<usize>>) -> Receiver<Left> {
    let (to, left) = channel();
    for of in branches {
        let (theirs, of_all, back) = (of.clone(), all.clone(), to.clone());
        // It is not waited for: it may be connecting when nobody wants it any more.
        if let Err(e) = homing_os::threads::begin(move || back.send(lead::lead(&of_all, &theirs))) {
            let _ = to.send(Left { whys: vec![(all.hosts[of[0]].clone(), e.to_string())], hosts: of });
        }
    }
    left
}

/// Hosts that are left to this machine, and why.
#[derive(Default)]
struct Left {
    hosts: Vec<usize>,
    whys: Vec<(String, String)>,
}

/// What all threads of a tree share.
struct All<E> {
    remote: Remote,
    hosts: Vec<String>,
    errand: E,
    note: Note,
    cancel: Cancel,
    to: SyncSender<Event>,
}

impl<E: Errand> All<E> {
    fn is_cancelled(&self) -> bool {
        matches!(ready(&[], &self.cancel, Some(Instant::now())), Woken::Cancelled)
    }

    /// Serves hosts from here. Leaders that are spared are no reason for others to wait, nor these for them.
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

    /// Serves these hosts, then what is left to this machine as it comes: one batch after another, so that there are
    /// never more connections being made than without a tree.
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
        // Whoever has heard of the last end may want no more, before connections are closed: it is told all the same.
        if !told.hosts.is_empty() {
            (self.note)(&self.line(&told));
        }
    }

    /// Serves these hosts from here; those of which the end was told.
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
                Err(Waiting) => {}
                Ok(Some(event)) => {
                    let (host, is_end) = (hosts[event.host], matches!(event.what, What::Done(..)));
                    if self.to.send(Event { host, giver: Giver::Here, ..event }).is_err() {
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
