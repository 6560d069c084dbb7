//! Memory of jobs: its units, enforced limits, and requirements that no host can meet.

use super::World;
use crate::until::until;

/// Returns a command that takes so many MB and holds them.
pub(super) fn takes(mb: u32) -> String {
    format!(
        "python3 -c 'import time; held = bytearray({mb} << 20); held[::4096] = bytes([1]) * len(held[::4096]); time.sleep(600)'"
    )
}

#[test]
fn a_job_that_takes_more_memory_than_its_limit_is_ended() {
    let world = World::new();
    world.out(&format!("bsub -M 50 -o log \"{}\"", takes(300)));
    until("it is ended", || world.stat("1") == "EXIT");
    until("its report is there", || world.path().join("log").exists() && world.file("log").contains("TERM_"));
    let log = world.file("log");
    assert!(log.contains("\nTERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with"), "{log}");
    let long: String = world.out("bjobs -l 1").split_whitespace().collect();
    assert!(long.contains("TERM_MEMLIMIT"), "{long}");
}

#[test]
fn the_script_that_nextflow_writes_runs_with_and_without_its_conf() {
    let world = World::new();
    let script = "#!/bin/bash\n#BSUB -M 102400\n#BSUB -R \"select[mem>=102400] rusage[mem=100]\"\necho ran\n";
    // The script as Nextflow writes it where it has found no lsf.conf.
    let (code, _, err) = world.fed("bsub -K -o kib", script);
    assert!(code == 0 && err.contains("are taken in KB"), "{err}");
    assert!(world.file("kib").starts_with("ran\n"));
    let in_mb = script.replace("102400", "100");
    let (code, _, err) = world.fed("LSF_ENVDIR=$PWD/bin/lsf/conf bsub -K -o mib", &in_mb);
    assert!(code == 0 && !err.contains("are taken in KB"), "{err}");
    let conf = world.file("bin/lsf/conf/lsf.conf");
    assert_eq!(conf, "LSF_UNIT_FOR_LIMITS=MB\nLSB_JOB_MEMLIMIT=Y\n");
    let told = world.homing(&["lsf", "install", "bin"]);
    let want = format!(" LSF_ENVDIR={}\n", world.path().join("bin/lsf/conf").display());
    assert!(String::from_utf8(told.stdout).unwrap().ends_with(&want));
}

#[test]
fn the_units_of_the_conf_are_honoured() {
    let world = World::new();
    std::fs::create_dir(world.path().join("conf")).unwrap();
    let conf = |text: &str| std::fs::write(world.path().join("conf/lsf.conf"), text).unwrap();
    let bsub = |options: &str| world.sh(&format!("LSF_ENVDIR=$PWD/conf bsub -H {options} true"));
    conf("LSF_UNIT_FOR_LIMITS=GB\n");
    let (code, _, err) = bsub("-R 'select[mem>=100000]'");
    assert!(code == 255 && err.contains("select[mem>=100000GB] can never be satisfied: "), "{err}");
    assert!(err.contains(&format!("{} has ", world.host)) && err.lines().count() == 1, "{err}");
    assert_eq!(bsub("-M 4 -R 'select[mem>=0]'").0, 0);
    let told: serde_json::Value = serde_json::from_slice(&world.homing(&["jobs", "--json", "1"]).stdout).unwrap();
    assert_eq!(told[0]["memory_bytes"], 4u64 << 30);
    conf("LSF_UNIT_FOR_LIMITS=parsec\n");
    let (code, _, err) = bsub("-M 4");
    assert!(code == 255 && err.contains("LSF_UNIT_FOR_LIMITS=parsec in "), "{err}");
}
