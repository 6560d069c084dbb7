//! The worker's program, with the hash by which hosts keep it. It is read only for a host that lacks it, and hashed
//! once. Both take a noticeable part of a run's start on a slow or busy host.

use flate2::Compression;
use flate2::write::GzEncoder;
use homing_os::threads::lock;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

/// The program of the far side, in the folder of the other programs.
const HOST: &str = "homing-host";
/// The program that administers a cluster. It contains all of `homing`.
const ADMIN: &str = "homing-admin";

/// Pause between two checks whether another thread has packed a program.
const LOOK: Duration = Duration::from_millis(20);

/// A program to copy.
pub struct Payload {
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256 in lower-case hex.
    pub sha256: String,
    /// Open from the first host to the last: all must get the same bytes, even if another program replaces it
    /// meanwhile.
    file: Mutex<File>,
    exe: PathBuf,
    read: Mutex<Option<Arc<Vec<u8>>>>,
    packed: Mutex<Option<Arc<Vec<u8>>>>,
    cache: Option<PathBuf>,
}

impl Payload {
    /// Opens a program. `cache` is the folder in which its hash is kept for the next time, under a name derived from
    /// the program's.
    fn new(exe: &Path, cache: Option<PathBuf>) -> io::Result<Payload> {
        let mut file = File::open(exe)?;
        let meta = file.metadata()?;
        let (known, mut read) = (cache.as_deref().and_then(|dir| remembered(&dir.join(kept(exe)), &meta)), None);
        let sha256 = match known {
            Some(sha256) => sha256,
            None => {
                let bytes = whole(&mut file)?;
                let sha256 = hash(&bytes);
                read = Some(Arc::new(bytes));
                // If this fails, the next run hashes again.
                cache.as_deref().map(|dir| remember(&dir.join(kept(exe)), &meta, &sha256));
                sha256
            }
        };
        let (file, read, exe) = (Mutex::new(file), Mutex::new(read), exe.to_path_buf());
        Ok(Payload { size: meta.len(), sha256, file, exe, read, packed: Mutex::default(), cache })
    }

    /// Returns its path on this machine.
    pub fn exe(&self) -> &Path {
        &self.exe
    }

    /// Returns all its bytes.
    pub fn bytes(&self) -> io::Result<Arc<Vec<u8>>> {
        let mut read = lock(&self.read);
        if let Some(bytes) = &*read {
            return Ok(bytes.clone());
        }
        let bytes = whole(&mut lock(&self.file))?;
        if hash(&bytes) != self.sha256 {
            // The program was changed in place, and its times were set back.
            let _ = self.cache.as_deref().map(|dir| fs::remove_file(dir.join(kept(&self.exe))));
            return Err(io::Error::other("homing's own program has changed since the last run; run the command again"));
        }
        Ok(read.insert(Arc::new(bytes)).clone())
    }

    /// Returns all its bytes packed by the fastest gzip: about half of them. The first host that needs them packs,
    /// and the others wait. `alive` is called meanwhile.
    pub fn packed(&self, alive: impl Fn()) -> io::Result<Arc<Vec<u8>>> {
        let mut packed = loop {
            match self.packed.try_lock() {
                Ok(packed) => break packed,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            }
            alive();
        };
        if let Some(bytes) = &*packed {
            return Ok(bytes.clone());
        }
        let mut pack = GzEncoder::new(Vec::new(), Compression::fast());
        for chunk in self.bytes()?.chunks(1 << 20) {
            io::Write::write_all(&mut pack, chunk)?;
            alive();
        }
        Ok(packed.insert(Arc::new(pack.finish()?)).clone())
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

/// Returns the name of the file with the hash of the last program of this name. Programs in one folder have separate
/// files. For a program that was copied here, as for a leader, the usual name would match the bootstrap's pattern for
/// old programs, which it removes.
fn kept(exe: &Path) -> String {
    let name = exe.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let of = [Carried::Worker, Carried::Host, Carried::Program]
        .iter()
        .find_map(|carried| name.strip_prefix(carried.prefix()));
    match of {
        Some(arch) if !arch.contains('-') => format!("{name}.sha256"),
        Some(_) => "carried.sha256".into(),
        None if [HOST, ADMIN].contains(&name) => format!("{name}.sha256"),
        None => "program.sha256".into(),
    }
}

/// The program that is copied to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The worker alone, a small part of the program, if it is beside the program.
    Worker,
    /// The far side without the commands for people, if it is beside the program.
    Host,
    /// The whole program, for other work on a host.
    Program,
}

impl Carried {
    /// Returns the start of its file name; the rest is the `uname -m` of the machines that it is for.
    fn prefix(self) -> &'static str {
        match self {
            Carried::Worker => "worker-",
            Carried::Host => "host-",
            Carried::Program => "program-",
        }
    }
}

/// The machines that this program runs on, as in their `uname -m`; only Linux has workers.
pub const OWN_ARCH: &str = if cfg!(target_os = "linux") { std::env::consts::ARCH } else { "none" };

/// The error that no program for machines of this kind was found.
#[derive(Debug)]
pub struct NoWorker {
    /// Their `uname -m`.
    pub arch: String,
    /// The first path at which it was looked for.
    pub first: PathBuf,
}

/// Returns the program to copy to machines whose `uname -m` is `arch`, which is input from a host. It is looked for
/// beside the program `exe`, in the `lib/homing` of its prefix, and in that of the system. Machines of our own kind
/// can always get `exe` itself. They never get the system's worker: its release would differ from that of a program
/// built here.
pub fn beside(exe: &Path, arch: &str, carried: Carried) -> Result<PathBuf, NoWorker> {
    let own = arch == OWN_ARCH;
    if own && carried == Carried::Program {
        return Ok(exe.to_path_buf());
    }
    let host = exe.with_file_name(HOST);
    if own && carried == Carried::Host && host.is_file() {
        return Ok(host);
    }
    let plain = !arch.is_empty() && arch.len() <= 32 && arch.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let name = format!("{}{}", carried.prefix(), if plain { arch } else { "of-no-name" });
    let folder = exe.parent().unwrap_or(Path::new("/"));
    let places =
        [folder.join(&name), folder.join("../lib/homing").join(&name), Path::new("/usr/lib/homing").join(&name)];
    match places.iter().take(if own { 2 } else { 3 }).find(|place| plain && place.is_file()) {
        Some(found) => Ok(found.clone()),
        None if own => Ok(exe.to_path_buf()),
        None => Err(NoWorker { arch: arch.escape_debug().to_string(), first: places[0].clone() }),
    }
}

/// Returns a text that changes whenever the content of a file does, unless a clock is set back.
fn identity(meta: &Metadata) -> String {
    let (dev, ino, size) = (meta.dev(), meta.ino(), meta.size());
    format!("{dev} {ino} {size} {}.{} {}.{}", meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec())
}

/// Returns the kept hash, if this user kept it and the program has not changed since.
fn remembered(kept: &Path, program: &Metadata) -> Option<String> {
    let nofollow = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nofollow).open(kept).ok()?;
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

fn remember(kept: &Path, program: &Metadata, sha256: &str) -> io::Result<()> {
    homing_os::names::make_folder(kept.parent().unwrap_or(Path::new("/")), 0o700)?;
    let made = kept.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&made);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made)?;
    io::Write::write_all(&mut file, format!("{sha256} {}\n", identity(program)).as_bytes())?;
    fs::rename(&made, kept).inspect_err(|_| drop(fs::remove_file(&made)))
}

fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("homing"))
}

/// Returns the SHA-256 of the whole program for machines whose `uname -m` is `arch`: the hash by which a host keeps
/// it.
pub fn program_hash(exe: &Path, arch: &str) -> io::Result<String> {
    let exe = beside(exe, arch, Carried::Program)
        .map_err(|none| io::Error::other(format!("{} is missing", none.first.display())))?;
    Ok(load(&exe)?.sha256.clone())
}

/// Returns the program `exe`, loaded once per process: a run opens one channel per host.
pub fn load(exe: &Path) -> io::Result<Arc<Payload>> {
    static LOADED: Mutex<Option<HashMap<PathBuf, Arc<Payload>>>> = Mutex::new(None);
    let mut loaded = lock(&LOADED);
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
        let (exe, cache) = (dir.path().join("exe"), dir.path().join("cache/homing"));
        let kept = cache.join(kept(&exe));
        fs::write(&exe, "abc").unwrap();
        let load = || Payload::new(&exe, Some(cache.clone())).unwrap();
        assert_eq!((load().sha256.as_str(), load().size), (ABC, 3));
        // A hash that cannot be right shows that the kept one is used.
        let text = fs::read_to_string(&kept).unwrap();
        fs::write(&kept, text.replace(ABC, &"0".repeat(64))).unwrap();
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
        let (exe, kept) = (dir.path().join("exe"), dir.path().join("kept"));
        fs::write(&exe, "abc").unwrap();
        let meta = exe.metadata().unwrap();
        remember(&kept, &meta, ABC).unwrap();
        assert_eq!(remembered(&kept, &meta).as_deref(), Some(ABC));
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(remembered(&kept, &meta), None);
    }

    #[test]
    fn the_program_for_other_machines_lies_beside_this_one() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, lib) = (dir.path().join("bin"), dir.path().join("lib/homing"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let exe = bin.join("homing");
        let beside = |arch: &str| beside(&exe, arch, Carried::Worker);
        assert_eq!(beside(OWN_ARCH).unwrap(), exe);
        let none = beside("pdp11").unwrap_err();
        assert_eq!((none.arch.as_str(), none.first), ("pdp11", bin.join("worker-pdp11")));
        fs::write(lib.join("worker-pdp11"), "far").unwrap();
        let far = beside("pdp11").unwrap();
        assert_eq!(fs::read(&far).unwrap(), b"far");
        let carried = bin.join(format!("worker-pdp11-{ABC}"));
        let names = [&exe, &far, &carried].map(|exe| kept(exe));
        assert_eq!(names, ["program.sha256", "worker-pdp11.sha256", "carried.sha256"]);
        for evil in ["../bin/x", "", "a b", "..", "a\nb"] {
            assert!(beside(evil).is_err(), "{evil:?}");
        }
    }

    #[test]
    fn machines_as_this_one_get_the_worker_alone_where_it_lies_beside_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let (exe, worker) = (dir.path().join("homing"), dir.path().join(format!("worker-{OWN_ARCH}")));
        assert_eq!(beside(&exe, OWN_ARCH, Carried::Worker).unwrap(), exe);
        fs::write(&worker, "w").unwrap();
        assert_eq!(beside(&exe, OWN_ARCH, Carried::Worker).unwrap(), worker);
        assert_eq!(beside(&exe, OWN_ARCH, Carried::Program).unwrap(), exe);
        assert_eq!(beside(&exe, OWN_ARCH, Carried::Host).unwrap(), exe, "it can do all that the far side does");
        let host = dir.path().join("homing-host");
        fs::write(&host, "h").unwrap();
        assert_eq!(beside(&exe, OWN_ARCH, Carried::Host).unwrap(), host);
        assert_eq!(beside(&dir.path().join("homing-admin"), OWN_ARCH, Carried::Host).unwrap(), host);
        assert_eq!([&exe, &host].map(|exe| kept(exe)), ["program.sha256", "homing-host.sha256"]);
        assert_eq!(beside(&exe, "pdp11", Carried::Host).unwrap_err().first, dir.path().join("host-pdp11"));
        // The whole program for other machines has its own name.
        let none = beside(&exe, "pdp11", Carried::Program).unwrap_err();
        assert_eq!(none.first, dir.path().join("program-pdp11"));
    }
}
