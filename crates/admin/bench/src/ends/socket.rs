//! Connections between two ends. A port is open until the partner has come, on one address of this host. It takes
//! connections of the partner that begin with the token.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// The first port of an end that listens. It is fixed, because a firewall may need a rule for it.
pub const PORT: u16 = 47113;
/// Time without a byte after which a connection has stalled.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);
/// Time for the partner to listen, and to connect. Both begin when all hosts are ready.
pub(super) const CALL: Duration = Duration::from_secs(15);
pub(super) const ANSWER: Duration = Duration::from_secs(20);
/// The answer to the right token.
const AGREED: &[u8; 2] = b"go";
/// Time for a single attempt to connect, and the pause after it.
const ATTEMPT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes for which the kernel makes room at once.
const ROOM: libc::c_int = 1 << 20;

/// The reason why a pair could not be measured to the end.
#[derive(Debug, PartialEq)]
pub(super) enum PairFault {
    /// The connection is there, but no byte passed for the time of [`PATIENCE`].
    Stalled,
    /// Another reason.
    Failed(String),
}

impl PairFault {
    /// Returns the reason for an error of a connection.
    pub fn of(error: &io::Error, other: IpAddr) -> PairFault {
        if is_timeout(error) { PairFault::Stalled } else { PairFault::closed(other) }
    }

    /// Returns the reason for the end of a connection.
    pub fn closed(other: IpAddr) -> PairFault {
        PairFault::Failed(format!("{other} closed the connection"))
    }
}

/// Whether nothing came, or nothing was taken, for the time that the connection allows.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Connects to the partner, from this address, and proves itself by the token.
pub(super) fn connect(own: IpAddr, to: SocketAddr, token: &str) -> Result<TcpStream, String> {
    let until = Instant::now() + CALL;
    let mut stream = loop {
        match dial(own, to) {
            Ok(stream) => break stream,
            Err(e) if Instant::now() > until => {
                return Err(format!("connecting to port {} of {}: {e}", to.port(), to.ip()));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    };
    let mut answer = [0; AGREED.len()];
    // The partner may wait for the token of a stranger first.
    let sent = stream.set_read_timeout(Some(CALL)).and_then(|()| stream.write_all(token.as_bytes()));
    match sent.and_then(|()| stream.read_exact(&mut answer)) {
        Ok(()) if answer == *AGREED => prepared(stream),
        _ => Err(format!("port {} of {} is in use by another program", to.port(), to.ip())),
    }
}

/// Makes one attempt to connect. The partner takes connections of the address `own` alone, and a host with several
/// addresses would choose another one.
fn dial(own: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddr::new(own, 0))?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) if !ready(&socket, PollFlags::OUT, ATTEMPT)? => return Err(Errno::TIMEDOUT.into()),
        Err(Errno::INPROGRESS) => sockopt::socket_error(&socket)??,
        Err(e) => return Err(e.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Waits until a socket can be read or written; returns false if it takes longer.
pub(super) fn ready(socket: impl AsFd, what: PollFlags, within: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(within).ok();
    match poll(&mut [PollFd::new(&socket, what)], limit.as_ref()) {
        Ok(n) => Ok(n > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// An open port.
pub(super) struct PartnerPort {
    socket: TcpListener,
    port: u16,
}

impl PartnerPort {
    pub fn open(own: IpAddr, port: u16) -> Result<PartnerPort, String> {
        let open = || {
            let socket = TcpListener::bind((own, port))?;
            socket.set_nonblocking(true)?;
            Ok(PartnerPort { socket, port })
        };
        open().map_err(|e: io::Error| format!("listening at port {port} of {own}: {e}"))
    }

    /// Returns the next connection from that address that begins with the token. Others are closed without an answer.
    pub fn accept(&self, from: IpAddr, token: &str, until: Instant) -> Result<TcpStream, String> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("{from} did not connect to port {} of this host", self.port));
            }
            let waited = ready(&self.socket, PollFlags::IN, left);
            waited.map_err(|e| format!("waiting at port {} of this host: {e}", self.port))?;
            // A connection that is gone already is none.
            let Ok((mut stream, peer)) = self.socket.accept() else { continue };
            if peer.ip() != from || !begins_with(&mut stream, token.as_bytes()) {
                continue;
            }
            if stream.write_all(AGREED).is_ok() {
                return prepared(stream);
            }
        }
    }
}

/// Whether the partner sends these bytes, in the time for all of them together.
fn begins_with(stream: &mut TcpStream, token: &[u8]) -> bool {
    let until = Instant::now() + PATIENCE;
    let (mut received, mut at) = (vec![0; token.len()], 0);
    while at < received.len() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return false;
        }
        match stream.read(&mut received[at..]) {
            Ok(n @ 1..) => at += n,
            _ => return false,
        }
    }
    received == token
}

/// Sets the options of a connection that carries a measurement.
fn prepared(stream: TcpStream) -> Result<TcpStream, String> {
    let set = || {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))
    };
    set().map_err(|e| format!("setting the options of a connection: {e}"))?;
    // The kernel makes room for so much at once, and for more later. A window that has to grow first takes long if its
    // acknowledgements queue behind the other direction. SO_RCVBUF would end its growth.
    for bytes in [ROOM, 1] {
        // SAFETY: the option takes an int; the descriptor is open.
        unsafe {
            let at = std::ptr::from_ref(&bytes).cast();
            let size = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, at, size);
        }
    }
    Ok(stream)
}

/// The numbers of `struct tcp_info` in linux/tcp.h that are used here, by their offset in bytes.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum TcpInfo {
    /// The size of a segment that is sent.
    SendMss = 16,
    /// The size of a segment that is received.
    ReceiveMss = 20,
    /// Segments sent again.
    Retransmitted = 100,
    /// Segments with data that came, since Linux 4.6.
    DataIn = 152,
    /// Segments with data that went, since Linux 4.6.
    DataOut = 156,
}

/// Returns a number of the kernel about a connection; `None` if this kernel does not have it.
pub(super) fn tcp_info(stream: &TcpStream, what: TcpInfo) -> Option<u32> {
    let mut info = [0_u8; 256];
    let mut size = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `info`, and their number to `size`.
    let failed = unsafe {
        let at = info.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, at, &mut size)
    };
    let known = &info[..if failed == 0 { size as usize } else { 0 }];
    Some(u32::from_ne_bytes(*known.get(what as usize..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_the_partner_with_the_token_is_answered() {
        let (own, partner) = (address("127.71.0.1"), address("127.71.0.2"));
        let to = SocketAddr::new(own, PORT);
        let listener = PartnerPort::open(own, PORT).unwrap();
        // The token from another address, another token, and no token: all of them come before the partner.
        let mut others =
            [("127.71.0.3", "secret"), ("127.71.0.2", "secreT"), ("127.71.0.2", "s")].map(|(from, token)| {
                let mut stream = dial(address(from), to).unwrap();
                stream.write_all(token.as_bytes()).unwrap();
                stream
            });
        others[2].shutdown(std::net::Shutdown::Write).unwrap();
        let called = std::thread::spawn(move || connect(partner, to, "secret"));
        let answered = listener.accept(partner, "secret", Instant::now() + ANSWER).unwrap();
        let called = called.join().unwrap().unwrap();
        assert_eq!(answered.peer_addr().unwrap(), called.local_addr().unwrap());
        for stream in &mut others {
            let mut received = Vec::new();
            let _ = stream.read_to_end(&mut received);
            assert_eq!(received, b"", "a stranger gets no byte");
        }
    }

    #[test]
    fn a_port_of_another_program_is_named() {
        let (own, other) = (address("127.72.0.1"), address("127.72.0.2"));
        let listener = TcpListener::bind((other, PORT)).unwrap();
        let stranger = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"220 mail\r\n"));
        let why = connect(own, SocketAddr::new(other, PORT), "secret").unwrap_err();
        assert_eq!(why, "port 47113 of 127.72.0.2 is in use by another program");
        stranger.join().unwrap().unwrap();
    }

    #[test]
    fn nobody_is_waited_for_without_end() {
        let listener = PartnerPort::open(address("127.73.0.1"), PORT).unwrap();
        let why = listener.accept(address("127.73.0.2"), "secret", Instant::now()).unwrap_err();
        assert_eq!(why, "127.73.0.2 did not connect to port 47113 of this host");
    }

    #[test]
    fn the_kernel_counts_segments() {
        let (own, partner) = (address("127.74.0.1"), address("127.74.0.2"));
        let listener = PartnerPort::open(own, PORT).unwrap();
        let mut called = dial(partner, SocketAddr::new(own, PORT)).unwrap();
        called.write_all(b"x").unwrap();
        assert!(ready(&listener.socket, PollFlags::IN, PATIENCE).unwrap());
        let (mut answered, _) = listener.socket.accept().unwrap();
        answered.set_nonblocking(false).unwrap();
        answered.read_exact(&mut [0]).unwrap();
        assert_eq!((tcp_info(&called, TcpInfo::DataOut), tcp_info(&answered, TcpInfo::DataIn)), (Some(1), Some(1)));
        assert_eq!(tcp_info(&called, TcpInfo::Retransmitted), Some(0));
        assert!(tcp_info(&called, TcpInfo::SendMss) > Some(0) && tcp_info(&answered, TcpInfo::ReceiveMss) > Some(0));
    }
}
