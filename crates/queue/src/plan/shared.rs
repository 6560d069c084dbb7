//! Limits of a queue that hold over all hosts, by leases in a folder that these share.

use super::{Config, Usage, View};
use crate::Storage;

/// How the names begin under which the slots of queues are leased, beside those of storage servers.
const QUEUE: &str = "queue-";

/// What an element takes leases of before it starts on this machine, how many of each, and how many its user's elements
/// have here: its storage server, and its queue.
pub(super) fn taken(config: &Config, usage: &Usage, it: &View) -> Vec<(Storage, u32, u32)> {
    if it.host.is_some() {
        return Vec::new();
    }
    let server = it.storage.iter().map(|storage| (storage.clone(), 1, usage.at(storage)));
    let slots = usage.here(it.uid, &it.queue);
    let queue = of_queue(config, it).into_iter().map(|storage| (storage, it.slots, slots));
    server.chain(queue).collect()
}

/// The slots of an element's queue that are counted over all hosts, of everybody and of its user.
fn of_queue(config: &Config, it: &View) -> Vec<Storage> {
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

/// Whether it is a queue whose slots are leased, and no storage server.
pub(crate) fn is_queue(storage: &Storage) -> bool {
    storage.server.starts_with(QUEUE)
}
