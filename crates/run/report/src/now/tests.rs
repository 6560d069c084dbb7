use crate::{Now, made};
use homing_model::event::EventKind;
use homing_model::{Event, HostFacts, HostSample, IoCounters, Outcome, RawText};
use std::collections::BTreeMap;

const SECOND: i64 = 1_000_000_000;

fn at(now: &mut Now, seconds: i64, what: EventKind) {
    now.add(&Event { at_ns: seconds * SECOND, what });
}

fn started(task: u64, host: &str, slot: u32) -> EventKind {
    made::started(task, host, slot, &format!("bwa mem {task}.fq"), None)
}

fn ended(task: u64, host: &str, outcome: Outcome) -> EventKind {
    made::ended(task, host, outcome, 3_200_000, IoCounters::default())
}

fn sample(host: &str, at: i64, busy: u64) -> EventKind {
    let sample = HostSample {
        at_ns: at * SECOND,
        cpu_total_us: Some(at as u64 * 1_000_000),
        cpu_idle_us: Some(at as u64 * 1_000_000 - busy),
        disk_blocks: Some(at as u64 * 40_000),
        ..HostSample::default()
    };
    EventKind::Sample { host: host.into(), sample }
}

/// Three hosts, one of them lost; a server with a limit; one failure; four running tasks.
fn state() -> Now {
    let mut now = Now::default();
    let argv = ["homing", "run", "bwa mem {}"].map(|word| word.into()).to_vec();
    let run = "20261122-101010-abc".to_string();
    at(
        &mut now,
        0,
        EventKind::RunStarted {
            v: 1,
            run,
            argv,
            cwd: "/".into(),
            host: "n1".into(),
            pid: 1,
            tasks: Some(40),
            label: None,
        },
    );
    for host in ["n1", "n2", "n3"] {
        at(&mut now, 1, EventKind::HostUp { host: host.into(), slots: 2, facts: HostFacts::default() });
    }
    at(&mut now, 2, sample("n1", 2, 0));
    at(&mut now, 4, sample("n1", 4, 1_500_000));
    for (task, host, slot) in [(1, "n1", 1), (2, "n1", 2), (3, "n2", 1), (4, "n2", 2), (5, "n3", 1)] {
        at(&mut now, 4 + task as i64, started(task, host, slot));
    }
    at(&mut now, 20, ended(3, "n2", Outcome::Exit(1)));
    let why = "reads took 3 times as long with 9".into();
    at(&mut now, 21, EventKind::Limit { storage: "nas".into(), limit: Some(8), why });
    let users = vec![("ann".to_string(), 5), ("bob".to_string(), 3)];
    at(&mut now, 22, EventKind::Leases { storage: "nas".into(), limit: Some(8), users });
    at(&mut now, 23, EventKind::HostLost { host: "n3".into(), reason: "no answer for 30 s".into() });
    now
}

#[test]
fn a_run_fills_a_screen() {
    let mut now = state();
    at(&mut now, 62, sample("n1", 62, 0));
    at(&mut now, 64, sample("n1", 64, 1_500_000));
    let lines = now.lines("the line of progress", 40, 100, 65 * SECOND);
    let expected = "\
20261122-101010-abc  running  homing run 'bwa mem {}'
the line of progress

HOST  SLOTS  DONE  FAILED  CPU   DISK     NET
n3    1/2    0     0       -     -        -    lost: no answer for 30 s
n1    2/2    0     0       75 %  20 MB/s  -
n2    1/2    0     1       -     -        -

SERVER  LIMIT  HELD BY       WHY
nas     8      ann 5, bob 3  reads took 3 times as long with 9

FAILED  HOST  HOW     AFTER  COMMAND, AND ITS LAST WORDS
3       n2    exit 1  3.2 s  bwa mem 3.fq  no such sample\\u{1b}[2J

TASK  HOST  SLOT  FOR       COMMAND
1     n1    1     1:00 min  bwa mem 1.fq
2     n1    2     59 s      bwa mem 2.fq
4     n2    2     57 s      bwa mem 4.fq
5     n3    1     56 s      bwa mem 5.fq";
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn what_a_silent_host_said_last_is_not_told_as_of_now() {
    let silent = &state().host_states(65 * SECOND)[0];
    assert_eq!((silent.trouble.as_deref(), silent.cpu, silent.disk), (Some("silent for 61 s"), None, None));
    let fresh = &state().host_states(6 * SECOND)[0];
    assert_eq!((fresh.trouble.as_deref(), fresh.cpu.map(f64::round)), (None, Some(75.0)));
}

/// Host counters also have the bytes of other programs.
#[test]
fn a_run_that_is_over_has_no_rates_that_its_tasks_do_not_explain() {
    let rate = |read: u64| {
        let mut now = state();
        at(&mut now, 62, sample("n1", 62, 0));
        at(&mut now, 64, sample("n1", 64, 1_500_000));
        let io = IoCounters { rchar: Some(read), ..IoCounters::default() };
        at(&mut now, 65, made::ended(1, "n1", Outcome::Exit(0), 60_000_000, io));
        let disk = |now: &Now| now.host_states(65 * SECOND)[0].disk.map(f64::round);
        assert_eq!(disk(&now), Some(20.0), "a host of a run that goes on");
        at(&mut now, 66, EventKind::RunEnded { exit: 1, counts: BTreeMap::new() });
        disk(&now)
    };
    // The disks of n1 moved 62 times 40,000 blocks of 512 bytes.
    assert_eq!(rate(200_000), None);
    assert_eq!(rate(700_000_000), Some(20.0));
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut now = state();
    for task in 10..200 {
        at(&mut now, 30, EventKind::HostUp { host: format!("n{task}"), slots: 1, facts: HostFacts::default() });
        at(&mut now, 30, started(task, &format!("n{task}"), 1));
    }
    for (rows, columns) in [(24, 80), (40, 120), (50, 200), (10, 30), (3, 5), (0, 0)] {
        let lines = now.lines("the line of progress", rows, columns, 65 * SECOND);
        assert!(lines.len() <= rows && lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
    }
    let lines = now.lines("the line of progress", 24, 80, 65 * SECOND);
    let more: Vec<&String> = lines.iter().filter(|line| line.starts_with("and ")).collect();
    assert_eq!(more, ["and 188 hosts more", "and 190 tasks more"], "{lines:#?}");
    assert!(lines[4].contains("lost"), "who is lost comes first: {lines:#?}");
}

#[test]
fn what_is_over_is_not_under_way() {
    let mut now = state();
    assert_eq!((now.used(), now.over()), ((4, 4, 2), 1));
    at(&mut now, 30, ended(1, "n1", Outcome::Exit(0)));
    assert_eq!((now.used(), now.over()), ((3, 4, 2), 2));
    assert_eq!(now.elapsed(40 * SECOND).as_secs(), 40);
    // Attempts that ran when their coordinator died start again.
    at(&mut now, 50, EventKind::RunResumed { host: "n1".into(), pid: 2 });
    assert_eq!((now.used(), now.over()), ((0, 0, 0), 2));
    let json = now.json(60 * SECOND);
    assert_eq!((&json["tasks"], &json["sums"]["tasks"]["failed"]), (&serde_json::json!([]), &serde_json::json!(1)));
    assert_eq!(json["servers"][0]["users"][0], serde_json::json!(["ann", 5]));
}

#[test]
fn the_first_lines_of_a_run_that_is_over_have_its_state_and_its_sums() {
    let words = ["homing", "run", "wc -l"].into_iter().chain(std::iter::repeat_n("file-of-a-long-list", 400));
    let argv: Vec<RawText> = words.map(RawText::from).collect();
    let mut now = Now::default();
    let opening = EventKind::RunStarted {
        v: 1,
        run: "r1".into(),
        argv,
        cwd: "/".into(),
        host: "n1".into(),
        pid: 1,
        tasks: Some(4),
        label: None,
    };
    at(&mut now, 0, opening);
    at(&mut now, 0, EventKind::HostUp { host: "n1".into(), slots: 2, facts: HostFacts::default() });
    at(&mut now, 0, started(1, "n1", 1));
    at(&mut now, 2, ended(1, "n1", Outcome::Exit(0)));
    at(&mut now, 2, started(2, "n1", 1));
    let head = |now: &Now, columns| now.lines("the line of progress", 40, columns, 9 * SECOND)[..2].to_vec();
    assert_eq!(head(&now, 1000)[1], "the line of progress");
    assert_eq!(head(&now, 40)[0], "r1  running  homing run 'wc -l' …");
    assert!(head(&now, 1000)[0].chars().count() <= 120, "{:?}", head(&now, 1000));
    // Its coordinator died: its attempts ended with it.
    now.interrupt();
    assert!(head(&now, 80)[0].starts_with("r1  interrupted  homing run"));
    assert_eq!(head(&now, 80)[1], "1 done, 0 failed, 3 unfinished in 2 s on 1 host, 2 slots; homing resume r1 …");
    assert_eq!(now.lines("", 40, 80, 9 * SECOND).iter().filter(|line| line.starts_with("TASK")).count(), 0);
    at(&mut now, 3, EventKind::RunEnded { exit: 0, counts: BTreeMap::from([("skipped".to_string(), 3)]) });
    assert_eq!(head(&now, 80)[1], "1 done, 0 failed, 3 skipped in 3 s on 1 host, 2 slots");
    assert!(head(&now, 80)[0].starts_with("r1  ended, exit 0  homing run"));
}
