//! How many messages a peer may send: a burst, and then so many a second.
//!
//! A token bucket kept as one number, the time at which it was last empty, so that it needs no
//! timer.

use std::time::Duration;

use levee_vocab::Timestamp;

/// A budget of messages that refills with time.
#[derive(Clone, Debug)]
pub struct MessageBudget {
    burst: u32,
    /// Time in which one message is earned.
    each: Duration,
    /// When the bucket will be full again.
    full_at: Timestamp,
}

impl MessageBudget {
    /// `burst` messages at once, `per_second` on average. Both at least 1.
    pub fn new(burst: u32, per_second: u32) -> Self {
        Self {
            burst: burst.max(1),
            each: Duration::from_secs(1) / per_second.max(1),
            full_at: Timestamp::ZERO,
        }
    }

    /// Takes one message from the budget; false when there is none left, and then takes nothing.
    pub fn take(&mut self, now: Timestamp) -> bool {
        let missing = self.full_at.since(now);
        if missing + self.each > self.each * self.burst {
            return false;
        }
        self.full_at = now + missing + self.each;
        true
    }

    /// How long after `now` one message will be there to take; nothing where one is.
    pub fn wait(&self, now: Timestamp) -> Duration {
        let needed = self.full_at.since(now) + self.each;
        needed.saturating_sub(self.each * self.burst)
    }

    /// When all of it will be there again, if nothing is taken.
    pub const fn full_at(&self) -> Timestamp {
        self.full_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_so_many_a_second() {
        let mut budget = MessageBudget::new(3, 2);
        let start = Timestamp::from_seconds(10);
        let taken = (0..5).filter(|_| budget.take(start)).count();
        assert_eq!(taken, 3);
        assert_eq!(budget.wait(start), Duration::from_millis(500));
        assert!(!budget.take(start + Duration::from_millis(499)));
        assert!(budget.take(start + Duration::from_millis(500)));
        assert!(!budget.take(start + Duration::from_millis(500)));
        assert_eq!(budget.full_at(), start + Duration::from_secs(2));
        let later = start + Duration::from_secs(60);
        assert_eq!(budget.wait(later), Duration::ZERO);
        assert_eq!((0..9).filter(|_| budget.take(later)).count(), 3);
    }
}
