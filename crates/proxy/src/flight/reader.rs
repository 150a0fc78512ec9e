//! One reader of a flight: where it stands, and how it is woken.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use levee_wire::ProxiedAddresses;

use super::buffer::Piece;
use super::{CacheResult, FetchError, ObjectKey, Progress, ResponseHead, Source, Waiting, Waker};
use crate::cache::Stored;
use crate::cacheability::Credentials;

/// The reader by whose request a flight is fetched.
pub(crate) const FIRST: u64 = 0;

/// A request as long as it may still need a fetch of its own.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub key: ObjectKey,
    pub method: Method,
    pub headers: Vec<(Bytes, Bytes)>,
    pub source: Source,
    pub visitor: Option<ProxiedAddresses>,
    pub credentials: Credentials,
}

/// Whether a flight is for many or for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// For everybody who asks for the object.
    Shared,
    /// For one visitor; when it leaves, the fetch is cancelled.
    Private,
}

/// How much of the body is held for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All of it, so that late readers get it from its start.
    Whole,
    /// What the slowest reader has not read yet; the fetch waits for it.
    Window,
}

/// Why nobody can join.
#[derive(Debug)]
pub(crate) enum NotJoined {
    /// Too many are waiting.
    Full,
    /// Its answer is not for this asker, or has begun to be forgotten.
    NotForIt(Box<Asker>),
    /// It is over.
    Over(Box<Asker>),
}

pub(crate) struct Reader {
    pub waker: Arc<dyn Waker>,
    pub connection: u64,
    pub attention: Attention,
    pub position: u64,
    pub seat: Seat,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    /// Found nothing since it was last woken.
    Asleep,
    /// Was woken and has not read since.
    Woken,
}

pub(crate) enum Seat {
    /// Waits for a head that may prove not to be for it.
    Waiting(Box<Asker>),
    /// Reads this flight.
    Reading,
    /// Will be given another flight.
    Leaving,
    /// Has been given another flight.
    Moved(Waiting),
}

impl Reader {
    /// A reader at the start, who has not been woken.
    pub fn new(waker: Arc<dyn Waker>, connection: u64, seat: Seat) -> Self {
        Self {
            waker,
            connection,
            attention: Attention::Asleep,
            position: 0,
            seat,
        }
    }

    /// Whether it reads this flight, or will.
    pub fn reads(&self) -> bool {
        match self.seat {
            Seat::Waiting(_) | Seat::Reading => true,
            Seat::Leaving | Seat::Moved(_) => false,
        }
    }
}

/// What a reader finds.
pub(crate) enum View {
    Nothing,
    Early(Bytes),
    Head(Arc<ResponseHead>),
    Piece(Piece),
    /// The body is whole, and these fields came behind it.
    End(Option<Arc<HeaderMap>>),
    Failed(FetchError),
    Stored(Arc<Stored>, Option<CacheResult>),
    Moved(Waiting),
}

/// Whether a reader has been given the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadSeen {
    No,
    Yes,
}

/// What a reader that has read everything up to here is told next.
impl From<Piece> for Progress {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Bytes(bytes) => Self::Body(bytes),
            Piece::File {
                file,
                offset,
                length,
            } => Self::File {
                file,
                offset,
                length,
            },
        }
    }
}
