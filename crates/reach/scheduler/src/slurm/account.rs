//! Jobs that have ended, from Slurm's accounting: the lines of `sacct`.

use std::collections::BTreeMap;

/// The columns for `sacct --parsable2 --noheader --format`. Times are seconds since the epoch with
/// `SLURM_TIME_FORMAT=%s`.
pub const SACCT_FORMAT: &str = "JobID,User,Account,JobName,State,ElapsedRaw,AllocCPUS,TotalCPU,ReqMem,NNodes,MaxRSS,NodeList,Submit,Start,End,Partition";

/// A job, or one element of an array, that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// `12`, or `12_3` of an array.
    pub id: String,
    /// Login name.
    pub user: String,
    /// The account that it was charged to.
    pub account: String,
    /// Its name.
    pub name: String,
    /// The partition that it was submitted to.
    pub partition: String,
    /// Whether it ended with status 0.
    pub done: bool,
    /// Time that it held its processors, seconds.
    pub elapsed_s: u64,
    /// Processors that it held.
    pub cpus: u32,
    /// Processor time of all its steps, microseconds.
    pub cpu_us: u64,
    /// Memory that it requested on all its nodes, bytes.
    pub memory_asked: Option<u64>,
    /// The largest resident set of one of its tasks, bytes; unknown without accounting of memory.
    pub memory: Option<u64>,
    /// Its nodes, as Slurm writes sets.
    pub nodes: String,
    /// The time of its submission, seconds since the epoch.
    pub submit_s: i64,
    /// The time of its start, seconds since the epoch; none if it never started.
    pub start_s: Option<i64>,
    /// The time of its end, seconds since the epoch.
    pub end_s: i64,
}

/// Returns the jobs that have ended, in the order of their ids as text. A line of a step adds its memory to its job's.
pub fn booked(text: &str) -> Vec<Booked> {
    let mut jobs: BTreeMap<String, Booked> = BTreeMap::new();
    for cells in text.lines().map(|line| line.split('|').collect::<Vec<_>>()) {
        let [id, user, account, name, state, elapsed, cpus, cpu, asked, nodes, rss, list, submit, start, end, queue] =
            cells[..]
        else {
            continue;
        };
        if let Some((job, _)) = id.split_once('.') {
            if let Some(job) = jobs.get_mut(job) {
                job.memory = job.memory.max(size(rss));
            }
            continue;
        }
        // A job that runs or waits has no end yet.
        let Ok(end_s) = end.parse() else { continue };
        let cpus: u32 = cpus.parse().unwrap_or(0);
        let job = Booked {
            id: id.into(),
            user: user.into(),
            account: account.into(),
            name: name.into(),
            partition: queue.into(),
            done: state == "COMPLETED",
            elapsed_s: elapsed.parse().unwrap_or(0),
            cpus,
            cpu_us: time_us(cpu).unwrap_or(0),
            memory_asked: asked_bytes(asked, nodes.parse().unwrap_or(1), cpus),
            memory: size(rss),
            nodes: list.into(),
            submit_s: submit.parse().unwrap_or(end_s),
            start_s: start.parse().ok(),
            end_s,
        };
        jobs.insert(id.into(), job);
    }
    jobs.into_values().collect()
}

/// Parses a time such as `1-02:03:04`, `03:04`, `03:04.567`.
fn time_us(text: &str) -> Option<u64> {
    let (days, rest) =
        text.split_once('-').map_or(Ok((0, text)), |(days, rest)| days.parse().map(|d: u64| (d, rest))).ok()?;
    let (clock, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let seconds = clock.split(':').try_fold(0, |sum: u64, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    let micros: u64 = format!("{fraction:0<6.6}").parse().ok()?;
    Some((days * 86_400 + seconds) * 1_000_000 + micros)
}

/// Parses a size such as `4000M`, `1.50G`, `128K`, `0`; units of 1024.
fn size(text: &str) -> Option<u64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let power = match text[at..].chars().next() {
        None => 0,
        Some(unit) => "KMGTP".find(unit)? as u32 + 1,
    };
    let number: f64 = text[..at].parse().ok()?;
    Some((number * 1024f64.powi(power as i32)) as u64).filter(|bytes| *bytes > 0)
}

/// Parses a requested size. Until Slurm 21.08 it was for each node (`4Gn`) or processor (`4Gc`), since then it is for
/// the job.
fn asked_bytes(text: &str, nodes: u64, cpus: u32) -> Option<u64> {
    let (each, times) = match (text.strip_suffix('n'), text.strip_suffix('c')) {
        (Some(each), _) => (each, nodes),
        (_, Some(each)) => (each, u64::from(cpus)),
        _ => (text, 1),
    };
    // For a job that never had a node or a processor the requested size is unknown.
    Some(size(each)? * times).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_the_memory_of_their_steps_and_those_that_run_are_none() {
        let text = "12|ann|physics|sort|COMPLETED|10|2|00:15.250|1G|1||n1|100|105|115|lab\n\
                    12.batch||physics|batch|COMPLETED|10|2|00:15.250||1|2048K|n1|105|105|115|\n\
                    12.0||physics|step|COMPLETED|9|2|00:10||1|1M|n1|105|105|115|\n\
                    13_2|bob||x|FAILED|60|4|1-00:00:01|500Mn|2||n[1-2]|100|100|160|lab\n\
                    14|bob||x|CANCELLED by 0|0|0|00:00:00|1Gc|1||None assigned|100|Unknown|130|lab\n\
                    15|bob||x|RUNNING|5|1|00:00:00|1G|1||n1|100|100|Unknown|lab\nnonsense\n";
        let jobs = booked(text);
        let [sort, array, never] = &jobs[..] else { panic!("{jobs:?}") };
        assert_eq!((sort.memory, sort.memory_asked, sort.cpu_us), (Some(2 << 20), Some(1 << 30), 15_250_000));
        assert_eq!((sort.partition.as_str(), array.partition.as_str()), ("lab", "lab"));
        assert!(sort.done && (sort.submit_s, sort.start_s, sort.end_s) == (100, Some(105), 115));
        assert_eq!((array.id.as_str(), array.done, array.memory), ("13_2", false, None));
        assert_eq!((array.memory_asked, array.cpu_us), (Some(1000 << 20), 86_401_000_000));
        assert_eq!((never.start_s, never.memory_asked), (None, None));
    }
}
