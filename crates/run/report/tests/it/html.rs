//! The page of a run.

use crate::made::{Shape, run};
use homing_model::event::{Event, EventKind};
use homing_report::Tally;

fn tally(events: &[Event]) -> Tally {
    let mut tally = Tally::new();
    events.iter().for_each(|event| tally.add(event));
    tally
}

fn html(events: &[Event]) -> String {
    homing_report::html(events, &tally(events))
}

/// Saves a page for inspection if the variable is set.
fn keep(name: &str, page: &str) {
    if let Some(dir) = std::env::var_os("HOMING_KEEP_PAGES") {
        std::fs::write(std::path::Path::new(&dir).join(name), page).unwrap();
    }
}

#[test]
fn a_page_holds_every_section_and_escapes_what_came_from_outside() {
    let page = html(&run(&Shape { tasks: 120, hosts: 4, slots: 2, volume: true }));
    keep("volume.html", &page);
    for title in
        ["Hosts and tasks", "Tasks completed", "Bytes per second", "Bytes read", "I/O pressure", "Failed tasks"]
    {
        assert!(page.contains(title), "{title} is missing");
    }
    assert!(page.contains("sample &lt;7&gt; &amp; &quot;co&quot;.fq") && !page.contains("<7>"));
    for column in ["<th>CPU</th>", "<th>I/O wait</th>", "<td data-by=\"90000\">90 ms</td>"] {
        assert!(page.contains(column), "{column} is missing");
    }
    assert!(page.contains("exit 1: md5sum: &lt;no&gt; such file"), "a failed task tells its last words");
    let heading = page.split("<h2>Failed tasks").nth(1).expect("a table").split("</tr>").next().unwrap();
    let at = |column: &str| heading.find(&format!("<th>{column}</th>")).expect("a column");
    assert!(at("Outcome") < at("Command") && at("Command") < at("Wall"), "a phone shows the reason: {heading}");
    assert!(!page.contains("<th>Peak memory</th>"), "no task of this run has it");
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    for outside in ["http://", "https://", "NaN", "inf\""] {
        assert!(!page.contains(outside), "{outside} is in the page");
    }
}

/// Host counters also have the bytes of other programs.
#[test]
fn bytes_that_the_tasks_do_not_explain_are_not_drawn() {
    let page = |read: u64| {
        let mut events = run(&Shape { tasks: 120, hosts: 4, slots: 2, volume: true });
        for event in &mut events {
            if let EventKind::TaskEnded { io, .. } = &mut event.what {
                io.rchar = Some(read);
            }
        }
        html(&events)
    };
    let parts = ["Bytes per second", "received from the network", "<th>Disk</th>", "<th>Sent</th>", ">Measured<"];
    let (own, others) = (page(50_000_000), page(1000));
    for part in parts {
        assert!(own.contains(part) && !others.contains(part), "{part}");
    }
    assert!(others.contains("<th>Slots</th>") && others.contains("I/O pressure"));
}

#[test]
fn counters_that_stood_still_are_no_curve() {
    let mut events = run(&Shape { tasks: 120, hosts: 4, slots: 2, volume: true });
    let mut first = std::collections::HashMap::new();
    for event in &mut events {
        match &mut event.what {
            EventKind::Sample { host, sample } => {
                *sample = first.entry(host.clone()).or_insert_with(|| sample.clone()).clone();
            }
            EventKind::TaskEnded { io, .. } => io.rchar = Some(50_000_000),
            _ => {}
        }
    }
    assert!(!html(&events).contains("Bytes per second"));
}

#[test]
fn every_element_that_opens_also_closes() {
    let page = html(&run(&Shape { tasks: 60, hosts: 3, slots: 2, volume: true }));
    for name in ["svg", "g", "title", "section", "table", "tr", "td", "text", "div", "main"] {
        let opened = page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
    }
}

#[test]
fn a_hundred_thousand_tasks_make_less_than_two_megabytes() {
    let page = html(&run(&Shape { tasks: 100_000, hosts: 64, slots: 8, volume: true }));
    keep("large.html", &page);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn small_and_empty_runs_have_a_page() {
    keep("local.html", &html(&run(&Shape { tasks: 8, hosts: 1, slots: 2, volume: false })));
    assert!(html(&[]).contains("</html>"));
}

#[test]
fn a_run_without_an_end_is_running_or_interrupted() {
    let mut events = run(&Shape { tasks: 8, hosts: 1, slots: 2, volume: false });
    events.retain(|event| !matches!(event.what, EventKind::RunEnded { .. }));
    assert!(html(&events).contains(">running<") && !html(&events).contains(">interrupted<"));
    let mut tally = tally(&events);
    tally.interrupt();
    assert!(homing_report::html(&events, &tally).contains(">interrupted<"));
}
