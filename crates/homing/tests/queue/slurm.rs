//! The same verbs on a real Slurm, in a lab.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Two checkouts may be tested at once.
static LAB: LazyLock<String> = LazyLock::new(|| format!("queue{}", std::process::id()));

fn homing(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_homing")).args(args).output().unwrap()
}

/// Takes the lab down however the test ends.
struct Lab;

impl Drop for Lab {
    fn drop(&mut self) {
        homing(&["lab", "down", "--name", &LAB]);
    }
}

/// A script on n1, in the volume, with `homing` at hand.
fn on(script: &str) -> Output {
    let bin = Path::new(env!("CARGO_BIN_EXE_homing")).parent().unwrap();
    let script = format!("export PATH={}:$PATH SHELL=/bin/sh; cd /data; {script}", bin.display());
    homing(&["lab", "exec", "--name", &LAB, "n1", "--", "bash", "-c", &script])
}

fn ok(script: &str) -> String {
    let output = on(script);
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn jobs(ids: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(&ok(&format!("homing jobs --json {ids}"))).unwrap()
}

/// The host that holds a file.
fn holder(file: &str) -> String {
    let layout: serde_json::Value = serde_json::from_str(&ok(&format!("homing where --json {file}"))).unwrap();
    layout["files"][0]["extents"][0]["replicas"][0]["host"].as_str().unwrap().to_string()
}

#[test]
fn a_job_is_a_slurm_job() {
    let has = |path: &str| Path::new(path).exists();
    if !rustix::process::geteuid().is_root() || !has("/usr/sbin/slurmctld") || !has("/usr/sbin/glusterd") {
        eprintln!("SKIPPED: the lab needs root, Slurm and GlusterFS");
        return;
    }
    homing(&["lab", "down", "--name", &LAB]);
    let _lab = Lab;
    let up = homing(&["lab", "up", "--name", &LAB, "--hosts", "2", "--slurm", "--gluster", "2x1"]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    ok("for i in $(seq 4); do seq 100000 > f$i; done");
    next_to_its_data();
    ends_are_told_as_they_were();
    a_soft_wish_gives_way_and_a_hard_one_waits();
    others_jobs_are_others();
    slurms_own_commands_and_homings_see_the_same();
}

fn next_to_its_data() {
    let soft = ok("for i in 1 2; do homing sub -q \"wc -l < f$i\"; done");
    let hard = ok("for i in 3 4; do homing sub -q --place only \"wc -l < f$i\"; done; homing wait");
    for (at, id) in soft.split_whitespace().chain(hard.split_whitespace()).enumerate() {
        let job = &jobs(id)[0];
        assert_eq!((&job["state"], &job["host"]), (&"DONE".into(), &holder(&format!("f{}", at + 1)).into()), "{job}");
    }
    assert_eq!(ok(&format!("homing peek {}", hard.split_whitespace().last().unwrap())), "100000\n");
}

fn ends_are_told_as_they_were() {
    assert_eq!(on("homing sub -K 'exit 7'").status.code(), Some(7));
    let ids = ok("a=$(homing sub -q 'exit 3'); b=$(homing sub -q --after $a 'echo never'); \
                  c=$(homing sub -q --after \"exit($a)\" 'echo after'); d=$(homing sub -q -J 'x[1-4]%2' 'echo $HOMING_JOB_INDEX'); \
                  homing wait $a $b $c $d 2>/dev/null; echo $a $b $c $d");
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let of = |id: &str| {
        let job = jobs(id)[0].clone();
        (job["state"].as_str().unwrap().to_string(), job["exit"].as_i64().unwrap())
    };
    assert_eq!(of(ids[0]), ("EXIT".into(), 3));
    assert_eq!(of(ids[1]), ("EXIT".into(), 130));
    assert_eq!(of(ids[2]), ("DONE".into(), 0));
    let elements = jobs(ids[3]);
    assert_eq!(elements.len(), 4);
    assert!(elements.iter().all(|e| e["state"] == "DONE"), "{elements:?}");
    assert_eq!(ok(&format!("homing peek '{}[3]'", ids[3])), "3\n");
    let said = on("id=$(homing sub -q 'sleep 300'); until homing jobs $id | grep -q RUN; do sleep 0.2; done; \
                   homing kill $id; homing wait $id");
    assert_eq!(said.status.code(), Some(143));
}

fn a_soft_wish_gives_way_and_a_hard_one_waits() {
    let full = holder("f1");
    let ids = ok(&format!(
        "n=$(sinfo -h -N -n {full} -o %c | head -1); filler=$(homing sub -q --host {full} -n $n 'sleep 300'); \
         until homing jobs $filler | grep -q RUN; do sleep 0.2; done; \
         soft=$(homing sub -q 'cat f1'); hard=$(homing sub -q --place only 'cat f1'); homing wait $soft; echo $filler $soft $hard"
    ));
    let ids: Vec<&str> = ids.split_whitespace().collect();
    assert_ne!(jobs(ids[1])[0]["host"], full.as_str());
    assert_eq!(jobs(ids[2])[0]["state"], "PEND");
    ok(&format!("homing kill {}; homing wait {}", ids[0], ids[2]));
    assert_eq!(jobs(ids[2])[0]["host"], full.as_str());
}

fn others_jobs_are_others() {
    let id = ok("homing sub -q 'sleep 300'");
    let id = id.trim();
    let script = format!("setpriv --reuid 65534 --clear-groups homing kill {id}");
    assert_eq!(on(&script).status.code(), Some(255));
    assert_ne!(jobs(id)[0]["state"], "EXIT");
    ok(&format!("homing kill {id}"));
}

fn slurms_own_commands_and_homings_see_the_same() {
    let id = ok("homing sub -q -J mine -n 2 --batch --tag 'echo' ::: a b");
    let id = id.trim();
    let shown = ok(&format!("scontrol show job {id}"));
    assert!(shown.contains("JobName=mine") && shown.contains("NumTasks=2"), "{shown}");
    ok(&format!("homing wait {id}"));
    let said = ok(&format!("homing peek {id}"));
    assert!(said.contains("a\ta\n") && said.contains("b\tb\n") && said.contains("2 done, 0 failed"), "{said}");
    // A job of Slurm's own making is listed and ended as any.
    let id = ok("sbatch --parsable --wrap 'sleep 300'");
    let id = id.trim();
    assert_eq!(jobs(id)[0]["name"], "wrap");
    ok(&format!("homing kill {id}"));
}
