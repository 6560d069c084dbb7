//! Hosts that have a volume's files without its mount: the server of an NFS export, or a host whose automount has not
//! been touched. Each host receives a question. It proves that it has the files by the content of a file that was
//! just made there.

use crate::hosts::VolumeIx;
use homing_launch::wire::ToWorker;
use homing_model::{Mount, RawText};
use homing_place::HostIx;
use std::collections::HashMap;

/// A volume that hosts may have under another name.
#[derive(Clone, Debug)]
pub struct VolumeAlias {
    /// The mount on the coordinator.
    pub mount: Mount,
    /// The path of the mounted directory at its source.
    pub path: RawText,
    /// The path of a file just made, below the mount point.
    pub nonce: RawText,
    /// The content of the file.
    pub secret: RawText,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeAnswer {
    Awaited,
    Yes,
    No(String),
}

/// The questions to hosts, and their answers.
#[derive(Debug, Default)]
pub(crate) struct VolumeAccess {
    served: Vec<(VolumeIx, VolumeAlias)>,
    answers: HashMap<(HostIx, VolumeIx), VolumeAnswer>,
}

impl VolumeAccess {
    pub fn add(&mut self, volume: VolumeIx, served: VolumeAlias) {
        self.served.push((volume, served));
    }

    /// Returns the volumes about which hosts can be questioned.
    pub fn volumes(&self) -> Vec<VolumeIx> {
        self.served.iter().map(|(volume, _)| *volume).collect()
    }

    /// Returns the question to a host, once.
    pub fn query_once(&mut self, host: HostIx, volume: VolumeIx) -> Option<ToWorker> {
        let (_, served) = self.served.iter().find(|(known, _)| *known == volume)?;
        if self.answers.contains_key(&(host, volume)) {
            return None;
        }
        self.answers.insert((host, volume), VolumeAnswer::Awaited);
        Some(ToWorker::HasVolume {
            ask: volume as u64,
            point: served.mount.point.clone(),
            path: served.path.clone(),
            nonce: served.nonce.clone(),
            secret: served.secret.clone(),
        })
    }

    /// Records an answer. Returns false if no question was open.
    pub fn answered(&mut self, host: HostIx, volume: VolumeIx, answer: VolumeAnswer) -> bool {
        let known = self.answers.get_mut(&(host, volume)).filter(|a| **a == VolumeAnswer::Awaited);
        known.map(|a| *a = answer).is_some()
    }

    pub fn of(&self, host: HostIx, volume: VolumeIx) -> Option<&VolumeAnswer> {
        self.answers.get(&(host, volume))
    }

    /// Whether a host has still to answer for one of these volumes.
    pub fn awaited(&self, host: HostIx, volumes: &[VolumeIx]) -> bool {
        volumes.iter().any(|volume| self.of(host, *volume) == Some(&VolumeAnswer::Awaited))
    }

    /// Drops the answers of a lost host.
    pub fn lost(&mut self, host: HostIx) {
        self.answers.retain(|(h, _), _| *h != host);
    }

    /// Whether a host may still prove to have the files.
    pub fn pending(&self) -> bool {
        self.answers.values().any(|a| *a == VolumeAnswer::Awaited)
    }
}
