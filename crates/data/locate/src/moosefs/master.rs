//! The part of the master's protocol for chunks and their copies.
//!
//! A mount listens on its own host and passes messages on to the master in its own session. So neither a firewall nor
//! the master's address matters. Packets are `type:u32 length:u32` and the body, big endian. Names and numbers are
//! those of MFSCommunication.h, MooseFS 3.0.117.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// ANTOAN_NOP: a mount still waits for its master.
const WAIT: u32 = 0;
const REGISTER: u32 = 400;
const REGISTERED: u32 = 401;
const CHECK: u32 = 440;
const CHECKED: u32 = 441;
/// FUSE_REGISTER_BLOB_ACL: shows that the caller knows this protocol; it is no secret.
const BLOB: &[u8; 64] = b"DjI1GAQDULI5d2YjA26ypc3ovkhjvhciTQVx3CS4nYgtBoUcsljiVpsErJENHaw0";
const REGISTER_TOOLS: u8 = 4;
/// The version that homing reports: the same as the tools of the version above.
const VERSION: u32 = 0x0003_0075;
/// The first version whose master reports copies of a chunk by its index.
const LEAST_VERSION: u32 = 0x0003_001a;
/// The most open queries; their answers fit into a socket's buffer.
const WINDOW: usize = 256;
/// The longest answer, bytes: 100 copies.
const LONGEST: usize = 1000;
/// A master that is restarted answers again within seconds; longer silence is an outage.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyState {
    Valid,
    /// Valid, on a disk or chunkserver that is being emptied.
    Leaving,
    /// Of an older version, or damaged.
    Useless,
}

impl CopyState {
    fn of(kind: u8) -> CopyState {
        match kind {
            0 => CopyState::Valid,
            1 => CopyState::Leaving,
            _ => CopyState::Useless,
        }
    }
}

/// The state of one chunk of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// Never written: a hole.
    Empty,
    /// On chunkservers that are connected to the master.
    Copies(Vec<(Ipv4Addr, CopyState)>),
    /// The master's reason.
    Refused(String),
}

/// The address of a mount, and its session with the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Door {
    address: SocketAddrV4,
    session: u32,
}

impl Door {
    /// Reads `.masterinfo`, which every folder of a mount has.
    pub fn at(point: &Path) -> Result<Door, String> {
        let file = point.join(".masterinfo");
        let bytes = std::fs::read(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        Door::parse(&bytes).map_err(|e| format!("{}: {e}", file.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Door, String> {
        let [a, b, c, d, p, q, rest @ ..] = bytes else { return Err("it has no address of a MooseFS master".into()) };
        let [session, version] = match rest {
            [s0, s1, s2, s3, v0, v1, v2, v3] => [[*s0, *s1, *s2, *s3], [*v0, *v1, *v2, *v3]].map(u32::from_be_bytes),
            _ => return Err("this MooseFS does not report its version, and is too old for homing".into()),
        };
        if version < LEAST_VERSION {
            return Err("this MooseFS is older than 3.0.26".into());
        }
        let address = SocketAddrV4::new(Ipv4Addr::new(*a, *b, *c, *d), u16::from_be_bytes([*p, *q]));
        Ok(Door { address, session })
    }

    pub fn open(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&SocketAddr::V4(self.address), PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut connection = Connection { from: BufReader::new(stream), asked: 0 };
        let mut body = BLOB.to_vec();
        body.push(REGISTER_TOOLS);
        body.extend(self.session.to_be_bytes());
        body.extend(VERSION.to_be_bytes());
        connection.from.get_mut().write_all(&packet(REGISTER, &body))?;
        match connection.receive()? {
            (REGISTERED, body) if body == [0] => Ok(connection),
            (kind, body) => Err(garbled(format!("message {kind} {body:?} in reply to the registration"))),
        }
    }
}

/// A registered connection.
pub(super) struct Connection {
    from: BufReader<TcpStream>,
    asked: u32,
}

impl Connection {
    /// Returns one answer for each inode and chunk index, in order.
    pub fn check(&mut self, asks: &[(u32, u32)]) -> io::Result<Vec<ChunkState>> {
        let mut chunks = Vec::with_capacity(asks.len());
        for some in asks.chunks(WINDOW) {
            let first = self.asked;
            let mut out = Vec::with_capacity(some.len() * 20);
            for (inode, index) in some {
                let body: Vec<u8> = [self.asked, *inode, *index].iter().flat_map(|n| n.to_be_bytes()).collect();
                out.extend(packet(CHECK, &body));
                self.asked = self.asked.wrapping_add(1);
            }
            self.from.get_mut().write_all(&out)?;
            for nth in 0..some.len() as u32 {
                let (kind, body) = self.receive()?;
                let answer = (kind == CHECKED).then_some(body).filter(|b| b.len() > 4);
                let body = answer.ok_or_else(|| garbled(format!("message {kind} in reply to the query")))?;
                if body[..4] != first.wrapping_add(nth).to_be_bytes() {
                    return Err(garbled("an answer to a query that homing did not send".into()));
                }
                chunks.push(chunk(&body[4..]).ok_or_else(|| garbled("an answer of unexpected length".into()))?);
            }
        }
        Ok(chunks)
    }

    fn receive(&mut self) -> io::Result<(u32, Vec<u8>)> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.message()? {
                (WAIT, _) if Instant::now() < until => {}
                message => return Ok(message),
            }
        }
    }

    fn message(&mut self) -> io::Result<(u32, Vec<u8>)> {
        let (mut kind, mut length) = ([0; 4], [0; 4]);
        self.from.read_exact(&mut kind)?;
        self.from.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LONGEST {
            return Err(garbled(format!("an answer of {length} bytes")));
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body)?;
        Ok((u32::from_be_bytes(kind), body))
    }
}

fn garbled(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn packet(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut out = kind.to_be_bytes().to_vec();
    out.extend((body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Parses `status:8`, or `chunkid:64 version:32 N*[ip:32 port:16 type:8]`.
fn chunk(body: &[u8]) -> Option<ChunkState> {
    if let [status] = body {
        return Some(ChunkState::Refused(meaning(*status)));
    }
    let (id, rest) = body.split_first_chunk::<8>()?;
    let (_version, rest) = rest.split_first_chunk::<4>()?;
    if rest.len() % 7 != 0 {
        return None;
    }
    if *id == [0; 8] {
        return Some(ChunkState::Empty);
    }
    let copies = rest.chunks_exact(7).map(|c| (Ipv4Addr::new(c[0], c[1], c[2], c[3]), CopyState::of(c[6])));
    Some(ChunkState::Copies(copies.collect()))
}

/// Describes MFS_ERROR_* values that can occur here.
fn meaning(status: u8) -> String {
    match status {
        1 => "operation not permitted".into(),
        3 => "no such file".into(),
        13 => "it has lost a chunk of this file".into(),
        other => format!("status {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masterinfo_tells_address_and_session() {
        let told = b"\x7f\0\0\x01\xd2\xcb\0\0\0\x03\0\x03\0\xea";
        let door = Door::parse(told).unwrap();
        assert_eq!((door.address, door.session), ("127.0.0.1:53963".parse().unwrap(), 3));
        assert!(Door::parse(&told[..10]).unwrap_err().contains("too old"));
        assert!(Door::parse(b"\x7f\0\0\x01\xd2\xcb\0\0\0\x03\0\x03\0\x10").unwrap_err().contains("3.0.26"));
        assert!(Door::parse(b"").is_err());
    }

    #[test]
    fn answers_are_copies_a_hole_or_a_reason() {
        let mut body = vec![0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1];
        body.extend([10, 0, 0, 1, 0x24, 0xce, 0, 10, 0, 0, 2, 0x24, 0xce, 1, 10, 0, 0, 3, 0x24, 0xce, 3]);
        let copies = [(1, CopyState::Valid), (2, CopyState::Leaving), (3, CopyState::Useless)];
        let copies = copies.map(|(n, state)| (Ipv4Addr::new(10, 0, 0, n), state)).to_vec();
        assert_eq!(chunk(&body), Some(ChunkState::Copies(copies)));
        assert_eq!(chunk(&[0; 12]), Some(ChunkState::Empty));
        assert_eq!(chunk(&[3]), Some(ChunkState::Refused("no such file".into())));
        assert_eq!(chunk(&body[..14]), None);
        assert_eq!(chunk(&[0; 5]), None);
    }
}
