//! `homing sub`, `jobs`, `kill`, `peek`, `wait`: detached work.

pub mod act;
mod attached;
mod detail;
pub mod far;
pub mod jobs;
pub mod near;
pub mod sub;

use crate::cluster::Cluster;
use homing_model::Failure;
use homing_queue::{Engine, Job, JobSpool};
use std::ffi::OsString;
use std::path::Path;

/// The engine that keeps the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    /// This machine, without a server
    Local,
    /// Slurm
    Slurm,
}

/// The option that all of these commands have.
#[derive(clap::Args, Clone)]
pub struct EngineArgs {
    /// Queue of the jobs (default: Slurm where it is configured, else this machine)
    #[arg(long, env = "HOMING_ENGINE", value_name = "ENGINE", hide_env_values = true)]
    pub engine: Option<EngineName>,
}

impl EngineArgs {
    /// Opens the engine that the user chose, or else the default engine of this machine.
    pub fn open(&self) -> Result<Box<dyn Engine>, Failure> {
        match self.engine.unwrap_or_else(usual) {
            EngineName::Local => local(),
            EngineName::Slurm => Ok(Box::new(homing_queue::Slurm)),
        }
    }

    /// Returns whether Slurm keeps the jobs.
    pub fn is_slurm(&self) -> bool {
        matches!(self.engine.unwrap_or_else(usual), EngineName::Slurm)
    }
}

/// Returns Slurm if it is configured, even if its controller does not answer: jobs must not go elsewhere then.
fn usual() -> EngineName {
    if homing_scheduler::slurm::ask::is_configured() && homing_os::process::is_on_path("sbatch") {
        EngineName::Slurm
    } else {
        EngineName::Local
    }
}

/// Refuses a queue of Slurm for which cluster.toml has limits: those limits would seem to be in force.
pub fn slurm_keeps(queue: &str) -> Result<(), Failure> {
    let cluster = Cluster::of_queue()?;
    let Some(limits) = cluster.limits_of(queue).filter(|limits| !limits.is_empty()) else { return Ok(()) };
    let names: Vec<&str> = limits.iter().map(|(name, _)| *name).collect();
    let instead: Vec<String> = limits.iter().map(|(name, slurms)| format!("{name}: {slurms}")).collect();
    let why = format!("[queue.{queue}] of the cluster file has {}, but this queue is Slurm's", names.join(", "));
    Err(Failure::usage(why).hint(format!("set them in Slurm ({}), and remove the lines", instead.join("; "))))
}

/// Opens the embedded queue.
fn local() -> Result<Box<dyn Engine>, Failure> {
    Ok(Box::new(crate::embedded::open()?))
}

/// Executes `queue-runner`: starts the jobs of this user as long as there are any.
pub fn runner() -> Result<i32, Failure> {
    let spool = JobSpool::open()?;
    let exe = crate::programs::own_path()?;
    let now = || Cluster::of_queue()?.queue_config();
    let mut last = now()?;
    // A cluster file that is being edited may be invalid for a moment. The last valid one counts until then.
    let mut config = || {
        if let Ok(new) = now() {
            last = new;
        }
        last.clone()
    };
    let keeper = [exe.clone(), "queue-keeper".into()];
    homing_queue::run_queue(&spool, &mut config, &keeper, (&exe, "queue-runner"))?;
    Ok(0)
}

/// Executes `queue-keeper FOLDER INDEX NANOSECONDS DESCRIPTORS QUEUE`, which a runner starts: keeps one running job.
pub fn keeper(words: &[OsString]) -> Result<i32, Failure> {
    let usage = || Failure::usage("this command is only for the runner of a queue, which chooses its arguments");
    let [dir, index, at_ns, fds, queue] = words else { return Err(usage()) };
    let fds = fds.to_str().map(|fds| fds.split(',').map(str::parse).collect::<Result<Vec<i32>, _>>());
    let number = |word: &OsString| word.to_str()?.parse::<i64>().ok();
    let index = number(index).and_then(|index| u32::try_from(index).ok());
    let queue = queue.to_str().and_then(|text| serde_json::from_str(text).ok());
    let (Some(index), Some(at_ns), Some(Ok(fds)), Some(queue)) = (index, number(at_ns), fds, queue) else {
        return Err(usage());
    };
    let runner = rustix::process::getppid();
    let runner = runner.and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
    let kept = homing_queue::keep(Path::new(dir), index, at_ns, &fds, &queue, gpus_here);
    // The runner was killed meanwhile. A new runner must start the waiting jobs, without waiting for the next
    // command.
    if runner.is_none_or(|runner| has_ended(&runner)) {
        local()?.tend()?;
    }
    kept?;
    Ok(0)
}

/// Returns the graphics processors of this host: those of the cluster file, or else its devices.
fn gpus_here() -> u32 {
    Cluster::of_queue().map_or(0, |cluster| cluster.gpus_here())
}

fn has_ended(pidfd: &std::os::fd::OwnedFd) -> bool {
    let mut fds = [rustix::event::PollFd::new(pidfd, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&rustix::event::Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Finds a job as users name it, with the index if there is one: `12`, `12[3]`, or the name that -J gave it. A name
/// means the newest job of this user with that name.
pub fn find(engine: &dyn Engine, text: &str) -> Result<(Job, Option<u32>), Failure> {
    let Some((id, index)) = homing_queue::array::job_id(text) else {
        let named = engine.own_jobs()?.into_iter().rev().find(|job| job.spec.name == text);
        let none = || {
            Failure::usage(format!("no job of yours is named {text:?}"))
                .hint("homing jobs -a lists them; an ID is 12, or 12[3] of an array")
        };
        return Ok((named.ok_or_else(none)?, None));
    };
    let job = engine.job(id)?;
    if let Some(index) = index
        && !job.parts.iter().any(|p| p.index == index)
    {
        return Err(Failure::usage(format!("job {id} has no element {index}")));
    }
    Ok((job, index))
}

/// Finds a job like [`find`]. It must be this user's, unless this user is root.
pub fn find_own(engine: &dyn Engine, text: &str) -> Result<(Job, Option<u32>), Failure> {
    let (job, index) = find(engine, text)?;
    let own = homing_queue::uid();
    if job.uid != own && own != 0 {
        return Err(Failure::usage(format!("job {text} is {}'s", job.spec.user)));
    }
    Ok((job, index))
}
