//! Reads and writes small files of a shared folder. Neither a crash nor another user can make a reader accept half of
//! one.

use homing_os::folder::open_plain;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file that a runner locks, in its user's folder.
pub(crate) const RUNNER_LOCK: &str = "runner.lock";

/// The longest record that homing reads. A longer one is another user's mischief.
pub(crate) const LONGEST: u64 = 16 << 20;

/// Returns the id of this boot of the machine.
pub fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    // The tests restart no machine; they set another id instead.
    let told = || std::env::var("HOMING_QUEUE_BOOT").ok().filter(|_| cfg!(debug_assertions));
    BOOT.get_or_init(|| told().unwrap_or_else(homing_os::names::boot_id)).clone()
}

/// Returns this machine's name.
pub fn host_name() -> String {
    homing_os::names::own_name()
}

/// Returns the user for whom this process acts.
pub fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the login name of a user id, or the number if it has none.
pub fn user_name(uid: u32) -> String {
    homing_os::names::account(uid).map_or_else(|| uid.to_string(), |account| account.name)
}

/// Returns a record and the user who wrote it; `None` if it cannot be read.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<(T, u32)> {
    read_short(path, LONGEST)
}

/// Does the same for a record of at most `longest` bytes, so that another user's record cannot cost much.
pub(crate) fn read_short<T: DeserializeOwned>(path: &Path, longest: u64) -> Option<(T, u32)> {
    let file = open_plain(path).ok()?;
    let meta = file.metadata().ok().filter(|m| m.len() <= longest)?;
    let mut text = Vec::new();
    file.take(longest).read_to_end(&mut text).ok()?;
    Some((serde_json::from_slice(&text).ok()?, meta.uid()))
}

/// Returns when a folder was last changed, ns since the epoch, and whether that was long enough ago. If so, its
/// content as read now is current until that time changes. The kernel's time for files moves in steps.
pub(crate) fn changed(meta: &fs::Metadata) -> (i64, bool) {
    const STEP_NS: i64 = 50_000_000;
    let at = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
    (at, (STEP_NS..i64::MAX).contains(&(homing_os::clock::system_ns() - at)))
}

/// Writes a record under another name, then renames it. A reader sees all of it or nothing, also after a power cut.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T, mode: u32) -> io::Result<()> {
    let (part, file) = write_part(path, value, mode)?;
    file.sync_data()?;
    step("record-written");
    fs::rename(part, path)
}

/// Does the same for frequent records. Every reader sees it whole; the kernel writes it to the disk later, or when
/// the file is synced. After a power cut an incomplete one is no record at all.
pub(crate) fn write_json_soon<T: Serialize>(path: &Path, value: &T, mode: u32) -> io::Result<File> {
    let (part, file) = write_part(path, value, mode)?;
    step("record-written");
    fs::rename(part, path)?;
    Ok(file)
}

fn write_part<T: Serialize>(path: &Path, value: &T, mode: u32) -> io::Result<(PathBuf, File)> {
    let (part, file) = new_part(path, mode)?;
    fill(&part, &file, &line(value)?)?;
    Ok((part, file))
}

/// Writes the content of a part. If there is no room, the part is removed, so that it takes none.
fn fill(part: &Path, file: &File, text: &[u8]) -> io::Result<()> {
    file.write_all_at(text, 0).inspect_err(|_| drop(fs::remove_file(part)))
}

fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Whether a name is that of a record that is being written, or whose writer was killed.
pub(crate) fn is_part(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn new_part(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}", std::process::id()));
    // A killed process of the same number may have left it. It is never written through, because it may be a link.
    let _ = fs::remove_file(&part);
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&part)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    Ok((part, file))
}

/// A record whose room on the disk is taken before its content is known. A disk that fills meanwhile does not lose
/// it.
pub(crate) struct Reserved {
    path: PathBuf,
    part: PathBuf,
    file: File,
}

impl Reserved {
    /// The usual block of file systems; a short record fits in it.
    const ROOM: usize = 4096;

    pub fn new(path: &Path, mode: u32) -> io::Result<Reserved> {
        let (part, file) = new_part(path, mode)?;
        // Not fallocate, which some network file systems lack.
        fill(&part, &file, &[b' '; Reserved::ROOM])?;
        Ok(Reserved { path: path.to_path_buf(), part, file })
    }

    /// Writes the record, whole for every reader; the kernel writes it to the disk later.
    pub fn write<T: Serialize>(self, value: &T) -> io::Result<()> {
        let text = line(value)?;
        self.file.write_all_at(&text, 0)?;
        self.file.set_len(text.len() as u64)?;
        step("record-written");
        fs::rename(&self.part, &self.path)
    }
}

impl Drop for Reserved {
    /// Removes the part, so that an unused record takes no room.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

/// Makes a folder with that mode in spite of the umask; at no moment is its mode wider.
pub(crate) fn make_dir(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Waits until all files are on the disk, at about the cost of one.
pub(crate) fn sync_all(files: &[File]) -> io::Result<()> {
    homing_os::threads::each(files, File::sync_data).into_iter().collect()
}

/// While it lives, root makes files as the user, with the rights of that user alone and without those of root's
/// groups. Anything in the user's folder, a link too, leads no further than the user could go. Other users are not
/// affected.
pub(crate) struct ActAs {
    /// Root's groups, to be restored.
    groups: Option<Vec<rustix::process::Gid>>,
}

/// The group of a user without an account: that of the user nobody.
const NO_GROUP: u32 = 65_534;

/// Begins to act for a user; see [`ActAs`].
pub(crate) fn act_as(uid: u32) -> ActAs {
    let groups = (self::uid() == 0 && uid != 0).then(|| rustix::process::getgroups().unwrap_or_default());
    if groups.is_some() {
        let group = homing_os::names::account(uid).map_or(NO_GROUP, |account| account.group);
        // SAFETY: the list is empty, the numbers are plain. As system calls all three concern this thread only.
        unsafe {
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>());
            libc::setfsgid(group);
            libc::setfsuid(uid);
        }
    }
    ActAs { groups }
}

impl Drop for ActAs {
    fn drop(&mut self) {
        if let Some(groups) = &self.groups {
            let raw: Vec<libc::gid_t> = groups.iter().map(|g| g.as_raw()).collect();
            // SAFETY: the list outlives the call and its length is right; the real user is root, who may.
            unsafe {
                libc::setfsuid(0);
                libc::setfsgid(libc::getegid());
                libc::syscall(libc::SYS_setgroups, raw.len(), raw.as_ptr());
            }
        }
    }
}

static ROLE: OnceLock<&str> = OnceLock::new();

/// Sets the role of this process, for [`step`].
pub(crate) fn play(role: &'static str) {
    let _ = ROLE.set(role);
}

/// Marks a point at which the tests kill the process (`HOMING_QUEUE_DIE=submitter:job-written`), as `kill -9` would.
pub(crate) fn step(name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    let Ok(at) = std::env::var("HOMING_QUEUE_DIE") else { return };
    if at.split_once(':') == Some((ROLE.get().unwrap_or(&"submitter"), name)) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_acts_for_a_user_without_the_rights_of_roots_groups() {
        if uid() != 0 {
            eprintln!("left out: only root can act for others");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "of root's group").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
        let before = rustix::process::getgroups().unwrap();
        {
            let _owner = act_as(61_001);
            assert_eq!(fs::read(&file).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert!(fs::read(&file).is_ok());
        assert_eq!(rustix::process::getgroups().unwrap(), before);
    }
}
