//! Formats the build as a trace for `chrome://tracing` and Perfetto.

use crate::evidence::{Evidence, Ran};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the Trace Event Format's JSON: a process per host, a thread per slot, times in microseconds.
pub fn trace(evidence: &Evidence) -> Value {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for ran in &evidence.ran {
        let next = hosts.len() + 1;
        hosts.entry(&ran.host).or_insert(next);
    }
    let names = hosts
        .iter()
        .map(|(host, pid)| json!({"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": host}}));
    let mut events: Vec<Value> = names.collect();
    for ran in &evidence.ran {
        events.push(event(ran, hosts[ran.host.as_str()]));
    }
    json!({"traceEvents": events, "displayTimeUnit": "ms"})
}

fn event(ran: &Ran, pid: usize) -> Value {
    json!({
        "name": ran.label,
        "cat": "recipe",
        "ph": "X",
        "pid": pid,
        "tid": ran.slot,
        "ts": ran.sent_us,
        "dur": ran.ended_us.saturating_sub(ran.sent_us),
        "args": {
            "why": ran.why.to_string(), "queued_us": ran.sent_us.saturating_sub(ran.asked_us),
            "command_us": ran.wall_us, "cpu_us": ran.cpu_us, "fence_us": ran.fence_us,
            "failed": ran.failed, "again": ran.again,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::ran;

    #[test]
    fn hosts_are_processes_and_slots_are_threads() {
        let made = trace(&Evidence { ran: vec![ran("n2", 5), ran("n1", 7)], ..Evidence::default() });
        let events = made["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4);
        assert_eq!(events[2]["ph"], "X");
        assert_eq!(events[2]["dur"], 4005);
        assert_ne!(events[2]["pid"], events[3]["pid"]);
    }
}
