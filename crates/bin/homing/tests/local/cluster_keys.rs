//! docs/cluster-keys.md has every key of a cluster file: its tables are made from the types that read the file.

use std::path::{Path, PathBuf};

/// Sections, and the type that reads each: the package, its file and the type.
const SECTIONS: &[(&str, &str, &str, &str)] = &[
    ("At the top", "cluster", "file.rs", "ClusterFile"),
    ("`[host.NAME]`, also `[host.\"n[1-4]\"]`", "cluster", "file.rs", "HostSection"),
    ("`[server.NAME]`", "dispatch", "source/leases.rs", "ServerSection"),
    ("`[switch.NAME]`", "cluster", "switches.rs", "SwitchSection"),
    ("`[queue.NAME]`", "queue", "plan/queue.rs", "Queue"),
    ("`[index.NAME]`", "queue", "index.rs", "Index"),
    ("`[locator.NAME]`", "locate", "own.rs", "OwnLocator"),
    ("`[snapshot.NAME]`", "snapshot", "section.rs", "Section"),
    ("`[power]`", "cluster", "power.rs", "PowerSection"),
    ("`[power.circuit.NAME]`", "cluster", "power.rs", "Behind"),
    ("`[cost]`", "cluster", "cost.rs", "Cost"),
    ("`[up]`", "setup", "site.rs", "Up"),
    ("`[up.user.NAME]`", "setup", "site.rs", "UserSection"),
    ("`[up.group.NAME]`", "setup", "site.rs", "GroupSection"),
    ("`[up.disk.\"/POINT\"]`", "setup", "disks.rs", "DiskSection"),
    ("`[up.volume.NAME]`", "setup", "volumes.rs", "VolumeSection"),
    ("`export` in `[up.volume.NAME]`", "volume", "export.rs", "ExportOptions"),
    ("`[up.homes]`", "setup", "volumes.rs", "Homes"),
    ("`[up.mount.\"/POINT\"]`", "setup", "site.rs", "MountSection"),
    ("`[up.slurm]`", "setup", "site.rs", "Slurm"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|folder| folder.join("ARCHITECTURE.md").exists()).unwrap()
}

/// Returns the folder of a package, wherever it is below `crates`.
fn package(name: &str) -> PathBuf {
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap).filter(|e| e.path().is_dir()) {
            let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml"));
            match manifest {
                Ok(text) if text.contains(&format!("name = \"homing-{name}\"\n")) => return entry.path(),
                Ok(_) => {}
                Err(_) => folders.push(entry.path()),
            }
        }
    }
    panic!("no package homing-{name}")
}

/// Returns the type of a value as a reader of TOML knows it.
fn kind(of: &str) -> &'static str {
    let of = of.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')).unwrap_or(of);
    match of {
        "u8" | "u16" | "u32" | "u64" | "i32" | "i64" | "usize" | "NonZeroU32" => "number",
        "f64" => "number, may have a fraction",
        "bool" => "true, false",
        "Vec<String>" | "BTreeSet<String>" => "list of texts",
        of if of.starts_with("BTreeMap<String, Vec<String>") => "table of texts, or of lists of texts",
        of if of.starts_with("BTreeMap<String, String>") => "table of texts",
        of if of.starts_with("BTreeMap<String, u") => "table of numbers",
        of if of.starts_with("BTreeMap<String, IpAddr") => "table of addresses",
        of if of.starts_with("BTreeMap")
            || ["Up", "Cost", "PowerSection", "Homes", "Slurm", "ExportOptions"].contains(&of) =>
        {
            "section"
        }
        _ => "text",
    }
}

/// Returns rows of the fields of a struct, in the order of the source. rustfmt puts each field on a line of its own.
fn rows(source: &str, name: &str) -> Option<String> {
    let (_, body) = source.split_once(&format!("struct {name} {{\n"))?;
    let (body, _) = body.split_once("\n}")?;
    let (mut rows, mut about, mut attributes) = (String::new(), Vec::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            about.push(text.trim());
        } else if line.starts_with("#[") {
            attributes += line;
        } else if let Some((field, of)) = line.trim_end_matches(',').split_once(": ") {
            let own = field.rsplit(' ').next().unwrap_or(field);
            let renamed = attributes.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
            let about = about.join(" ").replace('|', "\\|");
            if !attributes.replace("skip_serializing_if", "").contains("skip") {
                rows += &format!("| `{}` | {} | {about} |\n", renamed.unwrap_or(own), kind(of));
            }
        }
        if line.ends_with(',') {
            (about, attributes) = (Vec::new(), String::new());
        }
    }
    Some(rows).filter(|rows| !rows.is_empty())
}

fn table((title, of, file, name): &(&str, &str, &str, &str)) -> String {
    let path = package(of).join("src").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = rows(&text, name).unwrap_or_else(|| panic!("no {name} in {}", path.display()));
    format!("## {title}\n\n| key | value | meaning |\n|---|---|---|\n{rows}")
}

#[test]
fn the_list_of_keys_of_the_cluster_file_is_whole() {
    let head = "# Keys of the cluster file\n\nGenerated; `make pages`. \
                [How it is written](manual/cluster.md).\n";
    let page = root().join("docs/cluster-keys.md");
    let wanted = SECTIONS.iter().map(table).fold(head.to_string(), |page, table| page + "\n" + &table);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&page, &wanted).unwrap();
    }
    let now = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(now == wanted, "docs/cluster-keys.md is not what is read; `make pages` writes it");
}

/// Returns the lines of the example file with each example switched on. An example begins with a `#` without a blank.
fn switched_on(text: &str) -> String {
    let on =
        |line: &str| line.strip_prefix('#').filter(|rest| !rest.is_empty() && !rest.starts_with(' ')).map(String::from);
    text.lines().map(|line| on(line).unwrap_or_else(|| line.into()) + "\n").collect()
}

#[test]
fn the_example_file_has_every_key_and_is_understood_with_all_of_them() {
    let example = std::fs::read_to_string(root().join("dist/cluster.toml")).unwrap();
    let keys = std::fs::read_to_string(root().join("docs/cluster-keys.md")).unwrap();
    let named = keys.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let has = |key: &str| {
        let mut places = example.match_indices(key).map(|(at, _)| (&example[..at], &example[at + key.len()..]));
        places.any(|(before, behind)| {
            let begins = before.ends_with(['\n', '#', '.', ' ', '[', '{']);
            begins && [" =", ".", "]"].iter().any(|end| behind.starts_with(end))
        })
    };
    let missing: Vec<&str> = named.filter(|key| !has(key)).collect();
    assert!(missing.is_empty(), "dist/cluster.toml lacks {missing:?}");
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("as it is", example.clone()), ("with all", switched_on(&example))] {
        let file = folder.path().join("cluster.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_homing"));
        let output = command.args(["hosts", "--ansible", "--cluster"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
