//! Extended attributes and ACLs of an entry, as one hash.

use crate::walk::hex;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Names that rsync's `-A` and `-X` copy and that a host does not set by itself. Labels of SELinux and sums of IMA
/// belong to the host. Other users cannot see `trusted.`.
const NAMES: [&[u8]; 4] = [b"user.", b"trusted.", b"security.capability", b"system.posix_acl_"];
/// The most of a value and of all names of an entry (`XATTR_SIZE_MAX` and `XATTR_LIST_MAX` of linux/limits.h).
const MOST: usize = 65536;

/// Returns the hash of an entry's names and values. No link is followed.
/// `None`: it has none, or its file system keeps none.
///
/// # Errors
/// The error of reading them.
pub fn hash(folder: &OwnedFd, name: &[u8]) -> io::Result<Option<String>> {
    let path = CString::new([format!("/proc/self/fd/{}/", folder.as_raw_fd()).as_bytes(), name].concat())?;
    hash_by(&|list| rustix::fs::llistxattr(&path, list), &|name, value| rustix::fs::lgetxattr(&path, name, value))
}

/// Returns the same hash for an open file.
///
/// # Errors
/// The error of reading them.
pub fn hash_of(file: impl AsFd) -> io::Result<Option<String>> {
    hash_by(&|list| rustix::fs::flistxattr(&file, list), &|name, value| rustix::fs::fgetxattr(&file, name, value))
}

/// Fills in all names, each ended by a zero byte.
type List<'a> = &'a dyn Fn(&mut [u8]) -> Result<usize, Errno>;
/// Fills in the value of a name.
type Get<'a> = &'a dyn Fn(&CStr, &mut [u8]) -> Result<usize, Errno>;

fn hash_by(list: List, get: Get) -> io::Result<Option<String>> {
    let mut names = vec![0_u8; MOST];
    let length = match list(&mut names) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(None),
        Ok(length) => length,
        Err(e) => return Err(e.into()),
    };
    let is_kept = |name: &&[u8]| NAMES.iter().any(|head| name.starts_with(head));
    let mut names: Vec<&[u8]> = names[..length].split(|byte| *byte == 0).filter(is_kept).collect();
    names.sort_unstable();
    let (mut hash, mut any) = (Sha256::new(), false);
    let mut value = vec![0_u8; MOST];
    for name in names {
        let length = match get(&CString::new(name)?, &mut value) {
            Ok(length) => length,
            Err(Errno::NODATA) => continue,
            Err(e) => return Err(e.into()),
        };
        any = true;
        for part in [name, &value[..length]] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(any.then(|| hex(hash.finalize())))
}
