//! Real kernel NFS between guests of a lab: where files lie, by whatever way
//! they are mounted, and the server as a host that takes tasks. Left out by default, since guests are emulated and their
//! kernel has to be fetched once:
//!
//!     tests/packages nfs && cargo test --release -p homing --test nfs -- --ignored

mod support;

use homing_locate::{Kind, Locator, contract};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{EXE, Lab, err, missing};

/// Set in the process that runs inside a guest.
const INSIDE: &str = "HOMING_TEST_NFS";

#[test]
#[ignore = "boots emulated guests: cargo test --release -p homing --test nfs -- --ignored"]
fn between_guests() {
    if missing(&["qemu-system-x86_64", "exportfs"]) {
        return;
    }
    let lab = Lab::up("nfs", &["--hosts", "3", "--disk", "512M", "--nfs"]);
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
    let me = std::env::current_exe().unwrap();
    lab.ok("n2", &format!("{INSIDE}=1 {} --exact inside_a_guest --nocapture", me.display()));
    iobsub_runs_at_the_server(&lab);
    the_server_takes_part(&lab);
}

/// In a mounted directory `iobsub` finds its server, says so, and runs there, in
/// the server's own path: below the root of version 4's name space, and by version 3.
fn iobsub_runs_at_the_server(lab: &Lab) {
    lab.ok("n2", &format!("{EXE} lsf install /root/lsf; echo 'hosts = \"n[1-3]\"' >/root/cluster.toml"));
    for mount in ["/data", "/v3"] {
        let script = format!(
            "export PATH=/root/lsf:$PATH HOMING_CLUSTER=/root/cluster.toml SHELL=/bin/sh; \
             mkdir -p {mount}/jobs && cd {mount}/jobs && rm -f * && iobsub -K -o out 'hostname; pwd; echo made >here' && cat here out"
        );
        let said = lab.ok("n2", &script);
        let lines: Vec<&str> = said.lines().take(4).collect();
        assert_eq!(
            lines,
            ["Submitting job to run on fileserver n1", "made", "n1", "/scratch/export/jobs"],
            "{mount}: {said}"
        );
    }
}

/// Tasks run on the server too, which has no /data: next to their bytes, under the usual names.
fn the_server_takes_part(lab: &Lab) {
    // Somebody with the same number and key everywhere.
    for host in ["n1", "n2", "n3"] {
        lab.ok(
            host,
            "useradd -m -u 4711 tester && cp -r /root/.ssh /home/tester/ && \
             sed -i 's/User root/User tester/; s#/root/#/home/tester/#' /home/tester/.ssh/config && \
             chown -R tester: /home/tester",
        );
    }
    lab.ok(
        "n2",
        "mkdir -m 1777 /data/in && cd /data/in && \
         for i in 1 2 3 4 5 6 7 8 9; do head -c 300000 /dev/urandom >\"f $i\"; done",
    );
    batch_at_the_server(lab, "env", "tasks see it under the usual name", "/data/in");
    let user = "setpriv --reuid=4711 --regid=4711 --clear-groups env HOME=/home/tester USER=tester";
    batch_at_the_server(lab, user, "tasks see it under the usual name", "/data/in");
    lab.ok("n1", "sysctl -q user.max_user_namespaces=0");
    batch_at_the_server(lab, user, "tasks get its path in their words", "/scratch/export/in");
    lab.ok("n1", "test ! -e /data && ! ls -A /scratch/export /scratch/export/in | grep nonce");
}

/// One batch from n2 over all hosts; n1 shows its working directory as `there`.
fn batch_at_the_server(lab: &Lab, user: &str, told: &str, there: &str) {
    // A first run carries the program to the hosts.
    lab.ok("n2", &format!("cd /data/in && {user} {EXE} hosts --hosts 'n[1-3]'"));
    // Long enough that an emulated host joins in before all is done.
    let task = "echo $HOMING_HOST $PWD {}; sum {} >/data/in/{#}.sum; cat /data/in/{#}.sum >/dev/null; sleep 6";
    let run = format!("cd /data/in && {user} {EXE} run -k --on ssh --hosts 'n[1-3]' -j1 '{task}' ::: /data/in/f*");
    let output = lab.on("n2", &run);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), err(&output));
    assert!(output.status.success(), "{out}{err}");
    assert!(err.contains("n1: it serves /data from its own /scratch/export;") && err.contains(told), "{err}");
    let at_home = out.lines().filter(|l| l.starts_with(&format!("n1 {there} {there}/f "))).count();
    assert!(out.lines().count() == 9 && at_home >= 1, "at the server, in {there}: {out}{err}");
    assert_eq!(lab.ok("n2", "cat /data/in/*.sum | wc -l; rm /data/in/*.sum").trim(), "9");
}

/// The locator on each kind of mount.
#[test]
fn inside_a_guest() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let locator = Locator::new().unwrap();
    let n1 = BTreeSet::from(["n1".to_string()]);
    for mount in ["/data", "/v3", "/auto/data"] {
        let dir = PathBuf::from(mount).join(format!("contract{}", mount.len()));
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(locator.volume_of(&dir).unwrap().kind, Kind::Nfs);
        contract::check(&locator, &dir, &n1);
    }
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
