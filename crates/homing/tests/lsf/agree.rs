//! `bjobs`, `bhist` and `bacct` count the same jobs, each once.

use super::World;
use crate::until::until;

/// The number behind a name in the words of `bacct`.
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
    // What waits is killed, what runs is put back and killed or run to its end.
    let ids = w.out("bjobs -noheader -o jobid -q storage");
    let ids: Vec<&str> = ids.split_whitespace().collect();
    w.out(&format!("bkill {}; brequeue {}; bkill {}", ids[4], ids[0], ids[1]));
    w.out("touch again; for id in $(bjobs -s -noheader -o jobid); do bkill $id; done");
    // Others may have started before that, in the place of the one that was killed.
    w.sh("for id in $(bjobs -r -q storage -noheader -o jobid); do brequeue $id; done");
    until("all have ended", || w.sh("bjobs").0 == 254);
    let told = w.out("bjobs -a -noheader -o 'jobid jobindex stat'");
    let mut keys: Vec<&str> = told.lines().map(|l| l.trim_end().rsplit_once(' ').unwrap().0.trim()).collect();
    let of = |stat: &str| told.lines().filter(|line| line.trim_end().ends_with(stat)).count();
    let (done, exit) = (of("DONE"), of("EXIT"));
    assert_eq!(keys.len(), 51, "{told}");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), done + exit), (51, 51), "{told}");
    // 13 of the array, 5 that were held, 2 of the queue and the one that took too long.
    assert_eq!(exit, 21, "{told}");
    assert_eq!(w.out("bhist -a").lines().count() - 2, 51);
    let account = w.out("bacct");
    assert_eq!((number(&account, "of done jobs:"), number(&account, "of exited jobs:")), (done, exit), "{account}");
    let failed = w.out("bacct -e");
    assert_eq!((number(&failed, "of done jobs:"), number(&failed, "of exited jobs:")), (0, exit), "{failed}");
}
