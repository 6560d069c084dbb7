//! The coordinator's state: the waiting tasks, the attempts on hosts, the conditions that end the run. Events go in,
//! actions come out; no socket, no clock, no file.

mod after;
mod attempts;
mod ending;
mod excess;
mod held_back;
mod joining;
mod late;
mod leases;
mod leaving;
mod live;
mod moving;
mod storage;
mod takes;
#[cfg(test)]
mod tests;
mod types;

pub use after::Skipped;
pub(crate) use ending::without_hosts;
pub use joining::Patience;
pub use takes::Resources;
pub use types::{Action, AttemptRecord, Licensed, Offer, Policy};

use crate::admission::{Admission, Io, StorageIx};
use crate::hosts::{Hosts, VolumeIx};
use crate::kinds::Kinds;
use crate::power::PowerBudget;
use crate::servers::ServerTable;
use crate::volume_access::{VolumeAccess, VolumeAlias, VolumeAnswer};
use crate::written::Written;
use homing_batch::HaltState;
use homing_journal::Counts;
use homing_launch::Attempts;
use homing_model::event::EventKind;
use homing_model::{HostFacts, TaskId};
use homing_os::clock::Mono;
use homing_place::{HostIx, Params, Placed, Placer};
use std::collections::{HashMap, HashSet};
use types::{Stage, TaskAttempt, TaskDetails, WaitingTask};

/// The state.
pub struct Core {
    policy: Policy,
    halt: HaltState,
    placer: Placer,
    hosts: Hosts,
    volume_access: VolumeAccess,
    servers: ServerTable,
    /// Hosts that were checked for files which they serve to other machines.
    met: HashSet<HostIx>,
    /// Known storage servers whose users Slurm counts, with the licences of one host.
    licensed: Vec<(StorageIx, u32)>,
    admission: Admission,
    kinds: Kinds,
    room: takes::ResourceAmounts,
    power: PowerBudget,
    begun: Option<Mono>,
    written: Written,
    coming: joining::Coming,
    after: after::After,
    /// In boxes: a quarter to a half of the places of a table are empty, and a task takes some 400 bytes.
    waiting: HashMap<TaskId, Box<WaitingTask>>,
    running: Attempts<TaskDetails>,
    tickets: u64,
    source_ended: bool,
    broken: Option<i32>,
    unread: bool,
    signal: Option<i32>,
    stage: Stage,
    next_start: Mono,
    held_back: held_back::WaitNote,
    expecting: bool,
    /// Whether hosts joined since the waiting tasks were placed.
    joined: bool,
    walls: Vec<u64>,
    counts: Counts,
    actions: Vec<Action>,
}

impl Core {
    /// Makes a run without hosts. `counts` are the tasks by outcome so far.
    pub fn new(policy: Policy, counts: Counts) -> Core {
        let presumed = match policy.io {
            Io::Fixed(_) => true,
            // An earlier run that found limits has also found which commands move bytes.
            Io::Auto => policy.learnt.is_empty(),
            Io::Off => false,
        };
        Core {
            halt: HaltState::new(policy.halt),
            placer: Placer::new(Params { locality: policy.locality, links: policy.links.clone(), ..Params::default() }),
            admission: Admission::new(policy.io),
            kinds: Kinds::new(&policy.movers, presumed),
            servers: ServerTable::default(),
            met: HashSet::new(),
            licensed: Vec::new(),
            begun: None,
            room: takes::ResourceAmounts::new(&policy.resources),
            power: PowerBudget::new(policy.power.clone()),
            policy,
            hosts: Hosts::default(),
            volume_access: VolumeAccess::default(),
            written: Written::default(),
            coming: Default::default(),
            after: Default::default(),
            waiting: HashMap::new(),
            running: Attempts::new(),
            tickets: 0,
            source_ended: false,
            broken: None,
            unread: false,
            signal: None,
            stage: Stage::Going,
            next_start: Mono::default(),
            held_back: Default::default(),
            expecting: false,
            joined: false,
            walls: Vec::new(),
            counts,
            actions: Vec::new(),
        }
    }

    /// Returns the hosts, for names and volumes.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Adds a network volume. Hosts are checked for its mount.
    pub fn volume(&mut self, mount: homing_model::Mount) -> VolumeIx {
        self.hosts.volume(mount)
    }

    /// Adds a host whose worker answered.
    pub fn host_up(&mut self, name: &str, slots: u32, mut facts: HostFacts) -> HostIx {
        facts.indices.clear();
        facts.nic_bytes_per_s = self.policy.links.rate(name, facts.nic_bytes_per_s);
        let powered = self.power.host_up(self.hosts.len(), name, slots).map(|(most, by)| (most, by.to_string()));
        // A host that may use no slot joins too, and is drained below.
        let slots = powered.as_ref().map_or(slots, |(most, _)| (*most).max(1));
        let ix = self.placer.host_up(slots, facts.nic_bytes_per_s);
        self.placer.host_on(ix, self.policy.links.leaf(name));
        self.actions.push(Action::Journal(EventKind::HostUp { host: name.into(), slots, facts: facts.clone() }));
        let lacks =
            !self.policy.needs.is_empty() && !self.policy.needs.iter().any(|name| facts.containers.contains(name));
        let amounts = takes::with_found(self.policy.resources.of(name), facts.gpus);
        self.hosts.up(ix, name, slots, facts);
        self.hosts.offers(ix, amounts);
        self.hosts.bounded(ix, self.policy.load.as_deref());
        self.tell_room(ix);
        let learnt = self.policy.learnt.get(name).copied();
        self.admission.host_up(slots, self.hosts.slots(), learnt);
        self.joined = true;
        self.count_licenses();
        let storage = StorageIx::Host(ix);
        self.learnt(storage, learnt);
        self.tell_placer(storage);
        for volume in self.volume_access.volumes() {
            self.ask_blind(volume);
        }
        if lacks {
            self.host_draining(ix, &format!("it has no {}, which --container needs", self.policy.needs.join(" or ")));
        }
        if let Some((0, by)) = powered {
            self.host_draining(ix, &format!("[power] {by} allows no power above the idle power of its hosts"));
        }
        ix
    }

    /// Places the waiting tasks again if hosts joined, because such hosts may hold their inputs. Once for all hosts
    /// that joined together: with ten thousand hosts, each would cost a pass over all tasks.
    fn place_anew(&mut self) {
        if !std::mem::take(&mut self.joined) {
            return;
        }
        self.admission.set_most(self.hosts.slots());
        let mut known: Vec<TaskId> = self.waiting.keys().copied().collect();
        known.sort_unstable();
        for id in known {
            self.placer.remove(id);
            self.place_again(id);
        }
    }

    /// Adds a volume whose files hosts may have without its mount. Called before the tasks that use it.
    pub fn served(&mut self, served: VolumeAlias) {
        let volume = self.hosts.volume(served.mount.clone());
        self.volume_access.add(volume, served);
        self.ask_blind(volume);
    }

    fn ask_blind(&mut self, volume: VolumeIx) {
        let up = self.hosts.all_up();
        for (host, _) in self.hosts.blind(&[volume]).into_iter().filter(|(host, _)| up.contains(host)) {
            if let Some(question) = self.volume_access.query_once(host, volume) {
                self.actions.push(Action::Send(host, question));
            }
        }
    }

    /// Takes a host's answer whether it has the files of a volume.
    pub fn has_volume(&mut self, host: HostIx, volume: VolumeIx, accepted: bool, text: String) {
        let answer = if accepted { VolumeAnswer::Yes } else { VolumeAnswer::No(text.clone()) };
        if !self.volume_access.answered(host, volume, answer) {
            return;
        }
        if accepted {
            self.actions.push(Action::Note(format!("{}: {text}", self.hosts.name(host))));
        }
        let uses = |w: &WaitingTask| w.offer.volumes.contains(&volume);
        let mut users: Vec<TaskId> = self.waiting.iter().filter(|(_, w)| uses(w)).map(|(id, _)| *id).collect();
        users.sort_unstable();
        for id in users {
            // This was the only reason for the exclusion: no task of this volume can have failed there.
            self.placer.remove(id);
            self.placer.allow(id, host);
            self.place_again(id);
        }
    }

    /// Adds a task that is ready to be placed.
    pub fn offer(&mut self, offer: Offer) {
        self.arrived(offer.task.id);
        self.count_room(&offer.task);
        self.enqueue(Box::new(WaitingTask { offer, attempt: 1, losses: 0, failed_on: Vec::new() }));
    }

    /// Records a task that need not run.
    pub fn skipped(&mut self, skipped: Skipped) {
        let Skipped { task, label, reason, failed } = skipped;
        if let Some(reason) = reason {
            self.record(EventKind::TaskSkipped { task, reason });
        }
        let failed = failed || self.counts.has_failed(task);
        self.settled(task, if failed { after::DependencyEnd::Badly { label } } else { after::DependencyEnd::Well });
    }

    /// Counts tasks that a replacement string skipped.
    pub fn skip_unnumbered(&mut self, tasks: u64) {
        self.counts.skip_unnumbered(tasks);
    }

    /// Records that a task will be offered although an earlier part of the run counts it as over.
    pub fn again(&mut self, task: TaskId) {
        self.record(EventKind::TaskAgain { task });
    }

    /// Records that no more tasks will be offered.
    pub fn source_ended(&mut self) {
        self.source_ended = true;
    }

    /// Records that the source failed. Its tasks still run, but the run counts as incomplete and ends with `exit`.
    pub fn source_broken(&mut self, exit: i32) {
        self.broken = Some(exit);
    }

    /// Returns the number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of running attempts.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the tasks by outcome.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts the first record of this part of the run, which the caller journals.
    pub fn opens(&mut self, opening: &EventKind) {
        self.counts.add(opening);
    }

    /// Counts a record and journals it. The counts come from the journal's records alone.
    fn record(&mut self, what: EventKind) {
        self.counts.add(&what);
        self.actions.push(Action::Journal(what));
    }

    /// Whether there was a task to run, and the user did not end the run. If so, a host that did not answer was
    /// missed.
    pub fn wanted_hosts(&self) -> bool {
        self.signal.is_none() && (self.tickets > 0 || !self.waiting.is_empty())
    }

    /// Whether no attempt runs and none will start.
    pub fn is_over(&self) -> bool {
        self.running.is_empty() && self.nothing_to_start()
    }

    /// Whether no attempt runs and no host is left.
    pub fn is_stranded(&self) -> bool {
        self.running.is_empty() && !self.hosts.any_up()
    }

    /// Whether no known task will start any more: all have started, or the run is being ended.
    pub fn nothing_to_start(&self) -> bool {
        self.stage > Stage::Going || (self.source_ended && self.waiting.is_empty() && self.after.is_empty())
    }

    /// Returns the actions since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn enqueue(&mut self, waiting: Box<WaitingTask>) {
        let id = waiting.offer.task.id;
        self.waiting.insert(id, waiting);
        self.place_again(id);
    }

    fn place_again(&mut self, id: TaskId) {
        if self.waits_for_home(id) {
            self.placer.remove(id);
            return;
        }
        let need = self.need(id);
        self.exclude_blind_hosts(id);
        self.placer.add(id, need);
    }

    /// Returns the hosts without a mount of one of these volumes that have not proved to have its files under another
    /// name.
    fn blind(&self, volumes: &[VolumeIx]) -> impl Iterator<Item = (HostIx, VolumeIx)> {
        let blind = self.hosts.blind(volumes).into_iter();
        blind.filter(|(host, volume)| self.volume_access.of(*host, *volume) != Some(&VolumeAnswer::Yes))
    }

    fn exclude_blind_hosts(&mut self, id: TaskId) {
        for host in self.hosts.too_small(&self.waiting[&id].offer.task) {
            self.placer.exclude(id, host);
        }
        let volumes = self.waiting[&id].offer.volumes.clone();
        for (host, volume) in self.blind(&volumes).collect::<Vec<_>>() {
            let answer = self.volume_access.of(host, volume).cloned();
            self.placer.exclude(id, host);
            if answer == Some(VolumeAnswer::Awaited) {
                continue;
            }
            if let Some(unfit) = self.hosts.unfit_once(host, volume) {
                let reason = if let Some(VolumeAnswer::No(why)) = answer { why } else { unfit };
                let name = self.hosts.name(host).to_string();
                self.actions.push(Action::Note(format!("{name} is not used for tasks on that volume: {reason}")));
                self.actions.push(Action::Journal(EventKind::HostUnfit { host: name, reason }));
            }
        }
    }

    /// Assigns tasks to free slots.
    pub fn assign(&mut self, now: Mono) {
        self.hand_out(now, Placer::pick);
        self.tell_of_first_limits();
        self.tell_of_waiting(now);
        if self.stage == Stage::Going {
            self.give_up_on_homeless();
        }
    }

    /// Like [`Core::assign`], but only on hosts that hold the task's inputs. Hosts that join later do not affect that
    /// choice.
    pub fn assign_at_home(&mut self, now: Mono) {
        self.hand_out(now, Placer::pick_at_home);
    }

    fn hand_out(&mut self, now: Mono, pick: fn(&mut Placer, HostIx, u32, u64) -> Option<Placed>) {
        if self.stage > Stage::Going {
            return;
        }
        self.place_anew();
        self.end_beginning(now);
        for host in self.hosts.by_free_share(self.policy.prefetch) {
            while now >= self.next_start && self.hosts.may_start(host, self.policy.memfree) {
                let free = self.hosts.credit(host, self.policy.prefetch).min(self.power.room(host));
                let Some(placed) = (free > 0).then(|| pick(&mut self.placer, host, free, now.us())).flatten() else {
                    break;
                };
                self.start(host, placed, now);
                self.next_start = now.after_us(self.policy.delay_us);
                if self.policy.delay_us > 0 {
                    return;
                }
            }
        }
    }

    /// Takes a load sample.
    pub fn sample(&mut self, host: HostIx, sample: homing_model::HostSample) {
        self.hosts.sampled(host, &sample);
        self.tell_room(host);
        let host = self.hosts.name(host).into();
        self.actions.push(Action::Journal(EventKind::Sample { host, sample }));
    }

    /// Returns the limits that were found under pressure, by the name of the storage, for the next run.
    pub fn lessons(&self) -> Vec<(String, u32)> {
        let storages = (0..self.hosts.len()).map(StorageIx::Host).chain((0..self.servers.len()).map(StorageIx::Server));
        storages.filter_map(|s| Some((self.storage_name(s).to_string(), self.admission.lesson(s)?))).collect()
    }
}
