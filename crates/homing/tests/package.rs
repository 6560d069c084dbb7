//! What a registry wants to know of each crate that is published.

use std::path::Path;
use toml::{Table, Value};

#[test]
fn each_crate_that_is_published_has_what_a_registry_asks_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let read = |path: &Path| -> Table { std::fs::read_to_string(path).unwrap().parse().unwrap() };
    let workspace = read(&root.join("Cargo.toml"));
    let version = &workspace["workspace"]["package"]["version"];
    for folder in std::fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().path()) {
        let package = &read(&folder.join("Cargo.toml"))["package"];
        if package.get("publish") == Some(&Value::Boolean(false)) {
            continue;
        }
        for field in ["description", "license", "repository", "readme", "categories", "keywords"] {
            assert!(package.get(field).is_some(), "{} has no {field}", folder.display());
        }
        let name = package["name"].as_str().unwrap();
        let dependency = workspace["workspace"]["dependencies"].get(name);
        assert!(dependency.is_none_or(|d| d.get("version") == Some(version)), "{name}: its version is not {version:?}");
    }
}
