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
