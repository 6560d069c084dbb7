//! A host as a batch system lists it.

/// A node of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchNode {
    /// The batch system's name for it.
    pub name: String,
    /// Its address and host name, by which a file system may know it.
    pub aliases: Vec<String>,
    /// State in the words of `sinfo`, e.g. `mixed`, `down*`.
    pub state: String,
    /// Processors that no job uses.
    pub idle_cpus: u32,
    /// All processors.
    pub cpus: u32,
    /// Memory, MiB.
    pub memory_mb: u64,
    /// Graphics processors, whether a job has them or not.
    pub gpus: u32,
    /// The reason why it is down or drained; otherwise empty.
    pub reason: String,
}

impl BatchNode {
    /// Whether a job may come to run there without an administrator's help. A reservation's nodes count if the job is
    /// to run in it.
    pub fn is_usable(&self, in_reservation: bool) -> bool {
        let flags = ['*', '~', '#', '!', '%', '$', '@', '^', '-', '+'];
        let base = self.state.trim_end_matches(flags);
        let marks = &self.state[base.len()..];
        // Not responding, maintenance, powering down, reboot; `~` and `#` wake up, `-` is planned for another job.
        let barred = marks.contains(['*', '!', '%', '@', '^']) || (marks.contains('$') && !in_reservation);
        let fits = ["idle", "mixed", "allocated", "completing", "planned", "powered_down", "powering_up"];
        let reserved = in_reservation && ["maint", "reserved"].contains(&base);
        !barred && (fits.contains(&base) || reserved)
    }

    /// Returns why a worker there should get no new work; `None` if it may.
    pub fn is_wanted_empty(&self) -> Option<String> {
        let leaves = ["drain", "fail", "power_down", "powering_down"].iter().any(|s| self.state.starts_with(s));
        let why = if self.reason.is_empty() { String::new() } else { format!(" ({})", self.reason) };
        leaves.then(|| format!("its state in Slurm is {}{why}", self.state))
    }

    /// Whether a file system means this node by `host`.
    pub fn is_called(&self, host: &str) -> bool {
        let names = std::iter::once(&self.name).chain(&self.aliases).map(String::as_str);
        homing_model::hostname::is_called(names, host)
    }
}
