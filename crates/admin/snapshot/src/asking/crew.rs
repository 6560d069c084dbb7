//! Copies a large volume that each of its hosts reads, at the same time.

use super::channel::{self, From, To};
use super::home::{self, SourceHome};
use crate::ask::{Control, SnapshotReply, SnapshotRequest};
use crate::home::Candidate;
use crate::split::{BrickTurn, CopyPart, Deal, HostFiles, Share, When, deal, may_read};
use homing_locate::{HostNames, Locator, Spread};
use homing_model::{Failure, RawText};
use homing_mounts::FileSystemKind;
use homing_os::threads::lock;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Hosts that can read the files on their bricks.
pub struct Readers {
    hosts: Vec<Reader>,
    /// The source's path below a brick.
    below: RawText,
    when: When,
}

struct Reader {
    host: String,
    /// The source's path there.
    path: RawText,
    turns: Vec<BrickTurn>,
    is_bank: bool,
    is_home: bool,
}

impl Readers {
    /// Returns the hosts that can read; `None`: one host reads all. `bank`: the identity of the bank's host.
    pub fn of(home: &SourceHome, bank: &str, when: When, note: &dyn Fn(&str)) -> Option<Readers> {
        let (real, line) =
            home.here.as_ref().filter(|(_, line)| FileSystemKind::of(&line.mount) == FileSystemKind::Gluster)?;
        // The bytes in use on the whole volume: for a small one no host is queried.
        if !when.pays(used(real)?) {
            return None;
        }
        let spread = known(Locator::new().ok()?.spread(real)?);
        let hosts: BTreeSet<&String> = spread.sets.iter().flatten().map(|(host, _)| host).collect();
        let hosts: Vec<&String> = hosts.into_iter().collect();
        let mount = homing_mounts::identified(line);
        let held = homing_os::threads::each(&hosts, |host| home::holds(host, &Candidate::mounted(host, real, &mount)));
        let mut able = Vec::new();
        for (host, held) in hosts.into_iter().zip(held) {
            match held {
                Ok((seen, path)) => able.push((host.clone(), seen.identity, path)),
                Err(why) => note(&format!("does not read a part: {why}")),
            }
        }
        let names: Vec<String> = able.iter().map(|(host, ..)| host.clone()).collect();
        let bank_name = able.iter().find(|(_, identity, _)| identity == bank).map(|(host, ..)| host.clone());
        let mut dealt = deal(&spread.sets, &names, bank_name.as_deref());
        let reader = |(host, identity, path): (String, String, RawText)| {
            let (is_bank, is_home) = (identity == bank, identity == home.identity);
            dealt.remove(&host).map(|turns| Reader { host, path, turns, is_bank, is_home })
        };
        let hosts: Vec<Reader> = able.into_iter().filter_map(reader).collect();
        (hosts.len() > 1).then(|| Readers { hosts, below: spread.below.as_path().into(), when })
    }

    fn parts(self, found: Vec<(usize, String, HostFiles)>) -> Vec<CopyPart> {
        let bytes = found.iter().map(|(_, _, found)| found.bytes).sum();
        let others = found.iter().any(|(reader, _, found)| found.files > 0 && !self.hosts[*reader].is_home);
        if !self.when.pays(bytes) || !others {
            return Vec::new();
        }
        let part = |(reader, mark, found): (usize, String, HostFiles)| {
            let Reader { host, path, is_bank, .. } = &self.hosts[reader];
            let at = (!is_bank).then(|| host.clone());
            CopyPart { name: host.clone(), host: at, path: path.clone(), list: found.list, mark }
        };
        found.into_iter().map(part).collect()
    }
}

/// Returns the bytes that a volume has in use.
fn used(folder: &Path) -> Option<u64> {
    let all = rustix::fs::statvfs(folder).ok()?;
    Some(all.f_blocks.saturating_sub(all.f_bfree) * all.f_frsize)
}

/// Replaces addresses by the host names that users know.
fn known(spread: Spread) -> Spread {
    let names = HostNames::default();
    names.learn(&spread.sets.iter().flatten().map(|(host, _)| host.clone()).collect());
    let set = |set: Vec<(String, PathBuf)>| set.into_iter().map(|(host, brick)| (names.of(&host), brick)).collect();
    Spread { sets: spread.sets.into_iter().map(set).collect(), ..spread }
}

/// All hosts that take part in a copy; they receive its pauses.
#[derive(Clone)]
pub struct Crew(Arc<Mutex<CrewState>>);

struct CrewState {
    bank: To,
    /// The channel to the host with the leases.
    lease: Option<To>,
    readers: Vec<CrewReader>,
    leases: u32,
}

/// A host that reads a part.
struct CrewReader {
    /// `None`: it has ended.
    channel: Option<To>,
    runs: bool,
}

/// A host that searches for its part.
struct Looking {
    from: From,
    mark: String,
}

impl Crew {
    /// Returns a crew of the bank's host alone.
    pub fn new(bank: To) -> Crew {
        Crew(Arc::new(Mutex::new(CrewState { bank, lease: None, readers: Vec::new(), leases: u32::MAX })))
    }

    /// Adds a host that has the leases of all.
    pub fn with_lease(&self, lease: To) -> Crew {
        self.state().lease = Some(lease);
        self.clone()
    }

    /// Sets the number of readers that others leave room for.
    pub fn may_read(&self, leases: u32) {
        let mut state = self.state();
        let ran = state.leases > 0;
        state.leases = leases;
        if ran != (leases > 0) {
            let control = if leases > 0 { Control::Resume } else { Control::Pause };
            let _ = state.bank.control(&control);
        }
        state.pause_or_resume();
    }

    /// Requests the part of each host, and sends the bank's host all parts if they are worth it.
    pub fn deal(&self, readers: Option<Readers>, deal: Deal, note: &dyn Fn(&str)) -> Result<(), Failure> {
        let parts = match readers {
            Some(readers) => self.found(readers, deal, note)?,
            None => Vec::new(),
        };
        if parts.is_empty() {
            self.state().take_all();
        }
        self.state().bank.control(&Control::Parts(parts))
    }

    fn found(&self, readers: Readers, deal: Deal, note: &dyn Fn(&str)) -> Result<Vec<CopyPart>, Failure> {
        let ask = |reader: &Reader| {
            let mark = homing_os::folder::unguessable().map_err(Failure::system)?;
            let (turns, below, deal) = (reader.turns.clone(), readers.below.clone(), deal.clone());
            let (to, from) = channel::send_request(
                &reader.host,
                &SnapshotRequest::Share(Share { turns, below, deal, mark: mark.clone() }),
            )?;
            Ok((to, Looking { from, mark }))
        };
        let none = |failure: Failure| note(&format!("does not read a part: {}", failure.message));
        let asked: Vec<Result<(To, Looking), Failure>> = homing_os::threads::each(&readers.hosts, ask);
        let mut looking = Vec::new();
        let mut state = self.state();
        for (number, asked) in asked.into_iter().enumerate() {
            match asked {
                Ok((to, look)) => {
                    state.readers.push(CrewReader { channel: Some(to), runs: true });
                    looking.push((number, look));
                }
                Err(failure) => none(failure),
            }
        }
        // From now on they pause for others, also while they search.
        state.pause_or_resume();
        drop(state);
        let mut all = Vec::new();
        let mut idle = Vec::new();
        for (member, (number, mut look)) in looking.into_iter().enumerate() {
            match look.from.receive_reply() {
                Ok(SnapshotReply::Found(found)) if found.files > 0 => all.push((number, look.mark, found)),
                Ok(_) => idle.push(member),
                Err(failure) => {
                    none(failure);
                    idle.push(member);
                }
            }
        }
        self.dismiss(&idle);
        Ok(readers.parts(all))
    }

    /// Removes members without files: the order of the others is that of the bank's host's parts.
    fn dismiss(&self, idle: &[usize]) {
        let mut state = self.state();
        let mut number = 0..;
        state.readers.retain(|_| number.next().is_none_or(|number| !idle.contains(&number)));
        state.want();
        state.pause_or_resume();
    }

    /// Handles that a host has read its part.
    pub fn ended(&self, number: usize) {
        let mut state = self.state();
        // The lock is released before the channel ends, because that takes time.
        let gone = state.readers.get_mut(number).and_then(|member| member.channel.take());
        state.want();
        state.pause_or_resume();
        drop(state);
        drop(gone);
    }

    fn state(&self) -> MutexGuard<'_, CrewState> {
        lock(&self.0)
    }
}

impl CrewState {
    /// Requests a lease for each host that reads; the copy that goes over everything needs one, too.
    fn want(&mut self) {
        let reading = self.readers.iter().filter(|member| member.channel.is_some()).count();
        if let Some(lease) = &mut self.lease {
            let _ = lease.control(&Control::Wanted(u32::try_from(reading).unwrap_or(u32::MAX).max(1)));
        }
    }

    /// Pauses or continues the hosts that read.
    fn pause_or_resume(&mut self) {
        let ended: Vec<bool> = self.readers.iter().map(|member| member.channel.is_none()).collect();
        for (member, runs) in self.readers.iter_mut().zip(may_read(&ended, self.leases)) {
            let Some(to) = member.channel.as_mut().filter(|_| member.runs != runs) else { continue };
            let _ = to.control(if runs { &Control::Resume } else { &Control::Pause });
            member.runs = runs;
        }
    }

    fn take_all(&mut self) {
        self.readers.clear();
        self.want();
    }
}
