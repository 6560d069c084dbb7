//! The kernel's client: an ioctl reports the primary OSD of an offset to each user who may read the file.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// `struct ceph_ioctl_dataloc` of Linux, fs/ceph/ioctl.h.
#[repr(C)]
struct DataLocation {
    file_offset: u64,
    object_offset: u64,
    object_number: u64,
    object_size: u64,
    object_name: [u8; 64],
    block_offset: u64,
    block_size: u64,
    osd: i64,
    /// A `struct sockaddr_storage`.
    address: [u64; 16],
}

/// `CEPH_IOC_GET_DATALOC`: `_IOWR(0x97, 3, struct ceph_ioctl_dataloc)`.
const GET_LOCATION: libc::c_ulong = 3 << 30 | (size_of::<DataLocation>() as libc::c_ulong) << 16 | 0x97 << 8 | 3;

/// Opens a file. If it was replaced by a FIFO meanwhile, the call does not block.
pub(super) fn open(path: &Path, flags: i32) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | flags).open(path)
}

/// An aligned buffer for a read past the cache.
#[repr(align(4096))]
struct Page([u8; 4096]);

/// Makes the client contact an OSD, by a read past its cache. Even if the read fails, the client receives a new map.
pub(super) fn speak(path: &Path) {
    let mut page = Box::new(Page([0; 4096]));
    let _ = open(path, libc::O_DIRECT).and_then(|file| file.read_at(&mut page.0, 0));
}

/// Returns the address of the OSD from which the byte at `offset` is read; `None` if no OSD that is up has it.
pub(super) fn address(file: &File, offset: u64) -> Result<Option<String>, String> {
    // SAFETY: all bits zero are a value of each member.
    let mut location: DataLocation = unsafe { std::mem::zeroed() };
    location.file_offset = offset;
    // SAFETY: the number contains the structure's size, and the kernel writes no more than that.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), GET_LOCATION as _, &mut location) };
    if status < 0 {
        return Err(format!("Ceph's client does not report its place: {}", io::Error::last_os_error()));
    }
    if location.osd < 0 {
        return Ok(None);
    }
    let bytes: Vec<u8> = location.address.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let told = ip(&bytes).map(|ip| ip.to_string());
    told.map(Some)
        .ok_or_else(|| format!("Ceph's client reports an address of an unknown family for OSD {}", location.osd))
}

/// Reads the address of a `sockaddr_in` or a `sockaddr_in6`.
fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[4..8]).ok()?).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[8..24]).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernels_size_and_addresses_are_read() {
        assert_eq!((size_of::<DataLocation>(), GET_LOCATION as u32), (248, 0xc0f8_9703));
        let of = |family: i32, rest: &[u8]| {
            let mut bytes = [0; 128];
            bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
            bytes[2..2 + rest.len()].copy_from_slice(rest);
            ip(&bytes).map(|ip| ip.to_string())
        };
        assert_eq!(of(libc::AF_INET, &[26, 144, 10, 77, 1, 3]).as_deref(), Some("10.77.1.3"));
        assert_eq!(of(libc::AF_INET6, &[26, 144, 0, 0, 0, 0, 0xfe, 0x80]).as_deref(), Some("fe80::"));
        assert_eq!(of(0, &[]), None);
    }
}
