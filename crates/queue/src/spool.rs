//! The spool: every job of every user of this machine.

use crate::depend::{self, Verdict};
use crate::files::{self, read_json, step, write_json};
use crate::job::{End, JobSpec, Kill, Private, Start, Stop};
use crate::lock::Held;
use crate::plan::View;
use crate::slots::make_shared;
use crate::state::{Facts, State, state};
use crate::{QueueError, array};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Ended jobs are forgotten after this long, ns: a week.
const KEEP_NS: i64 = 7 * 86_400 * 1_000_000_000;

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
    /// Which load index stopped it, or who did.
    pub stopped_by: Option<String>,
    /// Its output file, where the engine has named one itself.
    pub out: Option<PathBuf>,
    /// Its error file, likewise; the same as `out` where both go to one.
    pub err: Option<PathBuf>,
}

/// One job of the spool.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Whose it is: the owner of its folder.
    pub uid: u32,
    /// What was asked for.
    pub spec: JobSpec,
    /// Its elements; one of index 0 without an array.
    pub parts: Vec<Part>,
    /// Its folder.
    pub dir: PathBuf,
}

impl Job {
    /// `12` or `12[3]`.
    pub fn name_of(&self, part: &Part) -> String {
        if part.index == 0 { self.id.to_string() } else { format!("{}[{}]", self.id, part.index) }
    }
    /// The file that holds what an element wrote: `out` or `err`.
    pub fn output(&self, part: &Part, stream: &str) -> PathBuf {
        if let Some(path) = if stream == "out" { &part.out } else { &part.err } {
            return path.clone();
        }
        let asked = if stream == "out" { &self.spec.stdout } else { &self.spec.stderr };
        match asked {
            Some(name) => {
                let text = crate::keeper::substitute(name, self.id, part.index);
                self.spec.cwd.as_path().join(text.as_path())
            }
            None => self.dir.join(format!("{stream}.{}", part.index)),
        }
    }
}

/// The spool of this machine.
pub struct Spool {
    dir: PathBuf,
    /// Jobs that are over, which nothing changes any more.
    over: Mutex<HashMap<u64, Job>>,
    specs: Mutex<HashMap<u64, (JobSpec, u32)>>,
}

impl Spool {
    /// Opens it, and makes it when this is the first time: `$HOMING_QUEUE`,
    /// else `/var/tmp/homing-queue`, which unlike /tmp outlives a restart.
    pub fn open() -> Result<Spool, QueueError> {
        let named = std::env::var_os("HOMING_QUEUE").map(PathBuf::from);
        Spool::at(named.unwrap_or_else(|| "/var/tmp/homing-queue".into()))
    }

    /// Opens or makes one at a path.
    pub fn at(dir: PathBuf) -> Result<Spool, QueueError> {
        for dir in [dir.clone(), dir.join("jobs"), dir.join("runners"), dir.join("slots")] {
            make_shared(&dir)?;
        }
        let meta = fs::symlink_metadata(&dir).map_err(QueueError::io("look at", &dir))?;
        let sound = meta.is_dir() && (meta.mode() & 0o1000 != 0 || meta.mode() & 0o022 == 0);
        if !sound {
            let what = "the spool must be a folder with the sticky bit (chmod 1777), or others could remove jobs";
            return Err(QueueError::Spool { path: dir, what: what.into() });
        }
        Ok(Spool { dir, over: Mutex::default(), specs: Mutex::default() })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    pub(crate) fn runner_lock(&self, uid: u32) -> PathBuf {
        self.dir.join("runners").join(format!("{uid}.lock"))
    }
    pub(crate) fn job_dir(&self, id: u64) -> PathBuf {
        self.dir.join("jobs").join(id.to_string())
    }

    /// Puts a job in; returns its number. The folder is filled under a name
    /// that nobody looks at, then renamed to the first number that is free:
    /// there is a whole job, or none.
    pub fn submit(&self, spec: &JobSpec, private: &Private) -> Result<u64, QueueError> {
        let jobs = self.dir.join("jobs");
        let fresh = jobs.join(format!(".new.{}.{}", std::process::id(), files::now_ns()));
        fs::DirBuilder::new().mode(0o755).create(&fresh).map_err(QueueError::io("make", &fresh))?;
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).map_err(QueueError::io("open", &fresh))?;
        step("folder-made");
        write_json(&fresh.join("job.json"), spec, 0o644).map_err(QueueError::io("write", &fresh))?;
        step("job-written");
        write_json(&fresh.join("private.json"), private, 0o600).map_err(QueueError::io("write", &fresh))?;
        step("private-written");
        let mut id = self.ids()?.last().copied().unwrap_or(0) + 1;
        loop {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(rustix::fs::CWD, &fresh, rustix::fs::CWD, self.job_dir(id), flags) {
                Ok(()) => break,
                Err(rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) => id += 1,
                Err(e) => return Err(QueueError::io("number the job", &fresh)(e.into())),
            }
        }
        step("job-numbered");
        Ok(id)
    }

    /// Numbers of all jobs, ascending.
    pub fn ids(&self) -> Result<Vec<u64>, QueueError> {
        let jobs = self.dir.join("jobs");
        let entries = fs::read_dir(&jobs).map_err(QueueError::io("list", &jobs))?.flatten();
        let mut ids: Vec<u64> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// All jobs as they are now, by number.
    pub fn jobs(&self) -> Result<Vec<Job>, QueueError> {
        let boot = files::boot_id();
        Ok(self.ids()?.into_iter().filter_map(|id| self.read(id, &boot)).collect())
    }

    /// One job.
    pub fn job(&self, id: u64) -> Result<Job, QueueError> {
        self.read(id, &files::boot_id()).ok_or_else(|| QueueError::NotFound(id.to_string()))
    }

    fn read(&self, id: u64, boot: &str) -> Option<Job> {
        if let Some(job) = self.over.lock().ok()?.get(&id) {
            return Some(job.clone());
        }
        let dir = self.job_dir(id);
        let known = self.specs.lock().ok()?.get(&id).cloned();
        let (spec, uid) = match known {
            Some(found) => found,
            None => {
                let folder = fs::symlink_metadata(&dir).ok().filter(fs::Metadata::is_dir)?;
                let (spec, owner): (JobSpec, u32) = read_json(&dir.join("job.json"))?;
                // A record in somebody else's folder is nobody's word.
                if owner != folder.uid() {
                    return None;
                }
                self.specs.lock().ok()?.insert(id, (spec.clone(), owner));
                (spec, owner)
            }
        };
        let indices = spec.array.as_ref().map_or_else(|| vec![0], |a| a.indices.clone());
        let whole = dir.join("stop.json").exists();
        let parts: Vec<Part> = indices.into_iter().map(|index| read_part(&dir, index, whole, boot)).collect();
        let job = Job { id, uid, spec, parts, dir };
        // One that was lost may be run again.
        if job.parts.iter().all(|p| matches!(p.state, State::Done | State::Exit)) {
            self.over.lock().ok()?.insert(id, job.clone());
        }
        Some(job)
    }

    /// What the decision needs of all jobs.
    pub fn views(&self, jobs: &[Job]) -> Vec<View> {
        let index = Index::new(jobs);
        let mut views = Vec::new();
        for job in jobs {
            let after = match &job.spec.after {
                Some(text) if job.parts.iter().any(|p| !p.state.is_over()) => depend::judge(text, &index),
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

    /// Asks for the end of a job or one element. What has not started ends now;
    /// the keeper of what runs sees the request.
    pub fn kill(&self, job: &Job, index: Option<u32>, signal: Option<i32>) -> Result<(), QueueError> {
        let name = index.map_or("kill.json".to_string(), |i| format!("kill.{i}.json"));
        let by = files::user_name(files::uid());
        let request = Kill { by: by.clone(), signal, at_ns: files::now_ns() };
        let path = job.dir.join(name);
        write_json(&path, &request, 0o644).map_err(QueueError::io("ask for the end of the job in", &job.dir))?;
        for part in job.parts.iter().filter(|p| index.is_none_or(|i| i == p.index) && !p.state.is_over()) {
            self.end_unstarted(job, part.index, &format!("killed by {by} before it started"))?;
        }
        Ok(())
    }

    /// Ends what has no keeper and never had one; the job's lock keeps a runner from starting it meanwhile.
    pub(crate) fn end_unstarted(&self, job: &Job, index: u32, reason: &str) -> Result<(), QueueError> {
        let lock = job.dir.join(format!("lock.{index}"));
        let Some(_held) = Held::try_take(&lock).map_err(QueueError::io("lock", &lock))? else { return Ok(()) };
        if job.dir.join(format!("start.{index}.json")).exists() || job.dir.join(format!("end.{index}.json")).exists() {
            return Ok(());
        }
        let end = End { at_ns: files::now_ns(), exit: 130, reason: Some(reason.into()), cpu_ms: 0, max_rss_kib: 0 };
        let path = job.dir.join(format!("end.{index}.json"));
        write_json(&path, &end, 0o644).map_err(QueueError::io("write", &path))
    }

    /// Stops a job or one element, or holds it back; `false` lets it go on.
    pub fn stop(&self, job: &Job, index: Option<u32>, stop: bool) -> Result<(), QueueError> {
        let path = job.dir.join(index.map_or("stop.json".to_string(), |i| format!("stop.{i}.json")));
        if stop {
            let by = files::user_name(files::uid());
            return write_json(&path, &Stop { by }, 0o644).map_err(QueueError::io("write", &path));
        }
        for name in [path, job.dir.join("stop.json")] {
            match fs::remove_file(&name) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(QueueError::io("remove", &name)(e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts what was lost back into the queue, under its own number.
    pub fn again(&self, job: &Job, index: Option<u32>) -> Result<usize, QueueError> {
        let mut count = 0;
        for part in job.parts.iter().filter(|p| p.state == State::Lost && index.is_none_or(|i| i == p.index)) {
            let lock = job.dir.join(format!("lock.{}", part.index));
            let Some(_held) = Held::try_take(&lock).map_err(QueueError::io("lock", &lock))? else { continue };
            for name in ["kill", "load", "start"] {
                let path = job.dir.join(format!("{name}.{}.json", part.index));
                match fs::remove_file(&path) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(QueueError::io("remove", &path)(e)),
                    _ => {}
                }
            }
            count += 1;
        }
        Ok(count)
    }

    /// Sees to it that a runner of this user is at work: takes its lock for a
    /// moment, and when nobody held it starts one, which takes it again.
    /// `program` are the words that start a runner.
    pub fn ensure_runner(&self, program: &std::path::Path, words: &[&str]) -> Result<(), QueueError> {
        let lock = self.runner_lock(files::uid());
        if Held::try_take(&lock).map_err(QueueError::io("lock", &lock))?.is_none() {
            return Ok(());
        }
        step("runner-missing");
        let log = self.dir.join("runners").join(format!("{}.log", files::uid()));
        let log = fs::OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(log);
        let mut command = std::process::Command::new(program);
        command.args(words).current_dir("/").env("HOMING_QUEUE", &self.dir);
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(log.map_or_else(|_| std::process::Stdio::null(), std::process::Stdio::from));
        command.spawn().map_err(QueueError::io("start a runner:", program))?;
        step("runner-started");
        Ok(())
    }

    /// Removes this user's jobs that ended long ago, and folders that a killed
    /// submitter left. The newest number is kept, so that none is given twice.
    pub(crate) fn tidy(&self, jobs: &[Job]) {
        let now = files::now_ns();
        let newest = jobs.last().map(|j| j.id);
        for job in jobs.iter().filter(|j| j.uid == files::uid() && Some(j.id) != newest) {
            let ended = job.parts.iter().map(|p| p.end.as_ref().map_or(i64::MAX, |e| e.at_ns)).max();
            if ended.is_some_and(|at| at < now - KEEP_NS) {
                let _ = fs::remove_dir_all(&job.dir);
            }
        }
        let entries = fs::read_dir(self.dir.join("jobs")).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(pid) = name.strip_prefix(".new.").and_then(|n| n.split('.').next()?.parse::<u32>().ok()) else {
                continue;
            };
            let mine = entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == files::uid());
            if mine && !Path::new(&format!("/proc/{pid}")).exists() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Reads what is written about one element, in an order in which a change
/// meanwhile can only make it look older: the end is read last, after the lock.
fn read_part(dir: &Path, index: u32, whole_stopped: bool, boot: &str) -> Part {
    let record = |name: &str| dir.join(format!("{name}.{index}.json"));
    let end = || read_json::<End>(&record("end")).map(|(end, _)| end);
    let mut part = Part { index, state: State::Pend, start: None, end: end(), stopped_by: None, out: None, err: None };
    part.start = read_json::<Start>(&record("start")).map(|(start, _)| start);
    let mut facts = Facts {
        started: part.start.is_some(),
        this_boot: part.start.as_ref().is_some_and(|s| s.boot_id == boot),
        exit: part.end.as_ref().map(|e| e.exit),
        ..Facts::default()
    };
    if facts.exit.is_none() {
        facts.kept = Held::is_held(&dir.join(format!("lock.{index}")));
        facts.stopped = whole_stopped || record("stop").exists();
        let load = read_json::<Stop>(&record("load")).map(|(stop, _)| stop.by);
        facts.loaded = load.is_some();
        part.stopped_by = load;
        if facts.started && !facts.kept {
            // It may have ended between the first look and the lock.
            part.end = end();
            facts.exit = part.end.as_ref().map(|e| e.exit);
        }
    }
    part.state = state(&facts);
    part
}

/// Jobs by number and name, for dependencies.
pub struct Index<'a>(HashMap<String, Vec<&'a Job>>);

impl<'a> Index<'a> {
    /// Of all jobs.
    pub fn new(jobs: &'a [Job]) -> Index<'a> {
        let mut map: HashMap<String, Vec<&Job>> = HashMap::new();
        for job in jobs {
            map.entry(job.id.to_string()).or_default().push(job);
            if !job.spec.name.is_empty() {
                map.entry(job.spec.name.clone()).or_default().push(job);
            }
        }
        Index(map)
    }
}

impl depend::Known for Index<'_> {
    fn parts(&self, text: &str) -> Vec<(State, Option<i32>)> {
        let (key, index) = match array::job_id(text) {
            Some((id, index)) => (id.to_string(), index),
            None => (text.to_string(), None),
        };
        // Of several jobs of one name the newest is meant, as LSF has it.
        let job = self.0.get(&key).and_then(|jobs| jobs.last());
        let parts = job.iter().flat_map(|j| &j.parts).filter(|p| index.is_none_or(|i| i == p.index));
        parts.map(|p| (p.state, p.end.as_ref().map(|e| e.exit))).collect()
    }
}
