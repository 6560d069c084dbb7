//! The lines at the end of a run.

use crate::made::{Shape, run};
use homing_model::event::{Event, EventKind, PlannedBytes};
use homing_report::Tally;

fn tally(shape: &Shape) -> Tally {
    let mut tally = Tally::new();
    run(shape).iter().for_each(|e| tally.add(e));
    tally
}

#[test]
fn a_run_on_a_volume_shows_its_evidence() {
    let tally = tally(&Shape { tasks: 40, hosts: 4, slots: 2, volume: true });
    let text = tally.text(false);
    println!("{text}");
    assert!(text.lines().filter(|l| !l.starts_with(' ')).count() <= 10 && !text.contains('\x1b'), "{text}");
    for label in ["tasks", "wall time", "planned", "in turn", "measured", "network", "disks", "I/O wait", "busiest"] {
        assert!(text.lines().any(|l| l.starts_with(label)), "{label} is missing in\n{text}");
    }
    let json = tally.json();
    assert_eq!(json["tasks"]["total"], 40);
    assert_eq!(json["hosts"].as_object().unwrap().len(), 4);
    assert!(json["planned"]["local_bytes"].as_u64() > json["planned"]["remote_bytes"].as_u64());
}

#[test]
fn a_server_that_is_no_host_of_the_run_has_a_limit_and_a_chart_and_is_not_counted_as_a_host() {
    let mut events = run(&Shape { tasks: 40, hosts: 4, slots: 2, volume: true });
    let last = events.pop().unwrap();
    let limit = EventKind::Limit { storage: "nas".into(), limit: Some(3), why: "5 at once were served less".into() };
    // The initial limit of a storage is not reported.
    let first = EventKind::Limit { storage: "new".into(), limit: Some(1), why: String::new() };
    events.extend([limit, first].map(|what| Event { at_ns: last.at_ns, what }));
    events.push(last);
    let mut tally = Tally::new();
    events.iter().for_each(|e| tally.add(e));
    let text = tally.text(false);
    assert!(!text.contains("new: ") && !homing_report::html(&events, &tally).contains("storage of new"), "{text}");
    assert!(text.contains("nas: 3 tasks at once at the end, because 5 at once were served less"), "{text}");
    assert!(text.contains("on 4 hosts, 8 slots"), "{text}");
    assert!(homing_report::html(&events, &tally).contains("Tasks at once on the storage of nas"));
}

#[test]
fn of_a_server_that_others_used_the_most_of_each_is_told() {
    let mut events = run(&Shape { tasks: 40, hosts: 4, slots: 2, volume: true });
    let at_ns = events[1].at_ns;
    let mut leases = |storage: &str, limit, users: &[(&str, u32)]| {
        let users = users.iter().map(|(user, held)| (user.to_string(), *held)).collect();
        events.insert(2, Event { at_ns, what: EventKind::Leases { storage: storage.into(), limit, users } });
    };
    leases("own", None, &[("ann", 6)]);
    leases("nas", Some(8), &[("ann", 1)]);
    leases("nas", Some(6), &[("ann", 3), ("bob\x1b", 5)]);
    let mut tally = Tally::new();
    events.iter().for_each(|e| tally.add(e));
    let text = tally.text(false);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("shared")).collect();
    assert!(matches!(lines[..], [line] if line.starts_with("shared     nas: most tasks at once: 5 of bob")), "{text}");
    assert!(lines[0].ends_with(", 3 of ann; limit for all users: 8") && !text.contains('\x1b'), "{text}");
    assert_eq!(tally.json()["shared"]["nas"]["most"]["ann"], 3);
}

#[test]
fn a_local_run_keeps_to_a_few_lines_and_invents_nothing() {
    let tally = tally(&Shape { tasks: 10, hosts: 1, slots: 2, volume: false });
    let text = tally.text(false);
    println!("{text}");
    assert!(text.lines().filter(|l| !l.starts_with(' ')).count() <= 4, "{text}");
    let json = tally.json();
    assert!(json["planned"].is_null() && json["measured"]["hosts_received_bytes"].is_null());
    assert!(tally.text(true).contains("\x1b["));
}

#[test]
fn nothing_at_all_is_no_error() {
    assert_eq!(Tally::new().text(false).lines().count(), 2);
    assert!(Tally::new().json()["io_wait"].is_null());
}

#[test]
fn a_wait_that_is_not_known_is_unknown_and_what_would_tell_it_is_named_where_files_are_read() {
    let text = |volume, read_bytes| {
        let mut tally = Tally::new();
        for mut event in run(&Shape { tasks: 40, hosts: 2, slots: 2, volume }) {
            if let EventKind::TaskEnded { io_wait, io, .. } = &mut event.what {
                (*io_wait, io.read_bytes) = (None, read_bytes);
            }
            tally.add(&event);
        }
        tally.text(false)
    };
    let line = |text: String| text.lines().find(|l| l.starts_with("I/O wait")).unwrap().to_string();
    assert!(line(text(true, 0)).contains("unknown") && line(text(true, 0)).contains("kernel.task_delayacct=1"));
    assert!(line(text(false, 512)).contains("kernel.task_delayacct=1"));
    assert!(line(text(false, 0)).ends_with("do not measure it"), "{}", text(false, 0));
}

#[test]
fn a_failure_tells_its_host_time_status_command_last_words_and_the_next_step() {
    let tally = tally(&Shape { tasks: 40, hosts: 4, slots: 2, volume: true });
    let text = tally.text(false);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|l| l.starts_with("  failed   task ")).expect(&text);
    assert!(lines[at].contains(": exit 1 on n") && lines[at].contains("s): md5sum '/vol/reads/sample <"), "{text}");
    assert_eq!(lines[at + 1], "           md5sum: <no> such file", "{text}");
    assert!(lines.contains(&"  again    homing resume --failed 20261121-033312-4k7"), "{text}");
}

#[test]
fn one_machine_gets_one_line_and_what_failed() {
    let one = tally(&Shape { tasks: 3, hosts: 1, slots: 2, volume: false });
    assert_eq!(one.counts().failed(), 0);
    let brief = one.brief(false);
    assert_eq!(brief.lines().count(), 1, "{brief}");
    assert!(brief.starts_with("tasks      3 done, 0 failed in "), "{brief}");
    assert!(brief.ends_with(" s (homing report 20261121-033312-4k7)\n"), "{brief}");
    let many = tally(&Shape { tasks: 120, hosts: 1, slots: 2, volume: false });
    assert!(many.counts().failed() > 0 && many.brief(false).contains("\n  failed   task "));
}

#[test]
fn the_error_output_that_the_user_has_just_seen_is_not_repeated_at_the_end() {
    let error = "md5sum: <no> such file";
    for shape in
        [Shape { tasks: 40, hosts: 4, slots: 2, volume: true }, Shape { tasks: 120, hosts: 1, slots: 2, volume: false }]
    {
        let tally = tally(&shape);
        assert!(tally.text(false).contains(error), "homing report has it");
        for end in [tally.short(false), tally.brief(false)] {
            let failed = end.lines().filter(|line| line.starts_with("  failed   task ")).count();
            assert!(failed > 0 && !end.contains(error), "{end}");
        }
    }
}

/// Returns the line of a run's evidence on its inputs. Its tasks read the `part` of a hundred of each input.
fn inputs(part: u64, place: impl Fn(&mut PlannedBytes)) -> String {
    let mut tally = Tally::new();
    for mut event in run(&Shape { tasks: 40, hosts: 4, slots: 2, volume: true }) {
        match &mut event.what {
            EventKind::TaskEnded { io, .. } => io.rchar = io.rchar.map(|read| read * part / 100),
            EventKind::TaskStarted { planned: Some(planned), .. } => place(planned),
            _ => {}
        }
        tally.add(&event);
    }
    let text = tally.short(false);
    let line = text.lines().find(|line| line.starts_with("data")).expect("a line on inputs");
    assert!(line.len() <= 80, "{line}");
    line.into()
}

#[test]
fn nothing_is_called_read_beyond_the_bytes_that_tasks_have_read() {
    assert_eq!(inputs(100, |_| ()), "data       95 % of 2.0 GB at home, 106 MB over the network, by layout");
    assert_eq!(inputs(1, |_| ()), "data       2.0 GB of inputs, 95 % at home by layout; tasks read 20.2 MB");
    let home = |planned: &mut PlannedBytes| {
        *planned = PlannedBytes { local: 1_000_000, ..PlannedBytes::default() };
    };
    assert_eq!(inputs(100, home), "data       40.0 MB of inputs at home (100 %), by layout");
    assert_eq!(inputs(0, home), "data       40.0 MB of inputs, 100 % at home by layout; tasks read 0 B");
    let nas = |planned: &mut PlannedBytes| {
        *planned = PlannedBytes { remote: 1_000_000, remote_if_in_turn: 1_000_000, ..PlannedBytes::default() };
    };
    let far = "data       40.0 MB of inputs over the network: on no host of this run, by layout";
    assert_eq!(inputs(100, nas), far);
    assert_eq!(inputs(0, nas), "data       40.0 MB of inputs, on no host of this run; tasks read 0 B");
}
