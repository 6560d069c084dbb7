//! Formats one job in full.

use crate::cmd::runs::{clip, local_time};
use homing_model::units::{bytes, count};
use homing_queue::{ElementState, Job, JobElement, Reads};
use serde_json::{Value, json};
use std::fmt::Write;

/// The most characters of a command that are shown. A batch may name thousands of files; `--json` has all of them.
const SHOWN: usize = 400;

/// Returns all known facts about one element of a job, one per line. Unknown facts are left out.
pub fn text(job: &Job, part: &JobElement, why: Option<&str>) -> String {
    let mut out = format!("job {}\n", job.name_of(part));
    for (name, value) in lines(job, part, why) {
        // Names and commands are words of others: each must stay on one line.
        let _ = writeln!(out, "  {name:<10} {value}");
    }
    out
}

fn lines(job: &Job, part: &JobElement, why: Option<&str>) -> Vec<(&'static str, String)> {
    let (s, end) = (&job.spec, part.end.as_ref());
    let known = !s.cwd.0.is_empty();
    let mut all = vec![("state", state(part, why)), ("user", s.user.clone())];
    let mut add = |name, value: Option<String>| all.extend(value.map(|value| (name, value)));
    add("name", Some(s.name.clone()).filter(|n| !n.is_empty()));
    add("run", runs(job, part));
    add("command", known.then(|| clip(&s.command.display(), SHOWN)));
    add("folder", known.then(|| s.cwd.display()));
    add("queue", Some(format!("{}, {}", s.queue, count(u64::from(s.slots), "slot"))));
    add("after", s.after.clone());
    add("submitted", Some(format!("{} on {}", local_time(s.submit_ns), s.from)));
    add("started", part.start.as_ref().map(|start| format!("{} on {}", local_time(start.at_ns), start.host)));
    add("ended", end.map(|end| local_time(end.at_ns)));
    add("limits", limits(job));
    add(
        "used",
        end.filter(|end| end.max_rss_kib > 0).map(|end| {
            let seconds = end.cpu_ms as f64 / 1000.0;
            format!("{seconds:.2} s of CPU time, {} of memory in the largest process", size(end.max_rss_kib << 10))
        }),
    );
    add("ranks", (!s.ranks.is_empty()).then(|| by_host(job, part).join("\n             ")));
    let outputs = if known { job.outputs(part) } else { Vec::new() };
    for (name, path) in ["output", "errors"].into_iter().zip(outputs) {
        add(name, Some(homing_model::RawText::from(path.as_path()).display()));
    }
    all
}

/// Returns the names of the runs that began in an element, by which `homing report` finds them.
fn runs(job: &Job, part: &JobElement) -> Option<String> {
    let start = part.start.as_ref()?;
    let found = homing_journal::runs_of_job(&homing_journal::root(), &start.host, &job.name_of(part), start.at_ns);
    (!found.is_empty()).then(|| found.join(", "))
}

/// Returns each rank of a job over several hosts, and where its part of the inputs is.
pub fn ranks(job: &Job) -> Vec<Value> {
    let hosts = job.spec.hosts.iter().flat_map(|share| std::iter::repeat_n(&share.host, share.slots as usize));
    let row = |(rank, (host, reads)): (usize, (&String, &Reads))| json!({"rank": rank, "host": host, "home": reads.home, "away": reads.away});
    hosts.zip(&job.spec.ranks).enumerate().map(row).collect()
}

/// Returns the ranks and their inputs by host, with the bytes that each host received.
fn by_host(job: &Job, part: &JobElement) -> Vec<String> {
    let mut first = 0;
    let mut rows = Vec::new();
    for share in &job.spec.hosts {
        let behind = first + share.slots as usize;
        let reads = job.spec.ranks.get(first..behind).unwrap_or_default();
        let sum = |of: fn(&Reads) -> u64| bytes(reads.iter().map(of).sum());
        let which = if share.slots == 1 { first.to_string() } else { format!("{first}-{}", behind - 1) };
        let received = part.end.as_ref().and_then(|end| end.received.get(&share.host));
        let received = received.map_or(String::new(), |all| format!("; {} received in all", bytes(*all)));
        let (home, away) = (sum(|r| r.home), sum(|r| r.away));
        rows.push(format!("{which} on {}: {home} at home, {away} over the network{received}", share.host));
        first = behind;
    }
    rows
}

fn state(part: &JobElement, why: Option<&str>) -> String {
    let word = part.state.word();
    match (&part.end, part.state) {
        (Some(end), ElementState::Exit) => {
            format!("{word} {}{}", end.exit, end.reason.as_ref().map_or(String::new(), |r| format!(": {r}")))
        }
        (_, ElementState::Lost) => format!("{word}: interrupted by a restart or a kill"),
        _ => why.map_or(word.into(), |why| format!("{word}: {why}")),
    }
}

fn limits(job: &Job) -> Option<String> {
    let time = job.spec.limit_s.map(|seconds| format!("{seconds} s"));
    let memory = job.spec.memory_bytes.map(|bytes| format!("{} of memory", size(bytes)));
    let all: Vec<String> = time.into_iter().chain(memory).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
