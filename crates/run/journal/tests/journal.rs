//! The journal as its readers see it: formats, cuts, damage, names.

#[path = "../../../../tests/ended.rs"]
mod ended;

use ended::End;
use homing_journal::{FILE, Journal, JournalError, RunCounts, RunState, find, is_own_name, live, replay, runs};
use homing_model::event::{EventKind, PlannedBytes};
use homing_model::{Event, HostFacts, HostSample, IoCounters, IoWait, Mount, Outcome, RawText};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One event of every kind, with awkward values in them.
fn every_kind() -> Vec<Event> {
    let host = || "n1".to_string();
    let facts = HostFacts {
        hostname: "n1".into(),
        aliases: vec!["n1.cluster".into(), "10.0.0.1".into()],
        cores: 2,
        memory_bytes: 1 << 34,
        arch: "x86_64".into(),
        boot_id: "b0".into(),
        mounts: vec![Mount { point: "/vol".into(), fstype: "fuse.glusterfs".into(), source: "n1:/data".into() }],
        nic_bytes_per_s: Some(125_000_000),
        now_ns: 5,
        ahead: None,
        most_tasks: None,
        containers: Vec::new(),
        gpus: 0,
        indices: BTreeMap::new(),
    };
    let sample = HostSample {
        at_ns: 6,
        r1m: Some(0.25),
        io_some_us: Some(9),
        net: BTreeMap::from([("eth0".to_string(), (u64::MAX, 2))]),
        ..HostSample::default()
    };
    let io = IoCounters { rchar: Some(7), wchar: None, read_bytes: 8, user_us: 9, ..IoCounters::default() };
    let kinds = vec![
        EventKind::RunStarted {
            v: 1,
            run: "r".into(),
            argv: vec!["homing".into(), "run".into(), RawText(b"\xfe".to_vec())],
            cwd: "/vol".into(),
            host: "login".into(),
            pid: 4,
            tasks: Some(3),
            label: None,
        },
        EventKind::RunResumed { host: "login".into(), pid: 5 },
        EventKind::HostUp { host: host(), slots: 2, facts },
        EventKind::HostLost { host: host(), reason: "no word for 30 s".into() },
        EventKind::HostUnfit { host: host(), reason: "/vol is not mounted".into() },
        EventKind::Sample { host: host(), sample },
        EventKind::TaskStarted {
            task: 1,
            attempt: 1,
            host: host(),
            slot: 2,
            command: "md5sum 'a\"b'".into(),
            planned: Some(PlannedBytes { local: 10, remote: 0, remote_if_in_turn: 7, from: vec![] }),
            why: Some("holds all of it".into()),
            after: None,
        },
        EventKind::from(End {
            outcome: Outcome::CannotStart("no such program".into()),
            start_ns: 100,
            wall_us: 20,
            io,
            io_wait: Some(IoWait::DelayAccounting(3)),
            printed: [1, 0],
            ran: Some(0x0123_4567_89ab_cdef),
            ..End::default()
        }),
        EventKind::TaskSkipped { task: 2, reason: "its outputs are newer".into() },
        EventKind::TaskAgain { task: 1 },
        EventKind::Limit { storage: host(), limit: Some(1), why: "2 at once moved less".into() },
        EventKind::Leases { storage: host(), limit: None, users: vec![("ann".into(), 2), ("bob".into(), 0)] },
        EventKind::Note { text: "two\nlines".into() },
        EventKind::RunEnded { exit: 1, counts: BTreeMap::from([("done".into(), 0), ("failed".into(), 1)]) },
    ];
    kinds.into_iter().enumerate().map(|(n, what)| Event { at_ns: 1_000 + n as i64, what }).collect()
}

fn written(root: &Path, run: &str, events: &[Event]) -> std::path::PathBuf {
    let mut journal = Journal::create(root, run).unwrap();
    for event in events {
        journal.append(event).unwrap();
    }
    journal.sync().unwrap();
    journal.dir().to_path_buf()
}

fn read(dir: &Path) -> Vec<Event> {
    replay(dir).unwrap().collect::<Result<_, _>>().unwrap()
}

/// The journal's format, a line for each kind. `HOMING_BLESS=1` writes it anew.
#[test]
fn every_kind_has_the_golden_form_and_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let dir = written(root.path(), "r", &every_kind());
    assert_eq!(read(&dir), every_kind());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.jsonl");
    let now = fs::read_to_string(dir.join(FILE)).unwrap();
    if std::env::var_os("HOMING_BLESS").is_some() {
        fs::write(&golden, &now).unwrap();
    }
    assert_eq!(now, fs::read_to_string(&golden).unwrap());
}

#[test]
fn a_wait_that_homing_0_1_estimated_is_unknown() {
    let ended = |wait: &str| {
        let io = r#"{"rchar":7,"wchar":null,"read_bytes":8,"write_bytes":0,"user_us":9,"sys_us":0,"max_rss":0}"#;
        let line = format!(
            r#"{{"at_ns":1,"event":"task_ended","task":1,"attempt":1,"host":"n1","outcome":{{"exit":0}},"start_ns":1,
                "wall_us":2,"io":{io}{wait},"stdout_bytes":0,"stderr_bytes":0,"last":true}}"#
        );
        match serde_json::from_str::<Event>(&line).unwrap().what {
            EventKind::TaskEnded { io_wait, .. } => io_wait,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended(r#","io_wait":{"pressure":3}"#), None);
    assert_eq!(ended(r#","io_wait":{"delay_accounting":3}"#), Some(IoWait::DelayAccounting(3)));
    assert_eq!([ended(""), ended(r#","io_wait":null"#)], [None, None]);
}

#[test]
fn a_cut_at_any_byte_leaves_a_prefix_and_can_be_taken_up() {
    let root = tempfile::tempdir().unwrap();
    let whole = every_kind();
    let bytes = fs::read(written(root.path(), "whole", &whole).join(FILE)).unwrap();
    let dir = root.path().join("cut");
    fs::create_dir(&dir).unwrap();
    for cut in 0..=bytes.len() {
        fs::write(dir.join(FILE), &bytes[..cut]).unwrap();
        let lines = bytes[..cut].iter().filter(|b| **b == b'\n').count();
        assert_eq!(read(&dir), whole[..lines], "cut at {cut}");
        let mut journal = Journal::reopen(&dir).unwrap();
        journal.append(&whole[1]).unwrap();
        drop(journal);
        let mut expected = whole[..lines].to_vec();
        expected.push(whole[1].clone());
        assert_eq!(read(&dir), expected, "taken up after a cut at {cut}");
    }
}

#[test]
fn a_torn_line_longer_than_the_search_step_is_cut() {
    let root = tempfile::tempdir().unwrap();
    let dir = written(root.path(), "r", &every_kind()[..2]);
    let mut bytes = fs::read(dir.join(FILE)).unwrap();
    let good = bytes.len();
    bytes.resize(good + 300_000, b'x');
    fs::write(dir.join(FILE), &bytes).unwrap();
    drop(Journal::reopen(&dir).unwrap());
    assert_eq!(fs::metadata(dir.join(FILE)).unwrap().len() as usize, good);
}

#[test]
fn unknown_kinds_are_counted_and_damage_names_its_line() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    fs::create_dir(&dir).unwrap();
    let note = r#"{"at_ns":1,"event":"note","text":"a","later":{"x":1}}"#;
    let lines = [note, r#"{"at_ns":2,"event":"host_sang","song":3}"#, r#"{"at_ns":3,"event":"note"}"#, "\0\0", note];
    fs::write(dir.join(FILE), lines.join("\n") + "\n").unwrap();
    let mut events = replay(&dir).unwrap();
    assert!(events.next().unwrap().is_ok(), "unknown fields do no harm");
    let said = events.next().unwrap().unwrap_err().to_string();
    assert!(said.starts_with("line 3 of ") && said.contains("text"), "{said}");
    assert_eq!(events.skipped(), 1);
    assert!(matches!(events.next(), Some(Err(JournalError::Damaged { line: 4, .. }))));
    assert!(events.next().unwrap().is_ok());
    assert!(events.next().is_none());
}

#[test]
fn a_damaged_record_of_leases_is_told_and_not_skipped() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(FILE), "{\"at_ns\":1,\"event\":\"leases\",\"storage\":\"n1\",\"users\":3}\n").unwrap();
    let mut events = replay(&dir).unwrap();
    let said = events.next().expect("the damage is told").unwrap_err().to_string();
    assert!(said.starts_with("line 1 of "), "{said}");
    assert_eq!(events.skipped(), 0);
}

#[test]
fn a_second_writer_is_refused_and_told_who_writes() {
    let root = tempfile::tempdir().unwrap();
    let mut first = Journal::create(root.path(), "r").unwrap();
    first.append(&every_kind()[0]).unwrap();
    first.flush().unwrap();
    let said = Journal::reopen(first.dir()).unwrap_err().to_string();
    assert!(said.contains(&format!("process {} on ", std::process::id())), "{said}");
    assert!(matches!(Journal::create(root.path(), "r"), Err(JournalError::Exists { .. })));
    assert!(matches!(runs(root.path())[0].state, RunState::Running { .. }));
    assert_eq!(live(root.path()), [first.dir().to_path_buf()]);
    drop(first);
    assert!(live(root.path()).is_empty());
}

#[test]
fn the_last_run_is_the_one_that_began_last_whatever_its_date_is() {
    let root = tempfile::tempdir().unwrap();
    let at =
        |ns: i64| -> Vec<Event> { every_kind().iter().map(|e| Event { at_ns: e.at_ns + ns, ..e.clone() }).collect() };
    // First with a clock that is a year ahead, then with the right one.
    for (name, ns) in [("20261127-a", 0), ("20271127-b", 31_536_000_000_000_000), ("20261127-c", 1_000_000)] {
        written(root.path(), name, &at(ns));
    }
    let names = || runs(root.path()).into_iter().map(|run| run.name).collect::<Vec<_>>();
    assert_eq!(names(), ["20261127-c", "20271127-b", "20261127-a"]);
    assert!(find(root.path(), "last").unwrap().ends_with("20261127-c"));
    fs::remove_dir_all(root.path().join("20261127-c")).unwrap();
    assert!(find(root.path(), "last").unwrap().ends_with("20271127-b"));
    // Older versions have noted no order: only dates remain.
    fs::remove_file(root.path().join(".order")).unwrap();
    written(root.path(), "20261127-d", &at(2_000_000));
    assert_eq!(names(), ["20261127-d", "20271127-b", "20261127-a"]);
}

#[test]
fn a_clock_that_the_file_system_or_a_run_contradicts_is_not_believed() {
    let root = tempfile::tempdir().unwrap();
    written(root.path(), "run", &every_kind());
    let (now, hours) = (std::time::SystemTime::now(), |hours: u64| std::time::Duration::from_secs(hours * 3600));
    let doubt = |now| homing_journal::clock_doubt(root.path(), now);
    assert_eq!((doubt(now), doubt(now + hours(20)), doubt(now - hours(20))), (None, None, None));
    assert!(doubt(now + hours(48)).unwrap().contains("file system"));
    assert!(doubt(now - hours(48)).unwrap().contains("file system"));
    let journal = fs::File::options().append(true).open(root.path().join("run/journal.jsonl")).unwrap();
    journal.set_modified(now + hours(48)).unwrap();
    assert!(doubt(now).unwrap().contains("the run run"));
}

#[test]
fn runs_are_listed_newest_first_and_found_by_prefix() {
    let root = tempfile::tempdir().unwrap();
    let at = |ns: i64, events: &[Event]| -> Vec<Event> {
        events.iter().map(|e| Event { at_ns: e.at_ns + ns, ..e.clone() }).collect()
    };
    written(root.path(), "b-early", &at(10, &every_kind()[..9]));
    written(root.path(), "b-late", &at(50, &every_kind()));
    fs::create_dir(root.path().join("no-run")).unwrap();
    let mut list = runs(root.path());
    assert_eq!(list.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["b-late", "b-early"]);
    list.reverse();
    assert_eq!(list[0].state, RunState::Interrupted);
    let none = RunCounts { done: Some(0), failed: Some(0), not_run: Some(0), skipped: Some(0), unfinished: Some(0) };
    let counts = RunCounts { failed: Some(1), skipped: Some(1), unfinished: Some(1), ..none };
    assert_eq!(list[0].counts, counts);
    // The last record leaves out zeros.
    assert_eq!(list[1].counts, RunCounts { failed: Some(1), ..none });
    assert_eq!(list[1].state, RunState::Ended { exit: 1, ended_ns: 1_063 });
    assert_eq!(list[1].argv.len(), 3);
    assert!(find(root.path(), "last").unwrap().ends_with("b-late"));
    assert!(find(root.path(), "b-e").unwrap().ends_with("b-early"));
    assert!(matches!(find(root.path(), "b-"), Err(JournalError::Ambiguous { .. })));
    assert!(matches!(find(root.path(), "c"), Err(JournalError::NotFound { .. })));
    assert!(runs(&root.path().join("missing")).is_empty());
}

#[test]
fn a_name_of_the_user_wins_over_the_beginning_of_another_name() {
    let root = tempfile::tempdir().unwrap();
    let begin = |run: &str, label: Option<&str>| {
        let what = EventKind::RunStarted {
            v: 1,
            run: run.into(),
            argv: vec!["homing".into()],
            cwd: "/".into(),
            host: "n1".into(),
            pid: 1,
            tasks: None,
            label: label.map(String::from),
        };
        written(root.path(), run, &[Event { at_ns: 1, what }]);
    };
    begin("20261128-100201-22m", None);
    begin("20261128-110000-abc", Some("20261128-100201"));
    begin("20261128-120000-abd", Some("2026"));
    for (name, run) in [
        ("20261128-100201", "20261128-110000-abc"),
        ("2026", "20261128-120000-abd"),
        ("20261128-100201-22m", "20261128-100201-22m"),
        ("20261128-1002", "20261128-100201-22m"),
    ] {
        assert!(find(root.path(), name).unwrap().ends_with(run), "{name}");
    }
    begin("night", None);
    let own = ["night", "20261128-100201-22m", "20270101-000000-zzz", "20261128-100201", "morning"];
    assert_eq!(own.map(|name| is_own_name(root.path(), name)), [true, true, true, false, false]);
}

/// Its input may have had more tasks.
#[test]
fn tasks_left_of_a_run_that_was_killed_while_it_read_are_unknown() {
    let root = tempfile::tempdir().unwrap();
    let started = EventKind::RunStarted {
        v: 1,
        run: "r".into(),
        argv: vec!["homing".into()],
        cwd: "/".into(),
        host: "n1".into(),
        pid: 1,
        tasks: None,
        label: None,
    };
    let ended = EventKind::from(End { task: 1, outcome: Outcome::Exit(0), ..End::default() });
    written(root.path(), "r", &[started, ended].map(|what| Event { at_ns: 1, what }));
    let info = &runs(root.path())[0];
    let counts = serde_json::json!({"done": 1, "failed": 0, "not_run": 0, "skipped": 0, "unfinished": null});
    assert_eq!((&info.state, serde_json::to_value(info).unwrap()["counts"].clone()), (&RunState::Interrupted, counts));
}

/// One damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Bit(u8),
    Byte(u8),
    Zeros(usize),
    Gone(usize),
    Twice(usize),
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>, at: usize) {
        match *self {
            Damage::Bit(bit) => bytes[at] ^= 1 << (bit % 8),
            Damage::Byte(byte) => bytes[at] = byte,
            Damage::Zeros(n) => bytes.iter_mut().skip(at).take(n).for_each(|b| *b = 0),
            Damage::Gone(n) => drop(bytes.drain(at..(at + n).min(bytes.len()))),
            Damage::Twice(n) => {
                let again = bytes[at..(at + n).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, again));
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<u8>().prop_map(Damage::Bit),
        any::<u8>().prop_map(Damage::Byte),
        Just(Damage::Byte(b'\n')),
        (1..5000usize).prop_map(Damage::Zeros),
        (1..5000usize).prop_map(Damage::Gone),
        (1..5000usize).prop_map(Damage::Twice),
    ]
}

/// Returns the events that can be read, and the number of reported errors.
fn salvaged(dir: &Path) -> (Vec<Event>, usize) {
    let (good, bad): (Vec<_>, Vec<_>) = replay(dir).unwrap().partition(Result::is_ok);
    (good.into_iter().map(Result::unwrap).collect(), bad.len())
}

fn note(n: usize) -> Event {
    Event { at_ns: n as i64, what: EventKind::Note { text: format!("note {n}") } }
}

/// If the bytes between two places are lost, the first field behind the hole may look like one of an unknown kind.
#[test]
fn a_line_that_runs_into_the_end_of_another_is_damage() {
    let root = tempfile::tempdir().unwrap();
    let events = every_kind();
    let first = written(root.path(), "r", &events[..1]);
    let line = fs::read(first.join(FILE)).unwrap();
    // The brace alone is also the end of a line of homing 0.1. Only the gap before the next line shows the damage.
    let brace = line.len() - 2;
    for from in 1..brace {
        for to in line.len().saturating_sub(24).max(from + 1)..brace {
            let joined = [&line[..from], &line[to..]].concat();
            fs::write(first.join(FILE), joined).unwrap();
            let (good, _) = salvaged(&first);
            // The loss of the seal alone changes no record.
            assert!(good.iter().all(|event| *event == events[0]), "without {from} to {to}: {good:?}");
        }
    }
}

#[test]
fn a_journal_of_homing_0_1_is_read_and_gone_on_with() {
    let root = tempfile::tempdir().unwrap();
    let old: Vec<String> = (0..3).map(|n| serde_json::to_string(&note(n)).unwrap() + "\n").collect();
    fs::write(root.path().join(FILE), old.concat()).unwrap();
    let mut journal = Journal::reopen(root.path()).unwrap();
    journal.append(&note(3)).unwrap();
    drop(journal);
    assert_eq!(read(root.path()), [note(0), note(1), note(2), note(3)]);
    let text = fs::read_to_string(root.path().join(FILE)).unwrap();
    assert!(text.lines().last().unwrap().contains("\"n\":4,"), "{text}");
}

#[test]
fn lines_that_are_missing_are_told_once() {
    let root = tempfile::tempdir().unwrap();
    let events: Vec<Event> = (0..9).map(note).collect();
    let dir = written(root.path(), "r", &events);
    let text = fs::read_to_string(dir.join(FILE)).unwrap();
    let kept: Vec<&str> = text.lines().enumerate().filter(|(n, _)| !(2..5).contains(n)).map(|(_, l)| l).collect();
    fs::write(dir.join(FILE), kept.join("\n") + "\n").unwrap();
    let mut replay = replay(&dir).unwrap();
    let said = replay.by_ref().find_map(Result::err).unwrap().to_string();
    assert!(said.contains("line 3") && said.contains("records 3 to 5 are missing"), "{said}");
    assert_eq!(replay.collect::<Result<Vec<_>, _>>().unwrap(), events[5..]);
    let mut journal = Journal::reopen(&dir).unwrap();
    journal.append(&note(9)).unwrap();
    drop(journal);
    assert_eq!(salvaged(&dir).1, 1, "what is added later follows");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    /// One damage at any place: no false record is read, and no record but the last is missing without an error.
    /// Records that are added later are read.
    #[test]
    fn one_damage_anywhere_costs_records_and_is_told(how in damage(), at in any::<prop::sample::Index>()) {
        let root = tempfile::tempdir().unwrap();
        let mut events = every_kind();
        events.extend((0..40).map(note));
        let dir = written(root.path(), "r", &events);
        let mut bytes = fs::read(dir.join(FILE)).unwrap();
        let at = at.index(bytes.len());
        how.to(&mut bytes, at);
        fs::write(dir.join(FILE), &bytes).unwrap();
        let (good, told) = salvaged(&dir);
        let mut from = events.iter();
        prop_assert!(good.iter().all(|event| from.any(|written| written == event)), "in order, and as written");
        prop_assert!(told > 0 || good == events[..good.len()], "missing without a word");
        let mut journal = Journal::reopen(&dir).unwrap();
        journal.append(&note(99)).unwrap();
        drop(journal);
        let (more, again) = salvaged(&dir);
        prop_assert_eq!(more.len(), good.len() + 1);
        prop_assert!(again >= told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// A cut leaves the records that were complete before it, for any texts.
    #[test]
    fn a_cut_of_any_texts_leaves_a_prefix(texts in prop::collection::vec(any::<Vec<u8>>(), 1..8), at in any::<prop::sample::Index>()) {
        let root = tempfile::tempdir().unwrap();
        let skip = |b: &Vec<u8>| EventKind::TaskSkipped { task: 1, reason: String::from_utf8_lossy(b).into_owned() };
        let began = |b: &Vec<u8>| EventKind::RunStarted {
            v: 1, run: "r".into(), argv: vec![RawText(b.clone())], cwd: "/".into(), host: "n1".into(), pid: 1, tasks: None,
            label: None,
        };
        let whats = texts.iter().flat_map(|t| [skip(t), began(t)]);
        let events: Vec<Event> = whats.map(|what| Event { at_ns: -1, what }).collect();
        let dir = written(root.path(), "r", &events);
        let bytes = fs::read(dir.join(FILE)).unwrap();
        let cut = at.index(bytes.len() + 1);
        fs::write(dir.join(FILE), &bytes[..cut]).unwrap();
        let lines = bytes[..cut].iter().filter(|b| **b == b'\n').count();
        prop_assert_eq!(read(&dir), events[..lines].to_vec());
    }
}
