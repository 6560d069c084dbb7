//! The worker's program, with the hash by which hosts keep it. Most hosts have
//! it: it is read only for one that has not, and hashed once, since either is a
//! noticeable part of a run's start on a slow or busy host.

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A program to copy.
pub struct Payload {
    /// Bytes.
    pub size: u64,
    /// Its SHA-256 in lower-case hex.
    pub sha256: String,
    /// Open from the first host to the last: all must be given the same bytes,
    /// even if another program takes its place meanwhile.
    file: Mutex<File>,
    read: Mutex<Option<Arc<Vec<u8>>>>,
    cache: Option<PathBuf>,
}

impl Payload {
    /// `cache` is the folder in which its hash is kept for the next time.
    fn new(exe: &Path, cache: Option<PathBuf>) -> io::Result<Payload> {
        let mut file = File::open(exe)?;
        let meta = file.metadata()?;
        let (known, mut read) = (cache.as_deref().and_then(|dir| remembered(dir, &meta)), None);
        let sha256 = match known {
            Some(sha256) => sha256,
            None => {
                let bytes = whole(&mut file)?;
                let sha256 = hash(&bytes);
                read = Some(Arc::new(bytes));
                // Without it the next run hashes again.
                cache.as_deref().map(|dir| remember(dir, &meta, &sha256));
                sha256
            }
        };
        Ok(Payload { size: meta.len(), sha256, file: Mutex::new(file), read: Mutex::new(read), cache })
    }

    /// All of it.
    pub fn bytes(&self) -> io::Result<Arc<Vec<u8>>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = &*read {
            return Ok(bytes.clone());
        }
        let bytes = whole(&mut self.file.lock().unwrap_or_else(PoisonError::into_inner))?;
        if hash(&bytes) != self.sha256 {
            // Written to in place, and its times set back.
            let _ = self.cache.as_deref().map(|dir| fs::remove_file(dir.join(KEPT)));
            return Err(io::Error::other("homing's own program is not what it was in the last run; run it again"));
        }
        Ok(read.insert(Arc::new(bytes)).clone())
    }
}

fn whole(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Name of the file with the hash of the program that was last used.
const KEPT: &str = "program.sha256";

/// What changes whenever the content of a file does, unless somebody sets clocks back.
fn identity(meta: &Metadata) -> String {
    let (dev, ino, size) = (meta.dev(), meta.ino(), meta.size());
    format!("{dev} {ino} {size} {}.{} {}.{}", meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec())
}

/// Its hash, if the program has not changed since that was kept, by this user.
fn remembered(dir: &Path, program: &Metadata) -> Option<String> {
    let nofollow = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nofollow).open(dir.join(KEPT)).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    let (sha256, of) = text.trim_end().split_once(' ')?;
    let plain = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (plain && of == identity(program)).then(|| sha256.to_string())
}

fn remember(dir: &Path, program: &Metadata, sha256: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let made = dir.join(format!(".{KEPT}.{}", std::process::id()));
    let _ = fs::remove_file(&made);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made)?;
    io::Write::write_all(&mut file, format!("{sha256} {}\n", identity(program)).as_bytes())?;
    fs::rename(&made, dir.join(KEPT)).inspect_err(|_| drop(fs::remove_file(&made)))
}

fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("homing"))
}

/// SHA-256 of the program `exe`, by which a host that a channel was opened to keeps it.
pub fn program_hash(exe: &Path) -> io::Result<String> {
    Ok(load(exe)?.sha256.clone())
}

/// The program `exe`, once per process: a run opens one channel per host.
pub fn load(exe: &Path) -> io::Result<Arc<Payload>> {
    static LOADED: Mutex<Option<HashMap<PathBuf, Arc<Payload>>>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    if let Some(payload) = loaded.get(exe) {
        return Ok(payload.clone());
    }
    let payload = Arc::new(Payload::new(exe, cache())?);
    loaded.insert(exe.to_path_buf(), payload.clone());
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn the_hash_is_what_sha256sum_prints_and_is_kept_until_the_program_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (exe, kept) = (dir.path().join("exe"), dir.path().join("cache/homing"));
        fs::write(&exe, "abc").unwrap();
        let load = || Payload::new(&exe, Some(kept.clone())).unwrap();
        assert_eq!((load().sha256.as_str(), load().size), (ABC, 3));
        // A hash that cannot be its own shows that the kept one is taken.
        let text = fs::read_to_string(kept.join(KEPT)).unwrap();
        fs::write(kept.join(KEPT), text.replace(ABC, &"0".repeat(64))).unwrap();
        let wrong = load();
        assert_eq!(wrong.sha256, "0".repeat(64));
        assert!(wrong.bytes().is_err(), "what is sent is looked at");
        assert_eq!(load().sha256, ABC, "and then forgotten");
        fs::write(&exe, "abcd").unwrap();
        assert_ne!(load().sha256, ABC);
        assert_eq!(**load().bytes().unwrap(), *b"abcd");
    }

    #[test]
    fn a_hash_that_others_could_have_written_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("exe");
        fs::write(&exe, "abc").unwrap();
        let meta = exe.metadata().unwrap();
        remember(dir.path(), &meta, ABC).unwrap();
        assert_eq!(remembered(dir.path(), &meta).as_deref(), Some(ABC));
        fs::set_permissions(dir.path().join(KEPT), fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(remembered(dir.path(), &meta), None);
    }
}
