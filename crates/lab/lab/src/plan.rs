//! Computes names, addresses and file texts of a lab from its number alone. Pure, so that `down` after a crash
//! computes the same names that `up` used.

use crate::error::{LabError, Result};
use crate::spec::{HostSystem, LabSpec};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The folder of all labs' state, one folder each.
pub const LABS: &str = "/var/lib/homing/labs";

/// The path of a guest's first program in the guest.
pub(crate) const BOOTED: &str = "/etc/homing-lab-init";

/// A lab: its specification, and the number that keeps it apart from others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabPlan {
    /// The specification.
    pub spec: LabSpec,
    /// Third byte of the subnet; part of every interface name.
    pub number: u8,
}

/// A line of ssh's configuration. The usual key exchange, sntrup761x25519, takes a second of an emulated processor at
/// each end.
pub(crate) const QUICK_KEYS: &str = "  KexAlgorithms ^curve25519-sha256\n";

impl LabPlan {
    /// Returns the state folder of the lab of this name.
    pub fn dir_of(name: &str) -> PathBuf {
        PathBuf::from(LABS).join(name)
    }

    /// Returns the state folder.
    pub fn dir(&self) -> PathBuf {
        Self::dir_of(&self.spec.name)
    }

    /// Returns all hosts, n1 first.
    pub fn hosts(&self) -> Vec<HostPlan> {
        (1..=self.spec.hosts).map(|i| HostPlan { lab: self.clone(), index: i }).collect()
    }

    /// Returns the host of this name.
    pub fn host(&self, name: &str) -> Option<HostPlan> {
        self.hosts().into_iter().find(|h| h.name() == name)
    }

    /// Returns the host of this name, or an error.
    pub(crate) fn known_host(&self, name: &str) -> Result<HostPlan> {
        self.host(name).ok_or_else(|| self.no_host(name))
    }

    /// Returns the error that no such host is there, or runs.
    pub(crate) fn no_host(&self, name: &str) -> LabError {
        LabError::NoHost { lab: self.spec.name.clone(), host: name.into(), known: self.names() }
    }

    /// Returns the name of the bridge.
    pub fn bridge(&self) -> String {
        format!("hl{}", self.number)
    }

    /// Returns the machine's own address on the bridge.
    pub fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.number, 254)
    }

    /// Returns the folded host names for a message.
    pub fn names(&self) -> String {
        if self.spec.hosts == 1 { "n1".into() } else { format!("n[1-{}]", self.spec.hosts) }
    }

    /// Returns the `ssh -F` file for callers on the machine.
    pub fn ssh_config(&self) -> PathBuf {
        self.dir().join("ssh_config")
    }

    /// Returns the path of the `cluster.toml` that `--lab` selects.
    pub fn cluster_file(&self) -> PathBuf {
        self.dir().join("cluster.toml")
    }

    /// Returns the text of `cluster.toml`.
    pub fn cluster_text(&self) -> String {
        format!("hosts = \"{}\"\n{}{}", self.names(), self.addresses_text(), self.switches_text())
    }

    /// Returns the text of `ssh_config`. It names hosts by address, since the machine's resolver does not know them.
    pub fn ssh_config_text(&self) -> String {
        let dir = self.dir();
        let mut text = String::new();
        for h in self.hosts() {
            text += &format!("Host {}\n  HostName {}\n  HostKeyAlias {}\n", h.name(), h.address(), h.name());
        }
        text + &format!(
            "Host *\n  User root\n  IdentityFile {d}/id_ed25519\n  IdentitiesOnly yes\n  UserKnownHostsFile {d}/known_hosts\n  \
             GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n{QUICK_KEYS}",
            d = dir.display()
        )
    }

    /// Returns one line per host: every name and address by which it is reached, with its key.
    pub fn known_hosts_text<'k>(&self, public_keys: impl Iterator<Item = &'k str>) -> String {
        let key = |text: &str| text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let names = |host: &HostPlan| {
            let further = host.further_links().into_iter().map(|link| format!(",{},{}", link.host_name, link.address));
            format!("{},{}{}", host.name(), host.address(), further.collect::<String>())
        };
        let line = |(host, text): (&HostPlan, &str)| format!("{} {}\n", names(host), key(text));
        self.hosts().iter().zip(public_keys).map(line).collect()
    }

    /// Returns `/etc/hosts` of every host. A host's own name means its address on the link too: file systems publish
    /// that name to their peers.
    pub fn etc_hosts_text(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
        for h in self.hosts() {
            text += &format!("{} {}\n", h.address(), h.name());
            for link in h.further_links() {
                text += &format!("{} {}\n", link.address, link.host_name);
            }
        }
        text
    }
}

/// One host of a plan.
#[derive(Clone, Debug)]
pub struct HostPlan {
    pub(crate) lab: LabPlan,
    pub(crate) index: u32,
}

impl HostPlan {
    /// Returns `n1`, `n2`, ...
    pub fn name(&self) -> String {
        format!("n{}", self.index)
    }

    /// Whether its /bin/sh is bash, as on Red Hat's family, SUSE and Arch. With several hosts it is bash on the last.
    /// A bash runs more of a text than a dash does. Guests start programs too slowly for it.
    pub(crate) fn has_bash(&self) -> bool {
        self.lab.spec.hosts > 1 && self.index == self.lab.spec.hosts && !self.is_guest()
    }

    /// Returns its system.
    pub fn system(&self) -> &HostSystem {
        let all = &self.lab.spec.systems;
        all.get((self.index as usize - 1) % all.len().max(1)).unwrap_or(&HostSystem::This)
    }

    /// Returns the address on the lab's bridge.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.lab.number, self.index as u8)
    }

    /// Returns the name for systemd-nspawn; unique on the machine.
    pub fn machine(&self) -> String {
        format!("hl{}-n{}", self.lab.number, self.index)
    }

    /// Returns the name of the machine's end of the host's link, as systemd-nspawn makes it (at most 15 bytes).
    pub fn veth(&self) -> String {
        format!("vb-{}", self.machine())
    }

    /// Returns the name of the host's control groups.
    pub fn cgroup(&self) -> String {
        format!("homing-lab/{}/{}", self.lab.spec.name, self.name())
    }

    /// Returns the host's folder in the state folder.
    pub fn dir(&self) -> PathBuf {
        self.lab.dir().join(self.name())
    }

    /// Returns the host's root, an overlay.
    pub fn root(&self) -> PathBuf {
        self.dir().join("root")
    }

    /// Returns the folder where the machine mounts the host's `/scratch`.
    pub fn scratch(&self) -> PathBuf {
        self.dir().join("scratch")
    }

    /// Returns the file that serves as the host's spare disk.
    pub fn spare(&self) -> PathBuf {
        self.dir().join("spare.img")
    }

    /// Returns the file of the host's console output.
    pub fn console(&self) -> PathBuf {
        self.dir().join("console.log")
    }

    /// Whether it is a guest with a kernel of its own.
    pub fn is_guest(&self) -> bool {
        self.lab.spec.nfs.is_some() || self.mounts_by_its_kernel()
    }

    /// Whether it is the guest beside the hosts of a Ceph.
    pub(crate) fn mounts_by_its_kernel(&self) -> bool {
        self.lab.spec.has_kernel_client() && self.index == self.lab.spec.hosts
    }

    /// Returns the program that the host runs in.
    pub(crate) fn program(&self) -> &'static str {
        if self.is_guest() { self.lab.spec.guests.program() } else { "systemd-nspawn" }
    }

    /// Returns the last three bytes of a guest's link address.
    pub fn mac_end(&self) -> String {
        format!("4d:{:02x}:{:02x}", self.lab.number, self.index)
    }

    /// Returns the `ssh -F` file of its lab.
    pub fn ssh_config(&self) -> PathBuf {
        self.lab.ssh_config()
    }

    /// Returns the argument by which the host's nspawn is found again in `/proc`.
    pub fn root_argument(&self) -> String {
        format!("--directory={}", self.root().display())
    }

    /// Returns the arguments of systemd-nspawn.
    pub fn nspawn_arguments(&self) -> Vec<String> {
        let mut words = vec![
            "--register=no".into(),
            "--keep-unit".into(),
            "--quiet".into(),
            format!("--machine={}", self.machine()),
            format!("--hostname={}", self.name()),
            self.root_argument(),
            format!("--network-bridge={}", self.lab.bridge_of(self)),
            "--capability=all".into(),
            // The kernel has one clock and one time zone: a host that sets them sets those of the machine.
            "--drop-capability=CAP_SYS_TIME".into(),
            "--resolv-conf=off".into(),
            "--timezone=off".into(),
            "--link-journal=no".into(),
            "--bind=/dev/fuse".into(),
            format!("--bind={}:/scratch", self.scratch().display()),
            "--console=pipe".into(),
        ];
        let further = self.further_links().into_iter();
        words.extend(further.map(|link| format!("--network-veth-extra={}:{}", link.veth, link.interface)));
        if *self.system() != HostSystem::This {
            // Homing has the same path in all hosts.
            let folder = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_path_buf()));
            words.extend(folder.map(|folder| format!("--bind-ro={}", folder.display())));
        }
        words.push("--boot".into());
        words
    }

    /// Returns the `.network` file for `host0`.
    pub fn network_text(&self) -> String {
        format!(
            "[Match]\nName=host0\n\n[Network]\nAddress={}/24\nGateway={}\nDHCP=no\nLinkLocalAddressing=no\nIPv6AcceptRA=no\nLLDP=no\n",
            self.address(),
            self.lab.gateway()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> LabPlan {
        LabPlan { spec: LabSpec { name: "t".into(), hosts: 12, ..LabSpec::default() }, number: 254 }
    }

    /// `timedatectl set-timezone` in a host moved the clock of the machine by an hour.
    #[test]
    fn a_host_cannot_set_the_clock_of_the_machine() {
        let words = plan().hosts()[0].nspawn_arguments();
        let at = |word: &str| words.iter().position(|have| have == word).unwrap();
        assert!(at("--capability=all") < at("--drop-capability=CAP_SYS_TIME"));
    }

    #[test]
    fn names_fit_the_kernel_and_do_not_collide_between_labs() {
        let other = LabPlan { number: 25, ..plan() };
        for (a, b) in plan().hosts().iter().zip(other.hosts()) {
            assert!(a.veth().len() <= 15, "{}", a.veth());
            assert_ne!(a.veth(), b.veth());
            assert_ne!(a.address(), b.address());
        }
        let widest = HostPlan { lab: plan(), index: crate::spec::MAX_HOSTS };
        assert!(widest.veth().len() <= 15, "{}", widest.veth());
    }

    #[test]
    fn every_host_is_in_etc_hosts_by_its_link_address() {
        let text = plan().etc_hosts_text();
        assert!(text.contains("10.77.254.12 n12\n"));
        assert!(!text.contains("127.0.1.1"));
    }

    #[test]
    fn files() {
        let p = plan();
        let h = p.host("n3").expect("n3");
        assert!(h.network_text().contains("Address=10.77.254.3/24"));
        assert!(p.ssh_config_text().contains("Host n3\n  HostName 10.77.254.3\n"));
        let keys = ["ssh-ed25519 A root@vm", "ssh-ed25519 B root@vm", "ssh-ed25519 C root@vm"];
        assert!(p.known_hosts_text(keys.into_iter()).contains("n3,10.77.254.3 ssh-ed25519 C\n"));
        assert_eq!(p.cluster_text(), "hosts = \"n[1-12]\"\n");
        assert!(p.host("n13").is_none() && p.host("").is_none());
        assert!(h.nspawn_arguments().contains(&"--directory=/var/lib/homing/labs/t/n3/root".to_string()));
    }
}
