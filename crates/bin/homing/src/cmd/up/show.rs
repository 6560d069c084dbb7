//! Formats plans and outcomes, as text and as JSON.

use homing_model::text::shown_lines;
use homing_model::{alike, document};
use homing_relay::Fetched;
use homing_setup::{HostFailures, RoundPlan, SetupOutcome};
use homing_steps::{ChangePhase, ChangeStep, Drift, HostChange, diff, diff_for_people};
use serde_json::{Value, json};

/// Returns the plan as text: a summary, then hosts with equal steps together, with the changes of files.
pub fn plan_text(plan: &RoundPlan) -> String {
    let mut text = String::new();
    for phase in &plan.phases {
        let rows = |(host, steps): (&String, &Vec<ChangeStep>)| {
            let each = |step: &ChangeStep| {
                format!("    {}\n{}", step.change.description(), diff_lines(&step.change, "      "))
            };
            (host.clone(), steps.iter().map(each).collect::<String>())
        };
        let rows: Vec<(String, String)> = phase.steps.iter().map(rows).collect();
        for (hosts, steps) in alike::gathered(rows.iter().map(|(host, steps)| (host.as_str(), steps))) {
            text += &format!("{}: {}\n{steps}", phase.name, alike::label(&hosts));
        }
    }
    let mut text = plan.summary() + &text + &plan.obstacles();
    plan.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

/// Returns a document with a row for each host: its failures, and the members of `more`.
fn whole(hosts: &[String], came: &SetupOutcome, status: i32, more: impl Fn(&str) -> Value) -> Value {
    let row = |host: &String| {
        let failed: Vec<&str> = came.failed.iter().filter(|(h, _)| h == host).map(|(_, why)| why.as_str()).collect();
        let mut row = json!({ "host": host, "ok": failed.is_empty(), "failed": failed });
        if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more(host)) {
            row.extend(more);
        }
        row
    };
    let rows: Vec<Value> = hosts.iter().map(row).collect();
    json!({ "hosts": rows, "steps": came.steps, "notes": came.notes, "exit": status })
}

/// Returns the outcome of a set-up or of its undoing. `fetched`: by area, files of packages that one host fetched.
pub fn json(hosts: &[String], came: &SetupOutcome, fetched: &[(String, Fetched)], status: i32) -> String {
    let mut whole = whole(hosts, came, status, |_| Value::Null);
    if !fetched.is_empty() {
        whole["fetched"] = fetched.iter().map(fetched_row).collect();
    }
    document::line(whole)
}

fn fetched_row((area, of): &(String, Fetched)) -> Value {
    json!({ "area": area, "host": of.by, "files": of.files.len(), "bytes": of.once(), "wanted_bytes": of.wanted_bytes, "sent_bytes": of.sent })
}

/// Returns a plan.
pub fn plan_json(hosts: &[String], plan: &RoundPlan, status: i32) -> String {
    let steps = |host: &str| {
        let of = |phase: &ChangePhase| -> Vec<Value> {
            let step = |step: &ChangeStep| {
                let (thing, text) = (step.change.thing(), step.change.description());
                json!({ "area": phase.name, "thing": thing, "step": text, "diff": diff(&step.change) })
            };
            phase.steps.get(host).into_iter().flatten().map(step).collect()
        };
        json!({ "plan": plan.phases.iter().flat_map(of).collect::<Vec<_>>() })
    };
    let came = SetupOutcome { failed: plan.failed.clone(), notes: plan.notes.clone(), steps: 0 };
    document::line(whole(hosts, &came, status, steps))
}

/// Returns the lines of a file that a change changes, as a unified diff; nothing for another change.
fn diff_lines(change: &HostChange, indent: &str) -> String {
    let diff = diff_for_people(change).unwrap_or_default();
    shown_lines(&diff.lines().map(|line| format!("{indent}{line}\n")).collect::<String>())
}

/// Returns the changes since the set-up as text: hosts with equal ones together, with the changed lines of files.
pub fn drift_text(found: &[(String, Drift)]) -> String {
    let lines: String = alike::gathered(found.iter().map(|(host, drift)| (host.as_str(), drift)))
        .into_iter()
        .map(|(hosts, drift)| {
            let diff = drift.since.as_ref().map_or(String::new(), |since| diff_lines(since, "    "));
            format!("{}: {}\n{diff}", alike::label(&hosts), shown_lines(&drift.what))
        })
        .collect();
    if lines.is_empty() { "no changes since the set-up\n".into() } else { lines }
}

/// Returns the changes since the set-up.
pub fn drift_json(hosts: &[String], found: &[(String, Drift)], silent: HostFailures, status: i32) -> String {
    let of = |host: &str| {
        let own = || found.iter().filter(|(h, _)| h == host).map(|(_, drift)| drift);
        let whats: Vec<&str> = own().map(|drift| drift.what.as_str()).collect();
        let diffs: Vec<Option<String>> = own().map(|drift| drift.since.as_ref().and_then(diff)).collect();
        json!({ "changed": whats, "diffs": diffs })
    };
    let came = SetupOutcome { failed: silent, ..SetupOutcome::default() };
    document::line(whole(hosts, &came, status, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_steps::FileState;

    #[test]
    fn hosts_with_equal_changes_since_are_together_with_the_changed_lines() {
        let state = |text: &str| Some(FileState { content: text.into(), mode: 0o644, uid: 0, gid: 0 });
        let since =
            HostChange::File { path: "/etc/hosts".into(), from: state("a\nb\n"), to: state("a\nc\n"), block: None };
        let hosts = Drift { what: "/etc/hosts was changed since".into(), since: Some(since) };
        let user = Drift { what: "user ann was changed since".into(), since: None };
        let found =
            [("n1", &hosts), ("n1", &user), ("n2", &hosts)].map(|(host, drift)| (host.to_string(), drift.clone()));
        let text = drift_text(&found);
        assert!(text.starts_with("n[1-2] (2): /etc/hosts was changed since\n    --- /etc/hosts\n"), "{text}");
        assert!(text.contains("\n    -b\n    +c\nn1: user ann was changed since\n"), "{text}");
        assert_eq!(drift_text(&[]), "no changes since the set-up\n");
        let json = drift_json(&["n1".into()], &found, Vec::new(), 1);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["hosts"][0]["changed"][1], "user ann was changed since");
        assert!(json["hosts"][0]["diffs"][0].as_str().unwrap().contains("-b\n+c\n"), "{json}");
    }
}
