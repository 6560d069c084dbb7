//! The two ends of the channel over which a job runs on another host. There it is a job of that host's own queue.

use super::local;
use crate::cluster::Cluster;
use crate::switched;
use homing_launch::{Carried, Channel, Options, Via};
use homing_model::{Failure, exit};
use homing_queue::JobSpool;
use homing_queue::plan::SubmitterSettings;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

/// The word that starts the end on the host.
pub const HOST: &str = "queue-host";

/// The time in which a host can end its job after the channel was closed.
const FAREWELL: Duration = Duration::from_secs(10);

/// Executes `queue-far HOST`, which a keeper starts: passes lines between the keeper and the host.
pub fn far(words: &[OsString]) -> Result<i32, Failure> {
    let host = words.first().and_then(|word| word.to_str());
    let host =
        host.ok_or_else(|| Failure::usage("this command is only for keepers of jobs, which choose its arguments"))?;
    let mut out = std::io::stdout();
    let cluster = Cluster::of_queue()?;
    let terms = serde_json::to_string(&cluster.terms_for(host)?).map_err(Failure::system)?;
    let asleep = cluster.switching().map_or_else(|_| Default::default(), |how| switched::asleep([host], &how));
    let options = Options { role: HOST, carried: Carried::Host, asleep, ..Options::default() };
    let via = if host == homing_queue::host_name() { Via::Local } else { Via::Ssh { target: host.into() } };
    let opened = homing_launch::open(host, &via, &options);
    let Channel { mut to, mut from, keeper, .. } = match opened {
        Ok(channel) => channel,
        Err(error) => {
            out.write_all(&homing_queue::far::unasked(&error.to_string())).map_err(Failure::system)?;
            return Ok(exit::SYSTEM);
        }
    };
    let said = move || {
        let begun = to.write_all(terms.as_bytes()).and_then(|()| to.write_all(b"\n"));
        let _ = begun.and_then(|()| pass(&mut std::io::stdin(), &mut to));
    };
    homing_os::threads::begin(said).map_err(Failure::system)?;
    let passed = pass(&mut from, &mut out);
    drop(from);
    keeper.end(FAREWELL);
    passed.map_err(Failure::system).map(|()| 0)
}

/// Copies bytes from one stream to the other as they arrive.
fn pass(from: &mut dyn Read, to: &mut dyn Write) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            n => to.write_all(&bytes[..n]).and_then(|()| to.flush())?,
        }
    }
}

/// Executes `queue-host`: serves the host's end on standard input and output.
pub fn host() -> Result<i32, Failure> {
    let mut out = std::io::stdout();
    homing_launch::wire::send_hello(&mut out, &homing_probe::facts()).map_err(Failure::system)?;
    let mut orders = BufReader::new(std::io::stdin());
    let mut terms = String::new();
    orders.read_line(&mut terms).map_err(Failure::system)?;
    let terms: SubmitterSettings =
        serde_json::from_str(&terms).map_err(|e| Failure::system(format!("reading the submitter's settings: {e}")))?;
    JobSpool::open().and_then(|spool| spool.keep_terms(&terms))?;
    homing_queue::far::serve(local()?.as_ref(), orders, &mut out)?;
    Ok(0)
}
