//! `homing snapshot mount`: shows an image as a folder that no user can change.

use super::args::MountArgs as Args;
use super::target::target;
use crate::cluster::ClusterArgs;
use homing_launch::{HostPlan, Via};
use homing_model::Failure;
use homing_snapshot::ask::{SnapshotReply, SnapshotRequest};
use homing_snapshot::asking::{answer, not_with_restic};
use homing_snapshot::section::Engine;
use homing_snapshot::target::when;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The options of every mount of an image: its files are those of all users, and of another time.
const OPTIONS: &str = "ro,nosuid,nodev";

/// Mounts an image, and prints how to unmount it.
pub fn run(cluster: &ClusterArgs, args: Args) -> Result<i32, Failure> {
    let dir = std::path::absolute(&args.dir).map_err(Failure::system)?;
    let target = target(cluster, &args.past.what, &args.past.vault)?;
    if !target.below.as_os_str().is_empty() {
        // A user could replace a folder below by a link.
        let failure =
            Failure::usage(format!("{} is a part of a source; only whole images can be mounted", args.past.what));
        return Err(failure.hint(format!("homing snapshot mount {} {}", target.name, dir.display())));
    }
    if target.section.engine == Engine::Restic {
        return Err(not_with_restic("a mount of one image", "on the source's host: restic mount"));
    }
    let ask = SnapshotRequest::Where(target.site.clone(), when(args.past.at.as_deref()));
    let (image, path) = match answer(&target.host, &ask)? {
        SnapshotReply::Where(image, path) => (image, path),
        other => return Err(Failure::system(format!("unexpected answer from {}: {other:?}", target.host))),
    };
    empty(&dir)?;
    let local = matches!(HostPlan::named(target.host.clone(), None).via, Via::Local);
    if local {
        bind(&path, &dir)?
    } else {
        over_ssh(&target.host, &path, &dir)?
    }
    let end = if local { "umount" } else { "fusermount -u" };
    println!("{}: {image} at {}, read-only; {end} {}", target.name, dir.display(), dir.display());
    Ok(0)
}

/// Checks that the folder is empty: a mount would hide its files.
fn empty(dir: &Path) -> Result<(), Failure> {
    let told = |why: String| Failure::usage(format!("{}: {why}", dir.display()));
    let mut entries = fs::read_dir(dir).map_err(|e| told(e.to_string()).hint("make it with mkdir"))?;
    entries.next().map_or(Ok(()), |_| Err(told("the folder is not empty, and the mount would hide its files".into())))
}

/// Mounts an image of a bank on this host.
fn bind(from: &Path, dir: &Path) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        let failure = Failure::system("only root can mount a folder of this host");
        return Err(failure.hint(format!("read the image in place: {}", from.display())));
    }
    let options = format!("bind,{OPTIONS}");
    run_it("mount", &["-o".into(), options.into(), "--".into(), from.into(), dir.into()])
}

/// Mounts an image of a bank on another host with sshfs, which needs no root.
fn over_ssh(host: &str, from: &Path, dir: &Path) -> Result<(), Failure> {
    let mut source = OsString::from(format!("{host}:"));
    source.push(from);
    // Without BatchMode, ssh would wait for an answer that no user can give.
    let mut words: Vec<OsString> = vec!["-o".into(), format!("{OPTIONS},BatchMode=yes").into()];
    if let Some(ssh) = std::env::var_os("HOMING_SSH").filter(|ssh| !ssh.is_empty()) {
        // Commas separate the options of sshfs.
        let ssh = ssh.to_string_lossy().replace('\\', "\\\\").replace(',', "\\,");
        words.extend(["-o".into(), format!("ssh_command={ssh}").into()]);
    }
    words.extend([source, dir.into()]);
    run_it("sshfs", &words)
}

fn run_it(program: &str, words: &[OsString]) -> Result<(), Failure> {
    let output = Command::new(program).args(words).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::system(format!("{program} is not installed on this host")),
        _ => Failure::system(format!("starting {program}: {e}")),
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| Failure::system(format!("{program}: {}", said.trim())))
}
