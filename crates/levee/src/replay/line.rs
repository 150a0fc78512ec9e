//! One line of an access log, of whatever server: the combined and the common format, or JSON.
//!
//! It is more patient than the reader of lines that rescue servers hand over (`levee_observe`):
//! host names instead of addresses, other servers' names for the fields of JSON, requests that are
//! no HTTP. Nothing here is trusted or kept; only when, what and how much.

mod combined;
mod json;
mod moment;

use std::borrow::Cow;

use levee_control::Redirectability;
use thiserror::Error;

use moment::Clock;

/// When, what and how much.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine<'a> {
    /// When it was asked.
    pub at: Moment,
    /// Path and query.
    pub target: Cow<'a, str>,
    /// Bytes of the answer, as logged.
    pub bytes: u64,
    /// Whether a rescue server could have answered it.
    pub redirectability: Redirectability,
}

/// A Unix second, and the fraction of it where the log has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Whole seconds since 1970.
    pub second: u64,
    /// The rest, in nanoseconds.
    pub fraction: Option<u32>,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said<'a> {
    /// A visitor asked.
    Visit(LogLine<'a>),
    /// Something that must not count: a rescue server fetched, or a visitor was redirected, whose
    /// own line at the rescue server was handed over.
    LeftOut,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Flaw {
    /// No `[day/month/year:hour:minute:second zone]`.
    #[error("there is no time in square brackets")]
    NoTime,
    /// It is not a time.
    #[error("its time cannot be read")]
    BadTime,
    /// No request in quotes.
    #[error("there is no request in quotes")]
    NoRequest,
    /// No status and size behind the request.
    #[error("there is no status with a size behind the request")]
    NoSize,
    /// Not JSON, or not an object of texts and numbers.
    #[error("it begins like JSON and is not")]
    BadJson,
    /// A field is missing.
    #[error("its JSON names no {0}")]
    NoField(&'static str),
    /// Not a text.
    #[error("it is not text")]
    NotText,
    /// Endless.
    #[error("it is too long")]
    TooLong,
}

/// Reads lines; remembers the last second, because its neighbours have the same.
#[derive(Debug, Default)]
pub struct LineReader {
    clock: Clock,
}

impl LineReader {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Result<Said<'a>, Flaw> {
        // Targets may hold any byte in old logs; the rest is ASCII in any case.
        let start = line.iter().position(|byte| !byte.is_ascii_whitespace());
        let line = &line[start.unwrap_or(line.len())..];
        if line.first() == Some(&b'{') {
            json::read(line)
        } else {
            combined::read(line, &mut self.clock)
        }
    }
}

/// Whether a rescue server could have answered a request by this method.
fn redirectability_of(method: &str) -> Redirectability {
    match method {
        "GET" | "HEAD" => Redirectability::Allowed,
        _other => Redirectability::Never,
    }
}

#[cfg(test)]
mod tests {
    use levee_vocab::Random;

    use super::*;

    /// Good lines with a few bytes changed, cut out or doubled, from a seed.
    #[test]
    fn no_line_whatever_is_in_it_breaks_the_reader() {
        let lines: [&[u8]; 4] = [
            br#"192.0.2.7 - - [21/Nov/2026:03:40:02 +0000] "GET /a HTTP/1.1" 200 1839 "-" "x\"""#,
            br#"{"at":1795232402.25,"target":"/a","bytes":7,"class":"page","request":{"uri":"/"}}"#,
            br#"{"time_iso8601":"2026-11-21T03:40:02+00:00","request":"GET / HTTP/1.1","size":"7"}"#,
            br#"{"@timestamp":"21/Nov/9999:23:59:59 -9999","uri":"\u00e4","bytes":1e300}"#,
        ];
        let mut random = Random::from_seed(1);
        let mut reader = LineReader::default();
        let mut read = 0;
        for number in 0..40_000 {
            let mut line = lines[number % lines.len()].to_vec();
            for _ in 0..random.within(0..4) {
                let at = random.within(0..line.len() as u64) as usize;
                match random.within(0..3) {
                    0 => line[at] = random.next_bits() as u8,
                    1 => line.truncate(at.max(1)),
                    _twice => line.extend_from_within(at..),
                }
            }
            read += usize::from(reader.read(&line).is_ok());
        }
        assert!((10_000..35_000).contains(&read), "{read}");
    }
}
