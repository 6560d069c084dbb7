//! What a terminal shows while a run prints, in a real emulator: tmux.

mod support {
    pub mod world;
}

use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::world::World;

/// Long enough for a loaded machine; nothing waits for it where all is well.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal of its own, with a server of its own, ended with the test.
struct Terminal {
    world: World,
    name: String,
}

impl Terminal {
    /// Runs a script of `sh` in which `homing` is the program under test.
    fn new(columns: usize, env: &[&str], script: &str) -> Terminal {
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

    /// The lines that are shown, as soon as they are as wanted.
    fn when(&self, what: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
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

    fn ends(&self) -> Vec<String> {
        self.when("the end", |lines| lines.iter().any(|l| l == "THE END"))
    }

    /// Lets the tasks that wait go on.
    fn open(&self, gate: &str) {
        std::fs::write(self.world.path().join(gate), "").unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn missing() -> bool {
    let missing = Command::new("tmux").arg("-V").output().is_err();
    if missing {
        eprintln!("SKIPPED: tmux is not there");
    }
    missing
}

/// Eight tasks print and end, one of them in vain; one waits to be let go.
const RUN: &str = "homing run --bar -q -j2 'test {} != gate || until test -e gate; do sleep 0.1; done; \
                   echo out {}; echo err {} >&2; test {} != 3' ::: gate 1 2 3 4 5 6 7 8";

fn is_bar(line: &str) -> bool {
    line.contains("8/9")
}

#[test]
fn output_and_the_line_of_progress_never_share_a_line() {
    if missing() {
        return;
    }
    for (columns, more) in [(40, "1 failed"), (200, "1 failed, 1 of 2 slots, 1 host")] {
        let terminal = Terminal::new(columns, &[], RUN);
        let lines = terminal.when("the line of progress", |lines| lines.iter().any(|line| is_bar(line)));
        let (last, printed) = lines.split_last().unwrap();
        assert!(is_bar(last) && last.contains(more) && last.contains('━'), "{columns}: {lines:#?}");
        assert!(last.chars().count() < columns, "{columns}: {last}");
        let mut expected: Vec<String> = (1..=8).flat_map(|n| [format!("out {n}"), format!("err {n}")]).collect();
        let mut seen = printed.to_vec();
        expected.sort();
        seen.sort();
        assert_eq!(seen, expected, "{columns}: {lines:#?}");
        terminal.open("gate");
        let after = terminal.ends();
        assert_eq!(after.len(), 19, "eighteen lines of tasks and the end: {after:#?}");
        assert!(!after.iter().any(|l| l.contains('%') || l.contains('━')), "{after:#?}");
    }
}

#[test]
fn a_line_without_an_end_is_neither_erased_nor_gone_on_with() {
    if missing() {
        return;
    }
    let script = "homing run --bar -j1 'printf half; test {} = 1 || until test -e gate; do sleep 0.1; done' ::: 1 2";
    let terminal = Terminal::new(80, &[], script);
    terminal.when("what the first task printed", |lines| lines == ["half"]);
    // As many draws of the line as a slow machine makes of it.
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(terminal.when("it again", |lines| !lines.is_empty()), ["half"]);
    terminal.open("gate");
    let lines = terminal.ends();
    assert_eq!(lines[0], "halfhalf", "{lines:#?}");
    assert!(lines[1].contains("2 done"), "{lines:#?}");
}

#[test]
fn plain_terminals_get_plain_characters_and_dumb_ones_no_line() {
    if missing() {
        return;
    }
    let plain = Terminal::new(80, &["LC_ALL=C"], RUN);
    let lines = plain.when("the line of progress", |lines| lines.iter().any(|line| is_bar(line)));
    let last = lines.last().unwrap();
    assert!(last.starts_with('#') && last.is_ascii(), "{lines:#?}");
    let dumb = Terminal::new(80, &["TERM=dumb"], RUN);
    dumb.when("all output but one", |lines| lines.len() >= 16);
    std::thread::sleep(Duration::from_millis(600));
    let lines = dumb.when("it again", |lines| !lines.is_empty());
    assert!(lines.iter().all(|l| l.starts_with("out ") || l.starts_with("err ")), "{lines:#?}");
}

/// A long line goes on in the next one, where a blank at the edge is not seen.
fn joined(lines: &[String]) -> String {
    lines.concat().replace(' ', "")
}

#[test]
fn the_end_of_a_run_and_refusals_are_whole_however_wide_the_terminal() {
    if missing() {
        return;
    }
    let script = "homing run 'echo {}' ::: one\nhoming run -j1 'echo no such sample >&2; exit {}' ::: 3\n\
                  homing run --sqlmaster x echo ::: 1\nhoming nodeset\necho status $?";
    for columns in [40, 200] {
        let lines = Terminal::new(columns, &[], script).ends();
        let text = joined(&lines);
        for part in [
            "tasks      1 done, 0 failed in",
            "tasks      0 done, 1 failed in",
            "failed   task 1: exit 3 on ",
            "echo no such sample >&2; exit 3",
            "again    homing resume --failed ",
            "homing: GNU parallel's --sqlmaster is not there; instead: ",
            "homing: which hosts?",
            "status 255",
        ] {
            assert!(text.contains(&part.replace(' ', "")), "{columns}: {part}: {lines:#?}");
        }
        assert_eq!(lines.iter().filter(|line| line.contains("done,")).count(), 2, "{columns}: {lines:#?}");
        assert!(!text.contains("walltime"), "one machine: one line: {lines:#?}");
    }
}
