//! The keeper of one running job: holds its slots, starts it, carries out requests, and records its end. The job ends
//! with its keeper.

mod around;
mod command;
mod elsewhere;
mod gpus;
mod notice;
mod orders;
mod several;

use crate::amend::amended;
use crate::far::GO;
use crate::files::{self, Reserved, read_json, step, write_json_soon};
use crate::job::{JobEnd, JobSpec, Private, Start, Style};
use crate::plan::Queue;
use crate::process::ProcessIdentity;
use crate::{QueueError, report};
use homing_os::folder::lock::FileLock;
use homing_os::folder::{Existing, make_file};
use orders::{Hand, Orders};
pub(crate) use several::hostfile;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// The pause between two looks at the requests.
const LOOK: Duration = Duration::from_millis(100);

/// Keeps one job, from its start, decided at `at_ns`, to its end. `fds` are the locks: the job's own, then its slots.
/// `queue` has the settings of the job's queue, `gpus` counts the graphics processors of this host.
pub fn keep(
    dir: &Path,
    index: u32,
    at_ns: i64,
    fds: &[RawFd],
    queue: &Queue,
    gpus: fn() -> u32,
) -> Result<(), QueueError> {
    files::play("keeper");
    let locks: io::Result<Vec<FileLock>> = fds.iter().map(|fd| FileLock::inherit(*fd)).collect();
    let _locks = locks.map_err(QueueError::io("take over the locks of", dir))?;
    let _ = rustix::process::setsid();
    // The guard holds the locks as well, so that no slot is given away before all processes have ended.
    let terms = homing_os::process::GuardRules { lease: None, orphaned: None, spares: false };
    homing_os::process::guarded(terms, |_| 0).map_err(QueueError::io("start a guard for the keeper of", dir))?;
    let mine = fs::symlink_metadata(dir).is_ok_and(|m| m.is_dir() && m.uid() == files::uid());
    let read =
        || Some((amended(dir, of_one(read_json(&dir.join("spec.json"))?.0)?), read_json(&dir.join("private.json"))?.0));
    let Some((mut spec, private)) = read().filter(|_| mine) else {
        return Err(QueueError::Spool { path: dir.into(), what: "no job of this user".into() });
    };
    let id = dir.file_name().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(0);
    limit(&mut spec, queue);
    let keeper = Keeper { dir, id, index, spec, private, queue, gpus, units: RefCell::default() };
    let kept = keeper.keep(at_ns);
    keeper.notify();
    kept
}

impl Keeper<'_> {
    /// Keeps the job to its end, wherever it runs.
    fn keep(&self, at_ns: i64) -> Result<(), QueueError> {
        if let Some(shares) = self.spec.over_several() {
            return self.keep_on_several(shares);
        }
        if let Some(host) = self.elsewhere() {
            return self.keep_elsewhere(host);
        }
        let start = Start { at_ns, host: self.host(), process: ProcessIdentity::own() };
        let write = |name: &str| self.dir.join(format!("{name}.{}.json", self.index));
        // Reserved before the start, so that a job that fills the disk has an end too.
        let place = Reserved::new(&write("end"), 0o644)
            .map_err(QueueError::io("reserve the record of the end in", self.dir))?;
        let record = write_json_soon(&write("start"), &start, 0o644).map_err(QueueError::io("write", self.dir))?;
        step("started");
        let begun = homing_os::clock::since_boot();
        let mut end = self.run(&record).unwrap_or_else(|reason| JobEnd { exit: 255, reason: Some(reason), ..ended() });
        // Not the present time of the clock, because a user may have set it since.
        end.at_ns = at_ns + homing_os::clock::since_boot().saturating_sub(begun).as_nanos() as i64;
        step("ended");
        self.append_report(&start, &end);
        // Not synced: if a power cut takes it, the job's own output may be gone as well, and the job counts as
        // interrupted.
        place.write(&end).map_err(QueueError::io("write", self.dir))
    }
}

/// Returns the request for one element. The list of all would cost each of 100,000 keepers 100,000 numbers.
fn of_one(mut spec: serde_json::Value) -> Option<JobSpec> {
    spec.as_object_mut()?.remove("array");
    serde_json::from_value(spec).ok()
}

/// Lowers the job's limits to those of its queue.
fn limit(spec: &mut JobSpec, queue: &Queue) {
    let least = |own: Option<u64>, of_queue: Option<u64>| own.into_iter().chain(of_queue).min();
    spec.limit_s = least(spec.limit_s, queue.run_limit.map(|minutes| minutes.saturating_mul(60)));
    spec.memory_bytes = least(spec.memory_bytes, queue.memory_limit.map(|mib| mib.saturating_mul(1 << 20)));
}

/// Returns an end; its duration is not known yet.
fn ended() -> JobEnd {
    JobEnd::default()
}

struct Keeper<'a> {
    dir: &'a Path,
    id: u64,
    index: u32,
    spec: JobSpec,
    private: Private,
    queue: &'a Queue,
    /// Counts the graphics processors of this host.
    gpus: fn() -> u32,
    /// The variables that name the units that it has of resources.
    units: RefCell<Vec<(String, String)>>,
}

impl Keeper<'_> {
    fn host(&self) -> String {
        self.spec.host.clone().unwrap_or_else(files::host_name)
    }

    fn run(&self, record: &File) -> Result<JobEnd, String> {
        if let Some(reason) = self.spec.gated.then(|| self.wait_for_go()).flatten() {
            return Ok(JobEnd { exit: 130, reason: Some(reason), ..ended() });
        }
        if let Some(reason) = self.spec.forsaken(&files::boot_id()) {
            return Ok(JobEnd { exit: 130, reason: Some(reason.into()), ..ended() });
        }
        let _gpus = match self.take_gpus()? {
            Ok(leases) => leases,
            Err(reason) => return Ok(JobEnd { exit: 130, reason: Some(reason), ..ended() }),
        };
        if let Some(end) = self.prepare(record)? {
            return Ok(end);
        }
        let mut command = self.command()?;
        let out = self.output("out", &self.spec.stdout)?;
        let err = match (&self.spec.stderr, &self.spec.stdout) {
            // With bsub -o and no -e, both go to one file.
            (None, Some(_)) => out.try_clone().map_err(|e| e.to_string())?,
            _ => self.output("err", &self.spec.stderr)?,
        };
        let written = out.try_clone().map_err(|e| e.to_string())?;
        command.stdout(out).stderr(err).stdin(self.input()?);
        let child = command.spawn().map_err(|e| format!("cannot start {:?}: {e}", command.get_program()))?;
        step("spawned");
        let (status, reason, died) = self.wait(child, record, self.orders());
        self.sweep();
        let (cpu_ms, max_rss_kib) = usage();
        let exit = died.unwrap_or_else(|| exit_of(status));
        let reason = reason.or_else(|| self.over_cpu_limit(exit));
        self.finish(record);
        let full = || (exit != 0).then(|| self.full(&written)).flatten();
        Ok(JobEnd { exit, reason: reason.or_else(full), cpu_ms, max_rss_kib, ..ended() })
    }

    fn orders(&self) -> Orders<'_> {
        Orders::new(Hand::Here, self.dir, self.index, &self.spec)
    }

    /// Ends commands that the job left in the background, which would run without slots.
    fn sweep(&self) {
        if let Err(left) = homing_os::process::sweep(Duration::ZERO) {
            homing_os::say!("homing: job {}: these processes wait for I/O and have not ended yet: {left:?}", self.id);
        }
    }

    /// Holds the slots until the job may start; returns why it does not. Its limits count from then on.
    fn wait_for_go(&self) -> Option<String> {
        self.make_launcher();
        let free = JobSpec { limit_s: None, memory_bytes: None, ..self.spec.clone() };
        let mut orders = Orders::new(Hand::Here, self.dir, self.index, &free);
        while !self.dir.join(GO).exists() {
            orders.carry_out();
            if orders.reason.is_some() {
                return orders.reason;
            }
            std::thread::sleep(LOOK);
        }
        None
    }

    /// Returns the reason of a failed job if no room is left for its output.
    fn full(&self, output: &File) -> Option<String> {
        let room = rustix::fs::fstatvfs(output).ok()?;
        let path = self.path("out", &self.spec.stdout);
        (room.f_bavail == 0).then(|| format!("no space left in {}", path.parent().unwrap_or(&path).display()))
    }

    /// Waits for the job's end. Returns its status, the reason of a requested end, and the exit status for a dead
    /// rank.
    ///
    /// Only a job that lasts has its start synced to the disk: for a short one that would cost more than the job.
    fn wait(
        &self,
        mut child: std::process::Child,
        record: &File,
        mut orders: Orders,
    ) -> (ExitStatus, Option<String>, Option<i32>) {
        let mut synced = false;
        let pid = rustix::process::Pid::from_child(&child);
        let ended = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return (status, orders.reason, orders.died);
            }
            orders.carry_out();
            if orders.elapsed() >= LOOK && !std::mem::replace(&mut synced, true) {
                let _ = record.sync_data();
            }
            match &ended {
                Some(fd) => {
                    let mut fds = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
                    let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
                    let _ = rustix::event::poll(&mut fds, Some(&timeout));
                }
                None => std::thread::sleep(LOOK),
            }
        }
    }

    /// Appends LSF's report to the output file.
    fn append_report(&self, start: &Start, end: &JobEnd) {
        if self.spec.stdout.is_none() || self.spec.style != Style::Lsf {
            return;
        }
        let path = self.path("out", &self.spec.stdout);
        let text = report::text(self.id, self.index, &self.spec, &self.private, start, end);
        let wrote = make_file(&path, Existing::Append, 0o666).and_then(|mut f| f.write_all(text.as_bytes()));
        if let Err(e) = wrote {
            homing_os::say!("homing: job {}: cannot append the report to {}: {e}", self.id, path.display());
        }
    }
}

/// Returns the exit status as shells report it.
fn exit_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Returns the processor time (ms) and largest resident set (KiB) of the children that were waited for.
fn usage() -> (u64, u64) {
    // SAFETY: plain data that the call fills in.
    let mut all: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live structure of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut all) };
    let ms = |t: libc::timeval| t.tv_sec as u64 * 1000 + t.tv_usec as u64 / 1000;
    (ms(all.ru_utime) + ms(all.ru_stime), all.ru_maxrss as u64)
}
