//! A real OpenSSH server for tests, without a port: sshd in inetd mode as the
//! client's proxy command, with keys of its own. Crates include it by its
//! path, with `skipped.rs` at their root.

use crate::skipped::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The server, which is also the client's proxy command: `SSHD -i -f sshd_config`.
const SSHD: &str = "/usr/sbin/sshd";

/// Its folder: `sshd_config`, `known` for the client's known hosts, and the
/// private keys `host`, `user` (who may log in) and `stranger` (who may not).
pub struct Sshd(pub tempfile::TempDir);

impl Sshd {
    /// Starts a server. Returns `None`, with a note, where there is no sshd.
    pub fn new() -> Option<Sshd> {
        // sshd requires its empty folder, which the service would have made.
        let _ = fs::create_dir("/run/sshd");
        if !Path::new(SSHD).exists() || !Path::new("/run/sshd").exists() {
            skipped(&format!("{SSHD} or /run/sshd is missing; install openssh-server"));
            return None;
        }
        let server = Sshd(tempfile::tempdir().unwrap());
        ["host", "user", "stranger"].iter().for_each(|name| server.key(name));
        let at = server.0.path().display();
        fs::copy(server.path("user.pub"), server.path("authorized")).unwrap();
        let public = fs::read_to_string(server.path("host.pub")).unwrap();
        fs::write(server.path("known"), format!("* {public}")).unwrap();
        // SHLVL keeps bash from reading the user's start-up files. Their output would mix with the command's.
        let config = format!(
            "HostKey {at}/host\nAuthorizedKeysFile {at}/authorized\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             SetEnv XDG_CACHE_HOME={at}/cache SHLVL=1\n"
        );
        fs::write(server.path("sshd_config"), config).unwrap();
        Some(server)
    }

    /// Returns the path of a file in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the command that a client runs in the place of a connection.
    pub fn proxy(&self) -> String {
        format!("{SSHD} -i -f {}", self.path("sshd_config").display())
    }

    /// Writes a client's configuration: these hosts, then a key of the test. Nothing of the user's own is in it.
    pub fn client(&self, identity: &str, hosts: &str) -> PathBuf {
        let at = self.0.path().display();
        let config = format!(
            "{hosts}\nMatch all\n  IdentityFile {at}/{identity}\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
             StrictHostKeyChecking yes\n  GlobalKnownHostsFile /dev/null\n  UserKnownHostsFile {at}/known\n"
        );
        let file = self.path(&format!("{identity}_config"));
        fs::write(&file, config).unwrap();
        file
    }

    fn key(&self, name: &str) {
        let mut keygen = Command::new("ssh-keygen");
        let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(self.path(name)).output();
        assert!(made.unwrap().status.success());
    }
}
