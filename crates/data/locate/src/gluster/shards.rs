//! A file that is cut into shards. Its first block is the file itself; each further block is a file below `/.shard`,
//! placed by the hash of its name.

use super::bricks::ShardLocation;
use super::replicas;
use crate::volfile::Definition;
use homing_model::Extent;
use std::sync::atomic::{AtomicU64, Ordering};

/// The smallest shard of GlusterFS (`features.shard-block-size`).
pub(super) const SMALLEST: u64 = 4 << 20;

/// The most shards of one file that are located, 4 TiB at 64 MiB each.
const MOST: u64 = 1 << 16;

const THREADS: u64 = 8;

/// A file in blocks.
pub(super) struct Cut {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of a block.
    pub block: u64,
}

/// Returns the file's extents, and why some bytes have no place. `held` locates a block, counted from 0.
pub(super) fn place(
    definition: &Definition,
    cut: &Cut,
    held: &(dyn Fn(u64) -> ShardLocation + Sync),
) -> (Vec<Extent>, Option<String>) {
    let blocks = cut.size.div_ceil(cut.block);
    let (mut extents, mut unknown, mut why) = (Vec::<Extent>::new(), 0, String::new());
    for (number, found) in locate_blocks(blocks.min(MOST), held) {
        let offset = number * cut.block;
        let length = cut.block.min(cut.size - offset);
        match found {
            ShardLocation::At(group, bricks) => {
                let group = &definition.groups[group];
                let holding = bricks.iter().map(|brick| &group.bricks[*brick]);
                add(&mut extents, Extent { offset, length, replicas: replicas(group, holding) });
            }
            ShardLocation::Nowhere => {}
            ShardLocation::Unknown(reason) => (unknown, why) = (unknown + length, reason),
        }
    }
    let beyond = cut.size.saturating_sub(MOST.saturating_mul(cut.block));
    let reason = match (unknown, beyond) {
        (0, 0) => None,
        (0, beyond) => Some(format!("homing queried only its first {MOST} shards: {beyond} bytes are beyond them")),
        (unknown, _) => Some(format!("{unknown} of its bytes could not be placed: {why}")),
    };
    (extents, reason)
}

/// Adds an extent. Blocks that follow each other on the same hosts are one extent.
fn add(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        Some(last) if last.offset + last.length == next.offset && last.replicas == next.replicas => {
            last.length += next.length;
        }
        _ => extents.push(next),
    }
}

fn locate_blocks(blocks: u64, held: &(dyn Fn(u64) -> ShardLocation + Sync)) -> Vec<(u64, ShardLocation)> {
    let next = AtomicU64::new(0);
    let work = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < blocks));
        numbers.map(|number| (number, held(number))).collect::<Vec<_>>()
    };
    let threads: Vec<u64> = (0..THREADS.min(blocks)).collect();
    let mut found: Vec<(u64, ShardLocation)> =
        homing_os::threads::each(&threads, |_| work()).into_iter().flatten().collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volfile;

    const VOLUME: &str = include_str!("../../tests/fixtures/rep.vol");

    fn placed(size: u64, held: &(dyn Fn(u64) -> ShardLocation + Sync)) -> (Vec<Extent>, Option<String>) {
        place(&volfile::parse(VOLUME).unwrap(), &Cut { size, block: 10 }, held)
    }

    #[test]
    fn blocks_on_the_same_bricks_are_one_extent_and_holes_are_none() {
        let (extents, reason) = placed(95, &|n| match n {
            0..=2 | 8 | 9 => ShardLocation::At(0, vec![0, 1]),
            3 | 7 => ShardLocation::Nowhere,
            _ => ShardLocation::At(1, vec![1]),
        });
        let spans: Vec<_> = extents.iter().map(|e| (e.offset, e.length)).collect();
        assert_eq!((spans, reason), (vec![(0, 30), (40, 30), (80, 15)], None));
        assert_eq!(extents[1].replicas[0].share, 1.0);
    }

    #[test]
    fn what_cannot_be_asked_is_told_in_bytes() {
        let (extents, reason) = placed(25, &|n| match n {
            0 => ShardLocation::At(0, vec![0]),
            _ => ShardLocation::Unknown("brick x is down".into()),
        });
        assert_eq!(extents.len(), 1);
        assert_eq!(reason.unwrap(), "15 of its bytes could not be placed: brick x is down");
        let (_, reason) = placed(10 * (MOST + 1), &|_| ShardLocation::At(0, vec![0]));
        assert!(reason.unwrap().contains("10 bytes are beyond"));
    }
}
