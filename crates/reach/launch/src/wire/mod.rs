//! Messages between coordinator and worker, and their framing.
//!
//! The far side writes only protocol to its standard output. The first line is text, `homing-wire 2 RELEASE {json}`:
//! the version of the frames, the version of the program, and the host facts. Lines before it (a talkative `.bashrc`)
//! are skipped. Frames follow, in both directions: a length as u32 little endian, then that many bytes of postcard.

pub mod branch;
pub mod lines;
pub mod stub;

use homing_lease::UnitWish;
use homing_model::{FileChange, HostFacts, HostSample, IoCounters, IoWait, Outcome, RawText, StorageSample, Task};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt::{Debug, Write as _};
use std::io::{self, BufRead, Read, Write};
use std::sync::OnceLock;

/// Version of the frames. Coordinator and worker are of one release: a mismatch is refused, not translated.
pub const VERSION: u32 = 2;

/// Returns the version of this program as `1.2.3`, or `1.2.3+COMMIT` if `HOMING_COMMIT` was set for the build.
pub fn release() -> &'static str {
    static RELEASE: OnceLock<String> = OnceLock::new();
    RELEASE.get_or_init(|| {
        let commit = option_env!("HOMING_COMMIT").filter(|commit| !commit.is_empty());
        [Some(env!("CARGO_PKG_VERSION")), commit].into_iter().flatten().collect::<Vec<_>>().join("+")
    })
}

/// Longest frame, bytes; both sides refuse a longer one. Output travels in chunks of 64 KiB, lists in [`portions`]:
/// only a damaged or hostile stream announces more.
pub const MAX_FRAME: usize = 16 << 20;

/// Most bytes of the changes in one message: few enough that a heartbeat does not wait long behind them.
const PORTION: usize = 1 << 20;
/// Bytes of a change without its path: five numbers of at most ten bytes, and the tags that mark which are present.
const CHANGE_BESIDES: usize = 64;

/// Largest chunk of task output or input in one message, bytes.
pub const CHUNK: usize = 64 << 10;

/// Seconds without a message from the coordinator after which a worker ends itself and all that it started.
pub const WORKER_LEASE_S: u64 = 25;

/// The argument after the role for a worker that is a child of its coordinator: it has no lease. A coordinator that
/// is gone ends the worker's input. A silent one is stopped, or sleeps with the machine, and continues later.
pub const CHILD: &str = "child";

/// Seconds without a message from a worker after which its host counts as lost. Longer than the lease plus the time
/// in which a worker ends its tasks, so that no task runs in two places.
pub const HOST_LOST_S: u64 = 30;

/// Exit status of a worker's guard if the worker ended without an order to end, and no process that it started is
/// left. After status 0 none is left either. After any other status, ssh's own 255 among them, it is unknown.
pub const ALL_ENDED: i32 = 86;

/// Seconds between two messages if there is nothing else to send.
pub const HEARTBEAT_S: u64 = 5;

/// Which stream a chunk of output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Messages from coordinator to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// First message: the settings that all tasks share.
    Begin {
        /// Name of the run, for the environment and for messages.
        run: String,
        /// Default working directory.
        cwd: RawText,
        /// Environment of all tasks. It replaces the worker's own, except for variables of the login there that it
        /// lacks.
        env: Vec<(RawText, RawText)>,
        /// File mode creation mask of all tasks: that of the shell in which the run began.
        umask: u32,
        /// Most tasks at once.
        slots: u32,
        /// Interval of load samples in milliseconds; 0 for none.
        sample_ms: u32,
        /// Send pulses while tasks run.
        pulse: bool,
        /// Send output as it comes (`--line-buffer`), also where a small output would travel with the end of the
        /// task.
        eager_output: bool,
        /// The increase of the tasks' nice value over the worker's own (`--nice`).
        nice: i32,
        /// The site's command that prints the watts of the host; empty for none.
        meter: String,
    },
    /// Run a task. `ticket` identifies this attempt on this channel.
    Run {
        /// The number of the attempt.
        ticket: u64,
        /// Slot number for `{%}` and `PARALLEL_JOBSLOT`, from 1.
        slot: u32,
        /// The task.
        task: Task,
        /// Files that must exist here before it starts; otherwise the worker answers `Unfit`.
        requires: Vec<RawText>,
        /// Count the bytes that it reads even if it is short: it has inputs.
        weigh: bool,
        /// Changes by other hosts that this host must see before the task starts, after those of
        /// [`ToWorker::Written`].
        fence: Vec<FileChange>,
        /// Units of the host's resources that the worker leases for it, and names in its environment.
        units: Vec<UnitWish>,
    },
    /// End an attempt: SIGTERM, then SIGKILL after `grace_ms`.
    Kill {
        /// The attempt.
        ticket: u64,
        /// Milliseconds between the two signals.
        grace_ms: u32,
        /// Report `TimedOut` instead of `Killed`.
        timed_out: bool,
    },
    /// Send the output of this attempt as it comes, beginning with the output so far.
    Eager {
        /// The attempt.
        ticket: u64,
    },
    /// Check whether this host has the files of a volume that is not mounted here. The answer is
    /// [`FromWorker::HasVolume`].
    HasVolume {
        /// The number of the check.
        ask: u64,
        /// The mount point on the other hosts.
        point: RawText,
        /// The name of that directory on the server, from the mount's source.
        path: RawText,
        /// A file that was just made, by its path below that directory.
        nonce: RawText,
        /// The content of that file.
        secret: RawText,
    },
    /// Heartbeat.
    Ping,
    /// No more tasks: finish the running ones, send `Bye`, exit.
    Finish,
    /// The tasks are recipes of a build: report the files that they change below these folders.
    Watch {
        /// Top folders of the build.
        roots: Vec<RawText>,
    },
    /// Run a recipe: like `Run`, behind a fence and with a report of the files that it changed.
    Recipe {
        /// Names the attempt.
        ticket: u64,
        /// The recipe.
        task: Task,
        /// Folders in which it may write, besides its own.
        folders: Vec<RawText>,
    },
    /// Changes by other hosts that this host must see before the following recipes start. In a run: the first parts
    /// of a fence that is too long for the next `Run`.
    Written {
        /// Files made, changed or removed.
        changes: Vec<FileChange>,
    },
    /// Part of the standard input of a task whose `Run` follows.
    Input {
        /// The attempt.
        ticket: u64,
        /// At most `CHUNK` bytes, after those of earlier messages.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
}

/// Messages from worker to coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWorker {
    /// Part of a running task's output. The small output of a short task travels in `AttemptEnd` instead.
    Output {
        /// The attempt.
        ticket: u64,
        /// Which stream.
        stream: OutputStream,
        /// At most `CHUNK` bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// An attempt ended; this is the last message about it.
    Ended(AttemptEnd),
    /// The attempt did not start here and should be tried elsewhere.
    Unfit {
        /// The attempt.
        ticket: u64,
        /// The path that is missing here.
        missing: RawText,
    },
    /// Answer to [`ToWorker::HasVolume`].
    HasVolume {
        /// The number of the check.
        ask: u64,
        /// Whether tasks see the volume's files here from now on.
        accepted: bool,
        /// How, or why not; for people.
        text: String,
    },
    /// A load sample.
    Sample(HostSample),
    /// A line for the user.
    Note(String),
    /// Heartbeat.
    Pong,
    /// Last message.
    Bye,
    /// The measurements that admission uses.
    Pulse(StorageSample),
    /// The bytes that an NFS server has exchanged with this host have grown; always sent before the pulse of that
    /// time.
    Served {
        /// The name of the server, as in the mounts here.
        server: String,
        /// Bytes from it and to it since its volumes were mounted here.
        bytes: u64,
    },
    /// Files that a recipe changed, synced; always sent before its `AttemptEnd`. A long list comes in parts.
    Changed {
        /// The attempt.
        ticket: u64,
        /// Files made, changed or removed.
        changes: Vec<FileChange>,
        /// Microseconds spent to see others' files before it and to sync its own after it; 0 in all parts but one.
        fence_us: u64,
    },
    /// An attempt did not start: this host does not see a file as another host wrote it.
    Late {
        /// The attempt.
        ticket: u64,
        /// The file.
        change: FileChange,
        /// For people.
        why: String,
    },
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// The attempt.
    pub ticket: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Wall time, microseconds.
    pub wall_us: u64,
    /// The I/O that it used.
    pub io: IoCounters,
    /// Time waited for I/O.
    pub io_wait: Option<IoWait>,
    /// Output not yet sent.
    #[serde(with = "serde_bytes")]
    pub stdout: Vec<u8>,
    /// Error output not yet sent.
    #[serde(with = "serde_bytes")]
    pub stderr: Vec<u8>,
    /// Declared outputs that were moved aside because the attempt failed, as `(from, to)`.
    pub set_aside: Vec<(RawText, RawText)>,
    /// Declared outputs on shared file systems as it left them, synced.
    pub wrote: Vec<FileChange>,
}

/// An error of a channel.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The bytes are not a frame of homing's.
    #[error("the other side sent an invalid message: {0}")]
    Garbled(String),
    /// The message was too large, and nothing was sent.
    #[error("a message of {bytes} bytes is too large, the limit is {MAX_FRAME}: {what}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The start of the message.
        what: String,
    },
    /// The other side is another version of homing: a program for another kind of machine, from another source.
    #[error("its worker is homing {theirs}, this is homing {}: install both from one release", release())]
    Release {
        /// Its version.
        theirs: String,
    },
}

/// Appends one frame to `buf`, so that several can be written in one call. Refuses a message longer than
/// [`MAX_FRAME`] and leaves `buf` as it was: a receiver would end as after garbage.
pub fn encode<T: Serialize + Debug>(message: &T, buf: &mut Vec<u8>) -> Result<(), WireError> {
    let at = buf.len();
    buf.extend_from_slice(&[0; 4]);
    let taken = std::mem::take(buf);
    *buf = postcard::to_extend(message, taken).expect("a message always encodes into memory");
    let length = buf.len() - at - 4;
    if length > MAX_FRAME {
        buf.truncate(at);
        return Err(WireError::TooLarge { bytes: length, what: beginning(message) });
    }
    buf[at..at + 4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Returns the first characters of a message's debug text: its kind, its ticket, and its first fields.
fn beginning(message: &impl Debug) -> String {
    struct Beginning(String);
    impl std::fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let room = BEGINNING.saturating_sub(self.0.len());
            self.0.extend(text.chars().take(room));
            // The error ends the formatting: a message of megabytes is not formatted to its end.
            if text.len() < room { Ok(()) } else { Err(std::fmt::Error) }
        }
    }
    const BEGINNING: usize = 100;
    let mut beginning = Beginning(String::new());
    let _ = write!(beginning, "{message:?}");
    beginning.0
}

/// Cuts a list of changes so that each part fits into one message. Returns at least one part, which may be empty.
pub fn portions(changes: Vec<FileChange>) -> Vec<Vec<FileChange>> {
    let (mut portions, mut bytes) = (vec![Vec::new()], 0);
    for change in changes {
        bytes += change.path.0.len() + CHANGE_BESIDES;
        if bytes > PORTION {
            bytes = change.path.0.len() + CHANGE_BESIDES;
            portions.push(Vec::new());
        }
        portions.last_mut().expect("there is one from the start").push(change);
    }
    portions
}

/// Encodes and writes one frame, without flushing.
pub fn send<T: Serialize + Debug>(to: &mut impl Write, message: &T) -> Result<(), WireError> {
    let mut buf = Vec::with_capacity(256);
    encode(message, &mut buf)?;
    to.write_all(&buf)?;
    Ok(())
}

/// Reads one frame. Returns `None` at a clean end of the stream.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<T>, WireError> {
    let mut head = [0u8; 4];
    match from.read(&mut head[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut head[1..])?,
    }
    let length = u32::from_le_bytes(head) as usize;
    if length > MAX_FRAME {
        return Err(WireError::Garbled(format!("a frame of {length} bytes")));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    postcard::from_bytes(&body).map(Some).map_err(|e| WireError::Garbled(e.to_string()))
}

/// Waits for a frame and returns it with all others that have arrived whole, so that the owner of the reader wakes
/// once for all. Empty at a clean end of the stream.
pub fn receive_some<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<Vec<T>, WireError> {
    let (mut found, mut taken) = (Vec::new(), 0);
    let buffered = from.fill_buf()?;
    while let Some(body) = whole_frame(&buffered[taken..]) {
        found.push(postcard::from_bytes(body).map_err(|e| WireError::Garbled(e.to_string()))?);
        taken += 4 + body.len();
    }
    from.consume(taken);
    if found.is_empty() {
        found.extend(receive(from)?);
    }
    Ok(found)
}

/// Returns the body of the first frame, if all of it is there.
fn whole_frame(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_le_bytes(*bytes.first_chunk::<4>()?) as usize;
    bytes.get(4..4usize.checked_add(length)?)
}

/// Writes the hello line.
pub fn send_hello(to: &mut impl Write, facts: &HostFacts) -> Result<(), WireError> {
    let json = serde_json::to_string(facts).map_err(|e| WireError::Garbled(e.to_string()))?;
    writeln!(to, "homing-wire {VERSION} {} {json}", release())?;
    to.flush()?;
    Ok(())
}

/// Skips to the hello line and parses it. Calls `on_noise` with each line before it.
pub fn receive_hello(from: &mut impl BufRead, mut on_noise: impl FnMut(&[u8])) -> Result<HostFacts, WireError> {
    for _ in 0..1000 {
        let mut line = Vec::new();
        // A noisy shell may print without a newline; the hello is then found inside the line.
        if from.by_ref().take(1 << 20).read_until(b'\n', &mut line)? == 0 {
            return Err(WireError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        let text = String::from_utf8_lossy(&line);
        let Some(at) = text.find("homing-wire ") else {
            on_noise(&line);
            continue;
        };
        let json = facts_of(text[at..].trim_end())?;
        return serde_json::from_str(json).map_err(|e| WireError::Garbled(e.to_string()));
    }
    Err(WireError::Garbled("a thousand lines without a hello".into()))
}

/// Returns the facts in a hello from a program of this same release.
fn facts_of(hello: &str) -> Result<&str, WireError> {
    let words: Vec<&str> = hello.splitn(4, ' ').collect();
    let theirs = match words[..] {
        [_, version, theirs, json] if theirs == release() && version.parse() == Ok(VERSION) => return Ok(json),
        // Before 0.1.0 the hello contained only the version of the frames.
        [_, _, facts, ..] if facts.starts_with('{') => "of an older version",
        [_, version, theirs, ..] => &format!("{theirs} with frames {version} and not {VERSION}"),
        _ => "of no version",
    };
    Err(WireError::Release { theirs: theirs.escape_debug().to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_hello_round_trip_behind_noise() {
        let mut bytes = b"Welcome to n1\n* motd without end".to_vec();
        let facts = HostFacts { hostname: "n1".into(), cores: 2, ..HostFacts::default() };
        send_hello(&mut bytes, &facts).unwrap();
        let sent = FromWorker::Output { ticket: 7, stream: OutputStream::Err, bytes: vec![0, 255, 10] };
        send(&mut bytes, &sent).unwrap();
        let mut from = io::BufReader::new(&bytes[..]);
        let mut noise = 0;
        assert_eq!(receive_hello(&mut from, |_| noise += 1).unwrap(), facts);
        assert_eq!(noise, 1);
        assert_eq!(receive::<FromWorker>(&mut from).unwrap(), Some(sent));
        assert!(receive::<FromWorker>(&mut from).unwrap().is_none());
    }

    #[test]
    fn frames_that_arrived_together_are_taken_together_and_cut_ones_are_waited_for() {
        let mut bytes = Vec::new();
        for ticket in 0..5 {
            encode(&FromWorker::Unfit { ticket, missing: "f".into() }, &mut bytes).unwrap();
        }
        for capacity in [1, 7, 64, 1000] {
            let mut from = io::BufReader::with_capacity(capacity, &bytes[..]);
            let mut tickets = Vec::new();
            loop {
                let some = receive_some::<FromWorker>(&mut from).unwrap();
                if some.is_empty() {
                    break;
                }
                assert!(capacity < 1000 || some.len() == 5, "one read takes all");
                tickets.extend(some.into_iter().map(|m| match m {
                    FromWorker::Unfit { ticket, .. } => ticket,
                    other => panic!("{other:?}"),
                }));
            }
            assert_eq!(tickets, [0, 1, 2, 3, 4]);
        }
        let mut cut = io::BufReader::new(&bytes[..bytes.len() - 1]);
        receive_some::<FromWorker>(&mut cut).unwrap();
        assert!(receive_some::<FromWorker>(&mut cut).is_err(), "an end inside a frame is no clean end");
    }

    #[test]
    fn a_message_above_the_limit_is_refused_by_name_and_leaves_no_trace() {
        let mut bytes = Vec::new();
        encode(&FromWorker::Pong, &mut bytes).unwrap();
        let before = bytes.clone();
        let long = FromWorker::Unfit { ticket: 7, missing: RawText(vec![b'x'; MAX_FRAME]) };
        let error = encode(&long, &mut bytes).unwrap_err().to_string();
        assert!(error.contains("16777222 bytes") && error.contains("Unfit { ticket: 7, "), "{error}");
        assert!(error.len() < 300, "{error}");
        assert_eq!(bytes, before);
        let mut none: Vec<u8> = Vec::new();
        assert!(matches!(send(&mut none, &long), Err(WireError::TooLarge { .. })) && none.is_empty());
    }

    #[test]
    fn a_build_of_many_changed_files_fits_into_frames() {
        let stamp = homing_model::FileStamp { size: u64::MAX, ino: u64::MAX, mtime_ns: i64::MIN, dir: false };
        let change = |n: usize| FileChange {
            path: RawText(format!("/{}/{n}", "folder/".repeat(20)).into_bytes()),
            now: Some(stamp),
            fresh: true,
            was: Some(u64::MAX),
        };
        let changes: Vec<FileChange> = (0..150_000).map(change).collect();
        let whole = FromWorker::Changed { ticket: 1, changes: changes.clone(), fence_us: 0 };
        assert!(encode(&whole, &mut Vec::new()).is_err(), "one message would do, and this test shows nothing");
        let mut bytes = Vec::new();
        for changes in portions(changes.clone()) {
            encode(&ToWorker::Written { changes }, &mut bytes).unwrap();
        }
        let (mut from, mut arrived) = (&bytes[..], Vec::new());
        while let Some(ToWorker::Written { changes }) = receive(&mut from).unwrap() {
            arrived.extend(changes);
        }
        assert_eq!(arrived, changes);
        assert_eq!(portions(Vec::new()), [Vec::new()]);
    }

    fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(message: T) {
        let mut bytes = Vec::new();
        encode(&message, &mut bytes).unwrap();
        assert_eq!(receive::<T>(&mut &bytes[..]).unwrap().as_ref(), Some(&message));
    }

    #[test]
    fn messages_with_every_field_full_and_empty() {
        for command in [homing_model::Command::Shell("x".into()), homing_model::Command::Argv(vec!["a".into()])] {
            for full in [false, true] {
                let text = || RawText(b"\xffx".to_vec());
                let task = Task {
                    id: 1,
                    command: command.clone(),
                    cwd: full.then(text),
                    env: if full { vec![(text(), text())] } else { vec![] },
                    args: if full { vec![text()] } else { vec![] },
                    inputs: vec![],
                    outputs: vec![text()],
                    cpus: 1,
                    memory: full.then_some(5),
                    timeout_ms: None,
                    stdin: Vec::new(),
                    folders: Vec::new(),
                    name: None,
                    after: vec![],
                    resources: vec![],
                };
                round_trip(ToWorker::Run {
                    ticket: 1,
                    slot: 1,
                    task,
                    requires: vec![text()],
                    weigh: true,
                    fence: vec![],
                    units: vec![UnitWish { name: "gpu".into(), parts: 50, all: 2 }],
                });
                round_trip(FromWorker::Ended(AttemptEnd {
                    ticket: 9,
                    outcome: if full { Outcome::Lost("x".into()) } else { Outcome::Exit(3) },
                    wall_us: 1,
                    io: IoCounters { rchar: full.then_some(1), ..IoCounters::default() },
                    io_wait: full.then_some(IoWait::DelayAccounting(7)),
                    stdout: vec![1],
                    stderr: vec![],
                    set_aside: vec![(text(), text())],
                    wrote: vec![],
                }));
                let net = [("eth0".to_string(), (1, 2))].into();
                round_trip(FromWorker::Sample(HostSample { r1m: full.then_some(0.5), net, ..HostSample::default() }));
            }
        }
        let path = || RawText(b"/d/\xff".to_vec());
        let stamp = homing_model::FileStamp { size: 1, ino: 2, mtime_ns: -3, dir: true };
        for change in
            [None, Some(stamp)].map(|now| FileChange { path: path(), now, fresh: now.is_none(), was: Some(7) })
        {
            let changes = vec![change.clone()];
            round_trip(FromWorker::Changed { ticket: 1, changes, fence_us: 5 });
            round_trip(FromWorker::Late { ticket: 1, change, why: "x".into() });
        }
        round_trip(ToWorker::Watch { roots: vec![path()] });
        let env = vec![("A".into(), "b".into())];
        let (run, cwd) = ("r".to_string(), "/".into());
        round_trip(ToWorker::Begin {
            run,
            cwd,
            env,
            umask: 0o22,
            slots: 2,
            sample_ms: 1000,
            pulse: true,
            eager_output: true,
            nice: 7,
            meter: "m".into(),
        });
    }

    #[test]
    fn a_cut_or_hostile_stream_is_an_error() {
        let mut bytes = Vec::new();
        encode(&FromWorker::Note("x".into()), &mut bytes).unwrap();
        bytes.pop();
        assert!(receive::<FromWorker>(&mut &bytes[..]).is_err());
        let huge = u32::MAX.to_le_bytes();
        assert!(matches!(receive::<FromWorker>(&mut &huge[..]), Err(WireError::Garbled(_))));
    }
}
