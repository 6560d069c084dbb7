//! Compares the sums of `homing usage` over the runs of twelve users with the counters of interfaces and control
//! groups. Needs root and GlusterFS; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, homing, missing};
use serde_json::Value;

/// Users, by the last two digits of their numbers.
const USERS: std::ops::Range<u32> = 11..23;
const FILES: u32 = 6;
/// The size of a file. Interfaces also count the headers of Ethernet, IP and TCP, and the messages of GlusterFS. They
/// count those between coordinator and workers as well. With files of this size all that is hardly more than a
/// hundredth.
const BYTES: u64 = 4 << 20;
/// The allowed relative error of a sum.
const OFF: f64 = 0.03;

/// The path of the program under test on the host from which the users run it.
const PROGRAM: &str = "/usr/local/bin/homing";

/// Makes users with homes and keys.
const USER: &str = "useradd -m -u 50NN -s /bin/sh userNN; cp -r /root/.ssh /home/userNN/; \
    sed -i 's/User root/User userNN/; s#/root/#/home/userNN/#' /home/userNN/.ssh/config; chown -R userNN: /home/userNN";

/// A control group that every user's tasks may enter. The common parent of tasks and sessions must be open for that
/// too.
const GROUP: &str = "root=$(findmnt -n -o TARGET -t cgroup2); mkdir $root/tasks; ln -s $root/tasks /run/tasks; \
    chmod 666 $root/cgroup.procs $root/tasks/cgroup.procs";

/// Reads a file once, and computes for a while.
const TASK: &str =
    "echo $$ >/run/tasks/cgroup.procs; cat {} >/dev/null; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";

/// Returns the runs of one user, from a host that runs no task.
fn runs_of(user: u32) -> String {
    let task = TASK.replace('$', "\\$");
    format!("su - user{user} -c \"{PROGRAM} run -q -j1 --hosts n[3-4] '{task}' ::: /data/user{user}/f*\"")
}

fn for_all(each: impl Fn(u32) -> String) -> String {
    USERS.map(|user| format!("{} & all=\"$all $!\"\n", each(user))).collect::<String>()
        + "for one in $all; do wait $one || exit 1; done"
}

/// Returns the bytes that the hosts of the runs received over their links, and the processor time of the group there,
/// in microseconds.
fn counted(lab: &Lab) -> (u64, u64) {
    let status = homing(&["lab", "status", "--name", &lab.name, "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let hosts = status["hosts"].as_array().unwrap().iter();
    let ours = hosts.filter(|host| host["name"] == "n3" || host["name"] == "n4");
    let received = ours.map(|host| host["rx_bytes"].as_u64().unwrap()).sum();
    let used = |host| lab.ok(host, "sed -n 's/^usage_usec //p' /run/tasks/cpu.stat").trim().parse::<u64>().unwrap();
    (received, used("n3") + used("n4"))
}

fn is_near(sum: u64, counted: u64) -> bool {
    (sum as f64 - counted as f64).abs() <= OFF * counted as f64
}

#[test]
fn the_sums_of_twelve_users_are_what_interfaces_and_control_groups_counted() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("usage", &["--hosts", "4", "--gluster", "4x1"]);
    let users: Vec<String> = USERS.map(|user| USER.replace("NN", &user.to_string())).collect();
    ["n2", "n3", "n4"].iter().for_each(|host| drop(lab.ok(host, &users.join("\n"))));
    ["n3", "n4"].iter().for_each(|host| drop(lab.ok(host, GROUP)));
    // The host that writes files has them in its cache. This one runs no task.
    let make = |user| {
        format!(
            "{{ mkdir /data/user{user}; for i in $(seq {FILES}); do head -c {BYTES} /dev/urandom >/data/user{user}/f$i; done; }}"
        )
    };
    lab.ok("n1", &for_all(make));
    // The program is carried there before the counters are read. Most of it is for debuggers, and twelve copies at
    // once are much for a busy machine. So it is stripped first.
    lab.ok("n2", &format!("strip -o {PROGRAM} {EXE}"));
    let carry = |user| format!("su - user{user} -c '{PROGRAM} hosts --hosts n[3-4]' || exit");
    lab.ok("n2", &USERS.map(carry).collect::<Vec<_>>().join("\n"));

    let before = counted(&lab);
    lab.ok("n2", &for_all(runs_of));
    let after = counted(&lab);
    let (received, used_us) = (after.0 - before.0, after.1 - before.1);
    let told = lab.ok("n2", &format!("{EXE} usage --by user --json /home/user*/.local/state/homing/runs"));
    let usage: Value = serde_json::from_str(&told).unwrap();
    let of = |key: &str| usage["all"][key].as_u64().unwrap();
    assert_eq!(usage["rows"].as_array().unwrap().len(), USERS.len(), "{usage:#}");
    assert_eq!(of("attempts"), USERS.len() as u64 * u64::from(FILES), "{usage:#}");
    assert_eq!(of("local_bytes") + of("remote_bytes"), of("attempts") * BYTES, "{usage:#}");
    assert!(of("local_bytes") > 0, "some lies where it is read: {usage:#}");
    let [remote, cpu_us] = ["remote_bytes", "cpu_us"].map(of);
    eprintln!("fetched {remote}, received {received}; used {cpu_us} us, counted {used_us} us");
    assert!(is_near(remote, received), "fetched {remote}, and interfaces received {received}");
    assert!(is_near(cpu_us, used_us), "used {cpu_us} us, and the groups {used_us} us");
}
