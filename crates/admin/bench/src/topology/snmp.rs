//! Queries switches over SNMP, with net-snmp's snmpwalk on this machine: hosts are seldom in the management network.

use homing_model::Failure;
use homing_model::text::shown;
use homing_network::snmp::{SwitchReport, TABLES, read};
use homing_network::tree::HostNeighbours;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Most switches that are queried: wrong neighbours cannot extend the search without end.
const MOST: usize = 64;
/// Most bytes of a table: 4096 neighbours or addresses.
const LONGEST: u64 = 1 << 20;
/// Seconds for a table, even if it arrives slowly.
const PATIENCE: &str = "60";
/// Seconds to wait for an answer, and the number of retries.
const ANSWER: [&str; 4] = ["-t", "2", "-r", "1"];

/// Queries the switches that hosts see, the named ones, and the neighbours of both. Returns their answers, and the
/// reason for each that did not answer.
pub fn query_switches(
    file: &Path,
    named: &[IpAddr],
    heard: &[HostNeighbours],
) -> Result<(Vec<SwitchReport>, BTreeMap<IpAddr, String>), Failure> {
    let settings = settings(file)?;
    let told = heard.iter().flat_map(|heard| &heard.neighbours).filter(|one| one.bridge);
    let mut queue: Vec<IpAddr> = named.iter().copied().chain(told.filter_map(|one| one.management)).collect();
    if queue.is_empty() {
        return Err(Failure::system("--snmp: no switch announces its management address")
            .hint("--switch ADDRESS names the address of a switch"));
    }
    let (mut switches, mut silent): (BTreeMap<String, SwitchReport>, _) = (BTreeMap::new(), BTreeMap::new());
    let mut asked: BTreeSet<IpAddr> = BTreeSet::new();
    while let Some(address) = queue.pop() {
        if asked.len() == MOST || !asked.insert(address) {
            continue;
        }
        match walk(settings.path(), address) {
            Ok(switch) => {
                let next = switch.links.iter().filter(|link| link.bridge).filter_map(|link| link.management);
                queue.extend(next.map(IpAddr::from));
                switches.insert(switch.chassis.clone(), switch);
            }
            Err(why) => drop(silent.insert(address, why)),
        }
    }
    Ok((switches.into_values().collect(), silent))
}

/// Writes the community into a file that only we can read: all users of this machine can see arguments.
fn settings(file: &Path) -> Result<tempfile::TempDir, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::usage(format!("cannot read the community in {}: {e}", file.display())))?;
    let community = text.lines().next().unwrap_or_default().trim();
    if community.is_empty() || community.chars().any(|c| c.is_whitespace() || c.is_control() || "\"'\\#".contains(c)) {
        let text = format!(
            "the first line of {} is not an SNMP community: one word without quotes, # or backslashes",
            file.display()
        );
        return Err(Failure::usage(text));
    }
    let failed = |e: std::io::Error| {
        Failure::system(format!("making a temporary file for the SNMP community: {e}"))
            .hint("TMPDIR=FOLDER names another folder for temporary files")
    };
    let owner_only = std::fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(owner_only).tempdir().map_err(failed)?;
    std::fs::write(folder.path().join("snmp.conf"), format!("defCommunity {community}\n")).map_err(failed)?;
    Ok(folder)
}

fn walk(settings: &Path, address: IpAddr) -> Result<SwitchReport, String> {
    let mut all = String::new();
    for table in TABLES {
        all += &one(settings, address, table)?;
    }
    read(&all).ok_or_else(|| "it answers, but does not serve LLDP-MIB, which has its identity".into())
}

fn one(settings: &Path, address: IpAddr, table: &str) -> Result<String, String> {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", PATIENCE, "snmpwalk", "-v", "2c", "-On", "-Ox"]).args(ANSWER);
    command.arg(address.to_string()).arg(table);
    // snmpwalk reads no other settings and resolves no names: we parse numbers.
    command.env("SNMPCONFPATH", settings).env("MIBS", "");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("running snmpwalk: {e}"))?;
    let mut text = Vec::new();
    let out = child.stdout.take().map(|out| out.take(LONGEST).read_to_end(&mut text));
    let is_cut = text.len() as u64 == LONGEST;
    if is_cut {
        let _ = child.kill();
    }
    let ended = child.wait_with_output().map_err(|e| format!("running snmpwalk: {e}"))?;
    match out {
        Some(Ok(_)) if ended.status.success() || is_cut => Ok(String::from_utf8_lossy(&text).into_owned()),
        _ if ended.status.code() == Some(127) => {
            Err("snmpwalk is missing on this machine: install the package snmp, or net-snmp-utils".into())
        }
        _ => Err(shown(String::from_utf8_lossy(&ended.stderr).lines().next().unwrap_or("no answer in time"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_community_is_one_word_and_is_in_no_argument() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("community");
        for bad in ["", "a b", "\"x", "a\u{7}", "#"] {
            std::fs::write(&file, bad).unwrap();
            assert!(settings(&file).is_err(), "{bad:?}");
        }
        std::fs::write(&file, "s3cret\nmore\n").unwrap();
        let folder = settings(&file).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("snmp.conf")).unwrap(), "defCommunity s3cret\n");
    }
}
