//! Status and headers of a fetched response, ready to be sent on.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap};
use levee_vocab::Timestamp;

use super::Forwarding;
use crate::tags::Tags;

/// The head of a response as our visitors get it: hop-by-hop fields, framing fields, Age, Alt-Svc
/// and the Domain of cookies are gone, Via and Date are there. Whoever sends it adds Age
/// ([`ResponseHead::age`]), Connection and the framing that fits ([`ResponseHead::length`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status of the response.
    pub status: StatusCode,
    /// Header lines, names in lower case, each as `name: value\r\n`: to be sent in one piece.
    pub lines: Bytes,
    /// What the response can be purged by; not among the lines.
    pub tags: Tags,
    /// Content-Length; none where only the end of the stream tells.
    pub length: Option<u64>,
    /// How old the response was when it came (RFC 9111 section 4.2.3).
    pub age_initial: Duration,
    /// When it came.
    pub received: Timestamp,
    /// How it came.
    pub forwarding: Forwarding,
    /// Whether it says which sites' scripts may read it.
    pub reading: Reading,
}

/// Whether a response says itself which sites' scripts may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// By Access-Control-Allow-Origin.
    Said,
    /// Not at all: those of its own site.
    Unsaid,
}

impl Reading {
    /// Of a response with these fields.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
            true => Self::Said,
            false => Self::Unsaid,
        }
    }
}

impl ResponseHead {
    /// Age of the response at `now`, for the Age field.
    pub fn age(&self, now: Timestamp) -> Duration {
        self.age_initial.saturating_add(now.since(self.received))
    }

    /// All header fields in order.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.lines[..];
        std::iter::from_fn(move || {
            let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
            let line = &rest[..end];
            rest = &rest[end + 2..];
            let colon = line.iter().position(|&byte| byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// The first value of the field `name`, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers()
            .find(|(field, _)| *field == name.as_bytes())
            .map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::Why;

    #[test]
    fn headers_are_read_back_from_their_lines() {
        let head = ResponseHead {
            reading: Reading::Unsaid,
            status: StatusCode::OK,
            lines: Bytes::from_static(b"etag: \"a:b\"\r\nvia: 1.1 levee\r\n"),
            tags: Tags::default(),
            length: None,
            age_initial: Duration::from_secs(3),
            received: Timestamp::from_seconds(10),
            forwarding: Forwarding::unkept(Why::UriMiss),
        };
        assert_eq!(head.header("etag"), Some(&b"\"a:b\""[..]));
        assert_eq!(head.header("date"), None);
        assert_eq!(head.headers().count(), 2);
        assert_eq!(
            head.age(Timestamp::from_seconds(12)),
            Duration::from_secs(5)
        );
    }
}
