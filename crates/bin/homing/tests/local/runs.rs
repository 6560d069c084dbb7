//! The list of runs: its order, its times, and the removal of old runs.

use crate::skipped::skipped;
use std::path::Path;
use std::process::{Command, Output};

struct World(tempfile::TempDir);

impl World {
    fn new() -> World {
        World(tempfile::tempdir().unwrap())
    }

    fn runs(&self) -> std::path::PathBuf {
        self.0.path().join("runs")
    }

    fn homing(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(args).current_dir(self.0.path()).env("HOMING_RUNS", self.runs()).env_remove("TZ");
        command
    }

    fn out(&self, args: &[&str]) -> String {
        told(&mut self.homing(args))
    }

    /// Makes a run that began and ended at this time, ns since 1970.
    fn past_run(&self, name: &str, began_ns: i64) {
        let dir = self.runs().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let began = format!(
            r#"{{"at_ns":{began_ns},"event":"run_started","v":1,"run":"{name}","argv":["homing","run","true"],"cwd":"/","host":"h","pid":1,"tasks":0}}"#
        );
        let ended = format!(r#"{{"at_ns":{began_ns},"event":"run_ended","exit":0,"counts":{{}}}}"#);
        std::fs::write(dir.join("journal.jsonl"), format!("{began}\n{ended}\n")).unwrap();
    }
}

fn told(command: &mut Command) -> String {
    let output: Output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn times_are_those_of_tz_and_name_their_zone() {
    if !Path::new("/usr/share/zoneinfo/America/New_York").exists() {
        skipped("no time zones are installed");
        return;
    }
    let world = World::new();
    world.past_run("winter", 1_767_268_800_000_000_000);
    let list = told(world.homing(&["runs"]).env("TZ", "America/New_York"));
    assert!(list.contains("2026-01-01 07:00:00 EST"), "{list}");
    let list = told(world.homing(&["runs"]).env("TZ", "UTC"));
    assert!(list.contains("2026-01-01 12:00:00 UTC"), "{list}");
}

#[test]
fn the_newest_runs_stand_first_and_a_screen_of_them() {
    let world = World::new();
    for run in 0..23 {
        world.past_run(&format!("r{run:02}"), 1_767_268_800_000_000_000 + run);
    }
    let output = world.homing(&["runs"]).output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = list.lines().skip(1).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!((names.len(), names[0], names[19]), (20, "r22", "r03"), "{list}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "homing: 3 older runs not shown: homing runs --all\n");
    assert_eq!(world.out(&["runs", "--all"]).lines().count(), 24);
}

/// The run was killed while it read its input, which may have had more tasks.
#[test]
fn a_run_that_was_killed_while_it_read_does_not_look_complete() {
    let world = World::new();
    world.past_run("killed", 1_767_268_800_000_000_000);
    let journal = world.runs().join("killed/journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let began = text.lines().next().unwrap().replace("\"tasks\":0", "\"tasks\":null");
    std::fs::write(&journal, began + "\n").unwrap();
    let list = world.out(&["runs"]);
    let row: Vec<&str> = list.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[row.len() - 7..row.len() - 3], ["interrupted", "0", "0", "-"], "{list}");
    let report = world.out(&["report", "killed"]);
    assert!(report.contains("\nstate      interrupted; homing resume killed "), "{report}");
    let report = json(&world.out(&["report", "killed", "--json"]));
    assert_eq!((&report["state"], &report["tasks"]["unfinished"]), (&"interrupted".into(), &serde_json::Value::Null));
}

#[test]
fn a_second_name_that_is_the_own_name_of_a_run_is_refused() {
    let world = World::new();
    world.past_run("past", 0);
    for name in ["past", "20261128-100201-22m"] {
        let refused = world.homing(&["run", "-q", "--name", name, "touch ran", ":::", "1"]).output().unwrap();
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(255), "{errors}");
        assert!(errors.contains(name) && !world.0.path().join("ran").exists(), "{errors}");
    }
}

#[test]
fn old_runs_go_when_that_is_asked_for_and_no_others() {
    let world = World::new();
    for (name, days) in [("old", 31), ("recent", 29), ("held", 40)] {
        world.past_run(name, 1_767_268_800_000_000_000);
        let written = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
        let journal = std::fs::OpenOptions::new().append(true).open(world.runs().join(name).join("journal.jsonl"));
        journal.unwrap().set_modified(written).unwrap();
    }
    std::fs::write(world.runs().join("held/lock"), r#"{"host":"elsewhere","pid":1,"boot_id":"b","start":1}"#).unwrap();
    std::fs::create_dir_all(world.runs().join("no-run")).unwrap();
    assert_eq!(world.out(&["runs", "--prune", "--dry-run"]), "old\n");
    assert!(world.runs().join("old/journal.jsonl").exists());
    assert_eq!(world.out(&["runs", "--prune", "--yes"]), "old\n");
    let mut left: Vec<_> = std::fs::read_dir(world.runs()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["held", "no-run", "recent"]);
    assert_eq!(world.out(&["runs", "--prune", "1d", "-y"]), "recent\n");
    assert_eq!(world.homing(&["runs", "--prune", "soon"]).output().unwrap().status.code(), Some(255));
}

#[test]
fn without_a_home_that_can_be_written_runs_are_kept_in_a_private_folder() {
    let world = World::new();
    let no_home = world.0.path().join("home");
    std::fs::write(&no_home, "a file is no folder, also for root").unwrap();
    let homing = |args: &[&str]| {
        let mut command = world.homing(args);
        command.env_remove("HOMING_RUNS").env_remove("XDG_STATE_HOME").env("HOME", &no_home);
        command.env("TMPDIR", world.0.path()).output().unwrap()
    };
    let run = homing(&["run", "echo {}", ":::", "a"]);
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!((run.status.code(), &run.stdout[..]), (Some(0), &b"a\n"[..]), "{said}");
    assert!(said.contains("cannot be written") && said.contains("set HOMING_RUNS"), "{said}");
    let list = String::from_utf8(homing(&["runs"]).stdout).unwrap();
    assert!(list.contains("ended, exit 0"), "{list}");
    let folders = std::fs::read_dir(world.0.path()).unwrap().map(|e| e.unwrap());
    let own = folders.into_iter().find(|e| e.file_name().to_string_lossy().starts_with("homing-")).expect("a folder");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&own.metadata().unwrap().permissions()) & 0o777, 0o700);
}

#[test]
fn a_terminal_has_colours_unless_somebody_asks_for_none() {
    let world = World::new();
    world.past_run("past", 0);
    let homing = env!("CARGO_BIN_EXE_homing");
    let colored = |line: &str| {
        let mut command = Command::new("script");
        command.args(["-qec", line, "/dev/null"]).current_dir(world.0.path()).env("HOMING_RUNS", world.runs());
        told(command.env_remove("NO_COLOR").stdin(std::process::Stdio::null())).contains("\x1b[")
    };
    // An empty variable has no effect.
    for (set, expected) in [("", true), ("NO_COLOR=", true), ("NO_COLOR=1", false)] {
        assert_eq!(colored(&format!("{set} {homing} report past")), expected, "{set}");
        assert_eq!(colored(&format!("{set} {homing} run --on local true ::: a")), expected, "{set}");
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_runs_used_is_what_their_reports_say_and_outlives_them() {
    let world = World::new();
    for part in ["a", "b"] {
        let command = format!("test {{}} != {part}2 && cat {{}}");
        std::fs::write(world.0.path().join(format!("{part}1")), vec![0; 5000]).unwrap();
        std::fs::write(world.0.path().join(format!("{part}2")), vec![0; 7000]).unwrap();
        let files = [format!("{part}1"), format!("{part}2")];
        let ended = world.homing(&["run", "-q", "-j2", &command, ":::", &files[0], &files[1]]).output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
    }
    let runs = json(&world.out(&["runs", "--json"]));
    let reports = runs.as_array().unwrap().iter().map(|run| {
        let name = run["name"].as_str().unwrap();
        json(&world.out(&["report", name, "--json"]))
    });
    let (mut attempts, mut busy, mut read, mut home) = (0, 0, 0, 0);
    for report in reports {
        let host = report["hosts"].as_object().unwrap().values().next().unwrap();
        attempts += host["attempts"].as_u64().unwrap();
        busy += host["busy_us"].as_u64().unwrap();
        read += report["measured"]["rchar_bytes"].as_u64().unwrap();
        home += report["planned"]["local_bytes"].as_u64().unwrap();
    }
    let of = |args: &[&str]| json(&world.out(&[&["usage", "--json"], args].concat()));
    let before = of(&["--by", "run"]);
    let all = &before["all"];
    assert_eq!((all["attempts"].as_u64(), all["failed"].as_u64()), (Some(4), Some(2)));
    let sums = ["attempts", "slot_us", "read_bytes", "local_bytes"].map(|key| all[key].as_u64().unwrap());
    assert_eq!(sums, [attempts, busy, read, home]);
    assert_eq!(home, 2 * 12_000);
    assert_eq!(before["rows"].as_array().unwrap().len(), 2);

    // On a host with two slots, an attempt that holds one of them costs half of the host's time.
    let prices = world.0.path().join("prices.toml");
    std::fs::write(&prices, "[cost]\nhost_hour = 3.6e6\ncurrency = \"EUR\"\n").unwrap();
    let costs = of(&["--cluster", prices.to_str().unwrap()]);
    let cost = costs["all"]["cost"].as_f64().unwrap();
    assert!((cost - all["host_us"].as_f64().unwrap() / 1000.0).abs() < 1e-6, "{cost}");
    assert!(all["host_us"].as_u64().unwrap() <= busy / 2 && costs["currency"] == "EUR", "{costs}");
    let of_run = |run: &serde_json::Value| {
        let words =
            ["report", run["name"].as_str().unwrap(), "--cost", "--json", "--cluster", prices.to_str().unwrap()];
        json(&world.out(&words))["cost"]["amount"].as_f64().unwrap()
    };
    let of_reports: f64 = runs.as_array().unwrap().iter().map(of_run).sum();
    assert!((of_reports - cost).abs() < 1e-6, "{of_reports} {cost}");

    // The sums of a removed run stay. A run that could not be removed after all counts once.
    let gone = before["rows"][0]["name"].as_str().unwrap().to_string();
    let aside = world.0.path().join("aside");
    let copy = |from: &Path, to: &Path| told(Command::new("cp").arg("-a").arg(from).arg(to));
    copy(&world.runs().join(&gone), &aside);
    world.out(&["runs", "--prune", "0s", "--yes"]);
    assert_eq!(json(&world.out(&["runs", "--json"])), json("[]"));
    assert_eq!(of(&["--by", "run"]), before);
    copy(&aside, &world.runs().join(&gone));
    assert_eq!(of(&["--by", "run"]), before);
    world.out(&["runs", "--prune", "0s", "--yes"]);
    assert_eq!(of(&["--by", "run"]), before);
    assert_eq!(of(&["--since", "0s"])["all"]["attempts"], 0);
    // A line that a crash cut off spoils none of those after it.
    let kept = world.runs().join("pruned.jsonl");
    let whole = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, &whole[..whole.len() - 9]).unwrap();
    copy(&aside, &world.runs().join(&gone));
    world.out(&["runs", "--prune", "0s", "--yes"]);
    let sums = of(&["--by", "run"]);
    assert_eq!((&sums["all"]["attempts"], &sums["not_counted"]), (&json("4"), &json("[]")));
    // A damaged line that no other replaces is reported by its number.
    let lines = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, format!("{lines}{{\"run\":\"lost\",\"host\":\n")).unwrap();
    let sums = of(&["--by", "run"]);
    let why = sums["not_counted"][0].as_str().unwrap();
    assert!(why.starts_with(&format!("line {} of ", lines.lines().count() + 1)) && why.contains("is damaged"), "{why}");
    assert_eq!(sums["all"]["attempts"], 4);
}

#[test]
fn what_root_prunes_for_a_user_stays_the_users() {
    use std::os::unix::fs::{MetadataExt, chown};
    if !rustix::process::geteuid().is_root() {
        skipped("only root can prune for others");
        return;
    }
    let world = World::new();
    world.out(&["run", "-q", "true", ":::", "1"]);
    chown(world.runs(), Some(61_001), Some(61_001)).unwrap();
    world.out(&["runs", "--prune", "0s", "--yes"]);
    assert_eq!(std::fs::metadata(world.runs().join("pruned.jsonl")).unwrap().uid(), 61_001);
}

/// A user may prune because the disk is full.
#[test]
fn a_full_disk_is_pruned_and_the_sums_stay() {
    let world = World::new();
    std::fs::create_dir(world.runs()).unwrap();
    let script = "mount -t tmpfs -o size=256k x runs && \"$0\" run -q true ::: 1 2 3 && \
                  { head -c 1M /dev/zero >runs/fill || true; } && \"$0\" runs --yes --prune 0s && \"$0\" usage";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_homing")]).current_dir(world.0.path());
    let output = command.env("HOMING_RUNS", "runs").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("No space left"), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = table.lines().last().unwrap().split_whitespace().take(3).collect();
    assert_eq!(words, ["true", "3", "0"], "{table}");
}

#[test]
fn a_journal_that_is_damaged_is_named_and_the_others_are_counted() {
    let world = World::new();
    world.out(&["run", "-q", "true", ":::", "1", "2"]);
    world.out(&["run", "-q", "true", ":::", "1", "2"]);
    let run = json(&world.out(&["runs", "--json"]))[0]["name"].as_str().unwrap().to_string();
    let journal = world.runs().join(&run).join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let lines =
        text.lines().map(|l| if l.contains("task_ended") { l.replace("\"exit\"", "\"exxt\"") } else { l.into() });
    std::fs::write(&journal, lines.collect::<Vec<String>>().join("\n") + "\n").unwrap();
    let output = world.homing(&["usage"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains(&format!("{run}/journal.jsonl is damaged")), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.lines().nth(1).unwrap().split_whitespace().take(2).collect::<Vec<_>>(), ["true", "2"], "{table}");
    let pipe = world.runs().join("pruned.jsonl");
    told(Command::new("mkfifo").arg(&pipe));
    // A word that names no folder is a mistake of the request.
    for (folder, status) in [(world.runs(), 254), ("/proc/self/mem".into(), 255)] {
        let none = world.homing(&["usage", folder.to_str().unwrap()]).output().unwrap();
        assert_eq!(none.status.code(), Some(status), "{}", String::from_utf8_lossy(&none.stderr));
    }
}
