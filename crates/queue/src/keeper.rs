//! The keeper of one running job: holds its slots, starts it, carries out
//! requests, and writes down its end. The job ends with its keeper.

use crate::files::{self, read_json, step, write_json, write_json_soon};
use crate::job::{End, JobSpec, Kill, Private, Start, Style};
use crate::lock::Held;
use crate::process::Process;
use crate::words::{interpreter, shell, substitute};
use crate::{QueueError, report, tree};
use homing_model::{Command as Words, RawText};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at the requests.
const LOOK: Duration = Duration::from_millis(100);
/// Between asking a job to end and ending it; LSF's JOB_TERMINATE_INTERVAL is 10 s.
const GRACE: Duration = Duration::from_secs(5);

/// Keeps one job, from its start, decided at `at_ns`, to its end. `fds` are the locks: the job's own, then its slots.
pub fn keep(dir: &Path, index: u32, at_ns: i64, fds: &[RawFd]) -> Result<(), QueueError> {
    files::play("keeper");
    let locks: io::Result<Vec<Held>> = fds.iter().map(|fd| Held::inherit(*fd)).collect();
    let _locks = locks.map_err(QueueError::io("take over the locks of", dir))?;
    let _ = rustix::process::setsid();
    // The guard holds the locks as well: no slot is given away before nothing is left.
    let terms = homing_process::Terms { lease: None, orphaned: None };
    homing_process::guarded(terms, |_| 0).map_err(QueueError::io("start a guard for the keeper of", dir))?;
    let mine = fs::symlink_metadata(dir).is_ok_and(|m| m.is_dir() && m.uid() == files::uid());
    let read = || Some((read_json::<JobSpec>(&dir.join("spec.json"))?.0, read_json(&dir.join("private.json"))?.0));
    let Some((spec, private)) = read().filter(|_| mine) else {
        return Err(QueueError::Spool { path: dir.into(), what: "no job of this user".into() });
    };
    let id = dir.file_name().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(0);
    let keeper = Keeper { dir, id, index, spec, private };
    let start = Start { at_ns, host: keeper.host(), process: Process::own() };
    let write = |name: &str| dir.join(format!("{name}.{index}.json"));
    let record = write_json_soon(&write("start"), &start, 0o644).map_err(QueueError::io("write", dir))?;
    step("started");
    let begun = homing_clock::since_boot();
    let mut end = keeper.run(&record).unwrap_or_else(|reason| End { exit: 255, reason: Some(reason), ..ended() });
    // Not what the clock says now: somebody may have set it since.
    end.at_ns = at_ns + homing_clock::since_boot().saturating_sub(begun).as_nanos() as i64;
    step("ended");
    keeper.append_report(&start, &end);
    // Not synced: where a power cut takes it, the job's own output may be gone as well, and it counts as interrupted.
    write_json_soon(&write("end"), &end, 0o644).map(drop).map_err(QueueError::io("write", dir))
}

/// How long it took is not known yet.
fn ended() -> End {
    End { at_ns: 0, exit: 0, reason: None, cpu_ms: 0, max_rss_kib: 0 }
}

struct Keeper<'a> {
    dir: &'a Path,
    id: u64,
    index: u32,
    spec: JobSpec,
    private: Private,
}

impl Keeper<'_> {
    fn host(&self) -> String {
        self.spec.host.clone().unwrap_or_else(files::host_name)
    }

    fn run(&self, record: &File) -> Result<End, String> {
        let mut command = self.command()?;
        let out = self.output("out", &self.spec.stdout)?;
        let err = match (&self.spec.stderr, &self.spec.stdout) {
            // bsub -o without -e: both go to one file.
            (None, Some(_)) => out.try_clone().map_err(|e| e.to_string())?,
            _ => self.output("err", &self.spec.stderr)?,
        };
        command.stdout(out).stderr(err).stdin(self.input()?);
        let child = command.spawn().map_err(|e| format!("cannot start {:?}: {e}", command.get_program()))?;
        step("spawned");
        let (status, reason) = self.wait(child, record);
        // What it left in the background would run without slots.
        if let Err(left) = homing_process::sweep(Duration::ZERO) {
            eprintln!("homing: job {}: these processes wait for I/O and have not ended yet: {left:?}", self.id);
        }
        let (cpu_ms, max_rss_kib) = usage();
        let exit = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(End { exit, reason, cpu_ms, max_rss_kib, ..ended() })
    }

    fn input(&self) -> Result<Stdio, String> {
        if let Some(input) = &self.private.input {
            return self.kept(input).map(Stdio::from).map_err(|e| format!("cannot keep its input: {e}"));
        }
        let Some(name) = &self.spec.stdin else { return Ok(Stdio::null()) };
        let path = self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path());
        let file = File::open(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Ok(Stdio::from(file))
    }

    /// A file without a name that holds this.
    fn kept(&self, text: &RawText) -> io::Result<File> {
        let path = self.dir.join(format!(".input.{}", self.index));
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        file.write_all(&text.0)?;
        file.rewind()?;
        Ok(file)
    }

    fn output(&self, stream: &str, asked: &Option<RawText>) -> Result<File, String> {
        let path = match asked {
            Some(name) => self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path()),
            None => self.dir.join(format!("{stream}.{}", self.index)),
        };
        let mode = if asked.is_some() { 0o666 & !self.private.umask } else { 0o600 };
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(mode);
        if self.spec.overwrite && stream == "out" {
            let _ = File::create(&path);
        }
        options.open(&path).map_err(|e| format!("cannot write its output to {}: {e}", path.display()))
    }

    /// The words that run it: here, or on its host by way of a worker.
    fn words(&self) -> Result<Vec<RawText>, String> {
        if self.private.script.is_some() {
            let script = self.dir.join("script");
            return Ok(interpreter(self.private.script.as_ref().map_or(&[][..], |s| &s.0))
                .into_iter()
                .chain([RawText::from(script.as_path())])
                .collect());
        }
        Ok(match &self.spec.command {
            Words::Argv(words) => words.clone(),
            Words::Shell(line) => vec![shell(&self.spec, &self.private), "-c".into(), line.clone()],
        })
    }

    fn command(&self) -> Result<Command, String> {
        if let Some(script) = &self.private.script {
            let path = self.dir.join("script");
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o700).open(&path);
            let wrote = file.as_mut().map_err(|e| io::Error::from(e.kind())).and_then(|f| f.write_all(&script.0));
            wrote.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        }
        let words = self.words()?;
        let mut command = match &self.spec.host {
            Some(host) if *host != files::host_name() => self.far(host, &words)?,
            _ => {
                let first = words.first().ok_or("it has no command")?;
                let mut command = Command::new(first.as_os());
                command.args(words[1..].iter().map(RawText::as_os)).current_dir(self.spec.cwd.as_path());
                command
            }
        };
        command.env_clear().envs(self.private.env.iter().map(|(n, v)| (n.as_os(), v.as_os())));
        command.envs(self.variables());
        let umask = self.private.umask;
        let parent = std::process::id();
        // SAFETY: only system calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                libc::umask(umask);
                // The job ends with its keeper, also when that is killed.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                if libc::getppid() as u32 != parent {
                    libc::_exit(137);
                }
                Ok(())
            });
        }
        Ok(command)
    }

    /// A run of one task on another host: its worker ends with this process.
    fn far(&self, host: &str, words: &[RawText]) -> Result<Command, String> {
        let task = serde_json::json!({ "argv": words, "cwd": self.spec.cwd });
        let path = self.dir.join(format!("task.{}.json", self.index));
        write_json(&path, &task, 0o600).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        let exe = std::env::current_exe().map_err(|e| format!("cannot find homing itself: {e}"))?;
        let mut command = Command::new(exe);
        command.args(["run", "--on", "ssh", "-j1", "-q", "--line-buffer", "--no-locality", "--no-detect"]);
        command.args(["--halt", "now,fail=1", "-w", host, "--tasks"]).arg(path).current_dir("/");
        Ok(command)
    }

    /// LSF's variables, which scripts read, and homing's own.
    fn variables(&self) -> Vec<(String, String)> {
        let host = self.host();
        let hosts = vec![host.as_str(); self.spec.slots as usize].join(" ");
        let text = |raw: &RawText| String::from_utf8_lossy(&raw.0).into_owned();
        let mut all = vec![
            ("HOMING_JOB".to_string(), self.id.to_string()),
            ("HOMING_JOB_INDEX".into(), self.index.to_string()),
            (tree::MARK.into(), tree::mark(self.dir, self.index)),
            ("LSB_JOBID".into(), self.id.to_string()),
            ("LSB_JOBINDEX".into(), self.index.to_string()),
            ("LSB_JOBNAME".into(), self.spec.name.clone()),
            ("LSB_QUEUE".into(), self.spec.queue.clone()),
            ("LSB_HOSTS".into(), hosts),
            ("LSB_MCPU_HOSTS".into(), format!("{host} {} ", self.spec.slots)),
            ("LSB_DJOB_NUMPROC".into(), self.spec.slots.to_string()),
            ("LSB_SUB_HOST".into(), self.spec.from.clone()),
            ("LS_SUBCWD".into(), text(&self.spec.cwd)),
            ("LS_JOBPID".into(), std::process::id().to_string()),
        ];
        if let Some(out) = &self.spec.stdout {
            all.push(("LSB_OUTPUTFILE".into(), text(&substitute(out, self.id, self.index))));
        }
        all
    }

    /// A job that lasts has its start on the disk before long; for a short one that would cost more than the job.
    fn wait(&self, mut child: std::process::Child, record: &File) -> (ExitStatus, Option<String>) {
        let begun = Instant::now();
        let mut synced = false;
        let mut orders = Orders { seen: [None, None], stopped: false, kill_at: None, reason: None };
        let pid = rustix::process::Pid::from_child(&child);
        let ended = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return (status, orders.reason);
            }
            self.carry_out(&mut orders, begun);
            if begun.elapsed() >= LOOK && !std::mem::replace(&mut synced, true) {
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

    fn carry_out(&self, orders: &mut Orders, begun: Instant) {
        let stop = ["stop.json".to_string(), format!("stop.{}.json", self.index), format!("load.{}.json", self.index)];
        let stop = stop.iter().any(|n| self.dir.join(n).exists()) && orders.kill_at.is_none();
        if stop != orders.stopped {
            homing_process::signal(if stop { libc::SIGSTOP } else { libc::SIGCONT });
            orders.stopped = stop;
        }
        let over = self.spec.limit_s.is_some_and(|s| begun.elapsed() > Duration::from_secs(s));
        if over && orders.kill_at.is_none() {
            orders.end("time limit");
        }
        // Nobody could ask for its end any more.
        if orders.kill_at.is_none() && !self.dir.exists() {
            orders.end("its folder was removed");
        }
        for (nth, name) in ["kill.json".to_string(), format!("kill.{}.json", self.index)].iter().enumerate() {
            let Some((kill, owner)) = read_json::<Kill>(&self.dir.join(name)) else { continue };
            // The folder is the user's own; only they and root can write here.
            if orders.seen[nth].as_ref() == Some(&kill) || (owner != files::uid() && owner != 0) {
                continue;
            }
            orders.seen[nth] = Some(kill.clone());
            match kill.signal {
                Some(signal) => homing_process::signal(signal),
                None => orders.end(&format!("killed by {}", kill.by)),
            }
        }
        if orders.kill_at.is_some_and(|at| Instant::now() >= at) {
            homing_process::signal(libc::SIGKILL);
        }
    }

    /// LSF's report at the end of the output file.
    fn append_report(&self, start: &Start, end: &End) {
        let Some(name) = self.spec.stdout.as_ref().filter(|_| self.spec.style == Style::Lsf) else { return };
        let path = self.spec.cwd.as_path().join(substitute(name, self.id, self.index).as_path());
        let script = self.private.script.as_ref().map(|s| String::from_utf8_lossy(&s.0).into_owned());
        let text = report::text(self.id, self.index, &self.spec, script.as_deref(), start, end);
        let wrote = OpenOptions::new().append(true).open(&path).and_then(|mut f| f.write_all(text.as_bytes()));
        if let Err(e) = wrote {
            eprintln!("homing: job {}: cannot append the report to {}: {e}", self.id, path.display());
        }
    }
}

/// What the keeper was told.
struct Orders {
    /// The request that was carried out last, of each file. Another one is new whatever time it bears:
    /// the clock may have been set back in between.
    seen: [Option<Kill>; 2],
    stopped: bool,
    kill_at: Option<Instant>,
    reason: Option<String>,
}

impl Orders {
    fn end(&mut self, reason: &str) {
        self.reason.get_or_insert_with(|| reason.to_string());
        homing_process::signal(libc::SIGTERM);
        // What stands still does not hear.
        homing_process::signal(libc::SIGCONT);
        self.stopped = false;
        self.kill_at.get_or_insert(Instant::now() + GRACE);
    }
}

/// Processor time (ms) and largest resident set (KiB) of the children that were waited for.
fn usage() -> (u64, u64) {
    // SAFETY: plain data that the call fills in.
    let mut all: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live structure of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut all) };
    let ms = |t: libc::timeval| t.tv_sec as u64 * 1000 + t.tv_usec as u64 / 1000;
    (ms(all.ru_utime) + ms(all.ru_stime), all.ru_maxrss as u64)
}
