//! The lab's bridges, the shaping of its links, and the byte counters.

use crate::error::Result;
use crate::plan::{HostPlan, LabPlan};
use crate::program::{finish, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether an interface of this name exists.
pub(crate) fn exists(interface: &str) -> bool {
    Path::new("/sys/class/net").join(interface).exists()
}

/// Makes the bridges, gives the machine its address on the first, and joins the switches.
pub(crate) fn make_bridges(plan: &LabPlan) -> Result<()> {
    let doing = "making the lab's bridges";
    for bridge in plan.bridges() {
        run(doing, "ip", &["link", "add", &bridge.name, "type", "bridge"])?;
        run(doing, "ip", &["link", "set", &bridge.name, "up"])?;
    }
    run(doing, "ip", &["addr", "add", &format!("{}/24", plan.gateway()), "dev", &plan.bridge()])?;
    let rate = plan.spec.switches.and_then(|switches| switches.uplink_bits_per_s);
    for uplink in plan.uplinks() {
        let (core, leaf) = (&uplink.core_end, &uplink.leaf_end);
        run(doing, "ip", &["link", "add", core, "type", "veth", "peer", "name", leaf])?;
        for (end, bridge) in [(core, plan.bridge()), (leaf, uplink.leaf)] {
            run(doing, "ip", &["link", "set", end, "master", &bridge, "up"])?;
            if let Some(rate) = rate {
                finish("shaping a link between switches", &mut tbf(crate::program::command("tc"), end, rate))?;
            }
        }
    }
    Ok(())
}

/// The largest frame that a port of a further network takes, as switches have it: hosts choose their MTU.
const LARGEST: &str = "9216";

/// Puts the machine's ends of a host's links in further networks on their bridges, and shapes both ends.
pub(crate) fn join(host: &HostPlan, leader: i32) -> Result<()> {
    for link in host.further_links() {
        let doing = format!("joining {} to the network {}", host.name(), link.network.name);
        run(&doing, "ip", &["link", "set", &link.veth, "mtu", LARGEST, "master", &link.bridge, "up"])?;
        if let Some(rate) = link.network.link_bits_per_s {
            shape_ends(host, leader, [&link.veth, &link.interface], rate)?;
        }
    }
    Ok(())
}

/// Makes the machine's end of a guest's link.
pub(crate) fn make_tap(plan: &LabPlan, host: &HostPlan) -> Result<()> {
    let (tap, doing) = (host.veth(), format!("making the link of {}", host.name()));
    run(&doing, "ip", &["tuntap", "add", "dev", &tap, "mode", "tap"])?;
    run(&doing, "ip", &["link", "set", &tap, "master", &plan.bridge_of(host), "up"]).map(drop)
}

/// Shapes the traffic that a guest receives. The shaping of the other ends limits the traffic that it sends.
pub(crate) fn shape_guest(host: &HostPlan, bits_per_s: u64) -> Result<()> {
    let doing = format!("shaping the link of {}", host.name());
    finish(&doing, &mut tbf(crate::program::command("tc"), &host.veth(), bits_per_s)).map(drop)
}

/// Shapes both ends of a host's link: the queue of each end limits the traffic that leaves it.
pub(crate) fn shape(host: &HostPlan, leader: i32, bits_per_s: u64) -> Result<()> {
    shape_ends(host, leader, [&host.veth(), "host0"], bits_per_s)
}

/// Shapes the machine's end of a link and the host's.
fn shape_ends(host: &HostPlan, leader: i32, ends: [&str; 2], bits_per_s: u64) -> Result<()> {
    let doing = format!("shaping the link of {}", host.name());
    finish(&doing, &mut tbf(crate::program::command("tc"), ends[0], bits_per_s))?;
    let mut inside = crate::program::command("nsenter");
    inside.args(["--net", "--target", &leader.to_string(), "tc"]);
    finish(&doing, &mut tbf(inside, ends[1], bits_per_s))?;
    Ok(())
}

fn tbf(mut tc: Command, interface: &str, bits_per_s: u64) -> Command {
    let rate = format!("{bits_per_s}bit");
    tc.args(["qdisc", "replace", "dev", interface, "root", "tbf", "rate", &rate, "burst", "256k", "latency", "50ms"]);
    tc
}

/// Returns the bytes that a host has received and sent, as its end of the link saw them. `None` when the link is
/// gone.
pub fn counters(host: &HostPlan) -> Option<(u64, u64)> {
    let read = |which: &str| -> Option<u64> {
        let file = Path::new("/sys/class/net").join(host.veth()).join("statistics").join(which);
        fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    // The host receives the bytes that the machine's end sends.
    Some((read("tx_bytes")?, read("rx_bytes")?))
}

/// Returns the lab's interfaces that exist now.
pub(crate) fn interfaces(plan: &LabPlan) -> Vec<String> {
    let prefix = format!("vb-{}-", plan.bridge());
    let bridges: Vec<String> = plan.bridges().into_iter().map(|bridge| bridge.name).collect();
    let Ok(all) = fs::read_dir("/sys/class/net") else { return Vec::new() };
    let mut names: Vec<String> = all
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|n| bridges.contains(n) || n.starts_with(&prefix))
        .collect();
    names.sort();
    names
}

/// Deletes the lab's interfaces.
pub(crate) fn remove(plan: &LabPlan) -> Result<()> {
    for name in interfaces(plan) {
        // A link that vanished meanwhile with its namespace counts as deleted.
        if let Err(e) = run("deleting an interface of the lab", "ip", &["link", "delete", &name])
            && exists(&name)
        {
            return Err(e);
        }
    }
    Ok(())
}
