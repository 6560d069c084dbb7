//! Moves files from the host that fetches to this machine, and from here to the others. If a host fails to fetch, the
//! next one that can is tried.

use crate::{Passed, given_by, note};
use homing_exec::{Command, CommandInput, CommandOutcome, Giver, HostEventKind, HostResult, InputSpool, last_lines};
use homing_model::text::keep_tail;
use homing_model::units;
use homing_os::folder::Reserve;
use homing_setup::cache::{self, PackageFile};
use homing_steps::SshExecutor;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
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

/// Files by the host that wants them.
pub type PackagesByHost = BTreeMap<String, BTreeSet<PackageFile>>;

/// The files that a host fetches.
pub struct Fetch {
    /// A script that writes the files to its standard output, as tar.
    pub script: String,
    /// The files, described for people.
    pub what: String,
    /// Names of the files that must arrive.
    pub names: Vec<String>,
    /// Bytes of all of them, where that is known: the limit of the transfer.
    pub size: Option<u64>,
}

/// Most bytes of tar's overhead for a file (tar(5)): a block for its header, two for a long name, and padding. The
/// second number is for a whole archive, which ends with blocks of zeros.
const TAR_FILE: u64 = 4 * 512;
const TAR: u64 = 64 << 10;
/// Bytes of standard error that are kept of a host that fetches, the last ones.
const TEXT: usize = 64 << 10;

impl Fetch {
    /// Describes the fetching of packages.
    pub fn packages(files: &[PackageFile]) -> Fetch {
        let names = files.iter().map(|file| file.name.clone()).collect();
        let size = Some(files.iter().map(|file| file.size).sum());
        Fetch { script: cache::fetch(files), what: format!("{} files", files.len()), names, size }
    }
}

/// Fetches on the first of the hosts that can. Returns that host, or why none could.
pub fn fetch_once<'h>(
    executor: &SshExecutor,
    hosts: impl Iterator<Item = &'h String>,
    fetch: &Fetch,
    folder: &Path,
    say: &dyn Fn(&str),
) -> Result<String, Vec<(String, String)>> {
    let mut whys = Vec::new();
    for host in hosts {
        say(&format!("{host} fetches {}", fetch.what));
        match fetched(executor, host, fetch, folder) {
            Ok(()) => return Ok(host.clone()),
            Err(why) => whys.push((host.clone(), why)),
        }
    }
    Err(whys)
}

/// Fetches into a folder of this machine.
fn fetched(executor: &SshExecutor, host: &str, fetch: &Fetch, folder: &Path) -> Result<(), String> {
    let script =
        InputSpool::of(fetch.script.as_bytes()).map_err(|e| format!("making a temporary file for the script: {e}"))?;
    let command = Command::argv(words(executor, &["sh", "-s"])).input(CommandInput::Spool(script));
    let mut out = tar(folder, &["--no-same-owner", "--no-same-permissions", "-xf", "-"], std::iter::empty())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("starting tar on this machine: {e}"))?;
    let most = fetch.size.map(|size| size + fetch.names.len() as u64 * TAR_FILE + TAR);
    let came = receive(executor, host, &command, &mut out, &mut Bound::new(folder, most)?);
    let unpacked = out.wait().map_err(|e| format!("waiting for tar on this machine: {e}"))?;
    came?;
    if !unpacked.success() {
        return Err(format!(
            "unpacking its data failed: they are no tar archive, or the disk of {} is full",
            folder.display()
        ));
    }
    let lacks = |name: &&String| !folder.join(name).symlink_metadata().is_ok_and(|meta| meta.is_file());
    fetch.names.iter().find(lacks).map_or(Ok(()), |name| Err(format!("it did not send {name}")))
}

/// The limit of bytes from a host that fetches.
struct Bound {
    folder: File,
    reserve: Reserve,
    most: Option<u64>,
    taken: u64,
}

impl Bound {
    /// `most` is the limit in bytes, where that is known. Files in `folder` leave the reserve free on its disk.
    fn new(folder: &Path, most: Option<u64>) -> Result<Bound, String> {
        let folder = File::open(folder).map_err(|e| format!("opening {}: {e}", folder.display()))?;
        Ok(Bound { folder, reserve: Reserve::default(), most, taken: 0 })
    }

    /// Accepts this many bytes more, or returns the reason why not.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.taken += bytes as u64;
        let taken = units::bytes(self.taken);
        match self.most {
            Some(most) if self.taken > most => Err(format!(
                "it sent {taken}, but its files have at most {} by the index of packages",
                units::bytes(most)
            )),
            _ if self.reserve.is_used_up(&self.folder, bytes) => {
                Err(format!("the disk of this machine is full after {taken} from it; TMPDIR=FOLDER names another disk"))
            }
            _ => Ok(()),
        }
    }
}

/// Passes the standard output of the host to the program here.
fn receive(
    executor: &SshExecutor,
    host: &str,
    command: &Command,
    to: &mut Child,
    bound: &mut Bound,
) -> Result<(), String> {
    let mut to = to.stdin.take();
    let mut said = Vec::new();
    for event in executor.remote.stream(&[host], command) {
        match event.what {
            HostEventKind::Begun | HostEventKind::Alive => {}
            HostEventKind::Stdout(bytes) => {
                bound.take(bytes.len())?;
                let written = to.as_mut().map_or(Ok(()), |to| to.write_all(&bytes));
                written.map_err(|e| format!("unpacking data from {host}: {e}"))?;
            }
            HostEventKind::Stderr(bytes) => keep_tail(&mut said, &bytes, TEXT),
            HostEventKind::Done(CommandOutcome::Exited(0), _) => {}
            HostEventKind::Done(outcome, _) => {
                return Err(format!("{} ({outcome})", last_lines(&String::from_utf8_lossy(&said))));
            }
        }
    }
    Ok(())
}

/// The results of the hosts, and the bytes that left this machine for them.
#[derive(Default)]
pub struct TransferReport {
    /// Results by host.
    pub came: Vec<(String, Result<(), String>)>,
    /// The leader that reported the result, for hosts that were served by another.
    by: BTreeMap<String, String>,
    /// Bytes sent to hosts and to those that pass them on.
    pub bytes: u64,
}

impl TransferReport {
    /// Checks the reports of leaders about other hosts. Such a report counts only if the host itself, queried from
    /// here, lacks nothing. `lack` returns the hosts that do, with the missing file.
    pub fn confirmed(mut self, lack: impl FnOnce(&[String]) -> BTreeMap<String, String>) -> TransferReport {
        let told = |(host, went): &&(String, Result<(), String>)| went.is_ok() && self.by.contains_key(host);
        let hosts: Vec<String> = self.came.iter().filter(told).map(|(host, _)| host.clone()).collect();
        let lack = if hosts.is_empty() { BTreeMap::new() } else { lack(&hosts) };
        for (host, went) in &mut self.came {
            if let (Some(why), Some(by)) = (lack.get(host), self.by.get(host)) {
                *went = Err(format!("{by} reports that it sent all files, but a query from here finds: {why}"));
            }
        }
        self
    }
}

/// The way in which files are sent.
pub struct Sent<'a> {
    /// The folder of the files.
    pub folder: &'a Path,
    /// A file that goes with them.
    pub beside: Option<&'a str>,
    /// The script that takes them from its standard input, as tar.
    pub script: &'a str,
}

/// Sends each host its files, along a tree if many hosts want the same.
pub fn send(executor: &SshExecutor, wanted: &PackagesByHost, sent: &Sent) -> Result<TransferReport, String> {
    let mut groups: BTreeMap<&BTreeSet<PackageFile>, Vec<String>> = BTreeMap::new();
    wanted.iter().for_each(|(host, files)| groups.entry(files).or_default().push(host.clone()));
    let mut gone = TransferReport::default();
    for (files, hosts) in groups {
        let more = send_same(executor, &hosts, files, sent)?;
        gone.came.extend(more.came);
        gone.by.extend(more.by);
        gone.bytes += more.bytes;
    }
    Ok(gone)
}

/// Sends files to hosts that want the same ones.
fn send_same(
    executor: &SshExecutor,
    hosts: &[String],
    files: &BTreeSet<PackageFile>,
    sent: &Sent,
) -> Result<TransferReport, String> {
    let names = sent.beside.into_iter().chain(files.iter().map(|file| file.name.as_str()));
    let mut archive = tar(sent.folder, &["-cf", "-"], names.map(|name| format!("./{name}")))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("starting tar on this machine: {e}"))?;
    let Some(bytes) = archive.stdout.take() else { return Err("tar on this machine has no output pipe".into()) };
    let spool = InputSpool::from_reader(bytes).map_err(|e| format!("making a temporary file for packages: {e}"))?;
    let command = Command::argv(words(executor, &["sh", "-c", sent.script])).input(CommandInput::Spool(spool.clone()));
    // A host that has received a part locks the rest out, and begins anew.
    let mut results = executor.remote.run_tree(hosts, Passed::Run { command, again: true }, note());
    let (mut came, mut by, mut from_here) = (Vec::new(), BTreeMap::new(), 0);
    for result in results.by_ref() {
        let reached = !matches!(result.outcome, CommandOutcome::Unreachable(_));
        from_here += usize::from(result.giver == Giver::Here && reached);
        by.extend(given_by(result.giver, hosts, &result.host).map(|by| (result.host.clone(), by)));
        came.push(went(result));
    }
    archive.wait().map_err(|e| format!("waiting for tar on this machine: {e}"))?;
    if let Some(why) = spool.failure() {
        return Err(format!("reading the archive from tar on this machine: {why}"));
    }
    Ok(TransferReport { came, by, bytes: (from_here + results.loads()) as u64 * spool.length() })
}

fn went(result: HostResult) -> (String, Result<(), String>) {
    let said = last_lines(&String::from_utf8_lossy(&result.stderr));
    let went = match &result.outcome {
        CommandOutcome::Exited(0) => Ok(()),
        outcome if said.is_empty() => Err(outcome.to_string()),
        outcome => Err(format!("{said} ({outcome})")),
    };
    (result.host, went)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_fetches_sends_no_more_than_the_index_has() {
        let folder = tempfile::tempdir().unwrap();
        let mut bound = Bound::new(folder.path(), Some(1000)).unwrap();
        assert_eq!((bound.take(600), bound.take(400)), (Ok(()), Ok(())));
        assert!(bound.take(1).is_err_and(|why| why.contains("its files have at most ")));
        assert_eq!(Bound::new(folder.path(), None).unwrap().take(100_000), Ok(()), "a size that nobody knows");
        let file = PackageFile { name: "a".into(), size: 7, sha256: String::new(), uri: String::new() };
        assert_eq!(Fetch::packages(&[file.clone(), file]).size, Some(14));
    }

    #[test]
    fn what_a_leader_tells_of_another_host_is_asked_of_that_host() {
        let ok = |n: usize| (format!("n{n}"), Ok(()));
        let failed = ("n4".to_string(), Err("full".to_string()));
        let by = [2, 3, 4].map(|n| (format!("n{n}"), "n1".to_string())).into();
        let gone = TransferReport { came: vec![ok(1), ok(2), ok(3), failed.clone()], by, bytes: 7 };
        let gone = gone.confirmed(|hosts| {
            assert_eq!(hosts, ["n2", "n3"], "neither the leader, nor what failed anyway");
            [("n3".to_string(), "it lacks a.deb".to_string())].into()
        });
        let why = "n1 reports that it sent all files, but a query from here finds: it lacks a.deb";
        assert_eq!(gone.came, [ok(1), ok(2), ("n3".into(), Err(why.into())), failed]);
        TransferReport::default().confirmed(|_| panic!("there is nobody to ask"));
    }
}
