//! Reads a switch's announcement on a port: LLDP (IEEE 802.1AB) or Cisco's CDP, as lldpd has received it.
//!
//! Any device on the port can send any text: sizes are bounded, and shown text is made safe for a terminal.

use homing_model::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;

/// Neighbours of one port that are kept. Usually a switch is the only one; if frames are passed on, all hosts of a
/// segment are.
pub const MOST: usize = 64;
/// Characters of a name that are kept; Slurm allows 64 for switches.
const LONGEST: usize = 64;

/// The device at the other end of a host's port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The host's own interface.
    pub interface: String,
    /// Its identifier for programs: mostly a MAC address.
    pub chassis: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its port, by name where that is known.
    pub port: String,
    /// Whether it passes on frames of others: a switch.
    pub bridge: bool,
    /// The largest frame that its port takes, bytes.
    pub frame: Option<u32>,
    /// The duplex that its port has negotiated: half, or full.
    pub half_duplex: Option<bool>,
    /// The VLAN of packets without a tag.
    pub vlan: Option<u16>,
    /// The address at which it is managed.
    pub management: Option<IpAddr>,
}

/// Returns a valid VLAN number; 0 means none.
fn vlan(number: u32) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| (1..=4094).contains(number))
}

pub(crate) fn identity(is_mac: bool, id: &[u8]) -> String {
    match is_mac {
        true => id.iter().take(LONGEST / 3).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        false => line(id),
    }
}

/// Returns a text of a neighbour as a short line.
pub(crate) fn line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
    shown(text.trim_matches(|c: char| c.is_whitespace() || c == '\0')).chars().take(LONGEST).collect()
}

/// Whether the most neighbours that are kept of a port are known.
pub fn is_full(known: &[Neighbour], interface: &str) -> bool {
    known.iter().filter(|one| one.interface == interface).count() >= MOST
}

/// Reads the output of `lldpcli -f json0 show neighbors`, at most [`MOST`] neighbours of each port.
pub fn of_lldpcli(text: &str) -> Result<Vec<Neighbour>, String> {
    let output: Value = serde_json::from_str(text).map_err(|e| format!("the output of lldpcli is not JSON: {e}"))?;
    let mut neighbours: Vec<Neighbour> = Vec::new();
    for one in each(&output["lldp"]).flat_map(|lldp| each(&lldp["interface"])) {
        let Some(neighbour) = of_interface(one) else { continue };
        if !is_full(&neighbours, &neighbour.interface) {
            neighbours.push(neighbour);
        }
    }
    Ok(neighbours)
}

fn of_interface(entry: &Value) -> Option<Neighbour> {
    let (chassis, port) = (each(&entry["chassis"]).next()?, each(&entry["port"]).next()?);
    let id = |of: &Value| {
        let id = each(&of["id"]).next()?;
        Some((id["type"].as_str()? == "mac", line(id["value"].as_str()?.as_bytes())))
    };
    let value = |of: &Value| Some(line(each(of).next()?["value"].as_str()?.as_bytes())).filter(|text| !text.is_empty());
    let enabled = |one: &Value| one["type"] == "Bridge" && one["enabled"] == true;
    let (is_mac, port_id) = id(port)?;
    let negotiated = each(&port["auto-negotiation"]).find_map(|one| value(&one["current"])).unwrap_or_default();
    let half = ["half duplex", "full duplex"].iter().position(|word| negotiated.contains(word)).map(|at| at == 0);
    let number = |one: &Value| one["vlan-id"].as_str().and_then(|n| n.parse().ok()).or(one["vlan-id"].as_u64());
    let of_port = each(&entry["vlan"]).find(|one| one["pvid"] == true || one["pvid"] == "yes").and_then(number);
    Some(Neighbour {
        interface: line(entry["name"].as_str()?.as_bytes()),
        chassis: id(chassis)?.1,
        name: value(&chassis["name"]),
        port: value(&port["descr"]).filter(|_| is_mac).unwrap_or(port_id),
        bridge: each(&chassis["capability"]).any(enabled),
        frame: value(&port["mfs"]).and_then(|bytes| bytes.parse().ok()),
        half_duplex: half,
        vlan: of_port.and_then(|number| vlan(u32::try_from(number).ok()?)),
        management: each(&chassis["mgmt-ip"])
            .filter_map(|one| one["value"].as_str()?.parse().ok())
            .find(IpAddr::is_ipv4),
    })
}

/// Returns the items of a list, or the value itself if it is no list.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or(std::slice::from_ref(value));
    items.iter().filter(|item| !item.is_null())
}
