//! Makes, grows and deletes the volumes of the cluster file, with the functions of `homing volume`.

use super::UpSession;
use crate::cluster::ClusterArgs;
use crate::cmd::volume::args::{One, VolumeOptions};
use crate::cmd::volume::change::change;
use crate::cmd::volume::{drive, planner};
use crate::consent::Consent;
use homing_model::{Failure, NodeSet};
use homing_setup::{AllSeen, HostFailures, SiteVolume, lacking};
use homing_volume::{Drive, Spec, StorageFolder, VolumeChange, VolumeRecord, folder};

fn record(name: &str) -> Result<Option<VolumeRecord>, Failure> {
    VolumeRecord::load(&folder(), name)
        .map_err(|e| Failure::system(format!("reading the record of volume {name}: {e}")))
}

fn message_with_hint(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!(" (try: {hint})")).unwrap_or_default();
    format!("{}{hint}", failure.message)
}

/// Returns the places of the cluster file that a volume does not have.
///
/// # Errors
/// The volume has more than the file, or differs from it.
pub fn lacking_places(old: &Spec, wanted: &Spec) -> Result<Vec<StorageFolder>, Failure> {
    let name = &wanted.name;
    old.lacks(wanted).map_err(|why| {
        Failure::usage(format!("volume {name} {why}, which the cluster file does not have"))
            .hint(format!("homing volume status {name}; homing volume drain-host {name} HOST"))
    })
}

/// Returns a note for each of these volumes that exists and is none of `own`.
fn others_stay<'n>(names: impl Iterator<Item = &'n str>, own: &[String], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let others = names.filter(|name| !own.iter().any(|known| known == name) && exists(name));
    others.map(|name| format!("volume {name} stays: homing volume delete {name} deletes it")).collect()
}

impl UpSession {
    pub fn way(&self) -> VolumeOptions {
        VolumeOptions {
            cluster: ClusterArgs::named(self.record.file.clone()),
            dry_run: self.args.dry_run,
            consent: Consent::GIVEN,
            sudo: self.args.sudo,
            quiet: self.args.quiet || self.args.json,
            timeout: self.args.timeout,
            silent: true,
        }
    }

    /// Returns the record of a volume, without the places of a host that leaves.
    fn known(&self, name: &str) -> Option<VolumeRecord> {
        let mut known = record(name).ok().flatten()?;
        known.spec.places.retain(|place| self.leaving.as_ref() != Some(&place.host));
        Some(known)
    }

    /// Returns the volumes that are not mounted where they should be, or that differ from the cluster file. Hosts
    /// that only mount a volume are left for later if they are silent or have failed.
    pub fn due_volumes(&self, seen: &AllSeen) -> Vec<SiteVolume> {
        let lacking: Vec<&str> = lacking(&self.site, seen).into_iter().map(|v| v.spec.name.as_str()).collect();
        let reached = |mut volume: SiteVolume| {
            let servers = volume.spec.servers();
            volume.spec.clients.retain(|host| servers.contains(host) || matches!(seen.get(host), Some(Ok(_))));
            volume
        };
        let is_due = |volume: &SiteVolume| {
            let is_whole = |known: VolumeRecord| known.pending.is_none() && known.spec.covers(&volume.spec);
            let known = self.known(&volume.spec.name);
            lacking.contains(&volume.spec.name.as_str()) || known.is_some_and(|known| !is_whole(known))
        };
        self.site.volumes.iter().cloned().map(reached).filter(is_due).collect()
    }

    /// Returns the refusals that would stop a volume once packages and daemons are there. They are known before.
    pub fn dangerous_volumes(&self, due: &[SiteVolume]) -> HostFailures {
        let mut failed = HostFailures::new();
        for volume in due.iter().filter(|volume| matches!(record(&volume.spec.name), Ok(None))) {
            let Ok(drive) = planner(&self.way()) else { continue };
            for (why, danger) in drive.allowing(volume.allowed.clone()).dangers_of_creation(&volume.spec) {
                let word = danger.flag().trim_start_matches("--");
                let allow = format!("allow = [\"{word}\"] in [up.volume.{}], if that is meant", volume.spec.name);
                // Equal refusals of several hosts become one line, so each goes under the host that it is about.
                let mut servers = volume.spec.servers();
                let about = servers.iter().position(|host| why.starts_with(&format!("{host}:"))).unwrap_or(0);
                failed.push((servers.swap_remove(about), format!("volumes: {why} (try: {allow})")));
            }
        }
        failed
    }

    /// Returns the volumes with places that the cluster file does not name. No command of a set-up removes these.
    pub fn other_volumes(&self, due: &[SiteVolume]) -> HostFailures {
        let of = |volume: &SiteVolume| {
            let known = self.known(&volume.spec.name).filter(|known| known.pending.is_none())?;
            let failure = lacking_places(&known.spec, &volume.spec).err()?;
            Some((volume.spec.servers().swap_remove(0), format!("volumes: {}", message_with_hint(&failure))))
        };
        due.iter().filter_map(of).collect()
    }

    /// Makes volumes, or adds to those that exist. Returns the failures, each with a host of its volume.
    pub fn make_due_volumes(&mut self, due: &[SiteVolume]) -> HostFailures {
        let mut failed = HostFailures::new();
        for volume in due {
            let spec = &volume.spec;
            let hosts: NodeSet = spec.servers().into_iter().collect();
            self.print_message(&format!("volumes on {hosts}: {} ({}) at {}", spec.name, spec.kind, spec.mount));
            if let Err(failure) = self.make_volume(volume) {
                failed.push((spec.servers().swap_remove(0), format!("volumes: {}", message_with_hint(&failure))));
            }
        }
        failed
    }

    fn make_volume(&mut self, volume: &SiteVolume) -> Result<(), Failure> {
        let (way, spec) = (self.way(), &volume.spec);
        let name = &spec.name;
        let Some(old) = record(name)? else {
            self.record.made_volume(name)?;
            return drive(&way, Some(name))?.allowing(volume.allowed.clone()).create(spec);
        };
        match old.pending.as_ref().map(|pending| &pending.what) {
            Some(VolumeChange::Create) => {
                return drive(&way, Some(name))?.allowing(volume.allowed.clone()).create(spec);
            }
            Some(_) => drop(change(&way, &One::named(name), Vec::new(), Drive::resume)?),
            None => {}
        }
        let places = lacking_places(&old.spec, spec)?;
        let allowed = || volume.allowed.clone();
        if !places.is_empty() {
            change(&way, &One::named(name), allowed(), |drive, record| drive.add_host(record, places))?;
        }
        let options = old.spec.lacking_options(spec);
        if !options.is_empty() {
            change(&way, &One::named(name), allowed(), |drive, record| drive.set_option(record, options))?;
        }
        if old.spec.export != spec.export {
            let export = spec.export.clone();
            change(&way, &One::named(name), allowed(), |drive, record| drive.set_export(record, export))?;
        }
        let clients = spec.clients.clone();
        change(&way, &One::named(name), allowed(), |drive, record| drive.mount(record, Some(clients)))?;
        Ok(())
    }

    /// Returns the volumes that `homing up` made and cannot delete, with the reason: a volume that holds files stays.
    pub fn volumes_staying(&self) -> HostFailures {
        let of = |name: &String| {
            let mut known = record(name).ok().flatten()?;
            let refused = planner(&self.way()).and_then(|drive| drive.delete(&mut known)).err()?;
            Some((name.clone(), message_with_hint(&refused)))
        };
        self.record.volumes.iter().filter_map(of).collect()
    }

    /// Returns a note for each volume of the cluster file that exists and that no set-up with this file has made.
    pub fn volumes_of_others(&self) -> Vec<String> {
        let names = self.site.volumes.iter().map(|volume| volume.spec.name.as_str());
        others_stay(names, &self.record.volumes, |name| matches!(record(name), Ok(Some(_))))
    }

    /// Deletes the volumes that `homing up` made. A volume that holds files stays.
    pub fn unmake_volumes(&mut self) -> HostFailures {
        let mut failed = HostFailures::new();
        for name in self.record.volumes.clone().into_iter().rev() {
            let known = record(&name).ok().flatten();
            let host = known.as_ref().and_then(|r| r.spec.servers().first().cloned()).unwrap_or_default();
            let gone = match known {
                None => Ok(0),
                Some(_) => {
                    self.print_message(&format!("undo: deleting volume {name}"));
                    change(&self.way(), &One::named(&name), Vec::new(), |drive, record| drive.delete(record))
                }
            };
            if let Err(failure) = gone.and_then(|_| self.record.unmade_volume(&name)) {
                failed.push((
                    host,
                    format!(
                        "volume {name} stays, and so does everything that was set up before it: {}",
                        message_with_hint(&failure)
                    ),
                ));
            }
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_volume::VolumeKind;

    #[test]
    fn an_undo_names_the_volumes_that_no_set_up_has_made() {
        let names = ["own", "other", "unmade"].into_iter();
        let notes = others_stay(names, &["own".to_string()], |name| name != "unmade");
        assert_eq!(notes, ["volume other stays: homing volume delete other deletes it"]);
    }

    #[test]
    fn a_place_that_the_cluster_file_lacks_is_found_before_the_first_change() {
        let spec = |hosts: &[&str]| Spec {
            name: "data".into(),
            kind: VolumeKind::Gluster,
            places: hosts.iter().map(|host| StorageFolder { host: host.to_string(), path: "/brick".into() }).collect(),
            copies: 1,
            arbiter: false,
            stripe: None,
            mount: "/data".into(),
            clients: Vec::new(),
            master: None,
            options: Default::default(),
            export: Default::default(),
        };
        let refused = lacking_places(&spec(&["n1", "n2", "n3"]), &spec(&["n1", "n2"])).unwrap_err();
        assert!(refused.message.contains("n3:/brick") && refused.hint.unwrap().contains("drain-host data"));
        let more = lacking_places(&spec(&["n1"]), &spec(&["n1", "n2"])).unwrap();
        assert_eq!(more.iter().map(|place| place.host.as_str()).collect::<Vec<_>>(), ["n2"]);
    }
}
