//! The folder of one scene, and calls of homing in it.

use super::Surface;
use crate::nemesis;
use crate::place::CampaignEnvironment;
use crate::processes::{self, MARK};
use crate::scenario::KILL;
use std::cell::RefCell;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time limit of a call of homing, by a clock that no scene sets. Only a call that hangs reaches it. A snapshot's
/// rsync has the lowest priority: beside 30 busy processes it gets a thousandth of a processor.
const LONGEST: Duration = Duration::from_secs(600);
/// A year in seconds.
pub const YEAR: i64 = 31_536_000;

/// The result of a call of homing.
#[derive(Debug)]
pub struct CallOutput {
    /// Its exit status; -1 if a signal ended it.
    pub status: i32,
    /// Standard output, then standard error.
    pub text: String,
}

/// The folder of a scene.
pub struct Ground {
    folder: tempfile::TempDir,
    homing: PathBuf,
    shim: Option<PathBuf>,
    mark: String,
    violations: RefCell<Vec<String>>,
    /// Mount points of the scene, unmounted at its end.
    pub mounts: RefCell<Vec<PathBuf>>,
    /// The folder that comes before those of PATH.
    pub path: RefCell<Option<PathBuf>>,
}

impl Ground {
    /// Makes the folder: a home, a source and a bank of images, a queue, and a cluster file with all of them.
    pub fn new(place: &CampaignEnvironment, surface: Surface) -> io::Result<Ground> {
        let folder = tempfile::tempdir()?;
        let mark = format!("scene-{surface:?}-{}", folder.path().display());
        let ground = Ground {
            homing: place.homing.clone(),
            shim: place.shim().map(Path::to_path_buf),
            mark,
            violations: RefCell::default(),
            mounts: RefCell::default(),
            path: RefCell::default(),
            folder,
        };
        fs::set_permissions(ground.folder.path(), Permissions::from_mode(0o755))?;
        for name in ["home", "src", "bank", "queue", "leases", "tmp", "runs"] {
            fs::create_dir(ground.at(name))?;
        }
        fs::set_permissions(ground.at("leases"), Permissions::from_mode(0o1777))?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let cluster = format!(
            "[host.{host:?}]\nslots = 2\n[queue.wide]\ndefault = true\nslots = 2\nleases = {:?}\n\
             [snapshot.src]\nsource = {:?}\nbank = \"localhost:{}\"\nexpire = \"+15 days\"\n",
            ground.at("leases"),
            ground.at("src"),
            ground.at("bank").display()
        );
        fs::write(ground.at("home/cluster.toml"), cluster)?;
        Ok(ground)
    }

    /// Returns a path in the folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Notes a violation.
    pub fn violated(&self, what: String) {
        self.violations.borrow_mut().push(what);
    }

    /// Notes a violation unless the condition holds.
    pub fn must(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violated(what());
        }
    }

    /// Sets the clock of all calls from now on, in the form of the library for clocks.
    pub fn set_clock(&self, shift: &str) -> io::Result<()> {
        fs::write(self.at("home/shift"), shift)
    }

    /// Calls homing and waits for its end. A call that hangs is a violation.
    pub fn homing(&self, words: &[&str]) -> io::Result<CallOutput> {
        let mut child = self.begin(words)?;
        let status = self.end(&mut child, words)?;
        Ok(CallOutput { status, text: self.printed(&child) })
    }

    /// Starts homing in a process group of its own.
    pub fn begin(&self, words: &[&str]) -> io::Result<Child> {
        let out = self.at("home/printed");
        let mut command = Command::new(&self.homing);
        command.args(words).current_dir(self.at("home")).env_remove("HOMING_CLUSTER").env_remove("SLURM_CONF");
        command.env("HOME", self.at("home")).env("TMPDIR", self.at("tmp")).env("XDG_STATE_HOME", self.at("home/state"));
        command.env("HOMING_RUNS", self.at("runs")).env("HOMING_QUEUE", self.at("queue"));
        command.env("HOMING_CLUSTER", self.at("home/cluster.toml")).env("HOMING_ENGINE", "local");
        command.env("SHELL", "/bin/sh").env("TZ", "UTC").env(MARK, &self.mark);
        if let Some(first) = &*self.path.borrow() {
            let rest = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("{}:{rest}", first.display()));
        }
        if let Some(shim) = &self.shim {
            command.env("LD_PRELOAD", shim).env("CLOCK_SHIFT", format!("@{}", self.at("home/shift").display()));
        }
        let file = File::create(&out)?;
        let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0).spawn()?;
        fs::rename(out, self.at(&format!("home/printed.{}", child.id())))?;
        Ok(child)
    }

    /// Returns the output that a call has printed so far.
    pub fn printed(&self, child: &Child) -> String {
        let bytes = fs::read(self.at(&format!("home/printed.{}", child.id()))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for a call's end.
    pub fn end(&self, child: &mut Child, words: &[&str]) -> io::Result<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                let text = self.printed(child);
                self.must(!text.contains("panicked"), || format!("{words:?} crashed: {text}"));
                return Ok(status.code().unwrap_or(-1));
            }
            if begun.elapsed() > LONGEST {
                self.violated(format!("{words:?} hangs: {}", self.printed(child)));
                child.kill()?;
                return Ok(child.wait()?.code().unwrap_or(-1));
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Calls homing, which must end with 0.
    pub fn fine(&self, words: &[&str]) -> io::Result<CallOutput> {
        let answer = self.homing(words)?;
        self.must(answer.status == 0, || format!("{words:?} ended with {}: {}", answer.status, answer.text));
        Ok(answer)
    }

    /// Waits for a condition; returns whether it came true.
    pub fn until(&self, mut holds: impl FnMut() -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST {
            if holds() {
                return true;
            }
            sleep(Duration::from_millis(50));
        }
        false
    }

    /// Makes an image of the source. Its name is of a second that no other image has.
    pub fn image(&self) -> io::Result<CallOutput> {
        loop {
            let answer = self.homing(&["snapshot", "src"])?;
            if answer.status == 0 || !answer.text.contains(" already: image = ") {
                return Ok(answer);
            }
            sleep(Duration::from_millis(200));
        }
    }

    /// Returns the names of the images, in the order of the list.
    pub fn images(&self) -> io::Result<Vec<String>> {
        let answer = self.fine(&["snapshot", "list", "src", "--json"])?;
        let list: serde_json::Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let images = list["vaults"][0]["holds"]["images"].as_array().into_iter().flatten();
        Ok(images.filter_map(|image| image["name"].as_str().map(String::from)).collect())
    }

    /// Returns all jobs of this user: number and state.
    pub fn jobs(&self) -> io::Result<Vec<(u64, String)>> {
        let answer = self.homing(&["jobs", "-a", "--json"])?;
        let list: serde_json::Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let jobs = list.as_array().into_iter().flatten();
        let job = |job: &serde_json::Value| Some((job["id"].as_u64()?, job["state"].as_str()?.to_string()));
        Ok(jobs.filter_map(job).collect())
    }

    /// Waits until so many jobs have ended; returns all jobs.
    pub fn ended_jobs(&self, wanted: usize) -> io::Result<Vec<(u64, String)>> {
        let mut jobs = Vec::new();
        let mut failure = None;
        self.until(|| match self.jobs() {
            Ok(found) => {
                jobs = found;
                jobs.iter().filter(|(_, state)| state == "DONE" || state == "EXIT").count() >= wanted
            }
            Err(e) => {
                failure = Some(e);
                true
            }
        });
        failure.map_or(Ok(jobs), Err)
    }

    /// Kills the runner of the queue, if one is at work.
    pub fn kill_runner(&self) -> bool {
        let runners = processes::of_run(&self.mark, None);
        let mut runners = runners.iter().filter(|p| p.words.iter().any(|word| word == "queue-runner"));
        runners.any(|runner| nemesis::send(runner.pid, KILL))
    }

    /// Gives the thread a mount namespace of its own: its mounts are no longer those of the machine.
    pub fn unshare() -> io::Result<()> {
        use rustix::mount::{MountPropagationFlags, mount_change};
        // SAFETY: the thread was made for this scene and shares no descriptors or working directory that it would lose.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS)? };
        Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
    }

    /// Returns the violations.
    pub fn finish(&self) -> io::Result<Vec<String>> {
        Ok(self.violations.take())
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Repeats, because a runner starts others while they are killed.
        for _ in 0..100 {
            let left = processes::of_run(&self.mark, None);
            if left.iter().filter(|p| nemesis::send(p.pid, KILL)).count() == 0 {
                break;
            }
            sleep(Duration::from_millis(20));
        }
        for at in self.mounts.borrow().iter().rev() {
            let _ = rustix::mount::unmount(at, rustix::mount::UnmountFlags::DETACH);
        }
    }
}
