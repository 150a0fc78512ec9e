//! Bytes a second, the unit in which capacity is offered, allotted and spent.

use std::fmt;
use std::time::Duration;

/// Bytes a second. The papers' kB/s is 1000 of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRate(u64);

impl ByteRate {
    /// Nothing at all.
    pub const ZERO: Self = Self(0);

    /// `bytes` a second.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kilobytes` (1000 bytes) a second, as the rescue protocol tells rates.
    pub const fn from_kilobytes(kilobytes: u64) -> Self {
        Self(kilobytes.saturating_mul(1000))
    }

    /// Bytes a second.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }

    /// Whole kilobytes a second, rounded down: never promises more than there is.
    pub const fn as_kilobytes(self) -> u64 {
        self.0 / 1000
    }

    /// The rate of `bytes` in `time`; zero where no time passed.
    pub fn of(bytes: u64, time: Duration) -> Self {
        if time.is_zero() {
            return Self::ZERO;
        }
        Self((bytes as f64 / time.as_secs_f64()).round() as u64)
    }

    /// This rate times a factor of at least 0; the fraction of a byte is dropped.
    pub fn times(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor.max(0.0)) as u64)
    }

    /// How many times `whole` goes into this rate: a load level. Infinite where `whole` is zero
    /// and this is not.
    pub fn share_of(self, whole: Self) -> f64 {
        match (self.0, whole.0) {
            (0, 0) => 0.0,
            (part, whole) => part as f64 / whole as f64,
        }
    }

    /// Whole bytes in `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        (self.0 as f64 * time.as_secs_f64()) as u64
    }

    /// Time that `bytes` take at this rate; `Duration::MAX` at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        Duration::from_nanos((bytes as f64 * 1e9 / self.0 as f64) as u64)
    }

    /// This less `other`; zero where `other` is more.
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This and `other` together.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// `53.9 kB/s`, as the papers write it.
impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} kB/s", self.0 / 1000, self.0 % 1000 / 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_answers_in_bytes_time_and_levels() {
        let link = ByteRate::from_kilobytes(54);
        assert_eq!(ByteRate::of(27_000, Duration::from_millis(500)), link);
        assert_eq!(link.times(0.8).as_bytes(), 43_200);
        assert_eq!(link.time_for(54_000), Duration::from_secs(1));
        assert_eq!(ByteRate::ZERO.time_for(1), Duration::MAX);
        assert_eq!(ByteRate::ZERO.share_of(ByteRate::ZERO), 0.0);
        assert_eq!(ByteRate::from_bytes(53_900).to_string(), "53.9 kB/s");
    }
}
