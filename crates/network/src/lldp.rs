//! What a switch says of itself on a port: LLDP (IEEE 802.1AB), as frames or as lldpd has read them.
//!
//! Whoever can send on the port can say anything: sizes are bounded, and what is shown was made a line for a terminal.

use homing_model::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Neighbours of one port that are kept. A switch is one; where frames are passed on, all hosts of a segment are.
pub const MOST: usize = 64;
/// Characters of a name that are kept: of Slurm's switches 64.
const LONGEST: usize = 64;

/// What is on the other end of a host's port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The host's own interface.
    pub interface: String,
    /// Who it is, for programs: mostly a MAC address.
    pub chassis: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its port: the name of it where that is known.
    pub port: String,
    /// It passes on what others send: a switch.
    pub bridge: bool,
    /// The largest frame that its port takes, bytes.
    pub frame: Option<u32>,
}

/// From an Ethernet frame that came on an interface. None: it is no LLDP, or it is cut short.
pub fn of_frame(interface: &str, frame: &[u8]) -> Option<Neighbour> {
    let mut rest = frame.get(14..).filter(|_| frame[12..14] == [0x88, 0xcc])?;
    let mut told = Neighbour { interface: line(interface.as_bytes()), ..Neighbour::default() };
    let (mut chassis, mut port, mut described) = (None, None, None);
    while let [high, low, after @ ..] = rest {
        let length = usize::from(*high & 1) << 8 | usize::from(*low);
        let value = after.get(..length)?;
        rest = &after[length..];
        match (high >> 1, value) {
            (0, _) => break,
            (1, [kind, id @ ..]) => chassis = chassis.or(Some(identity(*kind == 4, id))),
            (2, [kind, id @ ..]) => port = port.or(Some((*kind == 3, identity(*kind == 3, id)))),
            (4, text) => described = Some(line(text)).filter(|text| !text.is_empty()),
            (5, text) => told.name = Some(line(text)).filter(|text| !text.is_empty()),
            (7, [_, _, enabled @ ..]) => told.bridge = enabled.get(1).is_some_and(|bits| bits & BRIDGE != 0),
            // IEEE 802.3: the largest frame.
            (127, [0x00, 0x12, 0x0f, 4, high, low]) => told.frame = Some(u32::from(u16::from_be_bytes([*high, *low]))),
            _ => {}
        }
    }
    let (is_mac, port) = port?;
    told.chassis = chassis?;
    told.port = described.filter(|_| is_mac).unwrap_or(port);
    Some(told)
}

/// The bit of a bridge among the capabilities.
const BRIDGE: u8 = 0x04;

fn identity(is_mac: bool, id: &[u8]) -> String {
    match is_mac {
        true => id.iter().take(LONGEST / 3).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        false => line(id),
    }
}

/// A text of a neighbour as a short line.
fn line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
    shown(text.trim_matches(|c: char| c.is_whitespace() || c == '\0')).chars().take(LONGEST).collect()
}

/// Whether as many neighbours of a port are known as are kept.
pub fn is_full(known: &[Neighbour], interface: &str) -> bool {
    known.iter().filter(|one| one.interface == interface).count() >= MOST
}

/// From what `lldpcli -f json0 show neighbors` prints, at most [`MOST`] a port.
pub fn of_lldpcli(text: &str) -> Result<Vec<Neighbour>, String> {
    let told: Value = serde_json::from_str(text).map_err(|e| format!("lldpcli's answer is no JSON: {e}"))?;
    let mut neighbours: Vec<Neighbour> = Vec::new();
    for one in each(&told["lldp"]).flat_map(|lldp| each(&lldp["interface"])) {
        let Some(neighbour) = of_interface(one) else { continue };
        if !is_full(&neighbours, &neighbour.interface) {
            neighbours.push(neighbour);
        }
    }
    Ok(neighbours)
}

fn of_interface(told: &Value) -> Option<Neighbour> {
    let (chassis, port) = (each(&told["chassis"]).next()?, each(&told["port"]).next()?);
    let id = |of: &Value| {
        let id = each(&of["id"]).next()?;
        Some((id["type"].as_str()? == "mac", line(id["value"].as_str()?.as_bytes())))
    };
    let value = |of: &Value| Some(line(each(of).next()?["value"].as_str()?.as_bytes())).filter(|text| !text.is_empty());
    let enabled = |one: &Value| one["type"] == "Bridge" && one["enabled"] == true;
    let (is_mac, port_id) = id(port)?;
    Some(Neighbour {
        interface: line(told["name"].as_str()?.as_bytes()),
        chassis: id(chassis)?.1,
        name: value(&chassis["name"]),
        port: value(&port["descr"]).filter(|_| is_mac).unwrap_or(port_id),
        bridge: each(&chassis["capability"]).any(enabled),
        frame: value(&port["mfs"]).and_then(|bytes| bytes.parse().ok()),
    })
}

/// The items of a list, or the one where there is no list.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or(std::slice::from_ref(value));
    items.iter().filter(|item| !item.is_null())
}
