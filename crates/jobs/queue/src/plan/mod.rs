//! Decides which job starts next, and why another does not. Pure. Each runner decides about its own user's jobs and
//! knows the standing of the others. All come to the same answer, so that no process needs to be in charge.

mod block;
mod config;
mod parts;
mod queue;
mod shared;
mod spread;
#[cfg(test)]
pub(crate) mod tests;
mod usage;
mod window;

pub use block::Block;
pub use config::{Config, SubmitterSettings};
pub use parts::{Piece, by_parts, by_rank};
pub use queue::Queue;
pub use shared::full_servers;
pub(crate) use shared::is_queue;
pub use spread::{HostRoom, spread};
pub use usage::{Leased, Usage};
pub use window::Windows;

use crate::Storage;
use crate::control::Target;
use crate::depend::ConditionVerdict;
use crate::load::LoadIndices;
use crate::state::ElementState;
use homing_lease::LeaseDemand;
use homing_model::resource::{PARTS, shown_amount};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A job, or an element of an array, as the decision sees it.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Job id.
    pub id: u64,
    /// Index, 0 without an array.
    pub index: u32,
    /// Its user.
    pub uid: u32,
    /// Its queue.
    pub queue: String,
    /// Slots that it takes; 0 if they lie on several hosts, each of which counts its own.
    pub slots: u32,
    /// Graphics processors that it takes, in parts of one.
    pub gpu_parts: u64,
    /// Its rank among its user's jobs of the queue, smaller ones first.
    pub order: i64,
    /// The most elements of its array at once.
    pub limit: Option<u32>,
    /// Its state.
    pub state: ElementState,
    /// Whether its host was requested to start it, and has not answered yet.
    pub asks: bool,
    /// The verdict on its condition.
    pub after: ConditionVerdict,
    /// The host that it must run on, if that is not this machine.
    pub host: Option<String>,
    /// Load expressions that must hold.
    pub require: Vec<String>,
    /// The storage server that it uses.
    pub storage: Option<Storage>,
    /// Its start, as time since the boot; zero if it has not started in this boot.
    pub began: Duration,
}

/// Returns why a job may not start, even if it is its turn and slots are free.
pub fn blocked(config: &Config, usage: &Usage, it: &JobView, load: &LoadIndices) -> Option<Block> {
    if it.state == ElementState::Psusp {
        return Some(Block::Stopped);
    }
    match it.after {
        ConditionVerdict::Waits => return Some(Block::After),
        ConditionVerdict::Never => return Some(Block::Never),
        ConditionVerdict::Holds => {}
    }
    let Some(queue) = config.queues.get(&it.queue).filter(|q| !q.closed) else { return Some(Block::Closed) };
    if config.barred.contains(&(it.uid, it.queue.clone())) {
        return Some(Block::Barred);
    }
    if !queue.dispatch_window.has(config.minute) {
        return Some(Block::Window(queue.dispatch_window.to_string()));
    }
    if let Some(order) = config.control.shut(Target::Dispatch, &it.queue) {
        return Some(Block::Inactive(order.to_string()));
    }
    if let Some(order) = config.closed_host(it.host.as_deref()) {
        return Some(Block::ClosedHost(order.to_string()));
    }
    match config.slots_of(&it.host) {
        Some(0) => return Some(Block::NoSlots),
        Some(slots) if it.slots > slots => return Some(Block::TooLarge),
        _ => {}
    }
    let full = |limit: Option<u32>, used: Option<&u32>| {
        limit.is_some_and(|limit| used.copied().unwrap_or(0).saturating_add(it.slots) > limit)
    };
    if full(queue.slots, usage.queue.get(&it.queue)) {
        return Some(Block::QueueLimit);
    }
    if queue.per_user.is_some() && full(queue.per_user, usage.user.get(&(it.uid, it.queue.clone()))) {
        return Some(Block::UserLimit);
    }
    if queue.per_host.is_some() && full(queue.per_host, usage.host.get(&(it.queue.clone(), it.host.clone()))) {
        return Some(Block::HostLimit);
    }
    if it.limit.is_some_and(|limit| usage.elements.get(&(it.uid, it.id)).is_some_and(|n| *n >= limit)) {
        return Some(Block::ArrayLimit);
    }
    // Another host decides about its own resources and load.
    if it.host.is_none() {
        let gpu_parts = u64::from(config.gpus) * PARTS;
        match it.gpu_parts {
            parts if parts > gpu_parts => return Some(Block::Beyond(format!("gpu={}", shown_amount(parts)))),
            parts if parts > 0 && usage.gpu_parts + parts > gpu_parts => return Some(Block::Gpus),
            _ => {}
        }
        if let Some(who) = shared::full_for(config, usage, it) {
            return Some(Block::Storage(who));
        }
        if let Some(index) = load.above_first(&queue.load) {
            return Some(Block::Load(index));
        }
        let of_queue = Some(&queue.res_req).filter(|text| !text.is_empty());
        if let Some(expr) = of_queue.into_iter().chain(&it.require).find(|e| !load.holds(e)) {
            return Some(if load.never(expr) { Block::Beyond(expr.clone()) } else { Block::Require(expr.clone()) });
        }
    }
    None
}

/// The standing of a user on a host: all that other runners need to decide whose turn it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The host; `None` is this machine.
    pub host: Option<String>,
    /// Slots in use, by queue.
    pub used: BTreeMap<String, u32>,
    /// The last start, microseconds since the boot. Wall time can be set back; then a user who started a job before
    /// that would lose all turns until the clock is there again.
    #[serde(default)]
    pub last_us: u64,
    /// The job that would start next.
    pub wants: Option<Want>,
}

/// A job that only its turn and slots keep from its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// Its number.
    pub id: u64,
    /// Index, 0 without an array.
    pub index: u32,
    /// Slots that it takes.
    pub slots: u32,
}

/// Returns the standing on a host of the user who has these elements. Of the jobs that may start the one of the queue
/// of highest priority is first, then the oldest.
///
/// It may need more slots than are free. Then it waits for them, and no job overtakes it: a wide job would never
/// start otherwise.
pub fn standing(
    config: &Config,
    usage: &Usage,
    own: &[JobView],
    host: &Option<String>,
    load: &LoadIndices,
) -> Standing {
    let mut stands = Standing { host: host.clone(), ..Standing::default() };
    let here = own.iter().filter(|v| v.host == *host);
    for view in here.clone() {
        stands.last_us = stands.last_us.max(view.began.as_micros() as u64);
        if view.state.is_running() {
            *stands.used.entry(view.queue.clone()).or_default() += view.slots;
        }
    }
    let priority = |v: &JobView| config.queues.get(&v.queue).map_or(0, |q| q.priority);
    let may = here.filter(|v| matches!(v.state, ElementState::Pend | ElementState::Psusp));
    let may = may.filter(|v| blocked(config, usage, v, load).is_none());
    let first = may.min_by_key(|v| (-priority(v), v.order, v.id, v.index));
    stands.wants = first.map(|v| Want { id: v.id, index: v.index, slots: v.slots });
    stands
}

/// Returns the wish of this user's jobs on this machine for leases of each storage server and queue that they use.
/// Running jobs keep theirs. Wanted are also as many as the jobs take that could start on free slots. The number
/// beside a wish is the fewest leases that one of these jobs takes.
pub fn wishes(
    config: &Config,
    usage: &Usage,
    own: &[JobView],
    load: &LoadIndices,
    free_slots: u32,
) -> BTreeMap<Storage, (LeaseDemand, u32)> {
    let usage = usage.clone().with(BTreeMap::new());
    let mut wishes: BTreeMap<Storage, (LeaseDemand, u32)> = BTreeMap::new();
    for view in own {
        let runs = view.state.is_running();
        if !runs && view.state != ElementState::Pend {
            continue;
        }
        let could = !runs && view.slots <= free_slots.max(1) && blocked(config, &usage, view, load).is_none();
        for (storage, units, _) in shared::taken(config, &usage, view) {
            // A job that could not start now is entered too: without a wish no full server would be known for it.
            let (wish, least) = wishes.entry(storage).or_default();
            wish.used += if runs { units } else { 0 };
            if could {
                wish.wanted += units;
                *least = if *least == 0 { units } else { units.min(*least) };
            }
        }
    }
    wishes.values_mut().for_each(|(wish, _)| wish.wanted = wish.used + wish.wanted.min(free_slots));
    wishes
}

/// Returns the names, for people, of the storage server and queue of which an element takes leases before it starts
/// here.
pub fn leased_by(config: &Config, it: &JobView) -> Vec<String> {
    shared::taken(config, &Usage::default(), it).into_iter().map(|(storage, ..)| storage.name).collect()
}

/// The most elements of one kind that request their start on one host at once. When one has started, the next is
/// already there, and the host does not get a request for each waiting element.
const ASKING: usize = 4;

/// Returns the element whose start another host is requested next: of the queue of highest priority, then the oldest.
/// Elements that cannot start there block only their like.
pub fn next_to_ask<'a>(config: &Config, usage: &Usage, own: &'a [JobView], host: &str) -> Option<&'a JobView> {
    let there = || own.iter().filter(|v| v.host.as_deref() == Some(host));
    let kind = |v: &'a JobView| (&v.queue, v.slots, &v.require);
    let asking = |it: &'a JobView| there().filter(|v| v.asks && kind(v) == kind(it)).count();
    let priority = |v: &JobView| config.queues.get(&v.queue).map_or(0, |q| q.priority);
    let may = there().filter(|v| v.state == ElementState::Pend && !v.asks);
    let may = may.filter(|v| blocked(config, usage, v, &LoadIndices::default()).is_none() && asking(v) < ASKING);
    may.min_by_key(|v| (-priority(v), v.order, v.id, v.index))
}

/// Returns the user who gets the next slots of a host: of the users who want some the one with the fewest. Among
/// equals it is the one with the oldest last start.
pub fn whose_turn<'a>(all: impl Iterator<Item = (u32, &'a Standing)>) -> Option<(u32, &'a Want)> {
    let key = |(uid, s): &(u32, &Standing)| {
        let used = s.used.values().fold(0u32, |sum, n| sum.saturating_add(*n));
        (used, s.last_us, *uid)
    };
    let first = all.filter(|(_, s)| s.wants.is_some()).min_by_key(key)?;
    Some((first.0, first.1.wants.as_ref()?))
}
