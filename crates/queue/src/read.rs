//! Jobs as the spool tells of them.

use crate::depend::{self, Verdict};
use crate::files::{self, read_json, read_short};
use crate::job::{End, JobSpec, Start, Stop};
use crate::lock::Held;
use crate::plan::View;
use crate::state::{Facts, State, state};
use crate::{QueueError, Spool, array};
use homing_model::RawText;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// One job, or one element of an array.
#[derive(Clone, Debug)]
pub struct Part {
    /// Index, 0 without an array.
    pub index: u32,
    /// What it is doing.
    pub state: State,
    /// Its start, once there is one.
    pub start: Option<Start>,
    /// Its end.
    pub end: Option<End>,
    /// Which load index stopped it.
    pub stopped_by: Option<String>,
    /// Its output file, where the engine has named one itself.
    pub out: Option<PathBuf>,
    /// Its error file, likewise; the same as `out` where both go to one.
    pub err: Option<PathBuf>,
}

impl Part {
    /// One of which nothing is known yet.
    pub fn new(index: u32) -> Part {
        Part { index, state: State::Pend, start: None, end: None, stopped_by: None, out: None, err: None }
    }
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Whose it is: the owner of its folder.
    pub uid: u32,
    /// What was asked for. Of another user's job the command, its folder and its files are not told.
    pub spec: Arc<JobSpec>,
    /// Its elements; one of index 0 without an array.
    pub parts: Vec<Part>,
    /// Its folder, in the embedded queue.
    pub dir: PathBuf,
}

impl Job {
    /// `12` or `12[3]`.
    pub fn name_of(&self, part: &Part) -> String {
        if self.spec.array.is_none() { self.id.to_string() } else { format!("{}[{}]", self.id, part.index) }
    }
    /// The file that holds what an element wrote: `out` or `err`.
    pub fn output(&self, part: &Part, stream: &str) -> PathBuf {
        if let Some(path) = if stream == "out" { &part.out } else { &part.err } {
            return path.clone();
        }
        let asked = if stream == "out" { &self.spec.stdout } else { &self.spec.stderr };
        match asked {
            Some(name) => {
                let text = crate::words::substitute(name, self.id, part.index);
                self.spec.cwd.as_path().join(text.as_path())
            }
            None => self.dir.join(format!("{stream}.{}", part.index)),
        }
    }
    /// The files that an element writes: its output and its errors, or one
    /// where both go to it, as with `-o` and no `-e`.
    pub fn outputs(&self, part: &Part) -> Vec<PathBuf> {
        let (out, err) = (self.output(part, "out"), self.output(part, "err"));
        let one = out == err || (self.spec.stderr.is_none() && self.spec.stdout.is_some());
        if one { vec![out] } else { vec![out, err] }
    }
}

/// Elements of one other user's that are looked at; what is beyond them is not shown.
const MOST_OF_ANOTHER: usize = 10_000;
/// A longer record of another user's is not read, bytes: a thousand single indices and the longest names.
const LONGEST_OF_ANOTHER: u64 = 64 << 10;

/// What has not changed since it was read, so that a look costs what changed.
#[derive(Default)]
pub(crate) struct Cache {
    jobs: Mutex<HashMap<(u32, u64), Kept>>,
    specs: Mutex<HashMap<(u32, u64), Arc<JobSpec>>>,
}

/// A job as it was read last.
struct Kept {
    job: Job,
    /// When its folder had been changed, where nothing else could make another job of it.
    settled: Option<i64>,
}

/// What a record may say to other users: it is written by its owner, who could
/// otherwise make rows of their tables up, or speak to their terminals.
fn plain(mut spec: JobSpec, uid: u32) -> JobSpec {
    if uid != files::uid() {
        spec.user = files::user_name(uid);
    }
    for text in [&mut spec.user, &mut spec.name, &mut spec.queue, &mut spec.from] {
        *text = one_line(text);
    }
    for text in [&mut spec.host, &mut spec.after, &mut spec.project].into_iter().flatten() {
        *text = one_line(text);
    }
    spec.require.iter_mut().for_each(|text| *text = one_line(text));
    spec
}

fn one_line(text: &str) -> String {
    RawText::from(text).display()
}

impl Spool {
    /// All jobs as they are now, by number; of each other user the newest, up to a bound.
    pub fn jobs(&self) -> Result<Vec<Job>, QueueError> {
        let mut jobs: Vec<Job> = self.places.users().into_iter().flat_map(|uid| self.jobs_of(uid)).collect();
        jobs.sort_by_key(|j| (j.id, j.uid));
        Ok(jobs)
    }

    /// This user's jobs as they are now, by number.
    pub fn own_jobs(&self) -> Result<Vec<Job>, QueueError> {
        let mut jobs = self.jobs_of(files::uid());
        jobs.reverse();
        Ok(jobs)
    }

    /// A user's jobs, the newest first.
    fn jobs_of(&self, uid: u32) -> Vec<Job> {
        let boot = files::boot_id();
        let entries = fs::read_dir(self.places.of(uid)).into_iter().flatten().flatten();
        let mut ids: Vec<u64> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
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
            // What is no job has cost a look too.
            room = room.saturating_sub(job.as_ref().map_or(1, |job| job.parts.len().max(1)));
            jobs.extend(job);
        }
        jobs
    }

    /// One job: this user's own of that number before anybody else's.
    pub fn job(&self, id: u64) -> Result<Job, QueueError> {
        let boot = files::boot_id();
        let claimed = fs::symlink_metadata(self.places.numbers().join(id.to_string())).ok().map(|m| m.uid());
        let users = std::iter::once(files::uid()).chain(claimed).chain(self.places.users());
        let mut found = users.filter_map(|uid| self.read(uid, id, &boot));
        found.next().ok_or_else(|| QueueError::NotFound(id.to_string()))
    }

    fn read(&self, uid: u32, id: u64, boot: &str) -> Option<Job> {
        let dir = self.places.job(uid, id);
        // No link is followed to another user's folder.
        let meta = fs::symlink_metadata(&dir).ok().filter(|m| m.is_dir() && m.uid() == uid)?;
        let (changed, settled) = files::changed(&meta);
        let mut kept = self.cache.jobs.lock().ok()?;
        let before = kept.get(&(uid, id));
        if let Some(same) = before.filter(|kept| kept.settled == Some(changed)) {
            return Some(same.job.clone());
        }
        // An end is final.
        let ended = before.map(|kept| kept.job.parts.as_slice()).unwrap_or_default();
        let ended: HashMap<u32, &Part> =
            ended.iter().filter(|p| matches!(p.state, State::Done | State::Exit)).map(|p| (p.index, p)).collect();
        let spec = self.spec(uid, id, &dir)?;
        let names: HashSet<String> =
            fs::read_dir(&dir).ok()?.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        // Removed meanwhile, whatever is remembered of it.
        if !names.contains("job.json") {
            return None;
        }
        let reader = Reader { dir: &dir, names, boot };
        let indices = spec.array.as_ref().map_or(&[0][..], |a| &a.indices);
        let most = if uid == files::uid() { usize::MAX } else { MOST_OF_ANOTHER };
        let part = |index: &u32| ended.get(index).map_or_else(|| reader.part(*index), |part| (*part).clone());
        let parts: Vec<Part> = indices.iter().take(most).map(part).collect();
        // The state of what has a lock depends on who holds it, which no folder tells.
        let told = |p: &Part| match p.state {
            State::Done | State::Exit => true,
            State::Pend | State::Psusp => !reader.names.contains(&format!("lock.{}", p.index)),
            _ => false,
        };
        let settled = Some(changed).filter(|_| settled && parts.iter().all(told));
        let job = Job { id, uid, spec, parts, dir: reader.dir.to_path_buf() };
        kept.insert((uid, id), Kept { job: job.clone(), settled });
        Some(job)
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

    /// What the decision needs of all jobs.
    pub fn views(&self, jobs: &[Job]) -> Vec<View> {
        let mut views = Vec::new();
        for job in jobs {
            let after = match &job.spec.after {
                Some(text) if job.parts.iter().any(|p| !p.state.is_over()) => {
                    depend::judge(text, &Seen { spool: self, jobs, uid: job.uid })
                }
                _ => Verdict::Holds,
            };
            views.extend(job.parts.iter().map(|part| View {
                id: job.id,
                index: part.index,
                uid: job.uid,
                queue: job.spec.queue.clone(),
                slots: job.spec.slots,
                limit: job.spec.array.as_ref().and_then(|a| a.limit),
                state: part.state,
                after,
                host: job.spec.host.clone(),
                require: job.spec.require.clone(),
                start_ns: part.start.as_ref().map_or(0, |s| s.at_ns),
            }));
        }
        views
    }
}

/// Reads one job's elements from its folder, which was listed once.
struct Reader<'a> {
    dir: &'a Path,
    names: HashSet<String>,
    boot: &'a str,
}

impl Reader<'_> {
    fn has(&self, name: &str, index: u32) -> bool {
        self.names.contains(&format!("{name}.{index}.json"))
    }
    fn record<T: serde::de::DeserializeOwned>(&self, name: &str, index: u32) -> Option<T> {
        read_json::<T>(&self.dir.join(format!("{name}.{index}.json"))).map(|(record, _)| record)
    }

    /// In an order in which a change meanwhile can only make it look older:
    /// the end is read last, after the lock.
    fn part(&self, index: u32) -> Part {
        let mut part = Part::new(index);
        part.end = self.has("end", index).then(|| self.record::<End>("end", index)).flatten();
        part.start = self.has("start", index).then(|| self.record::<Start>("start", index)).flatten();
        let mut facts = Facts {
            started: part.start.is_some(),
            this_boot: part.start.as_ref().is_some_and(|s| s.process.boot_id == self.boot),
            exit: part.end.as_ref().map(|e| e.exit),
            ..Facts::default()
        };
        if facts.exit.is_none() {
            facts.kept = self.names.contains(&format!("lock.{index}")) && self.is_kept(&part);
            facts.stopped = self.names.contains("stop.json") || self.has("stop", index);
            part.stopped_by =
                self.has("load", index).then(|| self.record::<Stop>("load", index)).flatten().map(|stop| stop.by);
            facts.loaded = part.stopped_by.is_some();
            if facts.started && !facts.kept {
                // It may have ended between the first look and the lock.
                part.end = self.record::<End>("end", index);
                facts.exit = part.end.as_ref().map(|e| e.exit);
            }
        }
        part.state = state(&facts);
        if let Some(start) = &mut part.start {
            start.host = one_line(&start.host);
        }
        if let Some(reason) = part.end.as_mut().and_then(|e| e.reason.as_mut()) {
            *reason = one_line(reason);
        }
        part.stopped_by = part.stopped_by.as_deref().map(one_line);
        part
    }

    /// The lock tells its owner; the others look for the process.
    fn is_kept(&self, part: &Part) -> bool {
        Held::is_held(&self.dir.join(format!("lock.{}", part.index)))
            .unwrap_or_else(|| part.start.as_ref().is_some_and(|s| s.process.is_alive(self.boot)))
    }
}

/// What one user's conditions may refer to: every job by its number, the user's own by name.
struct Seen<'a> {
    spool: &'a Spool,
    jobs: &'a [Job],
    uid: u32,
}

impl depend::Known for Seen<'_> {
    fn parts(&self, text: &str) -> Vec<(State, Option<i32>)> {
        let by_id = array::job_id(text);
        let fits = |j: &&Job| match by_id {
            Some((id, _)) => j.id == id,
            None => j.uid == self.uid && !text.is_empty() && j.spec.name == text,
        };
        // Of several jobs of one name the newest is meant, as LSF has it; of one number the user's own.
        let known = self.jobs.iter().filter(fits).max_by_key(|j| (j.id, j.uid == self.uid));
        let other = by_id.filter(|_| known.is_none()).and_then(|(id, _)| self.spool.job(id).ok());
        let job = known.or(other.as_ref());
        let index = by_id.and_then(|(_, index)| index);
        let parts = job.iter().flat_map(|j| &j.parts).filter(|p| index.is_none_or(|i| i == p.index));
        parts.map(|p| (p.state, p.end.as_ref().map(|e| e.exit))).collect()
    }
}
