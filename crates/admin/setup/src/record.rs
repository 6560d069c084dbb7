//! The record of a set-up on this machine: the hosts that took part, and whether it is complete. The changes
//! themselves are in the journals of the hosts.

use homing_model::Failure;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The record of one cluster file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SetupRecord {
    /// The cluster file, if one was named.
    pub file: Option<PathBuf>,
    /// All hosts that ever took part.
    pub hosts: Vec<String>,
    /// The areas of `--only`, as the user typed them.
    pub only: Vec<String>,
    /// Whether `--sudo` was given.
    pub sudo: bool,
    /// Volumes that were made for it.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// Whether it is incomplete.
    pub open: bool,
    #[serde(skip)]
    path: PathBuf,
}

fn folder() -> PathBuf {
    homing_os::folder::cluster_state().join("up")
}

/// Returns the path of the record of a cluster file; if none is named, of that of these hosts.
fn path_of(file: Option<&Path>, hosts: &[String]) -> PathBuf {
    let key = file.map_or_else(|| hosts.join(","), |file| file.display().to_string());
    let name: String = Sha256::digest(&key).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    folder().join(format!("{name}.json"))
}

fn owner_of(machine: &str, name: &str) -> String {
    format!("{machine}:{name}")
}

fn unread(path: &std::path::Path, error: impl std::fmt::Display) -> Failure {
    Failure::system(format!("reading the record {}: {error}", path.display()))
}

fn read(path: PathBuf) -> Result<Option<SetupRecord>, Failure> {
    let bytes = match std::fs::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|e| unread(&path, e))?,
    };
    let record: SetupRecord = serde_json::from_slice(&bytes).map_err(|e| unread(&path, e))?;
    Ok(Some(SetupRecord { path, ..record }))
}

impl SetupRecord {
    /// Returns the record of a cluster file; if none is named, that of these hosts.
    pub fn of(file: Option<PathBuf>, hosts: &[String]) -> Result<SetupRecord, Failure> {
        let path = path_of(file.as_deref(), hosts);
        Ok(read(path.clone())?.unwrap_or_else(|| SetupRecord { file, path, ..SetupRecord::default() }))
    }

    /// Returns the record that is incomplete. If there are several, it returns an error: the newest could only be
    /// chosen by a clock.
    pub fn interrupted() -> Result<SetupRecord, Failure> {
        let entries = std::fs::read_dir(folder()).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
        paths.sort();
        let mut open = Vec::new();
        for path in paths {
            open.extend(read(path)?.filter(|record| record.open));
        }
        match open.len() {
            0 => Err(Failure::usage("no set-up was interrupted").hint("homing up CLUSTER.toml")),
            1 => Ok(open.remove(0)),
            several => {
                let names: Vec<String> = open.iter().map(SetupRecord::name).collect();
                let failure = Failure::usage(format!("{several} set-ups were interrupted: {}", names.join("; ")));
                Err(failure.hint("continue one of them: homing up CLUSTER.toml, with its file"))
            }
        }
    }

    /// Returns the name of this set-up in the journals of hosts: this machine, and the cluster file, or else the hosts.
    pub fn owner(&self) -> String {
        owner_of(&homing_os::names::own_name(), &self.name())
    }

    /// Whether this set-up may undo a change of `owner`. It may undo its own, and those of a cluster file of this
    /// machine that is gone: no set-up could undo them otherwise.
    pub fn may_undo(&self, owner: &str) -> bool {
        let here = homing_os::names::own_name();
        let file = owner.strip_prefix(&owner_of(&here, "")).map(Path::new).filter(|file| file.is_absolute());
        owner == self.owner() || file.is_some_and(|file| !file.exists())
    }

    /// Returns the cluster file, or else the hosts.
    fn name(&self) -> String {
        self.file.as_ref().map_or_else(|| self.hosts.join(","), |file| file.display().to_string())
    }

    /// Adds these hosts, before anything is done on them.
    pub fn begin(&mut self, hosts: &[String], only: &[String], sudo: bool) -> Result<(), Failure> {
        self.hosts.extend(hosts.to_vec());
        self.hosts.sort();
        self.hosts.dedup();
        (self.only, self.sudo, self.open) = (only.to_vec(), sudo, true);
        self.save()
    }

    /// Removes a host that no longer takes part. If no cluster file is named, the record moves to the name of the
    /// hosts that are left: the next call looks for it there.
    pub fn leave(&mut self, host: &str, rest: &[String]) -> Result<(), Failure> {
        self.hosts.retain(|known| known != host);
        let old = std::mem::replace(&mut self.path, path_of(self.file.as_deref(), rest));
        self.save()?;
        if old != self.path {
            SetupRecord { path: old, ..SetupRecord::default() }.remove()?;
        }
        Ok(())
    }

    /// Adds a volume that is about to be made.
    pub fn made_volume(&mut self, name: &str) -> Result<(), Failure> {
        self.volumes.push(name.into());
        self.save()
    }

    /// Removes a volume that no longer exists.
    pub fn unmade_volume(&mut self, name: &str) -> Result<(), Failure> {
        self.volumes.retain(|known| known != name);
        self.save()
    }

    /// Records that it is complete.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.open = false;
        self.save()
    }

    /// Removes the record: nothing of the set-up is left on any host.
    pub fn remove(&self) -> Result<(), Failure> {
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::system(format!("removing the record {}: {e}", self.path.display())))
            }
            _ => Ok(()),
        }
    }

    fn save(&self) -> Result<(), Failure> {
        let write = || -> std::io::Result<()> {
            homing_os::folder::make_folder(&folder(), 0o777)?;
            homing_os::folder::write_whole(&self.path, &serde_json::to_vec_pretty(self)?, None)
        };
        write().map_err(|e| Failure::system(format!("writing the record {}: {e}", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_undoes_its_own_changes_and_those_of_a_file_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| SetupRecord { file: Some(folder.path().join(name)), ..SetupRecord::default() };
        std::fs::write(folder.path().join("b.toml"), "").unwrap();
        let (own, other, gone) = (of("a.toml"), of("b.toml"), of("gone.toml"));
        let unnamed = SetupRecord { hosts: vec!["n1".into(), "n2".into()], ..SetupRecord::default() };
        let may = [&own, &other, &gone, &unnamed].map(|owner| own.may_undo(&owner.owner()));
        assert_eq!(may, [true, false, true, false]);
        assert!(!own.may_undo("another-machine:/nowhere/gone.toml"), "its cluster file may be there");
        assert!(unnamed.owner().ends_with(":n1,n2") && unnamed.may_undo(&unnamed.owner()));
    }
}
