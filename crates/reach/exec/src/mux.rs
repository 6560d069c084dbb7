//! The protocol of an OpenSSH control master (`PROTOCOL.mux` in its source), as far as commands need it: version 4,
//! in use since 2010.

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const HELLO: u32 = 1;
const VERSION: u32 = 4;
const C_NEW_SESSION: u32 = 0x1000_0002;
const C_ALIVE_CHECK: u32 = 0x1000_0004;
const C_TERMINATE: u32 = 0x1000_0005;
const C_STOP_LISTENING: u32 = 0x1000_0009;
const S_PERMISSION_DENIED: u32 = 0x8000_0002;
const S_FAILURE: u32 = 0x8000_0003;
const S_EXIT_MESSAGE: u32 = 0x8000_0004;
const S_ALIVE: u32 = 0x8000_0005;
const S_SESSION_OPENED: u32 = 0x8000_0006;
/// Longest packet, bytes; those of a master are far shorter.
const MOST: usize = 256 << 10;

/// A connection to a master, after the greeting.
pub(crate) struct Mux {
    pub(crate) socket: UnixStream,
    buffer: Vec<u8>,
}

/// A message of the master about a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MasterNews {
    /// The command's exit status.
    Exit(i32),
    /// The session is over.
    Over,
    /// No whole message yet.
    Nothing,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The master refused: usually there are too many sessions.
    Said(String),
    /// It is gone, or uses another protocol.
    Gone,
    /// It did not answer in time.
    Silent,
}

impl From<io::Error> for Refused {
    fn from(e: io::Error) -> Refused {
        match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Refused::Silent,
            _ => Refused::Gone,
        }
    }
}

impl Mux {
    /// Connects to the master behind `path` and exchanges greetings.
    pub(crate) fn connect(path: &Path, deadline: Instant) -> Result<Mux, Refused> {
        let socket = UnixStream::connect(path).map_err(|_| Refused::Gone)?;
        let mut mux = Mux { socket, buffer: Vec::new() };
        mux.send(&packet(HELLO, |p| p.extend(VERSION.to_be_bytes())))?;
        let hello = mux.receive(deadline)?;
        let mut fields = Fields(&hello);
        match (fields.number(), fields.number()) {
            (Some(HELLO), Some(VERSION)) => Ok(mux),
            _ => Err(Refused::Gone),
        }
    }

    /// Opens a session with these three descriptors as its standard ones.
    pub(crate) fn session(&mut self, line: &str, fds: [BorrowedFd; 3], deadline: Instant) -> Result<(), Refused> {
        self.send(&session_packet(line))?;
        for fd in fds {
            self.send_fd(fd)?;
        }
        let answer = self.receive(deadline)?;
        let mut fields = Fields(&answer);
        match fields.number() {
            Some(S_SESSION_OPENED) => Ok(()),
            Some(S_FAILURE | S_PERMISSION_DENIED) => {
                fields.number();
                Err(Refused::Said(fields.text().unwrap_or_default()))
            }
            _ => Err(Refused::Gone),
        }
    }

    /// Whether the master answers.
    pub(crate) fn alive(&mut self, deadline: Instant) -> bool {
        let asked = self.send(&packet(C_ALIVE_CHECK, |p| p.extend(1u32.to_be_bytes())));
        asked.is_ok() && self.receive(deadline).is_ok_and(|answer| Fields(&answer).number() == Some(S_ALIVE))
    }

    /// Ends the connection and all its sessions.
    pub(crate) fn terminate(&mut self) {
        let _ = self.send(&packet(C_TERMINATE, |p| p.extend(1u32.to_be_bytes())));
        let _ = self.receive(Instant::now() + Duration::from_secs(1));
    }

    /// Makes the master accept no new sessions; those that run may end normally.
    pub(crate) fn retire(&mut self) {
        let _ = self.send(&packet(C_STOP_LISTENING, |p| p.extend(1u32.to_be_bytes())));
        let _ = self.receive(Instant::now() + Duration::from_millis(200));
    }

    /// Reads the bytes that are there; does not wait if the socket is ready. The status of a short command may have
    /// come with the answer that opened its session. The buffer is therefore parsed before the end of the socket
    /// counts.
    pub(crate) fn poll_status(&mut self) -> MasterNews {
        let mut chunk = [0; 4096];
        let over = match self.socket.read(&mut chunk) {
            Ok(n) => {
                self.buffer.extend(&chunk[..n]);
                n == 0
            }
            Err(e) => !matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock),
        };
        while let Some(packet) = self.whole() {
            let mut fields = Fields(&packet);
            if fields.number() == Some(S_EXIT_MESSAGE) {
                fields.number();
                return fields.number().map_or(MasterNews::Over, |status| MasterNews::Exit(status as i32));
            }
        }
        if over || self.buffer.len() > MOST { MasterNews::Over } else { MasterNews::Nothing }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.socket.set_write_timeout(Some(Duration::from_secs(5)))?;
        self.socket.write_all(packet)
    }

    fn send_fd(&self, fd: BorrowedFd) -> Result<(), Refused> {
        let fds = [fd];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let sent = sendmsg(self.socket.as_fd(), &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL);
        if sent.is_ok_and(|n| n == 1) { Ok(()) } else { Err(Refused::Gone) }
    }

    fn receive(&mut self, deadline: Instant) -> Result<Vec<u8>, Refused> {
        loop {
            if let Some(packet) = self.whole() {
                return Ok(packet);
            }
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(left))?;
            let mut chunk = [0; 4096];
            match self.socket.read(&mut chunk)? {
                0 => return Err(Refused::Gone),
                n => self.buffer.extend(&chunk[..n]),
            }
            if self.buffer.len() > MOST {
                return Err(Refused::Gone);
            }
        }
    }

    fn whole(&mut self) -> Option<Vec<u8>> {
        let len = u32::from_be_bytes(*self.buffer.first_chunk()?) as usize;
        if len > MOST || self.buffer.len() < 4 + len {
            return None;
        }
        let packet = self.buffer[4..4 + len].to_vec();
        self.buffer.drain(..4 + len);
        Some(packet)
    }
}

fn session_packet(line: &str) -> Vec<u8> {
    packet(C_NEW_SESSION, |p| {
        let no = 0u32.to_be_bytes();
        p.extend(1u32.to_be_bytes()); // request id
        p.extend(no); // reserved, an empty string
        // terminal, X11, agent, subsystem
        (0..4).for_each(|_| p.extend(no));
        p.extend(u32::MAX.to_be_bytes()); // no escape character
        p.extend(no); // TERM, an empty string
        p.extend((line.len() as u32).to_be_bytes());
        p.extend(line.as_bytes());
    })
}

fn packet(kind: u32, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = vec![0; 4];
    packet.extend(kind.to_be_bytes());
    fill(&mut packet);
    let len = packet.len() as u32 - 4;
    packet[..4].copy_from_slice(&len.to_be_bytes());
    packet
}

/// The fields of a packet, one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    fn text(&mut self) -> Option<String> {
        let len = self.number()? as usize;
        Some(String::from_utf8_lossy(self.0.get(..len)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Mux, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Mux { socket: ours, buffer: Vec::new() }, theirs)
    }

    #[test]
    fn a_status_may_come_in_pieces() {
        let (mut mux, mut master) = pair();
        let message = packet(S_EXIT_MESSAGE, |p| p.extend([0, 0, 0, 9, 0, 0, 0, 255]));
        master.write_all(&message[..6]).unwrap();
        assert_eq!(mux.poll_status(), MasterNews::Nothing);
        master.write_all(&message[6..]).unwrap();
        assert_eq!(mux.poll_status(), MasterNews::Exit(255));
        drop(master);
        assert_eq!(mux.poll_status(), MasterNews::Over);
    }

    #[test]
    fn a_status_may_come_with_the_answer_before_it() {
        let (mut mux, mut master) = pair();
        let opened = packet(S_SESSION_OPENED, |p| p.extend([0; 8]));
        let status = packet(S_EXIT_MESSAGE, |p| p.extend([0, 0, 0, 9, 0, 0, 0, 3]));
        master.write_all(&[opened, status].concat()).unwrap();
        drop(master);
        assert!(mux.receive(Instant::now() + Duration::from_secs(1)).is_ok());
        assert_eq!((mux.poll_status(), mux.poll_status()), (MasterNews::Exit(3), MasterNews::Over));
    }

    #[test]
    fn a_packet_without_end_is_not_waited_for() {
        let (mut mux, mut master) = pair();
        master.write_all(&u32::MAX.to_be_bytes()).unwrap();
        master.write_all(&[0; 100]).unwrap();
        drop(master);
        assert!(matches!(mux.receive(Instant::now() + Duration::from_secs(1)), Err(Refused::Gone)));
    }
}
