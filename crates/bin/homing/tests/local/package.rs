//! The content of packages and the requirements of registries, as far as they can be checked without a build.

use std::collections::BTreeSet;
use std::path::Path;
use toml::{Table, Value};

const TREE: &str = "../../../target/packages/root";

fn text<'a>(value: &'a Value, key: usize, name: &str) -> &'a str {
    let found = value.as_array().map_or_else(|| &value[name], |list| &list[key]);
    found.as_str().unwrap()
}

/// Returns the files that a package takes from the tree that dist/build lays out.
fn taken(package: &Value) -> BTreeSet<String> {
    let all = package["assets"].as_array().unwrap().iter();
    all.map(|asset| text(asset, 0, "source").strip_prefix(TREE).expect("of the tree").to_string()).collect()
}

#[test]
fn both_packages_have_the_program_its_workers_and_what_goes_with_them() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest: Table = std::fs::read_to_string(here.join("Cargo.toml")).unwrap().parse().unwrap();
    let metadata = &manifest["package"]["metadata"];
    let (deb, rpm) = (taken(&metadata["deb"]), taken(&metadata["generate-rpm"]));
    assert_eq!(deb, rpm);
    let script = std::fs::read_to_string(here.join("../../../dist/build")).unwrap();
    for (asset, made_by) in [
        ("/usr/bin/homing", "$root/usr/bin/homing"),
        ("/usr/bin/homing-admin", "$root/usr/bin/homing-admin"),
        ("/usr/bin/homing-host", "$root/usr/bin/homing-host"),
        ("/usr/lib/homing/*", "worker-$arch"),
        ("/usr/lib/tmpfiles.d/homing.conf", "dist/tmpfiles.conf"),
        ("/usr/lib/systemd/system/*", "dist/systemd/*"),
        ("/usr/share/man/man1/*.1", "man \"$share/man/man1\""),
        ("/usr/share/bash-completion/completions/homing", "completions bash"),
        ("/usr/share/zsh/vendor-completions/_homing", "completions zsh"),
        ("/usr/share/fish/vendor_completions.d/homing.fish", "completions fish"),
        ("/usr/share/doc/homing/*", "LICENSE"),
        ("/usr/share/doc/homing/examples/*", "dist/cluster.toml"),
    ] {
        assert!(deb.contains(asset), "{asset} is in no package");
        assert!(script.contains(made_by), "nothing makes {asset}");
    }
    assert_eq!(deb.len(), 12, "a row above for each asset");
}

#[test]
fn each_crate_that_is_published_has_what_a_registry_asks_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap();
    let read = |path: &Path| -> Table { std::fs::read_to_string(path).unwrap().parse().unwrap() };
    let workspace = read(&root.join("Cargo.toml"));
    let version = &workspace["workspace"]["package"]["version"];
    for folder in crate::architecture::crates() {
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

#[test]
fn the_example_of_a_cluster_file_can_be_read() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../dist/cluster.toml");
    let program = env!("CARGO_BIN_EXE_homing");
    let told = std::process::Command::new(program)
        .args(["nodeset", "--cluster"])
        .arg(example)
        .args(["-e", "@big"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), "n3 n4", "{}", String::from_utf8_lossy(&told.stderr));
}
