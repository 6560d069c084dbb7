//! A terminal of its own for one test, in a real emulator: tmux.

use super::world::World;
use crate::skipped::skipped;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The time limit of a wait, long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal with a tmux server of its own, which ends with the test.
pub struct Terminal {
    /// The working directory.
    pub world: World,
    name: String,
}

impl Terminal {
    /// Runs a script of `sh` in which `homing` is the program under test.
    pub fn new(columns: usize, env: &[&str], script: &str) -> Terminal {
        let world = World::new();
        let name = format!("homing-{}-{}", std::process::id(), world.path().file_name().unwrap().to_string_lossy());
        let homing = format!("homing() {{ {} \"$@\"; }}", env!("CARGO_BIN_EXE_homing"));
        let all = format!("{homing}\n{script}\necho THE END\nread -r never\n");
        std::fs::write(world.path().join("script"), all).unwrap();
        let terminal = Terminal { world, name };
        let runs = format!("HOMING_RUNS={}", terminal.world.path().join("runs").display());
        let columns = columns.to_string();
        let mut words = vec!["new-session", "-d", "-x", &columns, "-y", "40"];
        words.extend(["env", "-u", "HOMING_CLUSTER", "LC_ALL=C.UTF-8", "SHELL=/bin/sh", &runs]);
        words.extend(env);
        words.extend(["sh", "script"]);
        let begun = terminal.tmux(&words);
        assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
        terminal
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-L", &self.name, "-f", "/dev/null"]).args(words).current_dir(self.world.path());
        tmux.env("LC_ALL", "C.UTF-8").output().unwrap()
    }

    /// Changes the size of the terminal.
    #[allow(dead_code, reason = "not all suites change it")]
    pub fn resize(&self, columns: usize, rows: usize) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Presses a key, by tmux's name for it.
    #[allow(dead_code, reason = "not all suites have keys")]
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Closes the terminal, as a user closes a window.
    #[allow(dead_code, reason = "not all suites close it")]
    pub fn close(&self) {
        self.tmux(&["kill-server"]);
    }

    /// Waits until the shown lines are as wanted, and returns them.
    pub fn when(&self, what: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let said = self.tmux(&["capture-pane", "-p"]);
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            let lines: Vec<String> = text.lines().filter(|l| !l.trim().is_empty()).map(String::from).collect();
            if wanted(&lines) {
                return lines;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} was never seen:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the lines on the screen when the script has ended.
    pub fn ends(&self) -> Vec<String> {
        self.when("the end", |lines| lines.iter().any(|l| l == "THE END"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns whether tmux is missing, and prints a note then.
pub fn missing() -> bool {
    let missing = Command::new("tmux").arg("-V").output().is_err();
    if missing {
        skipped("tmux is not there");
    }
    missing
}
