//! One connection to the next host, while another one comes from the host before.

use super::socket::{ANSWER, PORT, PartnerPort, connect};
use super::{BESIDES, FlowOrder, FlowReport};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes written and read at a time.
const BLOCK: usize = 1 << 20;

/// Returns the bytes that the next host received, per second. The bytes that the other end has received are counted,
/// not those passed to the kernel.
pub(super) fn measure(order: &FlowOrder) -> FlowReport {
    let listener = PartnerPort::open(order.own, PORT)?;
    let patience = BESIDES + Duration::try_from_secs_f64(order.seconds).unwrap_or_default();
    let (from, token) = (order.from, order.token.clone());
    let taken = homing_os::threads::begin(move || take(listener, from, &token, patience)).map_err(|e| e.to_string())?;
    let rate = give(order, patience);
    // The host before has its rate only if this end takes all its bytes. It reports the reason if it has none.
    let _ = taken.join();
    rate
}

/// Takes one connection, closes the port, and returns to the sender the number of its bytes.
fn take(listener: PartnerPort, from: IpAddr, token: &str, patience: Duration) -> Option<()> {
    let mut stream = listener.accept(from, token, Instant::now() + ANSWER).ok()?;
    drop(listener);
    stream.set_read_timeout(Some(patience)).ok()?;
    let (mut buffer, mut bytes) = (vec![0; BLOCK], 0_u64);
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        bytes += n as u64;
    }
    stream.write_all(format!("{bytes}\n").as_bytes()).ok()
}

fn give(order: &FlowOrder, patience: Duration) -> FlowReport {
    let mut stream = connect(order.own, SocketAddr::new(order.to, PORT), &order.token)?;
    let (block, begun) = (vec![b'x'; BLOCK], Instant::now());
    while begun.elapsed().as_secs_f64() < order.seconds && stream.write_all(&block).is_ok() {}
    let received = received(stream, patience).filter(|bytes| *bytes > 0);
    let bytes = received.ok_or_else(|| format!("{} received no bytes", order.to))?;
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}

/// Returns the number of bytes that the other end has received, when it has all of them.
fn received(stream: TcpStream, patience: Duration) -> Option<u64> {
    stream.shutdown(Shutdown::Write).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    let mut line = String::new();
    // A number has at most twenty digits.
    BufReader::new(stream.take(32)).read_line(&mut line).ok()?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(net: u8, [own, to, from]: [u8; 3], token: &str) -> FlowOrder {
        let at = |host| IpAddr::from([127, net, 0, host]);
        FlowOrder { token: token.into(), seconds: 0.01, own: at(own), to: at(to), from: at(from) }
    }

    #[test]
    fn each_host_of_a_ring_sends_to_the_next() {
        let ring = [[1, 2, 3], [2, 3, 1], [3, 1, 2]];
        let ends = ring.map(|hosts| std::thread::spawn(move || measure(&order(91, hosts, "secret"))));
        for end in ends {
            let rate = end.join().unwrap();
            assert!(rate.as_ref().is_ok_and(|rate| *rate > 0.0), "{rate:?}");
        }
    }

    #[test]
    fn an_end_with_another_token_gets_nothing() {
        let listener = PartnerPort::open(IpAddr::from([127, 92, 0, 2]), PORT).unwrap();
        let from = IpAddr::from([127, 92, 0, 1]);
        let taken = std::thread::spawn(move || {
            let refused = listener.accept(from, "secret", Instant::now() + ANSWER);
            refused.map(drop)
        });
        let why = give(&order(92, [1, 2, 2], "secreT"), BESIDES).unwrap_err();
        assert_eq!(why, "port 47113 of 127.92.0.2 is in use by another program");
        let own = IpAddr::from([127, 92, 0, 1]);
        drop(connect(own, SocketAddr::new(IpAddr::from([127, 92, 0, 2]), PORT), "secret").unwrap());
        assert_eq!(taken.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_partner_that_goes_away_has_received_nothing() {
        let listener = PartnerPort::open(IpAddr::from([127, 93, 0, 2]), PORT).unwrap();
        let from = IpAddr::from([127, 93, 0, 1]);
        let gone = std::thread::spawn(move || drop(listener.accept(from, "secret", Instant::now() + ANSWER).unwrap()));
        let why = give(&order(93, [1, 2, 2], "secret"), BESIDES).unwrap_err();
        assert_eq!(why, "127.93.0.2 received no bytes");
        gone.join().unwrap();
    }
}
