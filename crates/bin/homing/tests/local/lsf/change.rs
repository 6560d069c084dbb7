//! Jobs that are changed, reordered, and run again.

use super::World;
use crate::until::until;

#[test]
fn what_waits_is_changed_and_put_in_another_order() {
    let world = World::new();
    // Both slots are in use, so the others wait.
    world.out("bsub -n 2 -J first 'until [ -e go ]; do sleep 0.05; done'");
    until("it runs", || world.stat("1") == "RUN");
    for n in 2..=5 {
        world.out(&format!("bsub -J j{n} -n 2 -M 500 -W 10 -w 'done(1)' 'echo {n} >> order'"));
    }
    assert_eq!(world.out("btop 5"), "Job <5> has been moved to position 1 from top.\n");
    assert_eq!(world.out("bbot 2"), "Job <2> has been moved to position 1 from bottom.\n");
    assert_eq!(world.out("bswitch storage 4"), "Job <4> is switched to queue <storage>\n");
    assert_eq!(world.out("bmod -J other -n 1 -Mn -W 20 3"), "Parameters of job <3> are being changed\n");
    let told: serde_json::Value = serde_json::from_slice(&world.homing(&["jobs", "--json", "3"]).stdout).unwrap();
    assert_eq!(
        (&told[0]["name"], &told[0]["slots"], &told[0]["memory_bytes"], &told[0]["limit_s"]),
        (&"other".into(), &1.into(), &serde_json::Value::Null, &1200.into())
    );
    for (line, says) in [
        ("bmod -n 1 1", "job 1 has started"),
        ("bmod -n 3 3", "3 slots requested, its host has 2. Job not modified."),
        ("bmod -o x 3", "-o: a submitted job keeps it"),
        ("bmod -q nosuch 3", "nosuch: No such queue"),
        ("bmod -R 'select[mem>=900000000]' 3", "amounts are in MB. Job not modified.\n"),
        ("bmod -R 'select[foo]' 3", "\"foo\" is not a resource. Job not modified.\n"),
        ("bmod -w 'done(99)' 3", "99: No matching job found. Job not modified.\n"),
        ("bswitch shut 3", "shut: Queue has been closed"),
        ("bmod -n 1 99", "99: No matching job found. Job not modified.\n"),
        ("bswitch storage 99", "Job <99>: No matching job found\n"),
        ("btop 3 2", "only position 1 is supported"),
    ] {
        let (code, out, err) = world.sh(line);
        assert!(code == 255 && out.is_empty() && err.contains(says), "{line}: {out}{err}");
    }
    world.out("touch go; bwait -w 'done(2) && done(3) && done(4) && done(5)'");
    // The order: the job of the queue of higher priority, the job that was moved first, the unmoved job, and the
    // last.
    assert_eq!(world.file("order"), "4\n5\n3\n2\n");
    assert_eq!(world.sh("bmod -n 1 3").2, "Job <3>: Job has already finished\n");
}

#[test]
fn what_runs_or_has_ended_is_run_again_under_its_number() {
    let world = World::new();
    world.out("bsub -K 'echo done >> log1'; bsub -K 'echo failed >> log2; test -e again'; bsub 'echo ran >> log3; test -e again || sleep 600'");
    until("the third runs", || world.stat("3") == "RUN" && world.path().join("log3").exists());
    let (code, _, err) = world.sh("brequeue 1");
    assert!(code == 255 && err.contains("brequeue -d for a successful job"), "{err}");
    world.out("touch again");
    assert_eq!(world.out("brequeue 3"), "Job <3> is being requeued\n");
    world.out("brequeue -e 2; brequeue -d 1");
    world.out("bwait -w 'done(1) && done(2) && done(3)'");
    for log in ["log1", "log2", "log3"] {
        assert_eq!(world.file(log).lines().count(), 2, "{log}");
    }
}

#[test]
fn what_has_just_ended_is_put_back_when_its_keeper_lets_go() {
    let world = World::new();
    world.out("bsub -K 'echo ran >> log'");
    let user = rustix::process::geteuid().as_raw();
    let lock = world.path().join(format!("queue/homing-queue-{user}/1/lock.0"));
    // The keeper has written the end of the job, and has its lock a moment longer.
    let held = homing_os::folder::lock::FileLock::take(&lock).unwrap();
    let keeper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        drop(held);
    });
    assert_eq!(world.out("brequeue -d 1"), "Job <1> is being requeued\n");
    keeper.join().unwrap();
    until("it ran again", || world.file("log").lines().count() == 2);
}

#[test]
fn slots_of_several_hosts_are_asked_for_in_lsfs_words() {
    let world = World::new();
    let own = &world.host;
    for (line, says) in [
        (
            "-n 5 -R 'span[hosts=1]' -m \"OWN elsewhere\"",
            "5 slots on one host never fit: OWN has 2, elsewhere has 1; the largest number that would is 2",
        ),
        ("-n 4 -m \"OWN elsewhere\"", "Too many processors requested. Job not submitted.\n4 slots never fit: "),
        ("-n 3 -R 'span[ptile=1]' -m \"OWN elsewhere\"", "3 slots, 1 on each host, never fit: "),
        ("-n 3,2", "3,2: Bad argument for option -n"),
        ("-n 2 -R 'span[block=2]'", "span[block=2]: hosts=1 or ptile=N"),
    ] {
        let (code, _, err) = world.sh(&format!("bsub {} true", line.replace("OWN", own)));
        assert!(code == 255 && err.contains(&says.replace("OWN", own)), "{line}: {err}");
    }
    // The job gets all slots of one host, up to the maximum. Without further words it stays there.
    world.out(&format!(
        "bsub -K -n 1,9 -R 'span[hosts=1]' -m {own} -o log 'echo $LSB_MCPU_HOSTS; cat $LSB_DJOB_HOSTFILE'"
    ));
    assert!(world.file("log").starts_with(&format!("{own} 2\n{own}\n{own}\n")), "{}", world.file("log"));
    assert_eq!(world.sh("blaunch x true").0, 255, "it is for jobs");
}
