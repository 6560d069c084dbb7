//! `lab status`: reports which parts of a lab are alive now.

use crate::error::Result;
use crate::plan::LabPlan;
use crate::{boot, folder, net, process, program};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// State of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    /// It has a first process and its sshd answers.
    Running,
    /// It has a first process; its sshd does not answer.
    Starting,
    /// It has no process.
    Dead,
}

/// One host, as `lab status --json` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct HostStatus {
    /// Host name.
    pub name: String,
    /// Address on the lab's bridge.
    pub address: Ipv4Addr,
    /// Address in each further network.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub networks: BTreeMap<String, Ipv4Addr>,
    /// The system whose root it has.
    pub os: String,
    /// The switch that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// State now.
    pub state: HostState,
    /// The host's first process, as the machine numbers it.
    pub pid: Option<i32>,
    /// Bytes that the host received over its link since it booted.
    pub rx_bytes: Option<u64>,
    /// Bytes that the host sent over its link since it booted.
    pub tx_bytes: Option<u64>,
}

/// A lab, as `lab status --json` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct LabStatus {
    /// Lab name.
    pub name: String,
    /// Whether all hosts run and the lab is complete.
    pub up: bool,
    /// The specification.
    pub spec: crate::spec::LabSpec,
    /// File for `ssh -F`, by which the machine reaches the hosts by name.
    pub ssh_config: PathBuf,
    /// The hosts, n1 first.
    pub hosts: Vec<HostStatus>,
}

/// Looks at a lab. Fails when there is none of this name.
pub fn status(name: &str) -> Result<LabStatus> {
    program::need_root()?;
    let plan: LabPlan = folder::load(name)?;
    let hosts: Vec<HostStatus> = plan
        .hosts()
        .iter()
        .map(|h| {
            let pid = process::leader_of(h);
            let state = match pid {
                None => HostState::Dead,
                Some(_) if boot::ssh_answers(h) => HostState::Running,
                Some(_) => HostState::Starting,
            };
            let bytes = net::counters(h);
            HostStatus {
                name: h.name(),
                address: h.address(),
                networks: h.further_links().into_iter().map(|link| (link.network.name, link.address)).collect(),
                os: h.system().to_string(),
                switch: h.switch(),
                state,
                pid,
                rx_bytes: bytes.map(|b| b.0),
                tx_bytes: bytes.map(|b| b.1),
            }
        })
        .collect();
    Ok(LabStatus {
        up: folder::is_up(name),
        name: plan.spec.name.clone(),
        ssh_config: plan.ssh_config(),
        spec: plan.spec,
        hosts,
    })
}
