//! What a switch of Cisco's says of itself on a port: CDP, version 1 and 2, as its manuals have it.

use crate::lldp::{Neighbour, line, vlan};
use std::net::Ipv4Addr;

/// Behind the two addresses and the length of an IEEE 802.3 frame: SNAP, Cisco, CDP.
const SNAP: [u8; 8] = [0xaa, 0xaa, 0x03, 0x00, 0x00, 0x0c, 0x20, 0x00];
/// Among the capabilities: a bridge of either kind, and a switch.
const BRIDGES: u32 = 0x02 | 0x04 | 0x08;

/// From an Ethernet frame that came on an interface. None: it is no CDP, or it is cut short.
pub fn of_frame(interface: &str, frame: &[u8]) -> Option<Neighbour> {
    // Version, time to live and check sum stand before the first element.
    let mut rest = frame.get(14..)?.strip_prefix(&SNAP)?.get(4..)?;
    let mut told = Neighbour { interface: line(interface.as_bytes()), ..Neighbour::default() };
    while let [kind_high, kind, high, low, ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some(value) = rest.get(4..length) else { break };
        rest = &rest[length..];
        match (u16::from_be_bytes([*kind_high, *kind]), value) {
            (0x01, name) => told.chassis = line(name),
            (0x02, addresses) => told.management = address(addresses),
            (0x03, port) => told.port = line(port),
            (0x04, [a, b, c, d]) => told.bridge = u32::from_be_bytes([*a, *b, *c, *d]) & BRIDGES != 0,
            (0x0a, [high, low]) => told.vlan = vlan(u16::from_be_bytes([*high, *low]).into()),
            (0x0b, [duplex]) => told.half_duplex = Some(*duplex == 0),
            (0x11, [a, b, c, d]) => told.frame = Some(u32::from_be_bytes([*a, *b, *c, *d])),
            _ => {}
        }
    }
    told.name = Some(told.chassis.clone());
    (!told.chassis.is_empty() && !told.port.is_empty()).then_some(told)
}

/// The first address: their number, then the protocol, by a type and its length, and the address with its length.
fn address(addresses: &[u8]) -> Option<std::net::IpAddr> {
    match addresses {
        [_, _, _, _, 1, 1, 0xcc, 0, 4, a, b, c, d, ..] => Some(Ipv4Addr::new(*a, *b, *c, *d).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(elements: &[(u16, &[u8])]) -> Vec<u8> {
        let mut frame = vec![0; 14];
        frame.extend(SNAP);
        frame.extend([2, 180, 0, 0]);
        for (kind, value) in elements {
            frame.extend(kind.to_be_bytes());
            frame.extend((value.len() as u16 + 4).to_be_bytes());
            frame.extend(*value);
        }
        frame
    }

    #[test]
    fn a_switch_says_who_it_is_and_what_its_port_has() {
        let address = [0, 0, 0, 1, 1, 1, 0xcc, 0, 4, 10, 0, 0, 9];
        let told = of_frame(
            "eth0",
            &frame(&[
                (1, b"core\x1b[2J.lab"),
                (2, &address),
                (3, b"GigabitEthernet1/0/3"),
                (4, &[0, 0, 0, 0x28]),
                (0x0a, &[0, 7]),
                (0x0b, &[0]),
                (0x11, &[0, 0, 0x05, 0xdc]),
            ]),
        )
        .unwrap();
        assert_eq!(
            told,
            Neighbour {
                interface: "eth0".into(),
                chassis: "core\\u{1b}[2J.lab".into(),
                name: Some("core\\u{1b}[2J.lab".into()),
                port: "GigabitEthernet1/0/3".into(),
                bridge: true,
                frame: Some(1500),
                half_duplex: Some(true),
                vlan: Some(7),
                management: Some(Ipv4Addr::new(10, 0, 0, 9).into()),
            }
        );
    }

    #[test]
    fn what_is_cut_short_or_no_cdp_says_nothing() {
        let whole = frame(&[(1, b"s1"), (3, b"p1")]);
        assert!(of_frame("eth0", &whole).is_some());
        // A length that is none ends it, and does not go round for ever.
        assert_eq!(of_frame("eth0", &frame(&[(1, b"s1")])), None);
        let mut endless = whole.clone();
        endless.extend([0, 9, 0, 0]);
        assert!(of_frame("eth0", &endless).is_some());
        for length in 0..whole.len() - 1 {
            assert_eq!(of_frame("eth0", &whole[..length]), None, "{length}");
        }
    }
}
