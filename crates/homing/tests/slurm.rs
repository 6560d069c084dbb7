//! `homing run --on slurm` on a real Slurm: munge, slurmctld and slurmd on four
//! hosts with GlusterFS, and what goes wrong there in mid-run. Needs root; says
//! so and does nothing without it.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Two checkouts may be tested at once.
static LAB: LazyLock<String> = LazyLock::new(|| format!("slurm{}", std::process::id()));
const EXE: &str = env!("CARGO_BIN_EXE_homing");
const FILES: usize = 16;

fn homing(args: &[&str]) -> Output {
    Command::new(EXE).args(args).output().unwrap()
}

/// Takes the lab down however the test ends.
struct Lab;

impl Drop for Lab {
    fn drop(&mut self) {
        homing(&["lab", "down", "--name", &LAB]);
    }
}

/// Exit status, standard output, error output of a script on n1.
fn on_n1(script: &str) -> (Option<i32>, String, String) {
    let output = homing(&["lab", "exec", "--name", &LAB, "n1", "--", "bash", "-c", script]);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn ok(script: &str) -> String {
    let (status, out, err) = on_n1(script);
    assert_eq!(status, Some(0), "{script}\n{out}\n{err}");
    out
}

/// A run over the files, one task a second on each host, to which `fault`
/// happens as soon as n3 has begun. It must end well all the same: each task's
/// output once, and no job left. Returns what it said.
fn in_mid_run(options: &str, command: &str, fault: &str) -> String {
    let script = format!(
        "cd /data; rm -f began.*; \
         {EXE} run -k -j1 {options} 'touch /data/began.$(hostname); {command}; basename {{}}' ::: f* 2>/tmp/err & \
         run=$!; until [ -e began.n3 ]; do sleep 0.1; kill -0 $run || break; done; \
         {fault}; wait $run; s=$?; cat /tmp/err >&2; exit $s"
    );
    let (status, out, err) = on_n1(&script);
    assert_eq!(status, Some(0), "{fault}\n{out}\n{err}");
    let mut names: Vec<&str> = out.lines().collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), out.lines().count()), (FILES, FILES), "each task once: {out}\n{err}");
    nothing_is_left();
    err
}

/// Slurm takes a moment to clean up, and longer when it was restarted.
fn nothing_is_left() {
    ok("for i in $(seq 300); do [ -z \"$(squeue -h)\" ] && exit 0; sleep 0.1; done; squeue; exit 1");
}

/// A slurmctld that was restarted first says what it remembers, so one look is not enough.
fn all_idle_again() {
    ok("seen=0; for i in $(seq 120); do \
        if [ $(sinfo -h -N -p lab -o %T | grep -cx idle) = 4 ]; then seen=$((seen+1)); else seen=0; fi; \
        [ $seen = 4 ] && exit 0; sleep 0.5; done; sinfo; exit 1");
}

#[test]
fn a_batch_on_slurm_whatever_happens_to_it() {
    let there = ["/usr/sbin/glusterd", "/usr/sbin/slurmctld", "/usr/sbin/munged"].iter().all(|p| Path::new(p).exists());
    if !rustix::process::geteuid().is_root() || !there {
        eprintln!("SKIPPED: the lab needs root, GlusterFS and Slurm");
        return;
    }
    homing(&["lab", "down", "--name", &LAB]);
    let _lab = Lab;
    let up = homing(&["lab", "up", "--name", &LAB, "--hosts", "4", "--gluster", "2x2", "--slurm"]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    ok(&format!("for i in $(seq {FILES}); do head -c 100000 /dev/urandom > /data/f$i; done"));

    next_to_the_data();
    inside_an_allocation();
    what_the_cluster_does();
    what_slurm_kills();
    nothing_stays_when_homing_is_killed();
}

fn next_to_the_data() {
    // Nothing says Slurm but that it answers.
    let (status, out, err) = on_n1(&format!("cd /data; {EXE} run 'cksum {{}}; hostname' ::: f*"));
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(out.lines().filter(|l| !l.starts_with('n')).count(), FILES);
    assert!(err.contains("from the task's own host"), "{err}");
    // On one node, which the user names; a plan starts nothing.
    let out = ok(&format!("cd /data; {EXE} run -q --hosts n4 --slurm-arg=--comment=x 'hostname #' ::: f*"));
    assert_eq!(out, "n4\n".repeat(FILES));
    let plan = ok(&format!("cd /data; {EXE} plan --on slurm -j2 'cksum {{}}' ::: f*"));
    assert_eq!(plan.lines().count(), FILES, "{plan}");
    assert!(["n1", "n2", "n3", "n4"].iter().filter(|n| plan.contains(**n)).count() >= 2, "{plan}");
    // What cannot be is said in one line.
    let (status, _, err) = on_n1(&format!("{EXE} run --partition nope true ::: 1"));
    assert_eq!(status, Some(255), "{err}");
    assert!(err.contains("no partition nope"), "{err}");
    let (status, _, err) = on_n1(&format!("{EXE} run --qos x --account y --slurm-arg=--nope true ::: 1"));
    assert!(status == Some(254) && err.contains("nope"), "{err}");
    nothing_is_left();
}

fn inside_an_allocation() {
    let out = ok(&format!("cd /data; salloc -Q -N2 -w n3,n4 {EXE} run -q 'hostname #' ::: f*"));
    assert_eq!(out.lines().count(), FILES);
    assert!(out.lines().all(|host| host == "n3" || host == "n4"), "only in the allocation: {out}");
    nothing_is_left();
}

fn what_the_cluster_does() {
    in_mid_run("", "sleep 1", "ssh n3 pkill -9 -x slurmd");
    ok("ssh n3 systemctl restart slurmd");
    all_idle_again();
    in_mid_run("", "sleep 1", "systemctl kill -s KILL slurmctld; sleep 2; systemctl restart slurmctld");
    all_idle_again();
    let err = in_mid_run("", "sleep 1", "scancel $(squeue -h -w n3 -o %i)");
    assert!(err.contains("n3 is lost: Slurm ended job") && err.contains("CANCELLED"), "{err}");
    all_idle_again();
    let err = in_mid_run("", "sleep 4", "scontrol update nodename=n3 state=drain reason=disk");
    assert!(err.contains("n3 gets no new tasks: Slurm has it drain") && err.contains("disk"), "{err}");
    // Now it is drained from the start.
    let out = ok(&format!("cd /data; {EXE} run -q 'hostname #' ::: f*"));
    assert!(out.lines().count() == FILES && !out.contains("n3"), "{out}");
    ok("scontrol update nodename=n3 state=resume");
    all_idle_again();
}

fn what_slurm_kills() {
    let err = in_mid_run("", "sleep 1", "srun -Q -p urgent -w n3 -c2 true");
    assert!(err.contains("PREEMPTED"), "{err}");
    // The task is at fault, and is not tried again without --retries; all others are done.
    let (status, out, err) = on_n1(&format!(
        "cd /data; {EXE} run -j1 --mem-per-task 100M \
         'case {{}} in f3) head -c 600M /dev/zero | tail;; *) sleep 0.2;; esac; echo {{}}' ::: f*"
    ));
    assert_eq!(status, Some(1), "{out}\n{err}");
    assert!(err.contains("OUT_OF_MEMORY") && err.contains("15 done, 1 failed"), "{err}");
    nothing_is_left();
}

fn nothing_stays_when_homing_is_killed() {
    let begin = format!(
        "cd /data; rm -f began.*; {EXE} run -q 'touch began.$(hostname); sleep 60 #' ::: f* 2>/dev/null & run=$!; \
         until [ -e began.n3 ]; do sleep 0.1; done"
    );
    ok(&format!("{begin}; kill -9 $run; wait $run; exit 0"));
    nothing_is_left();
    // Its sruns with it, as when a batch step's memory is over.
    ok(&format!("{begin}; kill -9 $run $(pgrep -x srun); wait $run; exit 0"));
    nothing_is_left();
    // While it still waits for a grant.
    ok(&format!(
        "srun -Q -w n3 --exclusive sleep 8 & sleep 1; cd /data; {EXE} run -q --hosts n3 true ::: 1 2>/dev/null & run=$!; \
         sleep 2; kill -9 $run; sleep 2; [ -z \"$(squeue -h -t PD)\" ]; s=$?; wait; exit $s"
    ));
    nothing_is_left();
}
