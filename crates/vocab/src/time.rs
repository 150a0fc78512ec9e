//! A point in time that a simulator can own.
//!
//! `std::time::Instant` cannot be made from a number; this can, so that the same decisions run
//! under the real clock and under a virtual one.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// Nanoseconds since an arbitrary start, never going backwards. Not a calendar date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The start of time.
    pub const ZERO: Self = Self(0);

    /// The point `nanoseconds` after the start.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// The point `milliseconds` after the start.
    pub const fn from_milliseconds(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000_000)
    }

    /// The point `seconds` after the start.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanoseconds(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time from `earlier` to `self`; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        // A duration past the year 2554 is a mistake elsewhere; the end of time is a safe answer.
        let nanoseconds = u64::try_from(later.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanoseconds))
    }
}

/// Seconds with milliseconds, as stories print them: `5.080s`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0 / 1_000_000;
        write!(f, "{}.{:03}s", milliseconds / 1000, milliseconds % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_adds_prints_and_never_goes_negative() {
        let start = Timestamp::from_seconds(5);
        let later = start + Duration::from_millis(80);
        assert_eq!(later.to_string(), "5.080s");
        assert_eq!(later.since(start), Duration::from_millis(80));
        assert_eq!(start.since(later), Duration::ZERO);
        assert_eq!(start + Duration::MAX, Timestamp::from_nanoseconds(u64::MAX));
    }
}
