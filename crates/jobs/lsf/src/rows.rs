//! Jobs of an engine as LSF's tables show them.

use crate::jobs::JobReport as Row;
use homing_model::{Command, NodeSet, RawText};
use homing_queue::all_thresholds;
use homing_queue::plan::Block;
use homing_queue::terminal::ATTACH;
use homing_queue::{ElementState, Engine, Job, JobElement, JobSpec, QueueError, Share};
use homing_scheduler::slurm::Booked;
use std::collections::HashMap;

/// Returns the row of one element.
pub fn row(job: &Job, part: &JobElement) -> Row {
    let spec = &job.spec;
    let host = part.start.as_ref().map(|s| s.host.clone());
    let text = |raw: &Option<RawText>| raw.as_ref().map(RawText::display);
    let over = part.state.is_over();
    Row {
        id: job.id,
        index: spec.array.as_ref().map(|_| part.index),
        array: spec.array.as_ref().map(array),
        user: spec.user.clone(),
        stat: part.state.lsf(),
        queue: spec.queue.clone(),
        from_host: spec.from.clone(),
        exec_hosts: host.map(|h| exec_hosts(spec, h)).unwrap_or_default(),
        name: if spec.name.is_empty() { command(job) } else { spec.name.clone() },
        command: command(job),
        submit_ns: spec.submit_ns,
        start_ns: part.start.as_ref().map(|s| s.at_ns),
        end_ns: part.end.as_ref().map(|e| e.at_ns).filter(|_| over),
        exit: part.end.as_ref().map(|e| e.exit).or((part.state == ElementState::Lost).then_some(255)),
        reasons: reasons(part),
        cwd: spec.cwd.display(),
        output: text(&spec.stdout),
        error: text(&spec.stderr),
        input: text(&spec.stdin),
        project: spec.project.clone().unwrap_or_else(|| "default".into()),
        group: spec.group.clone().unwrap_or_else(|| "/".into()),
        app: spec.app.clone(),
        slots: spec.slots,
        cpu_ms: part.end.as_ref().map(|e| e.cpu_ms),
        max_rss_kib: part.end.as_ref().map(|e| e.max_rss_kib),
        require: spec.require.join(" "),
        after: spec.after.clone(),
        limit_s: spec.limit_s,
        asked_hosts: spec.asked_hosts.clone(),
        pid: part.start.as_ref().map(|start| start.process.pid).filter(|pid| *pid > 0),
        ..Row::default()
    }
}

/// Adds the homes of users, which only the long forms show.
pub fn add_homes(jobs: &[Job], rows: &mut [Row]) {
    let users: HashMap<u64, u32> = jobs.iter().map(|job| (job.id, job.uid)).collect();
    for row in rows {
        let account = users.get(&row.id).and_then(|uid| homing_os::names::account(*uid));
        row.home = account.map(|account| account.home.display().to_string());
    }
}

/// Adds the facts that only `bjobs -l` shows: load thresholds of the queues, and the memory that running jobs of this
/// machine take now.
pub fn add_details(engine: &dyn Engine, jobs: &[Job], rows: &mut [Row]) -> Result<(), QueueError> {
    let config = engine.config()?;
    let by_id: HashMap<u64, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
    let (here, is_here) = (homing_queue::host_name(), |part: &JobElement, here: &str| {
        part.state.is_running() && part.start.as_ref().is_some_and(|start| start.host == here)
    });
    for row in rows {
        let Some(job) = by_id.get(&row.id) else { continue };
        row.thresholds = config.queues.get(&row.queue).map(|queue| all_thresholds(&queue.load)).unwrap_or_default();
        let part = job.part(row.index.unwrap_or(0)).filter(|part| is_here(part, &here));
        let pid = part.and(row.pid);
        row.mem_kib = pid.map(|pid| homing_os::process::resident_below(pid as i32) / 1024).filter(|kib| *kib > 0);
    }
    Ok(())
}

/// Returns the row of a job in Slurm's accounting, which has seconds, and its name but no command.
pub fn booked(job: &Booked) -> Row {
    let (id, index) = job.id.split_once('_').map_or((job.id.as_str(), None), |(id, index)| (id, index.parse().ok()));
    let ns = |seconds: i64| seconds.saturating_mul(1_000_000_000);
    let hosts = job.start_s.and_then(|_| NodeSet::parse(&job.nodes).ok());
    Row {
        id: id.parse().unwrap_or(0),
        index,
        user: job.user.clone(),
        stat: if job.done { "DONE" } else { "EXIT" },
        queue: job.partition.clone(),
        exec_hosts: hosts.iter().flat_map(NodeSet::iter).map(String::from).collect(),
        name: job.name.clone(),
        command: job.name.clone(),
        submit_ns: ns(job.submit_s),
        start_ns: job.start_s.map(ns),
        end_ns: Some(ns(job.end_s)),
        exit: job.done.then_some(0),
        project: job.account.clone(),
        group: "/".into(),
        slots: job.cpus,
        cpu_ms: Some(job.cpu_us / 1000),
        max_rss_kib: job.memory.map(|bytes| bytes / 1024),
        ..Row::default()
    }
}

/// Returns the host of each slot of a job that was started on `first`.
fn exec_hosts(spec: &JobSpec, first: String) -> Vec<String> {
    let of = |share: &Share| vec![share.host.clone(); share.slots as usize];
    match spec.over_several() {
        Some(shares) => shares.iter().flat_map(of).collect(),
        None => vec![first; spec.slots as usize],
    }
}

/// Returns the user's own line. In an interactive job it is the last word of the command that connects it to the
/// terminal.
fn command(job: &Job) -> String {
    match &job.spec.command {
        Command::Argv(words) if words.get(1).is_some_and(|w| w.0 == ATTACH.as_bytes()) => {
            words.last().map(RawText::display).unwrap_or_default()
        }
        other => other.display(),
    }
}

/// Returns the reasons that are in the records.
fn reasons(part: &JobElement) -> Vec<String> {
    let recorded = part.end.as_ref().and_then(|e| e.reason.as_deref()).map(homing_queue::report::term);
    let lost = (part.state == ElementState::Lost)
        .then(|| "interrupted by a restart of the machine or a kill of its keeper".to_string());
    let stopped = match (part.state, &part.stopped_by) {
        (ElementState::Ususp, _) => Some("The job was suspended by user".to_string()),
        (ElementState::Ssusp, Some(index)) => {
            Some(format!(" Host load exceeded threshold:  {index}").trim_start().to_string())
        }
        _ => None,
    };
    [recorded, lost, stopped].into_iter().flatten().collect()
}

/// Adds the reason of each waiting job.
pub fn add_pending_reasons(engine: &dyn Engine, jobs: &[Job], rows: &mut [Row]) -> Result<(), QueueError> {
    let waiting: Vec<&mut Row> = rows.iter_mut().filter(|r| r.is_waiting()).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let known = engine.reasons(jobs)?;
    for row in waiting {
        if let Some(block) = known.get(&(row.id, row.index.unwrap_or(0))) {
            row.reasons.push(reason(block));
        }
    }
    Ok(())
}

/// Returns OpenLava's sentence for a reason.
fn reason(block: &Block) -> String {
    match block {
        Block::Stopped => "Job was suspended by the user while pending".into(),
        Block::After => "Job dependency condition not satisfied".into(),
        Block::Never => "Dependency condition invalid or never satisfied".into(),
        Block::Closed => "The queue is closed or not known".into(),
        Block::Barred => "The user cannot use the queue".into(),
        Block::Window(when) => format!("The queue is inactivated by its time windows: {when}"),
        Block::Inactive(by) => format!("The queue is inactivated by the administrator: {by}"),
        Block::ClosedHost(by) => format!("Closed by LSF administrator: 1 host: {by}"),
        Block::QueueLimit => "The queue has reached its job slot limit".into(),
        Block::UserLimit => "The user has reached the job slot limit of the queue".into(),
        Block::HostLimit | Block::Slots | Block::SlotsOfRuns(_) => "Job slot limit reached: 1 host".into(),
        Block::ArrayLimit => "The job array has reached its running element limit".into(),
        Block::Load(index) if matches!(index.as_str(), "bio" | "rpc") => {
            format!("External load index ({index}) is beyond threshold: 1 host")
        }
        Block::Load(index) => format!("Load index ({index}) is beyond threshold: 1 host"),
        Block::Require(_) => "Job's resource requirements not satisfied: 1 host".into(),
        Block::Beyond(what) => format!("Job's resource requirements can never be satisfied: {what}: 1 host"),
        Block::NoSlots => "Closed by LSF administrator: 1 host".into(),
        Block::TooLarge => "Not enough processors to meet the job's CPU requirement: 1 host".into(),
        Block::Gpus => "Job's resource requirements not satisfied: gpu: 1 host".into(),
        Block::Storage(who) => format!("The file server is busy: {who}"),
        Block::Other(text) => text.clone(),
    }
}

/// Formats `[1-3,7]%2`.
fn array(of: &homing_queue::array::Array) -> String {
    let limit = of.limit.map_or(String::new(), |l| format!("%{l}"));
    format!("[{}]{limit}", of.folded())
}
