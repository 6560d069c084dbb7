//! The end on the source's host: it runs restic as a child.

use super::words::{self, ResticNode, Snapshot, Summary, plain, tags, unread, with};
use crate::ask::{Expired, ImageReport, Listed, Proof, SnapshotReply};
use crate::doubt::{self, ClockReading};
use crate::expiry;
use crate::image::{Image, When};
use crate::keep;
use crate::manifest::{ChangeKind, EntryChange};
use crate::order::misdated;
use crate::place::ImagePart;
use crate::repository::{Act, Make, Repository, RepositoryRequest, Restore};
use crate::restore::{self, Destination, NoRecipient};
use crate::run::{self, Reins};
use crate::vault::{self, Refused};
use homing_model::RawText;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The most names that are reported of files that could not be read.
const TOLD: usize = 20;
/// The most lines of restic's errors that are reported.
const LINES: usize = 4;
/// The most files of a trial: each is an argument of a command.
const SAMPLE: usize = 500;
/// restic's exit status when some of the source could not be read.
const INCOMPLETE: i32 = 3;

/// Sends an answer to the other end.
type ReplySender<'a> = &'a mut dyn FnMut(SnapshotReply) -> io::Result<()>;

/// Carries out a request to a repository, and returns the last answer.
pub fn serve(
    order: &RepositoryRequest,
    reins: &Reins,
    zone: &TimeZone,
    send: ReplySender,
) -> Result<SnapshotReply, Refused> {
    let repo = Repo { it: &order.repository, reins, zone };
    secret(&order.repository.password_file)?;
    Ok(match &order.act {
        Act::Make(make) => SnapshotReply::Made(Box::new(repo.make(make, send)?)),
        Act::List => SnapshotReply::Listed(Box::new(repo.list()?)),
        Act::Expire { clocks, trust } => {
            let readings = ClockReading::of_hosts(clocks, Timestamp::now());
            SnapshotReply::Expired(repo.expire(&readings, *trust)?)
        }
        Act::Cat(when, path) => repo.cat(when, path, send)?,
        Act::Diff(from, to) => repo.diff(from, to, send)?,
        Act::Restore(order) => SnapshotReply::Restored(repo.restore(order)?),
        Act::Verify(when, files) => SnapshotReply::Verified(repo.verify(when, *files)?),
    })
}

/// Checks that only this user can read the password file, and that it is on a disk of this host. With the password
/// all images can be read.
fn secret(file: &Path) -> Result<(), String> {
    let told = |why: &str| format!("the password file {}: {why}", file.display());
    let meta = fs::metadata(file).map_err(|e| told(&e.to_string()))?;
    let own = rustix::process::geteuid().as_raw();
    let real = file.canonicalize().map_err(|e| told(&e.to_string()))?;
    let lines = homing_mounts::read().unwrap_or_default();
    let shared = homing_mounts::holding(&lines, &real)
        .is_some_and(|line| homing_mounts::FileSystemKind::of(&line.mount).is_network());
    match () {
        () if meta.mode() & 0o077 != 0 => Err(told("other users may read it (chmod 600)")),
        () if ![0, own].contains(&meta.uid()) => Err(told("it belongs to another user")),
        () if shared => Err(told("it is on a volume that other hosts mount")),
        () => Ok(()),
    }
}

/// Sets owner and mode of the scratch folder to those of the folder that gets the files. A repository does not keep
/// those of the source itself.
fn like(scratch: &Path, into: &Path) -> Result<(), String> {
    let meta = fs::metadata(into).ok();
    let doing = |e: io::Error| format!("{}: {e}", scratch.display());
    let mode = meta.as_ref().map_or(0o755, |meta| meta.mode() & 0o7777);
    if let Some(meta) = meta.filter(|_| rustix::process::geteuid().is_root()) {
        std::os::unix::fs::chown(scratch, Some(meta.uid()), Some(meta.gid())).map_err(doing)?;
    }
    fs::set_permissions(scratch, fs::Permissions::from_mode(mode)).map_err(doing)
}

/// Returns a key that is greater for later images: their numbers, or their dates if an older version made them.
fn restic_order(image: &Image) -> (Option<u64>, Option<Timestamp>, &str) {
    (image.sequence, image.completed, &image.name)
}

struct Repo<'a> {
    it: &'a Repository,
    reins: &'a Reins,
    zone: &'a TimeZone,
}

/// How a call ended.
struct ResticExit {
    status: Option<i32>,
    errors: String,
}

impl ResticExit {
    fn ok(self, doing: &str) -> Result<(), String> {
        if self.status == Some(0) { Ok(()) } else { Err(self.why(doing)) }
    }

    fn why(&self, doing: &str) -> String {
        let status = self.status.map_or("a signal".into(), |status| status.to_string());
        let said: Vec<&str> = self.errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // The last lines have the reason.
        let last = &said[said.len().saturating_sub(LINES)..];
        format!("restic {doing} ended with {status}: {}", last.join("; "))
    }
}

impl Repo<'_> {
    /// Runs restic; passes `each` line of its output.
    fn run(
        &self,
        words: Vec<OsString>,
        at: &Path,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<ResticExit> {
        let mut errors = tempfile::tempfile()?;
        let mut command = Command::new("restic");
        command.args(words::head(self.it)).args(words).env("LC_ALL", "C").current_dir(at).stdin(Stdio::null());
        for name in ["RESTIC_REPOSITORY", "RESTIC_REPOSITORY_FILE", "RESTIC_PASSWORD", "RESTIC_PASSWORD_COMMAND"] {
            command.env_remove(name);
        }
        run::polite(&mut command);
        command.stdout(Stdio::piped()).stderr(errors.try_clone()?);
        let mut running = run::start(&mut command, None, self.reins)?;
        if let Some(said) = running.child.stdout.take() {
            let mut said = BufReader::new(said);
            let mut line = Vec::new();
            while said.read_until(b'\n', &mut line)? > 0 {
                each(&line)?;
                line.clear();
            }
        }
        let status = running.wait()?;
        let mut text = Vec::new();
        errors.rewind().and_then(|()| errors.read_to_end(&mut text))?;
        Ok(ResticExit { status, errors: String::from_utf8_lossy(&text).into_owned() })
    }

    /// The same for a command whose output is ignored.
    fn done(&self, doing: &str, words: Vec<OsString>) -> Result<(), String> {
        self.run(words, Path::new("/"), &mut |_| Ok(())).map_err(|e| format!("restic {doing}: {e}"))?.ok(doing)
    }

    /// Returns the parsed lines of a command's output; lines that `read` rejects are left out.
    fn lines<T>(&self, doing: &str, words: Vec<OsString>, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
        let mut all = Vec::new();
        let mut each = |line: &[u8]| {
            all.extend(read(String::from_utf8_lossy(line).trim_end()));
            Ok(())
        };
        self.run(words, Path::new("/"), &mut each).map_err(|e| format!("restic {doing}: {e}"))?.ok(doing)?;
        Ok(all)
    }

    /// Returns homing's images with their snapshots, the oldest first.
    fn images(&self) -> Result<Vec<(Image, String)>, String> {
        let words = ["snapshots", "--json", "--no-lock"].map(OsString::from).into();
        let read = |line: &str| serde_json::from_str::<Vec<Snapshot>>(line).ok();
        let all = self.lines("snapshots", words, read)?.into_iter().flatten();
        let mut images: Vec<(Image, String)> = all.filter_map(|one| Some((one.image(self.zone)?, one.id))).collect();
        images.sort_by(|(a, _), (b, _)| restic_order(a).cmp(&restic_order(b)));
        Ok(images)
    }

    fn pick(&self, when: &When) -> Result<(Image, String), String> {
        let all = self.images()?;
        let wrong = misdated(&all.iter().map(|(image, _)| image.clone()).collect::<Vec<_>>());
        let fits = |image: &Image| match when {
            When::Newest => image.is_good(),
            When::Until(at) => image.is_good() && image.created <= Some(*at) && !wrong.contains(&image.name),
            When::Named(name) => image.name == *name,
        };
        let found = all.into_iter().rev().find(|(image, _)| fits(image));
        found.ok_or_else(|| format!("{} has no such image", self.it.folder.display()))
    }

    /// Makes the repository if it does not exist; else removes the locks of killed processes.
    fn begin(&self) -> Result<(), String> {
        match self.done("cat config", ["cat", "config", "--no-lock"].map(OsString::from).into()) {
            Ok(()) => self.done("unlock", vec!["unlock".into()]),
            Err(why) if why.contains("Is there a repository") => self.done("init", vec!["init".into()]),
            Err(why) => Err(why),
        }
    }

    fn make(&self, order: &Make, say: ReplySender) -> Result<ImageReport, String> {
        let since = Instant::now();
        self.begin()?;
        let images = self.images()?;
        let sequence = images.iter().filter_map(|(image, _)| image.sequence).max().unwrap_or(0).saturating_add(1);
        let before = images.into_iter().rev().find(|(image, _)| image.is_good());
        let now = Timestamp::now();
        let mut readings = ClockReading::of_hosts(&order.clocks, now);
        expiry::check(&order.rules, &order.expire)?;
        let expires = expiry::of(&order.rules, &order.expire, now, self.zone)?.at;
        let host = homing_os::names::own_name();
        let parent = before.as_ref().map(|(_, id)| id.as_str());
        let words = words::backup(order, &host, &tags(sequence, expires, None), parent);
        let mut summary = None;
        let read = order.instant.as_ref().unwrap_or(&order.source);
        let ended = self.run(words, read.as_path(), &mut |line| {
            summary = summary.take().or_else(|| serde_json::from_slice::<Summary>(line).ok());
            Ok(())
        });
        let ended = ended.map_err(|e| format!("restic backup of {}: {e}", read.display()))?;
        let Some(summary) = summary.filter(|_| [Some(0), Some(INCOMPLETE)].contains(&ended.status)) else {
            return Err(ended.why("backup"));
        };
        // Files that vanished meanwhile are not missing.
        let gone = |why: &str| why.contains("no such file") || why == "2";
        let unreadable: Vec<String> = ended
            .errors
            .lines()
            .filter_map(unread)
            .filter(|(_, why)| !gone(why))
            .map(|(name, why)| format!("{name}: {why}"))
            .collect();
        self.not_emptied(order, before.as_ref().map(|(image, _)| image), &summary)?;
        let whole =
            ended.status == Some(0) || unreadable.is_empty() && ended.errors.lines().any(|line| unread(line).is_some());
        if whole {
            let mut words: Vec<OsString> = vec!["tag".into()];
            words.extend(tags(sequence, expires, Some(&summary)).iter().map(|tag| format!("--set={tag}").into()));
            words.push(summary.snapshot_id.clone().into());
            self.done("tag", words)?;
        }
        readings.push(ClockReading::since(now, since.elapsed(), Timestamp::now()));
        let expired = if whole { self.expire(&readings, false) } else { Ok(Expired::default()) };
        let lost =
            |why| say(SnapshotReply::Note(format!("removing expired images: {why}"))).map(|()| Expired::default());
        let expired = expired.or_else(lost).map_err(|e| format!("sending the answer: {e}"))?;
        let image = self.images()?.pop().map(|(image, _)| image.name).unwrap_or_default();
        Ok(ImageReport {
            image,
            reference: before.map(|(image, _)| image.name),
            resumed: false,
            instant: order.instant.is_some(),
            files: summary.entries(),
            bytes: summary.total_bytes_processed,
            read_files: summary.files_new + summary.files_changed,
            read: None,
            local: self.it.host.is_none(),
            network: None,
            own_bytes: summary.data_added,
            parts: Vec::new(),
            took_us: since.elapsed().as_micros() as u64,
            paused_us: self.reins.paused().as_micros() as u64,
            excluded: Vec::new(),
            excluded_count: 0,
            unreadable: unreadable.into_iter().take(TOLD).collect(),
            expired: expired.names,
            doubt: expired.doubt,
            folder: self.it.folder.clone(),
        })
    }

    /// Fails if the source is empty and was not before, as with plain trees: most likely it is not mounted.
    fn not_emptied(&self, order: &Make, before: Option<&Image>, summary: &Summary) -> Result<(), String> {
        let had = before.and_then(|image| image.files).filter(|files| *files > 1 && summary.entries() == 0);
        let Some(files) = had else { return Ok(()) };
        self.done("forget", vec!["forget".into(), summary.snapshot_id.clone().into()])?;
        Err(format!("{} is empty, but had {files} entries before: is it mounted?", order.source.display()))
    }

    fn list(&self) -> Result<Listed, String> {
        let (images, unfinished) = self.images()?.into_iter().map(|(image, _)| image).partition(|image| {
            // An image that is still being made, or was broken off, is listed by its name only.
            image.is_good() || image.files.is_some()
        });
        let unfinished: Vec<Image> = unfinished;
        Ok(Listed {
            images,
            unfinished: unfinished.into_iter().map(|image| image.name).collect(),
            removing: Vec::new(),
            proved: None,
            journal: true,
            free: self
                .it
                .host
                .is_none()
                .then(|| vault::free(&self.it.folder).ok())
                .flatten()
                .map_or(0, |(bytes, _)| bytes),
            now: Timestamp::now(),
        })
    }

    /// Removes the expired images. As with plain trees, the last good ones stay, and none is removed while the clock
    /// is in doubt.
    fn expire(&self, readings: &[ClockReading], trust: bool) -> Result<Expired, String> {
        let all = self.images()?;
        let images: Vec<Image> = all.iter().map(|(image, _)| image.clone()).collect();
        let doubt = doubt::of_clock(&images, Timestamp::now(), readings).filter(|_| !trust);
        if doubt.is_some() {
            return Ok(Expired { names: Vec::new(), doubt });
        }
        let gone: Vec<String> =
            keep::expired(&images, Timestamp::now()).into_iter().map(|image| image.name.clone()).collect();
        if !gone.is_empty() {
            let mut words: Vec<OsString> = ["forget", "--prune"].map(OsString::from).into();
            words.extend(all.iter().filter(|(image, _)| gone.contains(&image.name)).map(|(_, id)| id.into()));
            self.done("forget", words)?;
        }
        Ok(Expired { names: gone, doubt: None })
    }

    fn cat(&self, when: &When, path: &RawText, say: ReplySender) -> Result<SnapshotReply, String> {
        let (_, id) = self.pick(when)?;
        let full = RawText([b"/", &path.0[..]].concat());
        let words = |head: &[&str]| {
            let head = head.iter().map(OsString::from);
            head.chain([OsString::from(&id), full.as_os().into()]).collect::<Vec<OsString>>()
        };
        let nodes = self
            .lines("ls", words(&["ls", "--json", "--no-lock"]), |line| serde_json::from_str::<ResticNode>(line).ok())?;
        let is_file = |node: &ResticNode| node.path.as_bytes() == full.0 && node.kind == "file";
        if !nodes.iter().any(is_file) {
            return Err(format!("{} is not a regular file of this image", path.display()));
        }
        let mut each = |piece: &[u8]| say(SnapshotReply::Piece(RawText(piece.to_vec())));
        let ended = self.run(words(&["dump", "--no-lock"]), Path::new("/"), &mut each);
        ended.map_err(|e| format!("restic dump: {e}"))?.ok("dump").map(|()| SnapshotReply::Done)
    }

    fn diff(&self, from: &When, to: &When, say: ReplySender) -> Result<SnapshotReply, String> {
        let (from, to) = (self.pick(from)?.1, self.pick(to)?.1);
        let words = ["diff", "--metadata", "--no-lock", &from, &to].map(OsString::from).into();
        let read = |line: &str| words::difference(line).map(|(what, path)| (what, path.to_string()));
        for (what, path) in self.lines("diff", words, read)? {
            let what = match what {
                '+' => ChangeKind::New,
                '-' => ChangeKind::Gone,
                'U' => ChangeKind::Touched,
                _ => ChangeKind::Changed,
            };
            let told = say(SnapshotReply::Change(EntryChange { what, path: path.as_str().into() }));
            told.map_err(|e| format!("sending the answer: {e}"))?;
        }
        Ok(SnapshotReply::Done)
    }

    /// Restores to a scratch folder first, because restic replaces existing files.
    fn restore(&self, order: &Restore) -> Result<crate::ask::Restored, Refused> {
        let (image, id) = self.pick(&order.when)?;
        let near = Some(order.into.path.to_path()).filter(|path| order.into.host.is_none() && path.is_dir());
        let scratch = self.scratch(near.unwrap_or_else(|| "/var/tmp".into()))?;
        let mut words: Vec<OsString> = vec!["restore".into(), id.into(), "--target".into(), scratch.path().into()];
        if !order.below.0.is_empty() {
            let pattern = RawText([b"/", &plain(&order.below.0)[..]].concat());
            words.push(with("--include=", &pattern));
        }
        self.done("restore", words)?;
        like(scratch.path(), order.into.path.as_path())?;
        let place = ImagePart::below(scratch.path(), &order.below, &image.name)?;
        let Restore { into, overwrite, trial, .. } = order;
        let write = Destination { into, overwrite: *overwrite, trial: *trial, ssh: self.it.ssh.as_deref() };
        // The host that gets the files runs restic.
        restore::write_back(&place, image.name, &write, &mut NoRecipient, self.reins)
    }

    fn scratch(&self, near: PathBuf) -> Result<tempfile::TempDir, String> {
        let made = tempfile::Builder::new().prefix(".homing-restic-").tempdir_in(&near);
        made.map_err(|e| format!("making a folder for the restored files in {}: {e}", near.display()))
    }

    /// Checks the repository, and restores files; restic compares their bytes.
    fn verify(&self, when: &When, files: usize) -> Result<Proof, String> {
        let (image, id) = self.pick(when)?;
        self.done("check", vec!["check".into()])?;
        let words = ["ls", "--json", "--no-lock", &id].map(OsString::from).into();
        let nodes = self.lines("ls", words, |line| serde_json::from_str::<ResticNode>(line).ok())?;
        // restic does not print a name that is not UTF-8 unchanged.
        let fits = |node: &ResticNode| node.kind == "file" && !node.path.contains(char::REPLACEMENT_CHARACTER);
        let all: Vec<ResticNode> = nodes.into_iter().filter(fits).collect();
        let sample = crate::verify::chosen(all, files.min(SAMPLE));
        let scratch = self.scratch("/var/tmp".into())?;
        let mut words: Vec<OsString> = ["restore", "--verify", &id, "--target"].map(OsString::from).into();
        words.push(scratch.path().into());
        let include = |node: &ResticNode| with("--include=", &RawText(plain(node.path.as_bytes())));
        words.extend(sample.iter().map(include));
        if !sample.is_empty() {
            self.done("restore", words)?;
        }
        let path = |node: &ResticNode| scratch.path().join(node.path.trim_start_matches('/'));
        let back = |node: &ResticNode| {
            let meta = fs::symlink_metadata(path(node));
            meta.is_ok_and(|meta| meta.len() == node.size && meta.mtime() == node.mtime.as_second())
        };
        Ok(Proof {
            image: image.name,
            at: Timestamp::now(),
            files: sample.len() as u64,
            bytes: sample.iter().map(|node| node.size).sum(),
            bad: sample.iter().filter(|node| !back(node)).map(|node| node.path.as_str().into()).collect(),
            ..Proof::default()
        })
    }
}
