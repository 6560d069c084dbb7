//! `homing make --gateway HOST`: from a machine that is no member of the
//! cluster. The same program goes to the member and is started there, in the
//! folder of the same name, with the same arguments.

use super::words;
use crate::failure::Failure;
use homing_launch::{Options, Via};
use homing_model::text::quoted;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;
use std::time::Duration;

/// Runs it there; the exit status is make's.
pub fn run(host: &str) -> Result<i32, Failure> {
    let options = Options::default();
    let via = Via::Ssh { target: host.into() };
    // A worker's start leaves the program there.
    let channel = homing_launch::open(host, &via, &options).map_err(Failure::system)?;
    let arch = channel.facts.arch;
    drop(channel.to);
    channel.keeper.end(Duration::from_secs(2));
    let cwd = std::env::current_dir().map_err(|e| Failure::system(format!("the current folder is not there: {e}")))?;
    let hash =
        homing_launch::program_hash(&options.exe, &arch).map_err(|e| Failure::system(format!("own program: {e}")))?;
    let rest = words::without_gateway(std::env::args_os().skip(2).collect());
    let arguments: Vec<Vec<u8>> = rest.iter().map(|word| quoted(word.as_bytes())).collect();
    let script = [
        &b"cd "[..],
        &quoted(cwd.as_os_str().as_bytes()),
        br#" && for d in "${XDG_CACHE_HOME:-$HOME/.cache}/homing" "${TMPDIR:-/tmp}/homing-$(id -u)"; do f=$d/worker-"#,
        arch.as_bytes(),
        b"-",
        hash.as_bytes(),
        br#"; [ -x "$f" ] && exec "$f" make "#,
        &arguments.join(&b' '),
        b"; done; exit 254",
    ]
    .concat();
    let mut command = ssh(&options.ssh);
    command.arg(if std::io::stdin().is_terminal() { "-t" } else { "-T" }).args(["--", host]);
    command.arg(OsString::from_vec([b"exec /bin/sh -c ".to_vec(), quoted(&script)].concat()));
    let status = command.status().map_err(|e| Failure::system(format!("cannot start ssh: {e}")))?;
    // The member and its hosts see what was built; this machine's caches know nothing of it.
    homing_fence::refresh(&cwd);
    Ok(status.code().unwrap_or(254))
}

fn ssh(words: &[OsString]) -> Command {
    let mut command = Command::new(words.first().cloned().unwrap_or_else(|| "ssh".into()));
    command.args(words.iter().skip(1));
    command
}
