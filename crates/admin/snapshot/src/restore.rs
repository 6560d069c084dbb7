//! Reads images back: the bytes of one file, the differences, and files to a folder.

use crate::ask::{Obstacle, Restore, Restored, StagedFolder, Staging};
use crate::destination::{self, Examiner, Presence, RestoreEntry};
use crate::image::Image;
use crate::manifest::{self, ChangeKind, EntryChange, ImageEntry, NAME};
use crate::place::ImagePart;
use crate::plan::SSH;
use crate::rsync::{self, HostFolder, RestoreList};
use crate::run::Reins;
use crate::vault::{Refused, Vault};
use crate::walk::{self, found_no};
use homing_model::RawText;
use jiff::tz::TimeZone;
use recipient::public;
use rustix::fs::OFlags;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use tops::Tops;

pub use recipient::{LocalRecipient, NoRecipient, Recipient};

/// Bytes of a file that are sent at once.
const PIECE: usize = 1 << 16;
/// The most names that are reported of entries left as they are.
const TOLD: usize = 20;

/// Sends the bytes of a file to `each`.
pub fn cat(tree: &Path, path: &RawText, each: &mut dyn FnMut(RawText) -> io::Result<()>) -> Result<(), String> {
    let doing = |e: io::Error| format!("{}: {}", path.display(), found_no(&e));
    let root = walk::folder(tree).map_err(doing)?;
    let mut file = File::from(walk::below(&root, path.as_path(), OFlags::RDONLY | OFlags::NONBLOCK).map_err(doing)?);
    if !file.metadata().map_err(doing)?.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    let mut bytes = vec![0; PIECE];
    loop {
        match file.read(&mut bytes).map_err(doing)? {
            0 => return Ok(()),
            n => each(RawText(bytes[..n].to_vec())).map_err(doing)?,
        }
    }
}

/// Reports how two images differ below a path.
pub fn between(
    vault: &Vault,
    before: &Image,
    after: &Image,
    below: &RawText,
    each: &mut dyn FnMut(EntryChange) -> io::Result<()>,
) -> Result<(), String> {
    let entries = |image: &Image| {
        let path = vault.folder(&image.name).join(NAME);
        let file =
            File::open(&path).map_err(|e| format!("{}: {e}; images of dirvish have no manifest", path.display()))?;
        Ok::<_, String>(manifest::read(BufReader::new(file)))
    };
    let inside = |entry: &io::Result<ImageEntry>| match entry {
        Ok(entry) => entry.path.as_path().starts_with(below.as_path()),
        Err(_) => true,
    };
    let (old, new) = (entries(before)?.filter(inside), entries(after)?.filter(inside));
    manifest::compare(old, new, each).map_err(|e| format!("comparing {} with {}: {e}", before.name, after.name))
}

/// Entries in one request by name: at most a megabyte, with the longest paths of Linux.
const AT_ONCE_BY_NAME: usize = 256;

/// The ways of a comparison to query the folder and to report differences.
pub struct Replies<'a> {
    /// Queries the folder if it is on another host.
    pub judge: Judge<'a>,
    /// Receives the differences.
    pub each: &'a mut dyn FnMut(EntryChange) -> io::Result<()>,
}

/// Reports how a folder as it is now differs from an image.
pub fn from_now(
    vault: &Vault,
    image: &Image,
    below: &RawText,
    now: &HostFolder,
    ssh: Option<&str>,
    reins: &Reins,
    replies: Replies,
) -> Result<(), String> {
    let Replies { judge, each } = replies;
    let place = ImagePart::of(vault, image, below)?;
    let mut words = rsync::restore_words(RestoreList::All, &place.name, now, ssh.unwrap_or(SSH), true);
    words.insert(0, "--delete".into());
    // Patterns with a slash in front apply to the whole source; dirvish does not keep them.
    let patterns = vault.folder(&image.name).join("exclude");
    if place.name.0 == b"." && patterns.exists() {
        let mut word = OsString::from("--exclude-from=");
        word.push(patterns);
        words.insert(0, word);
    }
    // rsync calls an entry new even if an entry of another kind has its name.
    let mut new = Vec::new();
    let ended = place.run(words, now, reins, &mut |code, path| match difference(code) {
        Some(ChangeKind::Gone) => {
            new.push(path);
            Ok(())
        }
        Some(what) => each(EntryChange { what, path }),
        None => Ok(()),
    })?;
    let mut present = Vec::new();
    let mut local = now.host.is_none().then(|| Examiner::open(now.path.as_path())).transpose()?;
    for chunk in new.chunks(AT_ONCE_BY_NAME) {
        let entries = chunk.iter().map(|path| place.entry(path).map_err(|e| format!("{}: {e}", path.display())));
        let entries = entries.collect::<Result<Vec<RestoreEntry>, String>>()?;
        present.extend(match &mut local {
            Some(examiner) => entries.iter().map(|entry| examiner.examine(entry)).collect(),
            None => {
                let names = entries.len();
                counted(names, judge(entries)?)?
            }
        });
    }
    for (path, present) in new.into_iter().zip(present) {
        let is_gone = matches!(present, Presence::Missing | Presence::Beneath | Presence::Unknown(_));
        let what = if is_gone { ChangeKind::Gone } else { ChangeKind::Changed };
        each(EntryChange { what, path }).map_err(|e| format!("sending the answer: {e}"))?;
    }
    let why = |text: String| format!("comparing {} failed in part: {}", now.word().to_string_lossy(), text.trim());
    ended.map_or(Ok(()), |text| Err(why(text)))
}

/// Returns the change that rsync's code of an entry means for a user who has the image and looks at the present.
fn difference(code: &str) -> Option<ChangeKind> {
    let bytes = code.as_bytes();
    let touched = |from: usize| bytes.get(from..).is_some_and(|rest| rest.iter().any(|b| *b != b'.' && *b != b' '));
    match bytes.first_chunk::<2>() {
        _ if code.starts_with("*deleting") => Some(ChangeKind::New),
        _ if code.ends_with("+++++++++") => Some(ChangeKind::Gone),
        Some(b">f" | b"<f" | b"cL" | b"cD" | b"cS") => Some(ChangeKind::Changed),
        // A folder's time changes with its entries.
        Some(b".d") => touched(5).then_some(ChangeKind::Touched),
        Some(_) => touched(2).then_some(ChangeKind::Touched),
        None => None,
    }
}

/// Returns the state of a folder of another host under the names of entries, in their order.
pub type Judge<'a> = &'a mut dyn FnMut(Vec<RestoreEntry>) -> Result<Vec<Presence>, String>;

/// Writes files back. Without `overwrite` it touches no file that is there. `far`: the destination if it is on another
/// host.
pub fn restore(order: &Restore, far: &mut dyn Recipient, reins: &Reins, zone: &TimeZone) -> Result<Restored, Refused> {
    let vault = Vault::open(&order.site)?;
    let image = vault.pick(&order.when, zone)?;
    let place = ImagePart::of(&vault, &image, &order.below)?;
    let Restore { into, overwrite, trial, .. } = order;
    let write = Destination { into, overwrite: *overwrite, trial: *trial, ssh: order.ssh.as_deref() };
    write_back(&place, image.name, &write, far, reins)
}

/// The folder that gets the files, and the options.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The folder that gets them.
    pub into: &'a HostFolder,
    /// Whether to replace files that are there.
    pub overwrite: bool,
    /// Whether to report only the files that would be written.
    pub trial: bool,
    /// ssh and its options.
    pub ssh: Option<&'a str>,
}

impl Destination<'_> {
    /// Returns rsync's arguments for this destination, or for a folder in its place.
    fn words(&self, names: RestoreList, place: &ImagePart, to: &HostFolder) -> Vec<OsString> {
        rsync::restore_words(names, &place.name, to, self.ssh.unwrap_or(SSH), self.trial)
    }
}

/// Restores from any tree with the content of the image of this name.
pub fn write_back(
    place: &ImagePart,
    image: String,
    write: &Destination,
    far: &mut dyn Recipient,
    reins: &Reins,
) -> Result<Restored, Refused> {
    let Destination { into, overwrite, trial, .. } = *write;
    let mut done = Restored { image, trial, ..Restored::default() };
    if overwrite {
        count(place, write.words(RestoreList::All, place, into), into, reins, &mut done)?;
        return Ok(done);
    }
    let kept = |e: io::Error| format!("writing the list of files to restore: {e}");
    let mut list = tempfile::NamedTempFile::new().map_err(kept)?;
    let mut local = None;
    let recipient = match into.host {
        None => local.insert(LocalRecipient::open(into.path.as_path(), !trial, false, reins)?),
        Some(_) => far,
    };
    let (mut tops, mut missing) = (Tops::default(), 0);
    let mut examined = |entries: Vec<RestoreEntry>, done: &mut Restored| {
        let kinds: Vec<_> = entries.iter().map(|entry| (entry.path.clone(), entry.kind)).collect();
        let present = recipient.examine(entries)?;
        let present = counted(kinds.len(), present)?;
        for ((path, wanted), there) in kinds.into_iter().zip(present) {
            match there {
                Presence::Missing => {
                    missing += 1;
                    tops.take(&path);
                    list.write_all(&rsync::listed(&path)).map_err(kept)?;
                }
                Presence::Same => {}
                Presence::Beneath => done.beneath += 1,
                there => {
                    done.left += 1;
                    if done.obstacles.len() < TOLD {
                        done.obstacles.push(Obstacle { path, wanted, there });
                    }
                }
            }
        }
        Ok(())
    };
    let mut chunk = EntryBatch::default();
    let mut unread = Vec::new();
    place.entries(
        &mut |entry| match chunk.add(entry) {
            Some(full) => examined(full, &mut done),
            None => Ok(()),
        },
        &mut unread,
    )?;
    examined(chunk.entries, &mut done)?;
    list.flush().map_err(kept)?;
    if missing > 0 && (trial || !staged(place, write, &tops, recipient, reins, &mut done)?) {
        count(place, write.words(RestoreList::Here(list.path()), place, into), into, reins, &mut done)?;
    }
    done.failed.extend(unread);
    done.failed.truncate(TOLD);
    Ok(done)
}

/// Writes the missing entries into private folders of the destination, and has them moved to their places. Returns
/// false if nothing was written, because rsync logs in to the other host as a user who cannot reach the private
/// folders.
fn staged(
    place: &ImagePart,
    write: &Destination,
    tops: &Tops,
    recipient: &mut dyn Recipient,
    reins: &Reins,
    done: &mut Restored,
) -> Result<bool, String> {
    let Staging { folders, refused } = recipient.stage()?;
    let fetched = folders.iter().try_for_each(|folder| fetch(place, write, folder, &tops.leading, reins, done));
    if write.into.host.is_some() && done.written == 0 && (folders.is_empty() || fetched.is_err()) {
        return Ok(false);
    }
    done.failed.extend(refused);
    // Complete entries are moved even if the disk is full.
    *done = recipient.place(std::mem::take(done))?;
    fetched.map(|()| true)
}

/// Has rsync write to one private folder. `leading`: folders that only contain missing entries, and are not counted.
fn fetch(
    place: &ImagePart,
    write: &Destination,
    folder: &StagedFolder,
    leading: &HashSet<RawText>,
    reins: &Reins,
    done: &mut Restored,
) -> Result<(), String> {
    let to = HostFolder { host: write.into.host.clone(), path: folder.tree.as_path().into() };
    let words = write.words(RestoreList::There(&folder.list), place, &to);
    let mut written = 0;
    let ended = place.run(words, write.into, reins, &mut |code, path| {
        written += u64::from(!code.starts_with('.') && !leading.contains(&path));
        Ok(())
    });
    done.written += written;
    let public = |text: String| public(&text, folder, &write.into.path);
    failures(ended.map_err(public)?.map(public), done);
    Ok(())
}

/// Entries that are examined together.
#[derive(Default)]
struct EntryBatch {
    entries: Vec<RestoreEntry>,
    bytes: usize,
}

impl EntryBatch {
    /// Adds an entry; returns all entries once they are enough for a message.
    fn add(&mut self, entry: RestoreEntry) -> Option<Vec<RestoreEntry>> {
        self.bytes += entry.bytes();
        self.entries.push(entry);
        let full = self.entries.len() >= destination::AT_ONCE || self.bytes >= destination::BYTES_AT_ONCE;
        full.then(|| std::mem::take(self).entries)
    }
}

/// Returns the answers, if there is one for each of `names` entries.
fn counted(names: usize, present: Vec<Presence>) -> Result<Vec<Presence>, String> {
    match present.len() == names {
        true => Ok(present),
        false => Err(format!("homing queried {names} names, but got {} answers", present.len())),
    }
}

/// Runs rsync, and counts the entries that it reports as written. Errors do not stop the other entries.
fn count(
    place: &ImagePart,
    words: Vec<OsString>,
    to: &HostFolder,
    reins: &Reins,
    done: &mut Restored,
) -> Result<(), String> {
    let ended = place.run(words, to, reins, &mut |code, path| {
        if !code.starts_with('.') {
            done.written += 1;
            if done.trial && done.names.len() < TOLD {
                done.names.push(path);
            }
        }
        Ok(())
    })?;
    failures(ended, done);
    Ok(())
}

/// Keeps rsync's errors.
fn failures(ended: Option<String>, done: &mut Restored) {
    let lines = ended.iter().flat_map(|text| text.lines());
    let telling = |line: &&str| !line.trim().is_empty() && !line.starts_with("rsync error:");
    done.failed.extend(lines.filter(telling).take(TOLD).map(String::from));
    if let Some(text) = ended.filter(|_| done.failed.is_empty()) {
        done.failed.push(text.trim().into());
    }
}

mod placement;
mod recipient;
mod staging;
#[cfg(test)]
mod tests;
mod tops;
