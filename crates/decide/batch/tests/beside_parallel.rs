//! Compares with GNU parallel: the same words give the same commands in the same order as its `--dry-run`. Each
//! program resumes from the other's joblog. The tests are skipped with a message if it is not installed.

use homing_batch::{
    Files, InputOptions, JOBLOG_HEADER, JoblogEntry, Packing, command_line, compose, fill_slot, read_joblog,
};
use homing_model::RawText;
use std::io::{BufReader, Cursor, Write as _};
use std::process::{Command, Stdio};

/// Equivalent options of ours and theirs, the words, and the input.
struct Case {
    flags: &'static [&'static str],
    words: &'static [&'static str],
    stdin: &'static str,
}

const fn case(flags: &'static [&'static str], words: &'static [&'static str], stdin: &'static str) -> Case {
    Case { flags, words, stdin }
}

const CASES: &[Case] = &[
    case(&[], &["echo", ":::", "a", "b c", "d'e", "", "ü", "a*b", "~x", "a=b", "a,b", "a+b", "{x}", "-n"], ""),
    case(&[], &["echo {} {.} {/} {//} {/.} {#}", ":::", "a/b.c/d.tar.gz", "x", "/y", ".b", "a/.b", "a.", "a/b/"], ""),
    case(&[], &["echo {1} {2.} {-1} {1/} {1//} {1/.} {-2/}", ":::", "a/b.c", "d", ":::", "x.y", "z"], ""),
    case(&[], &["echo", ":::", "a", "b", ":::", "1", "2", ":::", "x", "y"], ""),
    case(&[], &["echo", ":::", "a", "b", "c", ":::+", "1", "2", ":::", "X", "Y"], ""),
    case(&[], &["echo", "{2}", "{}", ":::", "a b", ":::", "c"], ""),
    case(&[], &["echo", "x{}y", "{1}{2}", ":::", "a", ":::", "b"], ""),
    case(&[], &["echo [{2}] {3} {-9}", ":::", "a"], ""),
    case(&[], &["echo", "{01}", "{{}}", ":::", "a"], ""),
    case(&[], &["echo {#}", ":::", "a", "b"], ""),
    case(&[], &["echo {%}", ":::", "a"], ""),
    case(&[], &["cat < {} > {.}.o", ":::", "a b.c", "d.e"], ""),
    case(&[], &["echo '{}' \"{}\"", ":::", "a b"], ""),
    case(&[], &["echo", "{ }", "{..}", ":::", "a"], ""),
    case(&[], &[":::", "echo 1", "echo \"2  3\"", "true"], ""),
    case(&[], &[":::", "echo", "ls", ":::", "a", "b"], ""),
    case(&[], &["echo", ":::", "a", "b", ":::"], ""),
    case(&[], &["echo", "::::", "-", ":::", "a", "b"], ""),
    case(&[], &["echo", ":::", "a", "b", "::::", "-"], ""),
    case(&[], &["echo", ":::", ":::"], ""),
    case(&[], &["echo", ":::", "a", "b", ":::+", ":::", "c"], ""),
    case(&[], &["echo", "{}"], "a b\n\nc \n  d"),
    case(&["-r"], &["echo", "{}"], "a b\n\n \t\nc \n"),
    case(&["-0"], &["echo", "{}"], "a b\0c\0"),
    case(&["-d;"], &["echo", "{}"], "a;b;c"),
    case(&["-d\\t"], &["echo", "{}"], "a\tb"),
    case(&[], &[], "echo 1\necho 2 | cat\n"),
    case(&[], &["echo", "::::", "-", ":::", "a", "b"], "1\n2\n"),
    case(&[], &["echo", ":::", "a", "b", "::::", "-"], "1\n2\n"),
    case(&[], &["echo", ":::", "a", "b", "::::+", "-"], "1\n2\n3\n"),
    case(&["-n2"], &["echo"], "1\n2\n3\n"),
    case(&["-N2"], &["echo {1} {2}", ":::", "a", "b", "c"], ""),
    case(&["-n2"], &["echo", ":::", "a", "b", "c", ":::", "1", "2"], ""),
    case(&["-N0"], &["echo hi", ":::", "a", "b"], ""),
    case(&["--colsep=,"], &["echo {2} {1}", ":::", "a , b", "c"], ""),
    case(&["--colsep=[,;]"], &["echo"], "a;b,c\n"),
    case(&["--colsep=\\t"], &["echo {1} {2}"], "a\tb c\n"),
    case(&["-N2"], &["echo a{}b c{1}d \"{2} {}\"", ":::", "a", "b", "c"], ""),
    case(&["-n2"], &["echo a{}b c{1}d", ":::", "a", "b", "c"], ""),
    case(&["-L2"], &["echo {} x{#}"], "1 \n2\n3\n4\n"),
    case(&["-X"], &["echo a{}b {.}x{/} {1} {#}", ":::", "1.a", "2.b", "3.c"], ""),
    case(&["-m"], &["echo a{}b {.}", ":::", "1.a", "2.b", "3.c"], ""),
    case(&["--link"], &["echo", ":::", "1", "2", "3", ":::", "a", "b", "::::", "-"], "x\n"),
    case(&["-I,,"], &["echo ,, {} {1} {.} a,,b", ":::", "a.b", "c.d"], ""),
    case(&["--header=:"], &["echo {x} {y.} {1} {2/}", ":::", "x", "1", "2", ":::", "y", "a.b", "c"], ""),
    case(&["--header=:", "--colsep=,"], &["echo {n} {m}{n.}"], "n,m\n1 , 2\n3,4\n"),
    case(&["--header=:"], &["echo [{n}] [{m}]"], "n\tm\n1 \t 2\n3\t4\n"),
    case(&["--rpl={x} s/a/b/g"], &["echo {x} {1x} {}", ":::", "aaa", "c"], ""),
    case(&["--rpl={.} s:\\.[^/.]+$::;"], &["echo {.} {1.}", ":::", "a.b.c", "d."], ""),
    case(&["--rpl=,, s/^.//"], &["echo x,,y", ":::", "abc"], ""),
    case(&["--rpl={n} 1 $_=$job->seq()"], &["echo {n}{}", ":::", "a", "b"], ""),
    case(
        &["--plus"],
        &[
            "echo {+/} {..} {...} {+.} {+..} {+...} {/..} {/...} {1+/} {##} {0#}",
            ":::",
            "a.b/c.d.e.f",
            "g",
            "h.i",
            "/x/y.z.w",
        ],
        "",
    ),
    case(
        &["--plus"],
        &[
            "echo {:-z}, {:2} {:1:2} {#a.} {##a.*b} {%d} {%%c.*} {/b/X} {//./_} {/#a/Z} {/%d/Y} {^a} {^^c} {,A} {,,C}",
            ":::",
            "a.b/abc.d.e.cd",
            "",
            "ACCD",
        ],
        "",
    ),
    case(&["--plus"], &["echo {0#}", ":::", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"], ""),
    case(&["-q"], &["echo", "a  b", "$x", "{} {}", "y", ":::", "x y"], ""),
];

fn options(flags: &[&str]) -> InputOptions {
    let mut options = InputOptions::default();
    for flag in flags {
        match *flag {
            "-r" => options.no_run_if_empty = true,
            "-0" => options.null = true,
            "-q" => options.quote = true,
            _ if flag.starts_with("-d") => options.delimiter = Some(flag[2..].into()),
            _ if flag.starts_with("--colsep=") => options.colsep = Some(flag["--colsep=".len()..].into()),
            "--link" => options.link = true,
            "--plus" => options.replacements.plus = true,
            _ if flag.starts_with("-I") => options.replacements.renamed.push((flag[2..].into(), "{}")),
            _ if flag.starts_with("--rpl=") => options.replacements.defined.push(flag["--rpl=".len()..].into()),
            _ if flag.starts_with("--header") => options.header = true,
            "-X" | "-m" => {
                options.packing = Packing { full: true, spread: Some(1), context: *flag == "-X", ..Default::default() };
            }
            _ => {
                let records = Some(flag[2..].parse().expect("-nN"));
                let (context, continued) = (!flag.starts_with("-n"), flag.starts_with("-L"));
                options.packing = Packing { records, context, continued, ..Default::default() };
            }
        }
    }
    options
}

fn ours(case: &Case) -> Vec<String> {
    let words: Vec<RawText> = case.words.iter().map(|w| RawText::from(*w)).collect();
    let stdin = BufReader::new(Cursor::new(case.stdin.as_bytes()));
    let batch =
        compose(&words, options(case.flags), &mut Files::new(".".as_ref(), Box::new(stdin)), false).expect("a batch");
    batch
        .map(|task| {
            let mut command = task.expect("a task").command;
            fill_slot(&mut command, 1);
            String::from_utf8(command_line(&command)).expect("text")
        })
        .collect()
}

fn theirs(case: &Case, home: &std::path::Path) -> Vec<String> {
    let mut child = Command::new("parallel")
        .args(["--will-cite", "--dry-run", "-k", "-j1"])
        .args(case.flags)
        .args(case.words)
        .env("HOME", home)
        // Otherwise it quotes for the shell that it finds among its ancestors.
        .env("PARALLEL_SHELL", "/bin/sh")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("parallel starts");
    // It closes its input without reading if it needs none.
    let _ = child.stdin.take().expect("piped").write_all(case.stdin.as_bytes());
    let output = child.wait_with_output().expect("parallel ends");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// Splits the lines into words as a shell does. The set of harmless characters that are quoted, such as a comma or an
/// `@`, changes between versions of GNU parallel. Blanks between words are not kept if no shell is needed.
fn words(lines: &[String]) -> Vec<Vec<String>> {
    lines.iter().map(|l| shlex::split(l).unwrap_or_else(|| vec![l.clone()])).collect()
}

/// Whether GNU parallel is installed; prints a message if not.
fn installed() -> bool {
    let version = Command::new("parallel").args(["--will-cite", "--version"]).output();
    let found = version.is_ok_and(|o| o.stdout.starts_with(b"GNU parallel"));
    if !found {
        eprintln!("NOT TESTED: GNU parallel is not installed here, so nothing was compared with it");
    }
    found
}

#[test]
fn dry_runs_agree() {
    if !installed() {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let differing = CASES.iter().filter_map(|case| {
        let (ours, theirs) = (ours(case), theirs(case, home.path()));
        (words(&ours) != words(&theirs))
            .then(|| format!("{:?} {:?}\n  ours   {ours:?}\n  theirs {theirs:?}", case.flags, case.words))
    });
    let differing: Vec<String> = differing.collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Runs GNU parallel over four statuses with this joblog, and returns its output.
fn with_joblog(log: &std::path::Path, flags: &[&str]) -> String {
    let mut parallel = Command::new("parallel");
    parallel.args(["--will-cite", "-k", "-j1"]).args(flags).arg("--joblog").arg(log);
    parallel.args(["echo {}; exit {}", ":::", "0", "1", "2", "0"]).env("HOME", log.parent().expect("a folder"));
    String::from_utf8(parallel.stdin(Stdio::null()).output().expect("parallel runs").stdout).expect("text")
}

#[test]
fn each_resumes_from_the_joblog_of_the_other() {
    if !installed() {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let log = home.path().join("theirs");
    with_joblog(&log, &[]);
    let theirs = std::fs::read(&log).expect("a joblog");
    assert!(theirs.starts_with(JOBLOG_HEADER.as_bytes()));
    let seen = read_joblog(&theirs[..]).expect("their joblog");
    assert_eq!(seen.ended(), [1, 2, 3, 4].into());
    assert_eq!(seen.succeeded(), [1, 4].into());

    let mut ours = JOBLOG_HEADER.as_bytes().to_vec();
    for (seq, exit) in [(1, 0), (2, 1), (3, 2)] {
        let command = format!("echo {exit}; exit {exit}").into_bytes();
        let (start_ns, wall_us) = (1_795_232_396_767_000_000, 3_000);
        let entry =
            JoblogEntry { seq, host: "n1".into(), start_ns, wall_us, sent: 0, received: 2, exit, signal: 0, command };
        entry.write(&mut ours).expect("memory");
    }
    for (flag, ran) in [("--resume", "0\n"), ("--resume-failed", "1\n2\n0\n")] {
        let log = home.path().join(flag);
        std::fs::write(&log, &ours).expect("a joblog");
        assert_eq!(with_joblog(&log, &[flag]), ran, "{flag}");
    }
}
