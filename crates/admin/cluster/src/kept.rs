//! Finds hosts that always stay on, from facts on this machine.

use crate::Cluster;
use homing_dispatch::source::leases;
use homing_launch::{HostPlan, Via};
use homing_mounts::FileSystemKind;
use homing_power::HERE;
use std::collections::BTreeMap;

impl Cluster {
    /// Returns the reason of each such host. `keep` has the hosts that the file names, `holders` those that hold
    /// bytes of a volume.
    pub fn kept(
        &self,
        keep: &[String],
        holders: &BTreeMap<String, String>,
        names: &[String],
    ) -> BTreeMap<String, String> {
        let servers = servers(self);
        let why = |host: &String| {
            let is_here = HostPlan::named(host.clone(), None).via == Via::Local;
            let said = || keep.contains(host).then(|| "keep in [power]".to_string());
            let holds = || holders.get(host).map(|volume| format!("it stores files of the volume {volume}"));
            let serves = || {
                let called = called(self, host);
                servers.iter().find(|(server, _)| leases::is_one_of(server, &called)).map(|(_, why)| why.clone())
            };
            is_here.then(|| HERE.to_string()).or_else(said).or_else(holds).or_else(serves)
        };
        names.iter().filter_map(|host| Some((host.clone(), why(host)?))).collect()
    }
}

/// Returns the names and addresses of a host.
fn called(cluster: &Cluster, host: &str) -> Vec<String> {
    let said = cluster.addresses_of(host).into_iter().flatten().map(|(_, address)| address.to_string());
    [host.to_string()].into_iter().chain(said).chain(homing_os::names::addresses(host)).collect()
}

/// Returns the servers that the cluster file names, and those of this machine's mounts.
fn servers(cluster: &Cluster) -> Vec<(String, String)> {
    let said = cluster.servers().into_keys().map(|name| (name.clone(), format!("[server.{name}]")));
    let mounts = homing_mounts::read().unwrap_or_default().into_iter().map(|line| line.mount);
    let mounted = mounts
        .filter(|mount| matches!(FileSystemKind::of(mount), FileSystemKind::Nfs | FileSystemKind::Sshfs))
        .map(|mount| {
            let point = mount.point.display();
            (homing_mounts::nfs::server(&mount), format!("it serves {point} of this machine"))
        });
    said.chain(mounted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_serves_or_holds_bytes_stays_on() {
        let cluster = Cluster::of(toml::from_str("[server.nas-of-no-site]\nio = 8\n").unwrap(), Default::default());
        let names = ["localhost", "n1", "n2", "nas-of-no-site", "n3"].map(String::from);
        let holders = [("n2".to_string(), "data".to_string())].into();
        let kept = cluster.kept(&["n1".into()], &holders, &names);
        let why = |host: &str| kept.get(host).map(String::as_str);
        assert_eq!((why("localhost"), why("n3")), (Some(HERE), None));
        assert_eq!(why("n1"), Some("keep in [power]"));
        assert_eq!(why("n2"), Some("it stores files of the volume data"));
        assert_eq!(why("nas-of-no-site"), Some("[server.nas-of-no-site]"));
    }
}
