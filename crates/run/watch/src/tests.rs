use crate::{About, KeyPress, Scene, Shown, ViewRequest, WatchView, draw};
use homing_model::live::WaitGroup;
use homing_report::{FailureState, Fetch, HostState, ServerState, TaskState};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Duration;

fn host(n: u32, running: usize) -> HostState {
    let (name, cpu, disk) = (format!("n{n}"), Some(f64::from(n)), Some(20.0));
    HostState { name, slots: 2, running, done: 3, cpu, disk, net: Some(12.0), link: Some(48.0), ..HostState::default() }
}

fn task(id: u64, host: u32, age: u64) -> TaskState {
    let command = format!("bwa mem {id}.fq");
    let age = Duration::from_secs(age);
    TaskState { id, name: id.to_string(), host: format!("n{host}"), slot: 1, age, moved: Some(id << 20), command }
}

fn scene(hosts: u32) -> Scene {
    let mut all: Vec<HostState> = (1..=hosts).map(|n| host(n, usize::from(n > 1) * 2)).collect();
    all[1].trouble = Some("silent for 4 s".into());
    let why = "reads took 3 times as long with 9".to_string();
    let users = vec![("ann".to_string(), 5), ("bob".to_string(), 3)];
    let failure = FailureState {
        task: 3,
        host: "n2".into(),
        how: "exit 1".into(),
        took: "3.2 s".into(),
        command: "bwa mem 3.fq  no such sample\u{1b}[2J".into(),
    };
    Scene {
        about: About::Run,
        title: "20261122-101010-abc  running  homing run 'bwa mem {}'".into(),
        progress: "the line of progress".into(),
        sums: "inputs  1.0 GB at home (90 %), 111 MB over the network".into(),
        hosts: all,
        servers: vec![ServerState { name: "nas".into(), limit: Some(8), why, users }],
        fetches: vec![Fetch { from: "n2".into(), to: "n1".into(), tasks: 1, bytes: 5_000_000 }],
        waits: vec![WaitGroup { why: "a slot of n2, which holds their inputs".into(), tasks: 40 }],
        failures: vec![failure],
        tasks: (1..=hosts).map(|n| task(u64::from(n), n, u64::from(n))).collect(),
        hint: String::new(),
        is_live: true,
    }
}

fn picture(scene: &Scene, view: &mut WatchView, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, scene, view)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |row: u16| (0..columns).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..rows).map(|row| line(row).trim_end().to_string()).collect()
}

/// Each screen is a file. UPDATE=1 writes the files, to be reviewed.
#[test]
fn a_run_looks_as_it_did_on_screens_of_three_sizes() {
    for (columns, rows) in [(60, 16), (80, 24), (132, 43)] {
        let seen = picture(&scene(3), &mut WatchView::default(), columns, rows).join("\n") + "\n";
        let path = format!("{}/src/screens/{columns}x{rows}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &seen).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(seen, written, "{path}: UPDATE=1 cargo test --workspace --lib screens_of_three_sizes");
    }
}

#[test]
fn of_hosts_of_an_earlier_time_only_what_was_kept_is_told() {
    let hosts = vec![
        HostState { slots: 8, memory: Some(2048.0), trouble: None, ..host(1, 0) },
        HostState { name: "n2".into(), trouble: Some("no history".into()), lost: true, ..HostState::default() },
    ];
    let scene =
        Scene { about: About::Past, title: "n[1-2]".into(), progress: "then".into(), hosts, ..Scene::default() };
    let expected = "\
n[1-2]
then

HOST              CORES  CPU  I/O WAIT  FREE MEM  DISK     NET, LINK
n2    no history  -      -    -         -         -        -
n1                8      1 %  -         2.1 GB    20 MB/s  12 MB/s 48 %
";
    assert_eq!(crate::text(&scene, 200), expected);
    // For hosts of the present, slots are jobs. No count of ended jobs exists.
    let now = crate::text(&Scene { about: About::Hosts, ..scene }, 200);
    assert!(now.contains("  SLOTS  CPU  I/O WAIT  FREE MEM  DISK ") && now.contains("  0/8    1 %"), "{now}");
}

#[test]
fn many_hosts_fit_on_any_screen_and_those_in_trouble_stand_first() {
    let scene = scene(256);
    for (columns, rows) in [(80, 24), (132, 43), (200, 60), (40, 10), (1, 1), (0, 0)] {
        let lines = picture(&scene, &mut WatchView::default(), columns, rows);
        if columns >= 80 {
            assert!(lines[4].starts_with("n2 ") && lines[4].contains("silent for 4 s"), "{lines:#?}");
            assert!(lines.iter().any(|line| line.starts_with("n[3-256]")), "{lines:#?}");
            assert!(lines.last().unwrap().starts_with("q leaves  ? help"), "{lines:#?}");
        }
    }
    let mut view = WatchView::default();
    view.press(KeyPress::Char('f'), &scene);
    let lines = picture(&scene, &mut view, 132, 24);
    assert!(lines.iter().any(|line| line.contains("hosts more)")), "{lines:#?}");
    // The last task is reached, and is shown.
    view.press(KeyPress::End, &scene);
    let lines = picture(&scene, &mut view, 132, 24);
    assert!(lines.iter().any(|line| line.ends_with("bwa mem 1.fq")), "{lines:#?}");
    view.press(KeyPress::Tab, &scene);
    view.press(KeyPress::End, &scene);
    assert!(picture(&scene, &mut view, 132, 24).iter().any(|line| line.starts_with("n1 ")));
}

fn types(view: &mut WatchView, scene: &Scene, text: &str) {
    text.chars().for_each(|c| assert_eq!(view.press(KeyPress::Char(c), scene), None));
}

#[test]
fn keys_sort_filter_and_leave() {
    let (scene, mut view) = (scene(12), WatchView::default());
    types(&mut view, &scene, "/N1");
    assert_eq!(view.shown, Shown::Filter);
    view.press(KeyPress::Char('2'), &scene);
    view.press(KeyPress::Enter, &scene);
    let lines = picture(&scene, &mut view, 100, 40);
    assert_eq!(lines.iter().filter(|line| line.contains("bwa mem")).count(), 3, "title, failure, task: {lines:#?}");
    assert_eq!(view.press(KeyPress::Escape, &scene), None, "the filter goes first");
    types(&mut view, &scene, "ss");
    let lines = picture(&scene, &mut view, 100, 40);
    let first = lines.iter().position(|line| line.starts_with("TASK")).unwrap() + 1;
    assert!(lines[first - 1].contains("HOST*") && lines[first].starts_with("1 "), "{lines:#?}");
    for (key, wish) in [
        (KeyPress::Char(' '), ViewRequest::Pause),
        (KeyPress::Char('+'), ViewRequest::Faster),
        (KeyPress::Char('-'), ViewRequest::Slower),
        (KeyPress::Char('q'), ViewRequest::Leave),
        (KeyPress::Escape, ViewRequest::Leave),
        (KeyPress::Interrupt, ViewRequest::Leave),
    ] {
        assert_eq!(view.press(key, &scene), Some(wish));
    }
}

#[test]
fn nothing_is_ended_without_a_question() {
    let (mut scene, mut view) = (scene(12), WatchView::default());
    view.press(KeyPress::Down, &scene);
    assert_eq!(view.press(KeyPress::Char('k'), &scene), None);
    assert_eq!(view.shown, Shown::Question(11), "the second of those that run longest");
    let lines = picture(&scene, &mut view, 100, 24);
    assert_eq!(lines.last().unwrap(), "y ends task 11, any other key does not: bwa mem 11.fq");
    assert_eq!(view.press(KeyPress::Char('n'), &scene), None);
    view.press(KeyPress::Char('k'), &scene);
    assert_eq!(view.press(KeyPress::Char('y'), &scene), Some(ViewRequest::End(11)));
    assert_eq!(view.press(KeyPress::Enter, &scene), Some(ViewRequest::Output(11)));
    view.output(11, (1..=50).map(|n| format!("line {n}\n")).collect());
    let lines = picture(&scene, &mut view, 100, 24);
    assert_eq!(lines[lines.len() - 2], "line 50", "{lines:#?}");
    view.press(KeyPress::Up, &scene);
    assert_eq!(picture(&scene, &mut view, 100, 24)[22], "line 49");
    view.press(KeyPress::Home, &scene);
    view.press(KeyPress::Char('x'), &scene);
    assert_eq!(view.shown, Shown::All);
    // A replay accepts no action on tasks.
    scene.is_live = false;
    assert_eq!(view.press(KeyPress::Char('k'), &scene), None);
    assert_eq!(view.shown, Shown::All);
    assert!(view.message.contains("over"), "{}", view.message);
}
