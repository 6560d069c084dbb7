//! Do packets of a size come through, uncut?

use std::net::IpAddr;

/// Two packets to each, one of which is enough.
const PINGS: &str = "command -v ping > /dev/null || { echo 'no ping is there: package iputils-ping' >&2; exit 1; }
for p in PAIRS; do
a=${p%,*} s=${p#*,}
{ ping -n -q -c 1 -W 1 -M do -s $s $a || ping -n -q -c 1 -W 1 -M do -s $s $a; } > /dev/null 2>&1 || echo $a &
done; wait
";
/// Who is pinged by all: of more hosts the first. A packet there and one back show both ways.
const PINGED: usize = 32;
/// Of ICMP, and of IPv4 or IPv6, before what a packet carries.
const HEADERS: [u32; 2] = [28, 48];

/// A script that tells to which of these addresses packets of so many bytes, which must not be cut, do not come through.
pub fn pings(bytes: u32, addresses: &[IpAddr]) -> String {
    let pair =
        |address: &IpAddr| format!("{address},{}", bytes.saturating_sub(HEADERS[usize::from(address.is_ipv6())]));
    PINGS.replace("PAIRS", &addresses.iter().take(PINGED).map(pair).collect::<Vec<_>>().join(" "))
}
