//! HTTP/2 for visitors, by the library `h2`, driven from inside a core.
//!
//! ```text
//!  Transport ──bytes──▶ Pipe ──▶ Session (h2) ──request──▶ Stream ──▶ a connection of the engine
//!      ▲                 │          ▲                        │
//!      └────────bytes────┘          └──── head, Bytes ◀──────┘
//! ```
//!
//! Each stream of a visitor is, for the rest of the engine, a connection with one request: it has a
//! token, a deadline and a phase, it may be parked, cached, paced, redirected or refused like any
//! other. So there is one copy of what a request gets, whatever protocol it came by, and HTTP/3
//! will be one more kind of session and stream.
//!
//! The library does no I/O of its own: it reads and writes a [`pipe::Pipe`], which the core fills
//! and empties. A turn's frames of all streams leave in one write.
//!
//! Not done here: server push (browsers have dropped it), priorities (streams take turns),
//! CONNECT and WebSocket over HTTP/2 (RFC 8441; browsers then use HTTP/1.1), h2c by Upgrade
//! (RFC 9113 took it out).

mod head;
mod pipe;
mod send;
mod session;
mod stream;
mod wake;

pub(crate) use head::Malformed;
pub(crate) use pipe::{Drained, OUTPUT_MAX};
pub(crate) use session::{Accepted, Session, SessionStart};
pub(crate) use stream::{Stream, StreamStart, Watched};
pub(crate) use wake::WakeList;

/// What a visitor who begins with HTTP/2 sends first (RFC 9113 section 3.4), as far as it looks
/// like a head of HTTP/1.1.
pub(crate) const PREFACE_HEAD: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// Whether what came first on a connection is HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preface {
    No,
    /// It may be; there is not enough of it.
    Perhaps,
    Yes,
}

impl Preface {
    /// Looks at the first bytes of a connection.
    pub fn of(bytes: &[u8]) -> Self {
        let length = bytes.len().min(PREFACE_HEAD.len());
        match bytes[..length] == PREFACE_HEAD[..length] {
            true if length == PREFACE_HEAD.len() => Self::Yes,
            true => Self::Perhaps,
            false => Self::No,
        }
    }
}

/// The head of a response, for `crate::fuzzing`.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed_response(text: &[u8]) -> Option<(http::Response<()>, usize)> {
    head::read_response(text).ok()
}
