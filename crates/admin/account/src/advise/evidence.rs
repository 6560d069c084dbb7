//! Shows the evidence and the advice in words.

use crate::advise::{Advice, AdviceEvidence, HotFolder, LayoutChange};
use homing_batch::quote;
use homing_model::RawText;
use homing_model::text::{aligned, shown};
use homing_model::units::{bytes, count};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most folders that are shown, because advice must fit on the screen too.
const FOLDERS: usize = 10;
/// The most storage hosts that are named for each.
const HOSTS: usize = 3;

/// The evidence of the journals and the file systems.
pub struct ReadEvidence {
    /// The inputs of tasks, and their layout.
    pub seen: AdviceEvidence,
    /// Runs that read something over a network file system.
    pub runs: usize,
    /// Notes for a person.
    pub notes: Vec<String>,
}

/// The price of stored bytes.
pub struct Price<'a> {
    /// Returns the price of so many bytes a month; none if it is unknown.
    pub stored: &'a dyn Fn(u64) -> Option<f64>,
    /// The currency.
    pub currency: &'a str,
}

fn part(of: u64, all: u64) -> String {
    format!("{:.0} %", 100.0 * of as f64 / all.max(1) as f64)
}

/// Returns the report for people.
pub fn text(evidence: &ReadEvidence, folders: &[HotFolder], advice: &[Advice], cost: Option<&Price>) -> String {
    let (local, remote) = evidence.seen.bytes();
    let tasks = evidence.seen.runs.iter().map(|run| run.tasks.len() as u64).sum();
    let mut text = format!(
        "{} with {} read {}, {} of it over the network\n",
        count(evidence.runs as u64, "run"),
        count(tasks, "task"),
        bytes(local + remote),
        part(remote, local + remote)
    );
    if remote == 0 {
        return text + "nothing to change: every byte was read on the host that holds it\n";
    }
    let head = ["FOLDER", "READ", "NETWORK", "OF IT", "LIES ON"];
    let mut cells = vec![head.map(String::from)];
    cells.extend(folders.iter().take(FOLDERS).map(row));
    text += &aligned(&cells, 1..4);
    for one in advice {
        text += &format!("{}\n    {}\n", sentence(one, cost), command(&one.change));
    }
    if advice.is_empty() {
        text += "no number of copies would save 5 % of the network traffic, on the volumes of `homing volume list`\n";
    }
    text
}

fn row(folder: &HotFolder) -> [String; 5] {
    let mut on: Vec<String> =
        folder.on.iter().take(HOSTS).map(|(host, share)| format!("{} {:.0} %", shown(host), 100.0 * share)).collect();
    if folder.on.len() > HOSTS {
        on.push(format!("{} more", folder.on.len() - HOSTS));
    }
    [
        shown(&folder.path.to_string_lossy()),
        bytes(folder.read),
        bytes(folder.remote),
        part(folder.remote, folder.read),
        on.join(", "),
    ]
}

fn sentence(one: &Advice, cost: Option<&Price>) -> String {
    let what = match &one.change {
        LayoutChange::Copies { path, copies, .. } => format!("{copies} copies of {}", shown(&path.to_string_lossy())),
        LayoutChange::Move { path, to } => {
            format!("{} on {}", shown(&path.to_string_lossy()), shown(&to.to_string_lossy()))
        }
    };
    let time = match one.saves_time().map(|part| 100.0 * part) {
        Some(part) if part >= 1.0 => format!(", {part:.0} % less time"),
        Some(part) if part <= -1.0 => format!(", {:.0} % more time", -part),
        Some(_) => ", the same time".into(),
        None => String::new(),
    };
    let network = format!("{} over the network instead of {}", bytes(one.then.remote), bytes(one.now.remote));
    let price = cost.and_then(|cost| Some(((cost.stored)(one.written)?, shown(cost.currency))));
    let price = price.map_or(String::new(), |(amount, currency)| format!(", {amount:.2} {currency} a month"));
    let (part, stored) = (100.0 * one.saves(), bytes(one.written));
    format!("{what}: {network} ({part:.0} % less){time}; needs {stored} more disk{price}")
}

/// Returns the command for a person to paste.
fn command(change: &LayoutChange) -> String {
    let word = |path: &Path| RawText(quote(path.as_os_str().as_bytes())).display();
    match change {
        LayoutChange::Copies { volume, path, copies } => {
            format!("homing volume set-copies {volume} {} {copies}", word(path))
        }
        LayoutChange::Move { path, to } => {
            let there = to.join(path.strip_prefix("/").unwrap_or(path));
            format!("rsync -aHAX --mkpath {}/ {}/", word(path), word(&there))
        }
    }
}

/// Returns the report for programs.
pub fn as_json(evidence: &ReadEvidence, folders: &[HotFolder], advice: &[Advice], cost: Option<&Price>) -> Value {
    let (local, remote) = evidence.seen.bytes();
    let folder = |one: &HotFolder| {
        let on: serde_json::Map<String, Value> =
            one.on.iter().map(|(host, part)| (host.clone(), json!(part))).collect();
        json!({ "path": one.path.to_string_lossy(), "read_bytes": one.read, "remote_bytes": one.remote, "on": on })
    };
    let change = |one: &Advice| {
        json!({
            "command": command(&one.change), "stored_bytes": one.written,
            "stored_month": cost.and_then(|cost| (cost.stored)(one.written)),
            "remote_bytes": one.now.remote, "remote_bytes_then": one.then.remote, "time_saved": one.saves_time(),
        })
    };
    json!({
        "runs": evidence.runs, "local_bytes": local, "remote_bytes": remote,
        "folders": folders.iter().map(folder).collect::<Vec<_>>(), "advice": advice.iter().map(change).collect::<Vec<_>>(),
    })
}
