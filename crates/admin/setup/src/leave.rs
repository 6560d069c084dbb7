//! Plans for a host that leaves a cluster.

use crate::{Site, SiteVolume};
use homing_volume::Kind;

impl Site {
    /// Returns the service of this host that the others need, if there is one.
    pub fn needed(&self, host: &str) -> Option<String> {
        if self.up.clock.as_deref() == Some(host) {
            return Some(format!("it serves the time: [up] clock = {host:?}"));
        }
        if self.up.slurm.is_some() && self.controller() == Some(host) {
            return Some("it leads Slurm: [up.slurm] controller = \"...\" names another".into());
        }
        if self.hosts.len() == 1 {
            return Some("it is the last one: homing up --undo".into());
        }
        let serves = |volume: &&SiteVolume| {
            let spec = &volume.spec;
            let has_place = spec.places.iter().any(|place| place.host == host);
            spec.kind == Kind::Nfs && has_place || spec.kind == Kind::Moosefs && spec.master() == host
        };
        self.volumes.iter().find(serves).map(|volume| format!("volume {} is served by it alone", volume.spec.name))
    }

    /// Returns the cluster without the host.
    pub fn without(&self, host: &str) -> Site {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_others_need_cannot_go_and_one_that_goes_is_nowhere_any_more() {
        let mut site = Site { hosts: ["n1", "n2"].map(String::from).into(), ..Site::default() };
        assert_eq!(site.needed("n2"), None);
        site.up.clock = Some("n2".into());
        assert!(site.needed("n2").is_some_and(|why| why.starts_with("it serves the time")));
        let rest = site.without("n2");
        assert_eq!(rest.hosts, ["n1"]);
        assert!(rest.needed("n1").is_some_and(|why| why.starts_with("it is the last one")));
    }
}
