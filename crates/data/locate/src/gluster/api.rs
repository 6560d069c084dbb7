//! `libgfapi`, GlusterFS's own client library, loaded at the first use: every host that mounts GlusterFS has it, and
//! others do not need it.
//!
//! A mount cannot report where shards and dispersed files are. A brick can, and it answers ordinary users. Two other
//! ways were tried: a second FUSE mount without the shard layer (root only), and the bricks' folders (only on their
//! hosts).

use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

type Fs = *mut c_void;
type Object = *mut c_void;

/// The functions of `glfs.h` and `glfs-handles.h` that are used here.
struct Api {
    new: unsafe extern "C" fn(*const c_char) -> Fs,
    set_volfile: unsafe extern "C" fn(Fs, *const c_char) -> c_int,
    set_logging: unsafe extern "C" fn(Fs, *const c_char, c_int) -> c_int,
    init: unsafe extern "C" fn(Fs) -> c_int,
    lstat: unsafe extern "C" fn(Fs, *const c_char, *mut libc::stat) -> c_int,
    lgetxattr: unsafe extern "C" fn(Fs, *const c_char, *const c_char, *mut c_void, usize) -> isize,
    from_handle: unsafe extern "C" fn(Fs, *const u8, c_int, *mut libc::stat) -> Object,
    object_xattr: unsafe extern "C" fn(Fs, Object, *const c_char, *mut c_void, usize) -> c_int,
    close: unsafe extern "C" fn(Object) -> c_int,
}

impl Api {
    fn open() -> Result<Api, libloading::Error> {
        // SAFETY: the library's initialisers only register it. The types are those of
        // its headers, whose symbols are versioned and have not changed since 3.5.
        unsafe {
            let library: &'static Library = Box::leak(Box::new(Library::new("libgfapi.so.0")?));
            fn find<T: Copy + 'static>(library: &'static Library, name: &[u8]) -> Result<T, libloading::Error> {
                // SAFETY: as above.
                unsafe { library.get(name).map(|symbol: Symbol<'static, T>| *symbol) }
            }
            Ok(Api {
                new: find(library, b"glfs_new\0")?,
                set_volfile: find(library, b"glfs_set_volfile\0")?,
                set_logging: find(library, b"glfs_set_logging\0")?,
                init: find(library, b"glfs_init\0")?,
                lstat: find(library, b"glfs_lstat\0")?,
                lgetxattr: find(library, b"glfs_lgetxattr\0")?,
                from_handle: find(library, b"glfs_h_create_from_handle\0")?,
                object_xattr: find(library, b"glfs_h_getxattrs\0")?,
                close: find(library, b"glfs_h_close\0")?,
            })
        }
    }
}

/// musl's programs are static, and load no library.
const STATIC: &str =
    if cfg!(target_env = "musl") { ", and a homing that is not linked statically: `cargo install homing`" } else { "" };

fn api() -> Result<&'static Api, String> {
    static API: OnceLock<Result<Api, String>> = OnceLock::new();
    let open = || {
        Api::open().map_err(|e| {
            format!("this needs GlusterFS's library libgfapi (package libgfapi0 or glusterfs-api){STATIC}: {e}")
        })
    };
    API.get_or_init(open).as_ref().map_err(Clone::clone)
}

/// The content of a brick under a name or an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrickEntry {
    /// The file itself.
    File,
    /// Nothing, or only a pointer to another subvolume (a `linkto`).
    Nothing,
}

impl BrickEntry {
    fn of(stat: &libc::stat) -> BrickEntry {
        // DHT's pointers have only the sticky bit, and no data.
        let pointer = stat.st_mode & 0o7777 == 0o1000 && stat.st_size == 0;
        if pointer { BrickEntry::Nothing } else { BrickEntry::File }
    }
}

/// A connection to one brick, only for reading.
///
/// It is never closed: `glfs_fini` waits for a brick that has gone, and the connection lives as long as the process
/// in any case.
pub(super) struct Connection {
    api: &'static Api,
    fs: Fs,
}

// SAFETY: libgfapi's calls may come from any thread, also at once on one `glfs_t`.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    /// Connects by a volfile that names one client.
    pub fn open(volfile: &str) -> Result<Connection, String> {
        let api = api()?;
        let failed = |doing: &str| format!("{doing}: {}", io::Error::last_os_error());
        // A volfile contains the volume's password, so it is never written to a disk.
        let memory = rustix::fs::memfd_create("volfile", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(memory.map_err(|e| format!("cannot keep a volfile in memory: {e}"))?);
        file.write_all(volfile.as_bytes()).map_err(|e| format!("cannot keep a volfile in memory: {e}"))?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
        // SAFETY: the strings outlive the calls, which copy them; `fs` is checked.
        unsafe {
            let fs = (api.new)(c"brick".as_ptr());
            if fs.is_null() {
                return Err(failed("libgfapi cannot start"));
            }
            (api.set_logging)(fs, c"/dev/null".as_ptr(), 0);
            if (api.set_volfile)(fs, path.as_ptr()) != 0 || (api.init)(fs) != 0 {
                return Err(failed("libgfapi cannot connect"));
            }
            Ok(Connection { api, fs })
        }
    }

    /// Returns the content at a path of the brick.
    pub fn at(&self, path: &CStr) -> io::Result<BrickEntry> {
        let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: the path ends with NUL; `stat` is large enough, and zeroes are a valid one.
        let (status, stat) = unsafe {
            let status = (self.api.lstat)(self.fs, path.as_ptr(), stat.as_mut_ptr());
            (status, stat.assume_init())
        };
        if status == 0 { Ok(BrickEntry::of(&stat)) } else { nothing_or(io::Error::last_os_error()) }
    }

    /// Returns the content under an id (GFID), and its attribute `name` if it has one.
    pub fn by_id(&self, id: &[u8; 16], name: Option<&CStr>) -> io::Result<(BrickEntry, Vec<u8>)> {
        let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: an id has 16 bytes; `stat` as above.
        let object = unsafe { (self.api.from_handle)(self.fs, id.as_ptr(), 16, stat.as_mut_ptr()) };
        if object.is_null() {
            return nothing_or(io::Error::last_os_error()).map(|kept| (kept, Vec::new()));
        }
        let mut value = vec![0; 256];
        // SAFETY: the object is live until it is closed here; the buffer has the given length.
        let length = unsafe {
            let into = value.as_mut_ptr().cast();
            let length = name.map_or(0, |n| (self.api.object_xattr)(self.fs, object, n.as_ptr(), into, value.len()));
            (self.api.close)(object);
            length
        };
        value.truncate(usize::try_from(length).unwrap_or(0));
        // SAFETY: zeroes are a valid `stat`.
        Ok((BrickEntry::of(&unsafe { stat.assume_init() }), value))
    }

    /// Returns an attribute of a path, `None` if there is no such path or attribute.
    pub fn attribute(&self, path: &CStr, name: &CStr) -> Option<Vec<u8>> {
        let mut value = vec![0; 256];
        let into = value.as_mut_ptr().cast();
        // SAFETY: both strings end with NUL; the buffer has the given length.
        let length = unsafe { (self.api.lgetxattr)(self.fs, path.as_ptr(), name.as_ptr(), into, value.len()) };
        value.truncate(usize::try_from(length).ok()?);
        Some(value)
    }
}

fn nothing_or(error: io::Error) -> io::Result<BrickEntry> {
    // A brick that does not know an id returns "stale", like NFS.
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESTALE) => Ok(BrickEntry::Nothing),
        _ => Err(error),
    }
}
