//! What this machine keeps of a set-up: which hosts had a part in it, and whether it came to its end. What was changed
//! is in the journals of the hosts.

use homing_model::Failure;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// One a cluster file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The cluster file, where one was named.
    pub file: Option<PathBuf>,
    /// All hosts that ever had a part.
    pub hosts: Vec<String>,
    /// As it was typed.
    pub only: Vec<String>,
    /// As it was typed.
    pub sudo: bool,
    /// Volumes that were made for it.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// It has not come to its end.
    pub open: bool,
    #[serde(skip)]
    path: PathBuf,
}

fn folder() -> PathBuf {
    homing_os::folder::cluster_state().join("up")
}

fn unread(path: &std::path::Path, error: impl std::fmt::Display) -> Failure {
    Failure::system(format!("reading the record {}: {error}", path.display()))
}

fn read(path: PathBuf) -> Result<Option<Record>, Failure> {
    let bytes = match std::fs::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|e| unread(&path, e))?,
    };
    let record: Record = serde_json::from_slice(&bytes).map_err(|e| unread(&path, e))?;
    Ok(Some(Record { path, ..record }))
}

impl Record {
    /// That of a cluster file; where none is named, of these hosts.
    pub fn of(file: Option<PathBuf>, hosts: &[String]) -> Result<Record, Failure> {
        let key = file.as_ref().map_or_else(|| hosts.join(","), |file| file.display().to_string());
        let name: String = Sha256::digest(&key).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let path = folder().join(format!("{name}.json"));
        Ok(read(path.clone())?.unwrap_or_else(|| Record { file, path, ..Record::default() }))
    }

    /// The one that has not come to its end. Of several none is taken: which is the last one would be a clock's word.
    pub fn interrupted() -> Result<Record, Failure> {
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
                let names: Vec<String> = open.iter().map(Record::name).collect();
                let failure = Failure::usage(format!("{several} set-ups were interrupted: {}", names.join("; ")));
                Err(failure.hint("homing up CLUSTER.toml, with the file of one of them"))
            }
        }
    }

    /// The cluster file, or else the hosts.
    fn name(&self) -> String {
        self.file.as_ref().map_or_else(|| self.hosts.join(","), |file| file.display().to_string())
    }

    /// Takes these hosts in, before anything is done on them.
    pub fn begin(&mut self, hosts: &[String], only: &[String], sudo: bool) -> Result<(), Failure> {
        self.hosts.extend(hosts.to_vec());
        self.hosts.sort();
        self.hosts.dedup();
        (self.only, self.sudo, self.open) = (only.to_vec(), sudo, true);
        self.save()
    }

    /// A host that has no part any more.
    pub fn leave(&mut self, host: &str) -> Result<(), Failure> {
        self.hosts.retain(|known| known != host);
        self.save()
    }

    /// A volume that is about to be made.
    pub fn made_volume(&mut self, name: &str) -> Result<(), Failure> {
        self.volumes.push(name.into());
        self.save()
    }

    /// It is no more.
    pub fn unmade_volume(&mut self, name: &str) -> Result<(), Failure> {
        self.volumes.retain(|known| known != name);
        self.save()
    }

    /// It came to its end.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.open = false;
        self.save()
    }

    /// Nothing of it is left on any host.
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
