//! A connection's place at a flight, or at an object that is already in the cache.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use super::reader::{HeadSeen, Kept, View};
use super::stream::Flight;
use super::{FetchError, ResponseHead};
use crate::cache::{Body, Stored};
use crate::disk::StoredFile;

/// One visitor's place. Dropping it leaves the flight, which goes on for the others.
#[derive(Debug)]
pub struct Waiting {
    at: At,
    head: HeadSeen,
    position: u64,
    result: CacheResult,
    trailers: Option<Arc<HeaderMap>>,
}

#[derive(Debug)]
enum At {
    Flight(Arc<Flight>, u64),
    Stored(Arc<Stored>),
    Failed(FetchError),
    Ended,
}

/// What there is to send. Bytes and files come in order, each once.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Nothing yet. The waker is called when there is.
    Nothing,
    /// An interim response (RFC 9110 section 15.2), ready to be sent; before the head, for the
    /// visitor by whose request the object is fetched.
    Early(Bytes),
    /// Status and headers; once, first.
    Head(Arc<ResponseHead>),
    /// The next bytes of the body.
    Body(Bytes),
    /// The next bytes of the body lie in a file: send them with sendfile or positioned reads.
    File {
        /// Where they are.
        file: Arc<StoredFile>,
        /// Where they begin in it.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// The body is whole.
    End,
    /// There is no response, or no more of it. Where the head is out already the connection must be
    /// closed without a clean end, so that the visitor does not take the part for the whole.
    Failed(FetchError),
}

/// How the cache had its part in a response; for the access log and Cache-Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheResult {
    /// From the cache.
    Hit,
    /// From the cache, after the origin said that nothing has changed.
    Revalidated,
    /// From the cache, too old, because the origin cannot be reached.
    Stale,
    /// Fetched for this request.
    Miss,
    /// Fetched for another request that came shortly before.
    Collapsed,
    /// Fetched for this request alone, because the response is for nobody else.
    Passed,
}

impl CacheResult {
    /// Name for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Revalidated => "revalidated",
            Self::Stale => "stale",
            Self::Miss => "miss",
            Self::Collapsed => "collapsed",
            Self::Passed => "passed",
        }
    }
}

impl Waiting {
    pub(crate) fn of_flight(flight: Arc<Flight>, reader: u64, result: CacheResult) -> Self {
        Self::new(At::Flight(flight, reader), result)
    }

    pub(crate) fn of_stored(stored: Arc<Stored>, result: CacheResult) -> Self {
        Self::new(At::Stored(stored), result)
    }

    pub(crate) fn failed(error: FetchError) -> Self {
        Self::new(At::Failed(error), CacheResult::Miss)
    }

    fn new(at: At, result: CacheResult) -> Self {
        Self {
            at,
            head: HeadSeen::No,
            position: 0,
            result,
            trailers: None,
        }
    }

    /// What part the cache has in this response, as far as is known: final once the head is there.
    pub fn result(&self) -> CacheResult {
        self.result
    }

    /// The whole object, once it is in the cache: the connection may go on as with a hit.
    pub fn stored(&self) -> Option<Arc<Stored>> {
        match &self.at {
            At::Stored(stored) => Some(Arc::clone(stored)),
            At::Flight(..) | At::Failed(_) | At::Ended => None,
        }
    }

    /// Whether what is read will be whole for those who come later.
    pub(crate) fn is_kept(&self) -> bool {
        match &self.at {
            At::Flight(flight, _) => flight.kept() == Kept::Whole,
            At::Stored(_) => true,
            At::Failed(_) | At::Ended => false,
        }
    }

    /// The fields that came behind the body, cleaned; known once [`Waiting::read`] has said `End`.
    /// Objects in the cache have none.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }

    /// What comes next. Never blocks. After `Nothing` the waker is called when there is more; after
    /// `End` and `Failed` the same is told again.
    pub fn read(&mut self) -> Progress {
        loop {
            let view = match &self.at {
                At::Flight(flight, reader) => flight.view(*reader, self.head),
                At::Stored(stored) => {
                    let stored = Arc::clone(stored);
                    return self.read_stored(&stored);
                }
                At::Failed(error) => return Progress::Failed(*error),
                At::Ended => return Progress::End,
            };
            match view {
                View::Nothing => return Progress::Nothing,
                View::Early(bytes) => return Progress::Early(bytes),
                View::Head(head) => {
                    self.head = HeadSeen::Yes;
                    return Progress::Head(head);
                }
                View::Piece(piece) => {
                    let progress = Progress::from(piece);
                    self.position += progress.length();
                    return progress;
                }
                View::End(trailers) => {
                    self.trailers = trailers;
                    self.go(At::Ended);
                    return Progress::End;
                }
                View::Failed(error) => {
                    self.go(At::Failed(error));
                    return Progress::Failed(error);
                }
                View::Stored(stored, result) => {
                    self.result = result.unwrap_or(self.result);
                    self.go(At::Stored(stored));
                }
                View::Moved(other) => *self = other,
            }
        }
    }

    fn read_stored(&mut self, stored: &Stored) -> Progress {
        if self.head == HeadSeen::No {
            self.head = HeadSeen::Yes;
            return Progress::Head(Arc::clone(&stored.head));
        }
        let length = stored.body.length();
        let offset = self.position;
        if offset >= length {
            return Progress::End;
        }
        self.position = length;
        match &stored.body {
            Body::Memory(bytes) => {
                let start = usize::try_from(offset).expect("a body in memory fits into memory");
                Progress::Body(bytes.slice(start..))
            }
            Body::File { file, .. } => Progress::File {
                file: Arc::clone(file),
                offset,
                length: length - offset,
            },
        }
    }

    fn go(&mut self, to: At) {
        if let At::Flight(flight, reader) = std::mem::replace(&mut self.at, to) {
            flight.leave(reader);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.go(At::Ended);
    }
}

impl Progress {
    fn length(&self) -> u64 {
        match self {
            Self::Body(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
            Self::Nothing | Self::Early(_) | Self::Head(_) | Self::End | Self::Failed(_) => 0,
        }
    }
}
