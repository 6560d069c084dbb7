//! Checks that the documents are true: the reference equals the help, and the manual's examples run.

use std::path::Path;
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("crates/bin/homing is three levels down")
}

fn help(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    // `homing make` passes `--help` to make, so the help comes from `homing help make`.
    let of_make = args.last().is_some_and(|last| *last == "make");
    if of_make {
        command.arg("help").args(args)
    } else {
        command.args(args).arg("--help")
    };
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the page of `plan` without the part that it shares with `run`, word for word.
fn as_run(text: &str) -> String {
    let parts = |text: &str| {
        let (begin, rest) = text.split_once("\nOptions:\n").unwrap();
        let (shared, _) = rest.split_once("\nEnvironment:\n").unwrap();
        (begin.to_string(), shared.to_string())
    };
    let (begin, shared) = parts(text);
    assert_eq!(shared, parts(&help(&["run"])).1, "plan takes the options of run");
    begin + "\nThe options are those of `homing run`.\n"
}

/// Writes the help of a command, then those of the commands below it, in their order.
fn write_help(words: &mut Vec<String>, page: &mut String) {
    let text = help(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let title = format!("homing {}", words.join(" "));
    let shown = if *words == ["plan"] { as_run(&text) } else { text.clone() };
    *page += &format!("\n## {}\n\n```text\n{}\n```\n", title.trim(), shown.trim_end());
    let commands = text.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        // The description below a name has a deeper indentation than the name.
        let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) else { continue };
        words.push(name.split(' ').next().unwrap().into());
        if words.last().unwrap() != "help" {
            write_help(words, page);
        }
        words.pop();
    }
}

#[test]
fn reference_is_the_help() {
    let mut page = String::from("# Command reference\n\nGenerated; `make pages`.\n");
    write_help(&mut Vec::new(), &mut page);
    let file = root().join("docs/reference.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let told = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(told == page, "docs/reference.md is not what --help says; `make pages` writes it");
}

/// `make pages` runs tests by their whole names; a name that is no test would write nothing.
#[test]
fn make_pages_writes_all_pages() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let (_, rest) = makefile.split_once("\nPAGES =").unwrap();
    let (names, _) = rest.split_once("\npages:").unwrap();
    let names: Vec<&str> = names.split_whitespace().filter(|word| *word != "\\").collect();
    let sources = crate::language::files(&root().join("crates"), "rs");
    let texts: Vec<String> = sources.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for name in &names {
        let test = format!("#[test]\nfn {}() {{", name.rsplit("::").next().unwrap());
        let is_test = texts.iter().any(|text| text.replace("\n    ", "\n").contains(&test));
        assert!(is_test, "{name} in PAGES of the Makefile is no test");
    }
    let writers = texts.iter().filter(|text| text.contains(&["var_os(\"UP", "DATE\")"].concat())).count();
    // CONTRIBUTING.md names the other two: the transcripts of scenarios, and the screens of `homing top`.
    assert_eq!(writers, names.len() + 2, "add a test that writes a page to PAGES of the Makefile");
}

/// The help of `run` has a line for each string, and the page on GNU parallel lists them.
#[test]
fn each_replacement_string_is_documented() {
    let run = help(&["run"]);
    let page = std::fs::read_to_string(root().join("docs/manual/parallel.md")).unwrap();
    for own in homing_batch::own_replacements() {
        assert!(run.contains(&format!("{own}  ")), "{own}: no line in src/help/examples.txt, under `== run`");
        assert!(page.contains(&format!("`{own}`")), "{own}: not in docs/manual/parallel.md");
    }
}

/// Returns the Markdown files of one folder of the project, by path below its root, with their text.
fn pages(folder: &str) -> Vec<(String, String)> {
    let mut pages: Vec<(String, String)> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (format!("{folder}/{}", entry.file_name().display()), entry.path()))
        .filter(|(name, _)| name.ends_with(".md"))
        .map(|(name, path)| (name, std::fs::read_to_string(path).unwrap()))
        .collect();
    pages.sort();
    pages
}

/// Runs the examples of one part in a world of its own, because a reader may read each part alone.
fn run_examples(text: &str) -> usize {
    let world = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_homing")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let blocks: Vec<&str> = text.split("```console\n").skip(1).collect();
    for block in &blocks {
        let block = block.split("```").next().unwrap();
        let (command, expected) = block.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(world.path())
            .env("PATH", &path)
            .env("SHELL", "/bin/sh")
            .env("HOMING_RUNS", world.path().join("runs"))
            .env("HOMING_QUEUE", world.path().join("queue"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{command}");
    }
    blocks.len()
}

#[test]
fn examples_of_the_manual_run() {
    let ran: usize = pages("docs/manual").iter().map(|(_, text)| run_examples(text)).sum();
    assert!(ran >= 9, "the manual has examples: {ran}");
}

#[test]
fn the_manual_has_a_table_of_contents_and_short_parts() {
    let contents = std::fs::read_to_string(root().join("docs/manual/README.md")).unwrap();
    for (name, text) in pages("docs/manual") {
        assert!(text.lines().count() < 200, "{name} is too long to be one task");
        let part = name.strip_prefix("docs/manual/").unwrap();
        assert!(
            part == "README.md" || contents.contains(&format!("({part})")),
            "{name} is not in the table of contents"
        );
    }
}

/// The README's first command is `cargo run`, so cargo must know which of the programs it means.
#[test]
fn cargo_runs_homing() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("cargo run -- run"), "the README begins otherwise now");
    // `cargo run` itself would build everything again where only one package was built before.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.stdin(Stdio::null()).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let meant = told["packages"].as_array().unwrap().iter().filter_map(|package| package["default_run"].as_str());
    assert_eq!(meant.collect::<Vec<_>>(), ["homing"]);
}

/// Returns the targets of a page's links inside the project, without anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://"))
        .map(|target| target.split('#').next().unwrap())
        .filter(|target| !target.is_empty())
}

#[test]
fn links_between_documents_lead_somewhere() {
    for (name, text) in [".", "docs", "docs/manual", "bench", "bench/results"].into_iter().flat_map(pages) {
        let folder = root().join(&name);
        for target in links(&text) {
            assert!(folder.with_file_name(target).exists(), "{name} links to {target}, which is not there");
        }
    }
}

/// Collects files with examples: documents, helps, scripts and messages.
fn files_with_examples(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() {
            if !["target", "tests", ".git"].contains(&name.as_str()) {
                files_with_examples(&path, files);
            }
        } else if [".md", ".rs", ".txt"].iter().any(|end| name.ends_with(end)) {
            files.push(path);
        }
    }
}

/// Returns a node set in an argument of homing that a shell would take for a pattern of file names.
fn unquoted_node_set(line: &str) -> Option<&str> {
    let is_command = ["homing ", "-w ", "--hosts ", "--on ", "--clients ", "HOMING_HOSTS="];
    let code = line.split_once("homing: ").map_or(line, |_| "");
    if !is_command.iter().any(|word| code.contains(word)) {
        return None;
    }
    // Each code span or shell line has quotes of its own.
    code.split('`').find_map(|span| {
        let mut quote = None;
        let mut word = 0;
        for (at, c) in span.char_indices() {
            match quote {
                None if c == '\'' || c == '"' => quote = Some(c),
                Some(open) if open == c => quote = None,
                None if c.is_whitespace() || c == '=' => word = at + c.len_utf8(),
                None if c == '[' && span[at + 1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    let prefix = &span[word..at];
                    let is_name = prefix.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
                    let before = span[..word].trim_end();
                    let options = ["-w", "--hosts", "--on", "--clients", "-x", "HOMING_HOSTS=", "off", "on", "data"];
                    if is_name && !prefix.is_empty() && options.iter().any(|option| before.ends_with(option)) {
                        return Some(&span[word..]);
                    }
                }
                _ => {}
            }
        }
        None
    })
}

/// zsh refuses an unquoted node set. bash makes one host of it where a file has a host's name.
#[test]
fn node_sets_in_examples_are_quoted() {
    let unquoted =
        ["homing run --hosts n[1-4] wc", "`homing top -w w[1-256]`", "homing volume add-host data n[5-6]:/b"];
    assert!(unquoted.into_iter().all(|line| unquoted_node_set(line).is_some()), "the test finds none");
    assert_eq!(unquoted_node_set("homing run --hosts 'n[1-4]' wc ::: /data/mesh[1-9]"), None);
    let mut files = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    ["docs", "crates", "bench"].iter().for_each(|folder| files_with_examples(&root().join(folder), &mut files));
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // In a program a node set is between quotes of the language. Only those of the shell count.
        let is_program = file.extension().is_some_and(|end| end == "rs");
        for (number, line) in text.lines().enumerate() {
            let line = if is_program { line.replace('"', " ") } else { line.into() };
            if is_program && line.contains("assert") {
                continue;
            }
            let at = || format!("{}:{}: {line}", file.display(), number + 1);
            found.extend(unquoted_node_set(&line).map(|_| at()));
        }
    }
    assert!(found.is_empty(), "quote these node sets:\n{}", found.join("\n"));
}
