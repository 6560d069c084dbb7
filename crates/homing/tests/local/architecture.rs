//! Crates do not import each other in a circle, and print without a panic.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Imports = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/homing lies two levels down")
}

fn manifests() -> Imports {
    let folders = std::fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path());
    let rooms = folders.map(|folder| {
        let manifest: toml::Table =
            std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().expect("a manifest is TOML");
        let dependencies = manifest["dependencies"].as_table().unwrap();
        let imports = dependencies.keys().filter_map(|d| d.strip_prefix("homing-")).map(String::from).collect();
        (folder.file_name().unwrap().to_string_lossy().into_owned(), imports)
    });
    rooms.collect()
}

#[test]
fn no_two_rooms_import_each_other() {
    let truth = manifests();
    for (room, imports) in &truth {
        for import in imports {
            assert!(!truth[import].contains(room), "{room} and {import} import each other");
        }
    }
}

/// The standard macro panics when standard error cannot be written: a runner ended by it on a full disk.
#[test]
fn nobody_dies_of_telling() {
    for room in std::fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path()) {
        // The program has macros of its own in the place of the standard ones.
        if room.ends_with("homing") || room.ends_with("campaign") {
            continue;
        }
        for file in sources(&room.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let told = code.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("eprint"));
            assert!(!told || file.ends_with("say.rs"), "{}: homing_os::say! does not panic", file.display());
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let each = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(each).filter(|path| !path.ends_with("tests.rs")).collect()
}
