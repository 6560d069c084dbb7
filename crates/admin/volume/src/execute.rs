//! Carries out a plan: the steps of a phase run at the same time on all hosts. The record is written before and after
//! each phase.

use crate::observe::{self, HostFacts, Observed};
use crate::record::VolumeRecord;
use crate::spec::Spec;
use crate::step::{CommandPhase, CommandStep, VolumePlan, shown};
use homing_steps::{CallResult, Executor};
use std::time::{Duration, Instant};

/// Queries all hosts of the volume at once. `more` has further folders to inspect, by host.
pub fn observe(executor: &dyn Executor, spec: &Spec, hosts: &[String], more: &[(String, String)]) -> Observed {
    let question = |host: &String| {
        let folders: Vec<String> = more.iter().filter(|(h, _)| h == host).map(|(_, p)| p.clone()).collect();
        (host.clone(), observe::arguments(spec, host, &folders))
    };
    let questions: Vec<(String, Vec<String>)> = hosts.iter().map(question).collect();
    let read = |said: CallResult| -> Result<HostFacts, String> {
        observe::read(&said?, spec).ok_or_else(|| "its answer is incomplete".into())
    };
    let answers = executor.programs(&questions).into_iter().map(read);
    let mut seen = Observed { hosts: hosts.iter().cloned().zip(answers).collect() };
    seen.disown_strays();
    seen
}

/// Messages to the user while a plan is carried out.
pub enum PlanEvent<'a> {
    /// A phase begins.
    Phase(&'a CommandPhase),
    /// A step is done.
    Done(&'a CommandStep),
    /// A step failed, with the reason.
    Failed(&'a CommandStep, &'a str),
    /// The host's daemon is busy, and the step is retried until the daemon accepts it.
    Waits(&'a CommandStep, &'a str),
}

/// Messages of GlusterFS's daemon if it has not begun a command, because a daemon of the cluster is busy with another
/// one. That may come from an administrator, or from a homing process that was killed.
const BUSY: [&str; 2] = ["Another transaction is in progress", "Locking failed"];
/// Its locks expire after 180 s (`mgmt-v3-lock-timeout`).
const BUSY_FOR: Duration = Duration::from_secs(200);
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// Carries out steps at the same time, and retries a step that its daemon was too busy to begin.
fn run(executor: &dyn Executor, steps: &[CommandStep], news: &mut dyn FnMut(PlanEvent)) -> Vec<CallResult> {
    let command = |s: &CommandStep| (s.host.clone(), s.argv.clone());
    let mut said = executor.programs(&steps.iter().map(command).collect::<Vec<_>>());
    let began = Instant::now();
    let mut told = false;
    loop {
        let is_busy = |s: &CallResult| s.as_ref().is_err_and(|why| BUSY.iter().any(|busy| why.contains(busy)));
        let busy: Vec<usize> = (0..steps.len()).filter(|&i| is_busy(&said[i])).collect();
        if busy.is_empty() || began.elapsed() > BUSY_FOR {
            return said;
        }
        for &i in busy.iter().filter(|_| !told) {
            news(PlanEvent::Waits(&steps[i], said[i].as_ref().err().map_or("", String::as_str)));
        }
        told = true;
        std::thread::sleep(BUSY_PAUSE);
        let again = executor.programs(&busy.iter().map(|&i| command(&steps[i])).collect::<Vec<_>>());
        busy.into_iter().zip(again).for_each(|(i, answer)| said[i] = answer);
    }
}

/// The reason why a plan stopped.
#[derive(Debug)]
pub struct Stopped {
    /// The phase, the hosts and their answers.
    pub why: String,
    /// Whether it was the first phase, and no host carried it out.
    pub at_the_start: bool,
}

/// Carries out the phases that `record` does not count as done. Returns the failed steps of phases in which hosts do
/// not depend on each other.
pub fn carry_out(
    executor: &dyn Executor,
    plan: &VolumePlan,
    record: &mut VolumeRecord,
    news: &mut dyn FnMut(PlanEvent),
) -> Result<Vec<(CommandStep, String)>, Stopped> {
    let mut failures = Vec::new();
    for (i, phase) in plan.phases.iter().enumerate().skip(record.done()) {
        news(PlanEvent::Phase(phase));
        record.begin(i).map_err(|why| Stopped { why, at_the_start: false })?;
        let mut failed = Vec::new();
        for (step, said) in phase.steps.iter().zip(run(executor, &phase.steps, news)) {
            match said {
                Ok(_) => news(PlanEvent::Done(step)),
                Err(why) => {
                    news(PlanEvent::Failed(step, &why));
                    failed.push((step.clone(), why));
                }
            }
        }
        if !failed.is_empty() && !phase.each_for_itself {
            let each = failed.iter().map(|(s, why)| format!("{}: {}{why}", s.host, shorter(&s.argv)));
            return Err(Stopped {
                why: format!("{}: {}", phase.why, each.collect::<Vec<_>>().join("\n  ")),
                at_the_start: record.is_first(i) && failed.len() == phase.steps.len(),
            });
        }
        failures.extend(failed);
        record.end(i).map_err(|why| Stopped { why, at_the_start: false })?;
    }
    Ok(failures)
}

/// Returns a command for an error line; a script is too long for one.
fn shorter(argv: &[String]) -> String {
    if argv.first().is_some_and(|a| a == "sh") { String::new() } else { shown(argv) + ": " }
}

/// Undoes the begun phases, last first. Returns the steps that could not be undone.
pub fn undo(executor: &dyn Executor, record: &VolumeRecord, news: &mut dyn FnMut(PlanEvent)) -> Vec<String> {
    let mut left = Vec::new();
    for phase in record.begun().iter().rev() {
        let steps: Vec<CommandStep> = phase
            .steps
            .iter()
            .filter_map(|s| Some(CommandStep { argv: s.undo.clone()?, undo: None, ..s.clone() }))
            .collect();
        if steps.is_empty() {
            continue;
        }
        news(PlanEvent::Phase(phase));
        for (step, said) in steps.iter().zip(run(executor, &steps, news)) {
            match said {
                Ok(_) => news(PlanEvent::Done(step)),
                Err(why) => {
                    news(PlanEvent::Failed(step, &why));
                    left.push(format!("{}: undoing \"{}\": {why}", step.host, step.why));
                }
            }
        }
    }
    left
}
