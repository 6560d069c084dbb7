//! Formats plans and outcomes, as text and as JSON.

use homing_model::text::shown_lines;
use homing_model::{NodeSet, alike, document};
use homing_relay::Fetched;
use homing_setup::SiteVolume;
use homing_steps::{Phase, diff, summary};
use serde_json::{Value, json};

/// The outcome of hosts.
#[derive(Default)]
pub struct Came {
    /// Steps that were carried out.
    pub steps: usize,
    /// Hosts with a failure, and the reason.
    pub failed: Vec<(String, String)>,
    pub notes: Vec<String>,
    /// By area: files of packages that one host fetched for all.
    pub fetched: Vec<(String, Fetched)>,
}

/// Returns the text before the request for consent: the summary of the plan and its obstacles.
pub fn question(phases: &[Phase], volumes: &[SiteVolume], came: &Came) -> String {
    summaries(phases, volumes) + &obstacles(came) + "homing up --dry-run shows each step.\n"
}

fn summaries(phases: &[Phase], volumes: &[SiteVolume]) -> String {
    let mut lines = Vec::new();
    if volumes.is_empty() || phases.iter().any(|phase| !phase.steps.is_empty()) {
        lines.push(summary(phases) + "\n");
    }
    for volume in volumes {
        let spec = &volume.spec;
        let servers: NodeSet = spec.servers().into_iter().collect();
        lines.push(format!("{}: volume {} ({}) at {}\n", alike::label(&servers), spec.name, spec.kind, spec.mount));
    }
    lines.concat()
}

fn obstacles(came: &Came) -> String {
    let mut failed = alike::folded(came.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    failed.dedup();
    failed.iter().map(|line| format!("cannot be done: {}\n", shown_lines(line))).collect()
}

/// Returns the plan as text: a summary, then hosts with equal steps together, with the changes of files.
pub fn plan_text(phases: &[Phase], volumes: &[SiteVolume], came: &Came) -> String {
    let mut text = String::new();
    for phase in phases {
        let rows = |(host, steps): (&String, &Vec<homing_steps::Step>)| {
            let each = |step: &homing_steps::Step| {
                let diff = diff(&step.change).unwrap_or_default();
                let diff: String = diff.lines().map(|line| format!("      {line}\n")).collect();
                format!("    {}\n{}", step.change.told(), shown_lines(&diff))
            };
            (host.clone(), steps.iter().map(each).collect::<String>())
        };
        let rows: Vec<(String, String)> = phase.steps.iter().map(rows).collect();
        for (hosts, steps) in alike::gathered(rows.iter().map(|(host, steps)| (host.as_str(), steps))) {
            text += &format!("{}: {}\n{steps}", phase.name, alike::label(&hosts));
        }
    }
    let mut text = summaries(phases, volumes) + &text + &obstacles(came);
    came.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

/// Returns a row for each host, with its failures.
fn rows(hosts: &[String], came: &Came, more: impl Fn(&str) -> Value) -> Vec<Value> {
    let row = |host: &String| {
        let failed: Vec<&str> = came.failed.iter().filter(|(h, _)| h == host).map(|(_, why)| why.as_str()).collect();
        let mut row = json!({ "host": host, "ok": failed.is_empty(), "failed": failed });
        if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more(host)) {
            row.extend(more);
        }
        row
    };
    hosts.iter().map(row).collect()
}

fn whole(rows: Vec<Value>, came: &Came, status: i32) -> String {
    let mut whole = json!({ "hosts": rows, "steps": came.steps, "notes": came.notes, "exit": status });
    if !came.fetched.is_empty() {
        whole["fetched"] = came.fetched.iter().map(fetched).collect();
    }
    document::line(whole)
}

/// Returns the outcome of a set-up or of its undoing.
pub fn json(hosts: &[String], came: &Came, status: i32) -> String {
    whole(rows(hosts, came, |_| Value::Null), came, status)
}

fn fetched((area, of): &(String, Fetched)) -> Value {
    json!({ "area": area, "host": of.by, "files": of.files.len(), "bytes": of.once(), "wanted_bytes": of.asked, "sent_bytes": of.sent })
}

/// Returns a plan.
pub fn plan_json(hosts: &[String], phases: &[Phase], came: &Came, status: i32) -> String {
    let steps = |host: &str| {
        let of = |phase: &Phase| -> Vec<Value> {
            let step = |step: &homing_steps::Step| {
                let (thing, told) = (step.change.thing(), step.change.told());
                json!({ "area": phase.name, "thing": thing, "step": told, "diff": diff(&step.change) })
            };
            phase.steps.get(host).into_iter().flatten().map(step).collect()
        };
        json!({ "plan": phases.iter().flat_map(of).collect::<Vec<_>>() })
    };
    whole(rows(hosts, came, steps), came, status)
}

/// Returns the changes since the set-up.
pub fn drift_json(hosts: &[String], found: &[(String, String)], came: &Came, status: i32) -> String {
    let of = |host: &str| {
        let own: Vec<&str> = found.iter().filter(|(h, _)| h == host).map(|(_, what)| what.as_str()).collect();
        json!({ "changed": own })
    };
    whole(rows(hosts, came, of), came, status)
}
