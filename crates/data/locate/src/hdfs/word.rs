//! From a word to the NameNode that is asked, and the path there.

use crate::hostname::is_host;
use std::fmt;

/// Where a NameNode listens for HTTP since Hadoop 3, and for HTTPS.
const HTTP: u16 = 9870;
const HTTPS: u16 = 9871;

/// Where WebHDFS is.
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

/// `webhdfs`: what the user says of where WebHDFS is. The port of an `hdfs:` word is that of Hadoop's own protocol, and
/// tells nothing of it.
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
            "WebHDFS by HTTPS (port {HTTPS}) is not for homing; webhdfs://HOST:PORT/PATH, by HTTP ({HTTP})"
        ));
    }
    // As Hadoop has it: slashes once, none at the end.
    let parts = path.split(|b| *b == b'/').filter(|part| !part.is_empty());
    Ok((door, parts.flat_map(|part| [b"/", part].concat()).collect()))
}

/// `host` or `host:port`. No IPv6, which Hadoop has not either.
fn door(text: &str) -> Result<Door, String> {
    let (host, port) = text.split_once(':').map_or((text, Ok(HTTP)), |(host, port)| (host, port.parse()));
    match (port, is_host(host)) {
        (Ok(port), true) if port > 0 => Ok(Door { host: host.into(), port }),
        _ => Err(format!("{text:?} is no HOST or HOST:PORT of a NameNode; HOMING_WEBHDFS=HOST:{HTTP} names one")),
    }
}

/// For a URL. Names in HDFS are not written in that way, so that `%` is a letter as any other.
pub(super) fn encoded(path: &[u8]) -> String {
    let byte = |b: &u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(*b).to_string(),
        other => format!("%{other:02X}"),
    };
    path.iter().map(byte).collect()
}
