//! B, the outbound link, where the operator did not state it (R2).
//!
//! A link shows its rate only when it is full. So the estimate begins with what the network
//! interface promises and comes down when the server sees both signs of a full link at once: many
//! connections have bytes that the path does not take, and they are most of those that are being
//! answered. One slow visitor is neither. The estimate is then the most that left in any of the
//! last full intervals (a maximum filter, as in BBR, Cardwell et al. 2016), because every
//! measurement is disturbed downwards only. What is ever seen to leave raises it at once.
//!
//! Visitors who do not read say nothing of the link, however many they are: a flood of them would
//! make any link look full and narrow. The kernel knows who they are ([`SendReading::held_up_by`]).
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
    /// True bytes given to the kernel, heads too. It takes more than the link at first.
    pub sent: u64,
    /// Bytes that left by the busiest network interface, headers and all, whoever sent them; none
    /// where the system does not tell. What this server sent is never more.
    pub left: Option<u64>,
    /// In this time.
    pub elapsed: Duration,
    /// Connections whose bytes the kernel did not take at the end of the interval.
    pub held_up: u64,
    /// How many of them wait for their visitor to read.
    pub held_up_by_visitors: u64,
    /// Connections being answered at the end of the interval, all of these included.
    pub answering: u64,
}

/// What the kernel tells of a connection whose bytes it does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendReading {
    /// Time in which there was something to send.
    pub busy: Duration,
    /// How much of it the visitor's receive window held it up.
    pub window_limited: Duration,
    /// Segments that have been sent and not acknowledged.
    pub segments_in_flight: u32,
    /// Times that the wait for an answer was doubled in vain.
    pub backoff: u8,
    /// Bytes sent, repeats and all.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_repeated: u64,
}

/// What a connection waits for that has bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldUpBy {
    /// Some link on the way, perhaps our own.
    Path,
    /// The visitor, who does not read what has arrived.
    Visitor,
}

/// Segments on their way up to which a small window is the visitor's doing: what was sent has
/// arrived and lies there unread. On a full link with long queues windows are a limit as well, but
/// then it is the link that holds what fills them. This many a connection may send at once
/// (RFC 6928).
const IN_FLIGHT_UNREAD_MAX: u32 = 10;

impl SendReading {
    /// Who is to blame: the visitor, where the window was small for half of the time and what was
    /// sent has arrived; where nothing comes back at all; or where half of what is sent is thrown
    /// away, as by a receiver whose buffer is full. A link that loses so much is of no use.
    pub fn held_up_by(self) -> HeldUpBy {
        let is_window = self.window_limited * 2 >= self.busy && !self.busy.is_zero();
        let is_unread = is_window && self.segments_in_flight <= IN_FLIGHT_UNREAD_MAX;
        let is_thrown_away = self.bytes_repeated * 2 >= self.bytes_sent && self.bytes_sent > 0;
        match is_unread || self.backoff > 0 || is_thrown_away {
            true => HeldUpBy::Visitor,
            false => HeldUpBy::Path,
        }
    }
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
        let sent = ByteRate::of(sample.sent, sample.elapsed).times(HEADERS);
        let left = sample.left.map(|left| ByteRate::of(left, sample.elapsed));
        let seen = left.map_or(sent, |left| left.min(sent));
        let unread = sample.held_up_by_visitors;
        let held_up = sample.held_up.saturating_sub(unread);
        let answering = sample.answering.saturating_sub(unread);
        let share = held_up as f64 / answering.max(1) as f64;
        if held_up >= HELD_UP_MIN && share >= HELD_UP_SHARE {
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
            left: None,
            elapsed: SECOND,
            held_up,
            held_up_by_visitors: 0,
            answering,
        }
    }

    fn reading(busy: u64, window_limited: u64, segments_in_flight: u32) -> SendReading {
        SendReading {
            busy: Duration::from_millis(busy),
            window_limited: Duration::from_millis(window_limited),
            segments_in_flight,
            backoff: 0,
            bytes_sent: 250_000,
            bytes_repeated: 2_000,
        }
    }

    #[test]
    fn a_flood_of_slow_readers_is_not_a_full_link() {
        let promise = ByteRate::from_kilobytes(12_500);
        let mut link = LinkEstimate::new(promise);
        for _ in 0..100 {
            link.observe(SendSample {
                held_up_by_visitors: 998,
                ..interval(1_900, 1000, 1010)
            });
        }
        assert_eq!(link.rate(), promise);
    }

    #[test]
    fn a_full_link_is_found_behind_a_flood_of_slow_readers() {
        let mut link = LinkEstimate::new(ByteRate::from_kilobytes(12_500));
        for _ in 0..8 {
            link.observe(SendSample {
                held_up_by_visitors: 1000,
                ..interval(50, 1060, 1080)
            });
        }
        assert_eq!(link.rate(), ByteRate::from_bytes(52_500));
    }

    #[test]
    fn what_waits_in_the_kernel_has_not_left() {
        let mut link = LinkEstimate::new(ByteRate::from_kilobytes(12_500));
        for handed_over in [40_000, 2_600, 900, 1_000, 3_000] {
            link.observe(SendSample {
                left: Some(1_250_000),
                ..interval(handed_over, 40, 40)
            });
        }
        assert_eq!(link.rate(), ByteRate::from_kilobytes(1250));
    }

    #[test]
    fn who_does_not_read_is_told_from_a_narrow_path() {
        // Readers of 10 kB/s on loopback, and the same who stopped a moment ago.
        assert_eq!(reading(8000, 7990, 0).held_up_by(), HeldUpBy::Visitor);
        assert_eq!(reading(8000, 6000, 2).held_up_by(), HeldUpBy::Visitor);
        // A full link: the window of congestion, or in long queues the receive window full of what
        // is on its way.
        assert_eq!(reading(8000, 30, 12).held_up_by(), HeldUpBy::Path);
        assert_eq!(reading(8000, 30, 2).held_up_by(), HeldUpBy::Path);
        assert_eq!(reading(8000, 7000, 45).held_up_by(), HeldUpBy::Path);
        // Somebody who has gone, or whose window stays shut.
        let gone = SendReading {
            backoff: 2,
            ..reading(8000, 30, 1)
        };
        assert_eq!(gone.held_up_by(), HeldUpBy::Visitor);
        // As seen of a reader on loopback who made its buffer smaller than what was on its way.
        let thrown_away = SendReading {
            bytes_sent: 254_176,
            bytes_repeated: 188_416,
            ..reading(3956, 636, 1)
        };
        assert_eq!(thrown_away.held_up_by(), HeldUpBy::Visitor);
        // A kernel that does not tell.
        let silent = SendReading {
            bytes_sent: 0,
            bytes_repeated: 0,
            ..reading(0, 0, 0)
        };
        assert_eq!(silent.held_up_by(), HeldUpBy::Path);
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
