#[path = "../../../../../tests/ended.rs"]
mod ended;

use super::*;
use crate::asked::RecipeRequest;
use crate::near::RecipeInputs;
use crate::running::RecipeDetails;
use crate::{HostChoice, Why};
use ended::End;
use homing_launch::wire::OutputStream;
use homing_launch::{HostLinks, HostPlan, Via};
use std::sync::mpsc::{Receiver, Sender, channel};

struct Ear(Sender<Event>);

impl Listener for Ear {
    fn event(&mut self, event: Event) {
        let _ = self.0.send(event);
    }
}

fn reporter() -> (BuildReporter, Receiver<Event>) {
    let (ear, heard) = channel();
    (BuildReporter::to(Box::new(Ear(ear))), heard)
}

fn hosts() -> HostLinks<BuildHost> {
    let plan = |name: &str| HostPlan { name: name.into(), via: Via::Local, slots: None };
    let mut hosts = HostLinks::new(BuildHost::new, ["n1", "n2"].map(plan).into(), |_, _| Ok(()));
    for host in hosts.iter_mut() {
        (host.slots, host.facts.aliases) = (1, vec![format!("{}.net", host.name)]);
    }
    hosts
}

/// Returns the recipe of a connection, given to the host with this index.
fn recipe(id: u64, host: usize) -> RecipeAttempt {
    let words = ["/bin/sh", "-c", "cc -c a.c"].map(Into::into).into();
    let asked = RecipeRequest::new(id, words, "/p".into(), Vec::new());
    RecipeAttempt { host, killed: false, of: RecipeDetails::new(asked, HostChoice { host, why: Why::Load }, 2) }
}

fn ended(outcome: Outcome) -> AttemptEnd {
    let io = IoCounters { user_us: 5, ..IoCounters::default() };
    let (stdout, stderr, set_aside, wrote) = Default::default();
    AttemptEnd { ticket: 1, outcome, wall_us: 3, io, io_wait: None, stdout, stderr, set_aside, wrote }
}

/// Shortens events for tests: the kind, the task, the attempt, and whether it was the last.
fn short(heard: &Receiver<Event>) -> Vec<String> {
    let short = |event: Event| match event.what {
        EventKind::TaskStarted { task, attempt, host, .. } => format!("started {task}.{attempt} {host}"),
        EventKind::TaskEnded { task, attempt, last, .. } => format!("ended {task}.{attempt} {last}"),
        EventKind::TaskAgain { task } => format!("again {task}"),
        other => panic!("{other:?}"),
    };
    heard.try_iter().map(short).collect()
}

#[test]
fn a_recipe_that_fails_is_told_with_its_command_what_it_used_and_its_last_words() {
    let (mut reporter, heard) = reporter();
    let mut running = recipe(40, 1);
    reporter.started(7_000, &running, &hosts());
    running.prints(OutputStream::Out, b"a.c\n");
    running.prints(OutputStream::Err, b"a.c:1: what is");
    running.prints(OutputStream::Err, b" this?\n\n");
    reporter.ended(9_000, &running, "n2", &ended(Outcome::Exit(1)));
    let heard: Vec<Event> = heard.try_iter().collect();
    let started = EventKind::TaskStarted {
        task: 1,
        attempt: 1,
        host: "n2".into(),
        slot: 3,
        command: "cc -c a.c".into(),
        planned: None,
        why: Some("least loaded".into()),
        after: None,
    };
    let ended = EventKind::from(End {
        host: "n2".into(),
        outcome: Outcome::Exit(1),
        start_ns: 6_000,
        wall_us: 3,
        io: IoCounters { user_us: 5, ..IoCounters::default() },
        printed: [4, 22],
        said: Some("a.c:1: what is this?".into()),
        ..End::default()
    });
    assert_eq!(heard, [Event { at_ns: 7_000, what: started }, Event { at_ns: 9_000, what: ended }]);
}

#[test]
fn of_what_a_compiler_prints_the_first_error_is_told_and_no_part_of_a_line() {
    let said = |printed: &[u8]| {
        let mut running = recipe(1, 0);
        running.prints(OutputStream::Err, printed);
        running.failure_message()
    };
    let error = "a.c:1:2: error: expected ';'\n 1 | x\n   |  ^\n";
    let printed = format!("a.c: In function 'f':\n{error}b.c:9:9: error: another\n   |  ^\n");
    assert_eq!(said(printed.as_bytes()).as_deref(), Some("a.c:1:2: error: expected ';'"));
    assert_eq!(said(b"cp: no such file\n\n").as_deref(), Some("cp: no such file"));
    assert_eq!(said(&error.repeat(1000).into_bytes()).as_deref(), Some("a.c:1:2: error: expected ';'"));
    assert_eq!(said(b""), None);
}

#[test]
fn recipes_are_numbered_as_they_start_and_keep_their_number_as_often_as_they_run() {
    let (mut reporter, heard) = reporter();
    let (lost, other) = (recipe(40, 0), recipe(12, 1));
    reporter.started(0, &lost, &hosts());
    reporter.started(0, &other, &hosts());
    reporter.gave_up(0, &lost, "n1", Outcome::Lost("gone".into()), false);
    reporter.started(0, &recipe(40, 1), &hosts());
    reporter.ended(0, &other, "n2", &ended(Outcome::Exit(0)));
    reporter.ended(0, &lost, "n2", &ended(Outcome::Exit(0)));
    let expected =
        ["started 1.1 n1", "started 2.1 n2", "ended 1.1 false", "started 1.2 n2", "ended 2.1 true", "ended 1.2 true"];
    assert_eq!(short(&heard), expected);
    assert!(reporter.numbers.is_empty(), "nothing is kept of what went well");
}

#[test]
fn a_recipe_that_runs_once_more_after_its_failure_is_said_to_and_one_that_has_not_begun_counts_once() {
    let (mut reporter, heard) = reporter();
    let running = recipe(1, 0);
    reporter.started(0, &running, &hosts());
    reporter.has_not_begun(&running);
    reporter.started(0, &running, &hosts());
    reporter.ended(0, &running, "n1", &ended(Outcome::Exit(2)));
    reporter.started(0, &running, &hosts());
    let expected = ["started 1.1 n1", "started 1.1 n1", "ended 1.1 true", "again 1", "started 1.2 n1"];
    assert_eq!(short(&heard), expected);
}

#[test]
fn it_is_told_which_hosts_hold_what_a_recipe_reads() {
    let mut running = recipe(1, 0);
    assert_eq!(planned(&running, &hosts()), None, "not known");
    let on = [("n1", 100), ("n2.net", 200), ("nas", 600)].map(|(name, bytes)| (name.to_string(), bytes));
    running.request.inputs = RecipeInputs { bytes: 900, on: on.into() };
    let from = vec![("n2".to_string(), 200), ("nas".to_string(), 600)];
    let expected = PlannedBytes { local: 100, remote: 800, remote_if_in_turn: 750, from };
    assert_eq!(planned(&running, &hosts()), Some(expected));
}
