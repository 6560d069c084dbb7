//! Plans the largest packet of networks: it is the same on all hosts of a network, or left as it is on all. It is set
//! first; a unit that makes it last is planned when all hosts have it.

use super::AreaResult;
use crate::site::{AllSeen, ClusterSite};
use homing_steps::{FactQuery, HostRequirement, Lasting, Observed, lasting};
use std::collections::BTreeMap;
use std::net::IpAddr;

const SETTING: &str = "mtu";

impl ClusterSite {
    /// Returns the hosts of a network, each with its address there.
    pub fn of_network(&self, network: &str) -> Vec<(String, IpAddr)> {
        let of = |host: &String| Some((host.clone(), *self.addresses.get(host)?.get(network)?));
        self.hosts.iter().filter_map(of).collect()
    }

    pub(crate) fn mtu_faults(&self) -> Vec<String> {
        let bounds = |(_, bytes): &(&String, &u32)| !(576..=65535).contains(*bytes);
        let odd = self.up.mtu.iter().filter(bounds);
        let odd = odd.map(|(network, bytes)| format!("[up.mtu] {network} = {bytes}: it must be from 576 to 65535"));
        let bare = self.up.mtu.keys().filter(|network| self.of_network(network).is_empty());
        let bare = bare.map(|n| format!("[up.mtu] {n}: no addresses of a [host.NAME] has a network of this name"));
        odd.chain(bare).collect()
    }
}

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    let networks = site.up.mtu.keys();
    question.carriers.extend(networks.flat_map(|n| site.of_network(n)).map(|(_, address)| address.to_string()));
    question.files.insert(Lasting::UP.file.into());
    question.units.insert(Lasting::UP.unit.into());
}

fn link(there: &Observed, address: IpAddr, bytes: u32) -> Result<(String, String, HostRequirement), String> {
    let interface = there.carriers.get(&address.to_string()).ok_or_else(|| format!("has no {address}"))?;
    let setting = there.links.get(interface).and_then(|links| links.all().get(SETTING));
    let setting = setting.ok_or_else(|| format!("does not show the MTU of {interface}"))?;
    if let Some(most) = setting.most.filter(|most| *most < bytes) {
        return Err(format!("accepts at most {most} on {interface}"));
    }
    let wanted =
        HostRequirement::Link { interface: interface.clone(), setting: SETTING.into(), value: bytes.to_string() };
    Ok((interface.clone(), setting.value.clone(), wanted))
}

/// Returns the settings that the hosts of a network lack, by host; or the host that prevents them for all.
fn of_network(
    site: &ClusterSite,
    network: &str,
    bytes: u32,
    seen: &AllSeen,
) -> Result<BTreeMap<String, HostRequirement>, String> {
    let (mut lack, mut silent) = (BTreeMap::new(), Vec::new());
    for (host, address) in site.of_network(network) {
        let Some(Ok(there)) = seen.get(&host) else {
            silent.push(host);
            continue;
        };
        let (_, now, wanted) = link(there, address, bytes).map_err(|why| format!("{host} {why}"))?;
        if now != bytes.to_string() {
            lack.insert(host, wanted);
        }
    }
    match silent.first() {
        Some(host) if !lack.is_empty() => Err(format!("{host} does not answer")),
        _ => Ok(lack),
    }
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let Some(Ok(there)) = seen.get(host) else { return Ok(Vec::new()) };
    let (mut all, mut now, mut against) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut waits = false;
    for (network, bytes) in &site.up.mtu {
        let Some(address) = site.addresses.get(host).and_then(|of| of.get(network)) else { continue };
        match of_network(site, network, *bytes, seen) {
            Ok(lack) => {
                waits |= !lack.is_empty();
                now.extend(lack.get(host).cloned());
            }
            Err(why) => against.push(format!("all hosts of {network} get MTU {bytes} or none does, and {why}")),
        }
        if let Ok((interface, _, wanted)) = link(there, *address, *bytes)
            && let Some(other) = all.insert(interface.clone(), wanted.clone())
            && other != wanted
        {
            against.push(format!("its {interface} carries networks with different MTUs"));
        }
    }
    match () {
        () if !against.is_empty() => Err(against),
        // Other hosts do not have the value yet, and may not keep it.
        () if waits => Ok(now),
        () => Ok(lasting(Lasting::UP, &all.into_values().collect::<Vec<_>>(), there)),
    }
}
