//! When to order a certificate: at once where there is none, else when the authority advises it or
//! two thirds of its time are over, and after a failure not before a rest.
//!
//! Pure: the time is an argument. The rests follow what authorities allow (five failed checks of a
//! name in an hour): 1 minute, 3, 9, 27, 81, and so on up to half a day. A certificate that is
//! about to expire is worth an attempt in each tenth of the time that is left.

use std::time::{Duration, SystemTime};

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its first moment.
    pub from: SystemTime,
    /// Its last.
    pub until: SystemTime,
}

/// When an authority wants a certificate to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Not before.
    pub from: SystemTime,
    /// Not after.
    pub until: SystemTime,
}

/// How it stands with one name.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// Of the certificate in force; none while there is none.
    pub lifetime: Option<Lifetime>,
    /// What the authority advises for it.
    pub window: Option<Window>,
    /// When such advice made us order one before its time.
    advised_at: Option<SystemTime>,
    /// Attempts in a row that failed.
    failures: u32,
    rest_until: Option<SystemTime>,
    /// 0 to 1: servers that were started together do not all renew in one moment.
    jitter: f64,
}

/// The first rest after a failure.
const REST_MIN: Duration = Duration::from_secs(60);
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(12 * 3600);
/// Each rest is so many times as long as the one before.
const REST_GROWTH: u32 = 3;
/// Renewal begins when this part of a lifetime is left, and up to a tenth of it earlier.
const LEFT: f64 = 1.0 / 3.0;
/// Whatever an authority advises, a certificate is renewed while this part of its time is left.
const LEFT_MIN: f64 = 1.0 / 10.0;
/// An authority that always wants another certificate gets four orders a day.
const ADVISED_REST: Duration = Duration::from_secs(6 * 3600);

impl Lifetime {
    fn part(self, share: f64) -> Duration {
        let whole = self.until.duration_since(self.from);
        whole.unwrap_or_default().mul_f64(share)
    }
}

impl Standing {
    /// Nothing was tried yet. `jitter` is 0 to 1.
    pub fn new(lifetime: Option<Lifetime>, jitter: f64) -> Self {
        Self {
            lifetime,
            window: None,
            advised_at: None,
            failures: 0,
            rest_until: None,
            jitter,
        }
    }

    /// When the next attempt is due; none means at once.
    pub fn due(&self) -> Option<SystemTime> {
        let renewal = self.advised().or_else(|| self.usual());
        match (renewal, self.rest_until) {
            (Some(renewal), Some(rest)) => Some(renewal.max(rest)),
            (renewal, rest) => renewal.or(rest),
        }
    }

    /// When a third of the time is left.
    fn usual(&self) -> Option<SystemTime> {
        let lifetime = self.lifetime?;
        Some(lifetime.until - lifetime.part(LEFT * (1.0 + self.jitter / 10.0)))
    }

    /// A moment in the authority's window.
    //= RFC 9773 section 4.2: "select a uniform random time within the suggested window"
    fn advised(&self) -> Option<SystemTime> {
        let (lifetime, window) = (self.lifetime?, self.window?);
        let length = window.until.duration_since(window.from).unwrap_or_default();
        let moment = window.from + length.mul_f64(self.jitter);
        let latest = lifetime.until - lifetime.part(LEFT_MIN);
        let rested = self.advised_at.map(|at| at + ADVISED_REST);
        Some(
            rested
                .map_or(moment, |rested| rested.max(moment))
                .min(latest),
        )
    }

    /// An attempt failed at `now`; the authority may have said how long to rest.
    pub fn note_failure(&mut self, now: SystemTime, wanted: Option<Duration>) {
        let rest = REST_MIN.saturating_mul(REST_GROWTH.saturating_pow(self.failures));
        let left = self
            .lifetime
            .and_then(|lifetime| lifetime.until.duration_since(now).ok());
        let longest = match left {
            Some(left) => (left / 10).clamp(REST_MIN, REST_MAX),
            None => REST_MAX,
        };
        let rest = rest.min(longest).mul_f64(1.0 + self.jitter / 10.0);
        self.failures = self.failures.saturating_add(1);
        self.rest_until = Some(now + rest.max(wanted.unwrap_or_default()));
    }

    /// A certificate came at `now`.
    pub fn note_success(&mut self, now: SystemTime, lifetime: Option<Lifetime>) {
        let was_early = self.usual().is_some_and(|usual| now < usual);
        *self = Self {
            advised_at: was_early.then_some(now),
            ..Self::new(lifetime, self.jitter)
        };
    }

    /// Somebody wants it tried again at once.
    pub fn end_rest(&mut self) {
        self.rest_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn ninety_days() -> (SystemTime, Standing) {
        let from = SystemTime::UNIX_EPOCH + DAY * 20_000;
        let until = from + DAY * 90;
        (from, Standing::new(Some(Lifetime { from, until }), 0.0))
    }

    #[test]
    fn without_a_certificate_one_is_ordered_at_once() {
        assert_eq!(Standing::new(None, 0.5).due(), None);
    }

    #[test]
    fn it_is_renewed_when_a_third_of_its_time_is_left_and_by_few_in_one_moment() {
        let (from, standing) = ninety_days();
        assert_eq!(standing.due(), Some(from + DAY * 60));
        let other = Standing::new(standing.lifetime, 1.0);
        assert_eq!(other.due(), Some(from + DAY * 57));
    }

    #[test]
    fn what_an_authority_advises_comes_before_our_own_third_or_after_it() {
        let (from, mut standing) = ninety_days();
        standing.jitter = 0.5;
        for (first, last, due) in [(10, 12, 11), (80, 80, 80), (100, 200, 81)] {
            let (first, last) = (from + DAY * first, from + DAY * last);
            standing.window = Some(Window {
                from: first,
                until: last,
            });
            assert_eq!(standing.due(), Some(from + DAY * due));
        }
    }

    #[test]
    fn an_authority_that_always_wants_another_certificate_gets_four_a_day() {
        let (from, mut standing) = ninety_days();
        let past = Window {
            from: from - DAY,
            until: from,
        };
        standing.window = Some(past);
        let now = from + DAY;
        assert!(standing.due().is_some_and(|due| due < now), "at once");
        standing.note_success(now, standing.lifetime);
        standing.window = Some(past);
        assert_eq!(standing.due(), Some(now + DAY / 4));
        // One that came in its time says nothing of the next.
        standing.note_success(from + DAY * 70, standing.lifetime);
        assert_eq!(standing.advised_at, None);
    }

    #[test]
    fn each_rest_is_longer_and_five_failures_fill_an_hour() {
        let start = SystemTime::UNIX_EPOCH + DAY * 20_000;
        let mut standing = Standing::new(None, 0.0);
        let mut now = start;
        for minutes in [1, 3, 9, 27, 81, 243, 720, 720] {
            standing.note_failure(now, None);
            let due = standing.due().expect("a rest");
            assert_eq!(due, now + Duration::from_secs(60 * minutes));
            now = due;
        }
        standing.end_rest();
        assert_eq!(standing.due(), None);
        assert_eq!(standing.failures, 8);
    }

    #[test]
    fn an_authority_that_wants_to_be_left_alone_is() {
        let start = SystemTime::UNIX_EPOCH;
        let mut standing = Standing::new(None, 0.0);
        standing.note_failure(start, Some(DAY));
        assert_eq!(standing.due(), Some(start + DAY));
    }

    #[test]
    fn what_is_about_to_expire_is_tried_more_often() {
        let (from, mut standing) = ninety_days();
        let now = from + DAY * 90 - Duration::from_secs(3600);
        for _ in 0..9 {
            standing.note_failure(now, None);
        }
        assert_eq!(standing.due(), Some(now + Duration::from_secs(360)));
    }
}
