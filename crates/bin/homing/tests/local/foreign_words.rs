//! Checks the sources. No script calculates with a word from elsewhere or evaluates it. Only one function makes files
//! beside other people's names. The tests of single scripts, by bash and with hostile names, are beside those
//! scripts.

use std::path::{Path, PathBuf};

/// Crates outside the rule: their scripts are root's own, on a machine for tests.
const APART: [&str; 2] = ["crates/lab/lab/", "crates/lab/campaign/"];

/// Files that make files and folders by the calls of the standard library, with the reason.
const OWN: &[(&str, &str)] = &[
    ("crates/admin/bench/src/topology/snmp.rs", "a fresh folder of mode 0700"),
    ("crates/run/dispatch/src/kept.rs", "the folder of a run, 0700"),
    ("crates/reach/exec/src/connect.rs", "the user's folder of sockets, 0700"),
    ("crates/ground/os/src/folder/", "the owner of the rule"),
    ("crates/bin/homing/src/cmd/make/on.rs", "a folder of the user's own, 0700"),
    ("crates/run/journal/src/", "the folder of a run, 0700"),
    ("crates/reach/launch/src/payload.rs", "the user's cache"),
    ("crates/decide/lease/src/", "files of the user's own name, by the owner of the protocol"),
    ("crates/data/locate/src/contract.rs", "a suite of tests"),
    ("crates/ground/os/src/names/homes.rs", "folders below the user's home"),
    ("crates/jobs/queue/src/contract.rs", "a suite of tests"),
    ("crates/jobs/queue/src/files.rs", "the user's folder of the queue"),
    ("crates/jobs/queue/src/keeper/command.rs", "the folder of a job, 0700"),
    ("crates/jobs/queue/src/spool.rs", "O_EXCL by number in the folder of all, and the user's own folder"),
    ("crates/admin/relay/src/", "a fresh folder of mode 0700"),
    ("crates/admin/snapshot/src/", "a vault, into which `Vault::open` lets nobody else write"),
    ("crates/reach/worker/src/view/enter.rs", "a namespace of mounts of its own"),
];

/// Calls that make a file or folder.
const CALLS: [&str; 6] =
    ["fs::write(", "File::create", ".create(true)", "create_new(true)", "create_dir_all(", "DirBuilder::new("];

/// Command substitutions in arithmetic that print a number of the kernel's or of the clock's.
const NUMBERS: [&str; 8] = [
    "$(date +%s%N)",
    "$(date +%s%3N)",
    "$(date +%s)",
    "$(nproc)",
    "$(cat \"$s/size\")",
    "$(cat \"/sys/class/block/$a/size\")",
    "$(cat \"/sys/class/block/$n/size\")",
    "$(blockdev --getsize64 \"$1\")",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Returns the sources with scripts in them, without their tests: path from the root, and text.
fn sources() -> Vec<(String, String)> {
    let listed = std::process::Command::new("git").args(["ls-files", "crates"]).current_dir(root()).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    let is_source = |name: &&str| {
        let test = name.contains("/tests/") || name.ends_with("tests.rs") || name.ends_with("/foreign.rs");
        name.contains("/src/") && !test && [".rs", ".sh", ".pl"].iter().any(|end| name.ends_with(end))
    };
    let apart = |name: &&str| APART.iter().any(|start| name.starts_with(start));
    let read = |name: &str| {
        let text = std::fs::read_to_string(root().join(name)).unwrap_or_default();
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        (name.to_string(), text[..end].to_string())
    };
    names.lines().filter(is_source).filter(|name| !apart(name)).map(read).collect()
}

/// Returns the expressions between `$((` and `))`.
fn arithmetic(text: &str) -> Vec<&str> {
    let expression = |rest: &&'_ str| rest.find("))").is_some();
    let begins: Vec<&str> = text.match_indices("$((").map(|(at, _)| &text[at + 3..]).filter(expression).collect();
    begins.into_iter().map(|rest| &rest[..closing(rest)]).collect()
}

/// Returns the end of the expression at the begin of `rest`.
fn closing(rest: &str) -> usize {
    let mut depth = 2;
    for (at, c) in rest.char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            '\n' => return at,
            _ => 0,
        };
        if depth == 0 {
            return at - 1;
        }
    }
    rest.len()
}

/// Whether a shell calculates with its own variables, positional words of homing and numbers alone.
fn is_plain(expression: &str) -> bool {
    let rest = NUMBERS.iter().fold(expression.to_string(), |text, known| text.replace(known, "0"));
    // The text may be in a Rust string that is not raw, or in one for `format!`.
    let rest = NUMBERS.iter().fold(rest, |text, known| text.replace(&known.replace('"', "\\\""), "0"));
    !rest.contains("${") && !rest.contains("$(") && !rest.contains(['`', '[', '"', '\''])
}

#[test]
fn no_script_calculates_with_a_word_from_elsewhere() {
    let mut bad = Vec::new();
    for (name, text) in sources() {
        for expression in arithmetic(&text).into_iter().filter(|expression| !is_plain(expression)) {
            bad.push(format!("{name}: $(({expression})): read a number by awk, or check digits first"));
        }
        let words = |line: &str| format!(" {line}").replace([';', '&', '|', '(', '{', '\t', '"'], " ");
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let line = words(line);
            if [" eval \\", " eval $", " let \"", " declare -i", " typeset -i"].iter().any(|word| line.contains(word)) {
                bad.push(format!("{name}: {}: it evaluates a word", line.trim()));
            }
            if line.contains(" eval ") && name.ends_with(".sh") {
                bad.push(format!("{name}: {}: it evaluates a word", line.trim()));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(is_plain("n + 1") && is_plain("$(date +%s) - begun") && is_plain("$4*4"));
    for foreign in ["${found##*+} + 1", "$(echo \"$h\") - 1", "a[$(id)]"] {
        assert!(!is_plain(foreign), "{foreign}");
    }
    assert_eq!(arithmetic("x=$((a + (b - 1))); y=$(($(date +%s) + 1)) z"), ["a + (b - 1)", "$(date +%s) + 1"]);
}

#[test]
fn files_beside_other_peoples_names_are_made_by_one_function() {
    let mut bad = Vec::new();
    for (name, text) in sources() {
        if OWN.iter().any(|(own, _)| name.starts_with(own)) {
            continue;
        }
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if CALLS.iter().any(|call| line.contains(call)) {
                bad.push(format!(
                    "{name}: {}: use make_file, write_file or make_folders of homing_os::folder",
                    line.trim()
                ));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
