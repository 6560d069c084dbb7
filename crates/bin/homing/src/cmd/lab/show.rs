//! `lab list` and `lab status`: print labs for people and as JSON.

use homing_lab::{HostState, LabStatus};
use homing_model::{Failure, document};
use serde::Serialize;

/// A lab that has a state folder.
#[derive(Serialize)]
struct Listed {
    name: String,
    /// Whether it is complete and all hosts live.
    up: bool,
    /// The hosts as a node set; none if the lab's record cannot be read.
    hosts: Option<String>,
}

/// Prints the labs of this machine, complete or not.
pub fn list(json: bool) -> Result<i32, Failure> {
    let listed = homing_lab::names().into_iter().map(|name| Listed {
        up: homing_lab::is_up(&name),
        hosts: homing_lab::load(&name).ok().map(|plan| plan.names()),
        name,
    });
    let labs: Vec<Listed> = listed.collect();
    if json {
        print!("{}", document::array(&labs));
        return Ok(0);
    }
    println!("{:<16} {:<10} HOSTS", "NAME", "STATE");
    for lab in labs {
        let state = if lab.up { "up" } else { "incomplete" };
        println!("{:<16} {state:<10} {}", lab.name, lab.hosts.as_deref().unwrap_or("-"));
    }
    Ok(0)
}

/// Prints the state of a lab. Returns 0 if all of it is up, and 1 otherwise.
pub fn status(name: &str, json: bool) -> Result<i32, Failure> {
    let status = homing_lab::status(name)?;
    if json {
        print!("{}", document::text(&status));
    } else {
        print!("{}", table(&status));
    }
    Ok(if status.up { 0 } else { 1 })
}

fn table(status: &LabStatus) -> String {
    let mut text =
        format!("{:<6} {:<14} {:<9} {:>8} {:>15} {:>15}\n", "HOST", "ADDRESS", "STATE", "PID", "RX BYTES", "TX BYTES");
    for h in &status.hosts {
        let state = match h.state {
            HostState::Running => "running",
            HostState::Starting => "starting",
            HostState::Dead => "dead",
        };
        let or_dash = |n: Option<u64>| n.map_or("-".to_string(), |n| n.to_string());
        let pid = h.pid.map_or("-".to_string(), |p| p.to_string());
        text += &format!(
            "{:<6} {:<14} {state:<9} {pid:>8} {:>15} {:>15}\n",
            h.name,
            h.address.to_string(),
            or_dash(h.rx_bytes),
            or_dash(h.tx_bytes)
        );
        let further = h.networks.iter().map(|(name, address)| format!("{}-{name} is {address}", h.name));
        let system = (h.os != "this").then(|| format!("has the root of {}", h.os));
        let switch = h.switch.iter().map(|name| format!("on switch {name}"));
        let further: Vec<String> = system.into_iter().chain(switch).chain(further).collect();
        if !further.is_empty() {
            text += &format!("       {}\n", further.join(", "));
        }
    }
    if !status.up {
        text += &format!("lab {} is incomplete; `homing lab down --name {}` removes it\n", status.name, status.name);
    }
    text
}
