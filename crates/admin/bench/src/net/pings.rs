//! Tests whether packets of a size arrive without fragmentation.

use std::net::IpAddr;

/// Sends up to two packets to each address, one of which is enough.
const PINGS: &str =
    "command -v ping > /dev/null || { echo 'ping is missing: install the package iputils-ping' >&2; exit 1; }
for p in PAIRS; do
a=${p%,*} s=${p#*,}
{ ping -n -q -c 1 -W 1 -M do -s $s $a || ping -n -q -c 1 -W 1 -M do -s $s $a; } > /dev/null 2>&1 || echo $a &
done; wait
";
/// Addresses that each host pings; if there are more, the first ones. A packet there and one back show both ways.
const PINGED: usize = 32;
/// Bytes of headers before the payload of a packet: ICMP with IPv4, and with IPv6.
const HEADERS: [u32; 2] = [28, 48];

/// Returns a script that prints the addresses to which no packet of `bytes` bytes passes without fragmentation.
pub fn pings(bytes: u32, addresses: &[IpAddr]) -> String {
    let pair =
        |address: &IpAddr| format!("{address},{}", bytes.saturating_sub(HEADERS[usize::from(address.is_ipv6())]));
    PINGS.replace("PAIRS", &addresses.iter().take(PINGED).map(pair).collect::<Vec<_>>().join(" "))
}
