//! Workers over OpenSSH on both ends, without a port.

#[path = "../../../../tests/script.rs"]
mod script;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
#[path = "../../../../tests/sshd.rs"]
mod sshd;

use homing_launch::{Carried, LaunchError, Options, Via, open};
use script::script;
use sshd::Sshd;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

struct Server(Sshd);

impl Server {
    fn new() -> Option<Server> {
        let server = Server(Sshd::new()?);
        script(
            &server.path("worker"),
            &format!(
                "echo 'homing-wire {} {} {{\"hostname\":\"far\",\"aliases\":[],\"cores\":1,\"memory_bytes\":1,\
                 \"arch\":\"x\",\"boot_id\":\"b\",\"mounts\":[],\"nic_bytes_per_s\":null,\"now_ns\":0}}'\nexec cat",
                homing_launch::wire::VERSION,
                homing_launch::wire::release()
            ),
        );
        Some(server)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// Returns options with the test's keys and without the user's own configuration.
    fn options(&self, identity: &str) -> Options {
        let hosts = format!("Match originalhost far\n  ProxyCommand {}", self.0.proxy());
        let words = ["ssh".into(), OsString::from("-F"), self.0.client(identity, &hosts).into()];
        Options {
            exe: self.path("worker"),
            ssh: words.into(),
            connect_timeout_s: 20,
            role: "worker",
            leased: false,
            carried: Carried::Worker,
            asleep: Default::default(),
            kept: |_| None,
        }
    }

    fn refusal(&self, identity: &str) -> LaunchError {
        open("far", &via(), &self.options(identity)).err().expect("must be refused")
    }
}

fn via() -> Via {
    Via::Ssh { target: "far".into() }
}

#[test]
fn a_worker_is_copied_and_found_again_through_openssh() {
    let Some(server) = Server::new() else { return };
    for _ in 0..2 {
        let mut channel = open("far", &via(), &server.options("user")).unwrap_or_else(|e| panic!("{e}"));
        let sent: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let mut back = vec![0; sent.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| channel.to.write_all(&sent).and_then(|()| channel.to.flush()).unwrap());
            channel.from.read_exact(&mut back).unwrap();
        });
        assert_eq!(back, sent);
        drop(channel.to);
        assert_eq!(channel.from.read(&mut [0; 1]).unwrap(), 0);
        assert!(channel.keeper.end(Duration::from_secs(300)).unwrap().success());
    }
    assert_eq!(fs::read_dir(server.path("cache/homing")).unwrap().count(), 1);
}

#[test]
fn strangers_and_impostors_are_told_apart() {
    let Some(server) = Server::new() else { return };
    let refused = server.refusal("stranger");
    assert!(matches!(refused, LaunchError::KeyRefused { .. }), "{refused}");
    fs::write(server.path("known"), "").unwrap();
    let unknown = server.refusal("user");
    assert!(matches!(unknown, LaunchError::HostKeyUnknown { .. }), "{unknown}");
    let other = fs::read_to_string(server.path("stranger.pub")).unwrap();
    fs::write(server.path("known"), format!("far {other}")).unwrap();
    let changed = server.refusal("user");
    assert!(matches!(changed, LaunchError::HostKeyChanged { .. }), "{changed}");
}

#[test]
fn names_and_doors_that_are_not_there() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("worker"), "").unwrap();
    let ask = |words: &[&str], target: &str| {
        let ssh = words.iter().map(OsString::from).collect();
        let options = Options {
            exe: dir.path().join("worker"),
            ssh,
            connect_timeout_s: 5,
            role: "worker",
            leased: false,
            carried: Carried::Worker,
            asleep: Default::default(),
            kept: |_| None,
        };
        open("far", &Via::Ssh { target: target.into() }, &options).err().expect("must be refused")
    };
    // Port 1 of the loopback: no process listens there.
    let closed = ask(&["ssh", "-F", "none", "-p", "1"], "127.0.0.1");
    assert!(matches!(closed, LaunchError::Unreachable { .. }), "{closed}");
    // The name has no address of this family: no resolver beyond this machine is queried.
    let unknown = ask(&["ssh", "-F", "none", "-6"], "127.0.0.1");
    assert!(matches!(unknown, LaunchError::UnknownHost { .. }), "{unknown}");
}
