//! The effects of a set-up on hosts, on this machine and on the screen.

use crate::SiteVolume;
use crate::site::AllSeen;
use homing_model::Failure;
use homing_steps::{ChangePhase, FactQuery, Lost};
use std::collections::BTreeMap;

/// Hosts with a failure, and the reason. A host may have several.
pub type HostFailures = Vec<(String, String)>;

/// The effects of a set-up.
pub trait SetupEffects {
    /// Queries hosts; returns a reason for each that does not answer.
    fn look(&mut self, question: &FactQuery, hosts: &[String]) -> AllSeen;

    /// Confirms or undoes the guarded changes on these hosts. Returns the hosts where neither worked, with the reason.
    fn end_guards(&mut self, hosts: &[String]) -> BTreeMap<String, String>;

    /// Shows a summary, and prompts for consent once per set-up.
    fn request_consent(&mut self, summary: &str) -> Result<(), Failure>;

    /// Records on this machine that the set-up is about to change hosts.
    fn begin(&mut self) -> Result<(), Failure>;

    /// Carries out a phase on the hosts that still take part. Returns the number of its steps that are done.
    fn carry_out(&mut self, phase: ChangePhase, lost: &mut Lost) -> usize;

    /// Returns the hosts for which packages of these phases cannot be had; none if one of all hosts can fetch them.
    fn cut_off(&self, phases: &[ChangePhase]) -> HostFailures;

    /// Returns the volumes that differ from the cluster file.
    fn volumes_due(&self, seen: &AllSeen) -> Vec<SiteVolume>;

    /// Returns the refusals that would stop these volumes. `disks_first`: a disk is mounted before they are made.
    fn volumes_refused(&self, due: &[SiteVolume], disks_first: bool) -> HostFailures;

    /// Makes volumes, or adds to those that exist. Returns the failures, each with a host of its volume.
    fn make_volumes(&mut self, due: &[SiteVolume]) -> HostFailures;
}
