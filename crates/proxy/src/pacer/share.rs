//! A part of the link, for what must not have all of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use levee_vocab::{ByteRate, Timestamp};

use super::schedule::Schedule;

/// A clock that runs ahead by what was taken, as that of the link does.
#[derive(Debug)]
pub(super) struct Share {
    schedule: Schedule,
    free_at: AtomicU64,
}

/// What a share may save up.
const SAVED_MAX: Duration = Duration::from_secs(1);

impl Share {
    /// This part of a link of `rate`.
    pub fn new(rate: ByteRate, part: f64) -> Self {
        let rate = rate.times(part).as_bytes().max(1);
        Self {
            schedule: Schedule::new(ByteRate::from_bytes(rate)),
            free_at: AtomicU64::new(0),
        }
    }

    /// Takes `bytes`, if the share has room for them.
    pub fn take(&self, now: Timestamp, bytes: u64) -> bool {
        let now = now.as_nanoseconds();
        let earliest = now.saturating_sub(SAVED_MAX.as_nanos() as u64);
        let cost = self.schedule.nanoseconds(bytes);
        self.free_at
            .fetch_update(Relaxed, Relaxed, |free_at| {
                (free_at <= now).then_some(free_at.max(earliest) + cost)
            })
            .is_ok()
    }
}
