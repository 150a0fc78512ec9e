//! Points in calendar time, as members tell each other.
//!
//! Another type than `levee_vocab::Timestamp` on purpose: that one counts from an arbitrary start
//! and never goes backwards, this one is what the machines' clocks show, and those disagree.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since the beginning of 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub u64);

/// Clocks of members may differ by this much. A machine that asks a time server is within a
/// second; this leaves room for one that has lost its time server for weeks.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);

/// A text is no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a date is written like 2026-11-21T16:53:00Z")]
pub struct NotADate;

impl UnixMillis {
    /// This point and `later`.
    #[must_use]
    pub fn after(self, later: Duration) -> Self {
        let millis = u64::try_from(later.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Time from `earlier` to `self`; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Without its part of a second, as dates are written.
    #[must_use]
    pub const fn whole_seconds(self) -> Self {
        Self(self.0 / 1000 * 1000)
    }
}

/// As RFC 3339 writes it, in UTC and whole seconds: `2026-11-21T16:53:00Z`.
impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0 / 1000).unwrap_or(i64::MAX);
        let date = OffsetDateTime::from_unix_timestamp(seconds).ok();
        match date.and_then(|date| date.format(&Rfc3339).ok()) {
            Some(text) => f.write_str(&text),
            // After the year 9999.
            None => write!(f, "{} s after 1970", self.0 / 1000),
        }
    }
}

impl FromStr for UnixMillis {
    type Err = NotADate;

    fn from_str(text: &str) -> Result<Self, NotADate> {
        let date = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| NotADate)?;
        let millis = date.unix_timestamp_nanos() / 1_000_000;
        let read = u64::try_from(millis).map(Self).map_err(|_| NotADate)?;
        // Each date has one text.
        (read.to_string() == text).then_some(read).ok_or(NotADate)
    }
}

/// Gives stamps that always grow, even when the clock is set back a little.
///
/// Where it is set back by more than those who hear us take from the future they begin anew: it was
/// wrong before, so nobody has taken what was signed meanwhile, or would take what comes after it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    last: UnixMillis,
}

impl Stamps {
    /// The stamp of a message that is made at `now`: later than all before that count.
    /// None is further from `now` than `ahead_max`.
    pub fn next(&mut self, now: UnixMillis, ahead_max: Duration) -> UnixMillis {
        let next = UnixMillis(self.last.0.saturating_add(1));
        self.last = match next.since(now) > ahead_max {
            true => now,
            false => now.max(next),
        };
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written() {
        let date = UnixMillis(1_795_280_000_000);
        assert_eq!(date.to_string(), "2026-11-21T16:53:20Z");
        assert_eq!(date.to_string().parse(), Ok(date));
        let elsewhere = "2026-11-21T17:53:20+01:00";
        assert_eq!(elsewhere.parse::<UnixMillis>(), Err(NotADate));
        assert_eq!("2026-11-21".parse::<UnixMillis>(), Err(NotADate));
        assert_eq!("1969-12-31T23:59:59Z".parse::<UnixMillis>(), Err(NotADate));
        assert_eq!(
            UnixMillis(u64::MAX).to_string(),
            "18446744073709551 s after 1970"
        );
    }

    #[test]
    fn stamps_grow_even_when_the_clock_goes_back() {
        let mut stamps = Stamps::default();
        let given = [5, 5, 3, 9].map(|now| stamps.next(UnixMillis(now), CLOCK_SKEW_MAX).0);
        assert_eq!(given, [5, 6, 7, 9]);
    }

    #[test]
    fn a_clock_that_was_wrong_for_a_moment_spoils_no_stamp_after_it() {
        let (now, wrong) = (UnixMillis(1_000_000), UnixMillis(u64::MAX));
        let mut stamps = Stamps::default();
        let given = [now, wrong, wrong, now, now].map(|clock| stamps.next(clock, CLOCK_SKEW_MAX));
        assert_eq!(given, [now, wrong, wrong, now, UnixMillis(now.0 + 1)]);
        // A minute is no more than clocks may differ by.
        let ahead = now.after(CLOCK_SKEW_MAX);
        let given = [ahead, now].map(|clock| stamps.next(clock, CLOCK_SKEW_MAX));
        assert_eq!(given, [ahead, now]);
        let given = [UnixMillis(ahead.0 - 1), now].map(|clock| stamps.next(clock, CLOCK_SKEW_MAX));
        assert_eq!(given, [UnixMillis(ahead.0 - 1), ahead]);
    }

    #[test]
    fn time_between_points_never_goes_negative() {
        let (early, late) = (UnixMillis(1), UnixMillis(3));
        assert_eq!(late.since(early), Duration::from_millis(2));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early.after(Duration::MAX), UnixMillis(u64::MAX));
        assert_eq!(UnixMillis(1999).whole_seconds(), UnixMillis(1000));
    }
}
