//! The request for a worker, and the end of its job.

/// The request for a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerRequest {
    /// The queue, or partition.
    pub partition: Option<String>,
    /// The account, or project, that pays.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The time limit, in Slurm's notation.
    pub time: Option<String>,
    /// The reservation.
    pub reservation: Option<String>,
    /// Processors of the worker: its slots times those of a task.
    pub cpus: u32,
    /// Memory of the worker, MiB; the site's default when `None`.
    pub memory_mb: Option<u64>,
    /// Graphics processors of the worker; 0 for none.
    pub gpus: u32,
    /// Slurm's licences of file servers that its tasks use.
    pub licenses: Option<String>,
    /// Further arguments, as given; they come last, and therefore take precedence.
    pub extra: Vec<String>,
    /// The job in which it becomes a step; `None` for a job of its own.
    pub within: Option<String>,
    /// Name of the run, which is part of its jobs' names.
    pub run: String,
}

/// Returns the name of a run's jobs. Each run has its own, so that its remaining jobs can be found.
pub fn job_name(run: &str) -> String {
    format!("homing-{run}")
}

/// The end of a worker, if the batch system caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchEnd {
    /// For people and the journal.
    pub text: String,
    /// Whether the tasks may be at fault (memory, time): their attempts count against `--retries`.
    pub counts: bool,
    /// Whether a request for another worker there makes sense.
    pub ask_again: bool,
}
