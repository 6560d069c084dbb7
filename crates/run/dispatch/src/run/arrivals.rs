//! Passes messages from workers, from the source of tasks and from launchers to the core.

use super::Shell;
use crate::settings::{DispatchError, Incoming, Listener};
use crate::transport::{Arrival, look_again};
use homing_launch::wire::{FromWorker, ToWorker};
use homing_launch::{HostNews, LaunchError};
use homing_model::HostFacts;
use homing_model::event::EventKind;
use homing_os::clock::Moment;
use homing_place::HostIx;
use std::time::Instant;

impl<L: Listener> Shell<'_, L> {
    pub(super) fn take(&mut self, arrival: Arrival) -> Result<(), DispatchError> {
        match arrival {
            Arrival::Host(at, heard) => {
                if let Some(news) = self.links.handle_event(at, heard, Instant::now()) {
                    self.news(at, news)?;
                }
            }
            Arrival::Note(text) => self.note(text)?,
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

    pub(super) fn news(&mut self, at: usize, news: HostNews) -> Result<(), DispatchError> {
        let now = Instant::now();
        match (news, self.links[at].ix) {
            (HostNews::Up(facts), _) => self.up(at, *facts)?,
            (HostNews::Refused(LaunchError::NotNeeded { .. }), _) => self.links.refuse(at, None, now),
            (HostNews::Refused(error), _) => self.unfit(at, error.to_string())?,
            (HostNews::From(messages), Some(ix)) => {
                for message in messages {
                    self.worker_said(at, ix, message)?;
                }
            }
            (HostNews::Cut(reason), Some(ix)) => self.core.host_draining(ix, &reason),
            (HostNews::Astray(reason), Some(ix)) => {
                self.core.host_replaced(ix, &reason);
                if !self.core.is_over() {
                    self.last_request = now;
                    self.links.follow(at, self.links[at].plan.clone());
                }
            }
            (HostNews::Lost(reason, fate), Some(ix)) => {
                self.last_request = now;
                self.core.host_lost(ix, &reason, fate.as_ref().is_some_and(|fate| fate.counts), Moment::now());
                match fate {
                    Some(fate) if fate.ask_again => self.ask_again(at),
                    None if !self.core.is_over() => self.links.come_back(at, now),
                    _ => {}
                }
            }
            (_, None) => unreachable!("a link has a host when it was up"),
        }
        Ok(())
    }

    fn up(&mut self, at: usize, facts: HostFacts) -> Result<(), DispatchError> {
        let plan = &self.links[at].plan;
        if let Some(why) = homing_fence::out_of_step(&facts).filter(|_| self.in_step) {
            return self.unfit(at, format!("host {}: {why}", plan.name));
        }
        let wanted = plan.slots.unwrap_or_else(|| (self.slots)(facts.cores)).max(1);
        let slots = facts.most_tasks.map_or(wanted, |most| wanted.min(most)).max(1);
        if slots < wanted {
            self.listener.note(&format!(
                "{}: only {slots} tasks at once instead of {wanted}: its limit of open files is too low (ulimit -Hn)",
                plan.name
            ));
        }
        let ToWorker::Begin { slots: begin_slots, .. } = &mut self.begin else { unreachable!("made so") };
        *begin_slots = slots;
        let ix = self.core.host_up(&plan.name, slots, facts);
        self.link_of.push(at);
        self.links[at].ix = Some(ix);
        Ok(self.links[at].queue_message(&self.begin)?)
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
            Incoming::SkipUnnumbered(tasks) => self.core.skip_unnumbered(tasks),
            Incoming::Unread { task, reason } => self.core.refuse(*task, reason),
            Incoming::Broken { text, exit } => {
                self.listener.note(&text);
                self.core.source_broken(exit);
            }
            Incoming::Note(text) => self.listener.note(&text),
        }
        Ok(())
    }

    fn unfit(&mut self, at: usize, reason: String) -> Result<(), DispatchError> {
        self.links.refuse(at, Some(reason.clone()), Instant::now());
        let host = self.links[at].plan.name.clone();
        self.record(EventKind::HostUnfit { host, reason })
    }

    fn worker_said(&mut self, at: usize, ix: HostIx, message: FromWorker) -> Result<(), DispatchError> {
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
            FromWorker::HasVolume { ask, accepted, text } => self.core.has_volume(ix, ask as usize, accepted, text),
            FromWorker::Unfit { ticket, missing } => self.core.unfit(ix, ticket, &missing, Moment::now()),
            FromWorker::Late { ticket, change, why } => {
                // The bound of the check is over, and with it any state in the caches of this host.
                if look_again(ix, ticket, change.clone(), why.clone(), self.queue.clone()).is_err() {
                    // Then the file counts as unchanged, as with a silent file system.
                    self.core.late(ix, ticket, &change, &why, false, Moment::now());
                }
            }
            FromWorker::Sample(sample) => self.core.sample(ix, sample),
            FromWorker::Served { server, bytes } => self.core.moved_for(ix, &server, bytes),
            FromWorker::Pulse(pulse) => self.core.pulse(ix, &pulse, Moment::now().mono),
            FromWorker::Note(text) => self.listener.note(&format!("{}: {text}", self.links[at].plan.name)),
            FromWorker::Bye if self.links[at].released => self.links[at].close(),
            FromWorker::Pong | FromWorker::Bye | FromWorker::Changed { .. } => {}
        }
        Ok(())
    }
}
