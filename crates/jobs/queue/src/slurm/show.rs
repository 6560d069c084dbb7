//! Parses the output of `scontrol show job` and `sinfo`. Pure.

use super::batch::default_name;
use super::comment::{SlurmComment, parsed};
use crate::array::{self, Array};
use crate::job::{JobEnd, Start};
use crate::plan::{Block, Queue};
use crate::process::ProcessIdentity;
use crate::state::ElementState;
use crate::{Job, JobElement, JobSpec};
use homing_lease as lease;
use homing_model::exit::USAGE;
use homing_model::{Command, RawText};
use homing_scheduler::slurm::{License, taken};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fields of `scontrol show job --oneliner` in its order. Values of the marked ones may hold blanks, and end where
/// the next of these names begins.
const FIELDS: [(&str, bool); 27] = [
    ("JobId", false),
    ("ArrayJobId", false),
    ("ArrayTaskId", false),
    ("ArrayTaskThrottle", false),
    ("JobName", true),
    ("UserId", false),
    ("JobState", false),
    ("Reason", false),
    ("Dependency", false),
    ("ExitCode", false),
    ("SubmitTime", false),
    ("StartTime", false),
    ("EndTime", false),
    ("Partition", false),
    ("AllocNode:Sid", false),
    ("NodeList", false),
    ("BatchHost", false),
    ("NumCPUs", false),
    ("CPUs/Task", false),
    ("Licenses", false),
    ("Command", true),
    ("WorkDir", true),
    ("Comment", true),
    ("StdErr", true),
    ("StdIn", true),
    ("StdOut", true),
    ("Power", false),
];

fn fields(line: &str) -> BTreeMap<&'static str, &str> {
    let mut found: Vec<(&'static str, bool, usize, usize)> = Vec::new();
    let mut cursor = 0;
    for (name, blanks) in FIELDS {
        let at = match line[cursor..].strip_prefix(&format!("{name}=")) {
            Some(_) => Some(cursor),
            None => line[cursor..].find(&format!(" {name}=")).map(|at| cursor + at + 1),
        };
        if let Some(at) = at {
            cursor = at + name.len() + 1;
            found.push((name, blanks, at, cursor));
        }
    }
    let ends: Vec<usize> = found.iter().skip(1).map(|f| f.2).chain([line.len()]).collect();
    let value = |(name, blanks, _, from): &(&'static str, bool, usize, usize), end: usize| {
        let text = &line[*from..end];
        let text = if *blanks { text.trim() } else { text.split(' ').next().unwrap_or_default() };
        (*name, if text == "(null)" { "" } else { text })
    };
    found.iter().zip(ends).map(|(f, end)| value(f, end)).collect()
}

/// Converts local time, as Slurm prints it, to ns since the epoch.
fn time(text: &str) -> Option<i64> {
    let time: jiff::civil::DateTime = text.parse().ok()?;
    let zoned = time.to_zoned(jiff::tz::TimeZone::system()).ok()?;
    i64::try_from(zoned.timestamp().as_nanosecond()).ok()
}

fn state(state: &str, reason: &str) -> ElementState {
    match state {
        "PENDING" | "REQUEUED" | "SPECIAL_EXIT" if reason.starts_with("JobHeld") => ElementState::Psusp,
        "REQUEUE_HOLD" => ElementState::Psusp,
        "PENDING" | "REQUEUED" | "SPECIAL_EXIT" | "REQUEUE_FED" => ElementState::Pend,
        "SUSPENDED" | "STOPPED" => ElementState::Ususp,
        "COMPLETED" => ElementState::Done,
        "NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED" | "REVOKED" => ElementState::Lost,
        "FAILED" | "CANCELLED" | "TIMEOUT" | "OUT_OF_MEMORY" | "DEADLINE" => ElementState::Exit,
        _ => ElementState::Run,
    }
}

/// Converts an exit code: `7:0` is exit status 7, `0:15` the end by signal 15.
fn exit(code: &str, state: &str, reason: &str, started: bool) -> (i32, Option<String>) {
    let (status, signal) = code.split_once(':').unwrap_or((code, "0"));
    let number = |text: &str| text.parse::<i32>().unwrap_or(0);
    let exit = if number(signal) > 0 { 128 + number(signal) } else { number(status) };
    let at_least = |least: i32| if exit == 0 { least } else { exit };
    match state {
        "TIMEOUT" | "DEADLINE" => (at_least(143), Some("time limit".into())),
        "OUT_OF_MEMORY" => (at_least(137), Some("out of memory".into())),
        "CANCELLED" if started => (at_least(143), Some("killed".into())),
        "CANCELLED" if reason == "DependencyNeverSatisfied" => {
            (130, Some("its dependency condition can never hold".into()))
        }
        "CANCELLED" => (130, Some("killed before it started".into())),
        // Slurm's own mark of a job that it could not start, 0:53, is no signal. The embedded queue ends such a job
        // with the same status.
        "FAILED" if reason == NOT_LAUNCHED => (USAGE, Some(format!("Slurm could not start it: {reason}"))),
        "FAILED" => (at_least(1), None),
        _ => (exit, None),
    }
}

/// Slurm's reason of a job whose batch script it could not start, mostly because its folder or the folder of its
/// output is missing on the node.
const NOT_LAUNCHED: &str = "JobLaunchFailure";

/// Returns the places that a job needs on its node, as a question for its user.
fn places(folder: &str, output: &str, host: &str) -> String {
    let output = Path::new(output).parent().and_then(Path::to_str).filter(|o| !o.is_empty() && *o != folder);
    let output = output.map_or(String::new(), |output| format!(", and {output} for its output"));
    format!("is the folder {folder}{output} on {host}?")
}

/// Returns the jobs by number; the records of one array are one job.
pub(super) fn jobs(text: &str) -> Vec<Job> {
    let mut jobs: BTreeMap<u64, (JobSpec, u32, Vec<JobElement>)> = BTreeMap::new();
    for line in text.lines() {
        let fields = fields(line);
        let Some((id, uid, spec, parts)) = record(&fields) else { continue };
        jobs.entry(id).or_insert_with(|| (spec, uid, Vec::new())).2.extend(parts);
    }
    let job = |(id, (mut spec, uid, mut parts)): (u64, (JobSpec, u32, Vec<JobElement>))| {
        parts.sort_by_key(|p| p.index);
        if let Some(array) = &mut spec.array {
            array.indices = parts.iter().map(|p| p.index).collect();
        }
        Job { id, uid, spec: Arc::new(spec), parts, dir: PathBuf::new() }
    };
    jobs.into_iter().map(job).collect()
}

fn record(fields: &BTreeMap<&str, &str>) -> Option<(u64, u32, JobSpec, Vec<JobElement>)> {
    let get = |name: &str| fields.get(name).copied().unwrap_or_default();
    let id = if get("ArrayJobId").is_empty() { get("JobId") } else { get("ArrayJobId") };
    let (user, uid) = get("UserId").trim_end_matches(')').rsplit_once('(')?;
    let (indices, limit) = elements(get("ArrayTaskId"));
    let ours = parsed(get("Comment"));
    let is_ours = ours.is_some();
    let foreign = || SlurmComment { command: get("Command"), ..SlurmComment::default() };
    let SlurmComment { project, command, hosts, ranks } = ours.unwrap_or_else(foreign);
    let limit = limit.or_else(|| get("ArrayTaskThrottle").parse().ok());
    let spec = JobSpec {
        v: 1,
        user: user.into(),
        submit_ns: time(get("SubmitTime")).unwrap_or(0),
        from: get("AllocNode:Sid").split(':').next().unwrap_or_default().into(),
        cwd: RawText::from(get("WorkDir")),
        command: Command::Shell(command.into()),
        // homing's default name adds nothing to the command.
        name: if is_ours && default_name(command) == get("JobName") { "" } else { get("JobName") }.into(),
        queue: get("Partition").into(),
        slots: get("NumCPUs").split('-').next().and_then(|n| n.parse().ok()).unwrap_or(1),
        array: (!get("ArrayTaskId").is_empty()).then_some(Array { indices: Vec::new(), limit }),
        after: Some(get("Dependency").to_string()).filter(|d| !d.is_empty()),
        ranks,
        hosts,
        project: project.map(String::from),
        ..JobSpec::default()
    };
    let one = part(fields);
    let parts = indices.into_iter().map(|index| JobElement { index, ..one.clone() }).collect();
    Some((id.parse().ok()?, uid.parse().ok()?, spec, parts))
}

fn part(fields: &BTreeMap<&str, &str>) -> JobElement {
    let get = |name: &str| fields.get(name).copied().unwrap_or_default();
    let mut part = JobElement::new(0);
    part.state = state(get("JobState"), get("Reason"));
    let host = if get("BatchHost").is_empty() { get("NodeList") } else { get("BatchHost") };
    // A waiting job may have a planned start, but no host.
    let started = time(get("StartTime")).filter(|_| !host.is_empty() && part.state != ElementState::Pend);
    part.start = started.map(|at_ns| Start { at_ns, host: host.into(), process: ProcessIdentity::default() });
    if part.state.is_over() {
        let (exit, reason) = exit(get("ExitCode"), get("JobState"), get("Reason"), part.start.is_some());
        let reason = if part.state == ElementState::Lost { Some(get("JobState").to_string()) } else { reason };
        let is_launched = get("Reason") != NOT_LAUNCHED || part.state != ElementState::Exit;
        let needs = || places(get("WorkDir"), get("StdOut"), host);
        let reason = if is_launched { reason } else { reason.map(|why| format!("{why}; {}", needs())) };
        let at_ns = time(get("EndTime")).unwrap_or(0);
        part.end = Some(JobEnd { at_ns, exit, reason, cpu_ms: 0, max_rss_kib: 0, received: Default::default() });
    }
    let file = |name: &str| Some(get(name)).filter(|f| !f.is_empty()).map(PathBuf::from);
    (part.out, part.err) = (file("StdOut"), file("StdErr"));
    part
}

/// Parses `3`, or the waiting elements `1-3,7%2`; 0 for no array.
fn elements(text: &str) -> (Vec<u32>, Option<u32>) {
    if text.is_empty() {
        return (vec![0], None);
    }
    let (list, limit) = text.split_once('%').unwrap_or((text, ""));
    let indices = array::indices(list).unwrap_or_default();
    (indices, limit.parse().ok())
}

/// Returns why one element waits, as the embedded queue's reason if that has the same. `licenses` is called if it
/// waits for some.
pub(super) fn block(text: &str, index: u32, licenses: impl FnOnce() -> Vec<License>) -> Option<Block> {
    Some(match reason(text, index)?.as_str() {
        "Licenses" => Block::Other(waits_for(text, &licenses())),
        "Dependency" => Block::After,
        "DependencyNeverSatisfied" => Block::Never,
        "JobHeldUser" | "JobHeldAdmin" => Block::Stopped,
        "JobArrayTaskLimit" => Block::ArrayLimit,
        "PartitionDown" | "PartitionInactive" => Block::Closed,
        other => Block::Other(other.into()),
    })
}

/// Returns the users of the licences that a job waits for.
fn waits_for(text: &str, all: &[License]) -> String {
    let own = text.lines().next().map(fields).unwrap_or_default();
    let get = |name: &str| own.get(name).copied().unwrap_or_default();
    let me = get("UserId").split('(').next().unwrap_or_default();
    let known = taken(get("Licenses")).filter_map(|(name, _)| all.iter().find(|license| license.name == name));
    let serves = |license: &License| {
        let users: Vec<(String, u32)> = license.users.iter().map(|(user, held)| (user.clone(), *held)).collect();
        lease::serves(&license.name, Some(license.total), &users, me)
    };
    let told: Vec<String> = known.map(serves).collect();
    if told.is_empty() { "Licenses".into() } else { told.join("; ") }
}

fn reason(text: &str, index: u32) -> Option<String> {
    let records = text.lines().map(fields);
    let mut fitting =
        records.filter(|f| elements(f.get("ArrayTaskId").copied().unwrap_or_default()).0.contains(&index));
    fitting.next()?.get("Reason").map(|r| r.to_string()).filter(|r| r != "None" && !r.is_empty())
}

/// Parses a line of `sinfo --summarize --format '%P|%a|%l|%C|%p'`.
pub(super) fn partition(line: &str) -> Option<(String, Queue)> {
    let mut words = line.split('|');
    let (name, available, limit, cpus) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let queue = Queue {
        default: name.ends_with('*'),
        closed: available != "up",
        run_limit: minutes(limit),
        slots: cpus.rsplit('/').next().and_then(|n| n.parse().ok()),
        priority: words.next().and_then(|n| n.trim().parse().ok()).unwrap_or(0),
        ..Queue::default()
    };
    Some((name.trim_end_matches('*').into(), queue))
}

/// Parses `D-HH:MM:SS`, `HH:MM:SS` or `MM:SS`; `infinite` is none.
fn minutes(text: &str) -> Option<u64> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<u64> = rest.split(':').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let seconds = parts.iter().fold(0, |sum, n| sum * 60 + n);
    Some(days.parse::<u64>().ok()? * 1440 + seconds / 60)
}

/// Parses lines of `sinfo --Node --format '%N|%f'`.
pub(super) fn features(text: &str) -> BTreeMap<String, Vec<String>> {
    let pairs = text.lines().filter_map(|line| line.trim().split_once('|'));
    pairs.map(|(node, list)| (node.to_string(), list.split(',').map(String::from).collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Slurm 22.05, shortened in the middle.
    const SHOWN: &str = "\
JobId=1 JobName=a b StdOut=x UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=1 Nice=0 JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 ExitCode=7:0 RunTime=00:00:01 TimeLimit=UNLIMITED SubmitTime=2026-11-21T08:27:57 EligibleTime=2026-11-21T08:27:57 StartTime=2026-11-21T08:27:59 EndTime=2026-11-21T08:28:00 Deadline=N/A Partition=lab AllocNode:Sid=n1:0 ReqNodeList=(null) ExcNodeList=(null) NodeList=n1 BatchHost=n1 NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 Features=(null) Command=(null) WorkDir=/data Comment=homing: echo \"hi there\" | sort  StdErr=/data/slurm-1.out StdIn=/dev/null StdOut=/data/slurm-1.out Power= \n\
JobId=2 ArrayJobId=2 ArrayTaskId=3,7%2 ArrayTaskThrottle=2 JobName=wrap UserId=al(1000) GroupId=root(0) JobState=PENDING Reason=JobArrayTaskLimit Dependency=(null) ExitCode=0:0 SubmitTime=2026-11-21T08:27:57 StartTime=Unknown EndTime=Unknown Partition=lab AllocNode:Sid=n1:0 NodeList= NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 Command=(null) WorkDir=/data StdErr=/data/slurm-2_4294967294.out StdIn=/dev/null StdOut=/data/slurm-2_4294967294.out Power= \n\
JobId=5 ArrayJobId=2 ArrayTaskId=2 ArrayTaskThrottle=2 JobName=wrap UserId=al(1000) GroupId=root(0) JobState=RUNNING Reason=None Dependency=(null) ExitCode=0:0 SubmitTime=2026-11-21T08:27:57 StartTime=2026-11-21T08:27:59 EndTime=Unknown Partition=lab AllocNode:Sid=n1:0 NodeList=n2 BatchHost=n2 NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 Command=(null) WorkDir=/data StdErr=/data/slurm-2_2.out StdIn=/dev/null StdOut=/data/slurm-2_2.out Power= \n\
JobId=19 JobName=echo UserId=root(0) GroupId=root(0) JobState=CANCELLED Reason=DependencyNeverSatisfied Dependency=afterok:18(failed) ExitCode=0:15 SubmitTime=2026-11-21T08:36:49 StartTime=2026-11-21T08:36:52 EndTime=2026-11-21T08:36:52 Partition=lab AllocNode:Sid=n1:0 ReqNodeList=(null) ExcNodeList=(null) NodeList= NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 Command=(null) WorkDir=/data Comment=homing: echo never  StdErr=/data/slurm-19.out StdIn=/dev/null StdOut=/data/slurm-19.out Power= KillOInInvalidDependent=Yes \n";

    #[test]
    fn jobs_and_arrays() {
        let all = jobs(SHOWN);
        assert_eq!(all.len(), 3);
        let never = &all[2];
        assert_eq!((never.spec.name.as_str(), never.parts[0].start.is_none()), ("", true));
        assert_eq!(never.parts[0].end.as_ref().unwrap().exit, 130);
        let first = &all[0];
        assert_eq!((first.id, first.uid, first.spec.name.as_str()), (1, 0, "a b StdOut=x"));
        assert_eq!(first.spec.command.display(), "echo \"hi there\" | sort");
        let part = &first.parts[0];
        assert_eq!((part.state, part.end.as_ref().unwrap().exit), (ElementState::Exit, 7));
        assert_eq!(part.end.as_ref().unwrap().at_ns - part.start.as_ref().unwrap().at_ns, 1_000_000_000);
        assert_eq!(first.output(part, "out"), PathBuf::from("/data/slurm-1.out"));
        let parts: Vec<(u32, ElementState)> = all[1].parts.iter().map(|p| (p.index, p.state)).collect();
        assert_eq!(parts, [(2, ElementState::Run), (3, ElementState::Pend), (7, ElementState::Pend)]);
        assert_eq!(all[1].parts[0].start.as_ref().unwrap().host, "n2");
        assert_eq!((all[1].uid, all[1].spec.array.as_ref().unwrap().limit), (1000, Some(2)));
        assert_eq!(block(SHOWN, 7, || unreachable!()), Some(Block::ArrayLimit));
    }

    #[test]
    fn who_has_the_licences_that_a_job_waits_for_is_told() {
        let shown = "JobId=9 JobName=x UserId=ann(1000) GroupId=root(0) JobState=PENDING Reason=Licenses \
                     Dependency=(null) NumCPUs=1 CPUs/Task=1 Licenses=nas:1 Network=(null) Command=(null) WorkDir=/data";
        let users = [("ann".to_string(), 3), ("bob".to_string(), 1)].into();
        let nas = License { name: "nas".into(), total: 4, used: 4, users };
        let told = |all: Vec<License>| block(shown, 0, || all).unwrap().to_string();
        assert_eq!(told(vec![nas]), "nas serves 4 of 4, 1 of them by user bob");
        assert_eq!(told(vec![]), "Licenses");
    }

    #[test]
    fn ends_and_states() {
        assert_eq!(exit("0:15", "CANCELLED", "None", true), (143, Some("killed".into())));
        assert_eq!(exit("0:0", "CANCELLED", "None", false).0, 130);
        assert_eq!(exit("0:15", "TIMEOUT", "TimeLimit", true).1.as_deref(), Some("time limit"));
        assert_eq!(exit("3:0", "FAILED", "NonZeroExitCode", true), (3, None));
        assert_eq!(exit("0:9", "FAILED", "RaisedSignal:9(Killed)", true), (137, None));
        assert_eq!(state("PENDING", "JobHeldUser"), ElementState::Psusp);
        assert_eq!(state("COMPLETING", "None"), ElementState::Run);
        assert_eq!(state("NODE_FAIL", "NodeDown"), ElementState::Lost);
    }

    #[test]
    fn a_job_that_slurm_could_not_start_has_slurms_reason_and_no_signal() {
        let shown = "JobId=7 JobName=x UserId=root(0) JobState=FAILED Reason=JobLaunchFailure Dependency=(null) \
                     ExitCode=0:53 SubmitTime=2026-11-21T08:27:57 StartTime=2026-11-21T08:27:59 \
                     EndTime=2026-11-21T08:28:00 Partition=lab AllocNode:Sid=n1:0 NodeList=n2 BatchHost=n2 NumCPUs=1 \
                     CPUs/Task=1 Command=(null) WorkDir=/root/w StdErr=/out/7 StdIn=/dev/null StdOut=/out/7 Power=";
        let end = jobs(shown).remove(0).parts.remove(0).end.unwrap();
        assert_eq!(end.exit, USAGE);
        let why = "Slurm could not start it: JobLaunchFailure; is the folder /root/w, and /out for its output on n2?";
        assert_eq!(end.reason.as_deref(), Some(why));
        let within = jobs(&shown.replace("/out/7", "/root/w/7")).remove(0).parts.remove(0).end.unwrap();
        assert!(within.reason.unwrap().ends_with("; is the folder /root/w on n2?"));
    }

    #[test]
    fn partitions() {
        let (name, queue) = partition("lab*|up|1-02:00:00|0/6/0/6|1").unwrap();
        assert_eq!((name.as_str(), queue.default, queue.closed), ("lab", true, false));
        assert_eq!((queue.run_limit, queue.slots, queue.priority), (Some(1560), Some(6), 1));
        assert_eq!(partition("big|down|infinite|0/0/4/4|10").unwrap().1.run_limit, None);
    }
}
