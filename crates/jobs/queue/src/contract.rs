//! A test suite for engines, run with real jobs. A new engine needs an adaptor of a few lines: a folder that its
//! hosts share, a request that it accepts, and [`check`].

use crate::{Amend, ElementState, Engine, Job, JobSpec, Private, QueueError};
use homing_model::Command;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A bound far above the time that a job of the suite takes to start or to end: only a broken engine reaches it.
const BOUND: Duration = Duration::from_secs(300);

/// Runs the suite. `spec` is a request that the engine accepts from this user: its queue and user, and one slot. Its
/// working directory is an empty folder that all machines of the engine share.
///
/// # Panics Panics with the rule that the engine broke.
pub fn check(engine: &dyn Engine, spec: &JobSpec, private: &Private) {
    let suite = Suite { engine, spec, private };
    let before = suite.numbers();
    machines_and_queues(&suite);
    output_and_exit_status_are_kept(&suite);
    what_is_held_starts_when_it_is_let_go(&suite);
    what_runs_stands_still_and_goes_on(&suite);
    kills(&suite);
    elements_of_an_array(&suite);
    one_waits_for_another(&suite);
    nothing_is_put_back_that_was_not_interrupted(&suite);
    let after = suite.numbers();
    assert!(after.is_superset(&before), "no job of others is lost");
    assert!(
        matches!(engine.job(u64::from(u32::MAX)), Err(QueueError::NotFound(_))),
        "an unknown number is reported as such"
    );
}

struct Suite<'a> {
    engine: &'a dyn Engine,
    spec: &'a JobSpec,
    private: &'a Private,
}

impl Suite<'_> {
    fn numbers(&self) -> BTreeSet<u64> {
        self.engine.own_jobs().expect("own jobs").iter().map(|job| job.id).collect()
    }

    fn dir(&self) -> &Path {
        self.spec.cwd.as_path()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir().join(name)).unwrap_or_default()
    }

    /// Submits a shell command line, after `change` of the request.
    fn submit(&self, line: &str, change: impl FnOnce(&mut JobSpec)) -> u64 {
        let mut spec = JobSpec { command: Command::Shell(line.into()), name: "suite".into(), ..self.spec.clone() };
        change(&mut spec);
        self.engine.submit(&spec, self.private).expect("submitted")
    }

    fn job(&self, id: u64) -> Job {
        self.engine.job(id).expect("a job that was submitted is known")
    }

    fn states(&self, id: u64) -> Vec<ElementState> {
        self.job(id).parts.iter().map(|part| part.state).collect()
    }

    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + BOUND;
        while !holds() {
            assert!(Instant::now() < deadline, "never: {what}: {:#?}", self.engine.own_jobs());
            self.engine.tend().expect("the queue is served");
            std::thread::sleep(self.engine.pace());
        }
    }

    /// Waits until all elements of a job have ended; returns each index with its state and exit status.
    fn ended(&self, id: u64) -> Vec<(u32, ElementState, i32)> {
        self.until("the job ends", || self.states(id).iter().all(|state| state.is_over()));
        let end = |part: &crate::JobElement| (part.index, part.state, part.end.as_ref().map_or(-1, |end| end.exit));
        self.job(id).parts.iter().map(end).collect()
    }

    /// Submits a job that writes to `name` and then sleeps until it is killed.
    fn endless(&self, name: &str) -> u64 {
        let id = self.submit(&format!("echo began > {name}; sleep 1000"), |_| {});
        self.until("an endless job starts", || !self.read(name).is_empty());
        id
    }
}

fn machines_and_queues(suite: &Suite<'_>) {
    let machines = suite.engine.machines().expect("machines");
    let names: BTreeSet<&str> = machines.iter().map(|m| m.name.as_str()).collect();
    assert!(
        names.len() == machines.len() && machines.iter().any(|m| m.open),
        "one that is open, each once: {machines:?}"
    );
    let config = suite.engine.config().expect("queues");
    assert!(!config.queues.is_empty(), "there is a queue: {config:?}");
}

fn output_and_exit_status_are_kept(suite: &Suite<'_>) {
    let line = "echo to out; echo to err >&2; echo \"$SUITE\" > env; exit 7";
    let id = suite.submit(line, |spec| {
        spec.stdout = Some("o.%J".into());
        spec.stderr = Some("e.%J".into());
    });
    assert_eq!(suite.ended(id), [(0, ElementState::Exit, 7)]);
    assert_eq!(
        (suite.read(&format!("o.{id}")), suite.read(&format!("e.{id}"))),
        ("to out\n".into(), "to err\n".into())
    );
    assert_eq!(suite.read("env"), "of the suite\n", "the job has its submitter's environment");
    let job = suite.job(id);
    let start = job.parts[0].start.as_ref().expect("a job that ended by itself had a start");
    assert!(suite.engine.machines().expect("machines").iter().any(|m| m.name == start.host), "{start:?}");
    assert!(start.at_ns <= job.parts[0].end.as_ref().expect("an end").at_ns, "{job:?}");
    assert_eq!((job.uid, job.spec.name.as_str(), &job.spec.user), (crate::uid(), "suite", &suite.spec.user));
    let later = suite.submit("true", |_| {});
    assert!(later > id, "numbers grow");
    assert_eq!(suite.ended(later), [(0, ElementState::Done, 0)]);
}

fn what_is_held_starts_when_it_is_let_go(suite: &Suite<'_>) {
    let id = suite.submit("echo held > held", |spec| spec.held = true);
    suite.until("it is held", || suite.states(id) == [ElementState::Psusp]);
    let job = suite.job(id);
    match suite.engine.amend(&job, &Amend { name: "renamed".into(), ..Amend::of(&job.spec) }) {
        Ok(()) => assert_eq!(suite.job(id).spec.name, "renamed"),
        Err(QueueError::Request(_)) => assert_eq!(suite.job(id).spec.name, "suite", "refused, and nothing changed"),
        Err(other) => panic!("changing a job that waits: {other}"),
    }
    assert!(!suite.dir().join("held").exists(), "a held job does not start");
    suite.engine.stop(&job, None, false).expect("it is let go");
    assert_eq!(suite.ended(id), [(0, ElementState::Done, 0)]);
    assert_eq!(suite.read("held"), "held\n");
}

fn what_runs_stands_still_and_goes_on(suite: &Suite<'_>) {
    let id = suite.submit("until [ -e go ]; do echo beat >> beats; sleep 0.1; done", |_| {});
    suite.until("it runs", || !suite.read("beats").is_empty() && suite.states(id) == [ElementState::Run]);
    suite.engine.stop(&suite.job(id), None, true).expect("it is stopped");
    // The signal takes a moment; then a second must pass without a beat.
    suite.until("it makes no progress", || {
        let beats = suite.read("beats").len();
        std::thread::sleep(Duration::from_secs(1));
        suite.read("beats").len() == beats
    });
    suite.engine.stop(&suite.job(id), None, false).expect("it continues");
    let beats = suite.read("beats").len();
    suite.until("it continues", || suite.read("beats").len() > beats);
    fs::write(suite.dir().join("go"), "").expect("the suite writes its files");
    assert_eq!(suite.ended(id), [(0, ElementState::Done, 0)]);
}

fn kills(suite: &Suite<'_>) {
    let runs = suite.endless("endless");
    let waits = suite.submit("echo no > never", |spec| spec.after = Some(format!("done({runs})")));
    suite.until("there is a reason why it waits", || {
        let job = suite.job(waits);
        let reasons = suite.engine.reasons(std::slice::from_ref(&job)).expect("reasons");
        reasons.contains_key(&(waits, 0))
    });
    suite.engine.kill(&suite.job(waits), None, None).expect("a waiting job is killed");
    let (_, state, exit) = suite.ended(waits)[0];
    assert_eq!((state, exit > 128), (ElementState::Exit, true), "killed before its start: {exit}");
    suite.engine.kill(&suite.job(runs), None, None).expect("a running job is killed");
    let (_, state, exit) = suite.ended(runs)[0];
    assert_eq!((state, exit > 128), (ElementState::Exit, true), "killed while it ran: {exit}");
    let reason = suite.job(runs).parts[0].end.clone().expect("an end").reason;
    assert!(reason.is_some(), "the kill is reported");
    let ended = suite.job(runs).parts[0].end.clone();
    suite.engine.kill(&suite.job(runs), None, None).expect("killing an ended job changes nothing");
    assert_eq!(suite.job(runs).parts[0].end, ended, "nothing is changed by it");
    assert!(!suite.dir().join("never").exists());
    a_signal_is_the_jobs_own_to_answer(suite);
}

fn a_signal_is_the_jobs_own_to_answer(suite: &Suite<'_>) {
    let line = "trap 'echo told > told; exit 5' USR1; echo began > trapped; while :; do sleep 0.1; done";
    let id = suite.submit(line, |_| {});
    suite.until("its trap is set", || !suite.read("trapped").is_empty() && suite.states(id) == [ElementState::Run]);
    suite.engine.kill(&suite.job(id), None, Some(rustix::process::Signal::USR1.as_raw())).expect("signalled");
    assert_eq!(suite.ended(id), [(0, ElementState::Exit, 5)]);
    assert_eq!(suite.read("told"), "told\n");
}

fn elements_of_an_array(suite: &Suite<'_>) {
    let line = "[ $HOMING_JOB_INDEX = 2 ] && sleep 1000; echo $HOMING_JOB_INDEX; exit $HOMING_JOB_INDEX";
    let id = suite.submit(line, |spec| {
        let (_, array) = crate::array::parse("a[1-3]").expect("an array");
        spec.array = array;
        spec.stdout = Some("a.%J.%I".into());
    });
    suite.until("one and three end", || {
        let job = suite.job(id);
        [1, 3].iter().all(|index| job.part(*index).is_some_and(|part| part.state == ElementState::Exit))
            && job.part(2).is_some_and(|part| part.state == ElementState::Run)
    });
    suite.engine.kill(&suite.job(id), Some(2), None).expect("one element is killed");
    let ends = suite.ended(id);
    assert_eq!((ends[0], ends[2]), ((1, ElementState::Exit, 1), (3, ElementState::Exit, 3)));
    assert!(ends.len() == 3 && ends[1].1 == ElementState::Exit && ends[1].2 > 128, "{ends:?}");
    assert_eq!(suite.read(&format!("a.{id}.1")), "1\n");
    // An engine may append to the file how the element ended.
    assert!(!suite.read(&format!("a.{id}.2")).lines().any(|line| line == "2"), "a killed job does not continue");
}

fn one_waits_for_another(suite: &Suite<'_>) {
    let first = suite.submit("sleep 1; echo first >> order; exit 3", |_| {});
    let second = suite.submit("echo second >> order", |spec| spec.after = Some(format!("exit({first})")));
    let never = suite.submit("echo never >> order", |spec| spec.after = Some(format!("done({first})")));
    assert_eq!(suite.ended(second), [(0, ElementState::Done, 0)]);
    let (_, state, exit) = suite.ended(never)[0];
    assert_eq!((state, exit), (ElementState::Exit, 130), "a job that can never start ends");
    assert_eq!(suite.read("order"), "first\nsecond\n");
}

fn nothing_is_put_back_that_was_not_interrupted(suite: &Suite<'_>) {
    let id = suite.submit("true", |_| {});
    suite.ended(id);
    assert_eq!(suite.engine.again(&suite.job(id), None, false).expect("asked"), 0);
    assert_eq!(suite.states(id), [ElementState::Done]);
}
