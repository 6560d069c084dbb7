//! Real kernel NFS between guests of a lab. Tests the places of files, by each kind of mount, and the server as a
//! host of tasks. Needs the packages of `tests/packages nfs`, and a kernel for the guests, which the lab fetches
//! once. Otherwise prints a note and is skipped.

use crate::guests::{Program, best_kind, serving, serving_by};
use crate::support::{EXE, Lab, err};
use homing_locate::{Locator, contract};
use homing_mounts::FileSystemKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Set in the process that runs inside a guest.
const INSIDE: &str = "HOMING_TEST_NFS";

/// The message where the server may give a task a name space of its own.
const VIEW: &str = "tasks see it under its usual name";

/// Raises two guests on `kind`, of which n1 serves. Returns `None` where that is impossible.
fn guests(name: &str, kind: &str) -> Option<(Program, Lab)> {
    serving(name, kind, "2", &["automount"])
}

#[test]
fn between_guests() {
    let Some((program, lab)) = guests("nfs", "qemu") else { return };
    let exe = program.0.to_str().unwrap();
    // A file system of its own within the export, which clients see as a sub-mount.
    lab.ok(
        "n1",
        "cd /scratch; truncate -s 16M inner.img; mkfs.ext4 -q inner.img; mkdir export/inner; modprobe loop; \
         mount -o loop inner.img export/inner; chmod 1777 export/inner",
    );
    lab.ok(
        "n2",
        "mkdir -p /v3 /bound /folder /auto /data/sub; modprobe autofs4; \
         mount -t nfs -o vers=3,nolock n1:/scratch/export /v3; \
         mount --bind /data/sub /bound; mount -t nfs -o vers=4.2 $(getent hosts n1 | cut -d' ' -f1):/sub /folder; \
         echo '/auto /etc/auto.lab' >/etc/auto.master; echo 'data -fstype=nfs4 n1:/' >/etc/auto.lab; automount; \
         until grep -q ' autofs ' /proc/self/mountinfo; do sleep 0.1; done",
    );
    lab.test("n2", INSIDE, "nfs::inside_a_guest");
    files_for_a_batch(&lab);
    batch_at_the_server(&lab, &format!("{exe} run --hosts n1"), VIEW, "/data/in");
    nothing_is_left(&lab);
    another_host_is_let_in(&lab);
}

/// Over RDMA only the options of the mount differ.
#[test]
#[ignore = "emulated guests: SLOW=1 make test-lab ONLY=nfs"]
fn over_rdma() {
    let Some((program, lab)) = serving_by("vers=4.2,rdma", "nfsrdma", "qemu", "2", &["rdma"]) else { return };
    lab.ok("n2", "grep ' /data nfs4 .*proto=rdma' /proc/mounts");
    lab.test("n2", INSIDE, "nfs::inside_a_guest_with_rdma");
    files_for_a_batch(&lab);
    batch_at_the_server(&lab, &format!("{} run --hosts n1", program.0.display()), VIEW, "/data/in");
}

#[test]
fn inside_a_guest_with_rdma() {
    if std::env::var_os(INSIDE).is_some() {
        keeps_the_contract(&Locator::new().unwrap(), "/data");
    }
}

fn keeps_the_contract(locator: &Locator, mount: &str) {
    let dir = PathBuf::from(mount).join(format!("contract{}", mount.len()));
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(locator.volume_of(&dir).unwrap().kind, FileSystemKind::Nfs);
    contract::check(locator, &dir, &BTreeSet::from(["n1".to_string()]));
}

/// Calls `homing volume` for guests of a lab, with its records and locks in the folder `state`.
fn change_volume(lab: &Lab, state: &Path, words: &str) -> Output {
    let mut command = Command::new(EXE);
    command.args(["volume", "--yes"]).args(words.split(' '));
    command.env("HOMING_SSH", format!("ssh -F /var/lib/homing/labs/{}/ssh_config", lab.name));
    command.env("HOMING_VOLUMES", state).env("XDG_RUNTIME_DIR", state).output().unwrap()
}

/// Mounts an existing volume on a new host, and unmounts it again.
fn another_host_is_let_in(lab: &Lab) {
    let state = tempfile::tempdir().unwrap();
    let volume = |words: &str| {
        let output = change_volume(lab, state.path(), words);
        assert!(output.status.success(), "volume {words}: {}", err(&output));
    };
    volume("create files --kind nfs --hosts n1:/scratch/export/files");
    lab.ok("n1", "echo seen >/files/a");
    lab.ok("n2", "test ! -e /files");
    volume("mount files --on n2");
    assert_eq!(lab.ok("n2", "cat /files/a; grep -c ' /files nfs' /proc/mounts; echo too >/files/b"), "seen\n1\n");
    volume("unmount files --on n2");
    lab.ok("n2", "! grep -q /files /proc/mounts /etc/fstab");
    lab.ok("n1", "cat /files/b");
    volume("delete files --delete-files");
}

/// Options of an export are in force for clients. A table that somebody has changed is found, and a volume whose last
/// client has left is exported to nobody.
#[test]
#[ignore = "guests with kernels of their own: SLOW=1 make test-lab ONLY=nfs"]
fn users_are_mapped_as_recorded() {
    let Some((_program, lab)) = guests("nfsmapped", best_kind()) else { return };
    let state = tempfile::tempdir().unwrap();
    let volume = |words: &str| {
        let output = change_volume(&lab, state.path(), words);
        String::from_utf8_lossy(&output.stdout).into_owned() + &err(&output)
    };
    let create = "create mapped --kind nfs --hosts n1:/scratch/export --clients n[1-2] --export-option no_root_squash";
    // The export of the root is that of all folders of its file system.
    assert!(volume(create).contains("reach /scratch/export/mapped by that export"));
    lab.ok(
        "n1",
        "cd /scratch; truncate -s 16M mapped.img; mkfs.ext4 -q mapped.img; mkdir export/mapped; modprobe loop; \
         mount -o loop mapped.img export/mapped; rmdir export/mapped/lost+found",
    );
    let made = volume(create);
    assert!(made.contains("note: no_root_squash: root of each client") && made.contains("is mounted at"), "{made}");
    lab.ok("n2", "touch /mapped/open");
    volume("set-export mapped");
    lab.ok("n2", "! touch /mapped/closed 2>/dev/null");
    lab.ok("n1", "chmod 1777 /mapped");
    volume("set-export mapped all_squash anonuid=2001 anongid=2002");
    lab.ok("n2", "touch /mapped/mapped");
    assert_eq!(lab.ok("n1", "stat -c %u:%g /mapped/open /mapped/mapped"), "0:0\n2001:2002\n");
    lab.ok("n1", "sed -i s/all_squash/no_root_squash/ /etc/exports.d/mapped.exports; exportfs -ra");
    let status = volume("status mapped");
    assert!(status.contains("and the record has rw,no_subtree_check,sec=sys,all_squash"), "{status}");
    volume("mount mapped");
    assert!(!volume("status mapped").contains("and the record has"));
    volume("unmount mapped --on n2");
    lab.ok("n1", "! exportfs -s | grep mapped");
    volume("delete mapped --delete-files");
    lab.ok("n1", "umount /scratch/export/mapped && rmdir /scratch/export/mapped");
}

/// The same by other users and other ways to submit.
#[test]
#[ignore = "six minutes of emulated guests: SLOW=1 make test-lab ONLY=nfs"]
fn between_guests_at_length() {
    let kind = best_kind();
    let Some((program, lab)) = guests("nfslong", kind) else { return };
    let exe = program.0.to_str().unwrap();
    lab.ok("n2", "mkdir /v3; mount -t nfs -o vers=3,nolock n1:/scratch/export /v3");
    connections_that_help_are_kept(&lab);
    the_server_takes_part(&lab, exe);
    iobsub_runs_at_the_server(&lab, exe);
}

/// A dd that waits while a mount has one connection.
const WAITS: &str = "printf '#!/bin/sh\ngrep -q \"/run/homing-tune.*nconnect=[48]\" /proc/self/mountinfo || sleep 9\n\
    exec /usr/bin/dd \"$@\"\n' > /usr/local/bin/dd; chmod 755 /usr/local/bin/dd";

/// Checks that further connections are kept for later mounts of each kind, until that is undone.
fn connections_that_help_are_kept(lab: &Lab) {
    lab.ok("n2", WAITS);
    let tune = |words: &[&str]| {
        let all = ["tune", "net", "--yes", "--lab", &lab.name, "-w", "n[1-2]", "--json"];
        let output = Command::new(EXE).args(all).args(words).output().unwrap();
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), err(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = tune(&["--only", "nconnect", "--seconds", "0.1"]);
    assert!(told.contains("\"fate\":\"kept\""), "{told}");
    let next = "mkdir /next; mount -t nfs4 -o vers=4.1 n1:/ /next; grep -c ' /next .*nconnect=[48]' /proc/self/mountinfo; \
                umount /next; rmdir /next; rm /usr/local/bin/dd";
    assert_eq!(lab.ok("n2", next), "1\n", "{told}");
    tune(&["--undo"]);
    let left = "ls -d /etc/nfsmount.conf /run/homing-tune* /data/.homing-tune* /var/lib/homing/up 2> /dev/null; true";
    assert_eq!(lab.ok("n2", left), "");
}

/// In a mounted directory `iobsub` finds its server, prints its name, and runs there, in the server's own path. The
/// mounts are below the root of version 4's name space, and by version 3.
fn iobsub_runs_at_the_server(lab: &Lab, exe: &str) {
    lab.ok("n2", &format!("{exe} lsf install /root/lsf; echo 'hosts = \"n[1-2]\"' >/root/cluster.toml"));
    // Each mount has a folder of its own. A mount may cache that a file is missing, and not see the file that the
    // other makes.
    for (mount, name) in [("/data", "v4"), ("/v3", "v3")] {
        let script = format!(
            "export PATH=/root/lsf:$PATH HOMING_CLUSTER=/root/cluster.toml SHELL=/bin/sh; \
             mkdir {mount}/jobs-{name} && cd {mount}/jobs-{name} && iobsub -K -o out 'hostname; pwd; echo made >here' && cat here out"
        );
        let said = lab.ok("n2", &script);
        let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("Job <")).take(4).collect();
        assert_eq!(
            lines,
            ["Submitting job to run on fileserver n1", "made", "n1", &format!("/scratch/export/jobs-{name}")],
            "{mount}: {said}"
        );
    }
}

/// Tasks run on the server too, next to their bytes. The server has no /data, and the tasks see the usual names.
fn the_server_takes_part(lab: &Lab, exe: &str) {
    // A user with the same number and key on both hosts.
    for host in ["n1", "n2"] {
        lab.ok(
            host,
            "useradd -m -u 4711 tester && cp -r /root/.ssh /home/tester/ && \
             sed -i 's/User root/User tester/; s#/root/#/home/tester/#' /home/tester/.ssh/config && \
             chown -R tester: /home/tester",
        );
    }
    files_for_a_batch(lab);
    let user = "setpriv --reuid=4711 --regid=4711 --clear-groups env HOME=/home/tester USER=tester";
    let words = "tasks get its path in their words";
    batch_at_the_server(lab, &format!("{exe} run --hosts 'n[1-2]'"), VIEW, "/data/in");
    batch_at_the_server(lab, &format!("{user} {exe} run --hosts n1"), VIEW, "/data/in");
    lab.ok("n1", "sysctl -q user.max_user_namespaces=0");
    batch_at_the_server(lab, &format!("{user} {exe} run --hosts n1"), words, "/scratch/export/in");
    nothing_is_left(lab);
}

fn files_for_a_batch(lab: &Lab) {
    lab.ok(
        "n2",
        "mkdir -m 1777 /data/in && cd /data/in && for i in 1 2 3 4; do head -c 300000 /dev/urandom >\"f $i\"; done",
    );
}

fn nothing_is_left(lab: &Lab) {
    lab.ok("n1", "test ! -e /data && ! ls -A /scratch/export /scratch/export/in | grep nonce");
}

/// Runs one batch from n2. n1 shows its working directory as `there`.
fn batch_at_the_server(lab: &Lab, run: &str, told: &str, there: &str) {
    // The emulated server may join late, so no task of n2 ends before one has begun there.
    lab.ok("n1", "rm -f /tmp/begun");
    let task = "echo $HOMING_HOST $PWD {}; sum {} >/data/in/{#}.sum; cat /data/in/{#}.sum >/dev/null; \
                if [ $HOMING_HOST = n1 ]; then : >/tmp/begun; else until ssh n1 test -e /tmp/begun; do sleep 1; done; fi";
    let run = format!("cd /data/in && {run} -k --on ssh -j1 '{task}' ::: /data/in/f*");
    let output = lab.on("n2", &run);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), err(&output));
    assert!(output.status.success(), "{out}{err}");
    assert!(err.contains("n1: it serves /data from its own /scratch/export;") && err.contains(told), "{err}");
    let at_home = out.lines().filter(|l| l.starts_with(&format!("n1 {there} {there}/f "))).count();
    assert!(out.lines().count() == 4 && at_home >= 1, "at the server, in {there}: {out}{err}");
    assert_eq!(lab.ok("n2", "cat /data/in/*.sum | wc -l; rm /data/in/*.sum").trim(), "4");
}

/// Tests the locator on each kind of mount.
#[test]
fn inside_a_guest() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let locator = Locator::new().unwrap();
    ["/data", "/v3", "/auto/data"].iter().for_each(|mount| keeps_the_contract(&locator, mount));
    std::fs::write("/data/sub/f", "seen").unwrap();
    // On version 4 the server's path begins at its pseudo-root, which is /scratch/export here.
    on_server(&locator, "/data/sub/f", "n1:/", "/sub/f");
    on_server(&locator, "/v3/sub/f", "n1:/scratch/export", "/scratch/export/sub/f");
    on_server(&locator, "/auto/data/sub/f", "n1:/", "/sub/f");
    on_server(&locator, "/bound/f", "n1:/sub", "/sub/f");
    on_server(&locator, "/data/inner", "n1:/inner", "/inner");
    std::fs::write("/data/inner/g", "deeper").unwrap();
    on_server(&locator, "/data/inner/g", "n1:/inner", "/inner/g");
    let by_address = locator.locate(Path::new("/folder/f"));
    assert!(by_address.volume.starts_with("nfs:") && by_address.reason.is_none(), "{by_address:?}");
}

fn on_server(locator: &Locator, path: &str, source: &str, there: &str) {
    let path = Path::new(path);
    let volume = locator.volume_of(path).unwrap();
    assert_eq!(volume.mount.source, source.into(), "{}", path.display());
    if path.is_file() {
        let layout = locator.locate(path);
        assert_eq!(layout.reason, None, "{layout:?}");
        assert_eq!(layout.server_path, Some(there.into()), "{layout:?}");
    }
}
