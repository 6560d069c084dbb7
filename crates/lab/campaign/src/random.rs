//! Numbers from a seed: SplitMix64 (Steele, Lea, Flood 2014), the same on every machine.

/// A stream of numbers.
pub struct Random(u64);

impl Random {
    /// Makes the stream of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from `low` up to but not including `high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    /// Returns true in `share` of a hundred calls.
    pub fn percent(&mut self, share: u64) -> bool {
        self.within(0, 100) < share
    }

    /// Returns one of the choices.
    pub fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.within(0, choices.len() as u64) as usize].clone()
    }
}
