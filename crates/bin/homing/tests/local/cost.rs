//! The cost of runs: hosts, and energy, measured by a simulated meter, by a model, or not at all. Also compares
//! clusters of several sizes side by side.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

struct World(tempfile::TempDir);

impl World {
    /// Makes a world with these lines in its cluster file.
    fn new(cluster: &str) -> World {
        let world = World(tempfile::tempdir().unwrap());
        fs::write(world.path("cluster.toml"), cluster).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn homing(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("HOMING_RUNS", self.path("runs"))
            .env_remove("HOMING_CLUSTER");
        command.output().unwrap()
    }

    fn out(&self, args: &[&str]) -> String {
        let output = self.homing(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.out(args)).unwrap()
    }

    /// Makes a run of ten tasks on these hosts of two slots. It took so many seconds and joules on each host. All
    /// processors were busy, with these tasks.
    fn past_run(&self, name: &str, hosts: &[&str], seconds: u64, joules: Option<u64>) {
        let at = |s: u64| 1_000_000_000 * (s as i64 + 1_767_268_800);
        let us = |s: u64| s * 1_000_000;
        let mut events = vec![json!({
            "at_ns": at(0), "event": "run_started", "v": 1, "run": name, "argv": ["homing", "run", "x"], "cwd": "/",
            "host": "h", "pid": 1, "tasks": 10,
        })];
        let sample = |host: &str, s: u64| {
            let mut sample = json!({ "at_ns": at(s), "cpu_total_us": us(s * 2), "cpu_idle_us": 0, "net": {} });
            if let Some(joules) = joules.filter(|_| s > 0) {
                sample["energy"] = json!({ "uj": us(joules), "us": us(s), "by": "meter" });
            }
            json!({ "at_ns": at(s), "event": "sample", "host": host, "sample": sample })
        };
        for host in hosts {
            let facts = json!({
                "hostname": host, "aliases": [], "cores": 2, "memory_bytes": 1, "arch": "x", "boot_id": "b",
                "mounts": [], "now_ns": 0,
            });
            events.push(json!({ "at_ns": at(0), "event": "host_up", "host": host, "slots": 2, "facts": facts }));
            events.push(sample(host, 0));
        }
        for task in 1..=10 {
            let host = hosts[task % hosts.len()];
            let held_us = us(seconds) * 2 * hosts.len() as u64 / 10;
            let io = json!({ "read_bytes": 0, "write_bytes": 0, "user_us": held_us, "sys_us": 0, "max_rss": 1 });
            events.push(json!({
                "at_ns": at(0), "event": "task_started", "task": task, "attempt": 1, "host": host, "slot": 1, "command": "x",
            }));
            events.push(json!({
                "at_ns": at(seconds), "event": "task_ended", "task": task, "attempt": 1, "host": host,
                "outcome": { "exit": 0 }, "start_ns": at(0), "wall_us": held_us, "io": io, "stdout_bytes": 0,
                "stderr_bytes": 0, "last": true,
            }));
        }
        events.extend(hosts.iter().map(|host| sample(host, seconds)));
        events.push(json!({ "at_ns": at(seconds), "event": "run_ended", "exit": 0, "counts": { "done": 10 } }));
        let folder = self.path("runs").join(name);
        fs::create_dir_all(&folder).unwrap();
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        fs::write(folder.join("journal.jsonl"), lines).unwrap();
    }
}

const PRICES: &str = "[cost]\ncurrency = \"EUR\"\nhost_price = 8766\nhost_years = 1\nkwh = 0.5\n";

#[test]
fn a_run_is_measured_by_the_meter_of_the_site() {
    let world = World::new(&format!("{PRICES}[power]\nmeter = \"echo 'Instantaneous power reading: 200 Watts'\"\n"));
    // A task that lasts until the journal has a measured sample.
    let wait = "true {}; until grep -q '\"by\":\"meter\"' runs/*/journal.jsonl; do sleep 0.05; done";
    world.out(&["run", "-q", "-j1", wait, ":::", "1"]);
    let cost = &world.json(&["report", "last", "--cost", "--json"])["cost"];
    let (held_us, energy) = (cost["held_us"].as_u64().unwrap(), &cost["energy"]);
    let host = energy["measured"]["meter"][0].as_str().unwrap();
    let (least, most) = (energy["least_j"].as_f64().unwrap(), energy["most_j"].as_f64().unwrap());
    // The energy counts from before the first sample.
    assert!(least <= most && most >= held_us as f64 / 1e6 * 200.0 * 0.9, "{cost}");
    assert!((cost["energy_amount"][1].as_f64().unwrap() - most / 3.6e6 * 0.5).abs() < 1e-9, "{cost}");
    let told = world.out(&["report", "last", "--cost"]);
    assert!(
        told.contains(&format!(": the meter of [power] on {host}\n")) && told.contains("EUR at 0.5 a kWh\n"),
        "{told}"
    );
    let usage = world.json(&["usage", "--json", "--by", "host"]);
    assert_eq!((&usage["rows"][0]["energy"], &usage["all"]["energy"]), (energy, energy));
    // The energy outlives the run.
    world.out(&["runs", "--prune", "0s", "--yes"]);
    assert_eq!(world.json(&["usage", "--json", "--by", "host"]), usage);
}

#[test]
fn a_meter_that_tells_rubbish_is_named_and_nothing_is_invented() {
    let world = World::new("[power]\nmeter = \"echo many\"\n");
    let wait = "true {}; until grep -q meter said; do sleep 0.05; done";
    let run = Command::new("sh")
        .args(["-c", "\"$0\" run -j1 \"$1\" ::: 1 2> said", env!("CARGO_BIN_EXE_homing"), wait])
        .current_dir(world.0.path())
        .env("HOMING_RUNS", world.path("runs"))
        .env_remove("HOMING_CLUSTER")
        .status();
    assert!(run.unwrap().success());
    let said = fs::read_to_string(world.path("said")).unwrap();
    assert!(said.contains("the meter of [power] is not used on this host: \"echo many\" printed \"many\""), "{said}");
    let told = world.out(&["report", "last", "--cost"]);
    assert!(!told.contains("EUR") && told.contains("[cost] has no price of a host\n"), "{told}");
    assert!(!told.contains("the meter of [power] on"), "{told}");
}

#[test]
fn without_a_meter_there_is_a_model_or_nothing() {
    let world = World::new(PRICES);
    world.past_run("r1", &["n1"], 3600, None);
    let lines = |world: &World| {
        world.out(&["report", "r1", "--cost"]).lines().rev().take(3).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(lines(&world)[0], "energy     not measured on n1");
    fs::write(world.path("cluster.toml"), format!("{PRICES}[power]\nidle_w = 100\n[host.n1]\nfull_w = 300\n")).unwrap();
    assert_eq!(
        lines(&world),
        [
            "power      0.15 EUR at 0.5 a kWh",
            "energy     300 Wh: a model on n1, 100 to 300 W each",
            "cost       1.00 EUR: 1 h 00 min of host time at 1 an hour; 1.00 for the 1 h 00 min for which hosts were held",
        ]
    );
    let table = world.out(&["usage", "--cost"]);
    assert!(
        table.contains("ENERGY  EUR POWER\n") && table.ends_with("energy: a model on n1, 100 to 300 W each\n"),
        "{table}"
    );
    assert!(table.lines().nth(1).unwrap().ends_with("  300 Wh       0.15"), "{table}");
    assert!(!world.out(&["usage"]).contains("ENERGY"));
}

#[test]
fn clusters_of_several_sizes_stand_side_by_side() {
    let world = World::new(PRICES);
    world.past_run("r1", &["n1"], 7200, Some(720_000));
    world.past_run("r2", &["n1", "n2"], 3700, Some(360_000));
    world.past_run("r3", &["n1", "n2"], 3500, Some(360_000));
    assert_eq!(
        world.out(&["report", "--cost", "r2", "r1", "r3"]),
        "HOSTS  SLOTS  RUNS  TASKS        TIME  SPEED   HOST TIME        HELD  ENERGY  EUR USED  EUR HELD  EUR POWER\n    \
         1      2     1     10  2 h 00 min   1.00  2 h 00 min  2 h 00 min  200 Wh      2.00      2.00       0.10\n    \
         2      4     2     10  1 h 00 min   2.00  2 h 00 min  2 h 00 min  200 Wh      2.00      2.00       0.10\n\
         energy: the meter of [power] on n[1-2]\n"
    );
    let sizes = world.json(&["report", "--cost", "--json", "r2", "r1", "r3"]);
    let two = &sizes["sizes"][1];
    assert_eq!(
        (&two["hosts"], &two["runs"], &two["wall_us"]),
        (&json!(2), &json!(["r2", "r3"]), &json!(3_600_000_000_u64))
    );
    assert_eq!((&two["cost"]["amount"], &two["cost"]["energy"]["most_j"]), (&json!(2.0), &json!(720_000.0)));
    let alone = world.homing(&["report", "r1", "r2"]);
    assert!(alone.status.success() && String::from_utf8_lossy(&alone.stdout).contains("hosts, slots"));
    let page = world.homing(&["report", "--cost", "--html", "page.html", "r1", "r2"]);
    assert!(page.status.code() == Some(255) && !world.path("page.html").exists(), "one page of several runs");
}
