//! A kernel NFS server that is no host of a run: one limit for all its users. Needs the packages of `tests/packages
//! nfs`; otherwise prints a note and is skipped.

use crate::guests::{Program, best_kind, serving};
use crate::support::{Lab, err};

/// Records the highest number of files that are open at the server at once, until the file `stop` exists. It gives no
/// delegations, with which clients would open files without a request.
const COUNT: &str = "echo 0 >/proc/sys/fs/leases-enable; rm -f stop most; most=0; \
    while [ ! -e stop ]; do \
    now=$(cat /proc/fs/nfsd/clients/*/states 2>/dev/null | grep -c 'type: open, access: r-.*filename: \"in/f'); \
    [ $now -gt $most ] && most=$now; done; echo $most >most";

/// The read of a task. It closes its file a little before its end, since a client reports that to the server later.
const READS: &str = "exec 3<{}; sleep 0.2; cat <&3 >/dev/null; exec 3<&-; sleep 0.1; date +%s.%N";

/// Raises a server n1 that is no host of any run.
fn appliance(name: &str) -> Option<(Program, Lab)> {
    let (program, lab) = serving(name, best_kind(), "4", &[])?;
    lab.ok("n2", "mkdir -m 1777 /data/in; cd /data/in; for i in $(seq 60); do echo $i >f$i; done");
    Some((program, lab))
}

/// All users of the server share its limit: two runs of two users on two machines. A run that is killed gives back
/// its leases.
#[test]
#[ignore = "two minutes of emulated guests: SLOW=1 make test-lab ONLY=nfs_leases"]
fn a_server_that_is_no_host_has_one_limit_for_all() {
    let Some((program, lab)) = appliance("nfsone") else { return };
    two_users_on_two_machines(&lab, program.0.to_str().unwrap());
}

/// The same with one run on three hosts, with jobs, and with obstacles in the folder of leases.
#[test]
#[ignore = "ten minutes of emulated guests: SLOW=1 make test-lab ONLY=nfs_leases"]
fn a_server_that_is_no_host_at_length() {
    let Some((program, lab)) = appliance("nfsmore") else { return };
    let exe = program.0.to_str().unwrap();
    for limit in [2, 6] {
        let most = most_at_the_server(&lab, || {
            lab.ok(
                "n2",
                &format!(
                    "cd /data/in && HOMING_RUNS=/root/runs {exe} run --hosts 'n[2-4]' -j4 --io {limit} '{READS}' ::: f*"
                ),
            );
        });
        assert!(most >= 1 && most <= limit, "--io {limit}: {most}");
    }
    jobs_beside_a_run(&lab, exe);
    what_is_in_the_way_is_said(&lab, exe);
}

fn most_at_the_server(lab: &Lab, during: impl FnOnce()) -> u32 {
    lab.ok("n1", &format!("cd /root; ({COUNT}) >/dev/null 2>&1 &"));
    during();
    lab.ok("n1", "cd /root; : >stop; until [ -s most ]; do sleep 0.1; done; cat most").trim().parse().unwrap()
}

/// Returns the line of a user's run on that user's own machine.
fn run_of(exe: &str, uid: u32, host: &str, words: &str) -> String {
    format!(
        "cd /data/in && setpriv --reuid={uid} --regid={uid} --clear-groups \
         env HOMING_RUNS=/tmp/runs{uid} HOME=/tmp {exe} run --hosts {host} -j6 {words}"
    )
}

fn two_users_on_two_machines(lab: &Lab, exe: &str) {
    let users = [(4711, "n2"), (4712, "n3")];
    let mut said = Vec::new();
    let most = most_at_the_server(lab, || {
        said = std::thread::scope(|scope| {
            let run = |(uid, host): (u32, &'static str)| {
                lab.ok(host, &run_of(exe, uid, host, &format!("--io 4 '{READS}' ::: f*")))
            };
            let all: Vec<_> = users.into_iter().map(|user| scope.spawn(move || run(user))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
    });
    assert!((1..=4).contains(&most), "{most} at once of both");
    assert!(said.iter().all(|out| out.lines().count() == 60), "{said:?}");
    lab.ok("n2", "grep -q '\"4711\",[1-4]\\],\\[\"4712\",[1-4]' /tmp/runs4711/*/journal.jsonl");
    // The first run has all leases and is killed. The tasks of the other run begin.
    let (first, second) = (
        run_of(exe, 4711, "n2", "--io 4 'sleep 600; cat' ::: f1 f2 f3 f4"),
        run_of(exe, 4712, "n3", "--io 4 'cat' ::: f*"),
    );
    let begun = "until ls /data/.homing-leases/*@n2.*; do kill -0 $pid || { cat /tmp/first; exit 1; }; sleep 0.1; done";
    lab.ok("n2", &format!("({first}) >/tmp/first 2>&1 & pid=$!; {begun}"));
    lab.ok("n2", "until pgrep -f 'sleep 600' >/dev/null; do sleep 0.1; done");
    let out = std::thread::scope(|scope| {
        let second = scope.spawn(|| lab.ok("n3", &second));
        lab.ok("n3", "until ls /data/.homing-leases/*@n3.*; do sleep 0.1; done; sleep 2");
        lab.ok("n2", "pkill -9 -U 4711 homing; true");
        second.join().unwrap()
    });
    assert_eq!(out.lines().count(), 60);
}

/// Jobs of a queue run on the server itself, and a run of another user reads from it over the network. Each notes its
/// presence in a folder of the volume.
fn jobs_beside_a_run(lab: &Lab, exe: &str) {
    const THERE: &str = "touch there/$$; sleep 0.4; ls there | wc -l; sleep 0.1; rm there/$$";
    let cluster = "hosts = 'n[1-2]'\n[host.n1]\nslots = 6\n[server.n1]\nio = 4\n";
    lab.ok(
        "n2",
        &format!(
            "mkdir -m 1777 -p /data/there /data/jobs; {exe} lsf install /root/lsf; mkdir -p /etc/homing; \
             printf \"{cluster}\" >/etc/homing/cluster.toml; mv /data/there /data/jobs/"
        ),
    );
    let lsf = "export PATH=/root/lsf:$PATH SHELL=/bin/sh HOMING_ENGINE=local; cd /data/jobs;";
    let said = lab.ok("n2", &format!("{lsf} for i in $(seq 16); do iobsub -J io -o out.$i '{THERE}'; done"));
    assert_eq!(said.matches("to run on fileserver n1").count(), 16, "{said}");
    let run = run_of(exe, 4712, "n3", "--io 4 'cd ../jobs; cat {} >/dev/null; THERE' ::: /data/in/f1?");
    let out = lab.ok("n3", &run.replace("THERE", THERE));
    assert_eq!(out.lines().count(), 10, "{out}");
    lab.ok("n2", &format!("{lsf} bwait -w 'ended(io)'"));
    let seen = lab.ok("n2", "cd /data/jobs; cat out.* | grep -E '^[0-9]+$'");
    assert_eq!(seen.lines().count(), 16, "{seen}");
    let most = seen.lines().chain(out.lines()).filter_map(|line| line.trim().parse::<u32>().ok()).max();
    assert!(most.is_some_and(|most| (2..=4).contains(&most)), "at once at the server: {most:?}");
    lab.ok("n2", "rm -r /etc/homing");
}

/// homing reports each obstacle in one line, and the run goes on.
fn what_is_in_the_way_is_said(lab: &Lab, exe: &str) {
    let run = |said: &str| {
        let output = lab.on("n2", &run_of(exe, 4711, "n2", "--io 2 'cat' ::: f1 f2 f3"));
        let (out, err) = (String::from_utf8_lossy(&output.stdout), err(&output));
        assert!(output.status.success() && out.lines().count() == 3, "{out}{err}");
        assert_eq!(err.lines().filter(|line| line.contains(said)).count(), 1, "{said}: {err}");
    };
    lab.ok("n2", "rm -rf /data/.homing-leases; ln -s /etc /data/.homing-leases");
    run(".homing-leases is a symbolic link, and was skipped");
    lab.ok("n2", "rm -rf /data/.homing-leases*; mkdir -m 700 /data/.homing-leases");
    run(".homing-leases is open to 700 and not to all (chmod 1777), and was skipped");
    lab.ok("n2", "rm -rf /data/.homing-leases*; chmod 755 /data");
    run("applies only to this run, and is not shared with other runs: /data/.homing-leases does not exist, and /data \
         cannot be written");
    lab.ok("n2", "chmod 1777 /data; mount -o remount,ro /data");
    run("not shared with other runs: cannot make /data/.homing-leases: Read-only file system");
    lab.ok("n2", "mount -o remount,rw /data");
    lab.ok("n1", "dd if=/dev/zero of=/scratch/export/fill bs=1M >/dev/null 2>&1; for size in 4k 1; do dd if=/dev/zero of=/scratch/export/fill$size bs=$size >/dev/null 2>&1; done; true");
    let output = lab.on("n2", &run_of(exe, 4711, "n2", "--io 2 'cat' ::: f1 f2 f3"));
    assert!(output.status.success(), "a full volume: {}", err(&output));
}
