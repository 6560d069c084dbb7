//! One limit of a file server for all users' jobs on Slurm, by its licences.

use crate::support::{EXE, Lab};

/// Each job notes its presence in a folder of the volume, and how many jobs are there. None ends before `there.seen`
/// exists, so that a slow machine reaches the limit too.
const THERE: &str = "cat {} >/dev/null; me=there/$(hostname).$$; touch $me; \
     until [ -e there.seen ]; do sleep 0.1; done; sleep 0.5; ls there | wc -l; sleep 0.1; rm $me";

/// Two users on two nodes submit by several commands. No more jobs run at the server than it has licences.
pub fn one_limit_of_a_file_server(lab: &Lab) {
    lab.ok("n1", "echo Licenses=nas:2 >>/etc/slurm/slurm.conf; scontrol reconfigure");
    let told =
        lab.ok("n1", &format!("cd /data; mkdir -m 1777 -p jobs/there; {EXE} where f* | awk '$2 ~ /n1/ {{print $3}}'"));
    let files: Vec<String> = told.lines().map(|name| format!("/data/{}", name.rsplit('/').next().unwrap())).collect();
    assert!(!files.is_empty(), "half of them lie on n1");
    for host in ["n1", "n3"] {
        lab.ok(
            host,
            "until scontrol show licenses | grep -q Total=2; do sleep 0.2; done; mkdir -p /etc/homing; \
             printf '[server.n1]\nlicense = \"nas\"\n' >/etc/homing/cluster.toml",
        );
    }
    lab.ok("n1", &format!("{EXE} lsf install /data/lsf"));
    let job = |n: usize| THERE.replace("{}", &files[n % files.len()]);
    let subs: String = (0..4).map(|n| format!("{EXE} sub -o out.%J '{}'; ", job(n))).collect();
    let bsubs: String = (0..4).map(|n| format!("bsub -o out.%J '{}'; ", job(n))).collect();
    let as_user = |uid: u32, script: &str| {
        format!(
            "cd /data/jobs; export PATH=/data/lsf:$PATH HOME=/tmp SHELL=/bin/sh; \
             setpriv --reuid={uid} --regid={uid} --clear-groups sh -c {}",
            quoted(script)
        )
    };
    lab.ok("n1", "chmod 1777 /data/jobs");
    lab.ok("n1", &as_user(0, &subs));
    lab.ok("n3", &as_user(65534, &bsubs));
    let why = lab.ok(
        "n1",
        &format!(
            "for i in $(seq 1200); do {EXE} jobs --why 2>&1 | tee /tmp/why | grep 'nas serves 2 of 2' && exit 0; \
             sleep 0.1; done; cat /tmp/why; squeue; exit 1"
        ),
    );
    println!("{}", why.trim());
    let rows = lab.ok("n1", &format!("{EXE} hosts --json"));
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    let row = &rows["servers"][0];
    assert_eq!((&row["server"], &row["limit"]), (&"n1, Slurm".into(), &2.into()), "{rows}");
    lab.ok("n1", "touch /data/jobs/there.seen");
    super::nothing_is_left(lab);
    let seen = lab.ok("n1", "cd /data/jobs; cat out.* | grep -xE ' *[0-9]+'");
    let counts: Vec<u32> = seen.lines().filter_map(|line| line.trim().parse().ok()).collect();
    assert_eq!((counts.len(), counts.iter().max()), (8, Some(&2)), "{seen}");
    what_slurm_does_not_count_is_said(lab, &files[0]);
    lab.ok("n1", "rm -r /etc/homing");
    lab.ok("n3", "rm -r /etc/homing");
}

fn what_slurm_does_not_count_is_said(lab: &Lab, file: &str) {
    let sub = |settings: &str| {
        let script = format!(
            "printf '{settings}' >/etc/homing/cluster.toml; cd /data/jobs; {EXE} sub -K -o /dev/null 'cat {file}'"
        );
        lab.told("n1", &script)
    };
    let (status, _, err) = sub("[server.n1]\nio = 2\n");
    assert!(status == Some(0) && err.contains("Slurm does not limit jobs at n1"), "{status:?} {err}");
    let (status, _, err) = sub("[server.n1]\nlicense = \"nobodys\"\n");
    assert!(status != Some(0) && err.contains("Licenses=NAME:N in slurm.conf"), "{status:?} {err}");
    let (status, _, err) = sub("[server.n1]\nlicense = \"nas:2\"\n");
    assert!(status == Some(255) && err.contains("not a valid name of a Slurm licence"), "{status:?} {err}");
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}
