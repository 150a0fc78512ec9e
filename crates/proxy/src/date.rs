//! The Date line of responses, made once a second.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// `Date: Sat, 21 Nov 2026 00:00:00 GMT` and the wall clock that it was made from.
#[derive(Debug)]
pub(crate) struct DateLine {
    now: SystemTime,
    second: u64,
    line: [u8; LENGTH],
}

const LENGTH: usize = 37;

impl DateLine {
    /// The line for `now`.
    pub fn new(now: SystemTime) -> Self {
        let mut date = Self {
            now,
            second: u64::MAX,
            line: [b' '; LENGTH],
        };
        date.update(now);
        date
    }

    /// Brings the line up to date.
    pub fn update(&mut self, now: SystemTime) {
        self.now = now;
        let second = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        if second == self.second {
            return;
        }
        self.second = second;
        let mut line = self.line.as_mut_slice();
        // Every date of RFC 9110 has the same length, and the line has room for it.
        let written = write!(line, "Date: {}\r\n", httpdate::HttpDate::from(now));
        debug_assert!(written.is_ok() && line.is_empty());
    }

    /// The line, with its end.
    pub const fn line(&self) -> &[u8] {
        &self.line
    }

    /// The wall clock at the last update.
    pub const fn now(&self) -> SystemTime {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_line_follows_the_clock() {
        let mut date = DateLine::new(UNIX_EPOCH);
        assert_eq!(date.line(), b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
        date.update(UNIX_EPOCH + Duration::from_millis(1_795_219_200_500));
        assert_eq!(date.line(), b"Date: Sat, 21 Nov 2026 00:00:00 GMT\r\n");
    }
}
