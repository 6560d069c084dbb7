//! Turns a word into the NameNode's address and the path there.

use crate::hostname::is_host;
use std::fmt;

/// Ports of a NameNode for HTTP since Hadoop 3, and for HTTPS.
const HTTP: u16 = 9870;
const HTTPS: u16 = 9871;

/// The address of WebHDFS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Door {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Door {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

/// Parses a word. `webhdfs` is the user's address of WebHDFS. An `hdfs:` word has the port of Hadoop's own protocol,
/// from which the port of WebHDFS does not follow.
pub(super) fn parse(word: &[u8], webhdfs: Option<&str>) -> Result<(Door, Vec<u8>), String> {
    let at = word.windows(3).position(|three| three == b"://").unwrap_or(0);
    let (scheme, rest) = (&word[..at], &word[at + 3..]);
    let (authority, path) = rest.split_at(rest.iter().position(|b| *b == b'/').unwrap_or(rest.len()));
    let authority = String::from_utf8_lossy(authority);
    let door = match (scheme, webhdfs) {
        (b"hdfs", Some(told)) => door(told).map_err(|why| format!("HOMING_WEBHDFS: {why}"))?,
        (b"hdfs", None) => Door { port: HTTP, ..door(&authority)? },
        (b"webhdfs", _) => door(&authority)?,
        _ => Door { port: HTTPS, ..door(&authority)? },
    };
    if door.port == HTTPS {
        return Err(format!(
            "homing does not support WebHDFS by HTTPS (port {HTTPS}); use webhdfs://HOST:PORT/PATH, by HTTP ({HTTP})"
        ));
    }
    // As in Hadoop: single slashes, and none at the end.
    let parts = path.split(|b| *b == b'/').filter(|part| !part.is_empty());
    Ok((door, parts.flat_map(|part| [b"/", part].concat()).collect()))
}

/// Parses `host` or `host:port`. Hadoop does not support IPv6.
fn door(text: &str) -> Result<Door, String> {
    let (host, port) = text.split_once(':').map_or((text, Ok(HTTP)), |(host, port)| (host, port.parse()));
    match (port, is_host(host)) {
        (Ok(port), true) if port > 0 => Ok(Door { host: host.into(), port }),
        _ => Err(format!("{text:?} is not HOST or HOST:PORT of a NameNode; HOMING_WEBHDFS=HOST:{HTTP} names one")),
    }
}

/// Encodes a path for a URL. Names in HDFS are not encoded, so `%` is an ordinary character.
pub(super) fn encoded(path: &[u8]) -> String {
    let byte = |b: &u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(*b).to_string(),
        other => format!("%{other:02X}"),
    };
    path.iter().map(byte).collect()
}
