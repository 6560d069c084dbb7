//! Finds the placement group of an object: Ceph's hash of its name, reduced to the number of groups.

/// Bob Jenkins's hash of 1996 (burtleburtle.net/bob/hash/evahash.html, in the public domain). Ceph calls it rjenkins;
/// it is the default of all pools.
pub(super) fn rjenkins(name: &[u8]) -> u32 {
    /// The golden ratio, as the hash's author chose it.
    const START: u32 = 0x9e37_79b9;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |sum, b| sum << 8 | u32::from(*b));
    let (mut a, mut b, mut c) = (START, START, 0u32);
    let mut pieces = name.chunks_exact(12);
    for piece in pieces.by_ref() {
        a = a.wrapping_add(word(&piece[..4]));
        b = b.wrapping_add(word(&piece[4..8]));
        c = c.wrapping_add(word(&piece[8..]));
        mix(&mut a, &mut b, &mut c);
    }
    let mut rest = [0; 12];
    // The lowest byte of the third word is reserved for the length.
    for (nth, byte) in pieces.remainder().iter().enumerate() {
        rest[if nth < 8 { nth } else { nth + 1 }] = *byte;
    }
    a = a.wrapping_add(word(&rest[..4]));
    b = b.wrapping_add(word(&rest[4..8]));
    c = c.wrapping_add(word(&rest[8..])).wrapping_add(name.len() as u32);
    mix(&mut a, &mut b, &mut c);
    c
}

fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    for [first, second, third] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        *a = a.wrapping_sub(*b).wrapping_sub(*c) ^ (*c >> first);
        *b = b.wrapping_sub(*c).wrapping_sub(*a) ^ (*a << second);
        *c = c.wrapping_sub(*a).wrapping_sub(*b) ^ (*b >> third);
    }
}

/// Returns the group of a hash. Most hashes keep their group when the number of groups grows.
pub(super) fn group(hash: u32, groups: u32) -> u32 {
    let mask = groups.next_power_of_two() - 1;
    if hash & mask < groups { hash & mask } else { hash & (mask >> 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_lowest_bits_that_there_are() {
        let of = |groups| (0..16).map(|hash| group(hash, groups)).collect::<Vec<_>>();
        assert_eq!(of(8), [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of(6), [0, 1, 2, 3, 4, 5, 2, 3, 0, 1, 2, 3, 4, 5, 2, 3]);
        assert_eq!(of(1), [0; 16]);
    }
}
