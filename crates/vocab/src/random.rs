//! Seeded randomness: the same seed gives the same run, byte for byte.

use std::ops::Range;

/// A small generator (SplitMix64, Steele, Lea and Flood 2014). Never for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose whole future follows from `seed`.
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Evenly from 0 up to, but without, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly from `range`, which must not be empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        assert!(
            range.start < range.end,
            "a range to draw from must not be empty"
        );
        range.start + self.next_bits() % (range.end - range.start)
    }

    /// True with `probability` (0 to 1).
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// A generator of its own for a part, so that parts do not disturb each other's draws.
    pub const fn fork(&mut self) -> Self {
        Self(self.next_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_draws() {
        let mut first = Random::from_seed(42);
        let mut second = Random::from_seed(42);
        for _ in 0..100 {
            assert_eq!(first.within(10..20), second.within(10..20));
            assert!((0.0..1.0).contains(&first.fraction()));
            second.fraction();
        }
    }
}
