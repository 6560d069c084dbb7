//! The subvolume of a name in a GlusterFS directory: each subvolume has a range of the names' hashes. After a
//! rebalance or a rename, names may be elsewhere, so the range only determines which subvolume is queried first.

/// `DM_DELTA` and the start of `gf_dm_hashfn`: Davies-Meyer over TEA, as in GlusterFS's `libglusterfs/src/hashfn.c`.
/// It is part of the format on the bricks.
const DELTA: u32 = 0x9e37_79b9;
const START: (u32, u32) = (0x9464_a485, 0x542e_1a94);
const ROUNDS: u32 = 6;
const LAST_ROUNDS: u32 = 10;

/// The ranges of one directory, with the subvolume of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(u32, u32, usize)>);

impl Ranges {
    /// Adds the value of `trusted.glusterfs.dht` of the directory on a brick of subvolume `group`. It has four big
    /// endian numbers, of which the last two are the first and last hash.
    pub fn add(&mut self, group: usize, value: &[u8]) {
        let number = |at: usize| value.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
        if let (Some(first), Some(last)) = (number(8), number(12))
            && last > 0
        {
            self.0.push((first, last, group));
        }
    }

    /// Returns the subvolume whose range contains a name.
    pub fn of(&self, name: &[u8]) -> Option<usize> {
        let hash = hash(name);
        self.0.iter().find(|(first, last, _)| (*first..=*last).contains(&hash)).map(|(_, _, group)| *group)
    }
}

fn hash(name: &[u8]) -> u32 {
    let (mut state, mut rest) = (START, name);
    while let Some((block, after)) = rest.split_first_chunk::<16>() {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        state = mix(state, words, ROUNDS);
        rest = after;
    }
    let (a, b) = mix(state, last(rest, name.len()), LAST_ROUNDS);
    a ^ b
}

/// Pads the rest of a name with its length.
fn last(rest: &[u8], length: usize) -> [u32; 4] {
    let pad = u32::from_le_bytes([length as u8; 4]);
    let mut words = [pad; 4];
    for (word, bytes) in words.iter_mut().zip(rest.chunks(4)) {
        *word = match bytes {
            [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
            few => few.iter().fold(pad, |word, byte| word << 8 | u32::from(*byte)),
        };
    }
    words
}

fn mix((a, b): (u32, u32), key: [u32; 4], rounds: u32) -> (u32, u32) {
    let (mut x, mut y, mut sum) = (a, b, 0u32);
    let half = |y: u32, sum: u32, one: u32, two: u32| {
        (y << 4).wrapping_add(one) ^ y.wrapping_add(sum) ^ (y >> 5).wrapping_add(two)
    };
    for _ in 0..rounds {
        sum = sum.wrapping_add(DELTA);
        x = x.wrapping_add(half(y, sum, key[0], key[1]));
        y = y.wrapping_add(half(x, sum, key[2], key[3]));
    }
    (a.wrapping_add(x), b.wrapping_add(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read from a volume of two bricks: their `trusted.glusterfs.dht` of `/.shard`, and the places of the shards of
    /// one file.
    #[test]
    fn shards_fall_where_glusterfs_put_them() {
        let mut ranges = Ranges::default();
        ranges.add(0, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xfe]);
        ranges.add(1, &[0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        let shard = |n: u32| ranges.of(format!("1f8be953-57c0-409c-b1f9-d171b75ae4c0.{n}").as_bytes());
        assert_eq!([1, 2, 3, 4].map(shard), [Some(1), Some(1), Some(1), Some(0)]);
    }

    #[test]
    fn a_subvolume_without_a_range_gets_nothing() {
        let mut ranges = Ranges::default();
        ranges.add(0, &[0; 16]);
        ranges.add(1, &[1, 2, 3]);
        assert_eq!(ranges.of(b"name"), None);
    }
}
