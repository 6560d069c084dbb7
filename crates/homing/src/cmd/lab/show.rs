//! `lab status`, for people and as JSON.

use super::failure;
use crate::failure::Failure;
use homing_lab::{HostState, LabStatus};

/// Prints the state of a lab; 0 when all of it is up, 1 otherwise.
pub fn status(name: &str, json: bool) -> Result<i32, Failure> {
    let status = homing_lab::status(name).map_err(failure)?;
    if json {
        let text = serde_json::to_string_pretty(&status).map_err(Failure::system)?;
        println!("{text}");
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
    }
    if !status.up {
        text += &format!("lab {} is not whole; `homing lab down --name {}` clears it away\n", status.name, status.name);
    }
    text
}
