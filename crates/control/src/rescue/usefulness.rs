//! What a rescue server is worth, by the visitors who come back from it (H5).
//!
//! A rescue server that can serve nobody, because it cannot reach the origin or has no room left,
//! sends visitors back. Each of them costs the origin a redirect and the page as well, so such help
//! is worse than none; and as long as its D_redi seems to have room, nobody else is asked. So its
//! D_redi counts only for the part of its visitors whom it keeps:
//!
//! ```text
//!   worth = 1 - (came back / were redirected there),   over some intervals, at least WORTH_MIN
//! ```
//!
//! It is then used up sooner, and the next candidate is asked. With what is left it is tried on,
//! and recovers by itself. Only signed words count, and what our own marks tell of those without a
//! signature (`way_back.rs`); and never more of them than were redirected: who repeats a word that
//! he was given can have the rescue server used less while he goes on, and nothing else.

use levee_vocab::ByteRate;

/// What an interval still weighs one later. Sums are kept and not shares, so that an interval of
/// two visitors, who may not be back yet, does not speak as loud as one of a hundred.
const MEMORY: f64 = 0.8;

/// A part as small as this comes back from any rescue server now and then: what it must fetch may
/// fail.
const USUAL: f64 = 0.1;

/// Of D_redi, so much is used all the same: enough to see that it has recovered.
const WORTH_MIN: f64 = 0.05;

/// A change by this much is told to people.
const NEWS: f64 = 0.25;

/// See the file header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usefulness {
    redirected: f64,
    came_back: f64,
    told: f64,
}

impl Default for Usefulness {
    fn default() -> Self {
        Self {
            redirected: 0.0,
            came_back: 0.0,
            told: 1.0,
        }
    }
}

impl Usefulness {
    /// Takes in one interval: so many visitors were redirected there, and so many came back. Gives
    /// the part that comes back where people should hear of it.
    pub(super) fn measure(&mut self, redirected: u64, came_back: u64) -> Option<f64> {
        if redirected == 0 && came_back == 0 {
            return None;
        }
        self.redirected = MEMORY * self.redirected + redirected as f64;
        let came_back = MEMORY * self.came_back + came_back as f64;
        self.came_back = came_back.min(self.redirected);
        if (self.worth() - self.told).abs() < NEWS {
            return None;
        }
        self.told = self.worth();
        Some(1.0 - self.kept())
    }

    /// What `rate`, a D_redi, is worth.
    pub(super) fn of(&self, rate: ByteRate) -> ByteRate {
        rate.times(self.worth())
    }

    fn kept(&self) -> f64 {
        match self.redirected > 0.0 {
            true => 1.0 - self.came_back / self.redirected,
            false => 1.0,
        }
    }

    fn worth(&self) -> f64 {
        match self.kept() {
            kept if kept >= 1.0 - USUAL => 1.0,
            kept => kept.max(WORTH_MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: ByteRate = ByteRate::from_kilobytes(1000);

    #[test]
    fn who_sends_everybody_back_is_soon_worth_little_and_recovers() {
        let mut useful = Usefulness::default();
        useful.measure(20, 0);
        let news: Vec<_> = (0..12).filter_map(|_| useful.measure(20, 20)).collect();
        assert!(useful.of(RATE) < RATE.times(0.1));
        assert!((1..=3).contains(&news.len()), "{news:?}");
        for _ in 0..12 {
            useful.measure(1, 1);
        }
        assert_eq!(useful.of(RATE), RATE.times(WORTH_MIN));
        // The next may not be back yet.
        useful.measure(1, 0);
        assert!(useful.of(RATE) < RATE.times(0.3));
        for _ in 0..12 {
            useful.measure(2, 0);
        }
        assert_eq!(useful.of(RATE), RATE);
    }

    #[test]
    fn a_few_who_come_back_say_nothing_and_words_beyond_those_who_were_sent_are_forgotten() {
        let mut useful = Usefulness::default();
        for _ in 0..50 {
            assert_eq!(useful.measure(100, 10), None);
        }
        assert_eq!(useful.of(RATE), RATE);
        assert_eq!(useful.measure(0, 0), None);
        useful.measure(10, 1_000_000);
        assert_eq!(useful.of(RATE), RATE.times(WORTH_MIN));
        for _ in 0..12 {
            useful.measure(100, 0);
        }
        assert_eq!(useful.of(RATE), RATE);
    }
}
