//! What a job's user changes of it while it waits.

use crate::files::{self, read_json, read_short, write_json};
use crate::job::{JobSpec, Stop};
use crate::{Job, QueueError, Spool};
use homing_folder::lock::Held;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The file's name in a job's folder.
pub(crate) const AMEND: &str = "amend.json";

/// `amend.json`: what holds instead of what was asked for at first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Amend {
    /// See [`JobSpec`], as all of these.
    pub name: String,
    /// ...
    pub queue: String,
    /// ...
    pub slots: u32,
    /// ...
    pub after: Option<String>,
    /// ...
    pub limit_s: Option<u64>,
    /// ...
    pub memory_bytes: Option<u64>,
    /// ...
    pub require: Vec<String>,
    /// Its place among its user's jobs of the queue: smaller ones start first, 0 where nobody has said one.
    pub order: i64,
}

impl Amend {
    /// What holds now.
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

    fn apply(self, spec: JobSpec) -> JobSpec {
        let Amend { name, queue, slots, after, limit_s, memory_bytes, require, order } = self;
        JobSpec { name, queue, slots, after, limit_s, memory_bytes, require, order, ..spec }
    }
}

/// A job of this user with what was changed of it.
pub(crate) fn amended(dir: &Path, spec: JobSpec) -> JobSpec {
    match read_json::<Amend>(&dir.join(AMEND)) {
        Some((amend, _)) => amend.apply(spec),
        None => spec,
    }
}

/// The same of any user's, whose record is no longer than `longest` bytes.
pub(crate) fn amended_of(dir: &Path, uid: u32, longest: u64, spec: &JobSpec) -> JobSpec {
    let read = read_short::<Amend>(&dir.join(AMEND), longest).filter(|(_, owner)| *owner == uid);
    read.map_or_else(|| spec.clone(), |(amend, _)| amend.apply(spec.clone()))
}

impl Spool {
    /// Changes a job of which nothing has started. It is held back meanwhile: none of its elements starts with half of
    /// the change.
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
            start || Held::is_held(&job.dir.join(format!("lock.{index}"))).unwrap_or(false)
        };
        let done = match job.parts.iter().find(|p| !p.state.is_over() && begun(p.index)) {
            Some(part) => {
                let name = job.name_of(part);
                let why =
                    format!("job {name} has started, or its host was asked to start it: it is not changed any more");
                Err(QueueError::Request(why))
            }
            None => write_json(&path, change, 0o644).map_err(QueueError::io("write", &path)),
        };
        if !held_already {
            let _ = fs::remove_file(&stop);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Private;

    #[test]
    fn what_waits_is_changed_and_what_has_started_is_not() {
        let (_dir, base) = crate::places::new_shared();
        let spool = Spool::at(base).unwrap();
        let spec = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"true"},
                       "name":"","queue":"q","slots":1,"array":{"indices":"1-2"}}"#;
        let spec: JobSpec = serde_json::from_str(spec).unwrap();
        let id = spool.submit(&spec, &Private::default()).unwrap();
        let job = spool.job(id).unwrap();
        let change = Amend { queue: "long".into(), slots: 3, order: -1, ..Amend::of(&job.spec) };
        spool.amend(&job, &change).unwrap();
        let seen = spool.job(id).unwrap();
        assert_eq!(Amend::of(&seen.spec), change);
        assert_eq!(seen.parts[0].state, crate::State::Pend, "it is not held back any longer");
        fs::write(job.dir.join("start.2.json"), "{}").unwrap();
        let refused = spool.amend(&job, &Amend { slots: 9, ..change.clone() }).unwrap_err().to_string();
        assert!(refused.contains(&format!("{id}[2] has started")), "{refused}");
        assert_eq!(spool.job(id).unwrap().spec.slots, 3);
    }
}
