//! The leader's end of a branch, on its standard input and output.

use crate::attend::write;
use crate::channel_child::ChannelChild;
use crate::end::Left;
use crate::wire::branch::{FromLeader, MemberTarget, ToLeader};
use crate::wire::{CHUNK, WireError};
use crate::{Channel, Options, Via};
use homing_os::threads::lock;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Time in which the workers of a branch may end after the leader's input has ended.
const FAREWELL: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// Opens channels to the members in the first message and passes on all messages. When the input ends, it ends the
/// input of the members. Calls `spawn_reader` for each read from the coordinator. The caller ends the processes that
/// are left.
pub fn serve(
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    heard: impl Fn(),
) -> Result<(), WireError> {
    let mut from = BufReader::with_capacity(CHUNK, from);
    let Some(ToLeader::Lead { members, connect_timeout_s }) = crate::wire::receive(&mut from)? else { return Ok(()) };
    let voice = Voice(Arc::new(Mutex::new(Some(to))));
    let options = Options { connect_timeout_s, leased: true, ..Options::default() };
    let ways: Vec<Arc<MemberChannel>> = members.iter().map(|_| Arc::new(MemberChannel::default())).collect();
    let mut threads = Vec::new();
    for (at, (member, way)) in members.into_iter().zip(&ways).enumerate() {
        let (host, refused) = (MemberSink { at: at as u32, voice: voice.clone(), way: way.clone() }, voice.clone());
        let options = options.clone();
        match homing_os::threads::begin(move || host.attend(member, &options)) {
            Ok(thread) => threads.push(thread),
            Err(e) => refused.send_message(&FromLeader::Unreached { member: at as u32, why: e.to_string() }),
        }
    }
    let obeyed = obey(&mut from, &ways, heard);
    // From here on missing members have not ended; only their leader has.
    voice.be_silent();
    ways.iter().for_each(|way| way.close());
    wait_for(&threads);
    obeyed
}

/// Passes on the coordinator's messages to the members until the input ends.
fn obey(from: &mut impl BufRead, ways: &[Arc<MemberChannel>], heard: impl Fn()) -> Result<(), WireError> {
    let unknown = |member| WireError::Garbled(format!("a member of number {member}"));
    let way = |member: u32| ways.get(member as usize).ok_or_else(|| unknown(member));
    loop {
        let words = crate::wire::receive_some(from)?;
        if words.is_empty() {
            return Ok(());
        }
        heard();
        for word in words {
            match word {
                ToLeader::Ping => {}
                ToLeader::Bytes { member, bytes } => way(member)?.pass_on(bytes),
                ToLeader::End { member } => way(member)?.close(),
                ToLeader::Kill { member } => way(member)?.kill(),
                ToLeader::Lead { .. } => return Err(WireError::Garbled("a second branch".into())),
            }
        }
    }
}

fn wait_for(threads: &[JoinHandle<()>]) {
    let since = Instant::now();
    while threads.iter().any(|thread| !thread.is_finished()) && since.elapsed() < FAREWELL {
        sleep(LOOK);
    }
}

/// The output to the coordinator, shared by all members.
struct Voice<W>(Arc<Mutex<Option<W>>>);

impl<W> Clone for Voice<W> {
    fn clone(&self) -> Self {
        Voice(self.0.clone())
    }
}

impl<W: Write> Voice<W> {
    /// Sends a message. The reader of the coordinator's messages notices a coordinator that is gone.
    fn send_message(&self, message: &FromLeader) {
        if let Some(to) = &mut *lock(&self.0) {
            let _ = crate::wire::send(to, message).and_then(|()| Ok(to.flush()?));
        }
    }

    fn be_silent(&self) {
        *lock(&self.0) = None;
    }
}

/// The channel to a member's worker.
#[derive(Default)]
struct MemberChannel(Mutex<MemberPipes>);

#[derive(Default)]
struct MemberPipes {
    /// Queues bytes that a slow member has not read yet, as the coordinator would.
    to: Option<Sender<Vec<u8>>>,
    keeper: Option<ChannelChild>,
    /// Whether no message may be sent there any more.
    closed: bool,
}

impl MemberChannel {
    /// Sets both ends, unless the member is no longer wanted; returns whether it did.
    fn open(&self, to: Sender<Vec<u8>>, keeper: ChannelChild) -> bool {
        let mut ends = lock(&self.0);
        if !ends.closed {
            (ends.to, ends.keeper) = (Some(to), Some(keeper));
        }
        !ends.closed
    }

    fn pass_on(&self, bytes: Vec<u8>) {
        let _ = lock(&self.0).to.as_ref().map(|to| to.send(bytes));
    }

    fn close(&self) {
        let mut ends = lock(&self.0);
        (ends.to, ends.closed) = (None, true);
    }

    /// Ends the worker, in a separate thread where one can be started: a worker here gets a signal and time to end.
    fn kill(&self) {
        self.close();
        if let Some(keeper) = lock(&self.0).keeper.take() {
            homing_os::threads::begin_or_do(move || drop(keeper));
        }
    }
}

/// A member, and the output for its events.
struct MemberSink<W> {
    at: u32,
    voice: Voice<W>,
    way: Arc<MemberChannel>,
}

impl<W: Write> MemberSink<W> {
    /// Serves a member from its connection to its end.
    fn attend(&self, member: MemberTarget, options: &Options) {
        let at = self.at;
        let unreached = |why: String| self.voice.send_message(&FromLeader::Unreached { member: at, why });
        // The first member is this host.
        let target = (at != 0).then_some(&*member.target);
        let Channel { facts, to, mut from, keeper, .. } = match crate::open_child(&member.name, target, options) {
            Ok(channel) => channel,
            Err(e) => return unreached(e.to_string()),
        };
        let witness = keeper.witness();
        let (say, said) = channel();
        // Only the coordinator sends heartbeats: those of a leader would keep workers alive that the coordinator has
        // left.
        if let Err(e) = homing_os::threads::begin(move || write(to, &said, &[])) {
            return unreached(e.to_string());
        }
        if !self.way.open(say, keeper) {
            return unreached("the request was cancelled".into());
        }
        let facts = serde_json::to_string(&facts).expect("facts are plain data");
        self.voice.send_message(&FromLeader::Up { member: at, facts });
        self.relay(&mut from);
        let end = witness.end(&target.map_or(Via::Local, |target| Via::Ssh { target: target.into() }));
        let all_ended = end.left == Left::Nothing;
        self.voice.send_message(&FromLeader::Ended { member: at, reason: end.reason(), all_ended });
        self.way.kill();
    }

    fn relay(&self, from: &mut impl BufRead) {
        // A read error is an end, too: the status of the process shows the reason.
        while let Ok(bytes @ [_, ..]) = from.fill_buf() {
            let bytes = bytes[..bytes.len().min(CHUNK)].to_vec();
            from.consume(bytes.len());
            self.voice.send_message(&FromLeader::Bytes { member: self.at, bytes });
        }
    }
}
