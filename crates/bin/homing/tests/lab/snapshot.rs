//! Images over hosts: the host that has the bytes reads them, another keeps them. Needs root, rsync and GlusterFS;
//! otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, missing};
use serde_json::Value;

#[test]
fn bytes_are_read_at_home_and_only_what_changed_crosses_a_link() {
    if missing(&["rsync", "glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("snap", &["--hosts", "2", "--disk", "400M", "--gluster", "replica=2"]);
    let make = |words: &str| {
        let text = lab.ok("n1", &format!("{EXE} snapshot {words} --json"));
        serde_json::from_str::<Value>(&text).unwrap()["made"].clone()
    };
    lab.ok("n2", "mkdir -m 755 /scratch/bank");
    lab.ok("n1", "mkdir -p /scratch/src; cd /scratch/src; head -c 20000000 /dev/urandom >big; echo small >small");
    let words = "n1:/scratch/src --to n2:/scratch/bank --vault src";
    let first = make(words);
    let sent = |made: &Value| made["network"].as_u64().unwrap();
    assert!(sent(&first) > 20_000_000, "{first}");
    lab.ok("n1", "cd /scratch/src; echo changed | dd of=big bs=1 seek=7000000 conv=notrunc status=none; sleep 1.1");
    let second = make(words);
    assert_eq!(second["read"], 20_000_000, "{second}");
    assert!(sent(&second) < 200_000, "only what has changed crosses the link: {second}");

    // Restores to the source over the link. No existing file is replaced.
    lab.ok("n1", "cd /scratch/src; rm small; echo mine >big");
    let (status, out, err) =
        lab.told("n1", &format!("{EXE} snapshot restore src --to n2:/scratch/bank --into n1:/scratch/src"));
    assert_eq!(status, Some(1), "{out}{err}");
    assert_eq!(lab.ok("n1", "cd /scratch/src; cat small big"), "small\nmine\n");

    // The bank's host has bricks of this volume: no byte crosses a link.
    lab.ok("n1", "mkdir -p /data/home; cd /data/home; for i in $(seq 20); do echo $i >f$i; done; ln f1 link");
    let beside = make("/data/home --to n2:/scratch/bank --vault home");
    assert!(beside["network"].is_null(), "{beside}");
    let image = beside["image"].as_str().unwrap();
    let same = format!("diff -r /data/home /scratch/bank/home/{image}/tree && echo same");
    assert_eq!(lab.ok("n2", &same), "same\n");
    assert!(lab.ok("n1", &format!("{EXE} snapshot verify home --to n2:/scratch/bank")).contains("all identical"));
}

/// Replaces an rsync of a host by this script, for calls that another host starts over ssh.
fn far_rsync(lab: &Lab, host: &str, script: &str) {
    let text =
        format!("#!/bin/bash\ncase \" $* \" in *' --server '*) ;; *) exec /usr/bin/rsync \"$@\";; esac\n{script}\n");
    lab.ok(host, &format!("cat >/usr/local/bin/rsync <<'END'\n{text}END\nchmod 755 /usr/local/bin/rsync"));
}

#[test]
fn a_volume_is_read_by_each_of_its_hosts_and_one_that_is_lost_costs_a_note() {
    if missing(&["rsync", "glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("split", &["--hosts", "4", "--disk", "400M", "--gluster", "2x2"]);
    let fill = "mkdir -p /data/home/d; cd /data/home; umask 027
                for i in $(seq 60); do head -c 40000 /dev/urandom >d/f$i; echo $i >$i.o; done
                echo odd >$'new\nline'; ln d/f1 link; ln -s d/f2 soft; : >empty; truncate -s 3M holes; touch -d '2020-01-01' d";
    lab.ok("n1", fill);
    lab.ok("n4", "mkdir -m 755 /scratch/bank");
    let words = "/data/home --to n4:/scratch/bank --vault home --exclude '*.o'";
    let make = format!("{EXE} snapshot {words} --split always --json");
    let same = |image: &Value| {
        let tree = format!("/scratch/bank/home/{}/tree", image.as_str().unwrap());
        let compare = format!("rsync -aHAXnci --numeric-ids --delete --exclude '*.o' /data/home/ {tree}/");
        let found = lab.ok("n4", &compare);
        // Names the side that is wrong: the image, or the sight of one host.
        let sums = |host: &str, tree: &str| lab.ok(host, &format!("cd {tree}/d; stat -c '%n %y' f*; md5sum f*"));
        let host_line = "-- the next host, and at last the image\n";
        let sides = || ["n1", "n2", "n3", "n4"].map(|host| sums(host, "/data/home")).join(host_line);
        assert!(found.is_empty(), "{found}{}{host_line}{}", sides(), sums("n4", &tree));
        assert_eq!(
            lab.ok("n4", &format!("stat -c %h {tree}/link; ls -A {tree}/..")),
            "2\nexclude\nexcluded\nmanifest\nrsync_error\nsummary\ntree\n"
        );
    };

    // n3 and n4 have the same files: those that the bank's host has itself cross no network.
    let (status, out, err) = lab.told("n1", &make);
    assert_eq!(status, Some(0), "{out}{err}");
    let made = serde_json::from_str::<Value>(&out).unwrap()["made"].clone();
    let parts = made["parts"].as_array().unwrap();
    let hosts: Vec<&str> = parts.iter().map(|part| part["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["n1", "n2", "n4"], "{made}");
    let sum = |key: &str| parts.iter().map(|part| part[key].as_u64().unwrap_or(0)).sum::<u64>();
    assert!(parts.iter().all(|part| part["bytes"].as_u64().unwrap() > 0 && part["why"].is_null()), "{made}");
    assert_eq!(parts[2]["network"], Value::Null, "{made}");
    assert_eq!(made["network"], sum("network"), "{made}");
    // All bytes are counted as read, except the second name of a file.
    assert_eq!(made["read"].as_u64().unwrap(), sum("bytes") + 40_000, "{made}");
    assert_eq!(made["excluded_count"], 60, "{made}");
    same(&made["image"]);

    // The rsync of n1 is cut off in the middle. homing reports it, also in its table, and the image is whole all the
    // same.
    lab.ok(
        "n1",
        "sleep 1.1; for i in $(seq 60); do head -c 40000 /dev/urandom >/data/home/d/f$i; done; rm /data/home/soft",
    );
    far_rsync(
        &lab,
        "n1",
        "exec 3<&0; dd iflag=count_bytes count=100000 bs=64k status=none < <(exec /usr/bin/rsync \"$@\" <&3 2>/dev/null); kill -9 $!",
    );
    let (status, out, err) = lab.told("n1", &make.replace(" --json", ""));
    assert_eq!(status, Some(0), "{out}{err}");
    assert!(err.contains("n1 did not read its whole part: rsync ended with"), "{out}{err}");
    assert!(out.contains("n1 (0 B, part incomplete), n2 (") && out.contains("the rest on n4"), "{out}{err}");
    let image = lab.ok("n4", "ls /scratch/bank/home | grep ^2 | tail -1").trim().to_string();
    same(&Value::from(image));

    // The caller is killed: no rsync stays, here or there.
    far_rsync(&lab, "n1", "touch /scratch/begun; exec cat >/dev/null");
    lab.ok("n2", "sleep 1.1; touch /data/home/d/f*");
    let killed = format!(
        "{make} & for i in $(seq 1200); do [ -e /scratch/begun ] && break; sleep 0.1; done; kill -9 $!; ls /scratch/begun
         for i in $(seq 1200); do pgrep -x cat || pgrep -x rsync || exit 0; sleep 0.1; done; exit 1"
    );
    lab.ok("n1", &killed);
    for host in ["n2", "n4"] {
        lab.ok(host, "for i in $(seq 1200); do pgrep -x rsync || exit 0; sleep 0.1; done; exit 1");
        lab.ok(host, "for i in $(seq 1200); do ls -d /tmp/homing-share.* || exit 0; sleep 0.1; done; exit 1");
    }
    lab.ok("n1", "rm /usr/local/bin/rsync");
    let made = serde_json::from_str::<Value>(&lab.ok("n1", &make)).unwrap()["made"].clone();
    assert_eq!(made["resumed"], true, "{made}");
    same(&made["image"]);

    // One host reads a small volume.
    let made = serde_json::from_str::<Value>(&lab.ok("n1", &make.replace(" --split always", ""))).unwrap();
    assert_eq!(made["made"]["parts"], serde_json::json!([]), "{made}");
}

/// Writes vaults by name and schedule into a cluster file in the host.
fn sections(lab: &Lab, rows: &[(&str, &str)]) {
    let section = |(name, schedule): &(&str, &str)| {
        format!(
            "[snapshot.\"{name}\"]\nsource = \"/scratch/src\"\nbank = \"localhost:/scratch/bank\"\nschedule = \"{schedule}\"\n"
        )
    };
    let text: String = rows.iter().map(section).collect();
    lab.ok("n1", &format!("cat >/root/c.toml <<'END'\n{text}END"));
}

/// Lists systemd's folder and its timers.
const UNITS: &str = "cd /etc/systemd/system; find . -type f -o -type l | sort | xargs -d '\\n' ls -l --time-style=+; \
                     systemctl list-timers --all --no-legend 'homing*' | sed 's/.* homing/homing/'";

#[test]
fn timers_of_systemd_make_images_follow_the_cluster_file_and_go_back() {
    if missing(&["rsync", "systemd-nspawn"]) {
        return;
    }
    let lab = Lab::up("timer", &["--hosts", "1", "--disk", "200M"]);
    lab.ok("n1", "mkdir -m 755 /scratch/bank; mkdir /scratch/src; echo x >/scratch/src/x");
    let schedule = |words: &str| {
        let yes = if words == "--dry-run" { "" } else { "--yes" };
        lab.told("n1", &format!("{EXE} snapshot schedule --cluster /root/c.toml {words} {yes}"))
    };
    let done = |words: &str| {
        let (status, out, err) = schedule(words);
        assert_eq!(status, Some(0), "{words}: {out}{err}");
        out
    };
    let calendars = || lab.ok("n1", "grep -h OnCal /etc/systemd/system/homing-snapshot-*.timer");
    let before = lab.ok("n1", UNITS);
    sections(&lab, &[("a", "02:00"), ("b %c", "02:00"), ("w", "Sun 23:30")]);
    let plan = done("--dry-run");
    assert!(
        plan.contains("OnCalendar=*-*-* 02:30:00") && plan.ends_with("nothing was changed (--dry-run)\n"),
        "{plan}"
    );
    assert_eq!(lab.ok("n1", UNITS), before, "nothing was done");
    done("");
    assert_eq!(calendars(), "OnCalendar=*-*-* 02:00:00\nOnCalendar=*-*-* 02:30:00\nOnCalendar=Sun *-*-* 23:30:00\n");
    assert!(!done("").contains("written"), "it is so already");

    // The timer itself starts the service for a missed time.
    let unit = r"homing-snapshot-b\x20\x25c";
    let missed =
        format!("systemctl stop '{unit}.timer'; touch -d '3 days ago' '/var/lib/systemd/timers/stamp-{unit}.timer'");
    let made = format!(
        "{missed}; systemctl start '{unit}.timer'
         for i in $(seq 1200); do ls '/scratch/bank/b %c'/2*/summary 2>/dev/null && break; sleep 0.2; done
         cat '/scratch/bank/b %c'/2*/tree/x || journalctl --no-pager -u '{unit}.service'"
    );
    assert!(lab.ok("n1", &made).ends_with("\nx\n"));

    // One section has another time, and one is gone.
    sections(&lab, &[("a", "03:10"), ("b %c", "02:00")]);
    done("");
    assert_eq!(calendars(), "OnCalendar=*-*-* 03:10:00\nOnCalendar=*-*-* 02:00:00\n");
    let next = lab.ok("n1", "systemctl is-enabled homing-snapshot-a.timer; systemctl show -P NextElapseUSecRealtime homing-snapshot-a.timer");
    assert!(next.starts_with("enabled\n") && next.contains(" 03:10:00 "), "{next}");
    lab.ok("n1", "! systemctl is-active homing-snapshot-w.timer");

    // A file that a user has edited stays and is named; all else goes back.
    lab.ok(
        "n1",
        "cd /etc/systemd/system; cp -p homing-snapshot-a.service /root; echo '# mine' >>homing-snapshot-a.service",
    );
    let (status, out, err) = schedule("--undo");
    assert!(status == Some(254) && err.contains("homing-snapshot-a.service: it was changed since"), "{out}{err}");
    lab.ok("n1", "cp -p /root/homing-snapshot-a.service /etc/systemd/system/");
    done("--undo");
    assert_eq!(lab.ok("n1", UNITS), before);

    // Root does not run commands from a file that others can write. A file without a schedule is refused.
    lab.ok("n1", "mkdir -m 777 /root/loose; cp /root/c.toml /root/loose; chmod 755 /root");
    let (status, _, err) = lab.told("n1", &format!("{EXE} snapshot schedule --yes --cluster /root/loose/c.toml"));
    assert!(status == Some(255) && err.contains("other users could replace"), "{err}");
    lab.ok("n1", "echo >/root/c.toml");
    let (status, _, err) = schedule("");
    assert!(status == Some(255) && err.contains("schedule = \"02:00\""), "{err}");
}

#[test]
fn an_image_is_mounted_so_that_nobody_changes_it() {
    if missing(&["rsync", "sshfs", "systemd-nspawn"]) {
        return;
    }
    let lab = Lab::up("past", &["--hosts", "2", "--disk", "200M"]);
    lab.ok("n2", "mkdir -m 755 /scratch/bank /scratch/src; echo old >/scratch/src/x");
    let make = format!("{EXE} snapshot n2:/scratch/src --to n2:/scratch/bank --vault s --json");
    let first: Value = serde_json::from_str(&lab.ok("n1", &make)).unwrap();
    let first = first["made"]["image"].as_str().unwrap().to_string();
    lab.ok("n2", "sleep 1.1; echo newer >/scratch/src/x");
    lab.ok("n1", &make);
    lab.ok("n1", "mkdir /mnt/old /mnt/new; mkdir -p /mnt/full/x");
    lab.ok("n2", "mkdir /mnt/old");
    let mount = |words: &str| format!("{EXE} snapshot mount s --to n2:/scratch/bank {words}");

    // Mounts from another host, and on the bank's own.
    let said = lab.ok("n1", &mount(&format!("/mnt/old --at {first}")));
    assert!(said.contains(&first) && said.contains("fusermount -u /mnt/old"), "{said}");
    lab.ok("n1", &mount("/mnt/new"));
    assert_eq!(lab.ok("n1", "cat /mnt/old/x /mnt/new/x"), "old\nnewer\n");
    lab.ok("n2", &mount(&format!("/mnt/old --at {first}")));
    assert_eq!(lab.ok("n2", "cat /mnt/old/x"), "old\n");
    for host in ["n1", "n2"] {
        let (status, _, err) = lab.told(host, "echo mine >/mnt/old/x");
        assert!(status != Some(0) && err.contains("Read-only file system"), "{host}: {err}");
    }
    lab.ok("n1", "fusermount -u /mnt/old; fusermount -u /mnt/new");
    lab.ok("n2", "umount /mnt/old");

    // A folder whose files would be hidden, a folder that is missing, and a time without an image.
    for (words, status, why) in [
        ("/mnt/full", 255, "is not empty"),
        ("/mnt/none", 255, "No such file"),
        ("/mnt/old --at 2001-01-01", 254, "no good image"),
    ] {
        let (ended, _, err) = lab.told("n1", &mount(words));
        assert!(ended == Some(status) && err.contains(why), "{words}: {ended:?} {err}");
    }
    let below = format!("{EXE} snapshot mount s:d /mnt/old --to n2:/scratch/bank");
    assert_eq!(lab.told("n1", &below).0, Some(255));
    // Without root on the bank's host homing prints the folder itself.
    let (status, _, err) = lab.told("n2", &format!("setpriv --reuid 65534 --clear-groups {}", mount("/mnt/old")));
    assert!(status == Some(254) && err.contains("/scratch/bank/s/"), "{status:?} {err}");
}
