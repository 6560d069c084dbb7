//! Reads jobs from the spool.

mod reader;
mod views;

use crate::amend::{AMEND, amended_of};
use crate::cache::CachedJob;
use crate::entry::{Job, JobElement};
use crate::files::{self, read_short};
use crate::job::JobSpec;
use crate::state::ElementState;
use crate::{JobSpool, QueueError, array};
use homing_model::RawText;
pub(crate) use reader::Reader;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// A file in a user's folder that is rewritten whenever an ended element is put back into the queue.
const AGAIN: &str = "again.json";
/// The most elements of one other user that are read; the rest is not shown.
const MOST_OF_ANOTHER: usize = 10_000;
/// The longest record of another user that is read, bytes: a thousand single indices and the longest names.
const LONGEST_OF_ANOTHER: u64 = 64 << 10;

/// The most slots, of a job or of its share on a host, that another user's record counts for.
const MOST_SLOTS: u32 = 1 << 16;
/// The most hosts of a job that another user's record counts for.
const MOST_HOSTS: usize = 1 << 10;

/// Removes control characters from a record, and sets the user's name by `uid`. Its owner wrote the record, and could
/// otherwise forge rows of other users' tables or control their terminals.
fn plain(mut spec: JobSpec, uid: u32) -> JobSpec {
    if uid != files::uid() {
        spec.user = files::user_name(uid);
        spec.slots = spec.slots.min(MOST_SLOTS);
        spec.hosts.truncate(MOST_HOSTS);
        spec.hosts.iter_mut().for_each(|share| share.slots = share.slots.min(MOST_SLOTS));
    }
    for share in &mut spec.hosts {
        share.host = one_line(&share.host);
    }
    if let Some(storage) = &mut spec.storage {
        storage.name = one_line(&storage.name);
    }
    spec.near.iter_mut().for_each(|text| *text = one_line(text));
    for text in [&mut spec.user, &mut spec.name, &mut spec.queue, &mut spec.from] {
        *text = one_line(text);
    }
    let more = [&mut spec.host, &mut spec.after, &mut spec.project, &mut spec.group, &mut spec.app];
    for text in more.into_iter().flatten() {
        *text = one_line(text);
    }
    spec.require.iter_mut().for_each(|text| *text = one_line(text));
    spec
}

fn one_line(text: &str) -> String {
    RawText::from(text).display()
}

impl JobSpool {
    /// Returns all jobs as they are now, by number; of each other user the newest, up to a bound.
    pub fn jobs(&self) -> Result<Vec<Job>, QueueError> {
        let mut jobs: Vec<Job> = self.places.users().into_iter().flat_map(|uid| self.jobs_of(uid)).collect();
        jobs.sort_by_key(|j| (j.id, j.uid));
        Ok(jobs)
    }

    /// Returns this user's jobs as they are now, by number.
    pub fn own_jobs(&self) -> Result<Vec<Job>, QueueError> {
        let mut jobs = self.jobs_of(files::uid());
        jobs.reverse();
        Ok(jobs)
    }

    /// Returns a user's jobs, the newest first.
    fn jobs_of(&self, uid: u32) -> Vec<Job> {
        let boot = files::boot_id();
        let entries = fs::read_dir(self.places.of(uid)).into_iter().flatten().flatten();
        let mut ids: Vec<u64> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
        self.forget_ends(uid);
        ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        let mut room = if uid == files::uid() { usize::MAX } else { MOST_OF_ANOTHER };
        let mut jobs = Vec::new();
        for id in ids {
            if room == 0 {
                break;
            }
            let mut job = self.read(uid, id, &boot);
            if let Some(job) = &mut job {
                job.parts.truncate(room);
            }
            // An entry that is no job counts too, because it costs a look.
            room = room.saturating_sub(job.as_ref().map_or(1, |job| job.parts.len().max(1)));
            jobs.extend(job);
        }
        jobs
    }

    /// Returns one job: this user's own of that number before any other user's.
    pub fn job(&self, id: u64) -> Result<Job, QueueError> {
        let boot = files::boot_id();
        let claimed = fs::symlink_metadata(self.places.numbers().join(id.to_string())).ok().map(|m| m.uid());
        let users = std::iter::once(files::uid()).chain(claimed).chain(self.places.users());
        let mut found = users.filter_map(|uid| self.read(uid, id, &boot));
        found.next().ok_or_else(|| QueueError::NotFound(id.to_string()))
    }

    fn read(&self, uid: u32, id: u64, boot: &str) -> Option<Job> {
        let dir = self.places.job(uid, id);
        // A link to another user's folder is not followed.
        let meta = fs::symlink_metadata(&dir).ok().filter(|m| m.is_dir() && m.uid() == uid)?;
        let (changed, settled) = files::changed(&meta);
        let mut kept = self.cache.jobs.lock().ok()?;
        let before = kept.get(&(uid, id));
        if let Some(same) = before.filter(|kept| kept.settled == Some(changed)) {
            return Some(same.job.clone());
        }
        let spec = self.spec(uid, id, &dir)?;
        let names = Reader::list(&dir)?;
        let spec = if names.contains(AMEND) { self.changed_spec(uid, &dir, &spec) } else { spec };
        // An end is final as long as its record exists.
        let ended = before.map(|kept| kept.job.parts.as_slice()).unwrap_or_default().iter();
        let ended = ended.filter(|p| matches!(p.state, ElementState::Done | ElementState::Exit));
        let ended = ended.filter(|p| names.contains(&format!("end.{}.json", p.index)));
        let ended: HashMap<u32, &JobElement> = ended.map(|p| (p.index, p)).collect();
        // The job was removed meanwhile, even if the cache has it.
        if !names.contains("job.json") {
            return None;
        }
        let reader = Reader { dir: &dir, names: Some(names), boot };
        let indices = spec.array.as_ref().map_or(&[0][..], |a| &a.indices);
        let most = if uid == files::uid() { usize::MAX } else { MOST_OF_ANOTHER };
        let part = |index: &u32| ended.get(index).map_or_else(|| reader.part(*index), |part| (*part).clone());
        let parts: Vec<JobElement> = indices.iter().take(most).map(part).collect();
        // The state of an element with a lock depends on the process that holds it, which the folder does not show.
        let told = |p: &JobElement| match p.state {
            ElementState::Done | ElementState::Exit => true,
            ElementState::Pend | ElementState::Psusp => !reader.holds(&format!("lock.{}", p.index)),
            _ => false,
        };
        let settled = Some(changed).filter(|_| settled && parts.iter().all(told));
        let job = Job { id, uid, spec, parts, dir: reader.dir.to_path_buf() };
        kept.insert((uid, id), CachedJob { job: job.clone(), settled });
        Some(job)
    }

    /// Returns this user's request with its later changes, without the cache.
    pub(crate) fn own_spec(&self, dir: &Path) -> Option<Arc<JobSpec>> {
        let uid = files::uid();
        let own =
            |name: &str| read_short::<JobSpec>(&dir.join(name), files::LONGEST).filter(|(_, owner)| *owner == uid);
        let (spec, _) = own("spec.json").or_else(|| own("job.json"))?;
        let sound = spec.array.as_ref().is_none_or(|a| !a.indices.is_empty() && a.indices.len() <= array::LONGEST);
        sound.then(|| Arc::new(plain(amended_of(dir, uid, files::LONGEST, &spec), uid)))
    }

    /// Returns the numbers of this user's jobs, and of the jobs that are marked as changed.
    pub(crate) fn own_numbers(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut ids, mut changed) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(self.places.of(files::uid())).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            match (name.parse(), crate::bell::changed(name)) {
                (Ok(id), _) => ids.push(id),
                (_, Some(id)) => changed.push(id),
                _ => {}
            }
        }
        (ids, changed)
    }

    /// Marks a job as changed for its user's runner.
    pub(crate) fn note_changed(&self, job: &Job) {
        // Without the mark the runner finds the change at a later look at its waiting jobs.
        let path = self.places.of(job.uid).join(format!("{}{}", crate::bell::CHANGED, job.id));
        let _ = files::write_json_soon(&path, &true, 0o644);
    }

    /// Removes the marks, once the runner has read them.
    pub(crate) fn forget_changed(&self, ids: &[u64]) {
        let own = self.places.of(files::uid());
        ids.iter().for_each(|id| drop(fs::remove_file(own.join(format!("{}{id}", crate::bell::CHANGED)))));
    }

    /// Returns when an ended element was last put back.
    pub(crate) fn put_back_at(&self) -> i64 {
        fs::symlink_metadata(self.places.of(files::uid()).join(AGAIN)).map_or(0, |meta| files::changed(&meta).0)
    }

    /// Clears the cache of a user's jobs when an ended element was put back into the queue.
    fn forget_ends(&self, uid: u32) {
        let changed = fs::symlink_metadata(self.places.of(uid).join(AGAIN)).map_or(0, |meta| files::changed(&meta).0);
        let before = self.cache.again.lock().ok().and_then(|mut again| again.insert(uid, changed));
        if before.is_some_and(|before| before != changed)
            && let Ok(mut kept) = self.cache.jobs.lock()
        {
            kept.retain(|(owner, _), _| *owner != uid);
        }
    }

    /// Reports to all processes that cache a user's ends that one end is void.
    pub(crate) fn note_again(&self, uid: u32) -> Result<(), QueueError> {
        let path = self.places.of(uid).join(AGAIN);
        files::write_json(&path, &homing_os::clock::system_ns(), 0o644).map_err(QueueError::io("write", &path))
    }

    /// Returns the request with its user's later changes.
    fn changed_spec(&self, uid: u32, dir: &Path, spec: &JobSpec) -> Arc<JobSpec> {
        let longest = if uid == files::uid() { files::LONGEST } else { LONGEST_OF_ANOTHER };
        Arc::new(plain(amended_of(dir, uid, longest, spec), uid))
    }

    fn spec(&self, uid: u32, id: u64, dir: &Path) -> Option<Arc<JobSpec>> {
        if let Some(known) = self.cache.specs.lock().ok()?.get(&(uid, id)) {
            return Some(known.clone());
        }
        let longest = if uid == files::uid() { files::LONGEST } else { LONGEST_OF_ANOTHER };
        let own = |name: &str| read_short::<JobSpec>(&dir.join(name), longest).filter(|(_, owner)| *owner == uid);
        let (spec, _) = own("spec.json").or_else(|| own("job.json"))?;
        if spec.array.as_ref().is_some_and(|a| a.indices.is_empty() || a.indices.len() > array::LONGEST) {
            return None;
        }
        let spec = Arc::new(plain(spec, uid));
        self.cache.specs.lock().ok()?.insert((uid, id), spec.clone());
        Some(spec)
    }
}
