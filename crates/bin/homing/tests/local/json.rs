//! Each command with `--json` prints documents with a version, and has its row here.

use crate::world::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The evidence that a command's documents have a version.
enum Shown {
    /// Runs the command in a world with one run, one job queue and one folder `from`.
    By(&'static [&'static str]),
    /// Names the file that makes the document of a command that needs hosts or root.
    In(&'static str),
}

use Shown::{By, In};

const ROWS: &[(&str, Shown)] = &[
    ("run", By(&["run", "--json=out.json", "true", ":::", "1"])),
    ("plan", By(&["plan", "--json", "cat", ":::", "from/a"])),
    ("where", By(&["where", "--json", "from"])),
    ("runs", By(&["runs", "--json"])),
    ("report", By(&["report", "--json"])),
    ("report", By(&["report", "--failed", "--json"])),
    ("report", By(&["report", "failed", "last", "--json"])),
    ("report", By(&["report", "--cost", "--json"])),
    ("report", By(&["report", "--cost", "--json", "failed", "last"])),
    ("top", By(&["top", "last", "--json"])),
    ("top", In("crates/bin/homing/src/cmd/top/cluster.rs")),
    ("top", In("crates/run/watch/src/past.rs")),
    ("usage", By(&["usage", "--json"])),
    ("advise", By(&["advise", "--json"])),
    ("jobs", By(&["jobs", "--all", "--json"])),
    ("hosts", In("crates/bin/homing/src/cmd/hosts.rs")),
    ("hosts", In("crates/run/watch/src/history/table.rs")),
    ("exec", By(&["exec", "-w", "localhost", "--json", "true"])),
    ("exec", By(&["exec", "-w", "localhost", "--dry-run", "--json", "true"])),
    ("push", In("crates/bin/homing/src/cmd/copy/output.rs")),
    ("pull", In("crates/bin/homing/src/cmd/copy/output.rs")),
    ("nodeset", By(&["nodeset", "--json", "n[1-3]"])),
    ("nodeset", By(&["nodeset", "--json", "-l"])),
    ("up", In("crates/bin/homing/src/cmd/up/show.rs")),
    ("check", In("crates/admin/check/src/report.rs")),
    ("volume list", In("crates/bin/homing/src/cmd/volume/show.rs")),
    ("volume status", In("crates/bin/homing/src/cmd/volume/show.rs")),
    ("volume balance-report", In("crates/bin/homing/src/cmd/volume/show.rs")),
    ("snapshot", In("crates/admin/snapshot/src/output.rs")),
    ("snapshot list", In("crates/admin/snapshot/src/output.rs")),
    ("snapshot diff", In("crates/admin/snapshot/src/output.rs")),
    ("bench volume", In("crates/bin/homing/src/cmd/bench/mod.rs")),
    ("bench net", In("crates/admin/bench/src/net/show.rs")),
    ("tune net", In("crates/admin/bench/src/net/tune/show.rs")),
    ("tune net", In("crates/bin/homing/src/cmd/tune/mod.rs")),
    ("topology", In("crates/admin/bench/src/topology/show.rs")),
    ("power status", In("crates/admin/power/src/words.rs")),
    ("cache install", In("crates/admin/relay/src/came.rs")),
    ("cache update", In("crates/admin/relay/src/came.rs")),
    ("lab status", In("crates/bin/homing/src/cmd/lab/show.rs")),
    ("lab list", By(&["lab", "list", "--json"])),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Returns the commands whose reference has `--json`, but `plan`, which has the options of `run`.
fn commands() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("docs/reference.md")).unwrap();
    let sections = text.split("\n## homing ").skip(1).filter(|section| {
        section.lines().any(|line| line.trim_start().trim_start_matches("-n, ").starts_with("--json"))
    });
    sections.map(|section| section.lines().next().unwrap().to_string()).collect()
}

#[test]
fn each_command_with_json_has_a_row() {
    let rows: BTreeSet<String> = ROWS.iter().map(|(name, _)| name.to_string()).filter(|name| name != "plan").collect();
    assert_eq!(rows, commands());
}

#[test]
fn each_document_has_the_version() {
    let world = World::new();
    std::fs::create_dir(world.path().join("from")).unwrap();
    std::fs::write(world.path().join("from/a"), "a").unwrap();
    std::fs::write(world.path().join("cluster.toml"), "[groups]\na = \"n1\"\n").unwrap();
    world.homing(&["run", "--name", "failed", "false", ":::", "1"]);
    for (name, shown) in ROWS {
        let args = match shown {
            By(args) => args,
            In(file) => {
                let text = std::fs::read_to_string(root().join(file)).unwrap();
                assert!(text.contains("document::"), "homing {name}: {file} adds no version");
                continue;
            }
        };
        let mut command = world.command(args);
        let output =
            command.env("HOMING_QUEUE", world.path().join("queue")).env("HOME", world.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let file = args.iter().find_map(|arg| arg.strip_prefix("--json="));
        let text = file.map_or(output.stdout, |file| std::fs::read(world.path().join(file)).unwrap());
        let document: Value = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{args:?}: {e}"));
        let objects = document.as_array().cloned().unwrap_or_else(|| vec![document]);
        assert!(objects.iter().all(|object| object["version"] == 1), "{args:?}: {objects:?}");
    }
}
