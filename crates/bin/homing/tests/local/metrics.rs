//! The files for Prometheus: real parsers read them, the manual of formats lists them, and the dashboard shows them.

use crate::world::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name)).unwrap()
}

/// Makes a cluster file with a server whose name would end a label, and a vault.
fn world() -> World {
    let world = World::new();
    let folder = |name: &str| {
        let path = world.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path.display().to_string()
    };
    folder("bank/v\"1");
    let text = format!(
        "[cost]\nhost_hour = 1.0\ncurrency = \"EUR\"\n[server.'n\"a}}s \\ 1']\nio = 4\nleases = '{}'\n\
         [snapshot.'v\"1']\nsource = '{}'\nbank = 'localhost:{}'\n",
        folder("leases"),
        folder("source"),
        folder("bank")
    );
    fs::write(world.path().join("cluster.toml"), text).unwrap();
    world
}

fn homing(world: &World, args: &[&str]) -> Output {
    let mut command = world.command(args);
    command.env("HOMING_CLUSTER", "cluster.toml").env("HOMING_ENGINE", "local");
    command.env("HOMING_QUEUE", world.path().join("queue")).env("XDG_STATE_HOME", world.path().join("state"));
    command.output().unwrap()
}

/// Returns the file that a command has written, whatever its exit status.
fn written(world: &World, args: &[&str], name: &str) -> (PathBuf, String) {
    let done = homing(world, &[args, &["--prometheus", name]].concat());
    let file = world.path().join(name);
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&done.stderr)));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    (file, text)
}

/// Returns all files that homing writes for Prometheus.
fn all(world: &World) -> Vec<(PathBuf, String)> {
    let run = homing(world, &["run", "-q", "true", ":::", "1"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let hosts = written(world, &["hosts"], "hosts.prom");
    let check = written(world, &["check", "--only", "volumes"], "check.prom");
    let usage = written(world, &["usage", "--by", "host"], "usage.prom");
    vec![hosts, check, usage]
}

fn families(text: &str) -> BTreeSet<&str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

#[test]
fn parsers_of_prometheus_read_every_file() {
    let world = world();
    for (file, text) in all(&world) {
        let here = || Stdio::from(fs::File::open(&file).unwrap());
        match Command::new("promtool").args(["check", "metrics"]).stdin(here()).output() {
            Ok(said) => assert!(said.status.success() && said.stderr.is_empty(), "{said:?}\n{text}"),
            Err(e) => eprintln!("left out: promtool cannot be asked ({e})"),
        }
        let script = "import sys\nfrom prometheus_client.parser import text_string_to_metric_families as read\n\
                      for f in read(sys.stdin.read()):\n for s in f.samples: print(s.name, list(s.labels.values()))";
        let said = Command::new("python3").args(["-c", script]).stdin(here()).output();
        match said {
            Ok(said) if said.status.success() => {
                let samples = text.lines().filter(|line| !line.starts_with('#')).count();
                let read = String::from_utf8(said.stdout).unwrap();
                assert_eq!(read.lines().count(), samples, "{text}\n{read}");
                let hostile = file.ends_with("hosts.prom");
                assert!(!hostile || read.contains(r#"homing_server_limit_tasks ['n"a}s \\ 1', 'homing']"#), "{read}");
            }
            why => eprintln!("left out: python3-prometheus-client is not here ({why:?})"),
        }
    }
}

#[test]
fn names_are_by_the_conventions_and_each_is_told_and_in_one_file_alone() {
    let world = world();
    let told = document("docs/formats.md");
    let mut seen = BTreeSet::new();
    for (file, text) in all(&world) {
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, kind) = line.split_once(' ').unwrap();
            assert!(name.starts_with("homing_"), "{name}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            assert!(told.contains(&format!("`{name}`")), "docs/formats.md does not tell of {name}");
            // Several commands may write the sums of runs. Only one command writes hosts, and only one the check.
            let new = seen.insert(name.to_string());
            assert!(new || name.starts_with("homing_usage_"), "{name} is in {} too", file.display());
        }
    }
}

#[test]
fn a_check_writes_no_zero_for_faults_that_it_did_not_look_for() {
    let world = world();
    let codes = |args: &[&str]| {
        let (_, text) = written(&world, args, "check.prom");
        let code =
            |line: &str| Some(line.strip_prefix("homing_check_findings{code=\"HC-")?.split('-').next()?.to_string());
        text.lines().filter_map(code).collect::<BTreeSet<String>>()
    };
    assert_eq!(codes(&["check", "--only", "volumes"]), ["VOL".to_string()].into());
    let quick = codes(&["check", "--only", "volumes,disks", "--quick"]);
    assert!(quick.contains("DISK") && !quick.contains("CLOCK"), "{quick:?}");
    let (_, text) = written(&world, &["check", "--quick", "--only", "volumes"], "check.prom");
    assert!(!text.contains("HC-VOL-03"), "a quick check looks at no volume: {text}");
}

#[test]
fn the_queue_is_told_with_its_slots_and_an_unreadable_part_is_said() {
    let world = world();
    for after in [&[][..], &["--after", "1"], &["--after", "1"]] {
        let sub = homing(&world, &[&["sub"], after, &["sleep 1000"]].concat());
        assert!(sub.status.success(), "{}", String::from_utf8_lossy(&sub.stderr));
    }
    let (_, text) = written(&world, &["hosts"], "hosts.prom");
    let line = |text: &str| text.to_string() + "\n";
    assert!(text.contains(&line("homing_queue_jobs{queue=\"normal\",state=\"waiting\"} 2")), "{text}");
    assert!(text.contains(&line("homing_hosts_told{part=\"queue\"} 1")), "{text}");
    assert!(!text.contains("homing_queue_longest_wait_seconds{queue=\"normal\"} 0\n"), "{text}");
    homing(&world, &["kill", "1", "2", "3"]);
    // The folder of runs is a file here.
    fs::write(world.path().join("file"), "").unwrap();
    let mut command = world.command(&["hosts", "--prometheus", "hosts.prom"]);
    let done = command.env("HOMING_RUNS", world.path().join("file")).env("HOMING_ENGINE", "local");
    let done = done.env("HOMING_QUEUE", world.path().join("queue")).output().unwrap();
    assert!(done.status.success() && String::from_utf8_lossy(&done.stderr).contains("no metrics of runs"));
    let text = fs::read_to_string(world.path().join("hosts.prom")).unwrap();
    assert!(text.contains(&line("homing_hosts_told{part=\"runs\"} 0")) && !text.contains("homing_usage_"), "{text}");
}

#[test]
fn runs_of_several_folders_are_added_up_and_one_that_cannot_be_read_leaves_none() {
    let world = world();
    for folder in ["a", "b"] {
        let mut run = world.command(&["run", "-q", "true", ":::", "1", "2"]);
        assert!(run.env("HOMING_RUNS", world.path().join(folder)).status().unwrap().success());
    }
    let sums = |args: &[&str]| {
        let (_, text) = written(&world, &[&["hosts", "--runs"], args].concat(), "hosts.prom");
        let sum = text.lines().find(|line| line.starts_with("homing_usage_attempts_total{"));
        sum.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    // A user without runs: the shell leaves a pattern that matches nothing.
    assert_eq!(sums(&["a", "b", "none/*"]), Some(4));
    fs::write(world.path().join("file"), "").unwrap();
    assert_eq!(sums(&["a", "file"]), None);
}

/// Returns the queries of all panels of a dashboard, also those in rows.
fn queries(panels: &Value) -> Vec<String> {
    let of = |panel: &Value| {
        let targets = panel["targets"].as_array().into_iter().flatten();
        let own = targets.map(|target| target["expr"].as_str().unwrap().to_string());
        own.chain(queries(&panel["panels"])).collect::<Vec<_>>()
    };
    panels.as_array().into_iter().flatten().flat_map(of).collect()
}

/// Checks the queries with promtool, as rules.
fn understood(world: &World, queries: &[String]) {
    let rule = |query: &String| format!("  - record: r\n    expr: '{}'\n", query.replace("$__rate_interval", "5m"));
    let rules: String = queries.iter().map(rule).collect();
    let file = world.path().join("rules.yml");
    fs::write(&file, format!("groups:\n- name: dashboard\n  rules:\n{rules}")).unwrap();
    match Command::new("promtool").args(["check", "rules", "--lint=none"]).arg(&file).output() {
        Ok(said) => assert!(said.status.success(), "{said:?}"),
        Err(e) => eprintln!("left out: promtool cannot be asked ({e})"),
    }
}

#[test]
fn the_dashboard_asks_for_what_is_written() {
    let world = world();
    let files = all(&world);
    let written: BTreeSet<&str> = files.iter().flat_map(|(_, text)| families(text)).collect();
    let dashboard: Value = serde_json::from_str(&document("dist/grafana.json")).unwrap();
    let queries = queries(&dashboard["panels"]);
    assert!(queries.len() > 10, "{queries:?}");
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    for query in &queries {
        let names: Vec<&str> = query.split(word).filter(|name| name.starts_with("homing_")).collect();
        assert!(!names.is_empty(), "{query}");
        names.iter().for_each(|name| assert!(written.contains(name), "{name} in {query}"));
        // A panel shows the rate of a metric that only grows.
        let grows = names.iter().any(|name| name.ends_with("_total"));
        assert_eq!(grows, query.contains("rate(") || query.contains("increase("), "{query}");
    }
    understood(&world, &queries);
    let areas = ["host", "queue", "server", "runs", "usage", "volume", "check", "snapshot"];
    let shown = |area: &str| queries.iter().any(|query| query.contains(&format!("homing_{area}_")));
    areas.iter().for_each(|area| assert!(shown(area), "no panel of homing_{area}_"));
}
