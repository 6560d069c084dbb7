//! Finds the files of runs, in a folder that all users share.

use super::LeaseFolder;
use super::after::Successor;
use super::said::LeaseName;
use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the first folder of this name that all may use, made if there is none. Also returns whether it was made,
/// and a line about folders that were passed over.
pub(super) fn folder(wanted: &Path) -> Result<(PathBuf, bool, Option<String>), String> {
    let (Some(parent), Some(name)) = (wanted.parent(), wanted.file_name().and_then(|name| name.to_str())) else {
        return Err(format!("{} cannot be a folder for leases", wanted.display()));
    };
    let mut passed = None;
    for folder in homing_os::folder::names(parent, name) {
        let made = homing_os::folder::shared::make(&folder).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => {
                format!("{} does not exist, and {} cannot be written", folder.display(), parent.display())
            }
            _ => format!("cannot make {}: {e}", folder.display()),
        })?;
        // Waits for a process that is just making the folder, and does not pass it over: all must find the same
        // folder.
        let _ = homing_os::folder::shared::is_for_all(&folder);
        match unfit(&folder) {
            None => return Ok((folder, made, passed)),
            Some(why) => passed = passed.or(Some(format!("{} {why}, and was skipped", folder.display()))),
        }
    }
    Err(format!("{}; so were all others of that name", passed.unwrap_or_default()))
}

/// Returns why a folder is unfit. Without the sticky bit others could remove a run's file. A folder that is not open
/// to all would shut some users out, and all must find the same one.
pub(super) fn unfit(folder: &Path) -> Option<String> {
    let meta = match fs::symlink_metadata(folder) {
        Ok(meta) => meta,
        Err(e) => return Some(format!("cannot be read: {e}")),
    };
    let (is_link, mode) = (meta.is_symlink(), meta.mode() & 0o7777);
    match (meta.is_dir(), mode) {
        (true, 0o1777) => None,
        (true, _) => Some(format!("is open to {mode:o} and not to all (chmod 1777)")),
        _ if is_link => Some("is a symbolic link".into()),
        _ => Some("is not a folder".into()),
    }
}

/// Returns the server's name as part of a file's name.
pub(super) fn plain(server: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "-.:".contains(c) { c.to_ascii_lowercase() } else { '_' };
    server.chars().take(64).map(fits).collect()
}

/// Makes the run's own file, which no other process opens to write.
pub(super) fn own_file(place: &LeaseFolder, next: Option<&Successor>) -> io::Result<(String, File)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}.{number}", on_this_host(place, next), std::process::id());
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o644).open(place.folder.join(&name)) {
            // A file that was left behind, or that of another user.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 1 << 16 => {}
            Err(e) => return Err(e),
            // Others must be able to query its locks, whatever the umask is. With the right mode already, no chmod
            // locks the inode.
            Ok(file) if file.metadata()?.mode() & 0o777 == 0o644 => return Ok((name, file)),
            Ok(file) => return file.set_permissions(Permissions::from_mode(0o644)).map(|()| (name, file)),
        }
    }
}

/// Returns how names of files from this host begin: `nas@h.`, and in a line `nas@h.line.`.
fn on_this_host(place: &LeaseFolder, next: Option<&Successor>) -> String {
    let host = plain(&homing_os::names::own_name());
    let line = next.map_or(String::new(), |next| format!("{}.", plain(&next.line)));
    format!("{}@{host}.{line}", place.server)
}

/// Whether a file is that of an earlier process of the line on this host.
pub(super) fn is_before(place: &LeaseFolder, next: &Successor, stem: &str) -> bool {
    let rest = stem.strip_prefix(&on_this_host(place, Some(next)));
    let pid = rest.and_then(|rest| rest.split_once('.')).map(|(pid, _)| pid);
    pid.is_some_and(|pid| pid != std::process::id().to_string())
}

/// A file of a run.
pub(super) struct LeaseFile {
    /// The constant part of its name.
    pub(super) stem: String,
    /// The data in its name, if it publishes by names.
    pub(super) named: Option<LeaseName>,
    pub(super) entry: DirEntry,
}

impl LeaseFile {
    /// Whether it is a regular file of this user, and not a link to one.
    pub(super) fn is_own(&self) -> bool {
        let meta = fs::symlink_metadata(self.entry.path());
        meta.is_ok_and(|meta| meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw())
    }
}

/// Returns each file once, even if it is just getting another name.
pub(super) fn once(all: Vec<LeaseFile>) -> impl Iterator<Item = LeaseFile> {
    let mut files: BTreeMap<(String, u64), LeaseFile> = BTreeMap::new();
    for found in all {
        let key = (found.stem.clone(), found.entry.ino());
        let before = files.get(&key).and_then(|before| before.named);
        let named = found.named.map(|named| before.map_or(named, |before| named.with(before)));
        // Of a name without data and one with data, the latter is newer.
        if named.is_some() || before.is_none() {
            files.insert(key, LeaseFile { named, ..found });
        }
    }
    files.into_values()
}

/// Returns the files of this server's runs.
pub(super) fn files(place: &LeaseFolder) -> io::Result<Vec<LeaseFile>> {
    let of_server = |name: &String| name.strip_prefix(&place.server).is_some_and(|rest| rest.starts_with('@'));
    let mut all = Vec::new();
    for entry in fs::read_dir(&place.folder)? {
        let entry = entry?;
        let Some(name) = entry.file_name().into_string().ok().filter(of_server) else { continue };
        let (stem, named) = LeaseName::of(&name).map_or((name.as_str(), None), |(stem, named)| (stem, Some(named)));
        all.push(LeaseFile { stem: stem.into(), named, entry });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::said::LeaseRecord;
    use super::*;

    #[test]
    fn a_file_that_gets_another_name_while_it_is_looked_for_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let place = LeaseFolder { folder: dir.path().into(), server: "nas".into(), limit: None, unfit: None };
        let named =
            |held, beat| dir.path().join(LeaseRecord { held, ..LeaseRecord::default() }.named("nas@h.1.0", beat));
        let other = dir.path().join("nas@h.1.0+2+0+1");
        fs::write(dir.path().join("nas@h.1.0"), "").unwrap();
        fs::hard_link(dir.path().join("nas@h.1.0"), named(3, 9)).unwrap();
        fs::hard_link(named(3, 9), named(1, 10)).unwrap();
        fs::write(&other, "").unwrap();
        let mut held: Vec<_> = once(files(&place).unwrap()).map(|f| (f.named.unwrap().record.held, f.stem)).collect();
        held.sort();
        assert_eq!(held, [(2, "nas@h.1.0".to_string()), (3, "nas@h.1.0".to_string())], "another's file hides none");
    }
}
