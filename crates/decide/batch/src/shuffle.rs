//! A random order of `0..n` that is computed, not stored. A small Feistel network permutes the next power of four. A
//! value outside of `0..n` is permuted again until it is inside. A million tasks in random order need no memory.

/// A permutation of `0..n`, the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Shuffle {
    n: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Shuffle { n, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Returns the place of `index`, which must be below `n`.
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mut value = self.round_trip(index);
        // The cycle of a permutation returns to its start, and at least a quarter of the values are inside.
        while value >= self.n {
            value = self.round_trip(value);
        }
        value
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..6 {
            (left, right) = (right, left ^ (mix(right ^ self.seed.rotate_left(round * 11) ^ u64::from(round)) & mask));
        }
        left << self.half_bits | right
    }
}

/// The finalizer of SplitMix64: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_once() {
        for n in [1, 2, 3, 5, 17, 1000, 4097] {
            let order: Vec<u64> = (0..n).map(|i| Shuffle::new(n, 42).at(i)).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            if n > 16 {
                assert_ne!(order, sorted);
                assert_ne!(order, (0..n).map(|i| Shuffle::new(n, 43).at(i)).collect::<Vec<_>>());
            }
        }
    }
}
