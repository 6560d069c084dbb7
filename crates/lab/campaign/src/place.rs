//! The place of a run: its folders, and the call of its program.

use crate::processes::MARK;
use crate::random::Random;
use crate::scenario::{Scenario, TaskSource, Terrain};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{fs, io};

/// The script of a task.
const TASK: &str = include_str!("task.sh");
/// The shell command that runs the script. A GlusterFS client that loses its bricks may answer a read with no bytes
/// and no error. A shell takes that for the end of the script, and ends with 0. With this command each end before the
/// script's own `exit` is a failure.
const SOURCED: &str = ". \"$0\"; exit 9";
/// The source of the library that shifts the clock of a process.
const SHIM: &str = include_str!("../../../../tests/clock_shift.c");

/// The place that all runs of a campaign share.
#[derive(Clone, Debug)]
pub struct CampaignEnvironment {
    /// The program under test.
    pub homing: PathBuf,
    /// The name of the lab, when runs go over ssh on its hosts.
    pub lab: Option<String>,
    shim: Option<PathBuf>,
    _shim: Arc<tempfile::TempDir>,
}

impl CampaignEnvironment {
    /// Makes a place on this machine, or on the hosts of a lab that is up.
    pub fn new(homing: &Path, lab: Option<&str>) -> io::Result<CampaignEnvironment> {
        let folder = tempfile::tempdir()?;
        let (source, library) = (folder.path().join("shim.c"), folder.path().join("shim.so"));
        fs::write(&source, SHIM)?;
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        let shim = built.is_ok_and(|status| status.success()).then_some(library);
        if let Some(lab) = lab {
            // By default a mount waits 42 s for a brick whose host lost its power. `homing volume create` sets these
            // options too. With a limit of 3 s, link cuts of 3.3 to 3.7 s just exceeded it. Some mounts had then lost
            // a brick and others not, and GlusterFS lost data that tasks had written.
            let mut set = homing_lab::exec(lab, "n1").map_err(io::Error::other)?;
            set.args(["gluster", "--mode=script", "volume", "set", "data"]);
            set.args(homing_volume::gluster::VANISHED.iter().flat_map(|(key, value)| [key, value]));
            set.stdout(std::process::Stdio::null()).status()?;
        }
        Ok(CampaignEnvironment { homing: homing.into(), lab: lab.map(String::from), shim, _shim: Arc::new(folder) })
    }

    /// Returns the library that shifts clocks.
    pub fn shim(&self) -> Option<&Path> {
        self.shim.as_deref()
    }

    /// Returns the faults that are possible here.
    pub fn terrain(&self) -> Terrain {
        let clock = self.shim.is_some() && self.lab.is_none();
        Terrain { lab: self.lab.is_some(), root: rustix::process::geteuid().is_root(), clock }
    }
}

/// The folders of one run.
#[derive(Debug)]
pub struct RunFolders {
    /// The mark of the run's processes.
    pub mark: String,
    /// The base folder on this machine. In a lab it is on the scratch disk of the first host.
    pub base: PathBuf,
    place: CampaignEnvironment,
    scenario: Scenario,
    _folder: Option<tempfile::TempDir>,
}

/// The things that may be on a small disk.
#[derive(Clone, Copy)]
pub enum SmallDiskContent {
    /// The run's folder.
    Runs,
    /// Standard output.
    Output,
    /// Job log and results.
    Log,
}

impl RunFolders {
    /// Makes the folders.
    pub fn new(place: &CampaignEnvironment, scenario: &Scenario) -> io::Result<RunFolders> {
        let mark = format!("{}-{}-{}", scenario.seed, std::process::id(), Random::new(nonce()).within(0, 1 << 30));
        let (base, folder) = match &place.lab {
            None => {
                let folder = tempfile::tempdir()?;
                (folder.path().to_path_buf(), Some(folder))
            }
            Some(lab) => (scratch(lab, 1)?.join(&mark), None),
        };
        let site = RunFolders { mark, base, place: place.clone(), scenario: scenario.clone(), _folder: folder };
        for folder in ["beats", "effects", "disk", "runs", "cwd"] {
            fs::create_dir_all(site.base.join(folder))?;
        }
        fs::write(site.base.join("task.sh"), TASK)?;
        fs::write(site.base.join("clock"), "0")?;
        if site.scenario.small_disk.contains(&true) {
            small_disk(&site.base.join("disk"))?;
        }
        fs::write(site.base.join("tasks"), site.task_lines())?;
        if site.scenario.neighbours {
            neighbours(&site.base, site.scenario.seed.is_multiple_of(2))?;
        }
        site.on_volume(
            "mkdir -p EFFECTS; cp BASE/task.sh EFFECTS/../task.sh; for h in n2 n3; do ssh $h mkdir -p BASE/beats; done",
        )?;
        Ok(site)
    }

    /// Returns the path of a kept thing on this machine.
    pub fn kept(&self, what: SmallDiskContent) -> PathBuf {
        let small = self.scenario.small_disk[what as usize];
        let folder = if small { self.base.join("disk") } else { self.base.clone() };
        folder.join(["runs", "out", "log"][what as usize])
    }

    /// Returns a path as the run's own hosts see it.
    fn inside(&self, path: &Path) -> String {
        let text = path.display().to_string();
        match &self.place.lab {
            None => text,
            Some(_) => text.replace(&self.base.display().to_string(), &format!("/scratch/{}", self.mark)),
        }
    }

    fn effects_inside(&self) -> String {
        if self.place.lab.is_some() {
            format!("/data/{}/effects", self.mark)
        } else {
            self.inside(&self.base.join("effects"))
        }
    }

    fn script_inside(&self) -> String {
        if self.place.lab.is_some() {
            format!("/data/{}/task.sh", self.mark)
        } else {
            self.inside(&self.base.join("task.sh"))
        }
    }

    fn task_lines(&self) -> String {
        let script = self.script_inside();
        let line = |n| format!("{}\n", serde_json::json!({"argv": ["bash", "-c", SOURCED, script, Scenario::item(n)]}));
        (1..=self.scenario.tasks).map(line).collect()
    }

    /// Returns the items as text for standard input.
    pub fn items(&self) -> String {
        (1..=self.scenario.tasks).map(|n| Scenario::item(n) + "\n").collect()
    }

    /// Returns a command that runs homing, here or on the first host.
    pub fn homing(&self, words: &[String]) -> io::Result<Command> {
        let mut command = match &self.place.lab {
            None => {
                let mut command = Command::new(&self.place.homing);
                command.current_dir(self.base.join("cwd"));
                command
            }
            Some(lab) => {
                let mut command = homing_lab::exec(lab, "n1").map_err(io::Error::other)?;
                command.arg(&self.place.homing);
                command
            }
        };
        command.args(words).env("HOMING_RUNS", self.inside(&self.kept(SmallDiskContent::Runs))).env("SHELL", "/bin/sh");
        command.env(MARK, &self.mark).env_remove("HOMING_CLUSTER").env("TMPDIR", self.inside(&self.base));
        command
            .env("CAMPAIGN_EFFECTS", self.effects_inside())
            .env("CAMPAIGN_KEEP", if self.place.lab.is_some() { ",fsync" } else { "" })
            .env("CAMPAIGN_NAP", if self.place.lab.is_some() { "0.4" } else { "0.05" });
        command.env("CAMPAIGN_BEATS", self.inside(&self.base.join("beats")));
        if let Some(shim) = self.place.shim.as_ref().filter(|_| self.place.lab.is_none()) {
            command.env("LD_PRELOAD", shim).env("CLOCK_SHIFT", format!("@{}", self.base.join("clock").display()));
        }
        Ok(command)
    }

    /// Returns the arguments of the first part.
    pub fn words(&self) -> Vec<String> {
        let s = &self.scenario;
        let mut words = vec!["run".to_string(), "-q".into(), format!("-j{}", s.jobs)];
        let log = self.kept(SmallDiskContent::Log);
        words.extend(["--joblog".into(), self.inside(&log.with_extension("tsv"))]);
        if self.place.lab.is_some() {
            words.extend(["--on", "ssh", "--hosts", "n[1-3]"].map(String::from));
        }
        match s.form {
            crate::scenario::Form::Plain => {}
            crate::scenario::Form::Keep => words.push("-k".into()),
            crate::scenario::Form::Lines => words.push("--lb".into()),
        }
        if s.results {
            words.extend(["--results".into(), self.inside(&log.with_extension("results"))]);
        }
        if s.retries {
            words.extend(["--retries".into(), "3".into()]);
        }
        let command = ["bash".into(), "-c".into(), format!("'{SOURCED}'"), self.script_inside(), "{}".into()];
        match s.input {
            TaskSource::Tasks => words.extend(["--tasks".into(), self.inside(&self.base.join("tasks"))]),
            TaskSource::Stdin => words.extend(command),
            TaskSource::Args => {
                words.extend(command);
                words.push(":::".into());
                words.extend((1..=s.tasks).map(Scenario::item));
            }
        }
        words
    }

    /// Runs a script on the first host of a lab. `EFFECTS`, `BASE` and `MARK` in it are this run's.
    pub fn on_volume(&self, script: &str) -> io::Result<()> {
        let Some(mut command) = self.command_on_volume(script)? else { return Ok(()) };
        let status = command.status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("{script}: {status}"))) }
    }

    /// Runs the script like [`RunFolders::on_volume`], and returns its standard output. Its exit status does not count.
    pub fn said_on_volume(&self, script: &str) -> io::Result<String> {
        let Some(mut command) = self.command_on_volume(script)? else { return Ok(String::new()) };
        Ok(String::from_utf8_lossy(&command.output()?.stdout).into_owned())
    }

    fn command_on_volume(&self, script: &str) -> io::Result<Option<Command>> {
        let Some(lab) = &self.place.lab else { return Ok(None) };
        homing_lab::remount(lab).map_err(io::Error::other)?;
        let script = script.replace("EFFECTS", &self.effects_inside()).replace("MARK", &self.mark);
        let script = script.replace("BASE", &self.inside(&self.base));
        let mut command = homing_lab::exec(lab, "n1").map_err(io::Error::other)?;
        command.args(["bash", "-c", &script]);
        Ok(Some(command))
    }

    /// Returns the folders of beats: one a host.
    pub fn beats(&self) -> Vec<PathBuf> {
        let Some(lab) = &self.place.lab else { return vec![self.base.join("beats")] };
        (1..=3).filter_map(|n| scratch(lab, n).ok()).map(|s| s.join(&self.mark).join("beats")).collect()
    }
}

impl Drop for RunFolders {
    fn drop(&mut self) {
        if self.scenario.small_disk.contains(&true) {
            let _ = rustix::mount::unmount(self.base.join("disk"), rustix::mount::UnmountFlags::DETACH);
        }
        if self.place.lab.is_some() {
            let _ = self.on_volume("rm -rf \"$(dirname EFFECTS)\"");
            self.beats().iter().filter_map(|b| b.parent()).for_each(|folder| drop(fs::remove_dir_all(folder)));
        }
    }
}

fn nonce() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    now.map_or(0, |d| d.as_nanos() as u64)
}

fn scratch(lab: &str, host: u32) -> io::Result<PathBuf> {
    let plan = homing_lab::load(lab).map_err(io::Error::other)?;
    let host = plan.host(&format!("n{host}")).ok_or_else(|| io::Error::other("the lab has fewer than three hosts"))?;
    Ok(host.scratch())
}

/// Returns the name of the machine's end of a host's link.
pub fn link(lab: &str, host: u64) -> io::Result<String> {
    let plan = homing_lab::load(lab).map_err(io::Error::other)?;
    let host = plan.host(&format!("n{host}")).ok_or_else(|| io::Error::other("no such host"))?;
    Ok(host.veth())
}

/// Mounts a disk of 4 MiB in a mount namespace of this thread and its children.
fn small_disk(at: &Path) -> io::Result<()> {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    // SAFETY: the thread was made for this run and shares no descriptors or working directory that it would lose.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("campaign", at, "tmpfs", MountFlags::empty(), c"size=4m")?;
    fs::create_dir(at.join("runs"))
}

/// Makes files as another user would leave them. One is a cluster file that would send tasks elsewhere, or a pipe for
/// which a reader would wait. Two runs cannot be read, and one has a pipe as its lock.
fn neighbours(base: &Path, piped: bool) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let nobody = Some(65534);
    let pipe = |at: PathBuf| mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o666), 0);
    let file = base.join("cwd/cluster.toml");
    if piped {
        pipe(file.clone())?;
    } else {
        fs::write(&file, "hosts = \"nobody@192.0.2.1\"\n[host.localhost]\nslots = 0\n")?;
    }
    std::os::unix::fs::chown(&file, nobody, nobody)?;
    for (name, blocks) in [("20200101-000000-aaaa", "journal.jsonl"), ("zzzz", "journal.jsonl"), ("zzzy", "lock")] {
        let run = base.join("runs").join(name);
        fs::create_dir(&run)?;
        pipe(run.join(blocks))?;
        if blocks == "lock" {
            fs::write(run.join("journal.jsonl"), "{")?;
        }
        std::os::unix::fs::chown(&run, nobody, nobody)?;
    }
    Ok(())
}
