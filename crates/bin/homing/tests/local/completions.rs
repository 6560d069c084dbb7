//! The completions of bash, requested as bash does, and the text of man pages.

use std::process::Command;

/// Returns bash's completions of these words, sorted.
fn completed(home: &std::path::Path, words: &[&str]) -> Vec<String> {
    let exe = std::path::Path::new(env!("CARGO_BIN_EXE_homing"));
    let path = format!("{}:{}", exe.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let script = "source <(homing completions bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _homing; \
                  ((${#COMPREPLY[@]} == 0)) || printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, "bash"]).args(words).current_dir(home).env("PATH", path);
    bash.env("HOMING_RUNS", home.join("runs")).env("HOMING_VOLUMES", home.join("volumes"));
    bash.env("HOMING_CLUSTER", home.join("cluster.toml"))
        .env("HOMING_QUEUE", home.join("queue"))
        .env("HOMING_ENGINE", "local");
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect();
    lines.sort();
    lines
}

#[test]
fn runs_volumes_and_hosts_are_completed_and_files_left_to_the_shell() {
    let home = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("runs/20261122-101010-abc/journal.jsonl", ""),
        ("runs/$(touch pwned)/journal.jsonl", ""),
        ("volumes/data.json", "{}"),
        ("cluster.toml", "hosts = \"n[1-2]\"\n"),
    ] {
        let file = home.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    for (words, expected) in [
        (&["homing", "rep"][..], &["report"][..]),
        (&["homing", "resume", "2"], &["20261122-101010-abc"]),
        (&["homing", "report", "$"], &["$(touch pwned)"]),
        (&["homing", "volume", "status", ""], &["data"]),
        (&["homing", "run", "-w", "n"], &["n1", "n2"]),
        (&["homing", "run", "--hosts", "=", "n"], &["n1", "n2"]),
        (&["homing", "run", "--will"], &[]),
        (&["homing", "run", "cat", ":::", ""], &[]),
    ] {
        assert_eq!(completed(home.path(), words), expected, "{words:?}");
    }
    assert!(!home.path().join("pwned").exists(), "a name is never run");
}

#[test]
fn each_man_page_has_examples_and_exit_statuses() {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_homing")).arg("man").arg(folder.path()).status().unwrap();
    assert!(done.success());
    let pages: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(pages.len() > 40, "{}", pages.len());
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for section in [".SH EXAMPLES", ".SH \"EXIT STATUS\""] {
            assert!(text.contains(section), "{} has no {section}", page.display());
        }
        assert!(!text.contains("will\\-cite"), "{} tells a hidden option", page.display());
    }
}
