//! Reading images back: one file's bytes, what differs, and files to a place.

use crate::ask::{Restore, Restored};
use crate::image::Image;
use crate::manifest::{self, Change, Entry, NAME, What};
use crate::plan::SSH;
use crate::rsync::{self, At, End, end};
use crate::run::{self, Reins};
use crate::sender::POLITE_RSYNC;
use crate::vault::{Refused, Vault};
use crate::walk;
use homing_model::RawText;
use jiff::tz::TimeZone;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

/// Bytes of a file that are told at once.
const PIECE: usize = 1 << 16;
/// Names that are told of what was left as it is.
const TOLD: usize = 20;

/// Tells the bytes of a file.
pub fn cat(tree: &Path, path: &RawText, each: &mut dyn FnMut(RawText) -> io::Result<()>) -> Result<(), String> {
    let doing = |e: io::Error| format!("{}: {}", path.display(), found_no(&e));
    let root = walk::folder(tree).map_err(doing)?;
    let mut file = File::from(walk::below(&root, path.as_path(), OFlags::RDONLY | OFlags::NONBLOCK).map_err(doing)?);
    if !file.metadata().map_err(doing)?.is_file() {
        return Err(format!("{} is no regular file", path.display()));
    }
    let mut bytes = vec![0; PIECE];
    loop {
        match file.read(&mut bytes).map_err(doing)? {
            0 => return Ok(()),
            n => each(RawText(bytes[..n].to_vec())).map_err(doing)?,
        }
    }
}

fn found_no(e: &io::Error) -> String {
    match e.raw_os_error() {
        Some(libc::ENOENT) => "it is not in this image".into(),
        Some(libc::ELOOP) => "a symbolic link, or one is on the way to it; links are not followed in an image".into(),
        _ => e.to_string(),
    }
}

/// Tells how two images differ below a path.
pub fn between(
    vault: &Vault,
    before: &Image,
    after: &Image,
    below: &RawText,
    each: &mut dyn FnMut(Change) -> io::Result<()>,
) -> Result<(), String> {
    let entries = |image: &Image| {
        let path = vault.folder(&image.name).join(NAME);
        let file = File::open(&path).map_err(|e| format!("{}: {e}; images of dirvish have none", path.display()))?;
        Ok::<_, String>(manifest::read(BufReader::new(file)))
    };
    let inside = |entry: &io::Result<Entry>| match entry {
        Ok(entry) => entry.path.as_path().starts_with(below.as_path()),
        Err(_) => true,
    };
    let (old, new) = (entries(before)?.filter(inside), entries(after)?.filter(inside));
    manifest::compare(old, new, each).map_err(|e| format!("comparing {} with {}: {e}", before.name, after.name))
}

/// Tells how a folder as it is now differs from an image.
pub fn from_now(
    vault: &Vault,
    image: &Image,
    below: &RawText,
    now: &At,
    ssh: Option<&str>,
    reins: &Reins,
    each: &mut dyn FnMut(Change) -> io::Result<()>,
) -> Result<(), String> {
    let place = Place::of(vault, image, below)?;
    let mut words = rsync::restore_words(None, &place.name, now, ssh.unwrap_or(SSH), true);
    words.insert(0, "--delete".into());
    // Patterns with a slash in front mean the whole source; dirvish does not keep them.
    let patterns = vault.folder(&image.name).join("exclude");
    if place.name.0 == b"." && patterns.exists() {
        let mut word = std::ffi::OsString::from("--exclude-from=");
        word.push(patterns);
        words.insert(0, word);
    }
    place.run(words, now, reins, &mut |code, path| match difference(code) {
        Some(what) => each(Change { what, path }),
        None => Ok(()),
    })
}

/// What rsync's word of an entry means for somebody who has the image and looks at the present.
fn difference(code: &str) -> Option<What> {
    let bytes = code.as_bytes();
    let touched = |from: usize| bytes.get(from..).is_some_and(|rest| rest.iter().any(|b| *b != b'.' && *b != b' '));
    match bytes.first_chunk::<2>() {
        _ if code.starts_with("*deleting") => Some(What::New),
        _ if code.ends_with("+++++++++") => Some(What::Gone),
        Some(b">f" | b"<f" | b"cL" | b"cD" | b"cS") => Some(What::Changed),
        // A folder's time changes with what is in it.
        Some(b".d") => touched(5).then_some(What::Touched),
        Some(_) => touched(2).then_some(What::Touched),
        None => None,
    }
}

/// Writes files back. Without `overwrite` nothing is touched that is there.
pub fn restore(order: &Restore, reins: &Reins, zone: &TimeZone) -> Result<Restored, Refused> {
    let vault = Vault::open(&order.site)?;
    let image = vault.pick(&order.when, zone)?;
    let place = Place::of(&vault, &image, &order.below)?;
    let write = Destination { into: &order.into, overwrite: order.overwrite, ssh: order.ssh.as_deref() };
    write_back(&place, image.name, &write, reins)
}

/// Where files go, and how.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The folder that gets them.
    pub into: &'a At,
    /// Replace what is there.
    pub overwrite: bool,
    /// ssh and its options.
    pub ssh: Option<&'a str>,
}

/// The same of a tree, wherever it lies, with what is in the image of this name.
pub fn write_back(place: &Place, image: String, write: &Destination, reins: &Reins) -> Result<Restored, Refused> {
    let Destination { into, overwrite, ssh } = *write;
    let ssh = ssh.unwrap_or(SSH);
    let mut told = Restored { image, ..Restored::default() };
    if overwrite {
        let words = rsync::restore_words(None, &place.name, into, ssh, false);
        let mut count = |code: &str, _: RawText| {
            told.written += u64::from(!code.starts_with('.'));
            Ok(())
        };
        place.run(words, into, reins, &mut count)?;
        return Ok(told);
    }
    let kept = |e: io::Error| format!("the list of what is to be restored: {e}");
    let mut list = tempfile::NamedTempFile::new().map_err(kept)?;
    let trial = rsync::restore_words(None, &place.name, into, ssh, true);
    place.run(trial, into, reins, &mut |code, path| {
        match difference(code) {
            Some(What::Gone) => {
                told.written += 1;
                // A name that begins with # would be taken for a comment.
                list.write_all(b"./")?;
                list.write_all(&path.0)?;
                list.write_all(b"\0")?;
            }
            Some(What::Changed) => {
                told.left += 1;
                if told.names.len() < TOLD {
                    told.names.push(path);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    if told.written > 0 {
        let words = rsync::restore_words(Some(list.path()), &place.name, into, ssh, false);
        place.run(words, into, reins, &mut |_, _| Ok(()))?;
    }
    Ok(told)
}

/// What is meant of an image: the open folder that it is in, and its name there.
pub struct Place {
    folder: OwnedFd,
    /// Its name; `.` for the whole image.
    pub name: RawText,
}

impl Place {
    /// Finds it; no link is followed on the way.
    pub fn of(vault: &Vault, image: &Image, below: &RawText) -> Result<Place, String> {
        Place::below(&vault.folder(&image.name).join("tree"), below, &image.name)
    }

    /// The same in a tree that holds what is in the image of this name.
    pub fn below(tree: &Path, below: &RawText, image: &str) -> Result<Place, String> {
        let doing = |e: io::Error| format!("{} of {image}: {}", below.display(), found_no(&e));
        let root = walk::folder(tree).map_err(doing)?;
        let path = below.as_path();
        let Some(name) = path.file_name() else { return Ok(Place { folder: root, name: ".".into() }) };
        // It has to be there, of whatever kind.
        let parent = walk::below(&root, path.parent().unwrap_or(Path::new("")), OFlags::DIRECTORY).map_err(doing)?;
        rustix::fs::statat(&parent, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).map_err(|e| doing(e.into()))?;
        Ok(Place { folder: parent, name: name.into() })
    }

    /// Runs rsync in that folder; tells `each` its word of each entry and the entry's name.
    pub fn run(
        &self,
        mut words: Vec<std::ffi::OsString>,
        to: &At,
        reins: &Reins,
        each: &mut dyn FnMut(&str, RawText) -> io::Result<()>,
    ) -> Result<(), String> {
        if to.host.is_some() {
            words.insert(0, format!("--rsync-path={POLITE_RSYNC}").into());
        }
        let doing = |e: io::Error| format!("rsync to {}: {e}", to.word().to_string_lossy());
        let errors = tempfile::tempfile().map_err(doing)?;
        let mut command = run::rsync(words);
        command.current_dir(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        command.stdout(Stdio::piped()).stderr(errors.try_clone().map_err(doing)?);
        let mut running = run::start(&mut command, None, reins).map_err(doing)?;
        let said = running.child.stdout.take().map(BufReader::new);
        for line in said.into_iter().flat_map(|said| said.split(b'\n')) {
            let line = line.map_err(doing)?;
            if let Some((code, name)) = itemized(&line) {
                each(&code, name).map_err(doing)?;
            }
        }
        let status = running.wait().map_err(doing)?;
        let mut text = Vec::new();
        io::Seek::rewind(&mut &errors).and_then(|()| (&errors).read_to_end(&mut text)).map_err(doing)?;
        let text = String::from_utf8_lossy(&text);
        match end(status, &text) {
            End::Whole => Ok(()),
            End::Full => Err(format!("{} has no room left", to.word().to_string_lossy())),
            End::Incomplete => Err(format!("not all was written to {}: {}", to.word().to_string_lossy(), text.trim())),
            End::Failed(why) => Err(why),
        }
    }
}

/// rsync's word of an entry, and its name without the slash of a folder.
fn itemized(line: &[u8]) -> Option<(String, RawText)> {
    let (code, name) = line.split_at_checked(11)?;
    let code = std::str::from_utf8(code).ok()?.to_string();
    let first = *code.as_bytes().first()?;
    let name = name.strip_prefix(b" ").filter(|_| b"<>ch.*".contains(&first))?;
    let mut name = rsync::name(name);
    if name.0.ends_with(b"/") {
        name.0.pop();
    }
    Some((code, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rsyncs_words_are_seen_from_the_image() {
        for (line, what, name) in [
            (">f+++++++++ a b", Some(What::Gone), "a b"),
            ("cd+++++++++ d/", Some(What::Gone), "d"),
            (">f.st...... a", Some(What::Changed), "a"),
            (".f...p..... a", Some(What::Touched), "a"),
            (".d..t...... d/", None, "d"),
            (".d..tp..... d/", Some(What::Touched), "d"),
            ("*deleting   x/y", Some(What::New), "x/y"),
            ("cLc.t...... l", Some(What::Changed), "l"),
        ] {
            let (code, path) = itemized(line.as_bytes()).unwrap();
            assert_eq!((difference(&code), path.display().as_str()), (what, name), "{line}");
        }
        assert_eq!(itemized(b"sending incremental file list"), None);
    }
}
