//! The same verbs on a real Slurm, in a lab.

use crate::engine::SUITE;
use crate::support::{EXE, Lab, missing};
use std::path::Path;
use std::process::Output;

/// Returns a script for the folder of the volume, with `homing` in the path.
fn there(script: &str) -> String {
    let bin = Path::new(EXE).parent().unwrap();
    format!("export PATH={}:$PATH SHELL=/bin/sh; cd /data; {script}", bin.display())
}

fn on(lab: &Lab, script: &str) -> Output {
    lab.on("n1", &there(script))
}

fn ok(lab: &Lab, script: &str) -> String {
    lab.ok("n1", &there(script))
}

fn jobs(lab: &Lab, ids: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(&ok(lab, &format!("homing jobs --json {ids}"))).unwrap()
}

/// Returns the host that holds a file.
fn holder(lab: &Lab, file: &str) -> String {
    let layout: serde_json::Value = serde_json::from_str(&ok(lab, &format!("homing where --json {file}"))).unwrap();
    layout["files"][0]["extents"][0]["replicas"][0]["host"].as_str().unwrap().to_string()
}

#[test]
fn a_job_is_a_slurm_job() {
    if missing(&["slurmctld", "munged", "glusterd"]) {
        return;
    }
    let lab = Lab::up("queue", &["--hosts", "2", "--slurm", "--gluster", "2x1"]);
    ok(&lab, "for i in $(seq 4); do seq 100000 > f$i; done");
    next_to_its_data(&lab);
    ends_are_told_as_they_were(&lab);
    a_soft_wish_gives_way_and_a_hard_one_waits(&lab);
    others_jobs_are_others(&lab);
    slurms_own_commands_and_homings_see_the_same(&lab);
    slurm_keeps_the_contract(&lab);
}

fn next_to_its_data(lab: &Lab) {
    let soft = ok(lab, "for i in 1 2; do homing sub -q \"wc -l < f$i\"; done");
    let hard = ok(lab, "for i in 3 4; do homing sub -q --place only \"wc -l < f$i\"; done; homing wait");
    for (at, id) in soft.split_whitespace().chain(hard.split_whitespace()).enumerate() {
        let job = &jobs(lab, id)[0];
        assert_eq!(
            (&job["state"], &job["host"]),
            (&"DONE".into(), &holder(lab, &format!("f{}", at + 1)).into()),
            "{job}"
        );
    }
    assert_eq!(ok(lab, &format!("homing peek {}", hard.split_whitespace().last().unwrap())), "100000\n");
}

fn ends_are_told_as_they_were(lab: &Lab) {
    assert_eq!(on(lab, "homing sub -K 'exit 7'").status.code(), Some(7));
    let ids = ok(
        lab,
        "a=$(homing sub -q 'exit 3'); b=$(homing sub -q --after $a 'echo never'); \
                  c=$(homing sub -q --after \"exit($a)\" 'echo after'); d=$(homing sub -q -J 'x[1-4]%2' 'echo $HOMING_JOB_INDEX'); \
                  homing wait $a $b $c $d 2>/dev/null; echo $a $b $c $d",
    );
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let of = |id: &str| {
        let job = jobs(lab, id)[0].clone();
        (job["state"].as_str().unwrap().to_string(), job["exit"].as_i64().unwrap())
    };
    assert_eq!(of(ids[0]), ("EXIT".into(), 3));
    assert_eq!(of(ids[1]), ("EXIT".into(), 130));
    assert_eq!(of(ids[2]), ("DONE".into(), 0));
    let elements = jobs(lab, ids[3]);
    assert_eq!(elements.len(), 4);
    assert!(elements.iter().all(|e| e["state"] == "DONE"), "{elements:?}");
    assert_eq!(ok(lab, &format!("homing peek '{}[3]'", ids[3])), "3\n");
    let said = on(
        lab,
        "id=$(homing sub -q 'sleep 300'); until homing jobs $id | grep -q RUN; do sleep 0.2; done; \
                   homing kill $id; homing wait $id",
    );
    assert_eq!(said.status.code(), Some(143));
}

fn a_soft_wish_gives_way_and_a_hard_one_waits(lab: &Lab) {
    let full = holder(lab, "f1");
    let ids = ok(
        lab,
        &format!(
            "n=$(sinfo -h -N -n {full} -o %c | head -1); filler=$(homing sub -q --host {full} -n $n 'sleep 300'); \
         until homing jobs $filler | grep -q RUN; do sleep 0.2; done; \
         soft=$(homing sub -q 'cat f1'); hard=$(homing sub -q --place only 'cat f1'); homing wait $soft; echo $filler $soft $hard"
        ),
    );
    let ids: Vec<&str> = ids.split_whitespace().collect();
    assert_ne!(jobs(lab, ids[1])[0]["host"], full.as_str());
    assert_eq!(jobs(lab, ids[2])[0]["state"], "PEND");
    ok(lab, &format!("homing kill {}; homing wait {}", ids[0], ids[2]));
    assert_eq!(jobs(lab, ids[2])[0]["host"], full.as_str());
}

fn others_jobs_are_others(lab: &Lab) {
    let id = ok(lab, "homing sub -q 'sleep 300'");
    let id = id.trim();
    let script = format!("setpriv --reuid 65534 --clear-groups homing kill {id}");
    assert_eq!(on(lab, &script).status.code(), Some(255));
    assert_ne!(jobs(lab, id)[0]["state"], "EXIT");
    ok(lab, &format!("homing kill {id}"));
}

fn slurms_own_commands_and_homings_see_the_same(lab: &Lab) {
    let id = ok(lab, "homing sub -q -J mine -n 2 --batch --tag 'echo' ::: a b");
    let id = id.trim();
    let shown = ok(lab, &format!("scontrol show job {id}"));
    assert!(shown.contains("JobName=mine") && shown.contains("NumTasks=2"), "{shown}");
    ok(lab, &format!("homing wait {id}"));
    let said = ok(lab, &format!("homing peek {id}"));
    assert!(said.contains("a\ta\n") && said.contains("b\tb\n") && said.contains("2 done, 0 failed"), "{said}");
    // homing lists and ends a job that sbatch made as any other.
    let id = ok(lab, "sbatch --parsable --wrap 'sleep 300'");
    let id = id.trim();
    assert_eq!(jobs(lab, id)[0]["name"], "wrap");
    ok(lab, &format!("homing kill {id}"));
}

/// Runs the contract suite of engines in a folder of the volume.
fn slurm_keeps_the_contract(lab: &Lab) {
    let suite = std::env::current_exe().unwrap();
    let out = ok(
        lab,
        &format!("mkdir contract; cd contract; HOMING_ENGINE=slurm {} {} 2>&1", suite.display(), SUITE.join(" ")),
    );
    assert!(out.contains("1 passed"), "{out}");
}
