//! `homing run` under attack: file names, floods of output, and processes left behind. Readers go, disks fill, and a
//! journal is cut anywhere.

use crate::skipped::skipped;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn homing(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    command.args(args).current_dir(dir).env("HOMING_RUNS", dir.join("runs")).env("SHELL", "/bin/sh");
    command.env_remove("HOMING_CLUSTER").stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Names that break shells, option parsers and lists.
const NAMES: [&[u8]; 16] = [
    b"new\nline",
    b"qu'o\"te",
    b"-rf",
    b"--help",
    b">gt",
    b"$(touch pwned)",
    b"`touch pwned`",
    b" lead",
    b"*",
    b"\xff\xfe",
    b"~",
    b"#x",
    b"&",
    b";",
    b"{}",
    b":::",
];

#[test]
fn any_file_name_is_one_argument() {
    let dir = tempfile::tempdir().unwrap();
    for name in NAMES {
        std::fs::write(dir.path().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let mut list = NAMES.join(&0);
    list.push(0);
    for shell in [false, true] {
        let command: &[&str] = if shell { &["cat -- {} | cat; echo .{}"] } else { &["cat", "--", "{}"] };
        let mut child = homing(dir.path(), &[&["run", "-q", "-k", "-0"], command].concat());
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&list).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = |n: &&[u8]| if shell { [n, b".".as_slice(), n, b"\n"].concat() } else { n.to_vec() };
        assert_eq!(output.stdout, NAMES.iter().map(told).collect::<Vec<_>>().concat());
        assert!(output.status.success());
    }
    assert!(!dir.path().join("pwned").exists());
}

/// Returns the highest memory so far of a process and its children together, KiB.
fn peak_kib(pid: u32) -> u64 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let all = children.split_whitespace().filter_map(|p| p.parse().ok()).chain([pid]);
    let peak = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0").to_string();
        line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    all.map(peak).max().unwrap_or(0)
}

#[test]
fn a_flood_of_binary_output_is_whole_and_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    // Two tasks at once print 200 MB, with every byte value in it.
    let flood = "head -c 100000000 /dev/zero | tr '\\0' '\\377'; printf '\\0\\n{}'";
    let args = ["run", "-q", "-k", "-j2", flood, ":::", "a", "b"];
    let mut child = homing(dir.path(), &args).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut buffer, mut total, mut peak, mut tail) = (vec![0; 1 << 20], 0, 0, Vec::<u8>::new());
    loop {
        let n = out.read(&mut buffer).unwrap();
        if n == 0 {
            break;
        }
        total += n;
        tail.extend_from_slice(&buffer[n.saturating_sub(3)..n]);
        tail.drain(..tail.len().saturating_sub(3));
        peak = peak.max(peak_kib(child.id()));
    }
    assert!(child.wait().unwrap().success());
    assert_eq!((total, tail), (200_000_006, b"\0\nb".to_vec()));
    assert!(peak > 1000 && peak < 150_000, "{peak} KiB");
    let journal = std::fs::read_dir(dir.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
    assert_eq!(text.matches("\"stdout_bytes\":100000003").count(), 2, "{text}");
    let mut left: Vec<_> = std::fs::read_dir(&journal).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["environment", "journal.jsonl"], "nothing is left of what was kept on disk");
}

fn runs_anywhere(mark: &str) -> bool {
    let list = std::fs::read_dir("/proc").unwrap().flatten();
    list.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok()).any(|l| l == mark.as_bytes())
}

#[test]
fn what_a_task_leaves_in_the_background_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    // No test waits a day for them; the fraction is this test's own.
    let day = format!("86391.{}", std::process::id());
    for command in [format!("sleep {day} & echo {{}}"), format!("setsid sleep {day} >/dev/null 2>&1 & echo {{}}")] {
        let output = homing(dir.path(), &["run", "-q", &command, ":::", "a"]).output().unwrap();
        assert_eq!(output.stdout, b"a\n");
        assert!(!runs_anywhere(&format!("sleep\0{day}\0")), "{command}");
    }
}

#[test]
fn a_reader_that_goes_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    for keep in ["-k", "--line-buffer"] {
        let day = format!("86393.{}", std::process::id());
        let stays = format!(": {{}}; seq 20000; sleep {day}");
        let args = ["run", "-q", keep, "-j2", &stays, ":::", "1", "2"];
        let args: Vec<&str> =
            if keep == "-k" { vec!["run", "-q", "-k", ": {}; seq 20000", ":::", "1", "2", "3"] } else { args.to_vec() };
        let mut child = homing(dir.path(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 2];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), said(&output).as_str()), (Some(141), ""), "{keep}");
        assert!(!runs_anywhere(&format!("sleep\0{day}\0")));
    }
}

#[test]
fn a_full_disk_is_one_line_and_the_run_can_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = homing(dir.path(), &["run", "-q", "echo", ":::", "a"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(254));
    assert!(said(&output).starts_with("homing: cannot write the output of tasks: No space left"), "{}", said(&output));
    let runs = homing(dir.path(), &["runs"]).output().unwrap();
    assert!(String::from_utf8_lossy(&runs.stdout).contains("interrupted"), "{runs:?}");
    std::fs::write(dir.path().join("file"), "").unwrap();
    let mut nowhere = homing(dir.path(), &["run", "echo", ":::", "a"]);
    let output = nowhere.env("HOMING_RUNS", dir.path().join("file/x")).output().unwrap();
    assert_eq!((output.status.code(), said(&output).lines().count()), (Some(254), 2), "{}", said(&output));
    if !rustix::process::geteuid().is_root() {
        skipped("a full file system needs root");
        return;
    }
    // The run has a mount namespace of its own, with a disk of 256 KiB for the journal.
    let script = "mount -t tmpfs -o size=256k x runs && \"$0\" run -q --joblog log echo ::: $(seq 2000) >out; echo $?; \
        \"$0\" runs | grep -c interrupted; mount -o remount,size=64m runs && \"$0\" resume last >>out; echo $?";
    std::fs::create_dir_all(dir.path().join("runs")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_homing")]).current_dir(dir.path());
    let output = command.env("HOMING_RUNS", dir.path().join("runs")).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "254\n1\n0\n", "{}", said(&output));
    let out = std::fs::read_to_string(dir.path().join("out")).unwrap();
    let mut seen: Vec<u32> = out.lines().map(|l| l.parse().unwrap()).collect();
    seen.sort_unstable();
    seen.dedup();
    let lost = 2000 - seen.len();
    assert!(lost <= 100, "only what was being printed when the disk was full may be lost: {lost}");
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    let mut listed: Vec<u32> = log.lines().skip(1).map(|l| l.split('\t').next().unwrap().parse().unwrap()).collect();
    listed.sort_unstable();
    assert!(listed.into_iter().eq(1..=2000), "each task has one line: {log}");
}

/// Runs a script with a disk of 64 KiB at `small`, in a mount namespace of its own; `None` where that needs root.
fn on_a_small_disk(dir: &Path, script: &str) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        skipped("a full file system needs root");
        return None;
    }
    std::fs::create_dir(dir.join("small")).unwrap();
    let script = format!("mount -t tmpfs -o size=64k x small; {script}");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_homing")]).current_dir(dir).stdin(Stdio::null());
    command.env("HOMING_RUNS", dir.join("runs")).env("SHELL", "/bin/sh").env_remove("HOMING_CLUSTER");
    Some(command.output().unwrap())
}

#[test]
fn a_run_without_room_to_begin_is_no_run() {
    let dir = tempfile::tempdir().unwrap();
    // The run's first record, with all its arguments, is longer than the disk.
    let script = "HOMING_RUNS=$PWD/small \"$0\" run -q echo ::: $(seq 20000); echo $?; ls small | wc -l";
    let Some(output) = on_a_small_disk(dir.path(), script) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "254\n0\n", "{}", said(&output));
    assert!(said(&output).contains("no task has run"), "{}", said(&output));
    assert!(!said(&output).contains("homing resume"), "there is nothing to resume: {}", said(&output));
}

/// A task that writes beyond the limit ends as in a shell.
#[test]
fn a_limit_on_the_size_of_files_is_told_as_a_full_disk_is() {
    let dir = tempfile::tempdir().unwrap();
    let limited = |limit: &str, words: &[&str]| {
        let script = format!("ulimit -f {limit}; \"$0\" \"$@\" >out");
        let mut command = Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_homing")]).args(words).current_dir(dir.path());
        command.env("HOMING_RUNS", dir.path().join("runs")).env_remove("HOMING_CLUSTER").stdin(Stdio::null());
        command.output().unwrap()
    };
    let output = limited("0", &["run", "-q", "echo", ":::", "1"]);
    assert_eq!(output.status.code(), Some(254), "{}", said(&output));
    assert!(said(&output).contains("File too large"), "{}", said(&output));
    let output = limited("64", &["run", "-q", "seq 100000; echo", ":::", "1"]);
    assert_eq!(output.status.code(), Some(254), "{}", said(&output));
    assert!(said(&output).contains("File too large"), "{}", said(&output));
    let output = limited("64", &["run", "-q", "head -c 1M /dev/zero >", ":::", "big"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(std::fs::metadata(dir.path().join("big")).unwrap().len(), 64 << 10);
}

/// The limit has the effect of a full disk.
#[test]
fn a_page_that_does_not_fit_leaves_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    assert!(homing(dir.path(), &["run", "-q", "true", ":::", "1"]).status().unwrap().success());
    std::fs::write(dir.path().join("page.html"), "old").unwrap();
    let report = |limit: &str| {
        let mut command = Command::new("bash");
        let script = format!("ulimit -f {limit}; exec \"$0\" report last --html page.html");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_homing")]).current_dir(dir.path());
        command.env("HOMING_RUNS", dir.path().join("runs")).env_remove("HOMING_CLUSTER").stdin(Stdio::null());
        command.output().unwrap()
    };
    let page = || std::fs::read_to_string(dir.path().join("page.html")).unwrap();
    let output = report("4");
    assert_eq!(output.status.code(), Some(254), "{}", said(&output));
    assert!(said(&output).contains("File too large"), "{}", said(&output));
    let names = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!((page().as_str(), names), ("old", 2), "the runs and the page");
    assert!(report("unlimited").status.success() && page().ends_with("</html>\n"));
}

#[test]
fn no_task_begins_that_the_journal_had_no_room_for() {
    let dir = tempfile::tempdir().unwrap();
    let script = "HOMING_RUNS=$PWD/small \"$0\" run -q -j4 'echo {} >> ran' ::: $(seq 2000); echo $?; \
        sed -n 's/.*\"task_started\",\"task\":\\([0-9]*\\),.*/\\1/p' small/*/journal.jsonl | sort > known; \
        sort ran | comm -13 known -; test -s known && echo some";
    let Some(output) = on_a_small_disk(dir.path(), script) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "254\nsome\n", "{}", said(&output));
}

#[test]
fn a_job_log_that_lacks_lines_is_told_in_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let script = "\"$0\" run -q --joblog small/log true ::: $(seq 2000); echo $?; \
        mount -o remount,size=4m small; \"$0\" resume last; echo $?; wc -l < small/log";
    let Some(output) = on_a_small_disk(dir.path(), script) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "254\n0\n2001\n", "{}", said(&output));
    assert!(said(&output).contains("cannot write the job log: No space left"), "{}", said(&output));
}

/// The journal of six tasks, cut at every byte around the ends of its records, and at every 17th in between. The rest
/// of it decides which tasks still run.
#[test]
fn a_journal_cut_at_any_byte_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let ran =
        homing(dir.path(), &["run", "-q", "-j1", "echo {}", ":::", "1", "2", "3", "4", "5", "6"]).output().unwrap();
    assert!(ran.status.success());
    let run = std::fs::read_dir(dir.path().join("runs")).unwrap().next().unwrap().unwrap().file_name();
    let whole = std::fs::read(dir.path().join("runs").join(&run).join("journal.jsonl")).unwrap();
    let near = |at: usize| (at.saturating_sub(2)..at + 2).any(|i| whole.get(i) == Some(&b'\n'));
    let first = whole.iter().position(|b| *b == b'\n').unwrap();
    let cuts: Vec<usize> = (0..=whole.len()).filter(|at| at % 17 == 0 || near(*at)).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        while let Some(at) = cuts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let copy = tempfile::tempdir().unwrap();
            let folder = copy.path().join("runs").join(&run);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("journal.jsonl"), &whole[..*at]).unwrap();
            let output = homing(copy.path(), &["resume", "last"]).output().unwrap();
            if *at <= first {
                assert_ne!(output.status.code(), Some(0), "cut at {at}: there is no run");
                continue;
            }
            assert!(output.status.success(), "cut at {at}: {}", said(&output));
            let kept = String::from_utf8_lossy(&whole[..*at]).into_owned();
            let kept = &kept[..kept.rfind('\n').map_or(0, |end| end + 1)];
            let settled = |task: u32| {
                kept.lines().any(|l| l.contains("\"task_ended\"") && l.contains(&format!("\"task\":{task},")))
            };
            let mut due: Vec<String> = (1..=6).filter(|t| !settled(*t)).map(|t| t.to_string()).collect();
            let mut printed: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect();
            due.sort();
            printed.sort();
            assert_eq!(printed, due, "cut at {at}");
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
}

/// `homing volume list | head`, `> /dev/full`, `>&-`: no panic, and a status that shows the failure.
#[test]
fn a_list_that_nobody_takes_ends_with_a_status_and_one_line_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let list = |to: Stdio| {
        let mut command = homing(dir.path(), &["volume", "list"]);
        let output = command.env("HOMING_VOLUMES", dir.path()).stdout(to).stderr(Stdio::piped()).output().unwrap();
        (output.status.code(), said(&output))
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(list(writer.into()), (Some(141), String::new()));
    for (command, status) in [
        (&["exec", "-n", "-w", "localhost", "seq 1000000"][..], 141),
        (&["exec", "-n", "-w", "localhost", "--json", "seq 1000"], 141),
        (&["run", "--dry-run", "echo", ":::", "a"], 141),
        (&["completions", "bash"], 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = homing(dir.path(), command).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), said(&output)), (Some(status), String::new()), "{command:?}");
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (status, told) = list(full.into());
    assert_eq!((status, told.lines().count()), (Some(254), 1), "{told}");
    assert!(told.starts_with("homing: writing to standard output: No space left on device"), "{told}");
}

/// Names of files may hold escape sequences, as may the names of hosts in another user's journal.
#[test]
fn nothing_unknown_reaches_the_terminal_raw() {
    let dir = tempfile::tempdir().unwrap();
    let evil = "no/\u{1b}]0;title\u{7}\u{9b}2J";
    for args in [["run", "--tasks", evil, "-k"], ["run", "--joblog", evil, "true"], ["run", "-a", evil, "true"]] {
        let output = homing(dir.path(), &args).output().unwrap();
        let status = if args[1] == "--joblog" { 254 } else { 255 };
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert!(said(&output).contains("no/\\u{1b}]0;title"), "{}", said(&output));
        assert!(!said(&output).contains(['\u{1b}', '\u{7}', '\u{9b}']), "{}", said(&output));
    }
    assert_eq!(homing(dir.path(), &["run", "-q", "false", ":::", "a"]).status().unwrap().code(), Some(1));
    let run = std::fs::read_dir(dir.path().join("runs")).unwrap().flatten().map(|e| e.path().join("journal.jsonl"));
    let path = run.filter(|p| std::fs::read_to_string(p).is_ok_and(|t| t.contains("task_ended"))).last().unwrap();
    let record = r#"{"at_ns":1,"event":"task_ended","task":2,"attempt":1,"host":"\u001b[2Jh","outcome":{"cannot_start":"\u001b[31mwhy\u0007"},"#;
    let rest = r#""start_ns":1,"wall_us":1,"io":{"rchar":0,"wchar":0,"read_bytes":0,"write_bytes":0,"user_us":0,"sys_us":0,"max_rss":0},"stdout_bytes":0,"stderr_bytes":0,"last":true}"#;
    // The journal as release 0.1 wrote it: without numbers and checksums.
    let text = std::fs::read_to_string(&path).unwrap();
    let unsealed =
        text.lines().map(|line| line.rsplit_once(",\"n\":").map_or(line.into(), |(own, _)| format!("{own}}}")));
    let unsealed = unsealed.collect::<Vec<String>>().join("\n");
    std::fs::write(&path, format!("{unsealed}\n{record}{rest}\n")).unwrap();
    let report = homing(dir.path(), &["report", &path.parent().unwrap().display().to_string()]).output().unwrap();
    let told = String::from_utf8_lossy(&report.stdout).into_owned() + &said(&report);
    assert!(told.contains("\\u{1b}[2Jh") && !told.contains(['\u{1b}', '\u{7}']), "{told}");
}
