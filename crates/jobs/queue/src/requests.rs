//! Carries out users' requests about existing jobs: to end, to suspend, to run again.

use crate::files::{self, write_json};
use crate::job::{JobEnd, Kill, Stop};
use crate::state::ElementState;
use crate::{Job, JobElement, JobSpool, QueueError};
use homing_os::folder::lock::FileLock;
use std::path::Path;
use std::{fs, io};

impl JobSpool {
    /// Requests the end of a job or one element. An element that has not started ends now; the keeper of a running
    /// one sees the request.
    pub fn kill(&self, job: &Job, index: Option<u32>, signal: Option<i32>) -> Result<(), QueueError> {
        let by = files::user_name(files::uid());
        let _owner = files::act_as(job.uid);
        let name = index.map_or("kill.json".to_string(), |i| format!("kill.{i}.json"));
        let request = Kill { by: by.clone(), signal, at_ns: homing_os::clock::system_ns(), died: None };
        write_json(&job.dir.join(name), &request, 0o644)
            .map_err(QueueError::io("request the end of the job in", &job.dir))?;
        for part in job.parts.iter().filter(|p| index.is_none_or(|i| i == p.index)) {
            match part.state {
                ElementState::Lost => end_unkept(job, part.index, "interrupted, and not repeated")?,
                ElementState::Pend | ElementState::Psusp => {
                    self.end_unstarted(job, part.index, &format!("killed by {by} before it started"))?
                }
                _ => {}
            }
        }
        self.note_changed(job);
        Ok(())
    }

    /// Ends an element that has no keeper and never had one.
    pub(crate) fn end_unstarted(&self, job: &Job, index: u32, reason: &str) -> Result<(), QueueError> {
        let started = || job.dir.join(format!("start.{index}.json")).exists();
        if started() { Ok(()) } else { end_unkept(job, index, reason) }
    }

    /// Suspends a job or one element, or holds it back; `false` resumes it.
    pub fn stop(&self, job: &Job, index: Option<u32>, stop: bool) -> Result<(), QueueError> {
        let by = files::user_name(files::uid());
        let _owner = files::act_as(job.uid);
        let path = job.dir.join(index.map_or("stop.json".to_string(), |i| format!("stop.{i}.json")));
        if stop {
            let written = write_json(&path, &Stop { by }, 0o644).map_err(QueueError::io("write", &path));
            self.note_changed(job);
            return written;
        }
        if let (Some(index), true) = (index, job.dir.join("stop.json").exists()) {
            // All were stopped and one is to go on: the others stay stopped.
            for part in job.parts.iter().filter(|p| p.index != index && !p.state.is_over()) {
                let path = job.dir.join(format!("stop.{}.json", part.index));
                write_json(&path, &Stop { by: by.clone() }, 0o644).map_err(QueueError::io("write", &path))?;
            }
        }
        let each = job.parts.iter().filter(|p| index.is_none_or(|i| i == p.index));
        let mut names: Vec<String> = each.map(|p| format!("stop.{}.json", p.index)).collect();
        names.push("stop.json".into());
        let removed = names.iter().try_for_each(|name| remove(&job.dir.join(name)));
        self.note_changed(job);
        removed
    }

    /// Puts lost elements back into the queue, under their own number, and with `ended` also ended ones.
    pub fn again(&self, job: &Job, index: Option<u32>, ended: bool) -> Result<usize, QueueError> {
        let _owner = files::act_as(job.uid);
        let mut count = 0;
        let chosen = |p: &&JobElement| p.state == ElementState::Lost || (ended && p.state.is_over());
        for part in job.parts.iter().filter(|p| index.is_none_or(|i| i == p.index)).filter(chosen) {
            let lock = job.dir.join(format!("lock.{}", part.index));
            let held = FileLock::try_take(&lock).map_err(QueueError::io("lock", &lock))?;
            if held.is_none() {
                continue;
            }
            crate::tree::kill_descendants(&job.dir, part.index);
            // The end is removed last: an element with neither start nor end waits, and may start at once.
            for name in ["kill", "load", "start", "end"] {
                remove(&job.dir.join(format!("{name}.{}.json", part.index)))?;
            }
            count += 1;
        }
        if count > 0 && index.is_none() {
            remove(&job.dir.join("kill.json"))?;
        }
        if count > 0 {
            self.note_again(job.uid)?;
        }
        Ok(count)
    }
}

/// Writes the end of an element without keeper; its lock keeps runners away meanwhile.
fn end_unkept(job: &Job, index: u32, reason: &str) -> Result<(), QueueError> {
    let lock = job.dir.join(format!("lock.{index}"));
    let held = FileLock::try_take(&lock).map_err(QueueError::io("lock", &lock))?;
    let path = job.dir.join(format!("end.{index}.json"));
    if held.is_none() || path.exists() {
        return Ok(());
    }
    let end =
        JobEnd { at_ns: homing_os::clock::system_ns(), exit: 130, reason: Some(reason.into()), ..JobEnd::default() };
    write_json(&path, &end, 0o644).map_err(QueueError::io("write", &path))
}

fn remove(path: &Path) -> Result<(), QueueError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(QueueError::io("remove", path)(e)),
        _ => Ok(()),
    }
}
