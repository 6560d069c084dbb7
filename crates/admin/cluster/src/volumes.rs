//! Reads the volumes of a cluster file, with the names of their hosts.

use crate::Cluster;
use homing_model::Failure;
use homing_setup::{ClusterSite, SiteVolume};
use homing_volume::{Spec, StorageFolder, VolumeChange, VolumeRecord, folder};

impl Cluster {
    /// Reads `n[1-4]:/brick` as hosts and path; `n1:/a,n2:/b` as several of these.
    pub fn places(&self, texts: &[String]) -> Result<Vec<StorageFolder>, Failure> {
        let mut places = Vec::new();
        for text in texts.iter().flat_map(|text| each(text)) {
            let wrong =
                || Failure::usage(format!("{text:?} is not a folder on hosts, HOSTS:/PATH")).hint("'n[1-4]:/brick'");
            let (hosts, path) = text.split_once(":/").ok_or_else(wrong)?;
            let hosts = self.hosts(Some(hosts))?;
            let path = format!("/{}", path.trim_end_matches('/'));
            places.extend(hosts.into_iter().map(|host| StorageFolder { host, path: path.clone() }));
        }
        Ok(places)
    }

    /// Returns the set-up that `homing up` makes, with its volumes.
    pub fn site_with_volumes(&self) -> Result<ClusterSite, Failure> {
        let mut site = self.site()?;
        site.volumes = self.volumes_of(&site)?;
        Ok(site)
    }

    /// Returns the volumes of a cluster file, with the names of their hosts.
    fn volumes_of(&self, site: &ClusterSite) -> Result<Vec<SiteVolume>, Failure> {
        let one = |(name, volume): (&String, &homing_setup::VolumeSection)| {
            let wrong = |why: String| Failure::usage(format!("the cluster file: [up.volume.{name}] {why}"));
            let places = self.places(std::slice::from_ref(&volume.hosts))?;
            let clients = match &volume.clients {
                Some(text) => self.hosts(Some(text))?,
                None => site.hosts.clone(),
            };
            let spec = Spec {
                name: name.clone(),
                kind: volume.kind,
                places,
                copies: volume.copies,
                arbiter: volume.arbiter,
                stripe: None,
                mount: volume.mount.clone().unwrap_or_else(|| format!("/{name}")),
                clients,
                master: volume.master.clone(),
                options: volume.options().map_err(wrong)?,
                export: volume.export.clone(),
            };
            Ok(SiteVolume { exists: is_made(name), spec, allowed: volume.allowed().map_err(wrong)? })
        };
        site.up.volume.iter().map(one).collect()
    }
}

/// Whether this machine has made the volume: it has a record, and no interrupted creation.
fn is_made(name: &str) -> bool {
    let record = VolumeRecord::load(&folder(), name).ok().flatten();
    record.is_some_and(|record| record.pending.is_none_or(|pending| pending.what != VolumeChange::Create))
}

/// Returns the parts of a list, each with a path of its own: a comma after a path ends it.
fn each(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split(',') {
        match parts.last_mut().filter(|last| !last.contains(":/")) {
            Some(last) => *last = format!("{last},{word}"),
            None => parts.push(word.into()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_may_have_a_path_of_its_own() {
        for (text, parts) in [
            ("n[1-4]:/brick", vec!["n[1-4]:/brick"]),
            ("n1:/a,n2:/b", vec!["n1:/a", "n2:/b"]),
            ("n[1,3],n5:/a,n[2,4]:/b", vec!["n[1,3],n5:/a", "n[2,4]:/b"]),
            ("n1", vec!["n1"]),
        ] {
            assert_eq!(each(text), parts, "{text}");
        }
    }
}
