//! One visitor's connection.
//!
//! ```text
//!            head complete          granted
//!  Boundary ──────────────▶ Parked ─────────▶ Boundary (its head is read again)
//!     │  ▲ └─────────────────────────────────────┐
//!     │  └──────── response whole ── Answering ◀─┘
//!     │                                 │ last response
//!     ▼                                 ▼
//!   closed ◀──────────────────────── Lingering
//! ```
//!
//! At a boundary a connection is no more than its socket and the bytes that were read and not used.
//! Whoever takes it over there (a handoff to another node) needs nothing else.

use std::net::SocketAddr;

use levee_control::{Ask, Verdict, Visitor};
use levee_net::Readiness;
use levee_vocab::Timestamp;

use crate::answer::Answer;
use crate::chunked::Incoming;
use crate::connections::{Occupation, Said};
use crate::http2::Session;
use crate::pacer::Packets;
use crate::transport::{Privacy, Transport};

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub socket: Transport,
    /// Whether others can read along.
    pub privacy: Privacy,
    /// The visitor, or the proxy that it came through.
    pub peer: SocketAddr,
    pub introduction: Introduction,
    /// Read, but not used: part of a head, the head of a parked request, or what came after it.
    /// Empty, and without a buffer, while the connection is idle.
    pub unread: Vec<u8>,
    /// Body of the current request that has not been read.
    pub incoming: Incoming,
    pub inbound: Inbound,
    pub phase: Phase,
    /// The Gate's word on the request at the start of `unread`.
    pub granted: Option<Granted>,
    /// When to look whether the visitor is too slow.
    pub deadline: Timestamp,
    /// When the wheel will look at this connection next.
    pub looked_at: Timestamp,
    /// Whose the last request was.
    pub visitor: Visitor,
    /// Responses begun.
    pub responses: u32,
    /// Segments that the link has been charged for.
    pub segments: u32,
    /// How it cuts what is written into segments; none while nobody has asked.
    pub packets: Option<Packets>,
    /// Bytes of the protocol below that are still to be charged, beside those that the transport
    /// counts.
    pub extra: u64,
}

/// Whether it is known whose connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Introduction {
    /// A PROXY header must come before anything else.
    Awaited,
    /// Whoever opened it, or whom the header named.
    Done,
    /// This server itself, to pass on what it reads.
    Errand,
    /// This server itself: what is read on it leaves by no link.
    Ourselves,
}

/// What a connection is doing.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Between requests.
    Boundary {
        /// When it began, or when the first byte of the next head came.
        since: Timestamp,
        /// Bytes of `unread` that are known to hold no whole head.
        scanned: usize,
        /// Body bytes thrown away since the last request.
        drained: u64,
    },
    /// Waits for capacity.
    Parked {
        /// Its number in the queue.
        ticket: u64,
    },
    Answering(Answer),
    /// Says no more; reads until the visitor has stopped.
    Lingering {
        since: Timestamp,
        left: u64,
    },
    /// The visitor speaks HTTP/2, and its requests are connections of their own.
    Http2(Box<Session>),
}

/// A verdict on a request that had waited.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub verdict: Verdict,
    pub ask: Ask,
    /// When its head was complete.
    pub since: Timestamp,
}

/// The visitor's sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inbound {
    /// There may be bytes to read.
    Readable,
    /// There may be bytes to read, and behind them is the end: epoll told of it and will not again.
    Ending,
    /// All bytes were read; epoll will tell of more.
    Drained,
    /// The visitor sends no more, but may still listen.
    Ended,
}

impl Inbound {
    /// After epoll told of something to read.
    pub fn told(self, readiness: Readiness) -> Self {
        match self {
            Self::Readable | Self::Drained if readiness.is_last() => Self::Ending,
            Self::Readable | Self::Drained => Self::Readable,
            Self::Ending | Self::Ended => self,
        }
    }

    /// Whether reading may give something.
    pub const fn is_readable(self) -> bool {
        match self {
            Self::Readable | Self::Ending => true,
            Self::Drained | Self::Ended => false,
        }
    }
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(socket: Transport, peer: SocketAddr, now: Timestamp) -> Self {
        Self {
            privacy: socket.privacy(),
            socket,
            peer,
            introduction: Introduction::Done,
            unread: Vec::new(),
            incoming: Incoming::Done,
            inbound: Inbound::Readable,
            phase: Phase::boundary(now),
            granted: None,
            deadline: Timestamp::ZERO,
            looked_at: Timestamp::ZERO,
            visitor: Visitor::Reader,
            responses: 0,
            segments: 0,
            packets: None,
            extra: 0,
        }
    }

    /// Whether nobody would miss it: between requests, with nothing received.
    pub fn is_idle(&self) -> bool {
        match &self.phase {
            Phase::Boundary { .. } => self.unread.is_empty() && self.incoming.is_done(),
            Phase::Http2(session) => session.is_idle(),
            Phase::Parked { .. } | Phase::Answering(_) | Phase::Lingering { .. } => false,
        }
    }

    /// What it is doing, for whoever looks for a connection that gives way.
    pub fn occupation(&self) -> Occupation {
        match &self.phase {
            // The requests of a session are its own affair: only its socket takes up room.
            _ if matches!(self.socket, Transport::Stream(_)) => Occupation::Needed,
            Phase::Boundary { since, .. } => self.at_boundary(*since),
            Phase::Parked { .. } => Occupation::Needed,
            Phase::Answering(answer) if answer.waits_for_visitor() => Occupation::Moving {
                began: answer.began,
                moved: answer.moved().saturating_sub(self.socket.outstanding()),
            },
            Phase::Answering(_) => Occupation::Needed,
            Phase::Lingering { since, .. } => Occupation::Awaited {
                since: *since,
                said: Said::Something,
            },
            Phase::Http2(session) => session.occupation(&self.socket),
        }
    }

    fn at_boundary(&self, since: Timestamp) -> Occupation {
        match (self.is_idle(), self.responses) {
            (true, 1..) => Occupation::Idle { since },
            (true, 0) => Occupation::Awaited {
                since,
                said: Said::Nothing,
            },
            (false, _) => Occupation::Awaited {
                since,
                said: Said::Something,
            },
        }
    }
}

impl Phase {
    /// A boundary that begins now.
    pub const fn boundary(now: Timestamp) -> Self {
        Self::Boundary {
            since: now,
            scanned: 0,
            drained: 0,
        }
    }
}
