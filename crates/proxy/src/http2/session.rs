//! One visitor's HTTP/2 connection: the library's state, and when to give up on it.
//!
//! What a visitor may cost is bounded here: streams at once, their windows, what is buffered for
//! them, the size of a head, requests that are taken back at once (CVE-2023-44487), frames that
//! lead to nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream};
use levee_vocab::Timestamp;

use super::pipe::Pipe;
use super::wake::{TokenWaker, WakeList};
use crate::connections::{Occupation, Said};
use crate::transport::Transport;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Session {
    pipe: Pipe,
    state: State,
    waker: TokenWaker,
    began: Timestamp,
    /// When it began, or when its streams last moved.
    pub quiet_since: Timestamp,
    /// By when a visitor that takes nothing must have taken something, and what it had taken when
    /// that was set.
    pub progress_by: Timestamp,
    pub progress_from: u64,
    /// Bytes written.
    pub written: u64,
    /// Requests accepted.
    pub accepted: u32,
    /// Bytes read since a request came or a body moved, and how much had moved by then.
    useless_bytes: u64,
    moved_before: u64,
}

/// What a session begins with.
pub(crate) struct SessionStart<'a> {
    pub token: u64,
    pub list: &'a WakeList,
    pub head_bytes_max: usize,
    pub now: Timestamp,
}

enum State {
    Beginning(Box<Handshake<Pipe, Bytes>>),
    Open(Box<Connection<Pipe, Bytes>>),
    /// No new requests are taken.
    Leaving(Box<Connection<Pipe, Bytes>>),
    /// Nothing more happens but that what is written leaves.
    Over,
}

/// A request, and the way to answer it.
pub(crate) struct Accepted {
    pub request: http::Request<RecvStream>,
    pub respond: SendResponse<Bytes>,
}

/// Streams of one visitor at once. Browsers open a hundred.
const STREAMS_MAX: u32 = 128;
/// What a visitor may send of one body before it was read: as much as waits for an upstream.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all bodies of a visitor.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Most that is kept of one response for a visitor who does not take it.
pub(super) const SEND_BYTES_MAX: usize = 64 * 1024;
/// Requests that a visitor may take back beside half of those it makes: people leave pages, but who
/// does nothing else is after our processor time.
const TAKEN_BACK_MAX: u32 = 100;
/// Bytes that may come without a request and without a body that moves: pings, settings, windows,
/// priorities. Bodies that nobody has read yet may fill their window and are not meant.
const USELESS_BYTES_MAX: u64 = CONNECTION_WINDOW as u64 + 256 * 1024;
/// Streams that we had to reset for the visitor's mistakes.
const MISTAKES_MAX: usize = 100;

impl Session {
    /// A session that has read nothing yet.
    pub fn new(start: &SessionStart<'_>) -> Self {
        let pipe = Pipe::default();
        let handshake = h2::server::Builder::new()
            .max_concurrent_streams(STREAMS_MAX)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(SEND_BYTES_MAX)
            .max_header_list_size(u32::try_from(start.head_bytes_max).unwrap_or(u32::MAX))
            .max_local_error_reset_streams(Some(MISTAKES_MAX))
            .reset_stream_duration(Duration::from_secs(2))
            .handshake(pipe.clone());
        Self {
            pipe,
            state: State::Beginning(Box::new(handshake)),
            waker: start.list.waker(start.token),
            began: start.now,
            quiet_since: start.now,
            progress_by: start.now,
            progress_from: 0,
            written: 0,
            accepted: 0,
            useless_bytes: 0,
            moved_before: 0,
        }
    }

    pub const fn pipe(&self) -> &Pipe {
        &self.pipe
    }

    /// Whether the visitor has not yet said what HTTP/2 begins with.
    pub const fn is_beginning(&self) -> bool {
        matches!(self.state, State::Beginning(_))
    }

    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Whether no request is under way here.
    pub fn is_quiet(&self) -> bool {
        self.pipe.streams() == 0
    }

    /// Whether nobody would miss it.
    pub fn is_idle(&self) -> bool {
        !self.is_beginning() && self.is_quiet() && !self.has_untaken()
    }

    /// Whether the visitor still has to take something of what its streams said.
    pub fn has_untaken(&self) -> bool {
        match &self.state {
            State::Open(connection) | State::Leaving(connection) => {
                self.pipe.has_output() || connection.has_streams()
            }
            State::Beginning(_) | State::Over => self.pipe.has_output(),
        }
    }

    /// Counts bytes that came.
    pub const fn note_read(&mut self, bytes: usize) {
        self.useless_bytes += bytes as u64;
    }

    /// Whether the visitor is to take something before anything else can happen.
    pub fn waits_for_visitor(&self) -> bool {
        self.pipe.is_blocked() || (self.is_quiet() && self.has_untaken())
    }

    /// What it is doing on `transport`, for whoever looks for a connection that gives way.
    pub fn occupation(&self, transport: &Transport) -> Occupation {
        let since = self.quiet_since;
        if self.is_beginning() {
            let said = Said::Something;
            return Occupation::Awaited { since, said };
        }
        if self.is_idle() {
            return Occupation::Idle { since };
        }
        // Each of its streams waits for a window that the visitor does not open.
        let is_stuck = !self.is_quiet() && self.pipe.stuck() == self.pipe.streams();
        match self.waits_for_visitor() || is_stuck {
            true => Occupation::Moving {
                began: self.began,
                moved: self.written.saturating_sub(transport.outstanding()),
            },
            false => Occupation::Needed,
        }
    }

    /// Looks at what has happened since the last time.
    pub fn note_turn(&mut self, now: Timestamp, progress: Duration) {
        let moved = self.pipe.moved();
        if moved != self.moved_before {
            self.moved_before = moved;
            self.useless_bytes = 0;
            self.quiet_since = now;
        }
        if !self.waits_for_visitor() {
            self.progress_from = self.written;
            self.progress_by = now + progress;
        }
    }

    /// Lets the library read, write and think. Gives the next request; none where the session waits
    /// for its visitor or its streams, or is over.
    pub fn poll(&mut self) -> Option<Accepted> {
        self.guard();
        let mut context = Context::from_waker(self.waker.arm());
        if let State::Beginning(handshake) = &mut self.state {
            match Pin::new(handshake).poll(&mut context) {
                Poll::Pending => return None,
                Poll::Ready(Ok(connection)) => self.state = State::Open(Box::new(connection)),
                Poll::Ready(Err(_)) => self.state = State::Over,
            }
        }
        let (State::Open(connection) | State::Leaving(connection)) = &mut self.state else {
            return None;
        };
        match connection.poll_accept(&mut context) {
            Poll::Pending => return None,
            Poll::Ready(Some(Ok((request, respond)))) => {
                self.accepted += 1;
                return Some(Accepted { request, respond });
            }
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "an HTTP/2 connection ends");
            }
            Poll::Ready(None) => {}
        }
        // Streams that are still open learn of it by their wakers.
        self.state = State::Over;
        None
    }

    /// Ends what only costs.
    fn guard(&mut self) {
        let State::Open(connection) = &mut self.state else {
            return;
        };
        let taken_back = self.pipe.taken_back();
        let takes_too_much_back =
            taken_back > TAKEN_BACK_MAX && taken_back - TAKEN_BACK_MAX > self.accepted / 2;
        if takes_too_much_back || self.useless_bytes > USELESS_BYTES_MAX {
            connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
    }

    /// Takes no new requests; what runs may finish.
    pub fn leave(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Open(mut connection) => {
                connection.graceful_shutdown();
                self.state = State::Leaving(connection);
            }
            before @ (State::Beginning(_) | State::Leaving(_)) => self.state = before,
            State::Over => {}
        }
    }

    /// Says goodbye at once.
    pub fn leave_now(&mut self) {
        match &mut self.state {
            State::Open(connection) | State::Leaving(connection) => {
                connection.abrupt_shutdown(Reason::NO_ERROR);
            }
            State::Beginning(_) => self.state = State::Over,
            State::Over => {}
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Beginning(_) => "Beginning",
            Self::Open(_) => "Open",
            Self::Leaving(_) => "Leaving",
            Self::Over => "Over",
        })
    }
}
