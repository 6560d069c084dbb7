//! Measures TCP between hosts: this program at both ends of a connection.
//!
//! The coordinator starts the role [`WORD`] on each host of a measurement over ssh, and sends it one [`EndOrder`], a
//! line of JSON. The role answers with one line. It listens while the measurement lasts, on the one address of its
//! order, and takes connections of its partner that begin with the token of this measurement. The token goes through a
//! pipe: no table of processes shows it. The role ends when its channel ends, and at the latest after its time limit.

mod channel;
mod flow;
mod pair;
mod socket;

pub use channel::{End, carry_out, open};
pub use socket::PORT;

use homing_launch::wire::{MAX_FRAME, lines};
use homing_network::Latency;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::net::IpAddr;
use std::time::Duration;

/// The argument that starts this role.
pub const WORD: &str = "network-end";

/// Time for a measurement without its load: making connections, trying sizes of messages, and giving up on a partner
/// that stalls.
const BESIDES: Duration = Duration::from_secs(60);
/// Exit status of an end whose channel or whose time ended before its measurement.
const ENDED_EARLY: i32 = 1;

/// The part of one host in a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EndOrder {
    /// Measure pairs, all at the same time. The answer is a [`PairReport`] for each.
    Pairs(PairsOrder),
    /// Send to one host, and take the bytes of another. The answer is a [`FlowReport`].
    Flow(FlowOrder),
}

/// Latency, then each direction alone, then both, between this host and others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairsOrder {
    /// The secret by which the two ends of a pair know each other.
    pub token: String,
    /// The time of each load.
    pub seconds: f64,
    /// Only both directions at once are measured.
    pub brief: bool,
    /// Sizes of the messages whose latency is measured, bytes.
    pub sizes: Vec<u32>,
    /// The pairs of this host.
    pub pairs: Vec<PairEnd>,
}

/// One end of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairEnd {
    /// The address of this end.
    pub own: IpAddr,
    /// The address of the other end.
    pub other: IpAddr,
    /// The port at which the end that listens waits.
    pub port: u16,
    /// Whether this end connects. It is the first to send.
    pub connects: bool,
}

/// The results of one end of a pair. An end measures the bytes that it receives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// The latencies by size, at the end that connects.
    pub latency: Vec<Latency>,
    /// The rate of received payload while the other direction was idle, Mbit/s.
    pub received: Option<f64>,
    /// The share of the segments sent meanwhile in the other direction that had to be sent again.
    pub sent_again: f64,
    /// The rate of received payload while this end sent, too, Mbit/s.
    pub both: Option<f64>,
    /// Whether no byte passed for some seconds.
    pub stalled: bool,
    /// The reason why nothing more was measured.
    pub failed: Option<String>,
}

/// One connection to the next host, and one from the host before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOrder {
    /// The secret by which the two ends of a connection know each other.
    pub token: String,
    /// The time of the load.
    pub seconds: f64,
    /// The address of this end.
    pub own: IpAddr,
    /// The address of the host that this end sends to.
    pub to: IpAddr,
    /// The address of the host whose bytes this end takes.
    pub from: IpAddr,
}

/// The bytes that the next host received, per second; or the reason why there are none.
pub type FlowReport = Result<f64, String>;

impl EndOrder {
    /// Returns the longest time in which an end reports, from its order.
    fn limit(&self) -> Duration {
        let (times, seconds) = match self {
            EndOrder::Pairs(order) => (10.0, order.seconds),
            EndOrder::Flow(order) => (1.0, order.seconds),
        };
        BESIDES + Duration::try_from_secs_f64(times * seconds).unwrap_or(BESIDES)
    }
}

/// Serves the one order of a channel. If the channel ends before, this process ends with its port.
///
/// # Errors
/// The error of reading or writing the channel, or of starting a thread.
pub fn serve(mut orders: impl BufRead + Send + 'static, out: &mut impl Write) -> io::Result<()> {
    let Some(line) = lines::next(&mut orders, MAX_FRAME)? else { return Ok(()) };
    let order: EndOrder = serde_json::from_slice(&line)?;
    homing_os::threads::begin(move || {
        let _ = io::copy(&mut orders, &mut io::sink());
        std::process::exit(ENDED_EARLY)
    })?;
    let limit = order.limit();
    homing_os::threads::begin(move || {
        std::thread::sleep(limit);
        std::process::exit(ENDED_EARLY)
    })?;
    match order {
        EndOrder::Pairs(order) => lines::write_message(out, &pair::measure(&order), &[]),
        EndOrder::Flow(order) => lines::write_message(out, &flow::measure(&order), &[]),
    }
}
