//! When to talk to the registry (R11; dotslash 4.5).
//!
//! Registrations are soft state: told again every period, and at once when d_free changes. Searches
//! run every period too, so that candidates are at hand before the crowd is; and once an interval
//! while help is needed and nobody is left to ask. A registry that is away costs nothing: the last
//! candidates stay.

use std::time::Duration;

use levee_vocab::{ByteRate, Timestamp};

/// The two timers, and what the registry was told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovery {
    next_search: Timestamp,
    next_registration: Timestamp,
    registered: Option<ByteRate>,
    searched_in: Option<u64>,
}

/// Whether a message to the registry is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Send it.
    Now,
    /// Not yet.
    Later,
}

impl Discovery {
    /// Whether the periodic search is due; if so, the next one is a period away.
    pub(crate) fn search(&mut self, now: Timestamp, period: Duration) -> Due {
        if now < self.next_search {
            return Due::Later;
        }
        self.next_search = now + period;
        Due::Now
    }

    /// Whether a search for lack of candidates may be made in this interval.
    pub(crate) fn search_in_need(&mut self, interval: u64) -> Due {
        if self.searched_in == Some(interval) {
            return Due::Later;
        }
        self.searched_in = Some(interval);
        Due::Now
    }

    /// Whether `free` must be told to the registry.
    pub(crate) fn register(&mut self, now: Timestamp, period: Duration, free: ByteRate) -> Due {
        if now < self.next_registration && self.registered == Some(free) {
            return Due::Later;
        }
        self.next_registration = now + period;
        self.registered = Some(free);
        Due::Now
    }

    /// When one of them is due next.
    pub(crate) fn next_deadline(&self) -> Timestamp {
        self.next_search.min(self.next_registration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_told_periodically_and_when_the_offer_changes() {
        let mut discovery = Discovery::default();
        let period = Duration::from_secs(10);
        let offer = ByteRate::from_kilobytes(500);
        let mut told = |seconds, free| {
            discovery.register(Timestamp::from_seconds(seconds), period, free) == Due::Now
        };
        assert!(told(0, offer));
        assert!(!told(5, offer));
        assert!(told(6, ByteRate::ZERO));
        assert!(!told(15, ByteRate::ZERO));
        assert!(told(16, ByteRate::ZERO));
    }
}
