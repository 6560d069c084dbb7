//! Reads a switch's facts from SNMP: its neighbours (LLDP-MIB), and the addresses behind its ports (BRIDGE-MIB and
//! Q-BRIDGE-MIB). The input is the output of net-snmp's `snmpwalk -On -Ox`; the caller bounds the length of a walk.

use crate::lldp::{identity, line};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The tables to read: its identity, its ports, its neighbours and their addresses; addresses behind ports, and names
/// of ports.
pub const TABLES: [&str; 9] = [LOCAL, PORTS, REMOTE, MANAGED, FDB, VLAN_FDB, BASE_PORTS, INTERFACES, "1.3.6.1.2.1.1.5"];
/// lldpLocChassisId and lldpLocSysName.
const LOCAL: &str = "1.0.8802.1.1.2.1.3";
/// lldpLocPortTable is below [`LOCAL`]; queried alone it is small.
const PORTS: &str = "1.0.8802.1.1.2.1.3.7.1";
/// lldpRemTable: by time, local port and number.
const REMOTE: &str = "1.0.8802.1.1.2.1.4.1.1";
/// lldpRemManAddrIfSubtype: the address is in the index.
const MANAGED: &str = "1.0.8802.1.1.2.1.4.2.1.3";
/// dot1dTpFdbPort: by address.
const FDB: &str = "1.3.6.1.2.1.17.4.3.1.2";
/// dot1qTpFdbPort: by VLAN and address.
const VLAN_FDB: &str = "1.3.6.1.2.1.17.7.1.2.2.1.2";
/// dot1dBasePortIfIndex.
const BASE_PORTS: &str = "1.3.6.1.2.1.17.1.4.1.2";
/// ifName.
const INTERFACES: &str = "1.3.6.1.2.1.31.1.1.1.1";

/// Most neighbours of a switch, and addresses behind its ports, that are kept.
const MOST: usize = 4096;

/// A neighbour of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchNeighbour {
    /// The switch's own port.
    pub port: String,
    /// The identifier of the neighbour.
    pub chassis: String,
    /// Its name.
    pub name: Option<String>,
    /// Whether it is a bridge.
    pub bridge: bool,
    /// The address at which it is managed.
    pub management: Option<Ipv4Addr>,
}

/// A switch that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchReport {
    /// Its identifier.
    pub chassis: String,
    /// Its name.
    pub name: Option<String>,
    /// Its neighbours.
    pub links: Vec<SwitchNeighbour>,
    /// The port that each address is behind.
    pub behind: BTreeMap<String, String>,
}

/// The values of a walk: the bytes of a string, else the digits of a number.
type WalkValues = BTreeMap<Vec<u32>, Vec<u8>>;

/// Reads the lines of walks. `None` if the switch reports no identifier.
pub fn read(text: &str) -> Option<SwitchReport> {
    let values = values(text);
    let of = |table: &str| {
        let table = numbers(table);
        let below = values.range(table.clone()..).take_while(move |(oid, _)| oid.starts_with(&table));
        below.map(|(oid, value)| (oid.clone(), value.clone())).collect::<Vec<_>>()
    };
    let at = |oid: &str| values.get(&numbers(oid));
    let subtype = at("1.0.8802.1.1.2.1.3.1.0").map_or(0, |value| number(value));
    let chassis = identity(subtype == 4, at("1.0.8802.1.1.2.1.3.2.0")?);
    let name = at("1.0.8802.1.1.2.1.3.3.0").or(at("1.3.6.1.2.1.1.5.0")).map(|name| line(name));
    let ports = ports(&of(PORTS));
    let links = links(&of(REMOTE), &of(MANAGED), &ports);
    let names: BTreeMap<u32, String> =
        of(INTERFACES).into_iter().filter_map(|(oid, name)| Some((*oid.last()?, line(&name)))).collect();
    let base: BTreeMap<u32, u32> =
        of(BASE_PORTS).into_iter().filter_map(|(oid, index)| Some((*oid.last()?, number(&index)))).collect();
    let port = |number: u32| {
        let index = base.get(&number).copied().unwrap_or(number);
        names.get(&index).cloned().unwrap_or_else(|| number.to_string())
    };
    let behind = of(FDB).into_iter().chain(of(VLAN_FDB)).take(MOST).filter_map(|(oid, value)| {
        let octets: Vec<u8> =
            oid.iter().rev().take(6).rev().map(|part| u8::try_from(*part)).collect::<Result<_, _>>().ok()?;
        Some((identity(true, &octets), port(Some(number(&value)).filter(|number| *number > 0)?)))
    });
    Some(SwitchReport { chassis, name: name.filter(|name| !name.is_empty()), links, behind: behind.collect() })
}

/// Reads lines of an object identifier, a type and a value; a line that does not begin with a dot continues the last
/// one.
fn values(text: &str) -> WalkValues {
    let mut values = WalkValues::new();
    let mut last: Option<Vec<u32>> = None;
    for row in text.lines().take(16 * MOST) {
        match row.split_once(" = ").filter(|(oid, _)| oid.starts_with('.')) {
            Some((oid, value)) => {
                let oid = numbers(oid.trim_start_matches('.'));
                values.insert(oid.clone(), octets(value));
                last = Some(oid);
            }
            None => {
                if let Some(value) = last.as_ref().and_then(|oid| values.get_mut(oid)) {
                    value.extend(hex(row));
                }
            }
        }
    }
    values
}

fn numbers(oid: &str) -> Vec<u32> {
    oid.split('.').filter_map(|part| part.trim().parse().ok()).collect()
}

fn octets(value: &str) -> Vec<u8> {
    match value.split_once(": ").unwrap_or(("", value)) {
        ("Hex-STRING", digits) | ("BITS", digits) => hex(digits),
        // An empty string has no digits.
        (_, text) => text.trim_matches('"').as_bytes().to_vec(),
    }
}

/// Reads pairs of digits; the names of bits may follow them.
fn hex(digits: &str) -> Vec<u8> {
    let pairs =
        digits.split_whitespace().map_while(|pair| u8::from_str_radix(pair, 16).ok().filter(|_| pair.len() == 2));
    pairs.collect()
}

/// Reads `ifIndex(3)` or `3`.
fn number(value: &[u8]) -> u32 {
    let text = String::from_utf8_lossy(value);
    let digits = text.split_once('(').map_or(&*text, |(_, rest)| rest.trim_end_matches(')'));
    digits.trim().parse().unwrap_or(0)
}

/// Returns the ports by number: lldpLocPortIdSubtype (2), lldpLocPortId (3), lldpLocPortDesc (4). If the id is a MAC
/// address, the description is the name.
fn ports(rows: &[(Vec<u32>, Vec<u8>)]) -> BTreeMap<u32, String> {
    let column = |column: u32| {
        let own = move |(oid, value): &(Vec<u32>, Vec<u8>)| {
            let [.., of, port] = oid[..] else { return None };
            (of == column).then(|| (port, value.clone()))
        };
        rows.iter().filter_map(own).collect::<BTreeMap<u32, Vec<u8>>>()
    };
    let (kinds, ids, described) = (column(2), column(3), column(4));
    let name = |(port, id): (&u32, &Vec<u8>)| {
        let is_mac = kinds.get(port).is_some_and(|kind| number(kind) == 3);
        let text = described.get(port).map(|text| line(text)).filter(|text| is_mac && !text.is_empty());
        (*port, text.unwrap_or_else(|| identity(is_mac, id)))
    };
    ids.iter().map(name).collect()
}

/// Reads the columns of lldpRemTable: chassis (4, 5), name (9), capabilities that are on (12).
fn links(
    rows: &[(Vec<u32>, Vec<u8>)],
    managed: &[(Vec<u32>, Vec<u8>)],
    ports: &BTreeMap<u32, String>,
) -> Vec<SwitchNeighbour> {
    let mut by: BTreeMap<[u32; 3], BTreeMap<u32, &Vec<u8>>> = BTreeMap::new();
    for (oid, value) in rows {
        if let [.., column, time, port, nth] = oid[..] {
            by.entry([time, port, nth]).or_default().insert(column, value);
        }
    }
    let address = |index: &[u32; 3]| {
        let base = numbers(MANAGED).len();
        managed.iter().find_map(|(oid, _)| match oid.get(base..)? {
            // IPv4 with four octets follows the index.
            [time, port, nth, 1, 4, a, b, c, d] if [*time, *port, *nth] == *index => {
                let octet = |part: &u32| u8::try_from(*part).ok();
                Some(Ipv4Addr::new(octet(a)?, octet(b)?, octet(c)?, octet(d)?))
            }
            _ => None,
        })
    };
    let link = |(index, of): (&[u32; 3], &BTreeMap<u32, &Vec<u8>>)| {
        let is_mac = of.get(&4).is_some_and(|kind| number(kind) == 4);
        let name = of.get(&9).map(|name| line(name)).filter(|name| !name.is_empty());
        Some(SwitchNeighbour {
            port: ports.get(&index[1]).cloned().unwrap_or_else(|| index[1].to_string()),
            chassis: identity(is_mac, of.get(&5)?),
            name,
            // BITS count from the highest bit of the first octet: other, repeater, bridge.
            bridge: of.get(&12).and_then(|bits| bits.first()).is_some_and(|bits| bits & 0x20 != 0),
            management: address(index),
        })
    };
    by.iter().filter_map(link).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of snmpd with lldpd as its agent (Debian 12), shortened, with addresses in the form that a switch
    /// has.
    const WALK: &str = "\
.1.0.8802.1.1.2.1.3.1.0 = INTEGER: 4
.1.0.8802.1.1.2.1.3.2.0 = Hex-STRING: 02 00 00 00 00 01\u{20}
.1.0.8802.1.1.2.1.3.3.0 = Hex-STRING: 73 31\u{20}
.1.0.8802.1.1.2.1.3.7.1.2.5 = INTEGER: 3
.1.0.8802.1.1.2.1.3.7.1.3.5 = Hex-STRING: 02 00 00 00 00 55\u{20}
.1.0.8802.1.1.2.1.3.7.1.4.5 = Hex-STRING: 75 70\u{20}
.1.0.8802.1.1.2.1.4.1.1.4.0.5.1 = INTEGER: 4
.1.0.8802.1.1.2.1.4.1.1.5.0.5.1 = Hex-STRING: 02 00 00 00 00 0C\u{20}
.1.0.8802.1.1.2.1.4.1.1.9.0.5.1 = Hex-STRING: 63 6F 72 65 2D 77 69 74 68 2D 61 2D 6C 6F 6E 67\u{20}
2D 6E 61 6D 65\u{20}
.1.0.8802.1.1.2.1.4.1.1.12.0.5.1 = Hex-STRING: 28 00\u{20}
.1.0.8802.1.1.2.1.4.2.1.3.0.5.1.1.4.10.0.0.9 = INTEGER: ifIndex(2)
.1.3.6.1.2.1.17.1.4.1.2.7 = INTEGER: 11
.1.3.6.1.2.1.17.4.3.1.2.2.0.0.0.0.171 = INTEGER: 7
.1.3.6.1.2.1.17.4.3.1.2.2.0.0.0.0.172 = INTEGER: 0
.1.3.6.1.2.1.17.7.1.2.2.1.2.1.2.0.0.0.0.173 = INTEGER: 9
.1.3.6.1.2.1.31.1.1.1.1.11 = STRING: \"Gi1/7\"
.1.3.6.1.2.1.31.1.1.1.1.12 = No more variables left in this MIB View
";

    #[test]
    fn a_switch_tells_its_neighbours_and_who_is_behind_its_ports() {
        let told = read(WALK).unwrap();
        let up = SwitchNeighbour {
            port: "up".into(),
            chassis: "02:00:00:00:00:0c".into(),
            name: Some("core-with-a-long-name".into()),
            bridge: true,
            management: Some(Ipv4Addr::new(10, 0, 0, 9)),
        };
        assert_eq!((told.chassis.as_str(), told.name.as_deref()), ("02:00:00:00:00:01", Some("s1")));
        assert_eq!(told.links, [up]);
        let behind: Vec<_> = told.behind.iter().map(|(mac, port)| (mac.as_str(), port.as_str())).collect();
        assert_eq!(behind, [("02:00:00:00:00:ab", "Gi1/7"), ("02:00:00:00:00:ad", "9")]);
    }

    #[test]
    fn what_is_no_walk_is_no_switch() {
        assert_eq!(read("Timeout: No Response from 10.0.0.9"), None);
        for at in 0..WALK.len() {
            let _ = WALK.get(..at).and_then(read);
        }
    }
}
