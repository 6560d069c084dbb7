//! `homing run --on slurm` on a real Slurm: munge, slurmctld and slurmd on four hosts with GlusterFS. Also checks
//! faults of Slurm in mid-run. Needs root; otherwise prints a note and is skipped.

mod accounting;
mod licenses;
mod lsf;

use crate::support::{EXE, Lab, missing};

const FILES: usize = 16;

/// Runs tasks over the files, one a second on each host. `fault` happens as soon as n3 has begun. The run must end
/// well all the same: each task's output once, and no job left. Returns its standard error.
fn in_mid_run(lab: &Lab, options: &str, command: &str, fault: &str) -> String {
    let script = format!(
        "cd /data; rm -f began.*; \
         {EXE} run -k -j1 {options} 'touch /data/began.$(hostname); {command}; basename {{}}' ::: f* 2>/tmp/err & \
         run=$!; until [ -e began.n3 ]; do sleep 0.1; kill -0 $run || break; done; \
         {fault}; wait $run; s=$?; cat /tmp/err >&2; exit $s"
    );
    let (status, out, err) = lab.told("n1", &script);
    assert_eq!(status, Some(0), "{fault}\n{out}\n{err}");
    let mut names: Vec<&str> = out.lines().collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), out.lines().count()), (FILES, FILES), "each task once: {out}\n{err}");
    nothing_is_left(lab);
    err
}

/// Waits: Slurm takes a moment to clean up, and longer after a restart.
fn nothing_is_left(lab: &Lab) {
    lab.ok("n1", "for i in $(seq 1200); do [ -z \"$(squeue -h)\" ] && exit 0; sleep 0.1; done; squeue; exit 1");
}

/// A slurmctld that was restarted first reports its saved state, so one look is not enough.
fn all_idle_again(lab: &Lab) {
    lab.ok(
        "n1",
        "seen=0; for i in $(seq 480); do \
        if [ $(sinfo -h -N -p lab -o %T | grep -cx idle) = 4 ]; then seen=$((seen+1)); else seen=0; fi; \
        [ $seen = 4 ] && exit 0; sleep 0.5; done; sinfo; exit 1",
    );
}

#[test]
fn a_batch_on_slurm_whatever_happens_to_it() {
    if missing(&["glusterd", "slurmctld", "munged"]) {
        return;
    }
    let lab = Lab::up("slurm", &["--hosts", "4", "--gluster", "2x2", "--slurm"]);
    lab.ok("n1", &format!("for i in $(seq {FILES}); do head -c 100000 /dev/urandom > /data/f$i; done"));

    next_to_the_data(&lab);
    inside_an_allocation(&lab);
    what_the_cluster_does(&lab);
    what_slurm_kills(&lab);
    // Slurm checks time limits every half minute only.
    std::thread::scope(|scope| {
        scope.spawn(|| a_time_limit_ends_a_try(&lab, "n3", "", 1));
        scope.spawn(|| a_time_limit_ends_a_try(&lab, "n4", "--retries 2", 0));
        lsf::the_words_of_lsf(&lab);
    });
    only_the_nodes_of_a_reservation(&lab);
    licenses::one_limit_of_a_file_server(&lab);
    nothing_stays_when_homing_is_killed(&lab);
}

fn next_to_the_data(lab: &Lab) {
    // No option names Slurm; that it answers is enough.
    let (status, out, err) = lab.told("n1", &format!("cd /data; {EXE} run 'cksum {{}}; hostname' ::: f*"));
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(out.lines().filter(|l| !l.starts_with('n')).count(), FILES);
    // On a busy machine a slot that is free in time takes a task from another host.
    let home =
        err.lines().find_map(|line| line.strip_prefix("data")?.trim().split_once(" % of ")?.0.parse::<u32>().ok());
    assert!(home.is_some_and(|home| home >= 50), "{err}");
    // The tasks run on one node, which the user names. A plan starts nothing.
    let out = lab.ok("n1", &format!("cd /data; {EXE} run -q --hosts n4 --slurm-arg=--comment=x 'hostname #' ::: f*"));
    assert_eq!(out, "n4\n".repeat(FILES));
    let plan = lab.ok("n1", &format!("cd /data; {EXE} plan --on slurm -j2 'cksum {{}}' ::: f*"));
    assert_eq!(plan.lines().count(), FILES, "{plan}");
    assert!(["n1", "n2", "n3", "n4"].iter().filter(|n| plan.contains(**n)).count() >= 2, "{plan}");
    // An impossible request is refused in one line.
    let (status, _, err) = lab.told("n1", &format!("{EXE} run --partition nope true ::: 1"));
    assert_eq!(status, Some(255), "{err}");
    assert!(err.contains("no partition or queue nope"), "{err}");
    let (status, _, err) = lab.told("n1", &format!("{EXE} run --qos x --account y --slurm-arg=--nope true ::: 1"));
    assert!(status == Some(254) && err.contains("nope"), "{err}");
    nothing_is_left(lab);
}

fn inside_an_allocation(lab: &Lab) {
    let out = lab.ok("n1", &format!("cd /data; salloc -Q -N2 -w n3,n4 {EXE} run -q 'hostname #' ::: f*"));
    assert_eq!(out.lines().count(), FILES);
    assert!(out.lines().all(|host| host == "n3" || host == "n4"), "only in the allocation: {out}");
    nothing_is_left(lab);
}

fn what_the_cluster_does(lab: &Lab) {
    in_mid_run(lab, "", "sleep 1", "ssh n3 pkill -9 -x slurmd");
    lab.ok("n1", "ssh n3 systemctl restart slurmd");
    all_idle_again(lab);
    in_mid_run(lab, "", "sleep 1", "systemctl kill -s KILL slurmctld; sleep 2; systemctl restart slurmctld");
    all_idle_again(lab);
    let err = in_mid_run(lab, "", "sleep 1", "scancel $(squeue -h -w n3 -o %i)");
    assert!(err.contains("n3 is lost: Slurm ended job") && err.contains("CANCELLED"), "{err}");
    all_idle_again(lab);
    let err = in_mid_run(lab, "--retries 2", "sleep 1", "scontrol update nodename=n3 state=down reason=gone");
    assert!(err.contains("n3 is lost: Slurm ended job") && err.contains("NODE_FAIL"), "{err}");
    // Its slurmd may have brought the node back by itself; the command then fails, which is no fault.
    lab.ok("n1", "scontrol update nodename=n3 state=resume 2>/dev/null || true");
    all_idle_again(lab);
    let err = in_mid_run(lab, "", "sleep 4", "scontrol update nodename=n3 state=drain reason=disk");
    assert!(err.contains("n3 gets no new tasks: its state in Slurm is drain") && err.contains("disk"), "{err}");
    // Now the node is drained from the start.
    let out = lab.ok("n1", &format!("cd /data; {EXE} run -q 'hostname #' ::: f*"));
    assert!(out.lines().count() == FILES && !out.contains("n3"), "{out}");
    lab.ok("n1", "scontrol update nodename=n3 state=resume");
    all_idle_again(lab);
}

fn what_slurm_kills(lab: &Lab) {
    let err = in_mid_run(lab, "", "sleep 1", "srun -Q -p urgent -w n3 -c2 true");
    assert!(err.contains("PREEMPTED"), "{err}");
    // The task is at fault, and is not tried again without --retries. All other tasks are done.
    let (status, out, err) = lab.told(
        "n1",
        &format!(
            "cd /data; {EXE} run -j1 --mem-per-task 100M \
         'case {{}} in f3) head -c 600M /dev/zero | tail;; *) sleep 0.2;; esac; echo {{}}' ::: f*"
        ),
    );
    assert_eq!(status, Some(1), "{out}\n{err}");
    assert!(err.contains("OUT_OF_MEMORY") && err.contains("15 done, 1 failed"), "{err}");
    nothing_is_left(lab);
}

/// The time limit ends the first try of a task, which would end at its second try.
fn a_time_limit_ends_a_try(lab: &Lab, node: &str, options: &str, status: i32) {
    let script = format!(
        "cd /data; {EXE} run -j1 --hosts {node} --time 5 {options} \
         'echo >> tries.{node}; [ $(wc -l < tries.{node}) = 2 ] || sleep 300; echo {{}}' ::: ended 2>/tmp/{node}.err & run=$!; \
         until [ -e tries.{node} ]; do sleep 0.1; kill -0 $run || break; done; \
         scontrol update jobid=$(squeue -h -w {node} -o '%i %j' | grep -m1 homing- | cut -d' ' -f1) endtime=now+1; \
         wait $run; s=$?; cat /tmp/{node}.err >&2; exit $s"
    );
    let (code, out, err) = lab.told("n1", &script);
    assert_eq!(code, Some(status), "{out}\n{err}");
    assert!(err.contains(&format!("{node} is lost: Slurm killed job")) && err.contains("TIMEOUT"), "{err}");
    assert_eq!(out, if status == 0 { "ended\n" } else { "" });
    assert_eq!(err.contains("was lost with its host: Slurm killed job"), status == 1, "{err}");
}

fn only_the_nodes_of_a_reservation(lab: &Lab) {
    nothing_is_left(lab);
    lab.ok("n1", "scontrol create reservation reservationname=mine starttime=now duration=60 users=root nodes=n2");
    let out = lab.ok("n1", &format!("cd /data; {EXE} run -q --reservation mine 'hostname #' ::: f*"));
    assert_eq!(out, "n2\n".repeat(FILES));
    let (status, _, err) = lab.told("n1", &format!("{EXE} run -q --reservation nobodys true ::: 1"));
    assert!(status == Some(255) && err.contains("nobodys"), "{err}");
    nothing_is_left(lab);
    lab.ok("n1", "scontrol delete reservationname=mine");
}

fn nothing_stays_when_homing_is_killed(lab: &Lab) {
    let begin = format!(
        "cd /data; rm -f began.*; {EXE} run -q 'touch began.$(hostname); sleep 60 #' ::: f* 2>/dev/null & run=$!; \
         until [ -e began.n3 ]; do sleep 0.1; done"
    );
    lab.ok("n1", &format!("{begin}; kill -9 $run; wait $run; exit 0"));
    nothing_is_left(lab);
    // The sruns are killed too, as when a batch step exceeds its memory.
    lab.ok("n1", &format!("{begin}; kill -9 $run $(pgrep -x srun); wait $run; exit 0"));
    nothing_is_left(lab);
    // The run is killed while it still waits for an allocation.
    lab.ok("n1", &format!(
        "srun -Q -w n3 --exclusive sleep 600 & until [ -n \"$(squeue -h -t R)\" ]; do sleep 0.1; done; cd /data; {EXE} run -q --hosts n3 true ::: 1 2>/dev/null & run=$!; \
         until [ -n \"$(squeue -h -t PD)\" ]; do sleep 0.1; kill -0 $run || break; done; kill -9 $run; \
         for i in $(seq 1200); do [ -z \"$(squeue -h -t PD)\" ] && break; sleep 0.1; done; \
         [ -z \"$(squeue -h -t PD)\" ]; s=$?; kill %1; wait; exit $s"
    ));
    nothing_is_left(lab);
}
