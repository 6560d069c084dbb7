//! A queue for one test.

use crate::until::until;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with a queue of its own.
pub struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub fn new(slots: u32) -> World {
        let world = World { dir: tempfile::tempdir().unwrap() };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        std::fs::write(world.path().join("cluster.toml"), format!("[host.\"{host}\"]\nslots = {slots}\n")).unwrap();
        world
    }
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        self.set_up(&mut command).args(args);
        command
    }
    /// Gives a program this world's folder and variables.
    pub fn set_up<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(self.path()).env("HOMING_RUNS", self.path().join("runs"));
        command.env("HOMING_QUEUE", self.path().join("queue")).env("HOMING_CLUSTER", self.path().join("cluster.toml"));
        command.env_remove("SLURM_CONF");
        command.env("SHELL", "/bin/sh").env("HOMING_ENGINE", "local").stdin(Stdio::null())
    }
    pub fn homing(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
    pub fn out(&self, args: &[&str]) -> String {
        let output = self.homing(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
    /// Returns the lines of a file of the world; none if it is missing.
    pub fn lines(&self, name: &str) -> Vec<String> {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default().lines().map(String::from).collect()
    }
    /// Returns this user's folder of the queue.
    pub fn own_folder(&self) -> PathBuf {
        self.path().join(format!("queue/homing-queue-{}", rustix::process::geteuid().as_raw()))
    }
    /// Returns this world's processes: runners, keepers, and their children.
    fn processes(&self, mark: &str) -> Vec<i32> {
        let mark = [mark.as_bytes(), self.path().join("queue").as_os_str().as_bytes()].concat();
        let numbers =
            std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        let ours = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            *pid != std::process::id() as i32 && environ.split(|b| *b == 0).any(|v| v == mark)
        };
        numbers.filter(ours).collect()
    }
    /// Kills them all at once, as a power cut would.
    pub fn kill_all(&self) {
        until("all are gone", || {
            let all = self.processes("HOMING_QUEUE=");
            for pid in &all {
                let _ = rustix::process::kill_process(
                    rustix::process::Pid::from_raw(*pid).unwrap(),
                    rustix::process::Signal::KILL,
                );
            }
            all.is_empty()
        });
    }
    /// Whether a runner is at work.
    pub fn has_runner(&self) -> bool {
        self.runner().is_some()
    }
    /// Returns the runner that is at work.
    pub fn runner(&self) -> Option<rustix::process::Pid> {
        let is_runner = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("queue-runner")
        };
        self.processes("HOMING_QUEUE=").into_iter().find(is_runner).and_then(rustix::process::Pid::from_raw)
    }
    /// Lets every user use this world and the program.
    pub fn open_to_all(&self) {
        use std::os::unix::fs::PermissionsExt;
        let open = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        open(self.path(), 0o777);
        open(&self.path().join("cluster.toml"), 0o644);
        // Another process copies it. A file that this process writes cannot be executed while another test starts a
        // program.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_homing")).arg(self.program()).status().unwrap();
        assert!(copied.success());
        open(&self.program(), 0o755);
        std::fs::write(self.path().join("ran"), "").unwrap();
        open(&self.path().join("ran"), 0o666);
    }
    /// Returns the path of a copy of the program that every user can reach.
    pub fn program(&self) -> PathBuf {
        self.path().join("homing")
    }
    pub fn state(&self, id: &str) -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(&self.out(&["jobs", "--json", id])).unwrap()[0].clone()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.kill_all();
        }
    }
}
