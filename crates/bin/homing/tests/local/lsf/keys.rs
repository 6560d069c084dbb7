//! The keys of `[queue.NAME]` in a cluster file, and their effect on the queue's jobs.

use super::World;
use super::memory::takes;
use crate::until::until;

/// Writes a queue with these lines.
fn queue(w: &World, lines: &str) {
    w.write(&format!("[queue.keys]\n{lines}\n"));
}

#[test]
fn a_queue_prepares_starts_and_cleans_up_after_its_jobs() {
    let w = World::new();
    queue(
        &w,
        "description = 'for tests'\npre_exec = 'echo pre $LSB_JOBID >> log; test ! -e broken'\npost_exec = 'echo post >> log'\n\
         job_starter = 'env STARTED=yes'\nnice = 7\n",
    );
    assert_eq!(w.sh("bsub -K -q keys 'echo job $STARTED $(nice) >> log; exit 3'").0, 3);
    assert_eq!(w.file("log"), format!("pre 1\njob yes {}\npost\n", w.out("echo $(($(nice) + 7))").trim()));
    assert_eq!(w.sh("touch broken; bsub -K -q keys 'echo never >> log'").0, 125);
    assert!(w.out("bjobs -l 2").contains("the pre_exec of queue keys ended with 1"), "{}", w.out("bjobs -l 2"));
    assert!(w.file("log").ends_with("post\npre 2\n"));
    // The queue also cleans up after a killed job.
    w.out("rm broken; bsub -q keys 'touch runs; sleep 600'");
    until("it runs", || w.path().join("runs").exists());
    w.out("bkill 3");
    until("it has ended", || w.stat("3") == "EXIT");
    assert!(w.file("log").ends_with("pre 3\npost\n"), "{}", w.file("log"));
    let long = w.out("bqueues -l keys");
    for line in
        ["-- for tests", "POST_EXEC:  echo post >> log", "JOB_STARTER:  env STARTED=yes", " 1    7  Open:Active"]
    {
        assert!(long.contains(line) || line.starts_with(' '), "{line}: {long}");
    }
    let told: Vec<&str> =
        long.lines().skip_while(|l| !l.starts_with("PRIO")).nth(1).unwrap().split_whitespace().collect();
    assert_eq!(told[1], "7", "{long}");
}

#[test]
fn a_queues_limits_hold_whatever_a_job_asks_for() {
    let w = World::new();
    queue(&w, "cpu_limit = 1\nmemory_limit = 60\nres_req = 'select[mem>1]'\n");
    assert_ne!(w.sh(&format!("bsub -K -q keys -M 1000 \"{}\"", takes(150))).0, 0);
    assert!(w.out("bjobs -l 1").contains("TERM_MEMLIMIT"), "{}", w.out("bjobs -l 1"));
    assert_eq!(w.sh("bsub -K -q keys 'test $(ulimit -t) -eq 60'").0, 0);
    let long = w.out("bqueues -l keys");
    for part in
        ["\nCPULIMIT\n 1.0 min\n", "\nMEMLIMIT\n 60 M\n", "\nRES_REQ:  select[mem>1]\n", "\nUSERS:  all users\n"]
    {
        assert!(long.contains(part), "{part}: {long}");
    }
    queue(&w, "res_req = 'select[nosuch>1]'\n");
    let (code, _, err) = w.sh("bsub -q keys true");
    assert!(code != 0 && err.contains("[queue.keys]") && err.contains("\"nosuch\""), "{err}");
    // Each job of the queue has the queue's requirement.
    queue(&w, "res_req = 'select[ut<0]'\n");
    w.out("bsub -q keys true");
    until("it says why it waits", || w.out("bjobs -p 3").contains("resource requirements not satisfied"));
}

#[test]
fn users_and_times_are_kept_to() {
    let w = World::new();
    // Two time windows: the present is outside the first, and inside the second.
    let now = jiff::Zoned::now();
    let day = |days: i64| (&now + jiff::Span::new().days(days)).weekday().to_sunday_zero_offset();
    queue(&w, &format!("users = ['ann', '@lab']\ndispatch_window = '{}:0:00-{}:0:00'\n", day(2), day(3)));
    w.out("bsub -q keys true");
    assert!(w.out("bqueues keys").contains("Open:Inact_Win"));
    assert!(w.out("bjobs -p 1").contains("by its time windows: "), "{}", w.out("bjobs -p 1"));
    queue(&w, &format!("users = ['ann', '@lab']\ndispatch_window = '{}:0:00-{}:0:00'\n", day(-1), day(2)));
    until("it has run", || w.stat("1") == "DONE");
    assert!(w.out("bqueues -l keys").contains("\nUSERS:  ann @lab\n"));
    if rustix::process::geteuid().is_root() {
        w.out("chmod 755 .");
        let (code, _, err) = w.sh("setpriv --reuid 61001 --regid 61001 --clear-groups bsub -q keys true");
        assert_eq!((code, err.as_str()), (255, "keys: User cannot use the queue. Job not submitted.\n"));
    }
}
