//! The changes that a user makes to a waiting job.

use crate::files::{self, read_json, read_short, write_json};
use crate::job::{JobSpec, Stop};
use crate::plan::Config;
use crate::{Job, JobSpool, QueueError};
use homing_os::folder::lock::FileLock;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The file's name in a job's folder.
pub(crate) const AMEND: &str = "amend.json";

/// The content of `amend.json`: it replaces these fields of the original request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Amend {
    /// As in [`JobSpec`].
    pub name: String,
    /// As in [`JobSpec`].
    pub queue: String,
    /// As in [`JobSpec`].
    pub slots: u32,
    /// As in [`JobSpec`].
    pub after: Option<String>,
    /// As in [`JobSpec`].
    pub limit_s: Option<u64>,
    /// As in [`JobSpec`].
    pub memory_bytes: Option<u64>,
    /// As in [`JobSpec`].
    pub require: Vec<String>,
    /// Its rank among its user's jobs of the queue: smaller ones start first, 0 by default.
    pub order: i64,
}

impl Amend {
    /// Returns the values in force, as a change that changes nothing.
    pub fn of(spec: &JobSpec) -> Amend {
        Amend {
            name: spec.name.clone(),
            queue: spec.queue.clone(),
            slots: spec.slots,
            after: spec.after.clone(),
            limit_s: spec.limit_s,
            memory_bytes: spec.memory_bytes,
            require: spec.require.clone(),
            order: spec.order,
        }
    }

    /// Moves the job to another queue. A job without a run limit of its own gets that queue's limit. The error is in
    /// LSF's words.
    pub fn into_queue(&mut self, config: &Config, queue: &str, uid: u32) -> Result<(), String> {
        if !config.queues.contains_key(queue) {
            return Err(format!("{queue}: No such queue"));
        }
        if let Some(why) = config.refuses(queue, uid) {
            return Err(format!("{queue}: {why}"));
        }
        let own = self.limit_s.filter(|own| Some(*own) != config.limit_s(&self.queue));
        self.limit_s = own.into_iter().chain(config.limit_s(queue)).min();
        self.queue = queue.into();
        Ok(())
    }

    /// Returns the change that puts the job before all waiting jobs of its queue in `own`, or behind them.
    pub fn moved(job: &Job, own: &[Job], first: bool) -> Amend {
        let beside = own.iter().filter(|other| other.spec.queue == job.spec.queue && !other.is_over(None));
        let orders = beside.map(|other| other.spec.order);
        let order = match first {
            true => orders.min().unwrap_or(0).saturating_sub(1),
            false => orders.max().unwrap_or(0).saturating_add(1),
        };
        Amend { order, ..Amend::of(&job.spec) }
    }

    fn apply(self, spec: JobSpec) -> JobSpec {
        let Amend { name, queue, slots, after, limit_s, memory_bytes, require, order } = self;
        JobSpec { name, queue, slots, after, limit_s, memory_bytes, require, order, ..spec }
    }
}

/// Returns `spec` of this user's job with its changes applied.
pub(crate) fn amended(dir: &Path, spec: JobSpec) -> JobSpec {
    match read_json::<Amend>(&dir.join(AMEND)) {
        Some((amend, _)) => amend.apply(spec),
        None => spec,
    }
}

/// Returns `spec` of any user's job with its changes applied. Records longer than `longest` bytes are ignored.
pub(crate) fn amended_of(dir: &Path, uid: u32, longest: u64, spec: &JobSpec) -> JobSpec {
    let read = read_short::<Amend>(&dir.join(AMEND), longest).filter(|(_, owner)| *owner == uid);
    read.map_or_else(|| spec.clone(), |(amend, _)| amend.apply(spec.clone()))
}

impl JobSpool {
    /// Changes a job of which nothing has started. The job is held meanwhile, because no element may start with half
    /// of the change.
    pub fn amend(&self, job: &Job, change: &Amend) -> Result<(), QueueError> {
        let _owner = files::act_as(job.uid);
        let (stop, path) = (job.dir.join("stop.json"), job.dir.join(AMEND));
        let held_already = stop.exists();
        if !held_already {
            let by = files::user_name(files::uid());
            write_json(&stop, &Stop { by }, 0o644).map_err(QueueError::io("write", &stop))?;
        }
        let begun = |index: u32| {
            let start = job.dir.join(format!("start.{index}.json")).exists();
            start || FileLock::is_held(&job.dir.join(format!("lock.{index}"))).unwrap_or(false)
        };
        let done = match job.parts.iter().find(|p| !p.state.is_over() && begun(p.index)) {
            Some(part) => {
                let name = job.name_of(part);
                let why = format!(
                    "job {name} has started, or its host has the request to start it: it can no longer be changed"
                );
                Err(QueueError::Request(why))
            }
            None => write_json(&path, change, 0o644).map_err(QueueError::io("write", &path)),
        };
        if !held_already {
            let _ = fs::remove_file(&stop);
        }
        self.note_changed(job);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Queue;
    use crate::{ElementState, JobElement, Private};

    fn spec() -> JobSpec {
        let spec = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"true"},
                       "name":"","queue":"q","slots":1,"array":{"indices":"1-2"}}"#;
        serde_json::from_str(spec).unwrap()
    }

    #[test]
    fn another_queue_brings_its_limit_and_leaves_the_users_own() {
        let queue = |run_limit| Queue { run_limit, ..Queue::default() };
        let queues =
            [("q".to_string(), queue(Some(10))), ("long".into(), queue(Some(60))), ("any".into(), queue(None))];
        let config = Config { queues: queues.into(), ..Config::default() };
        let moved = |limit_s, to: &str| {
            let mut change = Amend { limit_s, ..Amend::of(&spec()) };
            change.into_queue(&config, to, 1).map(|()| change.limit_s)
        };
        assert_eq!(moved(Some(600), "long"), Ok(Some(3600)), "it was the queue's");
        assert_eq!((moved(Some(600), "any"), moved(Some(60), "any")), (Ok(None), Ok(Some(60))));
        assert_eq!(moved(Some(7200), "long"), Ok(Some(3600)));
        assert_eq!(moved(None, "no"), Err("no: No such queue".into()));
    }

    #[test]
    fn the_first_of_a_queue_goes_before_what_waits_there() {
        let job = |id, queue: &str, order, state| {
            let spec = JobSpec { order, queue: queue.into(), ..spec() };
            Job {
                id,
                uid: 1,
                spec: spec.into(),
                parts: vec![JobElement { state, ..JobElement::new(1) }],
                dir: Default::default(),
            }
        };
        let (mine, other, ended) = (
            job(1, "q", 4, ElementState::Pend),
            job(2, "p", -9, ElementState::Pend),
            job(3, "q", -9, ElementState::Done),
        );
        let own = [mine.clone(), job(4, "q", -2, ElementState::Pend), other, ended];
        assert_eq!((Amend::moved(&mine, &own, true).order, Amend::moved(&mine, &own, false).order), (-3, 5));
    }

    #[test]
    fn what_waits_is_changed_and_what_has_started_is_not() {
        let (_dir, base) = crate::places::new_shared();
        let spool = JobSpool::at(base).unwrap();
        let id = spool.submit(&spec(), &Private::default()).unwrap();
        let job = spool.job(id).unwrap();
        let change = Amend { queue: "long".into(), slots: 3, order: -1, ..Amend::of(&job.spec) };
        spool.amend(&job, &change).unwrap();
        let seen = spool.job(id).unwrap();
        assert_eq!(Amend::of(&seen.spec), change);
        assert_eq!(seen.parts[0].state, ElementState::Pend, "it is not held back any longer");
        fs::write(job.dir.join("start.2.json"), "{}").unwrap();
        let refused = spool.amend(&job, &Amend { slots: 9, ..change.clone() }).unwrap_err().to_string();
        assert!(refused.contains(&format!("{id}[2] has started")), "{refused}");
        assert_eq!(spool.job(id).unwrap().spec.slots, 3);
    }
}
