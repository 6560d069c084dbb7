//! Real sshfs between hosts of a lab. Tests the places of files, by each name of the server, and the server as a host
//! of tasks. Needs root and sshfs; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, missing};
use homing_locate::{Locator, contract};
use homing_mounts::FileSystemKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Set in the process that runs on a host of the lab.
const INSIDE: &str = "HOMING_TEST_SSHFS";

#[test]
fn between_hosts() {
    if missing(&["sshfs", "setpriv"]) {
        return;
    }
    let lab = Lab::up("sshfs", &["--hosts", "2"]);
    for host in ["n1", "n2"] {
        lab.ok(host, TESTER);
    }
    lab.ok("n1", "mkdir -m 1777 /scratch/x /root/rel; cd /scratch/x; mkdir -m 1777 sub in; echo seen >sub/f");
    // The names of the server: one of the user's own, one from a home, a bind mount, and the end of a tunnel.
    lab.ok(
        "n2",
        "printf 'Host nas\\n  HostName %s\\n  StrictHostKeyChecking no\\nHost tunnel\\n  HostName localhost\\n' \
         $(getent hosts n1 | cut -d' ' -f1) >>/root/.ssh/config; mkdir /data /nas /bound /tunnel /here; echo own >/scratch/f; \
         sshfs -o allow_other n1:/scratch/x /data; sshfs root@nas:rel /nas; mount --bind /data/sub /bound; \
         sshfs -o StrictHostKeyChecking=no tunnel:/scratch /tunnel; \
         sshfs -o StrictHostKeyChecking=no localhost:/scratch /here",
    );
    lab.test("n2", INSIDE, "sshfs::on_a_host");
    lab.ok("n2", "cd /data/in; for i in 1 2 3; do head -c 300000 /dev/urandom >\"f $i\"; done; cp f* /nas");
    let user = "setpriv --reuid=4711 --regid=4711 --clear-groups env HOME=/home/tester USER=tester";
    at_the_server(&lab, "/data/in", "", "/data", "/scratch/x");
    at_the_server(&lab, "/data/in", user, "/data", "/scratch/x");
    at_the_server(&lab, "/nas", "", "/nas", "/root/rel");
    // The path of the mount may lead elsewhere on the server, as where sftp has a root of its own. homing does not
    // believe it.
    lab.ok("n1", "mkdir /other; echo other >/other/f");
    let server = "unshare -m sh -c 'mount --bind /other /scratch/x; exec /usr/lib/openssh/sftp-server'";
    lab.ok("n2", &format!("mkdir /hidden; sshfs -o sftp_server=\"{server}\" n1:/scratch/x /hidden"));
    let (status, out, err) = lab.told("n2", &format!("cd /hidden && {EXE} run --on ssh --hosts n1 'cat {{}}' ::: f"));
    assert!(err.contains("/hidden is not mounted, and no local directory has its files"), "{out}{err}");
    assert!(status != Some(0) && out.is_empty(), "{out}{err}");
    lab.ok("n1", "! ls -A /scratch/x /scratch/x/in /root/rel /other | grep nonce");
}

/// A user with the same number and key on all hosts.
const TESTER: &str = "useradd -m -u 4711 tester && cp -r /root/.ssh /home/tester/ && \
    sed -i 's/User root/User tester/; s#/root/#/home/tester/#' /home/tester/.ssh/config && chown -R tester: /home/tester";

/// Runs a batch from n2 on n1, which has the volume under another name.
fn at_the_server(lab: &Lab, dir: &str, user: &str, point: &str, there: &str) {
    let run = format!("cd {dir} && {user} {EXE} run --on ssh --hosts n1 -k 'hostname; pwd; sha256sum {{}}' ::: f*");
    let (status, out, err) = lab.told("n2", &run);
    assert_eq!(status, Some(0), "{out}{err}");
    let note = format!("n1: it serves {point} from its own {there}; tasks see it under its usual name");
    assert!(err.contains(&note) && err.contains("(100 %)"), "{err}");
    let sums = lab.ok("n2", &format!("cd {dir} && for f in f*; do echo n1; pwd; sha256sum \"$f\"; done"));
    assert_eq!(out, sums);
}

#[test]
fn on_a_host() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let locator = Locator::new().unwrap();
    let address = homing_os::names::addresses("n1").remove(0);
    for (mount, server) in [("/data", "n1"), ("/nas", address.as_str())] {
        let dir = PathBuf::from(mount).join("contract");
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(locator.volume_of(&dir).unwrap().kind, FileSystemKind::Sshfs);
        contract::check(&locator, &dir, &BTreeSet::from([server.to_string()]));
    }
    let there = |path: &str| locator.locate(Path::new(path)).server_path.map(|path| path.display());
    assert_eq!(there("/data/sub/f").as_deref(), Some("/scratch/x/sub/f"));
    assert_eq!(there("/bound/f").as_deref(), Some("/scratch/x/sub/f"));
    assert_eq!(there("/nas/contract/plain"), None, "only its host knows where a home is");
    // The ends of tunnels: this host cannot know whose files these are.
    for (path, why) in
        [("/tunnel/f", "ssh reaches tunnel as localhost"), ("/here/f", "its source, localhost:/scratch, is not a host")]
    {
        let layout = locator.locate(Path::new(path));
        assert!(
            layout.extents.is_empty() && layout.reason.as_ref().is_some_and(|told| told.contains(why)),
            "{layout:?}"
        );
    }
    assert_eq!(locator.volume_of(Path::new("/here")).unwrap().kind, FileSystemKind::Other);
}
