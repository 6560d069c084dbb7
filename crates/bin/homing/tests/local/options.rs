//! Checks that each option does something. A line with the option must have another result than without it, or be
//! refused by name. Options that have no effect beside others are in the table of `src/idle`, which has tests of its
//! own.

use crate::world::World;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// Options of a command, each with its words and a line of shell in which `@` is their place. Some options need other
/// hosts, a terminal or a broken file system. They have no line, and name the module that tests them.
type Rows = &'static [(&'static str, &'static str, &'static str)];

const HI: &str = "homing run -q @ echo ::: a";
const TWO: &str = "homing run -q -k @ echo ::: a b";
/// Two tasks at once; their output depends on how much homing holds back. The first ends after the second has ended.
const TURNS: &str = "homing run -q -j2 @ 'echo {}1; touch {}; if [ {} = a ]; then until [ -s pid ]; do sleep 0.05; done; \
                     while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done; else echo $$ >pid; \
                     until [ -e a ]; do sleep 0.05; done; sleep 0.3; fi; echo {}2' ::: a b";
const SLURM: &str = "homing run -q --on local @ echo ::: a";
const NEWER: &str =
    "touch -d '1 hour ago' out; touch new; homing run -q --skip-newer --output out @ 'cat new; echo x' ::: a";
const AGAIN: &str =
    "homing run -q --joblog l 'echo {}; exit {}' ::: 0 1; homing run -q --joblog l @ 'echo {}; exit {}' ::: 0 1";

const RUN: Rows = &[
    ("--on", "--on ssh", HI),
    ("--hosts", "-w 'n[1-'", HI),
    ("-g", "-g nogroup", HI),
    ("--cluster", "--cluster none.toml", HI),
    ("--lab", "--lab none-such", HI),
    ("--gateway", "", "gateway"),
    ("--tree", "", "lab/tree"),
    ("--need-all-hosts", "", "lab/leaders"),
    ("--ppn", "", "lab/jobs"),
    ("--net", "", "lab/jobs"),
    ("--jobs", "-j x", HI),
    ("--tasks", "--tasks t", "echo '{\"command\":\"echo a\"}' > t; homing run -q @ < t"),
    ("--arg-file", "-a list", "echo x > list; homing run -q @ echo < /dev/null"),
    ("--null", "-0", "printf 'a\\0b' | homing run -q -k @ echo"),
    ("--delimiter", "-d ,", "printf 'a,b' | homing run -q -k @ echo"),
    ("--max-args", "-n2", TWO),
    ("--trim", "--trim lr", "homing run -q @ 'echo [{}]' ::: ' a '"),
    ("--quote", "--quote", "homing run -q @ echo '$HOME' ::: a"),
    ("--colsep", "--colsep ,", "homing run -q @ echo {2}{1} ::: a,b"),
    ("--shuf", "--shuf", "seq 40 | homing run -q -k @ echo"),
    ("--no-run-if-empty", "-r", "printf 'a\\n\\nb\\n' | homing run -q -k @ echo x"),
    (
        "--near",
        "--near new",
        "touch -d '1 hour ago' out; touch new; homing run -q --skip-newer --output out @ 'echo x' ::: a",
    ),
    ("--no-detect", "--no-detect", NEWER),
    ("--no-fence", "", "lab/fence"),
    ("--io", "--io 0", HI),
    ("--no-share", "", "lab/admission"),
    ("--no-locality", "", "lab/lab"),
    ("--output", "--output out", "homing run -q --skip-newer @ echo ::: a"),
    ("--skip-newer", "--skip-newer", "touch out; homing run -q --output out @ echo ::: a"),
    ("--keep-order", "-k", TURNS),
    ("--line-buffer", "--line-buffer", TURNS),
    ("--ungroup", "-u", TURNS),
    ("--tag", "--tag", HI),
    ("--results", "--results res", HI),
    ("--joblog", "--joblog log", HI),
    ("--resume", "--resume", AGAIN),
    ("--resume-failed", "--resume-failed", AGAIN),
    ("--retry-failed", "--retry-failed", AGAIN),
    ("--retries", "--retries 2", "homing run -q @ 'echo x >> n; exit 1' ::: a; cat n"),
    ("--halt", "--halt now,fail=1", "homing run -q -j1 @ 'echo {}; exit {}' ::: 1 0"),
    ("--timeout", "--timeout 1", "homing run -q @ 'sleep 3; echo x' ::: a"),
    ("--output-limit", "--output-limit 1k", "homing run -q @ 'yes {} | head -c 3000000' ::: a | tail -c 1"),
    ("--delay", "--delay x", HI),
    ("--fs-timeout", "", "frozen"),
    ("--memfree", "--memfree x", HI),
    (
        "--resource",
        "--resource gpu=1",
        "echo '{\"command\":\"echo a\",\"resources\":{\"gpu\":1}}' > t; homing run -q @ --tasks t",
    ),
    ("--container", "", "containers"),
    ("--gpus-per-task", "--gpus-per-task 1", "homing run -q --resource gpu=2 @ 'echo $CUDA_VISIBLE_DEVICES' ::: a"),
    (
        "--on-exit",
        "--on-exit 'echo $HOMING_EXIT $HOMING_DONE $HOMING_FAILED > end'",
        "homing run -q @ 'exit {}' ::: 0 1; cat end",
    ),
    ("--env", "--env no_such_variable", HI),
    ("--dry-run", "--dry-run", HI),
    ("--explain", "--explain", HI),
    ("--bar", "", "screen"),
    ("--eta", "", "screen"),
    ("--quiet", "-q", "homing run @ echo ::: a"),
    ("--json", "--json", HI),
    ("--name", "--name first", "homing run -q @ echo ::: a; homing runs --json | grep '\"label\": \"first\"'"),
    ("--partition", "--partition x", SLURM),
    ("--account", "--account x", SLURM),
    ("--qos", "--qos x", SLURM),
    ("--time", "--time 5", SLURM),
    ("--reservation", "--reservation x", SLURM),
    ("--cpus-per-task", "--cpus-per-task 2", SLURM),
    ("--mem-per-task", "--mem-per-task 1G", SLURM),
    ("--nodes", "--nodes 2", SLURM),
    ("--batch-arg", "--batch-arg=-v", SLURM),
    ("--max-replace-args", "-N2", TWO),
    ("-L", "-L2", "printf 'a\\nb\\n' | homing run -q -k @ echo"),
    ("--max-lines", "-l2", "printf 'a\\nb\\n' | homing run -q -k @ echo"),
    ("-E", "-E b", TWO),
    ("--replace", "-i,,", "homing run -q @ echo ,, ::: a"),
    ("--regexp", "--regexp", "printf 'a1b22' | homing run -q -k --pipe --recend '[0-9]+' -N1 @ 'wc -c'"),
    ("--color", "--color", HI),
    ("--color-failed", "--color-failed", "homing run -q @ 'echo {}; false' ::: a"),
    ("--ctag", "--ctag", HI),
    ("--ctagstring", "--ctagstring x", HI),
    ("--plain", "--plain", "PARALLEL=--tag homing run -q @ echo ::: a"),
    ("--profile", "-J none", HI),
    ("-X", "-X", "homing run -q -k -j1 @ echo x{} ::: a b"),
    ("-m", "-m", "homing run -q -k -j1 @ echo x{} ::: a b"),
    ("--xargs", "--xargs", "homing run -q -k -j1 @ echo x{} ::: a b"),
    ("--max-chars", "-s 15", "homing run -q -k -j1 -m @ echo ::: aaaa bbbb cccc dddd"),
    ("--link", "--link", "homing run -q -k @ echo ::: a b ::: c d"),
    ("--header", "--header :", "homing run -q @ echo {h} ::: h a"),
    ("--header", "--header 0", "echo 1 > A; homing run -q @ echo {A} :::: A"),
    ("--header", "--header x", HI),
    ("--skip-first-line", "--skip-first-line", TWO),
    ("--process-slot-var", "--process-slot-var V", "homing run -q @ 'echo v$V' ::: a"),
    ("--tee", "--tee", "echo a | homing run -q -k --pipe @ 'cat; echo {}' ::: 1 2"),
    ("--rrs", "--rrs", "printf 'a,b' | homing run -q -k --pipe --recend , -N1 @ 'wc -c'"),
    ("--arg-sep", "--arg-sep ,,,", "homing run -q @ echo ,,, a < /dev/null"),
    ("--arg-file-sep", "--arg-file-sep ,,,", "echo a > f; homing run -q @ echo ,,, f < /dev/null"),
    ("--plus", "--plus", "homing run -q @ echo {+/} ::: a/b"),
    ("--rpl", "--rpl '{x} s/a/b/'", "homing run -q @ echo {x} ::: a"),
    ("-I", "-I ,,", "homing run -q @ echo ,, ::: a"),
    ("--pipe", "--pipe", "echo a | homing run -q @ cat"),
    ("--pipepart", "--pipepart -a f", "echo a > f; homing run -q @ cat < /dev/null"),
    ("--block", "--block 2", "printf 'a\\nb\\n' | homing run -q -k --pipe @ 'wc -l'"),
    ("--recstart", "--recstart x", "printf 'xaxb' | homing run -q -k --pipe -N1 @ 'wc -c'"),
    ("--recend", "--recend ,", "printf 'a,b,' | homing run -q -k --pipe -N1 @ 'wc -c'"),
    ("--tagstring", "--tagstring x", HI),
    ("-v", "-v", HI),
    ("--verbose", "-t", HI),
    ("--workdir", "--workdir sub", "homing run -q @ pwd ::: a"),
    ("--nice", "--nice 5", "homing run -q @ 'nice; :' ::: a"),
    ("--load", "--load x", HI),
    ("--sshlogin", "-S 0/x", HI),
    ("--sshloginfile", "--slf none", HI),
];

const SAY: &str = "homing exec -w localhost @ echo a";
const EXEC: Rows = &[
    ("--hosts", "-w localhost", "homing exec @ echo a"),
    ("--exclude", "-x localhost", SAY),
    ("--all", "-a", SAY),
    ("--group", "-g none", SAY),
    ("--exclude-group", "-X none", SAY),
    ("--hostfile", "--hostfile none", SAY),
    ("--cluster", "--cluster none.toml", SAY),
    ("--lab", "--lab none-such", SAY),
    ("--dshbak", "-b", SAY),
    ("-B", "-B", "homing exec -w localhost @ 'echo a >&2'"),
    ("-L", "-L", "homing exec -w localhost -b @ echo a"),
    ("--diff", "--diff", SAY),
    ("-N", "-N", SAY),
    ("--quiet", "-q", "homing exec -w localhost @ exit 7"),
    ("--maxrc", "-S", "homing exec -w localhost @ exit 7"),
    ("--nostdin", "-n", "echo a | homing exec -w localhost @ cat"),
    ("--outdir", "--outdir d", SAY),
    ("--errdir", "--errdir d", SAY),
    ("--argv", "--argv", "homing exec -w localhost @ echo '$SHELL'"),
    ("--regroup", "-r", "printf '[groups]\nio = \"localhost\"\n' > cluster.toml; homing exec -w localhost -b @ echo a"),
    (
        "--groupbase",
        "-G",
        "printf '[a]\nmap: echo localhost\nlist: echo x\n' > g; homing exec -w localhost -b -r -s a --groupsconf g @ echo a",
    ),
    ("--groupsource", "-s none", "homing exec -w @x @ echo a"),
    ("--groupsconf", "--groupsconf none", SAY),
    ("--pick", "--pick 1", "homing exec -R exec -w 'n[1-9]' -b @ echo a"),
    ("--verbose", "-v", "homing exec -w localhost -b @ echo a"),
    ("--progress", "-P", SAY),
    ("--color", "--color=always", SAY),
    ("--worker", "-R exec", "homing exec -w localhost @ echo %h"),
    ("--option", "-O command_prefix=echo", SAY),
    ("--json", "--json", SAY),
    ("--dry-run", "--dry-run", SAY),
    ("--fanout", "-f 0", SAY),
    ("--connect-timeout", "-t 0", SAY),
    ("--command-timeout", "-u 1", "homing exec -w localhost @ 'sleep 3; echo a'"),
    ("--user", "", "exec"),
    ("--options", "-o \"'\"", SAY),
    ("--persist", "", "exec"),
    ("--tree", "", "exec"),
];

const SET: &str = "homing nodeset @ 'n[1-4]'";
const NODESET: Rows = &[
    ("--fold", "-f", "homing nodeset -c @ 'n[1-4]'"),
    ("--expand", "-e", SET),
    ("--count", "-c", SET),
    ("--list", "-l", SET),
    ("--list-all", "-L", SET),
    ("--groupsources", "--groupsources", SET),
    ("--exclude", "-x n2", SET),
    ("--intersection", "-i n2", SET),
    ("--xor", "-X n2", SET),
    ("--all", "-a", "echo 'hosts = \"n9\"' > cluster.toml; homing nodeset @ 'n[1-4]'"),
    ("--group", "-g none", SET),
    ("--groupsource", "-s none", "homing nodeset @ @x"),
    ("--rangeset", "-R", "homing nodeset @ 1-4,6"),
    ("--separator", "-S,", "homing nodeset -e @ 'n[1-4]'"),
    ("--regroup", "-r", "printf '[groups]\nio = \"n[1-4]\"\n' > cluster.toml; homing nodeset @ 'n[1-4]'"),
    ("--groupbase", "-G", "printf '[a]\nmap: echo n1\nlist: echo x\n' > g; homing nodeset --groupsconf g -s a -l @"),
    ("--output-format", "-O %s-x", SET),
    ("--slice", "-I 0", SET),
    ("--autostep", "--autostep=3", "homing nodeset @ n1 n3 n5"),
    ("--axis", "--axis 1", "homing nodeset @ 'r[1-2]n[1-2]'"),
    ("--pick", "--pick 1", "homing nodeset -c @ 'n[1-4]'"),
    ("--split", "--split 2", SET),
    ("--contiguous", "--contiguous", "homing nodeset @ n1 n3"),
    ("--quiet", "-q", "printf '[a]\nmap: echo n1\n' > g; homing nodeset --groupsconf g --groupsources @"),
    ("--groupsconf", "--groupsconf none", SET),
    ("--json", "--json", SET),
    ("--cluster", "--cluster none.toml", SET),
    ("--lab", "--lab none-such", SET),
];

const WHERE: Rows = &[
    ("--extents", "-e", "echo a > f; homing where @ f"),
    ("--json", "--json", "echo a > f; homing where @ f"),
    ("--files-from", "--files-from list", "echo f > list; echo a > f; homing where @ f"),
    ("--null", "-0", "printf 'f\\0g' > list; echo a > f; echo b > g; homing where --files-from list @"),
    ("--limit", "--limit 1", "mkdir d; touch d/a d/b; homing where @ d"),
    ("--fs-timeout", "", "frozen"),
];

/// Runs a line of shell. Returns its status, its output, and the names of the files that it leaves.
fn outcome(line: &str) -> (Option<i32>, String, String, BTreeSet<String>) {
    let world = World::new();
    let mut command = Command::new("sh");
    let line = line.replace("homing ", "\"$HOMING\" ");
    command.args(["-c", &line]).current_dir(world.path()).stdin(Stdio::null()).env("SHELL", "/bin/sh");
    command.env("HOMING", env!("CARGO_BIN_EXE_homing")).env("HOMING_RUNS", world.path().join("runs"));
    command.env("HOMING_CONFIG", "").env_remove("HOMING_CLUSTER").env_remove("PARALLEL");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(world.path().to_str().unwrap(), "DIR");
    let mut files: BTreeSet<String> = BTreeSet::new();
    let mut folders = vec![world.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(world.path()).unwrap().display().to_string();
            if name != "runs" && files.insert(name) && path.is_dir() {
                folders.push(path);
            }
        }
    }
    // Replaces times, and the names of runs.
    let steady = |word: &str| if word.contains(char::is_numeric) { String::from("#") } else { word.to_string() };
    let said = text(&output.stderr).split_whitespace().map(steady).collect::<Vec<_>>().join(" ");
    (output.status.code(), text(&output.stdout), said, files)
}

/// Returns the names of the options in the help of a command.
fn options(command: &str) -> BTreeSet<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_homing")).args([command, "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let named = |line: &str| -> Option<String> {
        let line = line.trim_start().strip_prefix('-').map(|rest| format!("-{rest}"))?;
        let mut words = line.split([' ', ',', '=', '[', '.']).filter(|word| !word.is_empty());
        let first = words.next()?.to_string();
        Some(words.next().filter(|second| second.starts_with("--")).map_or(first, String::from))
    };
    let listed = help.lines().filter(|line| line.starts_with("  -") || line.starts_with("      --"));
    listed.filter_map(named).filter(|name| name != "--help").collect()
}

fn all_act(command: &str, rows: Rows) {
    let known: BTreeSet<String> = rows.iter().map(|(option, ..)| option.to_string()).collect();
    assert_eq!(options(command), known, "homing {command}: each option has a row here");
    let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for (option, words, line) in rows {
        if words.is_empty() {
            let local = format!("{modules}/local/{line}.rs");
            let there =
                std::path::Path::new(&local).exists() || std::path::Path::new(&format!("{modules}/{line}.rs")).exists();
            assert!(there, "{option}: no module {line}");
            continue;
        }
        let (with, without) = (outcome(&line.replace('@', words)), outcome(&line.replace('@', "")));
        assert_ne!(with, without, "homing {command}: {words} changes nothing in: {line}");
    }
}

#[test]
fn each_option_of_run_acts_or_is_refused() {
    all_act("run", RUN);
}

#[test]
fn each_option_of_exec_acts_or_is_refused() {
    all_act("exec", EXEC);
}

#[test]
fn each_option_of_nodeset_and_where_acts_or_is_refused() {
    all_act("nodeset", NODESET);
    all_act("where", WHERE);
}

#[test]
fn a_list_of_names_on_standard_input_is_read_to_its_end() {
    let (status, out, ..) =
        outcome("printf 'f\\n\\377\\ng\\n' > list; echo a > f; echo b > g; homing where --files-from - < list");
    // The file of the middle name is missing.
    assert!(status.is_some_and(|status| status != 0) && out.contains('g'), "{status:?}: {out}");
}
