//! CephFS on real daemons in the hosts of a lab, by ceph-fuse and by the kernel's client. Compares the places of
//! objects with those that the cluster and the OSDs' stores report. Further tests: a run, an OSD that goes out, and
//! the users that may query. Needs root and `tests/packages ceph` (for the kernel's client also `nfs`); otherwise
//! prints a note and is skipped.

use crate::guests::Program;
use crate::support::{EXE, Lab, err, missing};
use crate::until::until;
use homing_locate::{Locator, contract};
use homing_mounts::FileSystemKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Set in the process that runs on a host of the lab.
const INSIDE: &str = "HOMING_TEST_CEPH";

#[test]
fn commands_run_where_their_primaries_are() {
    if missing(&["ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "osdmaptool"]) {
        return;
    }
    let lab = Lab::up("ceph", &["--hosts", "3", "--ceph", "size=2"]);
    lab.ok("n1", "cd /data && for i in $(seq 48); do head -c 2000000 /dev/urandom >\"f $i\"; done");
    lab.test("n2", INSIDE, "ceph::on_a_host");
    layouts(&lab);
    let before = told(&lab, "/data");
    assert_eq!(before, stored(&lab, "acting_primary"), "by homing, and by the monitor");
    a_run_goes_to_the_primaries(&lab, &before);
    a_container_hides_it(&lab);
    who_may_ask(&lab);
    an_osd_goes(&lab, &before);
}

/// The kernel's client, in a guest, has no key for requests to the monitor. homing must report the same places there
/// as with ceph-fuse. An OSD goes out while the client reads nothing; the places must agree before and after that. A
/// run has the guest among its hosts.
#[test]
#[ignore = "two minutes, an emulated guest: SLOW=1 make test-lab ONLY=ceph"]
fn the_kernels_client_tells_the_same() {
    if missing(&["ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "qemu-system-x86_64", "busybox"]) {
        return;
    }
    let program = Program::new("cephk");
    let lab = Lab::up("cephk", &["--hosts", "4", "--ceph", "size=2,kernel"]);
    lab.ok("n4", "grep -q ' /data ceph ' /proc/mounts && rm /etc/ceph/*.keyring");
    lab.ok("n1", "cd /data && for i in $(seq 48); do head -c 5000000 /dev/urandom >f$i; done");
    lab.test("n4", INSIDE, "ceph::on_a_host");
    let exe = program.0.to_str().unwrap();
    let both = || (told_by(&lab, "n4", exe, "/data"), told(&lab, "/data"));
    let (kernels, fuses) = both();
    assert_eq!(kernels, fuses);
    let run = format!(
        "cd /data && {exe} run --need-all-hosts --on ssh --hosts 'n[1-4]' 'hostname; cat {{}} >/dev/null' ::: f*"
    );
    let out = lab.ok("n4", &run);
    assert_eq!(out.lines().count(), 48, "{out}");
    assert!(["n1", "n2", "n3"].iter().all(|host| out.lines().any(|line| line == *host)), "{out}");
    // The client leaves an OSD with which it did not speak for 60 s (osd_idle_ttl), and receives no more news of it.
    lab.ok("n4", "sleep 75");
    lab.ok("n3", "systemctl stop ceph-osd@2");
    let without = |all: &BTreeMap<String, BTreeSet<String>>| all.values().all(|there| !there.contains("n3"));
    until("both clients know that n3 serves nothing", || {
        let (kernels, fuses) = both();
        without(&kernels) && kernels == fuses
    });
}

/// Returns the hosts of each plain file, by `homing where` for an ordinary user.
fn told(lab: &Lab, dir: &str) -> BTreeMap<String, BTreeSet<String>> {
    told_by(lab, "n1", EXE, dir)
}

/// Returns the same hosts, by the program on a host.
fn told_by(lab: &Lab, host: &str, exe: &str, dir: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = lab.ok(host, &format!("setpriv --reuid 65534 --clear-groups {exe} where --json {dir}/f*"));
    let told: Value = serde_json::from_str(&text).unwrap();
    let hosts = |file: &Value| {
        let replicas = file["extents"].as_array().unwrap().iter().flat_map(|e| e["replicas"].as_array().unwrap());
        replicas.map(|r| r["host"].as_str().unwrap().to_string()).collect()
    };
    told["files"].as_array().unwrap().iter().map(|f| (f["path"].as_str().unwrap().to_string(), hosts(f))).collect()
}

/// Returns the same by the monitor, with a query for each first object. OSD n is on host n + 1.
fn stored(lab: &Lab, key: &str) -> BTreeMap<String, BTreeSet<String>> {
    let ask = "for f in /data/f*; do printf 'osd map data %x.00000000\\n' $(stat -c %i \"$f\"); done | \
               ceph -f json 2>/dev/null | grep -o '{.*}'; ls -d /data/f*";
    let text = lab.ok("n1", ask);
    let (maps, names): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('{'));
    let host = |map: &str| {
        let map: Value = serde_json::from_str(map).unwrap();
        BTreeSet::from([format!("n{}", map[key].as_u64().unwrap() + 1)])
    };
    assert_eq!(maps.len(), names.len(), "{text}");
    names.iter().map(|name| name.to_string()).zip(maps.into_iter().map(host)).collect()
}

/// Compares stripes, a namespace, an erasure-coded pool and a snapshot with the monitor's answer for their objects.
fn layouts(lab: &Lab) {
    let set = "cd /data && mkdir striped named coded && setfattr -n ceph.dir.layout.stripe_count -v 3 striped && \
        setfattr -n ceph.dir.layout.stripe_unit -v 65536 striped && \
        setfattr -n ceph.dir.layout.pool_namespace -v sp named && \
        ceph osd erasure-code-profile set two k=2 m=1 crush-failure-domain=osd && \
        ceph osd pool create coded 8 8 erasure two && ceph osd pool set coded allow_ec_overwrites true && \
        ceph fs add_data_pool fs coded && ceph osd pool set coded min_size 2 && \
        setfattr -n ceph.dir.layout.pool -v coded coded && for d in striped named coded; do \
        head -c 9000000 /dev/urandom >$d/f; done && mkdir .snap/one";
    lab.ok("n1", set);
    let where_ = |path: &str| -> Value {
        let text = lab.ok("n1", &format!("{EXE} where --json {path}"));
        serde_json::from_str::<Value>(&text).unwrap()["files"][0].clone()
    };
    let primary = |pool: &str, path: &str, number: u32| {
        let ask = format!(
            "ceph osd map {pool} $(printf '%x.%08x' $(stat -c %i {path}) {number}) {} -f json 2>/dev/null",
            if path.contains("named") { "sp" } else { "" }
        );
        let map: Value = serde_json::from_str(&lab.ok("n1", &ask)).unwrap();
        format!("n{}", map["acting_primary"].as_u64().unwrap() + 1)
    };
    let at = |file: &Value, offset: u64| {
        let holds = |e: &&Value| {
            let first = e["offset"].as_u64().unwrap();
            (first..first + e["length"].as_u64().unwrap()).contains(&offset)
        };
        file["extents"].as_array().unwrap().iter().find(holds).unwrap()["replicas"].clone()
    };
    let striped = where_("/data/striped/f");
    for number in 0..3 {
        let host = primary("data", "/data/striped/f", number);
        for round in [0, 7] {
            let there = at(&striped, (round * 3 + u64::from(number)) * 65536 + 5);
            assert_eq!(there, serde_json::json!([{"host": host}]), "object {number}");
        }
    }
    for (path, pool, share) in [("/data/named/f", "data", None), ("/data/coded/f", "coded", Some(0.5))] {
        let file = where_(path);
        for number in 0..3 {
            let replicas = at(&file, u64::from(number) << 22);
            assert_eq!(replicas[0]["host"], primary(pool, path, number), "{path}: object {number}");
            assert_eq!((replicas.as_array().unwrap().len(), replicas[0]["share"].as_f64()), (1, share), "{path}");
        }
    }
    assert_eq!(where_("'/data/.snap/one/f 1'")["extents"], where_("'/data/f 1'")["extents"], "a snapshot");
}

fn a_run_goes_to_the_primaries(lab: &Lab, lies: &BTreeMap<String, BTreeSet<String>>) {
    lab.ok("n1", &format!("{EXE} hosts --hosts 'n[1-3]'"));
    let task = "echo $HOMING_HOST {}; cksum {} >/dev/null; sleep 0.2";
    // Takes as many files of each host: a host with fewer is soon idle, and takes tasks of the others.
    let of =
        |host: &str| lies.iter().filter(|(_, hosts)| hosts.contains(host)).map(|(path, _)| path).collect::<Vec<_>>();
    let by_host = ["n1", "n2", "n3"].map(of);
    let each = by_host.iter().map(Vec::len).min().unwrap();
    let files: Vec<String> = by_host.iter().flat_map(|own| &own[..each]).map(|path| format!("'{path}'")).collect();
    assert!(each >= 3, "{lies:?}");
    let words = files.join(" ");
    let plan = lab.ok("n1", &format!("cd /data && {EXE} plan --hosts 'n[1-3]' 'cksum {{}}' ::: {words}"));
    assert_eq!(plan.matches("\tholds 100 % of 2.0 MB\t").count(), files.len(), "{plan}");
    let output = lab.on(
        "n1",
        &format!("cd /data && {EXE} run -k --json --need-all-hosts --on ssh --hosts 'n[1-3]' -j1 '{task}' ::: {words}"),
    );
    let err = err(&output);
    assert!(output.status.success(), "{err}");
    let out = String::from_utf8(output.stdout).unwrap();
    let at_home = out.lines().filter_map(|l| l.split_once(' ')).filter(|(host, path)| lies[*path].contains(*host));
    // Round robin would give a third. Some tasks go to an idle host when their own seems slow, as on a busy machine.
    assert!(at_home.count() * 2 >= files.len(), "{lies:?}: {out}");
    let evidence: Value = serde_json::from_str(err.lines().rfind(|l| l.starts_with('{')).unwrap()).unwrap();
    assert_eq!(evidence["planned"]["attempts_without_layout"], 0, "{evidence}");
}

/// homing looks through an overlay. A container whose root is the overlay cannot see its layers, and homing prints
/// that reason.
fn a_container_hides_it(lab: &Lab) {
    let made = "mkdir -p /scratch/up /scratch/work /croot && mount -t overlay c \
        -o lowerdir=/data:/,upperdir=/scratch/up,workdir=/scratch/work /croot && mkdir /croot/old";
    lab.ok("n1", made);
    let row = |path: &str| lab.ok("n1", &format!("{EXE} where '{path}/f 1' | head -1")).replace(path, "");
    assert_eq!(row("/croot"), row("/data"));
    let inside = format!("mount -t proc proc /proc && umount -l /old && exec {EXE} where '/f 1'");
    let container = format!("cd /croot && pivot_root . old && {inside}");
    let (status, out, err) = lab.told("n1", &format!("unshare -m -p -f sh -c \"{container}\""));
    assert!(err.contains("the layers of this overlay are not visible here"), "{status:?} {out} {err}");
    assert_eq!((status, out.split_whitespace().nth(1)), (Some(254), Some("-")), "{err}");
}

/// Checks that without a key that may read the map, homing prints the reason and no host.
fn who_may_ask(lab: &Lab) {
    let user = "setpriv --reuid 65534 --clear-groups";
    lab.ok("n3", "chmod 600 /etc/ceph/ceph.client.user.keyring");
    let (_, out, err) = lab.told("n3", &format!("{user} {EXE} where '/data/f 1'"));
    assert!(err.contains("a key that may read the map (mon 'allow r')") && out.contains(" - "), "{out}{err}");
    // With `--localize-reads` the client may read each copy, so each is a place.
    lab.ok("n3", "umount /data && ceph-fuse --id user --localize-reads /data");
    let text = lab.ok("n3", &format!("{EXE} where --json '/data/f 1'"));
    let file = serde_json::from_str::<Value>(&text).unwrap()["files"][0].clone();
    assert_eq!(file["extents"][0]["replicas"].as_array().map(Vec::len), Some(2), "{file}");
}

fn an_osd_goes(lab: &Lab, before: &BTreeMap<String, BTreeSet<String>>) {
    let hosts = BTreeSet::from(["n3".to_string()]);
    assert!(before.values().any(|there| *there == hosts), "{before:?}");
    lab.ok("n3", "systemctl stop ceph-osd@2");
    until("nothing is read from n3 any more", || told(lab, "/data").values().all(|there| *there != hosts));
    assert_eq!(told(lab, "/data"), stored(lab, "acting_primary"));
    let (_, out, err) = lab.told("n1", &format!("{EXE} check --only volumes --hosts 'n[1-3]'"));
    assert!(out.contains("HC-VOL-05") && out.contains("osd.2 on n3 is down"), "{out}{err}");
    assert!(out.contains("systemctl start ceph-osd@2"), "{out}");
}

#[test]
fn on_a_host() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let locator = Locator::new().unwrap();
    let dir = PathBuf::from("/data/contract");
    std::fs::create_dir(&dir).unwrap();
    let volume = locator.volume_of(&dir).unwrap();
    assert_eq!(volume.kind, FileSystemKind::Ceph);
    assert!(volume.name.starts_with("cephfs:") && volume.name.ends_with("=/") && volume.name.len() > 40, "{volume:?}");
    let hosts = ["n1", "n2", "n3"].map(|name| homing_os::names::addresses(name).remove(0));
    contract::check(&locator, &dir, &BTreeSet::from(hosts));
}
