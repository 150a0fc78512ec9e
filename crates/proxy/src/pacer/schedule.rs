//! The arithmetic of a serial link, without a clock: when a message may start, when it is over.

use std::time::Duration;

use levee_vocab::{ByteRate, Timestamp};

/// A link's rate, as time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    rate: ByteRate,
    nanoseconds_per_byte: f64,
}

/// How late a core may look at the link without the link losing time. A core wakes a little after
/// the moment it asked for; a real link would have gone on without it. A core that stood still for
/// longer finds an idle link, not a burst.
const LATE_MAX: Duration = Duration::from_millis(10);

impl Schedule {
    pub fn new(rate: ByteRate) -> Self {
        Self {
            rate,
            nanoseconds_per_byte: 1e9 / rate.as_bytes() as f64,
        }
    }

    pub const fn rate(&self) -> ByteRate {
        self.rate
    }

    /// Time that `bytes` take. Rounded up, so that rounding never makes the link faster.
    pub fn nanoseconds(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.nanoseconds_per_byte).ceil() as u64
    }

    /// The link is free at `free_at`; a message of `bytes` has been ready since `ready`. If it may
    /// start at `now`, when the link is free again; else, when to ask again.
    pub fn start(
        &self,
        free_at: u64,
        now: Timestamp,
        ready: Timestamp,
        bytes: u64,
    ) -> Result<u64, Timestamp> {
        let free = Timestamp::from_nanoseconds(free_at);
        if free > now {
            return Err(free);
        }
        let start = free.max(ready).max(self.earliest_start(now)).min(now);
        Ok(start.as_nanoseconds() + self.nanoseconds(bytes))
    }

    /// No message that is started at `now` or later counts as started before.
    pub fn earliest_start(&self, now: Timestamp) -> Timestamp {
        let late_max = LATE_MAX.as_nanos() as u64;
        Timestamp::from_nanoseconds(now.as_nanoseconds().saturating_sub(late_max))
    }

    /// When the link is free again after `bytes` that nobody asked for.
    pub fn after(&self, free_at: u64, now: Timestamp, bytes: u64) -> u64 {
        free_at.max(now.as_nanoseconds()) + self.nanoseconds(bytes)
    }
}
