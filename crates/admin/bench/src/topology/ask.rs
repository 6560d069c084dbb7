//! What hosts hear of switches: from lldpd where it runs, else by listening.

use crate::net::{Hosts, input};
use homing_exec::{Command, HostResult, Outcome};
use homing_model::Failure;
use homing_model::text::shown;
use homing_network::cdp;
use homing_network::lldp::{Neighbour, is_full, of_frame, of_lldpcli};
use homing_network::tree::Heard;

/// Frames for an own listener; lldpd's answer, cut where it is longer than what is kept of a host.
const LISTEN: &str = include_str!("listen.pl");
const ASK: &str = r#"if command -v lldpcli > /dev/null && told=$(lldpcli -f json0 show neighbors 2> /dev/null) && [ -n "$told" ]
then echo json0; printf %s "$told" | head -c 900000; else exec perl - "$1"; fi"#;

/// Hardware addresses, by host: the interface that the host is reached at, and its address.
pub fn hardware(hosts: &Hosts) -> Vec<(String, Option<String>, String)> {
    let script = "for i in /sys/class/net/*; do echo \"${i##*/} $(cat \"$i/address\" 2> /dev/null)\"; done";
    let said = hosts.all(&Command::argv(["sh", "-c", script]));
    let of = |(host, said): (&homing_network::Host, Result<HostResult, String>)| {
        let (text, interface) = (said.ok()?.stdout, host.interface.clone()?);
        let text = String::from_utf8_lossy(&text).into_owned();
        let own = text.lines().find_map(|line| line.split_once(' ').filter(|(name, _)| *name == interface))?;
        Some((host.name.clone(), Some(interface.clone()), shown(own.1)))
    };
    hosts.known.iter().zip(said).filter_map(of).collect()
}

/// Hosts that did not tell, and why.
type Silent = Vec<(String, String)>;

/// What hosts hear, and those that did not tell.
pub fn ask(hosts: &Hosts, wait: u32, sudo: bool) -> Result<(Vec<Heard>, Silent), Failure> {
    let wait = wait.to_string();
    let before: &[&str] = if sudo { &["sudo", "-n"] } else { &[] };
    let words = before.iter().copied().chain(["sh", "-c", ASK, "sh", &wait]);
    let said = hosts.all(&Command::argv(words).input(input(LISTEN)?));
    let (mut heard, mut silent) = (Vec::new(), Vec::new());
    for (host, said) in hosts.known.iter().zip(said) {
        match said.and_then(|said| neighbours(&said)) {
            Ok(neighbours) => {
                heard.push(Heard { host: host.name.clone(), interface: host.interface.clone(), neighbours });
            }
            Err(why) => silent.push((host.name.clone(), why)),
        }
    }
    Ok((heard, silent))
}

fn neighbours(said: &HostResult) -> Result<Vec<Neighbour>, String> {
    if said.outcome != Outcome::Exited(0) {
        return Err(shown(&said.why()));
    }
    let text = String::from_utf8_lossy(&said.stdout);
    match text.split_once('\n') {
        Some(("json0", told)) => of_lldpcli(told),
        Some(("frames", frames)) => Ok(frames.lines().filter_map(frame).fold(Vec::new(), bounded)),
        Some((first, _)) => Err(shown(first.strip_prefix("failed\t").unwrap_or("its answer is not understood"))),
        None => Err("its answer is not understood".into()),
    }
}

/// An interface and a frame in hexadecimal digits.
fn frame(line: &str) -> Option<Neighbour> {
    let (interface, digits) = line.split_once('\t')?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.trim().as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> = pairs.map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect();
    let bytes = bytes?;
    of_frame(interface, &bytes).or_else(|| cdp::of_frame(interface, &bytes))
}

/// A switch says the same every half minute, and who lies says much.
fn bounded(mut known: Vec<Neighbour>, one: Neighbour) -> Vec<Neighbour> {
    if !is_full(&known, &one.interface) && !known.contains(&one) {
        known.push(one);
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_network::lldp::MOST;
    use std::time::Duration;

    fn said(stdout: String) -> HostResult {
        HostResult {
            giver: homing_exec::Giver::Here,
            host: "n1".into(),
            outcome: Outcome::Exited(0),
            stdout: stdout.into_bytes(),
            stderr: Vec::new(),
            dropped: 0,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn frames_are_read_once_each_and_no_more_than_a_port_may_have() {
        let frame = |n: u32| format!("eth0\t0180c200000e02000000000188cc0207040200000{n:05x}040207500000\n");
        let frames: String = (0..200).map(frame).collect();
        let heard = neighbours(&said(format!("frames\n{frames}{frames}eth0\tzz\nnothing\n"))).unwrap();
        assert_eq!(heard.len(), MOST);
    }

    #[test]
    fn who_may_not_listen_says_so() {
        let refused = neighbours(&said("failed\tlistening takes root\n".into()));
        assert_eq!(refused, Err("listening takes root".into()));
        assert!(neighbours(&said("\u{1b}[2J\n".into())).is_err());
    }
}
