//! The coordinator's side: starts the role on hosts, and gives each its order.

use super::{EndOrder, WORD};
use homing_exec::{FAN_OUT, Remote};
use homing_launch::wire::{MAX_FRAME, lines};
use homing_launch::{Channel, HostPlan, Via};
use serde::de::DeserializeOwned;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time for a report to arrive after the time limit of its host.
const RESERVE: Duration = Duration::from_secs(5);
/// Time for the role to end after its report.
const FAREWELL: Duration = Duration::from_secs(2);

/// The role on a host, ready for its order. It ends when this is dropped.
pub struct End {
    host: String,
    channel: Channel,
}

/// Starts the role on all of these hosts, over their kept connections. Copies this program to those that lack it.
/// Returns the ends, or the reasons why there are none, in the order of the hosts.
pub fn open(remote: &Remote, hosts: &[String]) -> Vec<Result<End, String>> {
    homing_os::threads::each_of(hosts, FAN_OUT, |host| {
        let via = HostPlan::named(host.clone(), None).via;
        let mut options = remote.channel_options(WORD);
        if via != Via::Local
            && let Some(kept) = remote.way_to(host)
        {
            options.ssh = kept;
        }
        let channel = homing_launch::open(host, &via, &options).map_err(|e| e.to_string())?;
        Ok(End { host: host.clone(), channel })
    })
}

/// Gives each end its order, all at the same time. Returns their reports in this order.
pub fn carry_out<R: DeserializeOwned>(orders: Vec<(End, EndOrder)>) -> Vec<Result<R, String>> {
    let begun: Vec<_> = orders.into_iter().map(|(end, order)| PendingReport::begin(end, &order)).collect();
    begun.into_iter().map(|pending| pending?.report()).collect()
}

/// An end that carries out its order.
struct PendingReport {
    host: String,
    channel: Channel,
    line: Receiver<io::Result<Option<Vec<u8>>>>,
    until: Instant,
}

impl PendingReport {
    fn begin(End { host, mut channel }: End, order: &EndOrder) -> Result<PendingReport, String> {
        let sent = lines::write_message(&mut channel.to, order, &[]);
        sent.map_err(|e| format!("{host}: sending its part of the measurement: {e}"))?;
        let (to, line) = std::sync::mpsc::channel();
        let mut from = std::mem::replace(&mut channel.from, Box::new(io::empty()));
        let read = move || drop(to.send(lines::next(&mut from, MAX_FRAME)));
        homing_os::threads::begin(read).map_err(|e| format!("{host}: {e}"))?;
        Ok(PendingReport { host, channel, line, until: Instant::now() + order.limit() + RESERVE })
    }

    fn report<R: DeserializeOwned>(self) -> Result<R, String> {
        let PendingReport { host, channel: Channel { to, keeper, .. }, line, until } = self;
        let line = match line.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => line.map_err(|e| format!("{host}: reading its report: {e}"))?,
            Err(RecvTimeoutError::Timeout) => return Err(format!("{host} did not report in time")),
            Err(RecvTimeoutError::Disconnected) => return Err(format!("{host}: the thread that reads has ended")),
        };
        drop(to);
        keeper.end(FAREWELL);
        let line = line.ok_or_else(|| format!("{host}: the connection ended before its report"))?;
        serde_json::from_slice(&line).map_err(|e| format!("{host} sent no valid report: {e}"))
    }
}
