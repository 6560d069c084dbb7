//! Hosts that have a volume's files without its mount: the server of an NFS
//! export, or a host whose automount has not been touched. Each is asked, and
//! believed when it finds a file that was just made there.

use crate::hosts::VolumeIx;
use homing_launch::wire::ToWorker;
use homing_model::{Mount, RawText};
use homing_place::HostIx;
use std::collections::HashMap;

/// A volume that hosts may have under another name.
#[derive(Clone, Debug)]
pub struct Served {
    /// As it is mounted on the coordinator.
    pub mount: Mount,
    /// What its source calls the mounted directory.
    pub path: RawText,
    /// A file just made below the mount point, by its path there.
    pub nonce: RawText,
    /// What it holds.
    pub secret: RawText,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Awaited,
    Yes,
    No(String),
}

/// What was asked, and what was answered.
#[derive(Debug, Default)]
pub(crate) struct Stands {
    served: Vec<(VolumeIx, Served)>,
    answers: HashMap<(HostIx, VolumeIx), Answer>,
}

impl Stands {
    pub fn add(&mut self, volume: VolumeIx, served: Served) {
        self.served.push((volume, served));
    }

    /// Volumes about which hosts can be asked.
    pub fn volumes(&self) -> Vec<VolumeIx> {
        self.served.iter().map(|(volume, _)| *volume).collect()
    }

    /// The question to a host, once.
    pub fn ask(&mut self, host: HostIx, volume: VolumeIx) -> Option<ToWorker> {
        let (_, served) = self.served.iter().find(|(known, _)| *known == volume)?;
        if self.answers.contains_key(&(host, volume)) {
            return None;
        }
        self.answers.insert((host, volume), Answer::Awaited);
        Some(ToWorker::Stand {
            ask: volume as u64,
            point: served.mount.point.clone(),
            path: served.path.clone(),
            nonce: served.nonce.clone(),
            secret: served.secret.clone(),
        })
    }

    /// False for an answer to nothing.
    pub fn answered(&mut self, host: HostIx, volume: VolumeIx, answer: Answer) -> bool {
        let known = self.answers.get_mut(&(host, volume)).filter(|a| **a == Answer::Awaited);
        known.map(|a| *a = answer).is_some()
    }

    pub fn of(&self, host: HostIx, volume: VolumeIx) -> Option<&Answer> {
        self.answers.get(&(host, volume))
    }

    /// Whether a host has still to answer for one of these volumes.
    pub fn awaited(&self, host: HostIx, volumes: &[VolumeIx]) -> bool {
        volumes.iter().any(|volume| self.of(host, *volume) == Some(&Answer::Awaited))
    }

    /// A host that is lost answers no more.
    pub fn lost(&mut self, host: HostIx) {
        self.answers.retain(|(h, _), _| *h != host);
    }

    /// Somebody may still turn out to have the files.
    pub fn pending(&self) -> bool {
        self.answers.values().any(|a| *a == Answer::Awaited)
    }
}
