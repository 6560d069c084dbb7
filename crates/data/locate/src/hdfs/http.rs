//! The needed part of HTTP: GET, and the whole answer within a time limit. The caller sets the limit
//! (`Hdfs::patient`).

use super::word::Door;
use homing_os::threads::lock;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The longest answer, bytes: the blocks of 4 TB, of 128 MiB each.
const MOST: usize = 16 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Connections that the other side keeps open: one per NameNode, for the next query.
#[derive(Default)]
pub(super) struct NameNodeConnections(Mutex<HashMap<Door, TcpStream>>);

impl NameNodeConnections {
    /// Sends a query by the kept connection, or to the first of these addresses that accepts.
    pub fn get(&self, addresses: &[IpAddr], door: &Door, target: &str, until: Instant) -> io::Result<HttpResponse> {
        let ask = format!("GET {target} HTTP/1.1\r\nHost: {door}\r\n\r\n");
        let kept = self.lock().remove(door);
        // A connection that was closed meanwhile returns no bytes.
        if let Some(Ok(told)) = kept.map(|stream| talk(stream, &ask, until))
            && !told.0.is_empty()
        {
            return self.take(door, told);
        }
        let mut failed = odd("it has no address");
        for address in addresses {
            match left(until).and_then(|left| TcpStream::connect_timeout(&SocketAddr::new(*address, door.port), left)) {
                Ok(stream) => return self.take(door, talk(stream, &ask, until)?),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn take(&self, door: &Door, (answer, kept): (Vec<u8>, Option<TcpStream>)) -> io::Result<HttpResponse> {
        kept.map(|stream| self.lock().insert(door.clone(), stream));
        parse(&answer)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Door, TcpStream>> {
        lock(&self.0)
    }
}

/// Returns the remaining time for a system call, which accepts no 0.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Sends a query. Reads until the answer is complete, and returns the connection too, or until the other side closes.
/// The time limit is for all of it, even if single bytes arrive.
fn talk(mut stream: TcpStream, ask: &str, until: Instant) -> io::Result<(Vec<u8>, Option<TcpStream>)> {
    stream.set_write_timeout(Some(left(until)?))?;
    stream.write_all(ask.as_bytes())?;
    let (mut all, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok((all, None)),
            Ok(n) if all.len() + n > MOST => return Err(odd("its answer is longer than 16 MiB")),
            Ok(n) => {
                all.extend_from_slice(&piece[..n]);
                if is_whole(&all) {
                    return Ok((all, Some(stream)));
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(e) => return Err(e),
        }
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// Returns status, headers in lower case, and body.
fn parts(bytes: &[u8]) -> Option<(u16, String, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix("HTTP/1.")?;
    Some((head.split(' ').nth(1)?.get(..3)?.parse().ok()?, head.to_ascii_lowercase(), &bytes[end + 4..]))
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut all = head.split("\r\n").filter_map(|line| line.split_once(':'));
    all.find(|(known, _)| *known == name).map(|(_, value)| value.trim())
}

/// Whether the answer is complete while the connection stays open.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((_, head, body)) = parts(bytes) else { return false };
    if !head.starts_with('1') || header(&head, "connection") == Some("close") {
        return false;
    }
    match (header(&head, "transfer-encoding"), header(&head, "content-length")) {
        (Some("chunked"), _) => body.ends_with(b"\r\n\r\n") && joined(body).is_some(),
        (None, Some(length)) => length.parse() == Ok(body.len()),
        _ => false,
    }
}

/// Parses a complete answer; rejects one that was cut off.
pub(super) fn parse(bytes: &[u8]) -> io::Result<HttpResponse> {
    let (status, head, body) = parts(bytes).ok_or_else(|| odd("its answer is not HTTP"))?;
    let whole = match (header(&head, "transfer-encoding"), header(&head, "content-length")) {
        (Some("chunked"), _) => joined(body),
        (_, Some(length)) => length.parse().ok().and_then(|length| Some(body.get(..length)?.to_vec())),
        _ => Some(body.to_vec()),
    };
    Ok(HttpResponse { status, body: whole.ok_or_else(|| odd("its answer is incomplete"))? })
}

/// Joins the chunks of a body; `None` without its last chunk, which is empty.
fn joined(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let length = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        if length == 0 {
            return Some(whole);
        }
        rest = &rest[end + 2..];
        whole.extend_from_slice(rest.get(..length)?);
        rest = rest[length..].strip_prefix(b"\r\n")?;
    }
}
