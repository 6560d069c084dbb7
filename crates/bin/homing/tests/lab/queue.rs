//! The queue of a file server, from two login nodes. Jobs run next to the disk, a few at a time, and none while
//! another user keeps the disk busy. Then come runs of two users, one of which runs on the server itself.

use crate::support::{EXE, Lab, missing};
use crate::until::until;

/// Returns the cluster file. The server has more slots than the queue gives. Free memory in MB is its load, since no
/// speed of this machine changes it. No host has as much as `BUSY`, every host has as much as `QUIET`.
fn cluster(server: &str, threshold: u32) -> String {
    format!(
        "hosts = 'n[1-3]'\n[host.{server}]\nslots = 16\n[queue.storage]\ndefault = true\nhosts = '{server}'\nslots = 8\n\
         load = {{ mem = '{threshold}' }}\n"
    )
}

const BUSY: u32 = 900_000_000;
const QUIET: u32 = 1;

/// Gives each host the cluster file, whole at once.
fn set_threshold(lab: &Lab, server: &str, threshold: u32) {
    let text = cluster(server, threshold);
    for host in ["n1", "n2", "n3"] {
        lab.ok(host, &format!("cd /etc/homing; echo \"{text}\" >new; mv new cluster.toml"));
    }
}

const SHELL: &str = "export PATH=/root/lsf:$PATH SHELL=/bin/sh HOMING_ENGINE=local; cd /data/jobs;";

#[test]
fn two_login_nodes_and_one_file_server() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("storage", &["--hosts", "3", "--gluster", "3x1"]);
    let told =
        lab.ok("n1", &format!("mkdir /data/jobs; seq 100000 > /data/jobs/data; {EXE} where --json /data/jobs/data"));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let server = told["files"][0]["extents"][0]["replicas"][0]["host"].as_str().unwrap();
    let mut ends = vec!["n1", "n2", "n3"];
    ends.retain(|host| *host != server);
    let (one, two) = (ends[0], ends[1]);
    for host in ["n1", "n2", "n3"] {
        lab.ok(host, &format!("{EXE} lsf install /root/lsf; mkdir -p /etc/homing"));
    }
    set_threshold(&lab, server, BUSY);
    let job = "iobsub \"echo + >> log; hostname >> hosts; sleep 0.5; echo - >> log\"";
    let told = lab.ok(one, &format!("{SHELL} for i in $(seq 25); do {job}; done"));
    assert!(told.contains(&format!("Submitting job to run on fileserver {server}")), "{told}");
    lab.ok(two, &format!("{SHELL} for i in $(seq 25); do {job}; done"));
    until("the host has said what is in the way", || {
        let why = |host| lab.ok(host, &format!("{SHELL} bjobs -lp"));
        [one, two].into_iter().all(|host| why(host).contains("mem is beyond the queue's threshold"))
    });
    let log = lab.ok("n1", "cat /data/jobs/log 2>/dev/null || true");
    assert_eq!(log, "", "nothing starts beside somebody else's load");
    set_threshold(&lab, server, QUIET);
    for host in [one, two] {
        lab.ok(host, &format!("{SHELL} {EXE} wait"));
    }
    let (mut now, mut most, mut all) = (0, 0, 0);
    for step in lab.ok("n1", "cat /data/jobs/log").lines() {
        now += if step == "+" { 1 } else { -1 };
        most = most.max(now);
        all += usize::from(step == "+");
    }
    assert_eq!((all, now), (50, 0), "all are done");
    assert!(most <= 8, "{most} at once");
    println!("{most} at once at most");
    assert_eq!(lab.ok("n1", "sort -u /data/jobs/hosts"), format!("{server}\n"));
    for host in [one, two] {
        let states = lab.ok(host, &format!("{SHELL} bjobs -a -q storage -noheader -o stat | sort | uniq -c"));
        assert_eq!(states.split_whitespace().collect::<Vec<_>>(), ["25", "DONE"]);
    }
    a_queue_over_all_hosts_has_one_limit(&lab);
    two_users_share_a_server_that_is_a_host_of_one(&lab, server, one);
}

/// Users, and the hosts from which they submit.
const ENDS: [(u32, &str); 4] = [(4711, "n1"), (4711, "n2"), (4712, "n2"), (4712, "n3")];

/// Three hosts each run jobs of one queue, of two users. Leases on the volume make its limits hold over all hosts.
/// Jobs of several slots do not wait for each other for ever, and a lost host gives its slots back.
fn a_queue_over_all_hosts_has_one_limit(lab: &Lab) {
    let cluster = "[host.n1]\nslots = 4\n[host.n2]\nslots = 4\n[host.n3]\nslots = 4\n[queue.wide]\ndefault = true\nslots = 4\nper_user = 3\nleases = '/data/.homing-queues'\n";
    lab.ok("n1", "mkdir -m 1777 /data/wide /data/.homing-queues; : >/data/wide/log; chmod 666 /data/wide/log");
    let job = |slots: u32| {
        format!(
            "homing sub -n {slots} 'echo + {slots} $(id -u) >>log; until [ -e seen ]; do sleep 0.1; done; sleep 1; echo - {slots} $(id -u) >>log'"
        )
    };
    for host in ["n1", "n2", "n3"] {
        lab.ok(host, &format!("echo \"{cluster}\" >/etc/homing/cluster.toml; ln -sf {EXE} /usr/local/bin/homing"));
    }
    let as_user = |uid: u32, words: &str| {
        format!(
            "cd /data/wide && HOME=/tmp HOMING_ENGINE=local setpriv --reuid={uid} --regid={uid} --clear-groups sh -c '{}'",
            words.replace('\'', "'\\''")
        )
    };
    for (uid, host) in ENDS {
        lab.ok(host, &as_user(uid, &format!("for i in 1 2 3 4; do {}; done; {}", job(1), job(3))));
    }
    until("somebody waits for slots that another host has", || {
        ENDS.iter().any(|(uid, host)| lab.ok(host, &as_user(*uid, "homing jobs --why")).contains("4 of 4 slots in use"))
    });
    lab.ok("n1", "touch /data/wide/seen");
    for (uid, host) in ENDS {
        lab.ok(host, &as_user(uid, "homing wait"));
    }
    let log = lab.ok("n1", "cat /data/wide/log");
    let (mut users, mut most, mut most_of_one, mut ended) = (std::collections::BTreeMap::<&str, i32>::new(), 0, 0, 0);
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let slots: i32 = words[1].parse().unwrap();
        let of = users.entry(words[2]).or_default();
        *of += if words[0] == "+" { slots } else { -slots };
        most_of_one = most_of_one.max(*of);
        most = most.max(users.values().sum());
        ended += i32::from(words[0] == "-");
    }
    assert_eq!(ended, 20, "{log}");
    assert!((2..=4).contains(&most) && most_of_one <= 3, "{most} slots at once, {most_of_one} of one user: {log}");
    println!("{most} slots at once on three hosts, {most_of_one} of one user");
}

/// The tasks of one user run on the server itself. They count like those that read from it over the network.
fn two_users_share_a_server_that_is_a_host_of_one(lab: &Lab, server: &str, client: &str) {
    let cat = "cat {} >/dev/null; touch there/{/}; sleep 0.3; ls there | wc -l; sleep 0.1; rm there/{/}";
    let run = |uid: u32, host: &str, tasks: &str| {
        let run = format!(
            "rm -f /etc/homing/cluster.toml; cd /data/jobs && setpriv --reuid={uid} --regid={uid} --clear-groups \
             env HOME=/tmp HOMING_RUNS=/tmp/runs{uid} {EXE} run --hosts {host} -j6 --io 4 '{cat}' ::: {tasks}"
        );
        lab.ok(host, &run)
    };
    let made =
        "chmod 1777 /data; cd /data/jobs; mkdir in; mkdir -m 1777 there; for i in $(seq 200); do echo $i >in/f$i; done";
    let told = lab.ok(client, &format!("{made}; {EXE} where --json in/*"));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let files = told["files"].as_array().unwrap().iter();
    let there = files.filter(|file| file["extents"][0]["replicas"][0]["host"] == server);
    let names: Vec<&str> = there.map(|file| file["path"].as_str().unwrap()).take(40).collect();
    assert_eq!(names.len(), 40, "a third of 200 lie on {server}");
    let said = std::thread::scope(|scope| {
        let here = scope.spawn(|| run(4711, server, &names[..20].join(" ")));
        [run(4712, client, &names[20..].join(" ")), here.join().unwrap()].concat()
    });
    assert_eq!(said.lines().count(), 40, "{said}");
    let most = said.lines().filter_map(|line| line.trim().parse::<u32>().ok()).max();
    assert!(most.is_some_and(|most| (2..=4).contains(&most)), "at once at the server: {most:?}");
    let journals = lab.ok(server, "cat /tmp/runs4711/*/journal.jsonl");
    println!("{most:?} at once");
    assert!(journals.contains("[\"4711\",2],[\"4712\",2]"), "each user has an equal part: {journals}");
}
