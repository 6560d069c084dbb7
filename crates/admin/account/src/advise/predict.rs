//! Predicts the same tasks on the same hosts with another layout of the files.

use crate::advise::{AdviceEvidence, FinishedRun};
use homing_model::{FileLayout, TaskId};
use homing_place::{HostModel, Need, Params, simulate};
use std::collections::{BTreeMap, HashMap};

/// The result of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictedCost {
    /// Bytes that cross the network.
    pub remote: u64,
    /// Time of all runs, one after another, microseconds.
    pub us: u64,
}

/// Plays the runs through the placer with these layouts, in the order of [`AdviceEvidence::files`].
pub fn predict(seen: &AdviceEvidence, files: &[FileLayout]) -> PredictedCost {
    seen.runs.iter().map(|run| of_run(run, files)).fold(PredictedCost::default(), |sum, one| PredictedCost {
        remote: sum.remote + one.remote,
        us: sum.us + one.us,
    })
}

fn of_run(run: &FinishedRun, files: &[FileLayout]) -> PredictedCost {
    let places: HashMap<&str, usize> =
        run.hosts.iter().enumerate().map(|(at, host)| (host.name.as_str(), at)).collect();
    let hosts: Vec<HostModel> = run
        .hosts
        .iter()
        .map(|host| HostModel { slots: host.slots, nic_bytes_per_s: host.link, serving: 0.0, switch: None })
        .collect();
    let needs: Vec<(TaskId, Need)> = run
        .tasks
        .iter()
        .enumerate()
        .map(|(at, task)| (at as TaskId + 1, need(&places, task.files.iter().map(|file| &files[*file]))))
        .collect();
    let work = work(run);
    let planned = simulate(Params::default(), &hosts, &needs, |task, _| work[task as usize - 1]);
    PredictedCost {
        remote: planned.iter().map(|one| one.remote).sum(),
        us: planned.iter().map(|one| one.end_us).max().unwrap_or(0),
    }
}

fn need<'a>(places: &HashMap<&str, usize>, files: impl Iterator<Item = &'a FileLayout>) -> Need {
    let (mut total, mut held) = (0, BTreeMap::<usize, u64>::new());
    for file in files {
        total += file.size;
        for (host, bytes) in file.bytes_per_host() {
            places.get(host.as_str()).into_iter().for_each(|at| *held.entry(*at).or_default() += bytes);
        }
    }
    Need { total, per_host: held.into_iter().collect(), ..Need::default() }
}

/// Returns the time of each task on a host that has its bytes, microseconds. It is estimated by the time per byte of
/// the tasks that had their bytes. If there are none, the time of the link is subtracted, at the placer's default
/// rate if the link is unknown.
fn work(run: &FinishedRun) -> Vec<u64> {
    let at_home = || run.tasks.iter().filter(|task| task.remote == 0 && task.local > 0);
    let (us, bytes) = at_home().fold((0, 0), |(us, bytes), task| (us + task.wall_us, bytes + task.local));
    let link = |host: usize| run.hosts[host].link.map_or(Params::default().default_bytes_per_s, |rate| rate as f64);
    let of = |task: &crate::advise::FinishedTask| match task.remote {
        0 => task.wall_us,
        _ if bytes > 0 => (us as f64 / bytes as f64 * (task.local + task.remote) as f64) as u64,
        fetched => task.wall_us.saturating_sub((fetched as f64 / link(task.host) * 1e6) as u64).max(1),
    };
    run.tasks.iter().map(of).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::advise::{FinishedTask, Worker};
    use homing_model::{Extent, Replica};

    pub fn file(path: &str, size: u64, on: &[&str]) -> FileLayout {
        let replicas = on.iter().map(|host| Replica { host: host.to_string(), share: 1.0 }).collect();
        FileLayout {
            path: path.into(),
            size,
            volume: "v".into(),
            extents: vec![Extent { offset: 0, length: size, replicas }],
            reason: None,
            missing: false,
            server_path: None,
        }
    }

    /// Makes a run on n1, n2 and n3. Each task has the host where it ran and the files that it read. A task takes 1 s
    /// if its files are on its host.
    pub fn seen(files: Vec<FileLayout>, tasks: &[(usize, &[usize])]) -> AdviceEvidence {
        let hosts: Vec<Worker> =
            (1..=3).map(|n| Worker { name: format!("n{n}"), slots: 1, link: Some(1_000_000) }).collect();
        let done = |(host, read): &(usize, &[usize])| {
            let all: u64 = read.iter().map(|at| files[*at].size).sum();
            let local: u64 =
                read.iter().filter_map(|at| files[*at].bytes_per_host().get(&hosts[*host].name).copied()).sum();
            let wall_us = 1_000_000 + (all - local);
            FinishedTask { host: *host, wall_us, local, remote: all - local, files: read.to_vec() }
        };
        let tasks = tasks.iter().map(done).collect();
        AdviceEvidence { runs: vec![FinishedRun { hosts, tasks, us: 1 }], files }
    }

    #[test]
    fn what_lies_on_one_host_is_fetched_and_what_lies_everywhere_is_not() {
        let files: Vec<FileLayout> = (0..30).map(|n| file(&format!("/d/{n}"), 10_000_000, &["n1"])).collect();
        let tasks: Vec<(usize, Vec<usize>)> = (0..30).map(|n| (n % 3, vec![n])).collect();
        let tasks: Vec<(usize, &[usize])> = tasks.iter().map(|(host, files)| (*host, &files[..])).collect();
        let seen = seen(files, &tasks);
        let now = predict(&seen, &seen.files);
        let mut moved = seen.files.clone();
        for (n, layout) in moved.iter_mut().enumerate() {
            *layout = file("/d", 10_000_000, &["n1", ["n2", "n3"][n % 2]]);
        }
        let then = predict(&seen, &moved);
        assert!(now.remote > 0 && then.remote == 0, "{now:?} {then:?}");
        // Ten tasks of 1 s on each host.
        assert!(then.us <= 11_000_000 && now.us > 14_000_000, "{now:?} {then:?}");
    }
}
