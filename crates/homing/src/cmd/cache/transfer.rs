//! Files from the host that fetches to this machine, and from here to the others.

use crate::failure::Failure;
use homing_exec::{Command, Input, Outcome, Spool, What, last_lines};
use homing_setup::cache::{self, PackageFile};
use homing_steps::SshExecutor;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};

fn words<'w>(executor: &SshExecutor, argv: &[&'w str]) -> Vec<&'w str> {
    let sudo: &[&str] = if executor.sudo { &["sudo", "-n"] } else { &[] };
    sudo.iter().chain(argv).copied().collect()
}

fn tar(folder: &Path, words: &[&str], names: impl Iterator<Item = String>) -> std::process::Command {
    let mut tar = std::process::Command::new("tar");
    tar.arg("-C").arg(folder).args(words).args(names);
    tar
}

/// Into a folder of this machine.
pub fn fetch(executor: &SshExecutor, host: &str, files: &[PackageFile], folder: &Path) -> Result<(), String> {
    let script =
        Spool::of(cache::fetch(files).as_bytes()).map_err(|e| format!("no temporary file for its script: {e}"))?;
    let command = Command::argv(words(executor, &["sh", "-s"])).input(Input::Spool(script));
    let mut out = tar(folder, &["--no-same-owner", "--no-same-permissions", "-xf", "-"], std::iter::empty())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("starting tar: {e}"))?;
    let came = receive(executor, host, &command, &mut out);
    let unpacked = out.wait().map_err(|e| format!("waiting for tar: {e}"))?;
    came?;
    if !unpacked.success() {
        return Err("what it sent is no archive, or does not fit in here".into());
    }
    let lacks = |file: &&PackageFile| !folder.join(&file.name).symlink_metadata().is_ok_and(|meta| meta.is_file());
    files.iter().find(lacks).map_or(Ok(()), |file| Err(format!("{} did not come", file.name)))
}

/// Standard output of the host to the program here.
fn receive(executor: &SshExecutor, host: &str, command: &Command, to: &mut Child) -> Result<(), String> {
    let mut to = to.stdin.take();
    let mut said = Vec::new();
    for event in executor.remote.stream(&[host], command) {
        match event.what {
            What::Begun => {}
            What::Stdout(bytes) => {
                let written = to.as_mut().map_or(Ok(()), |to| to.write_all(&bytes));
                written.map_err(|e| format!("unpacking what it sends: {e}"))?;
            }
            What::Stderr(bytes) => said.extend(bytes.into_iter().take(64 << 10)),
            What::Done(Outcome::Exited(0), _) => {}
            What::Done(outcome, _) => {
                return Err(format!("{} ({outcome})", last_lines(&String::from_utf8_lossy(&said))));
            }
        }
    }
    Ok(())
}

/// What became of the hosts.
type Came = Vec<(String, Result<(), String>)>;

/// Sends the files to hosts that want the same, and installs.
pub fn install(
    executor: &SshExecutor,
    hosts: &[&String],
    files: &BTreeSet<PackageFile>,
    folder: &Path,
    packages: &[String],
) -> Result<Came, Failure> {
    let names = files.iter().map(|file| format!("./{}", file.name));
    let mut archive = tar(folder, &["-cf", "-"], names)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| Failure::system(format!("starting tar: {e}")))?;
    let Some(bytes) = archive.stdout.take() else { return Err(Failure::system("tar has no output")) };
    let spool =
        Spool::from_reader(bytes).map_err(|e| Failure::system(format!("no temporary file for packages: {e}")))?;
    let script = cache::came(packages);
    let command = Command::argv(words(executor, &["sh", "-c", &script])).input(Input::Spool(spool));
    let results = executor.remote.run(hosts, &command);
    let read = |result: homing_exec::HostResult| {
        let said = last_lines(&String::from_utf8_lossy(&result.stderr));
        let went = match &result.outcome {
            Outcome::Exited(0) => Ok(()),
            outcome if said.is_empty() => Err(outcome.to_string()),
            outcome => Err(format!("{said} ({outcome})")),
        };
        (result.host, went)
    };
    let came = results.map(read).collect();
    archive.wait().map_err(|e| Failure::system(format!("waiting for tar: {e}")))?;
    Ok(came)
}
