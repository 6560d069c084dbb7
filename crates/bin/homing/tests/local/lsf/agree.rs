//! `bjobs`, `bhist` and `bacct` count the same jobs, each once.

use super::World;
use crate::until::until;

/// Returns the number behind a name in the output of `bacct`.
fn number(told: &str, name: &str) -> usize {
    let rest = told.split(name).nth(1).unwrap_or_default();
    rest.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(usize::MAX)
}

#[test]
fn after_kills_requeues_and_timeouts_every_job_is_counted_once_everywhere() {
    let w = World::new();
    w.out("bsub -J 'many[1-40]' 'exit $((LSB_JOBINDEX % 3 == 0))'");
    for _ in 0..5 {
        w.out("bsub -q storage 'test -e again || sleep 600'; bsub -H 'sleep 600'");
    }
    w.homing(&["sub", "--timeout", "1s", "sleep 600"]);
    until("two of them run", || w.out("bjobs -r -q storage -noheader -o jobid").lines().count() == 2);
    // A waiting job is killed. A running job is requeued, and another is killed. The rest runs to its end.
    let ids = w.out("bjobs -noheader -o jobid -q storage");
    let ids: Vec<&str> = ids.split_whitespace().collect();
    w.out(&format!("bkill {}; brequeue {}; bkill {}", ids[4], ids[0], ids[1]));
    w.out("touch again; for id in $(bjobs -s -noheader -o jobid); do bkill $id; done");
    // Others may have started before that, in the place of the one that was killed.
    w.sh("for id in $(bjobs -r -q storage -noheader -o jobid); do brequeue $id; done");
    until("all have ended", || w.sh("bjobs").0 == 255);
    let told = w.out("bjobs -a -noheader -o 'jobid jobindex stat'");
    let mut keys: Vec<&str> = told.lines().map(|l| l.trim_end().rsplit_once(' ').unwrap().0.trim()).collect();
    let of = |stat: &str| told.lines().filter(|line| line.trim_end().ends_with(stat)).count();
    let (done, exit) = (of("DONE"), of("EXIT"));
    assert_eq!(keys.len(), 51, "{told}");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), done + exit), (51, 51), "{told}");
    // 13 of the array, 5 held jobs, 2 of the queue, and the job that took too long.
    assert_eq!(exit, 21, "{told}");
    assert_eq!(w.out("bhist -a").lines().count() - 2, 51);
    let account = w.out("bacct");
    assert_eq!((number(&account, "of done jobs:"), number(&account, "of exited jobs:")), (done, exit), "{account}");
    let told = w.out("bacct -l");
    assert_eq!(told.lines().filter(|line| line.starts_with("Job <")).count(), 51, "{told}");
    assert!(told.contains("Total number of done jobs:"), "{told}");
    let failed = w.out("bacct -e");
    assert_eq!((number(&failed, "of done jobs:"), number(&failed, "of exited jobs:")), (0, exit), "{failed}");
}

/// Returns the word behind a name in the output of `bacct`.
fn word<'t>(told: &'t str, name: &str) -> &'t str {
    told.split(name).nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("nothing")
}

#[test]
fn bacct_and_usage_have_the_same_sums() {
    let w = World::new();
    w.out("bsub -J 'burn[1-3]' 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; bsub -J late 'sleep 1; exit 3'");
    // A job that is killed while it waits counts as exited, and has used nothing.
    w.out("bsub -J never -H true; bkill -J never 0; bwait -w 'ended(burn) && ended(late)'");
    let told = w.homing(&["usage", "--jobs", "--json", "--since", "1h"]);
    let usage: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let of = |key: &str| usage["all"][key].as_u64().unwrap_or_else(|| panic!("{key}: {usage}"));
    let (ran, failed) = (of("attempts"), of("failed"));
    assert_eq!((ran, failed), (4, 1), "{usage}");
    assert!(of("cpu_us") > 100_000 && of("turnaround_us") > 1_000_000, "{usage}");
    let account = w.out("bacct");
    let shown = |us: f64| format!("{:.1}", us / 1e6);
    for (name, expected) in [
        ("of done jobs:", (ran - failed).to_string()),
        ("of exited jobs:", (failed + 1).to_string()),
        ("Total CPU time consumed:", shown(of("cpu_us") as f64)),
        ("Total wait time in queues:", shown(of("queued_us") as f64)),
        ("Average CPU time consumed:", shown(of("cpu_us") as f64 / ran as f64)),
        ("Average wait time in queue:", shown(of("queued_us") as f64 / ran as f64)),
        ("Average turnaround time:", shown(of("turnaround_us") as f64 / ran as f64)),
    ] {
        assert_eq!(word(&account, name), expected, "{name} {account}{usage}");
    }
}

/// Returns job and state of each ended element, by `bjobs -json`.
fn records(w: &World) -> Vec<(String, String)> {
    let told: serde_json::Value = serde_json::from_str(&w.out("bjobs -a -json -o 'jobid jobindex stat'")).unwrap();
    let records = told["RECORDS"].as_array().unwrap().iter();
    let word = |record: &serde_json::Value, name: &str| record[name].as_str().unwrap().to_string();
    records.map(|r| (format!("{}[{}]", word(r, "JOBID"), word(r, "JOBINDEX")), word(r, "STAT"))).collect()
}

#[test]
#[ignore = "takes minutes; tests/night/agree"]
fn a_thousand_jobs_with_kills_requeues_and_timeouts_are_counted_once_everywhere() {
    let w = World::new();
    w.out("bsub -J many[1-700] 'exit $((LSB_JOBINDEX % 3 == 0))'");
    w.out("for i in $(seq 100); do bsub -q storage 'test -e again || sleep 600' || exit; bsub -H 'sleep 600' || exit; done");
    let timed = "for i in $(seq 100); do homing sub -q --timeout 1s 'sleep 600' || exit; done";
    w.out(&timed.replace("homing", env!("CARGO_BIN_EXE_homing")));
    until("two of them run", || w.out("bjobs -r -q storage -noheader -o jobid").lines().count() == 2);
    let waits = w.out("bjobs -p -noheader -o jobid -q storage");
    let waits: Vec<&str> = waits.split_whitespace().step_by(3).collect();
    w.out(&format!("bkill {}", waits.join(" ")));
    // Running jobs are requeued, some of them again and again, while the rest goes on.
    for _ in 0..10 {
        w.sh("for id in $(bjobs -r -q storage -noheader -o jobid); do brequeue $id; done");
    }
    w.out("touch again; for id in $(bjobs -s -noheader -o jobid); do bkill $id; done");
    w.sh("for id in $(bjobs -r -q storage -noheader -o jobid); do brequeue $id; done");
    let begun = std::time::Instant::now();
    while w.sh("bjobs").0 != 255 {
        assert!(begun.elapsed().as_secs() < 1800, "{}", w.sh("bjobs").1);
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let mut all = records(&w);
    let of = |all: &[(String, String)], stat: &str| all.iter().filter(|(_, is)| is == stat).count();
    let (done, exit) = (of(&all, "DONE"), of(&all, "EXIT"));
    assert_eq!((all.len(), done + exit), (1000, 1000));
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(all.len(), 1000, "each once");
    // A third of the array, the held jobs, the jobs that took too long, and the jobs that were killed while they
    // waited.
    assert_eq!(exit, 233 + 100 + 100 + waits.len());
    assert_eq!(w.out("bhist -a").lines().count() - 2, 1000);
    let account = w.out("bacct");
    assert_eq!((number(&account, "of done jobs:"), number(&account, "of exited jobs:")), (done, exit), "{account}");
    let listed = w.out("bacct -l");
    assert_eq!(listed.lines().filter(|line| line.starts_with("Job <")).count(), 1000);
}
