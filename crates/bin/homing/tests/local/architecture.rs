//! Checks that the folders of crates are layers, and that crates print without a panic.

use std::path::{Path, PathBuf};

/// The most crates: a reader keeps the picture of the layers in the head.
const MOST: usize = 36;

/// A layer in the picture of ARCHITECTURE.md: its folder, and the words beside it, which begin with its crates.
struct Layer {
    name: String,
    words: Vec<String>,
}

/// Reads the picture of ARCHITECTURE.md, lowest layer first.
fn layers() -> Vec<Layer> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, rest) = page.split_once("```\n crates/").expect("ARCHITECTURE.md has a picture of the layers");
    let (picture, _) = rest.split_once("```").unwrap();
    let layer = |text: &str| {
        let mut words = text.split_whitespace().map(String::from);
        Layer { name: words.next().unwrap(), words: words.collect() }
    };
    picture.split("\n crates/").map(layer).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("crates/bin/homing is three levels down")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Returns the folder of each crate.
pub fn crates() -> Vec<PathBuf> {
    let layers = entries(&root().join("crates"));
    layers.iter().flat_map(|layer| entries(layer)).filter(|folder| folder.join("Cargo.toml").is_file()).collect()
}

/// A crate: its package, its layer, and the project's crates that it imports. Those of its tests are included.
struct Member {
    package: String,
    layer: usize,
    imports: Vec<String>,
}

fn member(folder: &Path, layers: &[Layer]) -> Member {
    let name = |path: Option<&Path>| path.and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
    let (of, own) = (name(folder.parent()), name(Some(folder)));
    let layer = layers.iter().position(|layer| layer.name == of);
    let layer = layer.unwrap_or_else(|| panic!("ARCHITECTURE.md has no layer crates/{of}"));
    assert!(layers[layer].words.contains(&own), "add {own} to the line crates/{of} of the picture in ARCHITECTURE.md");
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().expect("a manifest is TOML");
    let dependencies = ["dependencies", "dev-dependencies", "build-dependencies"].map(|kind| manifest.get(kind));
    let tables = dependencies.iter().flatten().filter_map(|table| table.as_table());
    let names = tables.flat_map(|table| table.keys()).filter(|name| name.starts_with("homing-"));
    Member { package: manifest["package"]["name"].as_str().unwrap().into(), layer, imports: names.cloned().collect() }
}

/// Cargo refuses circles itself.
#[test]
fn a_crate_imports_its_own_layer_or_one_below() {
    let layers = layers();
    let all: Vec<Member> = crates().iter().map(|folder| member(folder, &layers)).collect();
    assert!(
        all.len() <= MOST,
        "{} crates; the most are {MOST}: make it a module of a crate in its layer, or join two crates first",
        all.len()
    );
    for one in &all {
        for import in &one.imports {
            let other = all.iter().find(|other| other.package == *import).expect("a crate of the workspace");
            let (from, to) = (&layers[one.layer].name, &layers[other.layer].name);
            assert!(other.layer <= one.layer, "{} of {from} imports {import} of {to}", one.package);
        }
    }
}

#[test]
fn each_crate_describes_itself() {
    for folder in crates() {
        let source =
            ["src/lib.rs", "src/main.rs"].map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
        let text = std::fs::read_to_string(source.expect("a crate has a library or a program")).unwrap();
        let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let words: usize = comment.iter().map(|line| line.split_whitespace().count()).sum();
        let limits = comment.iter().any(|line| ["does not", "needs no"].iter().any(|words| line.contains(words)));
        assert!(words >= 50 && limits, "{}: its first comment lacks its purpose or its limits", folder.display());
    }
}

/// The standard macro panics when standard error cannot be written. It ended a runner on a full disk.
#[test]
fn no_crate_prints_by_a_macro_that_panics() {
    for room in crates() {
        // These programs have macros of their own instead of the standard ones.
        if room.ends_with("homing") || room.ends_with("campaign") {
            continue;
        }
        for file in sources(&room.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let prints = code.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("eprint"));
            assert!(!prints || file.ends_with("say.rs"), "{}: homing_os::say! does not panic", file.display());
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let each = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries(folder).into_iter().flat_map(each).filter(|path| !path.ends_with("tests.rs")).collect()
}
