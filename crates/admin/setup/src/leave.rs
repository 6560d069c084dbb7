//! Plans for a host that leaves a cluster.

use crate::{ClusterSite, SiteVolume};
use homing_model::NodeSet;
use homing_volume::{Spec, VolumeKind};

impl ClusterSite {
    /// Returns the service of this host that the others need, if there is one.
    pub fn needed(&self, host: &str) -> Option<String> {
        if self.up.clock.as_deref() == Some(host) {
            return Some(format!("it is the time server: name another host in [up] clock = {host:?}"));
        }
        if self.up.slurm.is_some() && self.controller() == Some(host) {
            return Some("it is Slurm's controller: name another host in [up.slurm] controller = \"...\"".into());
        }
        if self.hosts.len() == 1 {
            return Some("it is the last host: homing up --undo removes the whole set-up".into());
        }
        let serves = |volume: &&SiteVolume| {
            let spec = &volume.spec;
            let has_place = spec.places.iter().any(|place| place.host == host);
            spec.kind == VolumeKind::Nfs && has_place || spec.kind == VolumeKind::Moosefs && spec.master() == host
        };
        self.volumes.iter().find(serves).map(|volume| format!("it is the only server of volume {}", volume.spec.name))
    }

    /// Returns the lines of the cluster file that name the host in another way than as one of `hosts`, as they are
    /// without it: section, key and value. `rest`: the cluster without it.
    pub fn lines_without(&self, host: &str, rest: &ClusterSite) -> Vec<String> {
        let mut lines = Vec::new();
        for (old, new) in self.volumes.iter().zip(&rest.volumes) {
            let (name, spec) = (&new.spec.name, &new.spec);
            if old.spec.places.iter().any(|place| place.host == host) {
                lines.push(format!("[up.volume.{name}] hosts = \"{}\"", places_text(spec)));
            }
            let is_named = self.up.volume.get(name).is_some_and(|volume| volume.clients.is_some());
            if is_named && old.spec.clients.iter().any(|client| client == host) {
                let clients: NodeSet = spec.clients.iter().cloned().collect();
                lines.push(format!("[up.volume.{name}] clients = \"{clients}\""));
            }
            if old.spec.copies != spec.copies {
                lines.push(format!("[up.volume.{name}] copies = {}", spec.copies));
            }
        }
        lines
    }

    /// Returns the cluster without the host.
    pub fn without(&self, host: &str) -> ClusterSite {
        let mut rest = self.clone();
        rest.hosts.retain(|other| other != host);
        rest.leave_disks(host);
        for volume in &mut rest.volumes {
            volume.spec.places.retain(|place| place.host != host);
            volume.spec.clients.retain(|client| client != host);
        }
        rest
    }
}

/// Returns the places of a volume as the cluster file names them: hosts with equal folders together.
fn places_text(spec: &Spec) -> String {
    let mut paths: Vec<&str> = Vec::new();
    spec.places.iter().for_each(|place| {
        if !paths.contains(&place.path.as_str()) {
            paths.push(&place.path);
        }
    });
    let of = |path: &&str| {
        let hosts = spec.places.iter().filter(|place| place.path == **path).map(|place| place.host.clone());
        format!("{}:{path}", hosts.collect::<NodeSet>())
    };
    paths.iter().map(of).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_volume::StorageFolder;

    #[test]
    fn a_host_that_others_need_cannot_go_and_one_that_goes_is_nowhere_any_more() {
        let mut site = ClusterSite { hosts: ["n1", "n2"].map(String::from).into(), ..ClusterSite::default() };
        assert_eq!(site.needed("n2"), None);
        site.up.clock = Some("n2".into());
        assert!(site.needed("n2").is_some_and(|why| why.starts_with("it is the time server")));
        let rest = site.without("n2");
        assert_eq!(rest.hosts, ["n1"]);
        assert!(rest.needed("n1").is_some_and(|why| why.starts_with("it is the last host")));
    }

    #[test]
    fn a_volume_that_exists_is_not_judged_by_its_number_of_places_when_a_host_leaves() {
        let place = |host: &str, path: &str| StorageFolder { host: host.into(), path: path.into() };
        let hosts: Vec<String> = ["n1", "n2", "n3", "n4"].map(String::from).into();
        let spec = Spec {
            name: "data".into(),
            kind: VolumeKind::Gluster,
            places: vec![place("n1", "/a"), place("n2", "/a"), place("n3", "/a"), place("n4", "/b")],
            copies: 2,
            arbiter: false,
            stripe: None,
            mount: "/data".into(),
            clients: hosts.clone(),
            master: None,
            options: Default::default(),
            export: Default::default(),
        };
        let volume = |exists| SiteVolume { spec: spec.clone(), allowed: Vec::new(), exists };
        let site =
            |exists| ClusterSite { hosts: hosts.clone(), volumes: vec![volume(exists)], ..ClusterSite::default() };
        assert_eq!(site(true).without("n4").faults(), Vec::<String>::new());
        assert!(site(false).without("n4").faults()[0].contains("not 3"));
        let (made, mut rest) = (site(true), site(true).without("n3"));
        rest.volumes[0].spec.copies = 1;
        let lines = ["[up.volume.data] hosts = \"n[1-2]:/a,n4:/b\"", "[up.volume.data] copies = 1"];
        assert_eq!(made.lines_without("n3", &rest), lines);
    }
}
