//! What may be spent of one budget in one control interval, and what has been.
//!
//! The budget is a rate. It becomes available evenly over the interval, with a head start, and no
//! more than the rate times the interval can be spent in it. An interval that is longer than
//! planned goes on at the same rate. What was overspent is carried into the next interval, so that
//! the rate holds in the long run whatever the sizes and however the intervals fall.

use std::time::Duration;

use levee_vocab::Timestamp;

/// Part of an interval's budget that is available at its start.
const HEAD_START: f64 = 0.25;

/// Intervals' worth of debt that is carried over at most: a download that was broken off must not
/// count for hours.
const DEBT_MAX: f64 = 10.0;

/// See the file header.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// Bytes a second.
    rate: f64,
    start: Timestamp,
    /// Seconds.
    length: f64,
    spent: f64,
    /// What `spent` was when the interval began: less than nothing where something was saved.
    begun: f64,
    /// What earlier intervals left over, an interval's worth at most.
    spare: f64,
    /// Part of an interval's budget that may be saved for the next interval.
    savings_max: f64,
    /// Intervals' worth of debt that is carried over.
    debt_max: f64,
}

/// A budget that saves nothing.
impl Default for Allowance {
    fn default() -> Self {
        Self {
            rate: 0.0,
            start: Timestamp::ZERO,
            length: 0.0,
            spent: 0.0,
            begun: 0.0,
            spare: 0.0,
            savings_max: 0.0,
            debt_max: DEBT_MAX,
        }
    }
}

impl Allowance {
    /// A budget that each interval begins anew, whatever the last one overspent.
    pub(super) fn forgetful() -> Self {
        Self {
            debt_max: 0.0,
            ..Self::default()
        }
    }

    /// A budget of which a part may be saved from interval to interval: arrivals come by chance,
    /// and what a quiet moment left over would else be lost to the average.
    pub(super) fn with_savings(savings_max: f64) -> Self {
        Self {
            savings_max,
            ..Self::default()
        }
    }

    /// An interval of this length begins now, at this rate.
    pub(super) fn begin(&mut self, now: Timestamp, length: Duration, rate: f64) {
        let earned = self.rate * now.since(self.start).as_secs_f64();
        let left_over = earned - (self.spent - self.begun);
        self.rate = rate;
        self.start = now;
        self.length = length.as_secs_f64();
        let savings = self.whole() * self.savings_max;
        self.spent = (self.spent - earned).clamp(-savings, self.whole() * self.debt_max);
        self.begun = self.spent;
        self.spare = (self.spare + left_over).clamp(0.0, self.whole());
    }

    /// The rate changes within an interval; what was spent stays spent.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Whether `bytes` may be spent now.
    pub(super) fn has_room(&self, now: Timestamp, bytes: f64) -> bool {
        self.spent + bytes <= self.available(now)
    }

    /// Whether `bytes` may be spent now as the first of the interval, although its head start is
    /// smaller: earlier intervals left so much over.
    pub(super) fn has_spare(&self, bytes: f64) -> bool {
        self.spent <= self.begun && bytes <= self.spare
    }

    /// Whether `bytes` may be spent in this interval, if not now.
    pub(super) fn fits(&self, bytes: f64) -> bool {
        self.spent + bytes <= self.whole()
    }

    /// Like [`Self::has_room`] for what may be larger than all of an interval: it may go if nothing
    /// was spent, and is paid off in the intervals that follow.
    pub(super) fn has_room_or_is_fresh(&self, now: Timestamp, bytes: f64) -> bool {
        self.rate > 0.0 && (self.spent <= 0.0 || self.has_room(now, bytes))
    }

    /// Whether `bytes` may not be spent any more in this interval.
    pub(super) fn is_used_up(&self, bytes: f64) -> bool {
        self.rate <= 0.0 || (self.spent > 0.0 && !self.fits(bytes))
    }

    /// Spends `bytes`.
    pub(super) fn charge(&mut self, bytes: f64) {
        self.spent += bytes;
    }

    /// What was spent.
    pub(super) fn spent(&self) -> f64 {
        self.spent
    }

    /// All that may be spent in an interval.
    pub(super) fn whole(&self) -> f64 {
        self.rate * self.length
    }

    fn available(&self, now: Timestamp) -> f64 {
        let passed = now.since(self.start).as_secs_f64();
        let paced = (passed + self.length * HEAD_START).min(self.length);
        self.rate * passed.max(paced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::from_milliseconds(milliseconds)
    }

    #[test]
    fn a_budget_is_spent_evenly_with_a_head_start_and_never_exceeded() {
        let mut budget = Allowance::default();
        budget.begin(at(0), Duration::from_secs(1), 1000.0);
        assert!(budget.has_room(at(0), 250.0) && !budget.has_room(at(0), 251.0));
        budget.charge(250.0);
        assert!(budget.has_room(at(500), 500.0) && !budget.has_room(at(500), 501.0));
        budget.charge(750.0);
        assert!(!budget.has_room(at(999), 1.0));
        assert!(budget.is_used_up(1.0));
        // The Brain is late: the interval goes on at the same rate.
        assert!(budget.has_room(at(1500), 500.0));
        budget.begin(at(1000), Duration::from_secs(1), 1000.0);
        assert_eq!(budget.spent(), 0.0);
    }

    #[test]
    fn what_is_larger_than_an_interval_is_paid_off_later() {
        let mut budget = Allowance::default();
        budget.begin(at(0), Duration::from_secs(1), 1000.0);
        assert!(!budget.has_room(at(0), 2500.0));
        assert!(budget.has_room_or_is_fresh(at(0), 2500.0));
        budget.charge(2500.0);
        for second in 1..3 {
            budget.begin(at(second * 1000), Duration::from_secs(1), 1000.0);
            assert!(!budget.has_room_or_is_fresh(at(second * 1000), 2500.0));
        }
        budget.begin(at(3000), Duration::from_secs(1), 1000.0);
        assert!(budget.has_room_or_is_fresh(at(3000), 2500.0));
    }
}
