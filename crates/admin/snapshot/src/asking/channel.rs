//! The channel to the other end: this program, on the bank's host or the source's.

use crate::ask::{Control, SnapshotReply, SnapshotRequest};
use crate::serve;
use homing_launch::wire::{MAX_FRAME, lines};
use homing_launch::{Carried, Channel, ChannelChild, HostPlan, Options, Via};
use homing_model::Failure;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The time for the other end to end, after the channel was closed.
const FAREWELL: Duration = Duration::from_secs(5);

/// The sending half of a channel; the channel ends when it is dropped.
pub struct To {
    host: String,
    to: Option<Box<dyn Write + Send>>,
    carrier: Carrier,
}

/// The receiving half of a channel.
pub struct From {
    host: String,
    from: Box<dyn BufRead + Send>,
}

enum Carrier {
    Here(Child),
    There(Option<ChannelChild>),
}

/// Sends a request to a host. This machine, by its own name or `localhost`, is reached without ssh.
pub fn send_request(host: &str, request: &SnapshotRequest) -> Result<(To, From), Failure> {
    let (mut to, from) = match HostPlan::named(host.into(), None).via {
        Via::Local => here(host)?,
        via => {
            let options = Options { role: serve::WORD, carried: Carried::Host, ..Options::default() };
            let Channel { to, from, keeper, .. } =
                homing_launch::open(host, &via, &options).map_err(Failure::system)?;
            let to = To { host: host.into(), to: Some(to), carrier: Carrier::There(Some(keeper)) };
            (to, From { host: host.into(), from })
        }
    };
    to.send_message(request)?;
    Ok((to, from))
}

/// Returns the only answer of a host.
pub fn answer(host: &str, question: &SnapshotRequest) -> Result<SnapshotReply, Failure> {
    let (_to, mut from) = send_request(host, question)?;
    from.receive_reply()
}

fn here(host: &str) -> Result<(To, From), Failure> {
    let failed = |e: std::io::Error| Failure::system(format!("starting a second process of this program: {e}"));
    let mut command = Command::new("/proc/self/exe");
    command.arg(serve::WORD).stdin(Stdio::piped()).stdout(Stdio::piped());
    homing_os::process::give_back_files(&mut command);
    let mut child = command.spawn().map_err(failed)?;
    let (to, from) = (child.stdin.take(), child.stdout.take());
    let (Some(to), Some(from)) = (to, from) else {
        return Err(Failure::system("the second process of this program has no pipe"));
    };
    let mut from = BufReader::new(from);
    homing_launch::wire::receive_hello(&mut from, |_| ()).map_err(Failure::system)?;
    let to = To { host: host.into(), to: Some(Box::new(to)), carrier: Carrier::Here(child) };
    Ok((to, From { host: host.into(), from: Box::new(from) }))
}

impl To {
    /// Sends a control.
    pub fn control(&mut self, control: &Control) -> Result<(), Failure> {
        self.send_message(control)
    }

    /// Closes the sending half.
    pub fn close(&mut self) {
        self.to = None;
    }

    fn send_message(&mut self, what: &impl serde::Serialize) -> Result<(), Failure> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let told = lines::write_message(to, what, &[]);
        told.map_err(|e| Failure::system(format!("sending a request to {}: {e}", self.host)))
    }
}

impl Drop for To {
    fn drop(&mut self) {
        self.to = None;
        match &mut self.carrier {
            Carrier::Here(child) => drop(child.wait()),
            Carrier::There(keeper) => drop(keeper.take().map(|keeper| keeper.end(FAREWELL))),
        }
    }
}

impl From {
    /// Returns the next answer; a failure of the other end is returned as an error.
    pub fn receive_reply(&mut self) -> Result<SnapshotReply, Failure> {
        let host = &self.host;
        let lost = |why: String| Failure::system(format!("the answer of {host} is incomplete: {why}"));
        let line = lines::next(&mut self.from, MAX_FRAME).map_err(|e| lost(e.to_string()))?;
        let line = line.ok_or_else(|| lost("the connection ended".into()))?;
        match serde_json::from_slice(&line).map_err(|e| lost(e.to_string()))? {
            SnapshotReply::Failed(why) => Err(Failure::system(format!("{host}: {why}"))),
            SnapshotReply::Advised(why, hint) => Err(Failure::system(format!("{host}: {why}")).hint(hint)),
            SnapshotReply::Absent(why) => {
                let hint = "homing snapshot list; the first `homing snapshot` of a source makes its vault";
                Err(Failure::usage(format!("{host}: {why}")).hint(hint))
            }
            SnapshotReply::Busy(why) => {
                Err(Failure::system(format!("{host}: {why}")).hint("repeat the command when it has ended"))
            }
            answer => Ok(answer),
        }
    }
}
