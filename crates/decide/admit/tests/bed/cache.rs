//! A page cache that drops the least recently used chunks.

use std::collections::{BTreeMap, HashMap};

/// The number of a task, whose file it is, and of a chunk in it.
pub type Chunk = (u32, u32);

pub enum Found {
    Here,
    /// The chunk was never read before.
    New,
    /// The chunk was dropped.
    Again,
}

pub struct Cache {
    room: usize,
    /// The last use of each chunk; `None` once it was dropped.
    used: HashMap<Chunk, Option<u64>>,
    order: BTreeMap<u64, Chunk>,
    now: u64,
}

impl Cache {
    pub fn new(room: usize) -> Cache {
        Cache { room, used: HashMap::new(), order: BTreeMap::new(), now: 0 }
    }

    /// Reads a chunk, which is in the cache afterwards.
    pub fn ask(&mut self, chunk: Chunk) -> Found {
        self.now += 1;
        let before = self.used.insert(chunk, Some(self.now));
        if let Some(Some(at)) = before {
            self.order.remove(&at);
        }
        self.order.insert(self.now, chunk);
        if self.order.len() > self.room {
            let (_, dropped) = self.order.pop_first().expect("there is one more than fits");
            self.used.insert(dropped, None);
        }
        match before {
            None => Found::New,
            Some(None) => Found::Again,
            Some(Some(_)) => Found::Here,
        }
    }
}
