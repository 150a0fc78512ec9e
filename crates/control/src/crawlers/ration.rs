//! What crawlers get, or an origin that we help: so many bytes a second, with a little saved for a
//! burst.
//!
//! Unlike the other budgets of a Gate it does not begin anew with each interval, because there are
//! intervals of which the Gate never hears: while nobody is redirected plans change seldom.
//! What is larger than all that was saved goes all the same, and is paid off before the next.

use levee_vocab::Timestamp;

/// Seconds of the rate that are saved.
const SAVED: f64 = 2.0;

/// Seconds of the rate that are owed at most: a large file, broken off, must not count for hours.
const OWED: f64 = 30.0;

/// See the file header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ration {
    /// Bytes a second.
    rate: f64,
    saved: f64,
    at: Timestamp,
}

impl Ration {
    /// Its rate is this from now on. At first all that can be saved is.
    pub(crate) fn set_rate(&mut self, now: Timestamp, rate: f64) {
        self.earn(now);
        if self.rate == 0.0 && self.saved == 0.0 {
            self.saved = rate * SAVED;
        }
        self.rate = rate;
        self.saved = self.saved.min(rate * SAVED);
    }

    /// Takes `bytes`, if anything is left.
    pub(crate) fn take(&mut self, now: Timestamp, bytes: f64) -> bool {
        self.earn(now);
        if self.saved <= 0.0 {
            return false;
        }
        self.saved = (self.saved - bytes).max(-self.rate * OWED);
        true
    }

    /// Whether anything is left.
    pub(crate) fn has_any(&self, now: Timestamp) -> bool {
        self.saved + self.rate * now.since(self.at).as_secs_f64() > 0.0
    }

    fn earn(&mut self, now: Timestamp) {
        let earned = self.rate * now.since(self.at).as_secs_f64();
        self.saved = (self.saved + earned).min(self.rate * SAVED);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::from_milliseconds(milliseconds)
    }

    #[test]
    fn what_is_taken_in_the_long_run_is_the_rate() {
        let mut ration = Ration::default();
        ration.set_rate(at(0), 1000.0);
        let taken = (0..100_000)
            .filter(|&ms| ration.take(at(ms), 300.0))
            .count();
        let bytes = taken * 300;
        assert!((100_000..=103_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_large_file_goes_and_is_paid_off() {
        let mut ration = Ration::default();
        ration.set_rate(at(0), 1000.0);
        assert!(ration.take(at(0), 10_000.0));
        assert!(!ration.take(at(7_900), 1.0));
        assert!(ration.take(at(8_100), 1_000_000.0));
        assert!(!ration.take(at(38_000), 1.0));
        assert!(ration.take(at(38_300), 1.0));
    }

    #[test]
    fn without_a_rate_nothing_is_given_and_nothing_saved_is_kept() {
        let mut ration = Ration::default();
        assert!(!ration.take(at(0), 1.0));
        ration.set_rate(at(0), 1000.0);
        ration.set_rate(at(1000), 0.0);
        assert!(!ration.take(at(5000), 1.0));
    }
}
