//! `iobsub`: submits like bsub, to the host whose disks hold the working directory or the files that the command
//! names. The job gets that host's own path.

use super::{Refusal, bsub};
use crate::cluster::Cluster;
use homing_cluster::home::{HomeLocation, home, inputs, no_data};
use homing_cluster::storage;
use homing_locate::{CandidatePaths, Finder};
use homing_lsf::place::{ClusterHost, Why, choose};
use homing_model::{Command, RawText, Task};
use homing_mounts::{FS_TIMEOUT, patiently};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest wait for a host's answer. A host may be slow; a dead one is noticed earlier by its connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// Submits a job next to its data.
pub fn run(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(mut ready) = bsub::read(words)? else { return Ok(0) };
    if !ready.request.hosts.is_empty() {
        eprintln!("iobsub: -m {} is ignored: the place of the data decides", ready.request.hosts.join(" "));
        ready.request.hosts.clear();
    }
    let own = homing_queue::host_name();
    let known = known(&own)?;
    let directory = match &ready.request.cwd {
        Some(cwd) => crate::cmd::queue::sub::working_directory()?.join(cwd.as_path()),
        None => crate::cmd::queue::sub::working_directory()?,
    };
    let home = match no_data(&directory) {
        Some(folder) => Err(format!("{folder} is local to each machine, and holds no shared data")),
        None => looked(vec![directory.clone()], &directory, &known, &own, home).and_then(|found| found),
    };
    let named = named(&ready, &directory);
    let paths = named.all().chain(&named.patterns).cloned().collect();
    let sums = move |finder: &Finder, directory: &Path, known: &[ClusterHost], own: &str| {
        inputs(finder, &named, directory, known, own)
    };
    let inputs = looked(paths, &directory, &known, &own, sums).unwrap_or_else(|silent| {
        eprintln!("iobsub: {silent}");
        BTreeMap::new()
    });
    let Some((host, why)) = choose(home.as_ref().ok().map(|h| h.host.as_str()), &inputs) else {
        return nowhere(&home.err().unwrap_or_default());
    };
    let path = match bsub::refused(&ready.request, &host)? {
        None => path_on(&host, &own, &directory, home.as_ref().ok()),
        refused => Err(refused.unwrap_or_default()),
    };
    match path {
        Ok(path) => {
            super::print(&format!("Submitting job to run on fileserver {host}\n"))?;
            if let Why::Inputs(bytes, all) = why {
                eprintln!("iobsub: {host} holds {bytes} of the {all} bytes that the command names");
            }
            ready.host = Some(host);
            ready.cwd = Some(path);
        }
        Err(reason) => {
            eprintln!("iobsub: fileserver {host} cannot run it: {reason}; submitting it to run anywhere in the queue")
        }
    }
    let there = ready.cwd.as_ref().map(RawText::to_path);
    let there = there.filter(|_| ready.host.as_deref().is_some_and(|host| host != own));
    let server = move |finder: &Finder, directory: &Path, _: &[ClusterHost], _: &str| {
        storage::of(finder, directory, there.as_deref())
    };
    match looked(vec![directory.clone()], &directory, &known, &own, server).and_then(|found| found) {
        Ok(storage) => ready.storage = storage,
        Err(why) => eprintln!("iobsub: the job does not count for the limit of its file server: {why}"),
    }
    bsub::submit(ready)
}

/// Returns the result of `look` at these paths. Fails with a message if a file system is silent.
fn looked<T: Send + 'static>(
    paths: Vec<PathBuf>,
    directory: &Path,
    known: &[ClusterHost],
    own: &str,
    look: impl FnOnce(&Finder, &Path, &[ClusterHost], &str) -> T + Send + 'static,
) -> Result<T, String> {
    let (directory, known, own) = (directory.to_path_buf(), known.to_vec(), own.to_string());
    let locators = Cluster::of_queue().map_err(|e| e.message)?.locators();
    let finder = move || Finder::with_own(locators);
    patiently(paths, FS_TIMEOUT, move || look(&finder(), &directory, &known, &own))
}

fn nowhere(reason: &str) -> Result<i32, Refusal> {
    let more = if reason.is_empty() { String::new() } else { format!("\n  {reason}") };
    Err(Refusal::Said(format!("Cannot find fileserver for current working directory.{more}"), 1))
}

/// Returns the cluster's hosts with all their names.
fn known(own: &str) -> Result<Vec<ClusterHost>, Refusal> {
    let machines = super::engine()?.machines()?;
    let names: Vec<String> = machines.into_iter().filter(|m| m.open).map(|m| m.name).collect();
    let found = homing_os::names::addresses_of(&names);
    let here = || [homing_probe::facts().aliases, vec!["localhost".into(), "127.0.0.1".into(), "::1".into()]].concat();
    let host = |(name, addresses)| ClusterHost { aliases: if name == own { here() } else { addresses }, name };
    Ok(names.into_iter().zip(found).map(host).collect())
}

/// Returns the files that the command names.
fn named(ready: &bsub::Ready, directory: &Path) -> CandidatePaths {
    let line = ready.request.command.clone().unwrap_or_default();
    let task = Task { inputs: ready.request.input.iter().cloned().collect(), ..Task::of(Command::Shell(line)) };
    CandidatePaths::of(&task, directory, true)
}

/// Returns the path of the directory on the host. The host itself is queried, because an export may lie elsewhere
/// than the mount table suggests. Paths of NFS version 4 begin at a root that only the server's list of exports
/// names.
fn path_on(host: &str, own: &str, directory: &Path, home: Option<&HomeLocation>) -> Result<RawText, String> {
    let here = directory.metadata().map_err(|e| format!("cannot read {}: {e}", directory.display()))?;
    let told = home.filter(|h| h.host == host).and_then(|h| h.path.as_deref());
    let mut names = match told {
        Some(path) => homing_mounts::nfs::server_paths(&RawText::from(path), &exports(host, own)?),
        None => Vec::new(),
    };
    names.push(directory.to_path_buf());
    for name in &names {
        if inode(host, own, name)? == Some(here.ino()) {
            return Ok(RawText::from(name.as_path()));
        }
    }
    let tried: Vec<String> = names.iter().map(|n| n.display().to_string()).collect();
    Err(format!("the directory does not exist there as {}", tried.join(" or ")))
}

/// Returns the list of a host's exports; empty if it has none.
fn exports(host: &str, own: &str) -> Result<String, String> {
    if host == own {
        return Ok(std::fs::read_to_string(homing_mounts::nfs::EXPORTS).unwrap_or_default());
    }
    Ok(remote_output(host, &["cat", homing_mounts::nfs::EXPORTS])?.unwrap_or_default())
}

/// Returns the inode that a host finds under a name. Fails if the host does not answer.
fn inode(host: &str, own: &str, name: &Path) -> Result<Option<u64>, String> {
    if host == own {
        return Ok(name.metadata().ok().map(|m| m.ino()));
    }
    let name = name.to_str().ok_or("its name is not UTF-8")?;
    Ok(remote_output(host, &["stat", "-Lc", "%i", "--", name])?.and_then(|text| text.trim().parse().ok()))
}

/// Runs a command on a host and returns its output; `None` if it fails.
fn remote_output(host: &str, words: &[&str]) -> Result<Option<String>, String> {
    let options = homing_exec::Options { command_timeout: Some(PATIENCE), ..Default::default() };
    let command = homing_exec::Command::argv(words.iter().copied());
    let mut results = homing_exec::Remote::new(options).run(&[host], &command);
    let result = results.next().ok_or("no answer")?;
    match result.outcome {
        homing_exec::CommandOutcome::Exited(0) => Ok(Some(String::from_utf8_lossy(&result.stdout).into_owned())),
        homing_exec::CommandOutcome::Exited(_) => Ok(None),
        other => Err(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_name_is_taken_when_it_is_the_same_directory() {
        let world = tempfile::tempdir().unwrap();
        let (here, other) = (world.path().join("mnt"), world.path().join("other"));
        std::fs::create_dir(&here).unwrap();
        std::fs::create_dir(&other).unwrap();
        let export = world.path().join("export");
        std::os::unix::fs::symlink(&here, &export).unwrap();
        let home = |path: &Path| HomeLocation { host: "own".into(), path: Some(path.to_path_buf()) };
        let on = |home: &HomeLocation| path_on("own", "own", &here, Some(home)).map(|p| p.display());
        assert_eq!(on(&home(&export)), Ok(export.display().to_string()));
        // A name that means another directory there (fsid=0 moves the root) is not believed.
        assert_eq!(on(&home(&other)), Ok(here.display().to_string()));
    }

    #[test]
    fn a_server_that_does_not_answer_is_a_reason_and_not_the_end() {
        let world = tempfile::tempdir().unwrap();
        let reason = path_on("no-such-host.invalid", "own", world.path(), None).unwrap_err();
        assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
    }
}
