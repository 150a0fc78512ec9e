//! B, the outbound link, where the operator did not state it (R2).
//!
//! A link shows its rate only when it is full. So the estimate begins with what the network
//! interface promises and comes down when the server sees both signs of a full link at once: many
//! connections have bytes that the kernel does not take, and they are most of those that are being
//! answered. One slow visitor is neither. The estimate is then the most that left in any of the
//! last full intervals (a maximum filter, as in BBR, Cardwell et al. 2016), because every
//! measurement is disturbed downwards only. What is ever seen to leave raises it at once.
//!
//! A link may also have become faster, or the fullness may have been somebody else's: after a long
//! time without a full interval the estimate grows again, step by step, up to the first promise.

use std::collections::VecDeque;
use std::time::Duration;

use levee_vocab::ByteRate;

/// Connections that must be held up before a link can count as full: below it, they say more about
/// a few visitors than about the link.
const HELD_UP_MIN: u64 = 8;
/// Share of the connections being answered that must be held up.
const HELD_UP_SHARE: f64 = 0.5;
/// Full intervals that the maximum is taken over: long enough to bridge pauses of single visitors,
/// short enough to follow a line that became slower within seconds.
const WINDOW: usize = 8;
/// What a full link carries beside HTTP: 52 bytes of TCP/IP and 18 of Ethernet in 1518.
const HEADERS: f64 = 1.05;
/// Time without a full interval after which the estimate grows by a quarter.
const GROWTH_PERIOD: Duration = Duration::from_secs(600);

/// What was seen of sending in one control interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendSample {
    /// True bytes sent, heads too.
    pub sent: u64,
    /// In this time.
    pub elapsed: Duration,
    /// Connections whose bytes the kernel did not take at the end of the interval.
    pub held_up: u64,
    /// Connections being answered at the end of the interval, these included.
    pub answering: u64,
}

/// The estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEstimate {
    promise: ByteRate,
    rate: ByteRate,
    full: VecDeque<ByteRate>,
    calm: Duration,
}

impl LinkEstimate {
    /// Begins with what the network interface promises.
    pub const fn new(promise: ByteRate) -> Self {
        Self {
            promise,
            rate: promise,
            full: VecDeque::new(),
            calm: Duration::ZERO,
        }
    }

    /// The estimate of B.
    pub const fn rate(&self) -> ByteRate {
        self.rate
    }

    /// Learns from one interval.
    pub fn observe(&mut self, sample: SendSample) {
        let seen = ByteRate::of(sample.sent, sample.elapsed).times(HEADERS);
        let share = sample.held_up as f64 / sample.answering.max(1) as f64;
        if sample.held_up >= HELD_UP_MIN && share >= HELD_UP_SHARE {
            self.calm = Duration::ZERO;
            self.full.push_back(seen);
            if self.full.len() > WINDOW {
                self.full.pop_front();
            }
            // Until the window has half of its intervals, a single stutter could halve the site.
            if self.full.len() * 2 >= WINDOW {
                self.rate = self.full.iter().copied().max().unwrap_or(self.rate);
            }
        } else {
            self.calm += sample.elapsed;
            if self.calm >= GROWTH_PERIOD {
                self.calm = Duration::ZERO;
                self.full.clear();
                self.rate = self.rate.times(1.25).min(self.promise.max(self.rate));
            }
        }
        self.rate = self.rate.max(seen).max(ByteRate::from_bytes(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn interval(kilobytes: u64, held_up: u64, answering: u64) -> SendSample {
        SendSample {
            sent: kilobytes * 1000,
            elapsed: SECOND,
            held_up,
            answering,
        }
    }

    #[test]
    fn a_full_link_is_found_within_seconds() {
        let mut link = LinkEstimate::new(ByteRate::from_kilobytes(12_500));
        for sent in [48, 51, 50, 49, 51] {
            link.observe(interval(sent, 60, 80));
        }
        assert_eq!(link.rate(), ByteRate::from_bytes(53_550));
    }

    #[test]
    fn a_few_slow_visitors_are_not_a_full_link() {
        let mut link = LinkEstimate::new(ByteRate::from_kilobytes(12_500));
        for _ in 0..100 {
            link.observe(interval(300, 5, 6));
            link.observe(interval(300, 20, 100));
        }
        assert_eq!(link.rate(), ByteRate::from_kilobytes(12_500));
    }

    #[test]
    fn what_is_seen_to_leave_raises_the_estimate_and_calm_lets_it_grow() {
        let mut link = LinkEstimate::new(ByteRate::from_kilobytes(1000));
        for _ in 0..8 {
            link.observe(interval(50, 60, 80));
        }
        link.observe(interval(100, 0, 10));
        assert_eq!(link.rate(), ByteRate::from_kilobytes(105));
        for _ in 0..20_000 {
            link.observe(interval(1, 0, 1));
        }
        assert_eq!(
            link.rate(),
            ByteRate::from_kilobytes(1000),
            "and not beyond the promise"
        );
    }
}
