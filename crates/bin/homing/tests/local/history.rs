//! Samples by the minute. They are kept, the sampler is killed while it writes, and a timer keeps them.

use crate::world::World;
use homing_model::HostSample;
use homing_watch::history::{Ring, SLOTS, SampleRecord};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

const MINUTE_NS: i64 = 60_000_000_000;

fn command(world: &World, args: &[&str]) -> Command {
    of_world(world, world.command(&[&["hosts"], args].concat()))
}

fn of_world(world: &World, mut command: Command) -> Command {
    command.env("HOME", world.path()).env("XDG_STATE_HOME", world.path().join("state"));
    command.env("XDG_CONFIG_HOME", world.path().join("config")).env("XDG_RUNTIME_DIR", world.path());
    command
}

fn homing(world: &World, args: &[&str]) -> Output {
    command(world, args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Takes one sample and returns the file of this host.
fn ring(world: &World) -> PathBuf {
    assert!(homing(world, &["--sample"]).status.success());
    let folder = world.path().join("state/homing/history");
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).next().unwrap()
}

fn records(ring: &std::path::Path) -> Vec<SampleRecord> {
    Ring::open_to_read(ring).unwrap().unwrap().records().unwrap()
}

#[test]
fn what_was_kept_is_shown_as_rates_over_steps() {
    let world = World::new();
    let none = homing(&world, &["--history"]);
    assert!(said(&none).contains("this host has no recorded history"), "{}", said(&none));
    let path = ring(&world);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let first = records(&path).remove(0);
    fs::remove_file(&path).unwrap();
    let kept = Ring::open(&path, SLOTS).unwrap().unwrap();
    let calls = |at_ns, calls| HostSample { at_ns, nfsd_calls: Some(calls), ..HostSample::default() };
    // The samples are from two and a half hours ago, and two.
    for (minutes, sum) in [(150, 1000), (120, 1000 + 3600)] {
        let sample = calls(first.sample.at_ns - minutes * MINUTE_NS, sum);
        kept.add(&SampleRecord { boot: first.boot, sample, ..SampleRecord::default() }).unwrap();
    }
    drop(kept);
    assert!(homing(&world, &["--sample"]).status.success());
    let done = homing(&world, &["--history", "1d", "--json"]);
    let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&done)));
    let steps = told["hosts"][0]["steps"].as_array().unwrap();
    assert_eq!((steps.len(), steps[0]["rpc_per_s"].as_f64()), (2, Some(2.0)), "{told}");
    assert!(steps[1]["over_s"].as_f64().unwrap() >= 7200.0 && steps[1]["r1m"].is_number(), "{told}");
    let table = homing(&world, &["--history", "1d"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.starts_with("TIME") && table.lines().count() == 3, "{table}");
    // The same history, in the form for other hosts. The manual of formats must have its fields.
    let lines = homing(&world, &["--lines", "--history=86400s"]);
    assert_eq!(String::from_utf8_lossy(&lines.stdout).lines().count(), 3, "{}", said(&lines));
    let formats = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats.md")).unwrap();
    let row = formats.lines().find(|line| line.starts_with("| `homing hosts --history` |")).unwrap();
    steps[0].as_object().unwrap().keys().for_each(|key| assert!(row.contains(&format!("`{key}`")), "{key}"));
}

/// Writes a ring of this host with these samples. Each is some minutes before now, as if a timer had kept it.
fn kept(world: &World, samples: impl Iterator<Item = (i64, HostSample)>) {
    let path = ring(world);
    let first = records(&path).remove(0);
    fs::remove_file(&path).unwrap();
    let ring = Ring::open(&path, SLOTS).unwrap().unwrap();
    for (minutes, sample) in samples {
        let sample = HostSample { at_ns: first.sample.at_ns - minutes * MINUTE_NS, ..sample };
        ring.add(&SampleRecord { boot: first.boot, sample, ..SampleRecord::default() }).unwrap();
    }
}

/// Runs a command of the program, with the state of this world and itself in PATH.
fn program(world: &World, args: &[&str]) -> Output {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_homing")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    of_world(world, world.command(args)).env("PATH", path).output().unwrap()
}

#[test]
fn top_shows_hosts_as_they_were() {
    let world = World::new();
    // Yesterday two processors were half busy for an hour around this time. Then there were no samples.
    let busy = |minutes: i64| {
        let passed_us = (2000 - minutes) as u64 * 60_000_000;
        let (cpu_total_us, cpu_idle_us) = (Some(2 * passed_us), Some(passed_us));
        (minutes, HostSample { cpu_total_us, cpu_idle_us, mem_available: Some(3 << 30), ..HostSample::default() })
    };
    kept(&world, (1410..=1470).rev().map(busy));
    let table = program(&world, &["top", "--all", "--since", "1d", "--once"]);
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.status.success() && text.contains("24:00 h ago"), "{}", said(&table));
    let row: Vec<&str> = text.lines().last().unwrap().split_whitespace().skip(1).take(5).collect();
    assert_eq!(row, ["2", "50", "%", "-", "3.2"], "{text}");
    let lines = program(&world, &["top", "--all", "--since", "1d", "--json"]);
    let lines: Vec<Value> =
        lines.stdout.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
    assert_eq!(lines.len(), 24 * 60 + 1);
    let first = &lines[0]["hosts"][0];
    assert_eq!(
        (first["ut"].as_f64(), first["cores"].as_u64(), first["mem_mib"].as_f64()),
        (Some(50.0), Some(2), Some(3072.0))
    );
    let last = &lines[24 * 60]["hosts"][0];
    assert!(last["ut"].is_null() && last["unknown"].as_str().unwrap().starts_with("no samples since "), "{last}");
    let formats = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats.md")).unwrap();
    let row = formats.lines().find(|line| line.starts_with("| `homing top --since`")).unwrap();
    first.as_object().unwrap().keys().for_each(|key| assert!(row.contains(&format!("`{key}`")), "{key}"));
    // Live hosts cannot be replayed.
    assert_eq!(program(&world, &["top", "--all", "--replay", "60"]).status.code(), Some(255));
    let bare = World::new();
    let none = program(&bare, &["top", "--since", "1d"]);
    assert!(
        none.status.code() == Some(254)
            && said(&none).contains("this host has no recorded history; try: homing hosts --schedule"),
        "{}",
        said(&none)
    );
}

#[test]
fn what_a_host_says_does_not_move_the_cursor() {
    let world = World::new();
    let ssh = world.path().join("ssh");
    crate::script::script(&ssh, "printf '\\033[2Jgone' >&2; exit 3");
    let mut asked = command(&world, &["-w", "far", "--history"]);
    let told = asked.env("HOMING_SSH", &ssh).output().unwrap();
    assert!(said(&told).contains("gone") && !said(&told).contains('\u{1b}'), "{:?}", said(&told));
}

#[test]
fn check_tells_of_disks_for_which_tasks_wait_longer_than_before() {
    for (day_us, code) in [(150, 0), (2000, 1)] {
        let world = World::new();
        // The samples are a week by the hour, with as many requests in each.
        let mut sum_us = 0;
        let hours = (0..=168).rev().map(|back: i64| {
            sum_us += 1_000_000 * if back < 24 { day_us } else { 100 };
            let requests = Some((168 - back) as u64 * 1_000_000);
            let sample = HostSample { io_some_us: Some(sum_us), disk_requests: requests, ..HostSample::default() };
            (60 * back, HostSample { disk_blocks: requests, ..sample })
        });
        kept(&world, hours);
        let checked = program(&world, &["check", "-w", "localhost", "--only", "disks", "--json", "--deadline", "60"]);
        let found = said(&checked).matches("HC-DISK-14").count().min(1);
        assert_eq!(found, code, "{}", said(&checked));
    }
}

#[test]
fn samplers_that_are_killed_leave_a_file_that_is_read_and_bounded() {
    let world = World::new();
    let path = ring(&world);
    for _ in 0..20 {
        // The kill comes at any moment: before, in or after the record.
        let mut sampler = command(&world, &["--sample"]).spawn().unwrap();
        sampler.kill().unwrap();
        sampler.wait().unwrap();
        assert!(!records(&path).is_empty());
    }
    let before = records(&path).len();
    assert!(homing(&world, &["--sample"]).status.success());
    assert_eq!(records(&path).len(), before + 1);
    assert!(path.metadata().unwrap().len() <= (u64::from(SLOTS) + 1) * 128);
}

#[test]
fn a_timer_is_set_and_taken_away_and_a_unit_of_somebody_else_is_left_alone() {
    let world = World::new();
    let bin = world.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let log = world.path().join("log");
    crate::script::script(&bin.join("systemctl"), &format!("echo \"$*\" >> {}", log.display()));
    crate::script::script(&bin.join("loginctl"), "echo no");
    let schedule = |more: &[&str]| {
        let mut command = command(&world, &[&["--schedule", "--yes"], more].concat());
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("HOMING_SYSTEMD", world.path()).output().unwrap()
    };
    let set = schedule(&[]);
    assert!(set.status.success() && said(&set).contains("loginctl enable-linger"), "{}", said(&set));
    let units = world.path().join("config/systemd/user");
    let service = fs::read_to_string(units.join("homing-history.service")).unwrap();
    assert!(service.contains(&format!("ExecStart=\"{}\" hosts --sample\n", env!("CARGO_BIN_EXE_homing"))), "{service}");
    let calls = fs::read_to_string(&log).unwrap();
    for call in ["--user daemon-reload", "--user enable homing-history.timer", "--user restart homing-history.timer"] {
        assert!(calls.contains(call), "{call}: {calls}");
    }
    assert!(schedule(&[]).status.success(), "again");
    let gone = schedule(&["--undo"]);
    assert!(gone.status.success(), "{}", said(&gone));
    assert_eq!(fs::read_dir(&units).unwrap().count(), 0);
    assert!(fs::read_to_string(&log).unwrap().contains("--user disable --now homing-history.timer"));
    assert!(schedule(&["--undo"]).status.success(), "there is nothing left to be undone");
    fs::write(units.join("homing-history.timer"), "[Timer]\nOnCalendar=daily\n").unwrap();
    for words in [&[][..], &["--undo"]] {
        let refused = schedule(words);
        assert!(
            refused.status.code() == Some(254) && said(&refused).contains("was left as it is"),
            "{}",
            said(&refused)
        );
    }
    assert!(fs::read_to_string(units.join("homing-history.timer")).unwrap().contains("daily"));
}
