//! Runs and jobs on one machine: they share its slots.

use super::world::World;
use crate::until::until;
use std::collections::VecDeque;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A task or job that marks that it has begun and runs until it is let go.
const STAYS: &str = "touch began.{}; until [ -e go.{} ]; do sleep 0.02; done";

fn run(world: &World, more: &[&str], tasks: &[&str]) -> Child {
    let words = [&["run"], more, &[STAYS, ":::"], tasks].concat();
    world.command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn job(world: &World, slots: &str, name: &str) -> String {
    world.out(&["sub", "-q", "-n", slots, &STAYS.replace("{}", name)]).trim().to_string()
}

fn has_begun(world: &World, name: &str) -> bool {
    world.path().join(format!("began.{name}")).exists()
}

fn begins(world: &World, name: &str) {
    until(&format!("{name} has begun"), || has_begun(world, name));
}

fn go(world: &World, name: &str) {
    std::fs::write(world.path().join(format!("go.{name}")), "").unwrap();
}

/// Waits until the run has seen that a job waits.
fn knows(world: &World) {
    let told = || std::fs::read_dir(world.own_folder().join("runs")).is_ok_and(|mut all| all.next().is_some());
    until("the run knows that a job waits", told);
}

fn ends_well(run: Child) -> String {
    let ended = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}");
    said
}

#[test]
fn a_run_waits_for_the_slots_that_jobs_have() {
    let world = World::new(2);
    job(&world, "2", "job");
    begins(&world, "job");
    let said = std::fs::File::create(world.path().join("said")).unwrap();
    let mut waits = world.command(&["run", STAYS, ":::", "a", "b"]).stderr(said).spawn().unwrap();
    // A run that does not share slots, and one inside a job, which has the job's slots.
    go(&world, "apart");
    ends_well(run(&world, &["--no-share"], &["apart"]));
    go(&world, "within");
    let within = world.command(&["run", STAYS, ":::", "within"]).env("HOMING_JOB", "1").status();
    assert!(within.unwrap().success());
    let said = || world.lines("said").join("\n");
    until("it says why it waits", || said().contains("tasks wait for slots: jobs of the queue hold all 2 slots of"));
    assert!(!has_begun(&world, "a") && !has_begun(&world, "b"));
    ["job", "a", "b"].iter().for_each(|name| go(&world, name));
    assert!(waits.wait().unwrap().success(), "{}", said());
}

#[test]
fn jobs_wait_for_a_runs_tasks_and_get_their_part_as_those_end() {
    let world = World::new(2);
    let all = run(&world, &["-j2"], &["1", "2", "3", "4"]);
    ["1", "2"].iter().for_each(|name| begins(&world, name));
    let id = job(&world, "1", "job");
    knows(&world);
    let why = world.out(&["jobs", "--why", &id]);
    assert!(why.contains("no free slots"), "{why}");
    go(&world, "1");
    begins(&world, "job");
    assert!(!has_begun(&world, "3"), "the slot is the job's");
    // One of the two slots is the run's part.
    go(&world, "2");
    begins(&world, "3");
    assert!(!has_begun(&world, "4"));
    go(&world, "job");
    begins(&world, "4");
    ["3", "4"].iter().for_each(|name| go(&world, name));
    ends_well(all);
}

/// The queue passes over a process that does not take its turn for so long (`turn::PATIENCE` of the queue). A run
/// whose journal waits for a busy disk may pause for seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the time between the end of one and the begin of the next.
fn between(world: &World, before: &str, next: &str) -> Duration {
    let at = |file: String| std::fs::metadata(world.path().join(file)).unwrap().modified().unwrap();
    at(format!("began.{next}")).duration_since(at(format!("go.{before}"))).unwrap_or_default()
}

#[test]
fn a_job_that_takes_all_slots_and_a_run_take_turns() {
    let world = World::new(2);
    let all = run(&world, &["-j2"], &["1", "2", "3", "4", "5", "6"]);
    ["1", "2"].iter().for_each(|name| begins(&world, name));
    let ids = [job(&world, "2", "first"), job(&world, "2", "second")];
    let mut jobs = VecDeque::from([vec!["first"], vec!["second"]]);
    let mut tasks = VecDeque::from([vec!["3", "4"], vec!["5", "6"]]);
    let begun = |turn: Option<&Vec<&str>>| turn.is_some_and(|names| names.iter().any(|name| has_begun(&world, name)));
    let (mut before, mut is_jobs_turn) = (vec!["1", "2"], true);
    while !jobs.is_empty() || !tasks.is_empty() {
        if !jobs.is_empty() && !tasks.is_empty() {
            knows(&world);
        }
        before.iter().for_each(|name| go(&world, name));
        until("somebody has the slots", || begun(jobs.front()) || begun(tasks.front()));
        let is_job = begun(jobs.front());
        let own = if is_job { jobs.pop_front() } else { tasks.pop_front() }.unwrap();
        let other = if is_job { tasks.front() } else { jobs.front() };
        assert!(
            is_job == is_jobs_turn || other.is_none() || between(&world, before[before.len() - 1], own[0]) >= PATIENCE,
            "{own:?} began out of turn"
        );
        own.iter().for_each(|name| begins(&world, name));
        assert!(!begun(other), "{own:?} and {other:?} at once");
        (before, is_jobs_turn) = (own, !is_job);
    }
    before.iter().for_each(|name| go(&world, name));
    ends_well(all);
    ids.iter().for_each(|id| drop(world.out(&["wait", id])));
}

#[test]
fn a_second_run_does_not_wait_for_the_first_and_a_killed_one_keeps_no_slot() {
    let world = World::new(2);
    let mut first = run(&world, &["-j2"], &["1", "2"]);
    ["1", "2"].iter().for_each(|name| begins(&world, name));
    go(&world, "beside");
    ends_well(run(&world, &["-j2"], &["beside"]));
    job(&world, "2", "job");
    first.kill().unwrap();
    first.wait().unwrap();
    begins(&world, "job");
    go(&world, "job");
}
