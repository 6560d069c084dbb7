//! A file system that a site queries by a command of its own (`[locator.NAME]` of the cluster file).
//!
//! The command receives paths, each ended by NUL, on its standard input. It prints a line of JSON for each, in their
//! order: the place of the file, or why it is unknown. Names of files are no part of the answer, so none can forge
//! one.

use crate::hostname::is_host;
use crate::{FileSystem, LocateRequest};
use homing_model::text::shown;
use homing_model::{Extent, FileLayout, Replica};
use homing_os::threads::lock;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest output, bytes: thousands of extents of each file of one query.
const MOST: u64 = 16 << 20;
/// The most of the command's error output that is read if it fails, bytes.
const LAST: u64 = 4096;

/// `[locator.NAME]` of the cluster file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnLocator {
    /// The type of mounts that it is used for, as in the mount table.
    pub fstype: String,
    /// A line for /bin/sh.
    pub command: String,
    /// The time limit for one query, which is about many files, seconds.
    #[serde(default = "usual_deadline")]
    pub deadline: u32,
    /// Its name.
    #[serde(skip)]
    pub name: String,
}

/// Returns the default time limit, seconds. The tools of such file systems start slowly and take one path per call; a
/// query has at most 128 paths.
fn usual_deadline() -> u32 {
    30
}

/// All such commands of a site.
pub type OwnLocators = Arc<[OwnLocator]>;

/// One line of an answer.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocatorReply {
    /// Hosts that hold the whole file.
    pub hosts: Vec<String>,
    /// Parts of it, in order of offset.
    pub extents: Vec<LocatorExtent>,
    /// Parts of it, in order of offset.
    pub reason: Option<String>,
}

/// A part of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocatorExtent {
    pub offset: u64,
    pub length: u64,
    pub hosts: Vec<String>,
}

/// Such a command, and why it is not used any more.
pub(crate) struct LocatorCommand {
    locator: OwnLocator,
    broken: Mutex<Option<String>>,
}

impl LocatorCommand {
    pub fn new(locator: &OwnLocator) -> LocatorCommand {
        LocatorCommand { locator: locator.clone(), broken: Mutex::default() }
    }

    /// Returns one answer for each file; the error holds for all of them.
    fn answers(&self, files: &[&mut LocateRequest]) -> Result<Vec<LocatorReply>, String> {
        let broken = || lock(&self.broken);
        if let Some(why) = broken().clone() {
            return Err(why);
        }
        let asked = question(files).and_then(|paths| self.locator.run_command(paths));
        let text = asked.map_err(|e| format!("starting its command: {e}"))?.map_err(|silence| {
            // Ten thousand files must not wait for the command again and again.
            broken().get_or_insert(silence).clone()
        })?;
        read(&text?, files.len())
    }
}

impl FileSystem for LocatorCommand {
    fn fill(&self, file: &mut LocateRequest) {
        self.fill_all(std::slice::from_mut(file));
    }

    fn fill_all(&self, files: &mut [LocateRequest]) {
        let mut files: Vec<&mut LocateRequest> = files.iter_mut().filter(|file| file.layout.size > 0).collect();
        if files.is_empty() {
            return;
        }
        let told = |why: &str| Some(format!("locator {}: {}", self.locator.name, shown(why)));
        match self.answers(&files) {
            Err(why) => files.iter_mut().for_each(|file| file.layout.reason = told(&why)),
            Ok(answers) => {
                for (file, answer) in files.iter_mut().zip(answers) {
                    if let Err(why) = place(&mut file.layout, answer) {
                        (file.layout.extents, file.layout.reason) = (Vec::new(), told(&why));
                    }
                }
            }
        }
    }
}

/// Writes the paths of a query. They are absolute, because the command begins in another folder.
fn question(files: &[&mut LocateRequest]) -> io::Result<File> {
    let mut paths = File::from(memfd_create("paths", MemfdFlags::CLOEXEC)?);
    for file in files {
        paths.write_all(std::path::absolute(&file.path)?.as_os_str().as_bytes())?;
        paths.write_all(b"\0")?;
    }
    paths.rewind()?;
    Ok(paths)
}

/// The output of a command, or how it failed.
type LocatorOutput = Result<String, String>;

impl OwnLocator {
    /// Runs the command. The inner error means that it did not end within its deadline.
    fn run_command(&self, paths: File) -> io::Result<Result<LocatorOutput, String>> {
        let mut errors = File::from(memfd_create("errors", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &self.command]).current_dir("/").process_group(0);
        command.stdin(paths).stdout(Stdio::piped()).stderr(errors.try_clone()?);
        let mut child = command.spawn()?;
        let group = Pid::from_child(&child);
        let limit = Duration::from_secs(self.deadline.max(1).into());
        let ended = homing_os::threads::within(limit, move || ended(&mut child));
        // Processes that the command left behind end with it.
        let _ = kill_process_group(group, Signal::KILL);
        let Some(ended) = ended else {
            return Ok(Err(format!("{:?} did not end within {} s", self.command, limit.as_secs())));
        };
        let (status, text) = ended?;
        let mut why = String::new();
        errors.rewind()?;
        let _ = errors.take(LAST).read_to_string(&mut why);
        Ok(Ok(if status.success() { Ok(text) } else { Err(self.failed(status, &why)) }))
    }

    fn failed(&self, status: ExitStatus, why: &str) -> String {
        let last = why.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        format!("{:?} failed ({status}): {}", self.command, last.trim())
    }
}

fn ended(child: &mut Child) -> io::Result<(ExitStatus, String)> {
    let mut text = Vec::new();
    let output = child.stdout.take().expect("the command has a pipe");
    output.take(MOST).read_to_end(&mut text)?;
    Ok((child.wait()?, String::from_utf8_lossy(&text).into_owned()))
}

fn read(text: &str, files: usize) -> Result<Vec<LocatorReply>, String> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != files {
        return Err(format!("it received {files} files but printed {} lines", lines.len()));
    }
    let answer = |line: &&str| serde_json::from_str(line).map_err(|e| format!("{:.80} is not an answer: {e}", line));
    lines.iter().map(answer).collect()
}

/// Puts an answer into a layout, if it keeps the contract.
pub(crate) fn place(layout: &mut FileLayout, answer: LocatorReply) -> Result<(), String> {
    let whole = LocatorExtent { offset: 0, length: layout.size, hosts: answer.hosts };
    let parts = if answer.extents.is_empty() && !whole.hosts.is_empty() { vec![whole] } else { answer.extents };
    let mut end = 0;
    for part in parts {
        let after = part.offset.checked_add(part.length).filter(|_| part.offset >= end && part.length > 0);
        let Some(after) = after else {
            return Err("its extents overlap or are not in order of offset".into());
        };
        if part.offset >= layout.size {
            break;
        }
        // The file may have become shorter since.
        let length = after.min(layout.size) - part.offset;
        layout.extents.push(Extent { offset: part.offset, length, replicas: replicas(part.hosts)? });
        end = after;
    }
    let told: u64 = layout.extents.iter().map(|extent| extent.length).sum();
    let rest = || format!("the place of {} of {} bytes was not reported", layout.size - told, layout.size);
    layout.reason = (told < layout.size).then(|| answer.reason.map_or_else(rest, |why| shown(&why)));
    Ok(())
}

fn replicas(hosts: Vec<String>) -> Result<Vec<Replica>, String> {
    match hosts.iter().find(|host| !is_host(host)) {
        Some(odd) => Err(format!("{odd:?} is not a host name")),
        None if hosts.is_empty() => Err("an extent has no hosts".into()),
        None => Ok(hosts.into_iter().map(|host| Replica { host, share: 1.0 }).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Locator, Volume, contract};
    use homing_model::Mount;
    use homing_mounts::FileSystemKind;
    use std::collections::BTreeSet;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    fn locator(dir: &Path, command: &str, deadline: u32) -> Locator {
        let own = OwnLocator { fstype: "beegfs".into(), command: command.into(), deadline, name: "bee".into() };
        let mount = Mount { point: "/".into(), fstype: "beegfs".into(), source: "beegfs_nodev".into() };
        let volume = Volume { name: "beegfs:x".into(), kind: FileSystemKind::of(&mount), mount };
        Locator::with(dir.metadata().unwrap().dev(), volume, Arc::new(LocatorCommand::new(&own)))
    }

    /// Returns a command that prints a line for each path, with any name.
    fn each(line: &str) -> String {
        format!(r#"tr -cd '\000' | tr '\000' '\n' | while read -r x; do echo '{line}'; done"#)
    }

    #[test]
    fn a_sites_own_command_keeps_the_contract() {
        let dir = tempfile::tempdir().unwrap();
        let parts =
            r#"{"extents":[{"offset":0,"length":3,"hosts":["b1","b2"]},{"offset":3,"length":99999,"hosts":["b3"]}]}"#;
        for (line, hosts) in [(r#"{"hosts":["b1"]}"#, "b1"), (parts, "b1 b2 b3")] {
            let below = tempfile::tempdir_in(dir.path()).unwrap();
            let allowed: BTreeSet<String> = hosts.split(' ').map(String::from).collect();
            contract::check(&locator(dir.path(), &each(line), 30), below.path(), &allowed);
        }
    }

    #[test]
    fn what_is_not_told_is_a_reason_and_never_a_guess() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, [7; 100]).unwrap();
        for (command, why) in [
            (each(r#"{"reason":"no\u001bkey"}"#), "no\\u{1b}key"),
            (
                each(r#"{"extents":[{"offset":0,"length":40,"hosts":["b1"]}]}"#),
                "the place of 60 of 100 bytes was not reported",
            ),
            (
                each(r#"{"extents":[{"offset":9,"length":1,"hosts":["a"]},{"offset":0,"length":9,"hosts":["a"]}]}"#),
                "in order",
            ),
            (each(r#"{"extents":[{"offset":1,"length":18446744073709551615,"hosts":["a"]}]}"#), "in order"),
            (each(r#"{"hosts":["-oProxyCommand=x"]}"#), "\"-oProxyCommand=x\" is not a host name"),
            (each(r#"{"extents":[{"offset":0,"length":100,"hosts":[]}]}"#), "an extent has no hosts"),
            (each("b1"), "b1 is not an answer"),
            (each(r#"{"host":["b1"]}"#), "unknown field"),
            ("true".into(), "it received 1 files but printed 0 lines"),
            ("echo broken >&2; exit 3".into(), "failed (exit status: 3): broken"),
        ] {
            let layout = locator(dir.path(), &command, 30).locate(&file);
            let told = layout.reason.unwrap_or_default();
            assert!(told.contains(why) && !told.contains(['\n', '\u{1b}']), "{command}: {told}");
            assert!(layout.extents.is_empty() || told.contains("60 of 100"), "{command}: {:?}", layout.extents);
        }
    }

    #[test]
    fn a_command_that_hangs_is_ended_and_not_asked_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "text").unwrap();
        let command = format!("echo asked >> {}/log; sleep 1000 & wait", dir.path().display());
        let locator = locator(dir.path(), &command, 1);
        for _ in 0..3 {
            let told = locator.locate(&file).reason.unwrap_or_default();
            assert!(told.starts_with("locator bee: ") && told.contains("did not end within 1 s"), "{told}");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("log")).unwrap(), "asked\n");
    }
}
