//! Formats the jobs and slots of a queue as metrics for Prometheus.

use crate::{ElementState, Engine, Job, Machine, QueueError};
use homing_model::metrics::{MetricKind, Metrics, bounded};
use std::collections::BTreeMap;

/// The states of jobs that are not over.
const STATES: [&str; 4] = ["waiting", "held", "running", "stopped"];

/// Returns its jobs and slots now, in the format of Prometheus.
pub fn prometheus(engine: &dyn Engine) -> Result<String, QueueError> {
    let (machines, jobs) = (engine.machines()?, engine.jobs()?);
    let queues = engine.config()?.queues.into_keys().collect();
    Ok(text(queues, &machines, &jobs, homing_os::clock::system_ns()))
}

fn doing(state: ElementState) -> Option<&'static str> {
    match state {
        ElementState::Pend => Some("waiting"),
        ElementState::Psusp => Some("held"),
        ElementState::Run => Some("running"),
        ElementState::Ususp | ElementState::Ssusp => Some("stopped"),
        ElementState::Done | ElementState::Exit | ElementState::Lost => None,
    }
}

/// Formats the metrics. Queues without jobs have zeros, because a missing value would mean that it is unknown.
fn text(queues: Vec<String>, machines: &[Machine], jobs: &[Job], now_ns: i64) -> String {
    let empty = || STATES.map(|state| (state, 0_u64));
    let mut of_queue: BTreeMap<String, BTreeMap<&str, u64>> =
        queues.iter().map(|queue| (queue.clone(), empty().into())).collect();
    let mut waited: BTreeMap<String, f64> = queues.into_iter().map(|queue| (queue, 0.0)).collect();
    let mut of_user: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    let open = jobs.iter().flat_map(|job| job.parts.iter().map(move |part| (job, part)));
    for (job, part, state) in open.filter_map(|(job, part)| Some((job, part, doing(part.state)?))) {
        *of_queue.entry(job.spec.queue.clone()).or_insert_with(|| empty().into()).entry(state).or_default() += 1;
        *of_user.entry(state).or_default().entry(job.spec.user.clone()).or_default() += 1;
        let longest = waited.entry(job.spec.queue.clone()).or_default();
        if part.state == ElementState::Pend {
            *longest = longest.max(now_ns.saturating_sub(job.spec.submit_ns).max(0) as f64 / 1e9);
        }
    }
    let mut metrics = Metrics::default();
    let name = "homing_queue_jobs";
    metrics.family(name, MetricKind::Gauge, "Unfinished jobs; each element of an array counts as one.");
    for (queue, states) in &of_queue {
        states.iter().for_each(|(state, n)| metrics.sample(name, &[("queue", queue), ("state", state)], n));
    }
    let name = "homing_queue_user_jobs";
    metrics.family(name, MetricKind::Gauge, "Unfinished jobs of a user.");
    for (state, users) in &of_user {
        bounded(users).iter().for_each(|(user, n)| metrics.sample(name, &[("user", user), ("state", state)], n));
    }
    let name = "homing_queue_longest_wait_seconds";
    metrics.family(name, MetricKind::Gauge, "Time since the submission of the oldest waiting job.");
    waited.iter().for_each(|(queue, seconds)| metrics.sample(name, &[("queue", queue)], seconds));
    slots(&mut metrics, machines, jobs);
    metrics.text()
}

fn slots(metrics: &mut Metrics, machines: &[Machine], jobs: &[Job]) {
    let name = "homing_queue_slots";
    metrics.family(name, MetricKind::Gauge, "Slots of a machine of the queue.");
    for (machine, slots) in machines.iter().filter_map(|machine| Some((machine, machine.slots?))) {
        metrics.sample(name, &[("host", &machine.name)], slots);
    }
    let name = "homing_queue_open";
    metrics.family(name, MetricKind::Gauge, "1 if the machine takes jobs.");
    machines.iter().for_each(|one| metrics.sample(name, &[("host", &one.name)], u8::from(one.open)));
    let name = "homing_queue_used_slots";
    metrics.family(name, MetricKind::Gauge, "Slots that jobs hold on the machine; suspended jobs count.");
    let parts = jobs.iter().flat_map(|job| job.parts.iter().map(move |part| (job, part)));
    let running: Vec<_> = parts.filter(|(_, part)| part.state.is_running()).collect();
    for machine in machines {
        let on = running
            .iter()
            .filter_map(|(job, part)| Some(u64::from(job.spec.slots_on(&machine.name, &part.start.as_ref()?.host))));
        metrics.sample(name, &[("host", &machine.name)], on.sum::<u64>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobElement, Start};
    use serde_json::json;
    use std::sync::Arc;

    /// Makes a job with elements in these states, each of two slots, and on `n1` if it runs.
    fn job(id: u64, user: &str, states: &[ElementState]) -> Job {
        let spec = json!({"v": 1, "user": user, "submit_ns": 1_000_000_000, "from": "n1", "cwd": "/", "name": "", "slots": 2,
            "command": {"argv": ["true"]}, "queue": "night"});
        let start = |state: ElementState| {
            state.is_running().then(|| Start { at_ns: 0, host: "n1".into(), process: Default::default() })
        };
        let part = |(index, state): (usize, &ElementState)| JobElement {
            state: *state,
            start: start(*state),
            ..JobElement::new(index as u32)
        };
        let parts = states.iter().enumerate().map(part).collect();
        Job { id, uid: 1, spec: Arc::new(serde_json::from_value(spec).unwrap()), parts, dir: "/".into() }
    }

    #[test]
    fn jobs_are_counted_by_what_they_do_and_slots_by_who_holds_them() {
        let jobs = [
            job(1, "a\"\n", &[ElementState::Pend, ElementState::Run, ElementState::Done]),
            job(2, "b", &[ElementState::Psusp, ElementState::Ssusp, ElementState::Exit]),
        ];
        let machine =
            |name: &str, slots, open| Machine { name: name.into(), slots, open, state: "ok".into(), closed: None };
        let machines = [machine("n1", Some(8), true), machine("n2", None, false)];
        let text = text(vec!["night".into(), "day".into()], &machines, &jobs, 4_500_000_000);
        for line in [
            "homing_queue_jobs{queue=\"night\",state=\"waiting\"} 1\n",
            "homing_queue_jobs{queue=\"night\",state=\"stopped\"} 1\n",
            "homing_queue_jobs{queue=\"day\",state=\"running\"} 0\n",
            "homing_queue_user_jobs{user=\"a\\\"\\n\",state=\"running\"} 1\n",
            "homing_queue_longest_wait_seconds{queue=\"night\"} 3.5\n",
            "homing_queue_longest_wait_seconds{queue=\"day\"} 0\n",
            "homing_queue_slots{host=\"n1\"} 8\n",
            "homing_queue_used_slots{host=\"n1\"} 4\n",
            "homing_queue_used_slots{host=\"n2\"} 0\n",
            "homing_queue_open{host=\"n2\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("homing_queue_slots{host=\"n2\"}"), "unknown has no sample: {text}");
    }
}
