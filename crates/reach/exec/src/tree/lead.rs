//! One branch, from this side: the channel to its leader, from the first message to the last.

use super::branch::{Branch, LeaderEvent};
use super::words::{LeaderCommand, LeaderMessage, LeaderRequest, Mouth, receive_message};
use super::{All, Errand, LOOK, Left, WORD};
use crate::pool::{Giver, HostEventKind, HostProgress, NoEvent, PIECES};
use crate::{CommandOutcome, InputSpool};
use homing_launch::{Channel, Via};
use homing_model::text::{keep_tail, shown};
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// A leader sends a message every half second. One that is silent for this long hangs.
const SILENCE: Duration = Duration::from_secs(60);
/// Time in which a leader may end after its last message.
const FAREWELL: Duration = Duration::from_secs(5);
/// Most bytes that are kept of the messages of a failed program, and of a note.
const WORDS: usize = 2 << 10;

/// Makes the first of these hosts serve them all. Returns the hosts that are left to this machine.
pub(super) fn lead<E: Errand>(all: &All<E>, of: &[usize]) -> Left {
    let mut lead = Lead { all, of, branch: Branch::new(of.len(), all.errand.spares_leaders()), went: false };
    let failed = lead.through().err();
    if let Some(why) = failed.as_ref().filter(|_| lead.went && !all.errand.can_be_repeated()) {
        lead.give_up(why);
    }
    let name = |host: usize| all.hosts[of[host]].clone();
    let mut whys: Vec<_> =
        failed.into_iter().map(|why| (name(0), format!("{} no longer leads its branch: {why}", name(0)))).collect();
    whys.extend(lead.branch.unserved.iter().map(|(host, why)| (name(*host), shown(why))));
    Left { hosts: lead.branch.open().into_iter().map(|host| of[host]).collect(), whys }
}

struct Lead<'a, E> {
    all: &'a All<E>,
    of: &'a [usize],
    branch: Branch,
    /// Whether the errand may have begun there.
    went: bool,
}

impl<E: Errand> Lead<'_, E> {
    fn through(&mut self) -> Result<(), String> {
        let all = self.all;
        let leader = &all.hosts[self.of[0]];
        let via = Via::Ssh { target: leader.clone() };
        let opened = homing_launch::open(leader, &via, &all.remote.channel_options(WORD)).map_err(|e| e.to_string())?;
        let Channel { to, from, keeper, .. } = opened;
        let to = Mouth::new(to);
        let heard = listen(from)?;
        let names: Vec<String> = self.of.iter().map(|host| all.hosts[*host].clone()).collect();
        let errand = all.errand.only(&names[1..]).map_err(|e| format!("preparing the data for its branch: {e}"))?;
        let input = errand.input();
        let ask = LeaderRequest::new(errand, names, all.remote.options());
        to.send_message(&ask, &[]).map_err(|e| format!("sending the request to it: {e}"))?;
        let folder = match self.next(&heard)? {
            LeaderMessage::Folder(folder) if is_plain(&folder) => folder,
            _ => return Err("it sent no valid folder for the data".into()),
        };
        self.load(leader, &folder)?;
        self.went = true;
        to.send_message(&LeaderCommand::Go, &[]).map_err(|e| format!("sending the start command to it: {e}"))?;
        let fed = Fed::begin(input, to.clone())?;
        self.follow(&heard)?;
        drop(fed);
        drop(to);
        keeper.end(FAREWELL);
        Ok(())
    }

    /// Reports that its hosts are lost with the leader.
    fn give_up(&mut self, why: &str) {
        let leader = &self.all.hosts[self.of[0]];
        for host in self.branch.give_up() {
            let host = self.of[host];
            let name = &self.all.hosts[host];
            let lost =
                format!("host {name}: the command may or may not have run: {leader} no longer leads its branch: {why}");
            let what = HostEventKind::Done(CommandOutcome::Lost(lost), Duration::ZERO);
            let _ = self.send(HostProgress { host, giver: Giver::Leader(self.of[0]), what });
        }
    }

    /// Gives the leader the data that it passes on.
    fn load(&self, leader: &str, folder: &str) -> Result<(), String> {
        let mut stream = self.all.errand.load(&self.all.remote, leader, folder);
        let mut said = Vec::new();
        loop {
            match stream.next_within(LOOK) {
                Err(NoEvent) if self.all.is_cancelled() => return Err("the request was cancelled".into()),
                Err(NoEvent) => {}
                Ok(None) => return Ok(()),
                Ok(Some(HostProgress { what: HostEventKind::Stderr(bytes), .. })) => {
                    keep_tail(&mut said, &bytes, WORDS)
                }
                Ok(Some(HostProgress { what: HostEventKind::Done(outcome, _), .. })) if !outcome.is_ok() => {
                    let said = crate::last_lines(&String::from_utf8_lossy(&said));
                    return Err(format!("copying the data to it failed: {outcome} {}", shown(&said)));
                }
                Ok(Some(event)) => self.send(HostProgress { host: self.of[0], giver: Giver::Load, ..event })?,
            }
        }
    }

    /// Passes on the leader's messages until the last one.
    fn follow(&mut self, heard: &Receiver<Result<LeaderMessage, String>>) -> Result<(), String> {
        loop {
            let told = self.next(heard)?;
            match self.branch.accept_message(&self.all.errand, told)? {
                LeaderEvent::Nothing => {}
                LeaderEvent::End => return Ok(()),
                LeaderEvent::Event(host, what) => self.pass(host, what)?,
                LeaderEvent::Alive(hosts) => {
                    hosts.into_iter().try_for_each(|host| self.pass(host, HostEventKind::Alive))?
                }
                LeaderEvent::Note(text) => {
                    let text: String = shown(&text).chars().take(WORDS).collect();
                    (self.all.note)(&format!("{}: {text}", self.all.hosts[self.of[0]]));
                }
            }
        }
    }

    fn pass(&self, host: usize, what: HostEventKind) -> Result<(), String> {
        self.send(HostProgress { host: self.of[host], giver: Giver::Leader(self.of[0]), what })
    }

    fn send(&self, event: HostProgress) -> Result<(), String> {
        self.all.to.send(event).map_err(|_| "the request was cancelled".into())
    }

    fn next(&self, heard: &Receiver<Result<LeaderMessage, String>>) -> Result<LeaderMessage, String> {
        let since = Instant::now();
        loop {
            match heard.recv_timeout(LOOK) {
                Ok(told) => return told,
                Err(RecvTimeoutError::Disconnected) => return Err("its connection has ended".into()),
                Err(RecvTimeoutError::Timeout) if self.all.is_cancelled() => {
                    return Err("the request was cancelled".into());
                }
                Err(RecvTimeoutError::Timeout) if since.elapsed() > SILENCE => {
                    return Err(format!("it has sent nothing for {} s", SILENCE.as_secs()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Sends a leader the standard input of its hosts, until this is dropped.
struct Fed(Arc<AtomicBool>);

impl Fed {
    fn begin(input: Option<Arc<InputSpool>>, mut to: Mouth) -> Result<Fed, String> {
        let fed = Fed(Arc::default());
        let Some(input) = input else { return Ok(fed) };
        let stop = fed.0.clone();
        let feed = move || {
            if input.feed(&mut to, &stop) {
                let _ = to.send_message(&LeaderCommand::Input(0), &[]);
            }
        };
        homing_os::threads::begin(feed).map_err(|e| e.to_string())?;
        Ok(fed)
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether no shell and no rsync reads this path as anything else.
fn is_plain(folder: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.".contains(&b);
    folder.starts_with('/') && folder.len() < 1024 && folder.bytes().all(plain)
}

/// Reads the leader's lines in a thread that ends with its channel.
fn listen(mut from: Box<dyn BufRead + Send>) -> Result<Receiver<Result<LeaderMessage, String>>, String> {
    let (to, heard) = sync_channel(PIECES);
    let read = move || {
        loop {
            let told = match receive_message(&mut from) {
                Ok(None) => return,
                Ok(Some(told)) => Ok(told),
                Err(e) => Err(format!("its message is invalid: {e}")),
            };
            let last = told.is_err();
            if to.send(told).is_err() || last {
                return;
            }
        }
    };
    homing_os::threads::begin(read).map_err(|e| e.to_string())?;
    Ok(heard)
}
