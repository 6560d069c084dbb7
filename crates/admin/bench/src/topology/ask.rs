//! Reads the neighbours of hosts, as the lldpd of each reports them.

use crate::net::Hosts;
use homing_exec::{Command, CommandOutcome, HostResult};
use homing_model::text::shown;
use homing_network::lldp::{Neighbour, of_lldpcli};
use homing_network::tree::HostNeighbours;

/// Prints lldpd's answer, up to the limit on the output that is kept of a host.
const ASK: &str = r#"PATH=$PATH:/usr/sbin:/sbin
command -v lldpcli > /dev/null || {
  if [ -e /usr/sbin/lldpcli ]; then echo "only root may read the answer of lldpd: add --sudo" >&2
  else echo "lldpd is missing: install the package lldpd, or add it to packages of [up]" >&2; fi; exit 1; }
found=$(lldpcli -f json0 show neighbors) || exit
printf %s "$found" | head -c 900000"#;

/// Returns the hardware address of each host, with the interface at which the host is reached.
pub fn hardware(hosts: &Hosts) -> Vec<(String, Option<String>, String)> {
    let script = "for i in /sys/class/net/*; do echo \"${i##*/} $(cat \"$i/address\" 2> /dev/null)\"; done";
    let said = hosts.all(&Command::argv(["sh", "-c", script]));
    let of = |(host, said): (&homing_network::NetworkHost, Result<HostResult, String>)| {
        let (text, interface) = (said.ok()?.stdout, host.interface.clone()?);
        let text = String::from_utf8_lossy(&text).into_owned();
        let own = text.lines().find_map(|line| line.split_once(' ').filter(|(name, _)| *name == interface))?;
        Some((host.name.clone(), Some(interface.clone()), shown(own.1)))
    };
    hosts.known.iter().zip(said).filter_map(of).collect()
}

/// Hosts without an answer, each with the reason.
type Silent = Vec<(String, String)>;

/// Returns the neighbours of hosts, and the hosts without an answer.
pub fn query_neighbours(hosts: &Hosts, sudo: bool) -> (Vec<HostNeighbours>, Silent) {
    let before: &[&str] = if sudo { &["sudo", "-n"] } else { &[] };
    let words = before.iter().copied().chain(["sh", "-c", ASK]);
    let said = hosts.all(&Command::argv(words));
    let (mut heard, mut silent) = (Vec::new(), Vec::new());
    for (host, said) in hosts.known.iter().zip(said) {
        match said.and_then(|said| neighbours(&said)) {
            Ok(neighbours) => {
                heard.push(HostNeighbours { host: host.name.clone(), interface: host.interface.clone(), neighbours });
            }
            Err(why) => silent.push((host.name.clone(), why)),
        }
    }
    (heard, silent)
}

fn neighbours(said: &HostResult) -> Result<Vec<Neighbour>, String> {
    if said.outcome != CommandOutcome::Exited(0) {
        return Err(shown(&said.why()));
    }
    of_lldpcli(&String::from_utf8_lossy(&said.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn host_result(status: i32, stdout: &str, stderr: &str) -> HostResult {
        HostResult {
            giver: homing_exec::Giver::Here,
            host: "n1".into(),
            outcome: CommandOutcome::Exited(status),
            stdout: stdout.into(),
            stderr: stderr.into(),
            dropped: 0,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn a_host_without_lldpd_says_so() {
        let refused = neighbours(&host_result(1, "", "lldpd is missing\n"));
        assert!(refused.unwrap_err().contains("lldpd is missing"));
        assert!(neighbours(&host_result(0, "\u{1b}[2J\n", "")).is_err());
        assert_eq!(neighbours(&host_result(0, "{\"lldp\": [{}]}", "")), Ok(Vec::new()));
    }
}
