//! A part of an image: read without following a link, and passed to rsync by its open folder.

use crate::destination::RestoreEntry;
use crate::image::Image;
use crate::rsync::{self, CopyOutcome, HostFolder, end};
use crate::run::{self, Reins};
use crate::sender::POLITE_RSYNC;
use crate::vault::Vault;
use crate::walk::{self, found_no};
use homing_model::RawText;
use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

/// The most errors of a walk that are kept.
const KEPT: usize = 20;

/// A part of an image: the open folder that it is in, and its name there.
pub struct ImagePart {
    folder: OwnedFd,
    /// Its name; `.` for the whole image.
    pub name: RawText,
}

impl ImagePart {
    /// Finds it in an image; no link is followed on the way.
    pub fn of(vault: &Vault, image: &Image, below: &RawText) -> Result<ImagePart, String> {
        ImagePart::below(&vault.folder(&image.name).join("tree"), below, &image.name)
    }

    /// The same in a tree with the content of the image of this name.
    pub fn below(tree: &Path, below: &RawText, image: &str) -> Result<ImagePart, String> {
        let doing = |e: io::Error| format!("{} of {image}: {}", below.display(), found_no(&e));
        let root = walk::folder(tree).map_err(doing)?;
        let path = below.as_path();
        let Some(name) = path.file_name() else { return Ok(ImagePart { folder: root, name: ".".into() }) };
        // It has to exist; any kind will do.
        let parent = walk::below(&root, path.parent().unwrap_or(Path::new("")), OFlags::DIRECTORY).map_err(doing)?;
        rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| doing(e.into()))?;
        Ok(ImagePart { folder: parent, name: name.into() })
    }

    /// Returns one entry, by its path as rsync prints it.
    ///
    /// # Errors
    /// Why it cannot be examined.
    pub fn entry(&self, path: &RawText) -> io::Result<RestoreEntry> {
        let open = walk::below(&self.folder, path.as_path(), OFlags::PATH)?;
        let stat = rustix::fs::fstat(&open)?;
        // The target of an open link is read with an empty name (readlink(2)).
        RestoreEntry::of(path, &stat, &open, b"")
    }

    /// Passes all entries to `each`, a folder before its entries. Errors of reading go to `unread`.
    pub fn entries(
        &self,
        each: &mut dyn FnMut(RestoreEntry) -> Result<(), String>,
        unread: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut ended = None;
        let mut one = |path: &RawText, stat: &Stat, folder: &OwnedFd, name: &[u8]| {
            let entry = RestoreEntry::of(path, stat, folder, name)?;
            each(entry).map_err(|why| {
                ended = Some(why);
                io::Error::other("the restore ended")
            })
        };
        let mut lost = |path: &RawText, e: io::Error| {
            if unread.len() < KEPT {
                unread.push(format!("{} of the image: {e}", path.display()));
            }
            Ok(())
        };
        let whole = self.name.0 == b".";
        let path = if whole { RawText(Vec::new()) } else { self.name.clone() };
        let walked = (|| {
            let stat = rustix::fs::statat(&self.folder, &self.name.0[..], AtFlags::SYMLINK_NOFOLLOW)?;
            one(&path, &stat, &self.folder, &self.name.0)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Ok(());
            }
            match walk::below(&self.folder, self.name.as_path(), OFlags::DIRECTORY) {
                Ok(open) => walk::inside(&open, &path, &mut one, &mut lost),
                Err(e) => lost(&path, e),
            }
        })();
        match (ended, walked) {
            (Some(why), _) => Err(why),
            (None, walked) => walked.map_err(|e: io::Error| format!("reading {}: {e}", path.display())),
        }
    }

    /// Runs rsync in that folder. Passes rsync's code and the name of each entry to `each`. Returns rsync's errors if
    /// some entries failed.
    pub fn run(
        &self,
        mut words: Vec<OsString>,
        to: &HostFolder,
        reins: &Reins,
        each: &mut dyn FnMut(&str, RawText) -> io::Result<()>,
    ) -> Result<Option<String>, String> {
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
            CopyOutcome::Whole => Ok(None),
            CopyOutcome::Full => Err(format!("the disk of {} is full", to.word().to_string_lossy())),
            CopyOutcome::Incomplete => Ok(Some(text.into_owned())),
            CopyOutcome::Failed(why) => Err(why),
        }
    }
}

/// Returns rsync's code of an entry, and its name without the slash of a folder.
pub fn itemized(line: &[u8]) -> Option<(String, RawText)> {
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
