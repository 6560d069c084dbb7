//! One host of a build.

use crate::Candidate;
use crate::asked::RecipeRequest;
use crate::near::{HERE, RecipeInputs};
use homing_launch::{HostPlan, Via};
use homing_model::{HostFacts, HostSample};
use std::path::Path;

/// A host of the build, as the coordinator knows it.
#[derive(Default)]
pub struct BuildHost {
    pub name: String,
    /// Whether make runs on it.
    pub is_here: bool,
    pub facts: HostFacts,
    /// Number of its slots; 0 before it was up and after it is lost.
    pub slots: u32,
    pub used: Vec<bool>,
    pub sample: Option<HostSample>,
    pub busy: f64,
}

impl BuildHost {
    /// Makes a host that is not connected yet.
    pub fn new(plan: &HostPlan) -> BuildHost {
        BuildHost { name: plan.name.clone(), is_here: plan.via == Via::Local, ..BuildHost::default() }
    }

    /// Returns its properties for placement. `fences`: files of the folder that it has to look at again.
    pub fn candidate(&self, at: usize, request: &RecipeRequest, fences: usize, same_folder: bool) -> Candidate {
        let local = self.holds(&request.inputs);
        let known: u64 = request.inputs.on.values().sum();
        let sample = self.sample.as_ref();
        Candidate {
            host: at,
            cores: f64::from(self.facts.cores.max(1)),
            running: self.running(),
            busy: self.busy,
            memory: sample.and_then(|s| s.mem_available),
            io_pressure: sample.and_then(|s| s.io_some_avg10).unwrap_or(0.0) / 100.0,
            remote_bytes: if known == 0 { 0 } else { request.inputs.bytes.saturating_sub(local) },
            fences,
            same_folder,
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        [&self.name, &self.facts.hostname].into_iter().chain(&self.facts.aliases).map(String::as_str)
    }

    /// Whether this is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        homing_model::hostname::is_called(self.names(), name)
    }

    /// Returns the bytes of these inputs that it holds.
    pub fn holds(&self, inputs: &RecipeInputs) -> u64 {
        inputs.on.iter().filter(|(holder, _)| self.is_called(holder)).map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }

    /// Returns the number of recipes that run there.
    pub fn running(&self) -> u32 {
        self.used.iter().filter(|u| **u).count() as u32
    }

    /// Returns the number in the log of the kernel through which it sees the files.
    pub fn observer(&self, at: usize) -> usize {
        if self.is_here { HERE } else { at + 1 }
    }

    /// Whether it has the recipe's folder, or may turn out to have it.
    pub fn sees(&self, request: &RecipeRequest, assumed: bool) -> bool {
        let unknown = self.slots == 0;
        let shows = |mount: &Path| unknown || self.facts.mounts.iter().any(|m| m.point.as_path() == mount);
        self.is_here || assumed || request.mount.as_deref().is_some_and(shows)
    }

    /// Stores a sample. Two samples show the processors that others keep busy.
    pub fn take_sample(&mut self, sample: HostSample) {
        let busy = |last: &HostSample| {
            let wall = (sample.at_ns - last.at_ns) as f64 / 1e3;
            let total = sample.cpu_total_us?.checked_sub(last.cpu_total_us?)? as f64;
            let idle = sample.cpu_idle_us?.checked_sub(last.cpu_idle_us?)? as f64;
            (wall > 0.0).then(|| (total - idle).max(0.0) / wall)
        };
        let others = self.sample.as_ref().and_then(busy).map(|b| (b - f64::from(self.running())).max(0.0));
        self.busy = others.unwrap_or(self.busy).min(f64::from(self.facts.cores.max(1)));
        self.sample = Some(sample);
    }
}
