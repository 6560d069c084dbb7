//! The pages of the manual, which `homing help TOPIC` prints. Messages name them.

use homing_model::Failure;
use std::ffi::OsString;

macro_rules! pages {
    ($($folder:literal: $($name:literal)*;)*) => {
        &[$($([$name, include_str!(concat!("../docs/", $folder, $name, ".md"))],)*)*]
    };
}

/// Names and texts of all pages.
const PAGES: &[[&str; 2]] = pages! {
    "": "admission" "cluster-keys" "file-systems" "formats" "glossary" "leases" "reliability";
    "manual/":
    "after" "bench" "check" "check-codes" "clush" "cluster" "containers" "cost" "data" "dirvish" "disks" "down" "environments"
    "exec" "full" "gpus" "hdfs" "homes" "install" "jobs" "lab" "lsf" "lsf-words" "make" "many" "nodesets" "on-lsf" "packages"
    "parallel" "pipelines" "power" "programs" "python" "run" "servers" "slow" "slurm" "snapshot" "snapshot-keep"
    "snapshot-kinds" "snapshot-restore" "tasks" "topology" "tune" "up" "up-systems" "volume-options" "volumes" "watching";
};

/// The table of all pages.
const CONTENTS: &str = include_str!("../docs/manual/README.md");

/// Returns the page that `homing help WORD` prints. A command of that name comes first; `WORD.md` is always the page.
pub fn page_of(words: &[OsString], is_command: impl Fn(&str) -> bool) -> Option<&'static str> {
    let [help, word] = words else { return None };
    let word = word.to_str()?;
    let name = word.strip_suffix(".md");
    if help != "help" || name.is_none() && is_command(word) {
        return None;
    }
    find(name.unwrap_or(word))
}

fn find(name: &str) -> Option<&'static str> {
    if ["README", "contents", "index", "manual", "topics"].contains(&name) {
        return Some(CONTENTS);
    }
    let name = if ["exit", "exit-status", "json"].contains(&name) { "formats" } else { name };
    PAGES.iter().find(|[page, _]| *page == name).map(|[_, text]| *text)
}

/// Returns the names of all pages.
pub fn names() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|[name, _]| *name)
}

/// Returns the error for a topic that is neither a command nor a page. `near`: a name that it may be.
pub fn unknown(word: &str, near: Option<&str>) -> Failure {
    let failure = Failure::usage(format!("the manual has no topic {word:?}"));
    match near {
        Some(near) => failure.hint(format!("homing help {near}")),
        None => failure.hint("homing help topics lists the pages, homing --help the commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(line: &str) -> Option<&'static str> {
        page_of(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), |word| word == "run")
    }

    #[test]
    fn every_page_of_the_manual_is_a_topic() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/manual");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut there: Vec<String> = files.filter_map(|file| file.strip_suffix(".md").map(String::from)).collect();
        there.retain(|name| name != "README");
        there.sort();
        assert_eq!(there, names().skip_while(|name| *name != "after").collect::<Vec<_>>());
    }

    #[test]
    fn a_command_comes_before_a_page_of_its_name() {
        assert!(page("help environments").is_some_and(|text| text.starts_with("# Environments")));
        assert!(page("help topics").is_some_and(|text| text.starts_with("# Manual")));
        assert!(page("help exit").is_some_and(|text| text.contains("| 254 |")));
        assert!(page("help run").is_none() && page("help run.md").is_some());
        assert!(page("help nosuch").is_none() && page("help volume create").is_none() && page("run slow").is_none());
    }
}
