//! Limits of a queue over all hosts, by leases in a folder that they share.

use super::{Config, JobView, Usage};
use crate::Storage;
use crate::state::ElementState;
use std::collections::BTreeMap;

/// The prefix of the names of queues' leases, beside those of storage servers.
const QUEUE: &str = "queue-";

/// Returns the storage server and the queue of which an element takes leases before it starts on this machine. With
/// each come the number of leases and the number that its user's elements have here.
pub(super) fn taken(config: &Config, usage: &Usage, it: &JobView) -> Vec<(Storage, u32, u32)> {
    if it.host.is_some() {
        return Vec::new();
    }
    let server = it.storage.iter().map(|storage| (storage.clone(), 1, usage.at(storage)));
    let queue = of_queue(config, it).into_iter().map(|storage| (storage, it.slots, usage.here(it.uid, &it.queue)));
    server.chain(queue).collect()
}

/// Returns storage servers and queues, by their names for people, that block an element, and their users.
fn full<'a>(config: &Config, usage: &'a Usage, it: &JobView) -> impl Iterator<Item = (String, &'a str)> {
    taken(config, usage, it).into_iter().filter_map(|(storage, units, used)| {
        let leased = usage.leased(&storage)?;
        (used.saturating_add(units) > leased.may_use).then_some((storage.name, leased.why.as_str()))
    })
}

/// Returns the users of the storage server or the queue that blocks an element, if one does.
pub(super) fn full_for(config: &Config, usage: &Usage, it: &JobView) -> Option<String> {
    full(config, usage, it).next().map(|(_, why)| why.to_string())
}

/// Returns storage servers and queues that block some of these elements, and their users.
pub fn full_servers(config: &Config, usage: &Usage, own: &[JobView]) -> BTreeMap<String, String> {
    let waiting = own.iter().filter(|v| v.state == ElementState::Pend);
    waiting.flat_map(|view| full(config, usage, view)).map(|(name, why)| (name, why.to_string())).collect()
}

/// Returns the slots of an element's queue that are counted over all hosts: those of all users and those of its user.
fn of_queue(config: &Config, it: &JobView) -> Vec<Storage> {
    let Some((queue, folder)) = config.queues.get(&it.queue).and_then(|q| Some((q, q.leases.as_deref()?))) else {
        return Vec::new();
    };
    let name = &it.queue;
    let limits = [
        (queue.slots, format!("queue {name}"), format!("{QUEUE}{name}")),
        (queue.per_user, format!("queue {name} for its user"), format!("{QUEUE}{name}.{}", it.uid)),
    ];
    let leased = limits.into_iter().filter(|(limit, ..)| limit.is_some());
    leased.map(|(limit, name, server)| Storage { name, server, leases: folder.into(), limit }).collect()
}

/// Whether it is a queue with leased slots, and no storage server.
pub(crate) fn is_queue(storage: &Storage) -> bool {
    storage.server.starts_with(QUEUE)
}
