//! What arrives from workers, from the source of tasks, and from those who
//! launch: told to the core.

use super::Shell;
use super::parting::end_apart;
use crate::settings::{DispatchError, Incoming, Listener};
use crate::wires::{Arrival, look_again};
use homing_clock::Moment;
use homing_launch::{Fate, LaunchError};
use homing_model::event::What;
use homing_place::HostIx;
use homing_wire::{FromWorker, HOST_LOST_S, ToWorker};
use std::time::{Duration, Instant};

impl<L: Listener> Shell<'_, L> {
    pub(super) fn take(&mut self, arrival: Arrival) -> Result<(), DispatchError> {
        match arrival {
            Arrival::Up { at, facts, .. } if self.in_step && homing_fence::out_of_step(&facts).is_some() => {
                let why = homing_fence::out_of_step(&facts).unwrap_or_default();
                self.unfit(at, format!("host {}: {why}", self.settings_hosts[at].name))?;
            }
            Arrival::Up { at, facts, to, keeper } => {
                let plan = &self.settings_hosts[at];
                let wanted = plan.slots.unwrap_or_else(|| (self.slots)(facts.cores)).max(1);
                let slots = facts.most_tasks.map_or(wanted, |most| wanted.min(most)).max(1);
                if slots < wanted {
                    self.listener.note(&format!(
                        "{}: {slots} tasks at once, not {wanted}: more descriptors are not allowed there (ulimit -Hn)",
                        plan.name
                    ));
                }
                let ToWorker::Begin { slots: begin_slots, .. } = &mut self.begin else { unreachable!("made so") };
                *begin_slots = slots;
                let ix = self.core.host_up(&plan.name, slots, *facts);
                self.plan_of.push(at);
                let link = &mut self.links[at];
                (link.ix, link.to, link.keeper, link.heard) = (Some(ix), Some(to), Some(keeper), Instant::now());
                homing_wire::encode(&self.begin, &mut link.out)?;
            }
            Arrival::Refused { at, error } => self.refused(at, &error)?,
            Arrival::Cut { at, reason } => self.cut(at, &reason),
            Arrival::Gone { at, reason, fate } => self.gone(at, &reason, fate),
            Arrival::From { at, messages } => {
                for message in messages {
                    self.worker_said(at, message)?;
                }
            }
            Arrival::Late { ix, ticket, change, why, since } => {
                self.core.late(ix, ticket, &change, &why, since, Moment::now());
            }
            Arrival::Task(incoming) => self.incoming(*incoming)?,
            Arrival::SourceEnded => self.core.source_ended(),
            Arrival::Leases(server, heard) => self.leases_heard(server, heard),
            Arrival::WantedEmpty(nodes) => self.leave_alone(&nodes),
        }
        Ok(())
    }

    fn gone(&mut self, at: usize, reason: &str, fate: Option<Fate>) {
        let Some(ix) = self.unlink(at) else { return };
        self.asked = Instant::now();
        match fate {
            Some(fate) => {
                self.core.host_ended(ix, &fate.text, fate.counts, Moment::now());
                if fate.ask_again {
                    self.ask_again(at);
                }
            }
            None => self.core.host_lost(ix, reason, Moment::now()),
        }
    }

    /// Its tasks may run until its lease is over, and are given to nobody else before.
    fn cut(&mut self, at: usize, reason: &str) {
        let Some(ix) = self.unlink(at) else { return };
        let reason =
            format!("{reason}; what ran there may run for up to {HOST_LOST_S} s and is not run elsewhere before");
        self.core.host_draining(ix, &reason);
    }

    /// Nothing can be said to it any more.
    fn unlink(&mut self, at: usize) -> Option<HostIx> {
        let link = &mut self.links[at];
        link.to = None;
        if let Some(keeper) = link.keeper.take() {
            end_apart(keeper, Duration::from_secs(1));
        }
        link.ix
    }

    pub(super) fn silent_hosts(&mut self, now: Moment, gap: Duration) {
        // After a pause of our own, silence proves nothing about the others.
        let paused = gap > Duration::from_secs(5);
        for at in 0..self.links.len() {
            let link = &mut self.links[at];
            if paused {
                link.heard = Instant::now();
            }
            if link.to.is_some() && link.heard.elapsed() > Duration::from_secs(HOST_LOST_S) {
                link.to = None;
                if let Some(keeper) = link.keeper.take() {
                    end_apart(keeper, Duration::ZERO);
                }
                if let Some(ix) = link.ix {
                    self.core.host_lost(
                        ix,
                        &format!("the link to it was lost: nothing was heard for {HOST_LOST_S} s"),
                        now,
                    );
                }
            }
        }
    }

    fn incoming(&mut self, incoming: Incoming) -> Result<(), DispatchError> {
        match incoming {
            Incoming::Task { mut offer, mounts } => {
                if let Some(why) = self.room.refusal(&offer.task) {
                    self.core.refuse(offer.task, why);
                    return Ok(());
                }
                offer.volumes.extend(mounts.into_iter().map(|m| self.core.volume(m)));
                self.core.offer(*offer);
            }
            Incoming::Served(served) => self.core.served(*served),
            Incoming::Server(names, leases) => self.core.server(&names, leases.as_ref()),
            Incoming::Again(task) => self.core.again(task),
            Incoming::After(task) => self.core.wait_for(*task),
            Incoming::Skip(skipped) => {
                let task = skipped.task;
                self.core.skipped(skipped);
                self.printer.skipped(task).map_err(DispatchError::Output)?;
            }
            Incoming::Unread { task, reason } => self.core.refuse(*task, reason),
            Incoming::Broken { text, exit } => {
                self.listener.note(&text);
                self.core.source_broken(exit);
            }
            Incoming::Note(text) => self.listener.note(&text),
        }
        Ok(())
    }

    /// There is no worker there, and why is told unless nobody wants one any more.
    pub(crate) fn refused(&mut self, at: usize, error: &LaunchError) -> Result<(), DispatchError> {
        if matches!(error, LaunchError::NotNeeded { .. }) {
            self.leave_out(at);
            return Ok(());
        }
        self.unfit(at, error.to_string())
    }

    /// It gets no tasks in this run.
    fn leave_out(&mut self, at: usize) {
        self.links[at].refused = true;
        self.refused.push(self.settings_hosts[at].name.clone());
    }

    fn unfit(&mut self, at: usize, reason: String) -> Result<(), DispatchError> {
        self.leave_out(at);
        let host = self.settings_hosts[at].name.clone();
        self.untold.add(&host, reason.clone(), Moment::now().mono);
        self.record(What::HostUnfit { host, reason })
    }

    fn worker_said(&mut self, at: usize, message: FromWorker) -> Result<(), DispatchError> {
        let link = &mut self.links[at];
        link.heard = Instant::now();
        // A host that was given up may still talk; its tasks already run elsewhere.
        let Some(ix) = link.ix.filter(|_| link.to.is_some()) else { return Ok(()) };
        match message {
            FromWorker::Output { ticket, stream, bytes } => {
                self.core.printed(ticket, stream, &bytes);
                let printed = self.printer.chunk(ticket, stream, &bytes);
                self.printed(printed)?;
                if self.printer.is_short_of_room()
                    && let Some(ticket) = self.core.end_largest_output()
                {
                    self.printer.cut(ticket);
                }
            }
            FromWorker::Ended(ended) => {
                self.core.ended(ix, ended, Moment::now());
            }
            FromWorker::Stands { ask, accepted, text } => self.core.stands(ix, ask as usize, accepted, text),
            FromWorker::Unfit { ticket, missing } => self.core.unfit(ix, ticket, &missing, Moment::now()),
            FromWorker::Late { ticket, change, why } => {
                // Its bound is past, and with it whatever this host had in its own caches.
                if look_again(ix, ticket, change.clone(), why.clone(), self.queue.clone()).is_err() {
                    // Nothing is said of it then, as where its file system is silent.
                    self.core.late(ix, ticket, &change, &why, false, Moment::now());
                }
            }
            FromWorker::Sample(sample) => self.core.sample(ix, sample),
            FromWorker::Served { server, bytes } => self.core.moved_for(ix, &server, bytes),
            FromWorker::Pulse(pulse) => self.core.pulse(ix, &pulse, Moment::now().mono),
            FromWorker::Note(text) => self.listener.note(&format!("{}: {text}", self.settings_hosts[at].name)),
            FromWorker::Bye if link.released => link.to = None,
            FromWorker::Pong | FromWorker::Bye | FromWorker::Changed { .. } => {}
        }
        Ok(())
    }
}
