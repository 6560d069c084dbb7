//! Parses answers of a NameNode. All of them are untrusted.

use super::http::HttpResponse;
use crate::own::{self, LocatorExtent};
use homing_model::FileLayout;
use homing_model::text::shown;
use rustix::io::Errno;
use serde_json::Value;
use std::io;
use std::net::{IpAddr, SocketAddr};

fn json(answer: &HttpResponse) -> Result<Value, String> {
    serde_json::from_slice(&answer.body).map_err(|e| format!("its answer is not JSON: {e}"))
}

/// Returns the length of a file (GETFILESTATUS). The inner error is whether no such file exists, and why
/// there is no file to read.
pub(super) fn size(answer: &HttpResponse) -> Result<Result<u64, (bool, String)>, String> {
    if answer.status != 200 {
        let told = failure(answer);
        let missing = answer.status == 404 && told.starts_with("FileNotFoundException");
        return if missing { Ok(Err((true, io::Error::from(Errno::NOENT).to_string()))) } else { Err(told) };
    }
    let told = json(answer)?;
    let file = &told["FileStatus"];
    match (file["type"].as_str(), file["length"].as_u64(), file["ecPolicy"].as_str()) {
        (Some("DIRECTORY"), ..) => Ok(Err((false, "it is a directory of HDFS; name the files in it".into()))),
        (Some("FILE"), Some(_), Some(policy)) => {
            let reason = format!("it is erasure-coded ({policy:.40}): no DataNode has a whole block of it");
            Ok(Err((false, shown(&reason))))
        }
        (Some("FILE"), Some(length), None) => Ok(Ok(length)),
        _ => Err("its answer has no type and length of a file".into()),
    }
}

/// Formats an error of the NameNode.
fn failure(HttpResponse { status, body }: &HttpResponse) -> String {
    let said = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let said = &said["RemoteException"];
    match (status, said["exception"].as_str(), said["message"].as_str()) {
        (401, ..) => "it requires a login (Kerberos), which homing does not support (HTTP status 401)".into(),
        (_, Some(kind), Some(message)) => shown(&format!("{kind}: {message:.300}")),
        _ => format!("HTTP status {status}; is this the port of WebHDFS?"),
    }
}

/// Puts the blocks of an answer (to GETFILEBLOCKLOCATIONS, or to the older GET_BLOCK_LOCATIONS) into a layout that
/// has its size. `near` is the host of DataNodes with a loopback address.
pub(super) fn blocks(layout: &mut FileLayout, answer: &HttpResponse, near: &str) -> Result<(), String> {
    if answer.status != 200 {
        return Err(failure(answer));
    }
    let told = json(answer)?;
    let now = told["BlockLocations"]["BlockLocation"].as_array();
    let all = now.or_else(|| told["LocatedBlocks"]["locatedBlocks"].as_array()).ok_or("its answer has no blocks")?;
    let (mut parts, mut lost) = (Vec::new(), None);
    for block in all {
        let (part, corrupt) = part(block, near).ok_or("a block of its answer has no place, length or address")?;
        if corrupt || part.hosts.is_empty() {
            let at = part.offset;
            lost.get_or_insert_with(|| format!("no DataNode that is up has a valid copy of the block at byte {at}"));
        } else {
            parts.push(part);
        }
    }
    own::place(layout, own::LocatorReply { extents: parts, reason: lost, ..own::LocatorReply::default() })
}

/// Parses a block in either form. Also returns whether all of its copies are damaged.
fn part(block: &Value, near: &str) -> Option<(LocatorExtent, bool)> {
    let host = |ip: IpAddr| if ip.is_loopback() { near.into() } else { ip.to_canonical().to_string() };
    let (offset, length, corrupt, addresses) = if let Some(names) = block["names"].as_array() {
        let addresses = names.iter().map(|name| Some(name.as_str()?.parse::<SocketAddr>().ok()?.ip()));
        (&block["offset"], &block["length"], &block["corrupt"], addresses.collect::<Option<Vec<_>>>()?)
    } else {
        let addresses = block["locations"].as_array()?.iter().map(|node| node["ipAddr"].as_str()?.parse().ok());
        (&block["startOffset"], &block["block"]["numBytes"], &block["isCorrupt"], addresses.collect::<Option<_>>()?)
    };
    let hosts = addresses.into_iter().map(host).collect();
    Some((LocatorExtent { offset: offset.as_u64()?, length: length.as_u64()?, hosts }, corrupt.as_bool()?))
}
