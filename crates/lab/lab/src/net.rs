//! The lab's bridge, the shaping of its links, and the byte counters.

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

/// Makes the bridge and gives the machine its address there.
pub(crate) fn make_bridge(plan: &LabPlan) -> Result<()> {
    let (bridge, doing) = (plan.bridge(), "making the lab's bridge");
    run(doing, "ip", &["link", "add", &bridge, "type", "bridge"])?;
    run(doing, "ip", &["addr", "add", &format!("{}/24", plan.gateway()), "dev", &bridge])?;
    run(doing, "ip", &["link", "set", &bridge, "up"])?;
    Ok(())
}

/// Makes the machine's end of a guest's link.
pub(crate) fn make_tap(plan: &LabPlan, host: &HostPlan) -> Result<()> {
    let (tap, doing) = (host.veth(), format!("making the link of {}", host.name()));
    run(&doing, "ip", &["tuntap", "add", "dev", &tap, "mode", "tap"])?;
    run(&doing, "ip", &["link", "set", &tap, "master", &plan.bridge(), "up"]).map(drop)
}

/// Shapes the traffic that a guest receives. The shaping of the other ends limits the traffic that it sends.
pub(crate) fn shape_guest(host: &HostPlan, bits_per_s: u64) -> Result<()> {
    let doing = format!("shaping the link of {}", host.name());
    finish(&doing, &mut tbf(crate::program::command("tc"), &host.veth(), bits_per_s)).map(drop)
}

/// Shapes both ends of a host's link: the queue of each end limits the traffic that leaves it.
pub(crate) fn shape(host: &HostPlan, leader: i32, bits_per_s: u64) -> Result<()> {
    let doing = format!("shaping the link of {}", host.name());
    finish(&doing, &mut tbf(crate::program::command("tc"), &host.veth(), bits_per_s))?;
    let mut inside = crate::program::command("nsenter");
    inside.args(["--net", "--target", &leader.to_string(), "tc"]);
    finish(&doing, &mut tbf(inside, "host0", bits_per_s))?;
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
    let Ok(all) = fs::read_dir("/sys/class/net") else { return Vec::new() };
    let mut names: Vec<String> = all
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|n| *n == plan.bridge() || n.starts_with(&prefix))
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
