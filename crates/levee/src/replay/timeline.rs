//! Requests in the order of time, spread over their seconds.
//!
//! Most logs know only the second of a request: those of one second are spread evenly over it.
//! Servers write a line when an answer is done, so one that took long stands too late: it counts in
//! the second in which it stands. One that is an hour too late is left out, and so is one that is
//! years ahead; when many in a row are, the logs were given in the wrong order.

use levee_control::Redirectability;
use levee_vocab::Timestamp;

use super::line::{LogLine, Moment};

/// A request in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated<'a> {
    /// Time since the first second of the log.
    pub at: Timestamp,
    /// Path and query.
    pub target: &'a str,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Whether a rescue server could have answered it.
    pub redirectability: Redirectability,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It counts.
    InTime,
    /// It is more than an hour late, or years ahead, and does not count.
    Astray,
    /// So many of these came in a row that the time itself must have jumped to this second.
    Jumped(u64),
}

/// The second under way.
#[derive(Debug, Default)]
pub struct Timeline {
    /// The first Unix second of the log.
    start: Option<u64>,
    second: u64,
    requests: Vec<Request>,
    /// Their targets, one behind the other.
    targets: String,
    last: Timestamp,
    astray_in_a_row: u32,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    fraction: Option<u32>,
    target_end: usize,
    bytes: u64,
    redirectability: Redirectability,
}

/// A download of an hour is written down an hour late.
const LATE_SECONDS_MAX: u64 = 3600;

/// Nobody keeps a log with a gap of that many seconds: two years.
const AHEAD_SECONDS_MAX: u64 = 2 * 366 * 86_400;

/// A century: nanoseconds of it still fit into a `Timestamp`.
const SPAN_SECONDS_MAX: u64 = 100 * 366 * 86_400;

/// Requests of one second that are held at once. No server that writes a log has more; a log whose
/// clock stood still has.
const REQUESTS_MAX: usize = 1_000_000;

/// So many lines in a row are no straggling downloads.
const ASTRAY_LINES_MAX: u32 = 1000;

impl Timeline {
    /// Takes in a line; `done` gets the requests of a second that is over.
    pub fn place(&mut self, line: &LogLine<'_>, done: &mut impl FnMut(&Dated<'_>)) -> Placed {
        let Moment {
            second,
            mut fraction,
        } = line.at;
        if self.start.is_none() {
            self.start = Some(second);
            self.second = second;
        }
        let is_late = second.saturating_add(LATE_SECONDS_MAX) < self.second;
        let start = self.start.unwrap_or(second);
        let end = (self.second + AHEAD_SECONDS_MAX).min(start + SPAN_SECONDS_MAX);
        if is_late || second > end {
            self.astray_in_a_row += 1;
            return match self.astray_in_a_row {
                ASTRAY_LINES_MAX => Placed::Jumped(second),
                _fewer => Placed::Astray,
            };
        }
        if second < self.second {
            fraction = None;
        } else if second > self.second {
            self.finish(done);
            self.second = second;
        }
        if self.requests.len() == REQUESTS_MAX {
            self.finish(done);
        }
        self.astray_in_a_row = 0;
        self.targets.push_str(&line.target);
        self.requests.push(Request {
            fraction,
            target_end: self.targets.len(),
            bytes: line.bytes,
            redirectability: line.redirectability,
        });
        Placed::InTime
    }

    /// Hands out the requests of the second under way.
    pub fn finish(&mut self, done: &mut impl FnMut(&Dated<'_>)) {
        let start = Timestamp::from_seconds(self.second - self.start.unwrap_or(self.second));
        let count = self.requests.len() as u64;
        let mut target_start = 0;
        for (number, request) in self.requests.drain(..).enumerate() {
            let even = number as u64 * 1_000_000_000 / count;
            let since = request.fraction.map_or(even, u64::from).min(999_999_999);
            let at = Timestamp::from_nanoseconds(start.as_nanoseconds() + since);
            self.last = self.last.max(at);
            done(&Dated {
                at: self.last,
                target: &self.targets[target_start..request.target_end],
                bytes: request.bytes,
                redirectability: request.redirectability,
            });
            target_start = request.target_end;
        }
        self.targets.clear();
    }

    /// The first Unix second of the log, and the one under way.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.start.map(|start| (start, self.second))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn line(second: u64, fraction: Option<u32>) -> LogLine<'static> {
        LogLine {
            at: Moment { second, fraction },
            target: Cow::Borrowed("/a"),
            bytes: 1,
            redirectability: Redirectability::Allowed,
        }
    }

    fn play(lines: &[LogLine<'_>]) -> (Vec<f64>, Vec<Placed>) {
        let mut timeline = Timeline::default();
        let mut times = Vec::new();
        let mut note = |dated: &Dated<'_>| {
            assert_eq!(dated.target, "/a");
            times.push(dated.at.as_seconds());
        };
        let placed = lines.iter().map(|line| timeline.place(line, &mut note));
        let placed = placed.collect();
        timeline.finish(&mut note);
        (times, placed)
    }

    #[test]
    fn requests_of_one_second_are_spread_over_it() {
        let lines = [line(100, None), line(100, None), line(102, None)];
        assert_eq!(play(&lines).0, [0.0, 0.5, 2.0]);
        let lines = [line(100, Some(250_000_000)), line(100, Some(100_000_000))];
        assert_eq!(play(&lines).0, [0.25, 0.25]);
    }

    #[test]
    fn a_line_that_is_written_late_counts_where_it_stands() {
        let lines = [
            line(100, None),
            line(200, None),
            line(90, Some(5)),
            line(201, None),
        ];
        let (times, placed) = play(&lines);
        assert_eq!(times, [0.0, 100.0, 100.5, 101.0]);
        assert!(placed.iter().all(|&placed| placed == Placed::InTime));
    }

    #[test]
    fn a_log_that_goes_back_is_found_out_and_a_few_odd_lines_are_not_a_reason() {
        let mut lines = vec![line(1_000_000, None)];
        lines.extend((0..999).map(|_| line(5, None)));
        lines.push(line(1_000_001, None));
        let (times, placed) = play(&lines);
        assert_eq!(times, [0.0, 1.0]);
        assert_eq!(placed[1], Placed::Astray);
        lines.pop();
        lines.push(line(6, None));
        assert_eq!(play(&lines).1.last(), Some(&Placed::Jumped(6)));
    }

    #[test]
    fn a_date_years_ahead_does_not_make_everything_after_it_late() {
        let lines = [
            line(100, None),
            line(253_402_300_799, None),
            line(101, None),
        ];
        let (times, placed) = play(&lines);
        assert_eq!(times, [0.0, 1.0]);
        assert_eq!(placed[1], Placed::Astray);
    }
}
