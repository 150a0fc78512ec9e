//! What a cached object is called, and what a request may be given from the cache.
//!
//! Objects of different origins never mix: the space is part of every key, so two origins with the
//! same path on one rescue server cannot see each other's pages.

use std::fmt;

use bytes::Bytes;
use levee_vocab::HostName;

/// Whose objects these are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Our own site, fetched from its upstream.
    Own,
    /// An origin that we rescue: its name and the port of its web server.
    Origin(HostName, u16),
}

/// `own`, or the origin's name and port.
impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("own"),
            Self::Origin(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// Name of an object. Which of its variants (Vary) a request gets is found from the request's
/// headers, because only a stored response tells by which headers it varies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// Whose object.
    pub space: Space,
    /// Path and query exactly as sent.
    pub target: Bytes,
}

/// The headers of a request, wherever they lie. The engine implements it for its parsed head, so
/// that a cache hit copies nothing.
pub trait RequestHeaders {
    /// Calls `visit` with the value of each field called `name` (in lower case), in order.
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8]));

    /// Whether there is a field called `name` (in lower case).
    fn has(&self, name: &str) -> bool {
        let mut found = false;
        self.each(name, &mut |_| found = true);
        found
    }
}

impl RequestHeaders for [(Bytes, Bytes)] {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for (field, value) in self {
            if field.eq_ignore_ascii_case(name.as_bytes()) {
                visit(value);
            }
        }
    }
}

impl RequestHeaders for Vec<(Bytes, Bytes)> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.as_slice().each(name, visit);
    }
}
