//! Tests that every code is found in answers that show its fault: on the host that has it, and no other code or host.

use homing_check::{Answers, CHECKS, HostAnswers, all_codes, burn_in, findings};
use std::collections::BTreeSet;

/// The answers of a host in one part of the script: rows and their fields.
type Part<'a> = (&'a str, &'a str);

/// Returns a host with these parts, and with empty answers for all others.
fn host(name: &str, parts: &[Part], stray: &str, behind_s: f64) -> HostAnswers {
    let mut text = format!("{stray}=now\t{}\n=who\t0\n=end\twho\t0\n", 1_000_000.0 - behind_s);
    for check in CHECKS {
        for (_, rows) in parts.iter().filter(|(key, _)| *key == check.key) {
            rows.lines().for_each(|row| text += &format!("={}\t{row}\n", check.key));
        }
        text += &format!("=end\t{}\t0\n", check.key);
    }
    HostAnswers::read(name, &[(1_000_000.05, text.into_bytes())])
}

/// Returns `CODE HOSTS` of all findings.
fn found(hosts: Vec<HostAnswers>) -> Vec<String> {
    findings(CHECKS, &Answers { hosts }).iter().map(|f| format!("{} {}", f.code.name, f.hosts)).collect()
}

const MOUNTINFO: &str = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                         30 22 0:40 / /data rw,relatime - nfs4 nas:/data rw,vers=4.2,hard,addr=10.0.0.9";
const TWIN: &str = "model\tXeon\nproduct\tR640\n";

/// The code; the part; its rows on two hosts; its rows on the third.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    ("HC-NAME-01", "own_name", "n1\t10.0.0.1", "n3\t127.0.1.1"),
    ("HC-NAME-02", "resolve", "n1\t10.0.0.1\nn2\t10.0.0.2", "n1\t10.0.0.1\nn2\t10.9.9.9"),
    ("HC-NAME-03", "resolve", "n1\t10.0.0.1\nn2\t10.0.0.2", "n1\t10.0.0.1"),
    ("HC-NAME-02", "resolve", "nas\t\tserver\nnas\t10.0.0.9\tserver", "nas\t\tserver\nnas\t10.9.9.9\tserver"),
    ("HC-NAME-03", "resolve", "nas\t\tserver\nnas\t10.0.0.9\tserver", "nas\t\tserver"),
    ("HC-NAME-04", "dns", "server\t10.0.0.9\ntook\t3", "server\t10.0.0.8\ntook\t2400"),
    ("HC-NAME-04", "dns", "server\t10.0.0.9\ntook\t2400\t801", "server\t10.0.0.8\ntook\t2400\t799"),
    ("HC-CLOCK-04", "time_daemon", "daemon\tchrony\nasked\tyes", "asked\tyes"),
    ("HC-CLOCK-05", "time_daemon", "daemon\tchrony\nasked\tyes", "daemon\tchrony\ndaemon\tntpsec\nasked\tyes"),
    (
        "HC-CLOCK-06",
        "time_daemon",
        "daemon\tchrony\nsource\tC0A80001 Normal\nasked\tyes",
        "daemon\tchrony\nsource\t7F7F0101 Normal\nasked\tyes",
    ),
    ("HC-SSH-01", "homes", "dir\talice\t755\talice\t/home/alice", "dir\talice\t777\talice\t/home/alice"),
    ("HC-SSH-02", "homes", "", "dir\talice\t664\talice\t/home/alice/.ssh/authorized_keys"),
    ("HC-SSH-03", "homes", "", "key\talice\t644\text2/ext3\tnone\t/home/alice/.ssh/id_rsa\talice"),
    (
        "HC-SSH-04",
        "homes",
        "key\talice\t600\text2/ext3\tnone\t/h/.ssh/id_rsa\talice",
        "key\talice\t600\tnfs\tnone\t/h/.ssh/id_rsa\talice",
    ),
    ("HC-USER-06", "homes", "dir\talice\t755\talice\t/home/alice", "dir\talice\t755\tbob\t/home/alice"),
    ("HC-SSH-06", "host_keys", "", "n1\tssh-ed25519\t/root/.ssh/known_hosts"),
    ("HC-SSH-07", "logins", "files\t90\nsshd\t250", "files\t2004"),
    (
        "HC-SSH-08",
        "host_based",
        "user alice\nserver hostbasedauthentication yes\nserver hostbasedusesnamefrompacketonly yes\n\
         client hostbasedauthentication yes\nclient enablesshkeysign yes",
        "user alice\nserver hostbasedauthentication no\nserver hostbasedusesnamefrompacketonly yes\n\
         client hostbasedauthentication yes\nclient enablesshkeysign yes",
    ),
    ("HC-SSH-07", "logins", "files\t2004\t700\nsshd\t250", "files\t2004\t500"),
    ("HC-SSH-07", "logins", "files\t90\nsshd\t250", "files\t90\nsshd\t2010"),
    ("HC-USER-09", "written", "/data\t0\tyes\t9.5\t9.7\t9.6\t0\t61184", "/data\t0\tyes\t9.5\t9.7\t9.6\t65534\t\t"),
    ("HC-USER-10", "written", "/data\t0\tyes\t9.5\t9.7\t9.6\t0\t61184", "/data\t0\tyes\t9.5\t9.7\t9.6\t0\t65534"),
    (
        "HC-USER-10",
        "written",
        "/data\t0\tyes\t9.5\t9.7\t9.6\t65534\t61184\t",
        "/data\t0\tyes\t9.5\t9.7\t9.6\t65534\t65534\tfiles",
    ),
    ("HC-USER-01", "accounts", "user\talice\t1001\t100\t/h\t/bin/sh", "user\talice\t1002\t100\t/h\t/bin/sh"),
    ("HC-USER-02", "accounts", "group\tlab\t2001\t", "group\tlab\t2002\t"),
    ("HC-USER-03", "accounts", "user\talice\t1001\t100\t/h\t/bin/sh", ""),
    (
        "HC-USER-04",
        "accounts",
        "user\ta\t1001\t100\t/h\t/bin/sh\nuser\tb\t1002\t100\t/h\t/bin/sh",
        "user\ta\t1001\t100\t/h\t/bin/sh\nuser\tb\t1002\t100\t/h\t/bin/sh\nuser\tc\t1002\t100\t/h\t/bin/sh",
    ),
    ("HC-USER-05", "accounts", "group\tlab\t2001\talice,bob", "group\tlab\t2001\tbob"),
    ("HC-USER-07", "nologin", "", "/etc/nologin"),
    (
        "HC-MOUNT-01",
        "fstab",
        "nas:/data\t/data\tnfs4\tdefaults",
        "nas:/data\t/data\tnfs4\tdefaults\n/dev/sdb\t/scratch\txfs\tdefaults",
    ),
    (
        "HC-MOUNT-02",
        "mounted",
        MOUNTINFO,
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,emergency_ro\n30 22 0:40 / /data rw,relatime - nfs4 nas:/data rw,vers=4.2,hard,addr=10.0.0.9",
    ),
    ("HC-MOUNT-03", "mounted", MOUNTINFO, "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw"),
    (
        "HC-MOUNT-04",
        "mounted",
        MOUNTINFO,
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n30 22 0:40 / /data rw,noexec,relatime - nfs4 nas:/data rw,vers=4.2,hard,addr=10.0.0.9",
    ),
    (
        "HC-MOUNT-05",
        "mounted",
        MOUNTINFO,
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n30 22 0:40 / /data rw,relatime - nfs4 old:/data rw,vers=4.2,hard,addr=10.0.0.8",
    ),
    ("HC-MOUNT-07", "answering", "/data\t0\t", "/data\t137\t"),
    ("HC-MOUNT-08", "answering", "/data\t0\t", "/data\t1\tStale file handle"),
    ("HC-MOUNT-11", "answering", "/data\t0\t", "/data\tlate\t"),
    ("HC-MOUNT-09", "beneath", "", "/data\tresult.txt"),
    ("HC-MOUNT-10", "exports", "/srv\t/srv", "/home/shared\t/"),
    ("HC-DISK-01", "full", "4096\t1000000\t500000\t1000\t900\t/", "4096\t1000000\t20000\t1000\t900\t/"),
    ("HC-DISK-02", "full", "4096\t1000000\t500000\t1000\t900\t/", "4096\t1000000\t500000\t1000\t0\t/"),
    ("HC-DISK-03", "kernel_log", "", "[  12.3] blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ)"),
    ("HC-DISK-04", "counters", "", "/sys/block/md0/md/degraded:1"),
    ("HC-DISK-05", "counters", "", "/sys/fs/ext4/sda1/errors_count:2"),
    ("HC-DISK-06", "devices", "1777\tdirectory\t/tmp", "755\tdirectory\t/tmp"),
    ("HC-DISK-07", "devices", "666\tcharacter special file\t/dev/null", "644\tregular file\t/dev/null"),
    ("HC-DISK-08", "kernel_log", "", "[99.1] INFO: task cp:4711 blocked for more than 120 seconds."),
    ("HC-DISK-09", "smart", "/dev/sda\t64\t", "/dev/sda\t72\t"),
    ("HC-DISK-10", "smart", "/dev/sda\t0\t", "/dev/sda\t0\tCurrent_Pending_Sector=8 "),
    ("HC-DISK-12", "lvm", "", "vg0\tdata\tpartial"),
    (
        "HC-DISK-13",
        "mounted",
        MOUNTINFO,
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,nobarrier\n30 22 0:40 / /data rw,relatime - nfs4 nas:/data rw,vers=4.2,hard,addr=10.0.0.9",
    ),
    ("HC-MEM-01", "counters", "", "/sys/devices/system/edac/mc/mc0/ue_count:1"),
    ("HC-MEM-02", "counters", "", "/sys/devices/system/edac/mc/mc1/ce_count:17"),
    (
        "HC-MEM-03",
        "memory",
        "MemTotal\t64000000\nSwapTotal\t0\nSwapFree\t0",
        "MemTotal\t48000000\nSwapTotal\t0\nSwapFree\t0",
    ),
    (
        "HC-MEM-04",
        "memory",
        "MemTotal\t64000000\nSwapTotal\t8000000\nSwapFree\t7900000",
        "MemTotal\t64000000\nSwapTotal\t8000000\nSwapFree\t1000000",
    ),
    ("HC-MEM-05", "kernel_log", "", "[7.7] Out of memory: Killed process 4711 (bwa) total-vm:9kB"),
    ("HC-MEM-06", "kernel_log", "", "[7.7] mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 4"),
    ("HC-CPU-01", "processors", "present\t0-63\nonline\t0-63", "present\t0-31\nonline\t0-31"),
    ("HC-CPU-02", "processors", "present\t0-63\nonline\t0-63", "present\t0-63\nonline\t0-62"),
    ("HC-CPU-03", "processors", "governor\tperformance", "governor\tpowersave"),
    ("HC-CPU-04", "counters", "", "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count:1734"),
    ("HC-CPU-05", "processors", "clocksource\ttsc", "clocksource\thpet"),
    ("HC-NET-01", "links", "eth0\t10000\tfull\t1500\t9\t0", "eth0\t1000\tfull\t1500\t9\t0"),
    ("HC-NET-02", "links", "eth0\t1000\tfull\t1500\t9\t0", "eth0\t1000\thalf\t1500\t9\t0"),
    ("HC-NET-03", "links", "eth0\t-1\t\t9000\t9\t0", "eth0\t-1\t\t1500\t9\t0"),
    ("HC-NET-04", "links", "eth0\t1000\tfull\t1500\t900000000\t99", "eth0\t1000\tfull\t1500\t900000000\t4711"),
    ("HC-NET-05", "bond", "bond0\teth0\tup", "bond0\teth0\tdown"),
    ("HC-NET-06", "path_mtu", "n1\teth0\t9000\t9000", "n1\teth0\t9000\t1500"),
    ("HC-USER-11", "idmap", "nfs\tN\ndomain\tlab.org", "nfs\tN\ndomain\tother.org"),
    ("HC-USER-11", "idmap", "nfs\tN\ndomain\tlocaldomain", "nfs\tN\ndomain\tlab.org"),
    ("HC-NET-07", "ports", "nas\t2049\t0\t-", "nas\t2049\t137\t-"),
    ("HC-NET-07", "ports", "n3\t24007\t0\t-\nn3\t5000\t0\tbrick d", "n3\t24007\t0\t-\nn3\t5000\t1\tbrick d"),
    ("HC-NET-07", "ports", "n3\t24007\t0\t-\nn3\t5000\t0\tbrick d", "n3\t24007\t1\t-\nn3\t5000\t1\tbrick d"),
    ("HC-NET-09", "ports", "nas\t2049\t0\t-", "nas\t2049\tnone\t-"),
    ("HC-NET-11", "switch", "", "eth0\t02:00\ts1\tp1\ton\t\t1000BaseTHD - half duplex mode\tfull\t1500"),
    ("HC-NET-12", "switch", "", "eth0\t02:00\ts1\tp1\ton\t1518\t\tfull\t9000"),
    ("HC-SVC-01", "units", "", "failed\tbackup.service"),
    ("HC-SVC-02", "units", "unit\tmunge.service\tactive", "unit\tmunge.service\tinactive"),
    ("HC-SVC-03", "kernel_state", "tainted\t4096", "tainted\t4224"),
    ("HC-SVC-04", "kernel_state", "", "reboot\tyes"),
    ("HC-SVC-05", "kernel_state", "zombies\t1\t50\tsystemd", "zombies\t4711\t51\tleaky"),
    ("HC-VER-01", "versions", "kernel\t6.1.0-31", "kernel\t6.1.0-28"),
    ("HC-VER-02", "versions", "libc\tglibc 2.36", "libc\tglibc 2.31"),
    ("HC-VER-03", "versions", "system\tDebian 12", "system\tDebian 11"),
    ("HC-VER-04", "versions", "gluster\t10.3", "gluster\t9.2"),
    ("HC-VER-05", "versions", "moosefs\t3.0.117", "moosefs\t3.0.105"),
    ("HC-VER-06", "versions", "nfs\t2.6.2", "nfs\t1.3.4"),
    ("HC-VER-07", "versions", "slurm\tslurm-wlm 22.05.8", "slurm\tslurm-wlm 20.11.7"),
    (
        "HC-VER-08",
        "rsync_races",
        "rsync  version 3.4.1  protocol version 32",
        "rsync  version 3.2.7  protocol version 31",
    ),
    ("HC-SET-01", "settings", "zone\tEtc/UTC", "zone\tEurope/Berlin"),
    ("HC-SET-02", "settings", "lang\tC.UTF-8", "lang\tde_DE.UTF-8"),
    ("HC-SET-03", "settings", "files\t1024 524288", "files\t1024 4096"),
    ("HC-SET-04", "settings", "locked\tunlimited", "locked\t64"),
    ("HC-SET-05", "settings", "congestion\tcubic", "congestion\tbbr"),
    ("HC-SET-06", "settings", "huge\tmadvise", "huge\talways"),
    ("HC-SET-07", "settings", "swappiness\t10", "swappiness\t60"),
    ("HC-SET-08", "settings", "overcommit\t0", "overcommit\t2"),
    ("HC-SET-09", "settings", "backlog\t4096", "backlog\t128"),
    ("HC-SLURM-02", "same_files", "/etc/slurm/slurm.conf\t0123456789abcdef", "/etc/slurm/slurm.conf\tfedcba9876543210"),
    ("HC-SLURM-03", "same_files", "/etc/munge/munge.key\t0123456789abcdef", "/etc/munge/munge.key\tfedcba9876543210"),
    ("HC-USER-08", "same_files", "/etc/nsswitch.conf\t0123456789abcdef", "/etc/nsswitch.conf\tfedcba9876543210"),
];

#[test]
fn each_fault_is_found_where_it_is_and_nothing_else() {
    for (code, key, well, ill) in FAULTS {
        // Every host has its mounts, and all are twins.
        let others = [("mounted", MOUNTINFO), ("processors", TWIN), ("fstab", "/dev/sda1\t/\text4\tdefaults")];
        let says = |name: &str, rows: &str| {
            let rows = if *key == "processors" { format!("{TWIN}{rows}") } else { rows.to_string() };
            let rest = others.into_iter().filter(|(other, _)| other != key);
            host(name, &rest.chain([(*key, rows.as_str())]).collect::<Vec<_>>(), "", 0.0)
        };
        let all = |third: &str| found(vec![says("n1", well), says("n2", well), says("n3", third)]);
        assert_eq!(all(well), [""; 0], "{code}: a clean cluster");
        assert_eq!(all(ill), [format!("{code} n3")], "{code}");
    }
}

/// Of three hosts one is gone: one fault, whatever follows from it.
const CEPH_LOST: &str = "WRN\tOSD_DOWN\t1 osds down\neach\tOSD_DOWN\tosd.2 (root=default,host=n3) is down
WRN\tOSD_HOST_DOWN\t1 host (1 osds) down\neach\tOSD_HOST_DOWN\thost n3 (root=default) (1 osds) is down
WRN\tPG_DEGRADED\tDegraded data redundancy: 52/80 objects degraded (65.000%), 17 pgs degraded";

#[test]
fn faults_that_are_no_single_answer_are_found_too() {
    let clean = |name| host(name, &[], "", 0.0);
    let cases = [
        ("HC-NAME-05 n3", host("n3", &[("machine_id", "abc")], "", 0.0), host("n1", &[("machine_id", "abc")], "", 0.0)),
        ("HC-CLOCK-01 n3", host("n3", &[], "", 30.0), clean("n1")),
        ("HC-CLOCK-02 n3", host("n3", &[], "", -0.7), clean("n1")),
        ("HC-SSH-05 n3", host("n3", &[], "Welcome to n3!\n", 0.0), clean("n1")),
        ("HC-VOL-05 n3", clean("n3"), host("n1", &[("ceph", CEPH_LOST)], "", 0.0)),
        ("HC-VOL-06 n1", clean("n3"), host("n1", &[("ceph", "WRN\tPOOL_NO_REDUNDANCY\t1 pool(s)")], "", 0.0)),
        ("HC-VOL-05 n1", clean("n3"), host("n1", &[("ceph", "ERR\tNO_MONITOR\tno monitor answers")], "", 0.0)),
        ("HC-SLURM-01 n7", host("n3", &[("slurm_nodes", "n7\tdown*\tNot responding")], "", 0.0), clean("n1")),
    ];
    for (expected, third, first) in cases {
        assert_eq!(found(vec![first, clean("n2"), third]), [expected]);
    }
    // A host that waits longer for its disks than in the days before, HC-DISK-14.
    let hours = |day_us: u64| -> String {
        let wait_us = |back: u64| if back < 24 { day_us } else { 100 };
        (0..168)
            .map(|back| format!("{}\t{}\t1000000\t9\t9\n", 999_000 - 3600 * back, wait_us(back) * 1_000_000))
            .collect()
    };
    let slower = |day_us: u64| found(vec![clean("n1"), host("n3", &[("drift", &hours(day_us))], "", 0.0)]);
    assert_eq!((slower(150), slower(1000)), (vec![], vec!["HC-DISK-14 n3".into()]));
    // A slow host, HC-NET-10, is slow for both others, and both are for it.
    let replies = |slow: u32| {
        let to = |own: &str| -> String {
            let took = |other: &&str| if "n3" == own || **other == *"n3" { slow } else { 200 };
            ["n1", "n2", "n3"].iter().filter(|o| **o != own).map(|o| format!("{o}\t{}\n", took(o))).collect()
        };
        found(["n1", "n2", "n3"].map(|name| host(name, &[("reply", &to(name))], "", 0.0)).into())
    };
    assert_eq!((replies(900), replies(20_200)), (vec![], vec!["HC-NET-10 n3".into()]));
    let soft = "30 22 0:40 / /data rw - nfs4 nas:/data rw,soft";
    let all = ["n1", "n2"].map(|name| host(name, &[("mounted", soft)], "", 0.0));
    assert_eq!(found(all.into()), ["HC-MOUNT-06 n[1-2]"]);
    // A single client that sees a server ahead is behind itself.
    let server = |ahead: u32| format!("/data\t0\tyes\t100.5\t100.7\t{}\t0\t61184", 100 + ahead);
    let client = |name: &str, ahead| host(name, &[("mounted", MOUNTINFO), ("written", &server(ahead))], "", 0.0);
    let seen = |ahead: [u32; 3]| found(["n1", "n2", "n3"].iter().zip(ahead).map(|(n, s)| client(n, s)).collect());
    assert_eq!((seen([0, 0, 0]), seen([0, 30, 0])), (vec![], vec![]));
    assert_eq!(seen([30, 30, 30]), ["HC-CLOCK-07 n[1-3]"]);
    // A server has on its own disk the folder that its clients mount, by its name or by its address.
    let server = |mine: &str, source: &str| {
        let clients = MOUNTINFO.replace("nas:", source);
        let clients = ["n1", "n2"].map(|name| host(name, &[("mounted", &clients)], "", 0.0));
        let server =
            host("n3", &[("mounted", "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw"), ("own_name", mine)], "", 0.0);
        found(clients.into_iter().chain([server]).collect())
    };
    let own = "n3\t10.0.0.3";
    assert_eq!((server(own, "n3:"), server(own, "10.0.0.3:")), (vec![], vec![]));
    assert_eq!(server(own, "n4:"), ["HC-MOUNT-03 n3"]);
    // A server that trusts no host's root is set up correctly, until root has files or its home there.
    let refused = |hurt: &str| {
        let row = format!("/data\t0\tno\t{hurt}");
        found(["n1", "n2"].map(|name| host(name, &[("written", &row)], "", 0.0)).into())
    };
    assert_eq!(refused(""), [""; 0]);
    assert_eq!(
        (refused("home"), refused("files")),
        (vec!["HC-USER-09 n[1-2]".into()], vec!["HC-USER-09 n[1-2]".into()])
    );
    // A host without the mount has nothing to do with a server's name.
    let nas = "nas\t\tserver\nnas\t10.0.0.9\tserver";
    let mounts = |name: &str| host(name, &[("resolve", nas)], "", 0.0);
    assert_eq!(found(vec![mounts("n1"), mounts("n2"), clean("n3")]), [""; 0]);
    // Numbers on the wire: no domain counts. With Kerberos it does.
    let of = |domain: &str, security: &str| {
        let table = format!("{MOUNTINFO},sec={security}");
        let says = |name: &str, rows: &str| host(name, &[("mounted", &table), ("idmap", rows)], "", 0.0);
        let [others, third] = ["a.org", domain].map(|domain| format!("nfs\tY\ndomain\t{domain}"));
        found(vec![says("n1", &others), says("n2", &others), says("n3", &third)])
    };
    assert_eq!((of("b.org", "sys"), of("A.ORG", "krb5p")), (vec![], vec![]));
    assert_eq!(of("b.org", "krb5p"), ["HC-USER-11 n3"]);
    // A mount that hangs on all hosts is its server's fault: a new mount would hang as well.
    let hung = |third: &str| {
        let says = |name: &str, rows: &str| host(name, &[("mounted", MOUNTINFO), ("answering", rows)], "", 0.0);
        let hosts = vec![says("n1", "/data\t137\t"), says("n2", "/data\t137\t"), says("n3", third)];
        let found = findings(CHECKS, &Answers { hosts });
        found.iter().map(|f| f.command("").unwrap()).collect::<Vec<_>>()
    };
    assert!(hung("/data\t137\t")[0].starts_with("homing exec -w nas "), "{:?}", hung("/data\t137\t"));
    let of_two = hung("/data\t0\t").remove(0);
    assert!(
        of_two.starts_with("homing exec -w 'n[1-2]' 'timeout") && of_two.contains("|| { umount -fl /data; "),
        "{of_two}"
    );
    // Two hosts receive from one port; one is on another switch than before.
    let hears = |name: &str, port: &str| {
        host(name, &[("switch", &format!("eth0\t02:00\ts1\t{port}\ton\t\t\tfull\t1500"))], "", 0.0)
    };
    assert_eq!(found(vec![hears("n1", "p1"), hears("n2", "p2"), hears("n3", "p2")]), ["HC-NET-14 n[2-3]"]);
    let mut moved = Answers { hosts: vec![hears("n1", "p1"), hears("n2", "p2")] };
    moved.should_be("n1", "s1", Some("p1"), "the last homing topology");
    moved.should_be("n2", "s2", None, "the cluster file");
    let told = findings(CHECKS, &moved).iter().map(|f| format!("{} {}", f.code.name, f.hosts)).collect::<Vec<_>>();
    assert_eq!(told, ["HC-NET-13 n2"]);
    let behind = ["n1", "n2", "n3"].map(|name| host(name, &[], "", 60.0));
    assert_eq!(found(behind.into()), ["HC-CLOCK-03 n[1-3]"]);
}

/// HC-CPU-06, HC-CPU-07, HC-MEM-07, HC-DISK-11 and HC-NET-08 are found by `--deep`.
#[test]
fn a_host_that_computes_wrong_or_slowly_is_found_among_its_twins_and_by_what_it_was() {
    for (code, key, well, ill) in [
        ("HC-CPU-06", "burn_processors", "sum\taa", "sum\tbb"),
        ("HC-CPU-06", "burn_processors", "sum\taa", "sum\taa\nsum\tab"),
        ("HC-CPU-06", "burn_memory", "wrong\t0", "wrong\t1"),
        ("HC-CPU-07", "burn_processors", "rate\tprocessors\t1000", "rate\tprocessors\t700"),
        ("HC-MEM-07", "burn_memory", "rate\tmemory\t1000", "rate\tmemory\t700"),
        ("HC-DISK-11", "burn_disk", "rate\tdisk read\t1000", "rate\tdisk read\t700"),
    ] {
        let all = |third: &str| loaded(vec![burnt("n1", key, well), burnt("n2", key, well), burnt("n3", key, third)]);
        assert_eq!((all(well), all(ill)), (vec![], vec![format!("{code} n3")]));
    }
}

fn burnt(name: &str, key: &str, rows: &str) -> HostAnswers {
    let rows: String = rows.lines().map(|row| format!("={key}\t{row}\n")).collect();
    HostAnswers::read(name, &[(0.0, format!("=who\t0\n=end\twho\t0\n{rows}=end\t{key}\t0\n").into_bytes())])
}

fn loaded(hosts: Vec<HostAnswers>) -> Vec<String> {
    let found = findings(burn_in::CHECKS, &Answers { hosts });
    found.iter().map(|f| format!("{} {}", f.code.name, f.hosts)).collect()
}

/// Each host sends to the next, and the last to the first.
#[test]
fn a_slow_link_is_told_once_and_its_neighbours_are_not() {
    let ring = |rates: &[u32]| {
        let to = |at: usize| format!("n{}", (at + 1) % rates.len() + 1);
        let row = |(at, rate)| {
            burnt(&format!("n{}", at + 1), "burn_network", &format!("rate\tnetwork\t{rate}\nto\t{}", to(at)))
        };
        loaded(rates.iter().enumerate().map(row).collect())
    };
    assert_eq!(ring(&[1000, 990, 1100]), [""; 0]);
    assert_eq!(ring(&[1000, 100, 100]), ["HC-NET-08 n3"], "what it sends and what it is sent is slow");
    assert_eq!(ring(&[1000, 1000, 100]), ["HC-NET-08 n3"], "it sends slowly");
    assert_eq!(ring(&[1000, 1000, 100, 100, 1000]), ["HC-NET-08 n4"]);
    assert_eq!(ring(&[1400, 3200, 12]), ["HC-NET-08 n1", "HC-NET-08 n3"], "12 is not what its receiver makes of 1400");
    assert_eq!(ring(&[1000, 100]), [""; 0], "of two nobody knows which");
}

#[test]
fn the_best_is_kept_and_what_is_slower_is_told() {
    let rate = |rate: u32| burnt("n1", "burn_processors", &format!("rate\tprocessors\t{rate}"));
    let mut best = burn_in::PeakRates::new();
    burn_in::better(&mut best, &rate(1000), "2026-01-01");
    burn_in::better(&mut best, &rate(900), "2026-02-01");
    let mut alone = rate(700);
    burn_in::remember(&mut alone, &best);
    let found = findings(burn_in::CHECKS, &Answers { hosts: vec![alone] });
    assert_eq!(found[0].what, "processors: 700 MB/s, but 1000 MB/s on 2026-01-01");
}

#[test]
fn every_code_is_planted_here_and_has_a_name_of_its_own() {
    let text = include_str!("recorded.rs");
    let codes: Vec<&str> = all_codes().map(|code| code.name).collect();
    let of_volumes = |name: &&&str| name.starts_with("HC-VOL");
    let missing: Vec<_> = codes.iter().filter(|n| !of_volumes(n)).filter(|n| !text.contains(**n)).collect();
    assert!(missing.is_empty(), "add a row to FAULTS in this file, or a test that has the code, for {missing:?}");
    assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len());
}

/// A remedy quotes the words of a lying host as one word for the shell.
#[test]
fn what_a_host_says_never_becomes_a_command() {
    let evil = "user\talice\t5$(reboot)\t100\t/h\t/bin/sh";
    let says = |name, uid| host(name, &[("accounts", uid)], "", 0.0);
    let hosts = vec![says("n1", evil), says("n2", evil), says("n3", "user\talice\t1\t100\t/h\t/bin/sh")];
    let found = findings(CHECKS, &Answers { hosts });
    let line = &found[0].remedy.as_ref().unwrap().line;
    // No user gets a number that is no number.
    assert!(line.starts_with("getent passwd 1 '5$(reboot)' alice;") && !line.contains("usermod"), "{line}");
    assert!(found[0].command("").unwrap().starts_with("homing exec -w n3 '"));
}

/// Rows that are cut short, or have unexpected values, are no fault and do not end the check.
#[test]
fn what_a_host_leaves_out_ends_nothing() {
    let first_words: BTreeSet<&str> = FAULTS.iter().flat_map(|(.., ill)| ill.split(['\t', '\n'])).collect();
    let row = |first: &str, fields: usize, value: &str| match fields {
        0 => String::new(),
        n => {
            format!("\t{}", [first].into_iter().chain(std::iter::repeat_n(value, n - 1)).collect::<Vec<_>>().join("\t"))
        }
    };
    for value in ["", "x", "-1", "99999999999999999999"] {
        for fields in 0..8 {
            let says = |key: &str| -> String {
                first_words.iter().map(|first| format!("={key}{}\n", row(first, fields, value))).collect()
            };
            let parts = CHECKS.iter().map(|check| format!("{}=end\t{}\t0\n", says(check.key), check.key));
            let text = "=who\t0\n=end\twho\t0\n".to_string() + &parts.collect::<String>();
            let hosts = ["n1", "n2", "n3"].map(|name| HostAnswers::read(name, &[(0.0, text.clone().into_bytes())]));
            findings(CHECKS, &Answers { hosts: hosts.into() });
        }
    }
}

/// For 1000 hosts with the same fault one finding is reported.
#[test]
fn equal_findings_are_folded() {
    let hosts = (1..=1000).map(|n| host(&format!("n{n}"), &[("nologin", "/etc/nologin")], "", 0.0)).collect();
    assert_eq!(found(hosts), ["HC-USER-07 n[1-1000]"]);
}

/// For an ordinary user a remedy that needs root begins with sudo.
#[test]
fn a_user_is_told_to_use_sudo() {
    let text = b"=who\t1000\n=end\twho\t0\n=nologin\t/etc/nologin\n=end\tnologin\t0\n".to_vec();
    let found = findings(CHECKS, &Answers { hosts: vec![HostAnswers::read("n1", &[(0.0, text)])] });
    assert_eq!(found[0].command("-l bob ").unwrap(), "homing exec -l bob -w n1 'sudo sh -c '\\''rm /etc/nologin'\\'''");
}

#[test]
fn manual() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/manual/check-codes.md");
    let page = homing_check::pages::manual();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let told = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(told == page, "docs/manual/check-codes.md is not the checks' codes; `make pages` writes it");
}

/// The mode of a file is changed by its owner alone. A line that others would run in vain, or root in a folder of
/// another user, is no remedy.
#[test]
fn who_has_to_change_the_mode_of_a_file_is_named() {
    let key = |owner: &str| format!("key\talice\t644\text2/ext3\tnone\t/home/alice/.ssh/id_rsa\t{owner}");
    let folder = |owner: &str| format!("dir\talice\t775\t{owner}\t/home/alice/.ssh");
    for (row, change, uid) in [(key("bob"), "600", "1000"), (folder("root"), "go-w", "0"), (key("root"), "600", "0")] {
        let text = format!("=who\t{uid}\n=end\twho\t0\n=homes\t{row}\n=end\thomes\t0\n");
        let found = findings(CHECKS, &Answers { hosts: vec![HostAnswers::read("n1", &[(0.0, text.into_bytes())])] });
        let (finding, remedy) = (&found[0], found[0].remedy.as_ref().unwrap());
        assert!(finding.what.contains(&format!("who must run: chmod {change} /home/alice/.ssh")), "{}", finding.what);
        assert!(!remedy.mends && remedy.line.starts_with("ls -ld "), "{}", remedy.line);
    }
    let text = format!("=who\t0\n=end\twho\t0\n=homes\t{}\n=end\thomes\t0\n", key("alice"));
    let found = findings(CHECKS, &Answers { hosts: vec![HostAnswers::read("n1", &[(0.0, text.into_bytes())])] });
    let remedy = found[0].remedy.as_ref().unwrap();
    assert!(remedy.mends && remedy.line.starts_with("su alice -s /bin/sh -c 'chmod 600 "), "{}", remedy.line);
}
