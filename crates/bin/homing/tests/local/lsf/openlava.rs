//! Command lines on which homing's words of LSF and a real OpenLava once differed.

use super::{World, user};
use crate::until::until;

#[test]
fn bkill_r_ends_a_job_that_heeds_no_other_signal() {
    let w = World::new();
    w.out("bsub \"trap '' TERM INT; touch runs; while :; do sleep 0.1; done\"; bsub -H true");
    until("its trap is set", || w.path().join("runs").exists());
    let (code, out, err) = w.sh("bkill -r 1 2");
    assert_eq!((code, out.as_str()), (0, "Job <1> is being terminated\nJob <2> is being terminated\n"));
    assert!(err.starts_with("bkill: -r: ends the jobs as -s KILL does"), "{err}");
    until("both are gone", || w.stat("1") == "EXIT" && w.stat("2") == "EXIT");
    assert_eq!(w.sh("bstop -r 1").0, 255, "it is bkill's alone");
}

#[test]
fn arrays_are_listed_without_their_ids() {
    let w = World::new();
    w.out("bsub -K -J 'done[1-2]' true; bsub -H -J 'held[1-3]' true; bsub -H -J single true");
    let rows = |line: &str| {
        let text = w.out(line);
        let row = |line: &str| line.split_whitespace().take(6).map(String::from).collect::<Vec<_>>().join(" ");
        text.lines().skip(1).map(row).collect::<Vec<_>>()
    };
    let own = user();
    let [done, held] = [format!("1 done[1-2] {own} 2 0 2"), format!("2 held[1-3] {own} 3 0 0")];
    assert_eq!(rows("bjobs -A"), [done, held.clone()]);
    assert_eq!(rows("bjobs -A 2"), [held]);
    let (code, _, err) = w.sh("bjobs -A 3");
    assert_eq!((code, err.as_str()), (255, "Job array <3> is not found\n"));
}
