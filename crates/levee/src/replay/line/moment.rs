//! Times as logs write them.

use levee_observe::Calendar;

use super::Moment;

/// Reads log times, and remembers the last one.
#[derive(Debug, Default)]
pub(super) struct Clock {
    text: Vec<u8>,
    /// None until a time was read: the empty text is no time, though it equals the first `text`.
    unix: Option<u64>,
}

impl Clock {
    /// The Unix second of `10/Oct/2000:13:55:36 -0700`.
    pub(super) fn read(&mut self, text: &[u8]) -> Option<u64> {
        if self.text != text {
            let unix = log_time(std::str::from_utf8(text).ok()?)?;
            self.unix = Some(unix);
            self.text.clear();
            self.text.extend_from_slice(text);
        }
        self.unix
    }
}

/// Any form that JSON logs write: RFC 3339, that of combined logs, or Unix seconds.
pub(super) fn any(text: &str) -> Option<Moment> {
    if let Some(moment) = rfc3339(text) {
        return Some(moment);
    }
    if let Some(second) = log_time(text) {
        let fraction = None;
        return Some(Moment { second, fraction });
    }
    unix(text.parse().ok()?)
}

/// Unix seconds, or milliseconds where the number is too large for seconds.
pub(super) fn unix(number: f64) -> Option<Moment> {
    // The year 5138 in seconds, 1973 in milliseconds.
    let seconds = if number > 1e11 { number / 1e3 } else { number };
    if !(0.0..1e11).contains(&seconds) {
        return None;
    }
    Some(Moment {
        second: seconds as u64,
        fraction: Some((seconds.fract() * 1e9) as u32),
    })
}

fn log_time(text: &str) -> Option<u64> {
    let (date, zone) = text.split_once(' ')?;
    let mut parts = date.split(['/', ':']);
    let day = number(parts.next()?)?;
    let month = Calendar::month_of(parts.next()?)?;
    let year = number(parts.next()?)?;
    let mut clock = [0; 3];
    for part in &mut clock {
        *part = number(parts.next()?)?;
    }
    if parts.next().is_some() {
        return None;
    }
    shift(Calendar::unix_of([year, month, day], clock)?, zone)
}

/// `2026-11-21T03:40:02.123+01:00`.
fn rfc3339(text: &str) -> Option<Moment> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.split('-').map(number);
    let date = [parts.next()??, parts.next()??, parts.next()??];
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone_at);
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, digits)) => (clock, Some(nanoseconds(digits)?)),
        None => (clock, None),
    };
    let mut parts = clock.split(':').map(number);
    let clock = [parts.next()??, parts.next()??, parts.next()??];
    let second = shift(Calendar::unix_of(date, clock)?, &zone.replace(':', ""))?;
    Some(Moment { second, fraction })
}

/// A local second as one of UTC.
fn shift(local: u64, zone: &str) -> Option<u64> {
    if matches!(zone, "Z" | "z") {
        return Some(local);
    }
    let (sign, digits) = zone.split_at_checked(1)?;
    let number = number(digits).filter(|_| digits.len() == 4)?;
    let offset = number / 100 * 3600 + number % 100 * 60;
    match sign {
        "+" => local.checked_sub(offset),
        "-" => Some(local + offset),
        _other => None,
    }
}

fn nanoseconds(digits: &str) -> Option<u32> {
    let known: String = digits.chars().chain("000000000".chars()).take(9).collect();
    u32::try_from(number(&known)?).ok()
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_one_moment_is_the_same_second() {
        for text in [
            "2026-11-21T03:40:02Z",
            "2026-11-21T04:40:02.5+01:00",
            "2026-11-20 20:40:02-0700",
            "21/Nov/2026:04:40:02 +0100",
            "20/Nov/2026:20:40:02 -0700",
            "1795232402",
            "1795232402.123",
            "1795232402123",
        ] {
            let second = any(text).map(|moment| moment.second);
            assert_eq!(second, Some(1_795_232_402), "{text}");
        }
    }

    /// Found by fuzzing: the first line of a log with `[] ` was a visit of 1970.
    #[test]
    fn the_empty_text_is_no_time_even_for_a_clock_that_has_read_none() {
        let mut clock = Clock::default();
        assert_eq!(clock.read(b""), None);
        let second = clock.read(b"21/Nov/2026:04:40:02 +0100");
        assert_eq!(second, Some(1_795_232_402));
        assert_eq!(clock.read(b""), None);
        assert_eq!(clock.read(b"21/Nov/2026:04:40:02 +0100"), second);
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "-",
            "yesterday",
            "31/Feb/2026:00:00:00 +0000",
            "21/Nov/2026:03:40:02",
            "21/Nov/2026:03:40:02 CEST",
            "21/Nov/2026:03:40:02:07 +0000",
            "2026-11-21T03:40:02",
            "2026-11-21T03:61:02Z",
            "99999-11-21T03:40:02Z",
            "2026-11-21T99999999999999999999:40:02Z",
            "ääää",
            "NaN",
            "-5",
        ] {
            assert_eq!(any(text), None, "{text}");
        }
    }
}
