//! The binary layout, `struct lov_user_md_v1`, `_v3`, `lov_comp_md_v1` and
//! `lov_foreign_md` of lustre_user.h. Little endian on every client that
//! homing runs on.

use super::{Component, Pattern};

const V1: u32 = 0x0BD1_0BD0;
const V3: u32 = 0x0BD3_0BD0;
const SPECIFIC: u32 = 0x0BD5_0BD0;
const COMPOSITE: u32 = 0x0BD6_0BD0;
const FOREIGN: u32 = 0x0BD7_0BD0;

/// Size of the head: lmm_magic, pattern, object id (16), stripe size, stripe count (u16), generation (u16).
const HEAD: usize = 32;
/// Size of the pool's name between head and objects in version 3.
const POOL_NAME: usize = 16;
/// Size of an object: object id (16), generation, OST index.
const OBJECT: usize = 24;
/// Sizes of the head of a composite layout, and of each entry of its table.
const COMPOSITE_HEAD: usize = 32;
const ENTRY: usize = 48;

const PATTERN_RAID0: u32 = 0x001;
const PATTERN_MDT: u32 = 0x100;
/// Several objects of a file on one OST, and compression. Both are placed like RAID 0.
const PATTERN_OVERSTRIPING: u32 = 0x200;
const PATTERN_FOREIGN: u32 = 0x400;
const PATTERN_COMPRESS: u32 = 0x800;
const FLAG_RELEASED: u32 = 0x8000_0000;
const FLAGS: u32 = 0xffff_0000;

pub(super) const STALE: u32 = 0x01;
pub(super) const OFFLINE: u32 = 0x08;
pub(super) const INIT: u32 = 0x10;
/// Space that a component may grow into.
pub(super) const EXTENSION: u32 = 0x40;
/// Holds parity, no data.
pub(super) const PARITY: u32 = 0x80;

/// Whether a component's objects can be read.
pub(super) fn usable(flags: u32) -> bool {
    flags & INIT != 0 && flags & (STALE | OFFLINE | EXTENSION | PARITY) == 0
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Returns the components of a layout; `None` if it is none.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<Component>> {
    match u32_at(bytes, 0)? {
        COMPOSITE => composite(bytes),
        _ => Some(vec![plain(bytes, (0, u64::MAX), 0, true)?]),
    }
}

fn composite(bytes: &[u8]) -> Option<Vec<Component>> {
    let count = usize::from(u16_at(bytes, 14)?);
    (0..count).map(|n| entry(bytes, COMPOSITE_HEAD + n * ENTRY)).collect()
}

fn entry(bytes: &[u8], at: usize) -> Option<Component> {
    let (id, flags) = (u32_at(bytes, at)?, u32_at(bytes, at + 4)?);
    let range = (u64_at(bytes, at + 8)?, u64_at(bytes, at + 16)?);
    let (offset, size) = (u32_at(bytes, at + 24)? as usize, u32_at(bytes, at + 28)? as usize);
    let own = bytes.get(offset..offset.checked_add(size)?)?;
    // Bits 16 to 30 of the id are the mirror's number.
    plain(own, range, id >> 16 & 0x7fff, usable(flags))
}

fn plain(bytes: &[u8], range: (u64, u64), mirror: u32, usable: bool) -> Option<Component> {
    let objects_at = match u32_at(bytes, 0)? {
        V1 => HEAD,
        V3 | SPECIFIC => HEAD + POOL_NAME,
        FOREIGN => {
            let (pattern, osts) = (Pattern::Foreign, Vec::new());
            return Some(Component { range, mirror, usable, released: false, pattern, stripe_size: 0, osts });
        }
        _ => return None,
    };
    let told = u32_at(bytes, 4)?;
    let pattern = match told & !FLAGS & !PATTERN_OVERSTRIPING & !PATTERN_COMPRESS {
        PATTERN_RAID0 => Pattern::Raid0,
        PATTERN_MDT => Pattern::Mdt,
        PATTERN_FOREIGN => Pattern::Foreign,
        other => Pattern::Other(other),
    };
    let released = told & FLAG_RELEASED != 0;
    let stripe_size = u64::from(u32_at(bytes, 24)?);
    // A layout without objects still has a number of stripes. Examples are a template, a component that was never
    // written, and a released file.
    let has_objects = pattern == Pattern::Raid0 && usable && !released;
    let count = if has_objects { usize::from(u16_at(bytes, 28)?) } else { 0 };
    let osts = (0..count).map(|n| u32_at(bytes, objects_at + n * OBJECT + 20)).collect::<Option<Vec<u32>>>()?;
    Some(Component { range, mirror, usable, released, pattern, stripe_size, osts })
}
