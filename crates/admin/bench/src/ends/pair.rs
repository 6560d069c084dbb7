//! Pairs of hosts: latency, then each direction alone, then both at once.

use super::socket::{ANSWER, PATIENCE, PairFault, PartnerPort, TcpInfo, connect, is_timeout, ready, tcp_info};
use super::{PairEnd, PairReport, PairsOrder};
use homing_network::Latency;
use rustix::event::PollFlags;
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes written and read at a time.
const BLOCK: usize = 64 << 10;
/// Messages of one size, and the time for them; whichever is reached first.
const MESSAGES: usize = 1000;
const FOR_A_SIZE: Duration = Duration::from_millis(100);
/// The first byte of the last message of a size, and of all others.
const LAST: u8 = b'e';
const MORE: u8 = b'x';
/// The size of a segment if the kernel does not have it: Ethernet's.
const USUAL_MSS: u32 = 1448;
/// The shares of the time of a load in which the rate is not measured, because windows grow and buffers fill. With
/// both directions at once that takes longer.
const WARM_UP: f64 = 0.2;
const WARM_UP_OF_BOTH: f64 = 0.8;
/// The share of the time of a load in which the rate is measured.
const MEASURED: f64 = 0.8;

/// Measures all pairs of an order at the same time; returns the reports in their order.
pub(super) fn measure(order: &PairsOrder) -> Vec<PairReport> {
    homing_os::threads::each(&order.pairs, |pair| {
        let mut report = PairReport::default();
        match (PairRun { order, pair, report: &mut report }).run() {
            Ok(()) => {}
            Err(PairFault::Stalled) => report.stalled = true,
            Err(PairFault::Failed(why)) => report.failed = Some(why),
        }
        report
    })
}

/// A pair that is measured.
struct PairRun<'a> {
    order: &'a PairsOrder,
    pair: &'a PairEnd,
    report: &'a mut PairReport,
}

impl PairRun<'_> {
    fn run(&mut self) -> Result<(), PairFault> {
        let mut flows = self.connections().map_err(PairFault::Failed)?.into_iter();
        let mut next = || flows.next().expect("there are as many connections as flows, and one more");
        let mut words = next();
        if !self.order.brief {
            self.latencies(&mut words)?;
            for first in [true, false] {
                self.together(&mut words)?;
                self.one_way(self.pair.connects == first, next())?;
            }
        }
        self.together(&mut words)?;
        let flows = [next(), next()];
        self.both_ways(flows)
    }

    /// Makes the connections: the first for words, and one for each flow. A flow ends with its connection. The bytes
    /// that a slow port has not yet taken by then are not wanted, and would be in the way of the next flow.
    fn connections(&self) -> Result<Vec<TcpStream>, String> {
        let PairEnd { own, other, port, connects } = *self.pair;
        let flows = if self.order.brief { 2 } else { 4 };
        if connects {
            return (0..=flows).map(|_| connect(own, SocketAddr::new(other, port), &self.order.token)).collect();
        }
        let listener = PartnerPort::open(own, port)?;
        (0..=flows).map(|_| listener.accept(other, &self.order.token, Instant::now() + ANSWER)).collect()
    }

    fn send(&self, to: &mut TcpStream, bytes: &[u8]) -> Result<(), PairFault> {
        to.write_all(bytes).map_err(|e| PairFault::of(&e, self.pair.other))
    }

    fn receive(&self, from: &mut TcpStream, bytes: &mut [u8]) -> Result<(), PairFault> {
        from.read_exact(bytes).map_err(|e| PairFault::of(&e, self.pair.other))
    }

    /// Measures half of the round trip, by size.
    fn latencies(&mut self, words: &mut TcpStream) -> Result<(), PairFault> {
        for &size in &self.order.sizes {
            let mut message = vec![MORE; size.max(1) as usize];
            let until = Instant::now() + FOR_A_SIZE;
            let mut took = Vec::new();
            while took.len() < MESSAGES {
                let begun = Instant::now();
                if self.pair.connects {
                    let last = begun >= until || took.len() + 1 == MESSAGES;
                    message[0] = if last { LAST } else { MORE };
                    self.send(words, &message)?;
                    self.receive(words, &mut message)?;
                } else {
                    self.receive(words, &mut message)?;
                    self.send(words, &message)?;
                }
                took.push(begun.elapsed().as_secs_f64() / 2.0 * 1e6);
                if message[0] == LAST {
                    break;
                }
            }
            if self.pair.connects {
                self.report.latency.push(of_times(size, took));
            }
        }
        Ok(())
    }

    /// Waits until both ends are done with a part.
    fn together(&self, words: &mut TcpStream) -> Result<(), PairFault> {
        self.send(words, b"n")?;
        self.receive(words, &mut [0])
    }

    fn one_way(&mut self, sends: bool, flow: TcpStream) -> Result<(), PairFault> {
        if sends {
            self.report.sent_again = rounded(send_flow(flow, self.order.seconds)?, 1e6);
        } else {
            self.report.received = Some(self.receive_flow(flow, WARM_UP)?);
        }
        Ok(())
    }

    /// Receives while a thread sends.
    fn both_ways(&mut self, [there, back]: [TcpStream; 2]) -> Result<(), PairFault> {
        let (out, from) = if self.pair.connects { (there, back) } else { (back, there) };
        // CUBIC ends its slow start where delay begins to grow, which the other direction causes.
        let _ = sockopt::set_tcp_congestion(&out, "reno");
        let failed = |e| PairFault::Failed(format!("sending in both directions at once: {e}"));
        let (ours, seconds) = (out.try_clone().map_err(failed)?, self.order.seconds);
        let sender = homing_os::threads::begin(move || send_flow(out, seconds)).map_err(failed)?;
        let received = self.receive_flow(from, WARM_UP_OF_BOTH);
        if received.is_err() {
            let _ = ours.shutdown(Shutdown::Both);
        }
        let sent = sender.join();
        self.report.both = Some(received?);
        match sent {
            Ok(sent) => sent.map(drop),
            Err(_) => Err(PairFault::Failed("the thread that sends has panicked".into())),
        }
    }

    /// Returns the rate of a flow, Mbit/s, without its first part. Then it resets the connection, by which the sender
    /// ends.
    fn receive_flow(&self, mut flow: TcpStream, first: f64) -> Result<f64, PairFault> {
        let (other, seconds) = (self.pair.other, self.order.seconds);
        if !ready(&flow, PollFlags::IN, PATIENCE).map_err(|e| PairFault::of(&e, other))? {
            return Err(PairFault::Stalled);
        }
        let (begun, mut read) = (Instant::now(), 0);
        let at = |share: f64| begun + Duration::try_from_secs_f64(seconds * share).unwrap_or_default();
        let (from, before) = arrived(&mut flow, at(first), &mut read, other)?;
        let (to, after) = arrived(&mut flow, at(first + MEASURED), &mut read, other)?;
        let _ = sockopt::set_socket_linger(&flow, Some(Duration::ZERO));
        let took = (to - from).as_secs_f64();
        Ok(if took > 0.0 { rounded((after - before) * 8.0 / took / 1e6, 1e3) } else { 0.0 })
    }
}

/// Returns the median, the 99th percentile and the maximum of times in microseconds.
fn of_times(bytes: u32, mut took: Vec<f64>) -> Latency {
    took.sort_by(f64::total_cmp);
    let at = |nth: usize| took.get(nth).or(took.last()).map_or(0.0, |us| rounded(*us, 10.0));
    Latency { bytes, p50_us: at(took.len() / 2), p99_us: at(took.len() * 99 / 100), max_us: at(took.len()) }
}

/// Rounds to one part of `parts`.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// Sends until the other end has enough and resets the connection. Returns the share of segments that had to be sent
/// again.
fn send_flow(mut flow: TcpStream, seconds: f64) -> Result<f64, PairFault> {
    let until = Instant::now() + Duration::try_from_secs_f64(2.0 * seconds).unwrap_or_default() + 2 * PATIENCE;
    let (block, mut bytes) = (vec![b'd'; BLOCK], 0);
    loop {
        if Instant::now() >= until {
            return Err(PairFault::Stalled);
        }
        match flow.write(&block) {
            Ok(n) => bytes += n,
            Err(e) if is_timeout(&e) || e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let known = |what| tcp_info(&flow, what).filter(|n| *n > 0);
    let by_bytes = || bytes as f64 / f64::from(known(TcpInfo::SendMss).unwrap_or(USUAL_MSS));
    let segments = known(TcpInfo::DataOut).map_or_else(by_bytes, f64::from);
    let again = known(TcpInfo::Retransmitted).map_or(0.0, f64::from);
    Ok(if segments > 0.0 { again / segments } else { 0.0 })
}

/// Reads until then; returns the time, and the bytes that had arrived. Bytes behind a lost packet have arrived, though
/// they wait in the kernel until that packet is sent again.
fn arrived(flow: &mut TcpStream, until: Instant, read: &mut u64, other: IpAddr) -> Result<(Instant, f64), PairFault> {
    let mut buffer = vec![0; BLOCK];
    loop {
        let now = Instant::now();
        if now >= until {
            let segments = tcp_info(flow, TcpInfo::DataIn).filter(|n| *n > 0);
            let bytes = segments.and_then(|n| Some(f64::from(n) * f64::from(tcp_info(flow, TcpInfo::ReceiveMss)?)));
            return Ok((now, bytes.unwrap_or(*read as f64)));
        }
        if !ready(&*flow, PollFlags::IN, until - now).map_err(|e| PairFault::of(&e, other))? {
            continue;
        }
        // The other end sends until this one has enough.
        match flow.read(&mut buffer) {
            Ok(n @ 1..) => *read += n as u64,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            _ => return Err(PairFault::closed(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order of one end of a pair of loopback addresses that no other test uses.
    fn order(net: u8, connects: bool, seconds: f64, brief: bool) -> PairsOrder {
        let [a, b] = [1, 2].map(|host| IpAddr::from([127, net, 0, host]));
        let (own, other) = if connects { (a, b) } else { (b, a) };
        let pairs = vec![PairEnd { own, other, port: super::super::PORT, connects }];
        PairsOrder { token: "secret".into(), seconds, brief, sizes: vec![1, 3000], pairs }
    }

    fn begin(order: PairsOrder) -> std::thread::JoinHandle<PairReport> {
        std::thread::spawn(move || measure(&order).remove(0))
    }

    #[test]
    fn both_ends_measure_what_they_receive() {
        let second = begin(order(81, false, 0.1, false));
        let first = measure(&order(81, true, 0.1, false)).remove(0);
        let second = second.join().unwrap();
        let sizes: Vec<u32> = first.latency.iter().map(|latency| latency.bytes).collect();
        assert_eq!((sizes, second.latency.len()), (vec![1, 3000], 0));
        assert!(first.latency.iter().all(|took| took.p50_us > 0.0 && took.p50_us <= took.max_us), "{first:?}");
        // A busy machine may have no time for a flow while it is measured, but not for all of them.
        let rates = [&first, &second].map(|report| [report.received, report.both]);
        let total: Option<f64> = rates.as_flattened().iter().copied().sum();
        assert!(total.is_some_and(|total| total > 0.0), "{first:?} {second:?}");
        for report in [first, second] {
            assert_eq!((report.stalled, report.failed), (false, None));
        }
    }

    #[test]
    fn a_host_that_several_meet_at_once_reports_on_each() {
        let [a, b, server] = [1, 2, 9].map(|host| IpAddr::from([127, 82, 0, host]));
        let end = |own, other, nth, connects| PairEnd { own, other, port: super::super::PORT + nth, connects };
        let order = |pairs| PairsOrder { pairs, sizes: vec![1], ..order(82, true, 0.02, true) };
        let clients = [begin(order(vec![end(a, server, 0, true)])), begin(order(vec![end(b, server, 1, true)]))];
        let reports = measure(&order(vec![end(server, a, 0, false), end(server, b, 1, false)]));
        let clients = clients.map(|client| client.join().unwrap());
        for report in reports.iter().chain(&clients) {
            assert!(report.both.is_some() && report.failed.is_none(), "{report:?}");
            assert_eq!((report.received, report.latency.len()), (None, 0), "a brief round has no more");
        }
    }

    /// Starts an end that measures both directions for `seconds`, with this test as its partner. Returns three
    /// connections: for words, for the flow that the end sends, and for the one that it receives.
    fn with_partner(net: u8, seconds: f64) -> (std::thread::JoinHandle<PairReport>, [TcpStream; 3]) {
        let order = order(net, true, seconds, true);
        let PairEnd { own, other, port, .. } = order.pairs[0];
        let listener = PartnerPort::open(other, port).unwrap();
        let end = begin(order);
        let until = Instant::now() + ANSWER;
        (end, [(); 3].map(|()| listener.accept(own, "secret", until).unwrap()))
    }

    #[test]
    fn an_end_whose_partner_is_killed_ends_too() {
        let (end, mut partner) = with_partner(83, 600.0);
        partner[0].write_all(b"n").unwrap();
        partner[2].write_all(b"d").unwrap();
        // The end is in the middle of its flow, and so is the thread that sends for it.
        partner[1].read_exact(&mut vec![0; 1 << 20]).unwrap();
        drop(partner);
        assert_eq!(end.join().unwrap().failed.as_deref(), Some("127.83.0.2 closed the connection"));
    }

    #[test]
    fn what_a_slow_port_has_not_taken_of_a_flow_is_not_waited_for() {
        let (end, mut partner) = with_partner(84, 0.2);
        partner[0].write_all(b"n").unwrap();
        // This end takes only the first byte of the flow that is sent to it, and leaves the rest.
        let [words, mut takes, mut gives] = partner;
        takes.read_exact(&mut [0]).unwrap();
        let block = [b'd'; 1 << 16];
        while gives.write_all(&block).is_ok() {}
        drop(takes);
        let report = end.join().unwrap();
        assert!(report.both.is_some() && report.failed.is_none(), "{report:?}");
        drop(words);
    }

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let took: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(of_times(7, took), Latency { bytes: 7, p50_us: 501.0, p99_us: 991.0, max_us: 1000.0 });
        assert_eq!(of_times(1, vec![2.04]), Latency { bytes: 1, p50_us: 2.0, p99_us: 2.0, max_us: 2.0 });
    }
}
