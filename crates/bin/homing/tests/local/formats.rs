//! Compares docs/formats.md with the code. Every event, message and object has its row there, with the same fields in
//! the same order. No row is left over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

type Rows = BTreeMap<String, Vec<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Reads the table under `| HEAD | ... |`: its first cells, and the names in its last cells.
fn table(head: &str) -> Rows {
    let text = std::fs::read_to_string(root().join("docs/formats.md")).unwrap();
    let lines = text.lines().skip_while(|l| !l.starts_with(&format!("| {head} |"))).skip(2);
    let rows: Rows = lines.take_while(|l| l.starts_with('|')).map(row).collect();
    assert!(!rows.is_empty(), "no table {head}");
    rows
}

fn row(line: &str) -> (String, Vec<String>) {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let (name, mut fields, mut depth) = (codes(cells[0]).remove(0), String::new(), 0);
    for c in cells[cells.len() - 1].chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            // The rest is for people.
            ';' if depth == 0 => break,
            c if depth == 0 => fields.push(c),
            _ => {}
        }
    }
    (name, codes(&fields))
}

/// Returns the words between backticks.
fn codes(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(String::from).collect()
}

fn source(file: &str) -> Vec<syn::Item> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    syn::parse_file(&text).unwrap().items
}

/// Returns the fields that are written.
fn names(fields: &syn::Fields) -> Vec<String> {
    let skip =
        |a: &syn::Attribute| a.path().is_ident("serde") && a.parse_args::<syn::Ident>().is_ok_and(|i| i == "skip");
    let written = fields.iter().filter(|field| !field.attrs.iter().any(skip));
    written.filter_map(|f| f.ident.as_ref()).map(|i| i.to_string()).collect()
}

fn variants(file: &str, name: &str) -> Vec<(String, syn::Fields)> {
    let item = source(file).into_iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == name => Some(item.variants),
        _ => None,
    });
    item.unwrap_or_else(|| panic!("no {name}")).into_iter().map(|v| (v.ident.to_string(), v.fields)).collect()
}

fn object(file: &str, name: &str) -> Vec<String> {
    let item = source(file).into_iter().find_map(|item| match item {
        syn::Item::Struct(item) if item.ident == name => Some(names(&item.fields)),
        _ => None,
    });
    item.unwrap_or_else(|| panic!("no {name}"))
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

const EVENT: &str = "crates/ground/model/src/event.rs";
const TASK: &str = "crates/ground/model/src/task.rs";
const HOST: &str = "crates/ground/model/src/host.rs";
const WIRE: &str = "crates/reach/launch/src/wire/mod.rs";

#[test]
fn every_event_has_its_row() {
    let code: Rows = variants(EVENT, "EventKind").iter().map(|(name, fields)| (snake(name), names(fields))).collect();
    assert_eq!(code, table("event"));
}

#[test]
fn every_outcome_has_its_row() {
    let both = variants(TASK, "Outcome").into_iter().chain(variants(TASK, "IoWait"));
    let code: Vec<String> = both.map(|(name, _)| snake(&name)).collect();
    let told = table("outcome, io_wait");
    let told: Vec<&String> = told.keys().collect();
    let mut code: Vec<&String> = code.iter().collect();
    code.sort();
    assert_eq!(code, told);
}

#[test]
fn every_object_has_its_row() {
    let places = [
        (HOST, "HostFacts"),
        (HOST, "Mount"),
        (HOST, "HostSample"),
        (HOST, "ServerTraffic"),
        ("crates/ground/model/src/energy.rs", "Energy"),
        (EVENT, "PlannedBytes"),
        (TASK, "IoCounters"),
        (TASK, "Task"),
        ("crates/run/journal/src/holder.rs", "Holder"),
    ];
    let code: Rows = places.iter().map(|(file, name)| (name.to_string(), object(file, name))).collect();
    assert_eq!(code, table("object"));
}

#[test]
fn every_message_has_its_row() {
    for (name, head) in [("ToWorker", "to the worker"), ("FromWorker", "from the worker")] {
        let mut code: Rows = variants(WIRE, name).iter().map(|(name, fields)| (name.clone(), names(fields))).collect();
        // Messages that carry an object. The row names the fields of the object.
        for (message, file, object_of) in
            [("Ended", WIRE, "AttemptEnd"), ("Pulse", HOST, "StorageSample"), ("Sample", HOST, "HostSample")]
        {
            code.entry(message.into()).and_modify(|fields| *fields = object(file, object_of));
        }
        let mut told = table(head);
        told.entry("Sample".into()).and_modify(|fields| {
            assert_eq!(*fields, ["HostSample"]);
            *fields = object(HOST, "HostSample");
        });
        assert_eq!(code, told);
    }
}

#[test]
fn every_message_of_a_leader_has_its_row() {
    for (name, head) in [("ToLeader", "to the leader"), ("FromLeader", "from the leader")] {
        let code = variants("crates/reach/launch/src/wire/branch.rs", name);
        let code: Rows = code.iter().map(|(name, fields)| (name.clone(), names(fields))).collect();
        assert_eq!(code, table(head));
    }
}

/// Checks that the document has each field of `homing check --json` and each metric.
#[test]
fn fields_of_a_check_are_documented() {
    let state = tempfile::tempdir().unwrap();
    let homing = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(["check"]).args(args).env("XDG_STATE_HOME", state.path()).env_remove("HOMING_CLUSTER");
        command.current_dir(state.path()).output().unwrap()
    };
    let metrics = state.path().join("homing.prom");
    let done =
        homing(&["-w", "localhost", "--quick", "--only", "disks", "--json", "--prometheus", metrics.to_str().unwrap()]);
    let told = std::fs::read_to_string(root().join("docs/formats.md")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let keys = json.as_object().unwrap().keys().chain(json["hosts"][0].as_object().unwrap().keys());
    keys.for_each(|key| assert!(told.contains(&format!("`{key}")), "{key}"));
    let text = std::fs::read_to_string(metrics).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(names.len() == 6, "{text}");
    names.iter().for_each(|name| assert!(told.contains(&format!("`{name}`")), "{name}"));
}

#[test]
fn metrics_of_usage_are_documented() {
    let runs = tempfile::tempdir().unwrap();
    std::fs::write(runs.path().join("cluster.toml"), "[cost]\nhost_hour = 1.0\ncurrency = \"EUR\"\n").unwrap();
    let metrics = runs.path().join("homing.prom");
    let usage = ["usage", "--by", "host", "--cluster", "cluster.toml", "--prometheus", metrics.to_str().unwrap()];
    for args in [&["run", "-q", "true", ":::", "1"][..], &usage] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(args).env("HOMING_RUNS", runs.path()).env_remove("HOMING_CLUSTER").current_dir(runs.path());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let text = std::fs::read_to_string(&metrics).unwrap();
    let told = std::fs::read_to_string(root().join("docs/formats.md")).unwrap();
    let told: BTreeSet<&str> = told.split('`').filter(|word| word.starts_with("homing_usage_")).collect();
    let names = text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next());
    assert_eq!(names.collect::<BTreeSet<_>>(), told);
    assert!(text.contains("homing_usage_attempts_total{host=\"") && text.contains("currency=\"EUR\""), "{text}");
}

/// Compares the keys that the program prints with those of the table.
#[test]
fn json_outputs_have_the_documented_fields() {
    let runs = tempfile::tempdir().unwrap();
    let homing = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        let done = command.args(args).env("HOMING_RUNS", runs.path()).current_dir(runs.path()).output().unwrap();
        assert!(done.status.success(), "homing {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap_or(serde_json::Value::Null)
    };
    homing(&["run", "true", ":::", "1"]);
    let (told, members) = (table("command"), table("member"));
    let keys = |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let list = homing(&["runs", "--json"]);
    let report = homing(&["report", "last", "--json"]);
    let usage = homing(&["usage", "--json"]);
    let hosts = homing(&["hosts", "--json"]);
    let top = homing(&["top", "last", "--json"]);
    for (command, found) in [
        ("homing runs", keys(&list[0])),
        ("homing report", keys(&report)),
        ("homing usage", keys(&usage["rows"][0])),
        ("homing hosts", keys(&hosts["hosts"][0])),
        ("homing top", keys(&top)),
    ] {
        // The version of each document is documented above the table.
        let beside = ["exit", "ended_ns", "version"];
        let mut found: Vec<String> = found.into_iter().filter(|k| !beside.contains(&k.as_str())).collect();
        let told = told[command].iter().filter(|k| *k != "exit");
        let mut told: Vec<String> = told.map(|key| key.trim_end_matches("[]").into()).collect();
        found.sort();
        told.sort();
        assert_eq!(found, told, "{command}");
    }
    for member in ["tasks", "measured", "amplification"] {
        let (mut found, mut told) = (keys(&report[member]), members[member].clone());
        found.sort();
        told.sort();
        assert_eq!(found, told, "{member}");
    }
}

/// Compares the head of `homing hosts` with the example in the manual. `json_outputs_have_the_documented_fields`
/// compares its members with docs/formats.md.
#[test]
fn the_example_of_hosts_has_all_columns() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    let done = command.arg("hosts").env("HOMING_RUNS", folder.path()).current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    // Only hosts with graphics processors have that column.
    let head: Vec<&str> = printed.lines().next().unwrap().split_whitespace().filter(|name| *name != "gpus").collect();
    let page = std::fs::read_to_string(root().join("docs/manual/install.md")).unwrap();
    let example = page.lines().find(|line| line.starts_with("    HOST_NAME")).unwrap();
    assert_eq!(example.split_whitespace().collect::<Vec<_>>(), head, "the example in docs/manual/install.md");
}
