//! Accounts and qualities of service, by a Slurm with accounting (slurmdbd on MariaDB), which refuses unknown users.

use crate::support::{EXE, Lab, err, missing};

/// A database and slurmdbd on n1. They have one account and one quality of service, of which root is a member. From
/// then on slurmctld requires both.
const BOOKS: &str = r#"
set -eu
timeout 300 mariadb-install-db --no-defaults --user=root --datadir=/scratch/books \
  --auth-root-authentication-method=socket --skip-test-db >/dev/null 2>&1
mkdir -p /run/mysqld
systemd-run -q --unit=books mariadbd --no-defaults --user=root --datadir=/scratch/books \
  --socket=/run/mysqld/mysqld.sock --skip-networking --innodb-buffer-pool-size=32M
patiently() { for i in $(seq 1200); do timeout 10 "$@" >/dev/null 2>&1 && return; sleep 0.2; done; echo "never: $*" >&2; exit 1; }
patiently mariadb --no-defaults -S /run/mysqld/mysqld.sock -e \
  'create user if not exists slurm@localhost; grant all on *.* to slurm@localhost'
printf '%s\n' AuthType=auth/munge DbdHost=n1 SlurmUser=slurm LogFile=/var/log/slurm/slurmdbd.log \
  StorageType=accounting_storage/mysql StorageHost=localhost StorageUser=slurm StorageLoc=books > /etc/slurm/slurmdbd.conf
chown slurm /etc/slurm/slurmdbd.conf; chmod 600 /etc/slurm/slurmdbd.conf
systemctl start slurmdbd
printf '%s\n' AccountingStorageType=accounting_storage/slurmdbd AccountingStorageHost=n1 \
  AccountingStorageEnforce=associations,limits,qos >> /etc/slurm/slurm.conf
patiently sacctmgr -n show cluster
sacctmgr -i add cluster "$(sed -n s/^ClusterName=//p /etc/slurm/slurm.conf)" >/dev/null
sacctmgr -i add qos long >/dev/null
sacctmgr -i add account physics >/dev/null
sacctmgr -i add user root account=physics >/dev/null
sacctmgr -i modify user root set qos=normal,long defaultqos=normal >/dev/null
systemctl restart slurmctld slurmd
idle() { sinfo -h -o %T | grep -qx idle; }
for i in $(seq 1200); do idle && break; sleep 0.2; done; idle
"#;

/// Prints slurmctld's record of the job in which a task runs.
const SELF: &str = "scontrol show job --oneliner $SLURM_JOB_ID #";

/// A licence that slurmdbd counts for several clusters: two in all, and half of them for this cluster.
const LICENCE: &str = r#"
set -eu
sacctmgr -i add resource name=nas server=books count=2 type=license percentallowed=50 \
  cluster="$(sed -n s/^ClusterName=//p /etc/slurm/slurm.conf)" >/dev/null
for i in $(seq 1200); do scontrol show licenses --oneliner | grep -q '=nas@books Total=1 ' && break; sleep 0.2; done
mkdir -p /etc/homing /data/jobs/there
printf '[server.n1]\nlicense = "nas@books"\n' >/etc/homing/cluster.toml
cd /data/jobs
echo >file
"#;

/// Notes its presence and the number of others, and waits until the test has seen that others wait.
const THERE: &str = "cat file >/dev/null; touch there/$$; until [ -e seen ]; do sleep 0.1; done; sleep 1; \
     ls there | wc -l; rm there/$$";

#[test]
fn accounts_and_qualities_of_service_are_passed_on_and_refusals_are_told() {
    if missing(&["slurmctld", "munged", "slurmdbd", "mariadbd", "glusterd"]) {
        return;
    }
    let lab = Lab::up("books", &["--hosts", "1", "--slurm", "--gluster", "1x1"]);
    lab.ok("n1", BOOKS);
    what_is_passed_on(&lab);
    what_is_refused(&lab);
    what_it_took_is_read_from_the_books(&lab);
    licences_of_several_clusters(&lab);
}

fn what_is_passed_on(lab: &Lab) {
    lab.ok("n1", "scontrol create reservation reservationname=mine starttime=now duration=60 users=root nodes=ALL");
    let said = lab.ok(
        "n1",
        &format!(
            "{EXE} run -q -j1 --partition urgent --account physics --qos long --time 7 --reservation mine \
             --mem-per-task 30M --slurm-arg=--comment=by-hand '{SELF}' ::: 1"
        ),
    );
    let words = [
        "Partition=urgent",
        "Account=physics",
        "QOS=long",
        "TimeLimit=00:07:00",
        "Reservation=mine",
        "MinMemoryNode=30M",
        "CPUs/Task=1",
        "Comment=by-hand",
    ];
    words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
    lab.ok("n1", "scontrol delete reservationname=mine");
    let sub =
        format!("{EXE} sub -K -o sub.out --account physics --qos long --slurm-arg=--nice=3 '{SELF}'; cat sub.out");
    let said = lab.ok("n1", &sub);
    ["Account=physics", "QOS=long", "Nice=3"].iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
}

/// Checks that a refusal has the option, Slurm's answer, and a remedy; and nothing is left behind.
fn what_is_refused(lab: &Lab) {
    for (verb, asked, answer) in [
        ("run -q", "--account=chemistry", "Invalid account"),
        ("run -q", "--qos=fast", "Invalid qos"),
        ("sub", "--account=chemistry", "Invalid account"),
        ("sub", "--qos=fast", "Invalid qos"),
    ] {
        let words = if verb == "sub" { "true" } else { "true ::: 1" };
        let output = lab.on("n1", &format!("{EXE} {verb} {asked} {words}"));
        let said = err(&output);
        assert_eq!(output.status.code(), Some(254), "{said}");
        [asked, answer, "sacctmgr show associations"].iter().for_each(|part| assert!(said.contains(part), "{said}"));
    }
    assert_eq!(lab.ok("n1", "squeue -h"), "");
}

/// Checks a processor time that slurmctld never knew: homing reads it from the accounting.
fn what_it_took_is_read_from_the_books(lab: &Lab) {
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let jobs = format!(
        "cd /data/jobs; {EXE} lsf install lsf >/dev/null; PATH=$PWD/lsf:$PATH SHELL=/bin/sh; bacct_of() {{ bacct -J $1 | tr -s ' '; }}; \
         bsub -K -J burn '{burn}' >/dev/null 2>&1; bsub -K -J burn '{burn}; exit 3' >/dev/null 2>&1; \
         for i in $(seq 1200); do bacct_of burn | grep -q 'exited jobs: 1' && break; sleep 0.2; done; \
         bacct_of burn; {EXE} usage --jobs --json --by command"
    );
    let said = lab.ok("n1", &format!("mkdir -p /data/jobs; {jobs}"));
    let (account, usage) = said.split_at(said.find("\n{").expect("both"));
    let usage: serde_json::Value = serde_json::from_str(usage).unwrap();
    let row = usage["rows"].as_array().unwrap().iter().find(|row| row["name"] == "burn").expect("a row");
    let of = |key: &str| row[key].as_u64().unwrap();
    assert_eq!((of("attempts"), of("failed")), (2, 1), "{usage}");
    let word = |name: &str| account.split(name).nth(1).and_then(|rest| rest.split_whitespace().next());
    for (name, key, each) in [
        ("Total CPU time consumed:", "cpu_us", 1.0),
        ("Total wait time in queues:", "queued_us", 1.0),
        ("Average turnaround time:", "turnaround_us", 2.0),
    ] {
        assert_eq!(word(name), Some(format!("{:.1}", of(key) as f64 / each / 1e6).as_str()), "{name} {account}");
    }
    assert!(of("cpu_us") > 0, "{usage}");
}

/// Checks that only one job of a file server runs at a time, though the host has room for more.
fn licences_of_several_clusters(lab: &Lab) {
    lab.ok("n1", LICENCE);
    let subs = format!("cd /data/jobs; for i in 1 2 3; do {EXE} sub -o out.$i '{THERE}'; done");
    lab.ok("n1", &subs);
    let why = format!("{EXE} jobs --why | grep 'nas@books serves 1 of 1'");
    lab.ok("n1", &format!("for i in $(seq 1200); do {why} && exit; sleep 0.1; done; exit 1"));
    lab.ok("n1", "touch /data/jobs/seen");
    super::nothing_is_left(lab);
    let seen = lab.ok("n1", "cat /data/jobs/out.*");
    assert_eq!(seen.split_whitespace().collect::<Vec<_>>(), ["1"; 3], "{seen}");
}
