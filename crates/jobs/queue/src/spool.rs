//! The spool: every job of every user of this machine.

use crate::cache::Cache;
use crate::files::{self, step, write_json_soon};
use crate::job::{JobSpec, Private, Stop};
use crate::neighbours::Presence;
use crate::places::Places;
use crate::plan::SubmitterSettings;
use crate::unit::{self, Stay, Unit};
use crate::{JobElement, QueueError, process};
use homing_model::{Command, RawText};
use homing_os::folder::lock::FileLock;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// How long ended jobs are kept: a week.
const KEEP: Duration = Duration::from_secs(7 * 86_400);

/// The number of last jobs of a user, by their numbers, that are kept in any case: a wrong clock may make them look
/// old.
const LAST_KEPT: usize = 20;

/// The settings that another machine sent last, in the user's own folder.
const TERMS: &str = "terms.json";

/// No job has this number or a higher one: a higher one in the folder of numbers is another user's mischief.
const LAST: u64 = 1 << 40;

/// The spool of this machine.
pub struct JobSpool {
    pub(crate) places: Places,
    pub(crate) cache: Cache,
}

impl JobSpool {
    /// Opens it, and makes it at first use: in `$HOMING_QUEUE`, or in /var/tmp.
    pub fn open() -> Result<JobSpool, QueueError> {
        Ok(JobSpool { places: Places::usual()?, cache: Cache::default() })
    }

    /// Opens or makes one in a folder.
    pub fn at(base: PathBuf) -> Result<JobSpool, QueueError> {
        Ok(JobSpool { places: Places::at(base)?, cache: Cache::default() })
    }

    /// Submits a job; returns its number. The folder is filled under a name that no process reads, and then renamed
    /// to its number under a lock of the user. Thus a job is whole or absent, and no later number exists before it.
    pub fn submit(&self, spec: &JobSpec, private: &Private) -> Result<u64, QueueError> {
        let own = self.places.own()?;
        let fresh = own.join(format!(".new.{}.{}", std::process::id(), homing_os::clock::system_ns()));
        files::make_dir(&fresh, 0o755).map_err(QueueError::io("make", &fresh))?;
        step("folder-made");
        let records = || -> std::io::Result<()> {
            // Before other processes can see it: a runner might be quicker than the command that holds it back.
            if spec.held {
                write_json_soon(&fresh.join("stop.json"), &Stop { by: spec.user.clone() }, 0o644)?;
            }
            files::sync_all(&[
                write_json_soon(&fresh.join("job.json"), &seen_by_all(spec), 0o644)?,
                write_json_soon(&fresh.join("spec.json"), spec, 0o600)?,
                write_json_soon(&fresh.join("private.json"), private, 0o600)?,
            ])
        };
        if let Err(failure) = records() {
            // The disk is full: a half-written job must not take its last room.
            let _ = fs::remove_dir_all(&fresh);
            return Err(QueueError::io("write", &fresh)(failure));
        }
        step("job-written");
        let lock = own.join("submit.lock");
        let _one_at_a_time = FileLock::take(&lock).map_err(QueueError::io("lock", &lock))?;
        step("submit-locked");
        if let Err(refused) = self.make_room_for(spec) {
            let _ = fs::remove_dir_all(&fresh);
            return Err(refused);
        }
        let id = self.claim_number()?;
        step("number-claimed");
        let place = self.places.job(files::uid(), id);
        fs::rename(&fresh, &place).map_err(QueueError::io("number the job", &fresh))?;
        let synced = fs::File::open(&own).and_then(|dir| dir.sync_all());
        synced.map_err(QueueError::io("write down", &own))?;
        step("job-numbered");
        Ok(id)
    }

    /// Returns the settings that another machine last sent to this user's queue with a job.
    pub fn terms(&self) -> SubmitterSettings {
        let path = self.places.of(files::uid()).join(TERMS);
        files::read_json(&path).map_or_else(SubmitterSettings::default, |(terms, _)| terms)
    }

    /// Keeps them, for all commands and runners of this user here.
    pub fn keep_terms(&self, terms: &SubmitterSettings) -> Result<(), QueueError> {
        if self.terms() == *terms {
            return Ok(());
        }
        let path = self.places.own()?.join(TERMS);
        files::write_json(&path, terms, 0o600).map_err(QueueError::io("write", &path))
    }

    /// Claims the first number that no user has. Numbers are not given twice.
    fn claim_number(&self) -> Result<u64, QueueError> {
        let dir = self.places.numbers();
        let mut id = self.first_free(&self.numbers()?);
        loop {
            let path = dir.join(id.to_string());
            match fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path) {
                // This user already has a folder of that number: another user has removed numbers.
                Ok(_) if self.places.job(files::uid(), id).exists() => id += 1,
                Ok(_) => return Ok(id),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => id += 1,
                Err(e) => return Err(QueueError::io("claim the number", &path)(e)),
            }
        }
    }

    /// Returns the number after the last one. If another user has left no room after that, it is the one after this
    /// user's last.
    fn first_free(&self, numbers: &[u64]) -> u64 {
        let own = |id: &&u64| {
            let meta = fs::symlink_metadata(self.places.numbers().join(id.to_string()));
            **id < LAST && meta.is_ok_and(|m| m.uid() == files::uid())
        };
        let last = numbers.last().copied().unwrap_or(0);
        let last = if last < LAST { last } else { numbers.iter().rev().find(own).copied().unwrap_or(0) };
        last + 1
    }

    fn numbers(&self) -> Result<Vec<u64>, QueueError> {
        let dir = self.places.numbers();
        let entries = fs::read_dir(dir).map_err(QueueError::io("list", dir))?.flatten();
        let mut ids: Vec<u64> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Whether a runner of this user is at work.
    pub fn has_runner(&self) -> Result<bool, QueueError> {
        Ok(FileLock::is_held(&self.places.own()?.join(crate::files::RUNNER_LOCK)).unwrap_or(false))
    }

    /// Ensures that a runner of this user is at work: starts one if no process holds its lock. If two are started,
    /// the second ends at once. `program` and `words` are the command that starts a runner. Returns the systemd unit
    /// that would end the runner with itself, if there is one.
    pub(crate) fn ensure_runner(&self, program: &Path, words: &[&str]) -> Result<Option<Unit>, QueueError> {
        if self.has_runner()? {
            let runner = Presence::of(&self.places, files::uid()).filter(|runner| runner.is_alive(&files::boot_id()));
            return Ok(runner.and_then(|runner| unit::ending(runner.pid())));
        }
        let own = self.places.own()?;
        step("runner-missing");
        let log = own.join("runner.log");
        let log = fs::OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(log);
        let stay = unit::stay();
        let before: Vec<&OsStr> = match &stay {
            Stay::Out(words) => words.iter().map(OsStr::new).chain([program.as_os_str()]).collect(),
            Stay::Free | Stay::Doomed(_) => vec![program.as_os_str()],
        };
        let mut command = std::process::Command::new(before[0]);
        command.args(&before[1..]).args(words).current_dir("/").env("HOMING_QUEUE", self.places.base());
        // The submitter may be a job; its runner is none of the job's processes.
        command.env_remove(crate::tree::MARK);
        // When a terminal ends, its process groups end with it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
        let runner = command.spawn().map_err(QueueError::io("start a runner:", program))?;
        step("runner-started");
        Ok(match stay {
            Stay::Free => None,
            Stay::Doomed(unit) => Some(unit),
            // The unit may end with this process.
            Stay::Out(_) => unit::kept_by(runner.id()),
        })
    }

    /// Removes this user's jobs that ended long ago, and the leftovers of killed submitters. The newest number stays,
    /// so that none is given twice.
    pub(crate) fn tidy(&self) -> Result<(), QueueError> {
        let (old, wall_ns) = (old_now(), homing_os::clock::system_ns());
        let ids = self.own_numbers().0;
        let kept = first_kept(ids.clone());
        for id in ids.into_iter().filter(|id| *id < kept) {
            // Its end is a file in it: a folder that was changed since holds no end so old, and need not be read.
            let dir = self.places.job(files::uid(), id);
            let unchanged = |meta: fs::Metadata| files::changed(&meta).0 < wall_ns - KEEP.as_nanos() as i64;
            if !fs::symlink_metadata(&dir).is_ok_and(unchanged) {
                continue;
            }
            let job = self.job(id).ok().filter(|job| job.uid == files::uid() && !job.parts.is_empty());
            if job.is_some_and(|job| job.parts.iter().all(&old)) {
                let _ = fs::remove_dir_all(&dir);
            }
        }
        let own = self.places.own()?;
        for entry in fs::read_dir(&own).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = name.strip_prefix(".new.").and_then(|n| n.split('.').next()?.parse::<u32>().ok());
            if pid.is_some_and(|pid| !process::is_there(pid)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        self.tidy_numbers(&own)
    }

    fn tidy_numbers(&self, own: &Path) -> Result<(), QueueError> {
        let lock = own.join("submit.lock");
        let _no_submission = FileLock::take(&lock).map_err(QueueError::io("lock", &lock))?;
        let numbers = self.numbers()?;
        for id in &numbers[..numbers.len().saturating_sub(1)] {
            let path = self.places.numbers().join(id.to_string());
            let mine = fs::symlink_metadata(&path).is_ok_and(|m| m.uid() == files::uid());
            if mine && !self.places.job(files::uid(), *id).exists() {
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }
}

/// Returns the lowest number of the jobs that are kept in any case.
fn first_kept(mut ids: Vec<u64>) -> u64 {
    ids.sort_unstable();
    ids.iter().rev().nth(LAST_KEPT - 1).copied().unwrap_or(0)
}

/// Returns a test whether a part of a job ended so long ago that it is removed. Wall time decides, which a user may
/// have set ahead by mistake. For jobs of this boot it must agree with the time since the boot. Other jobs have no
/// second clock. For them a clock that was ahead removes the records, except those of the last jobs; output in named
/// files stays. A clock that is set back keeps some records for longer.
fn old_now() -> impl Fn(&JobElement) -> bool {
    let (wall_ns, up, boot) = (homing_os::clock::system_ns(), homing_os::clock::since_boot(), files::boot_id());
    move |part| {
        let ended_ns = part.end.as_ref().map_or(i64::MAX, |end| end.at_ns);
        let began = part.start.as_ref().filter(|start| start.process.boot_id == boot).map(|s| s.process.began());
        ended_ns < wall_ns - KEEP.as_nanos() as i64 && began.is_none_or(|began| up.saturating_sub(began) > KEEP)
    }
}

/// Returns the part of a request that other users may read: the things that decide the order of starts, and its name.
fn seen_by_all(spec: &JobSpec) -> JobSpec {
    JobSpec {
        cwd: RawText::from(""),
        command: Command::Argv(Vec::new()),
        stdin: None,
        stdout: None,
        stderr: None,
        project: None,
        group: None,
        app: None,
        extra: Vec::new(),
        ..spec.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_jobs_stay_whatever_their_dates_are() {
        assert_eq!(first_kept(vec![3, 1, 2]), 0);
        assert_eq!(first_kept((1..=19).collect()), 0);
        assert_eq!(first_kept((1..=250).rev().collect()), 231);
    }
}
