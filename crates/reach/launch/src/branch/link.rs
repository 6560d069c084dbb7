//! The ends of a member's channel on the coordinator's side: its input, its output, and its end.

use crate::attend::frame;
use crate::channel_child::Led;
use crate::end::{ChannelEnd, LAST_WORDS, Left};
use crate::wire::CHUNK;
use crate::wire::branch::ToLeader;
use homing_os::threads::lock;
use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A leader, shared by all that send to it and to its members.
pub(super) struct Leader {
    state: Mutex<LeaderState>,
    changed: Condvar,
}

struct LeaderState {
    /// Frames for it; `None` when all members of its branch have ended.
    to: Option<Sender<Vec<u8>>>,
    ends: Vec<Option<ChannelEnd>>,
    /// The process that carries its channel has ended.
    gone: bool,
}

impl LeaderState {
    fn all_ended(&self) -> bool {
        self.ends.iter().all(Option::is_some)
    }
}

impl Leader {
    pub fn new(members: usize, to: Sender<Vec<u8>>) -> Leader {
        let state = LeaderState { to: Some(to), ends: vec![None; members], gone: false };
        Leader { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, LeaderState> {
        lock(&self.state)
    }

    /// Queues a message. Never waits: a separate thread writes.
    pub fn queue_message(&self, message: &ToLeader) {
        let frame = frame(message);
        if let Some(to) = &self.lock().to {
            // The thread that reads from the leader notices one that does not read any more.
            let _ = to.send(frame);
        }
    }

    /// Records the end of a member's channel. When all have ended, the channel to the leader ends, too.
    pub fn ended(&self, member: usize, end: ChannelEnd) {
        let mut state = self.lock();
        state.ends[member].get_or_insert(end);
        if state.all_ended() {
            state.to = None;
        }
        self.changed.notify_all();
    }

    pub fn gone(&self) {
        self.lock().gone = true;
        self.changed.notify_all();
    }
}

/// One member of a leader's branch.
#[derive(Clone)]
pub(super) struct MemberLink {
    pub leader: Arc<Leader>,
    pub member: usize,
}

impl MemberLink {
    fn number(&self) -> u32 {
        self.member as u32
    }
}

impl Led for MemberLink {
    fn end(&self, grace: Duration) {
        let state = self.leader.lock();
        // The last member also waits for the leader.
        let waits = |state: &mut LeaderState| match state.ends[self.member] {
            Some(_) => state.all_ended() && !state.gone,
            None => true,
        };
        let waited = self.leader.changed.wait_timeout_while(state, grace, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let has_ended = state.ends[self.member].is_some();
        drop(state);
        if !has_ended {
            self.leader.queue_message(&ToLeader::Kill { member: self.number() });
        }
    }

    fn ended(&self) -> ChannelEnd {
        let state = self.leader.lock();
        let waited = self.leader.changed.wait_timeout_while(state, LAST_WORDS, |s| s.ends[self.member].is_none());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let unknown =
            || ChannelEnd { why: "its leader has not reported its end".into(), last_line: None, left: Left::Unknown };
        state.ends[self.member].clone().unwrap_or_else(unknown)
    }
}

/// The input of a member's worker; the input ends when this is dropped.
pub(super) struct Speaking(pub MemberLink);

impl Write for Speaking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(CHUNK)];
        self.0.leader.queue_message(&ToLeader::Bytes { member: self.0.number(), bytes: piece.into() });
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        self.0.leader.queue_message(&ToLeader::End { member: self.0.number() });
    }
}

/// The output of a member's worker.
pub(super) struct Listening {
    inbox: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    taken: usize,
}

impl Listening {
    pub fn to(inbox: Receiver<Vec<u8>>) -> Listening {
        Listening { inbox, piece: Vec::new(), taken: 0 }
    }
}

impl BufRead for Listening {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.taken == self.piece.len() {
            let Ok(piece) = self.inbox.recv() else { break };
            (self.piece, self.taken) = (piece, 0);
        }
        Ok(&self.piece[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}

impl Read for Listening {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut piece = self.fill_buf()?;
        let read = piece.read(into)?;
        self.consume(read);
        Ok(read)
    }
}
