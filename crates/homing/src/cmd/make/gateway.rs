//! `homing make --gateway HOST`: from a machine that is no member of the
//! cluster. The same program goes to the member and is started there, in the
//! folder of the same name, with the same arguments.

use super::words;
use crate::failure::Failure;
use homing_launch::{Options, Via};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::Command;
use std::time::Duration;

/// Runs it there; the exit status is make's.
pub fn run(host: &str) -> Result<i32, Failure> {
    let options = Options::default();
    let via = Via::Ssh { target: host.into() };
    // A worker's start leaves the program there.
    let channel = homing_launch::open(host, &via, &options).map_err(Failure::system)?;
    drop(channel.to);
    channel.keeper.end(Duration::from_secs(2));
    let cwd = std::env::current_dir().map_err(|e| Failure::system(format!("the current folder is not there: {e}")))?;
    let program = std::fs::read(&options.exe).map_err(|e| Failure::system(format!("own program: {e}")))?;
    let hash: String = Sha256::digest(&program).iter().map(|b| format!("{b:02x}")).collect();
    let rest = words::without_gateway(std::env::args_os().skip(2).collect());
    let quoted = rest.iter().map(|w| quote(&w.to_string_lossy())).collect::<Vec<_>>().join(" ");
    let script = format!(
        "cd {} && for d in \"${{XDG_CACHE_HOME:-$HOME/.cache}}/homing\" \"${{TMPDIR:-/tmp}}/homing-$(id -u)\"; do \
         f=$d/worker-{hash}; [ -x \"$f\" ] && exec \"$f\" make {quoted}; done; exit 254",
        quote(&cwd.to_string_lossy())
    );
    let mut command = ssh(&options.ssh);
    command.arg(if std::io::stdin().is_terminal() { "-t" } else { "-T" }).args(["--", host]);
    command.arg(format!("exec /bin/sh -c {}", quote(&script)));
    let status = command.status().map_err(|e| Failure::system(format!("cannot start ssh: {e}")))?;
    Ok(status.code().unwrap_or(254))
}

fn ssh(words: &[OsString]) -> Command {
    let mut command = Command::new(words.first().cloned().unwrap_or_else(|| "ssh".into()));
    command.args(words.iter().skip(1));
    command
}

/// For any POSIX shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
