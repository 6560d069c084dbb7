//! The exchange before the hello: noise, the bootstrap's lines, the copy. Runs in a separate thread, so that the
//! caller can give up waiting.

use crate::bootstrap::MARK;
use crate::payload::{self, Carried, Payload};
use crate::wire::WireError;
use homing_model::{Ahead, HostFacts};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Longest line that is read, bytes.
const LINE: u64 = 1 << 20;
/// Most lines of noise; the same number as in `wire`.
const LINES: usize = 1000;

/// Our ends of the child's pipes.
pub struct ChildPipes {
    pub to: ChildStdin,
    pub from: BufReader<ChildStdout>,
}

impl ChildPipes {
    /// Takes the ends of a child that was started with both piped.
    pub fn take_from(child: &mut Child) -> ChildPipes {
        ChildPipes {
            to: child.stdin.take().expect("standard input is piped"),
            from: BufReader::with_capacity(64 << 10, child.stdout.take().expect("standard output is piped")),
        }
    }
}

/// A report to the waiting caller.
pub enum HandshakeProgress {
    /// Bytes moved.
    Alive,
    /// A batch system has granted the job with this number.
    Job(String),
    /// The hello has arrived.
    Hello { facts: Box<HostFacts>, ends: ChildPipes },
    /// There will be no hello.
    Failed(Failure),
}

/// Why there is no hello; the messages of ssh are not considered yet.
pub enum Failure {
    /// The stream ended.
    Ended,
    /// Nothing came for this long.
    Silent(Duration),
    /// The bootstrap gave up: kind and detail.
    Boot { kind: String, detail: String },
    /// The far side is another kind of machine, and there is no program for it here.
    Architecture(payload::NoWorker),
    /// The program for the far side cannot be read.
    Program(io::Error),
    /// The hello is not valid.
    Wire(WireError),
}

/// Reads up to the hello, and sends the program when the far side requests it.
pub fn run(
    mut ends: ChildPipes,
    mut payload: Option<Arc<Payload>>,
    carried: Carried,
    progress: &Sender<HandshakeProgress>,
) {
    let last = match converse(&mut ends, &mut payload, carried, progress) {
        Ok(facts) => HandshakeProgress::Hello { facts: Box::new(facts), ends },
        Err(failure) => HandshakeProgress::Failed(failure),
    };
    // The caller may have given up and gone; then the ends just close.
    let _ = progress.send(last);
}

fn converse(
    ends: &mut ChildPipes,
    payload: &mut Option<Arc<Payload>>,
    carried: Carried,
    progress: &Sender<HandshakeProgress>,
) -> Result<HostFacts, Failure> {
    // The worker reads its clock later than this.
    let mut asked_ns = homing_os::clock::system_ns();
    for _ in 0..LINES {
        let mut line = Vec::new();
        let read = ends.from.by_ref().take(LINE).read_until(b'\n', &mut line);
        if read.map_err(|e| Failure::Wire(e.into()))? == 0 {
            return Err(Failure::Ended);
        }
        let _ = progress.send(HandshakeProgress::Alive);
        let text = String::from_utf8_lossy(&line);
        if text.contains("homing-wire ") {
            let facts: HostFacts = crate::wire::receive_hello(&mut &line[..], |_| ()).map_err(Failure::Wire)?;
            let ahead = Ahead::of(asked_ns, facts.now_ns, homing_os::clock::system_ns());
            return Ok(HostFacts { ahead, ..facts });
        }
        // As before the hello, noise without a newline may precede it.
        let Some((_, said)) = text.trim_end().split_once(MARK) else { continue };
        match (said.split_once(' '), payload.as_ref()) {
            (Some(("arch", arch)), Some(own)) => *payload = Some(tell_of_another(arch, own, carried, ends)?),
            (Some(("need", of)), Some(payload)) => {
                send_program(payload, of.ends_with(" gzip"), ends, progress)?;
                asked_ns = homing_os::clock::system_ns();
            }
            (Some(("job", id)), _) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()) => {
                let _ = progress.send(HandshakeProgress::Job(id.into()));
            }
            (Some(("fail", why)), _) => {
                let (kind, detail) = why.split_once(' ').unwrap_or((why, ""));
                return Err(Failure::Boot { kind: kind.into(), detail: detail.into() });
            }
            _ => {}
        }
    }
    Err(Failure::Wire(WireError::Garbled("a thousand lines without a hello".into())))
}

/// Returns the program for another kind of machine, after sending its hash and size to the far side.
fn tell_of_another(
    arch: &str,
    own: &Payload,
    carried: Carried,
    ends: &mut ChildPipes,
) -> Result<Arc<Payload>, Failure> {
    let path = payload::beside(own.exe(), arch, carried).map_err(Failure::Architecture)?;
    let payload = payload::load(&path).map_err(Failure::Program)?;
    let told = writeln!(ends.to, "{} {}", payload.sha256, payload.size).and_then(|()| ends.to.flush());
    told.map_err(|e| Failure::Wire(e.into()))?;
    Ok(payload)
}

fn send_program(
    payload: &Payload,
    packed: bool,
    ends: &mut ChildPipes,
    progress: &Sender<HandshakeProgress>,
) -> Result<(), Failure> {
    let alive = || drop(progress.send(HandshakeProgress::Alive));
    let bytes = if packed { payload.packed(alive) } else { payload.bytes() }.map_err(|e| Failure::Wire(e.into()))?;
    let sent = if packed { writeln!(ends.to, "{}", bytes.len()) } else { Ok(()) };
    match sent.and_then(|()| send_bytes(&bytes, &mut ends.to, progress)) {
        // The far side has closed its input: its last line, read next, has the reason.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        sent => sent.map_err(|e| Failure::Wire(e.into())),
    }
}

fn send_bytes(bytes: &[u8], to: &mut ChildStdin, progress: &Sender<HandshakeProgress>) -> io::Result<()> {
    for chunk in bytes.chunks(64 << 10) {
        to.write_all(chunk)?;
        let _ = progress.send(HandshakeProgress::Alive);
    }
    to.flush()
}
