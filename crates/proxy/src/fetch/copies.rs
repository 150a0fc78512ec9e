//! Copies: objects that an origin has its rescue servers hold before a visitor asks for them (H3).
//!
//! ```text
//!  held already, and fresh (in the version that is pushed, where it has one) ▶ held
//!  on its way for a visitor ───────────────────────▶ wait for it ───┐
//!  the response itself is pushed ─▶ a flight that is filled from it ├─▶ stored, or why not
//!  to be pulled ───────────────────▶ fetched as for a visitor ──────┘
//! ```
//!
//! A pushed response takes the way of a fetched one, with another source: the same rules say what
//! may be kept and for how long, visitors who ask meanwhile share its flight, and a purge overtakes
//! it. What may not be kept is not shown to anybody either.
//!
//! It costs nobody else anything: only so many copies come at a time, in all and from one origin;
//! each has its deadlines; and where a push comes to nothing, visitors who waited for it are served
//! from the origin as if there had been none.

mod judgement;
mod stream;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::counters::count;
use super::task::Fetch;
use super::{Caller, Fetcher, Reply, Shared};
use crate::cache::{Found, Freshness, Stored};
use crate::flight::{
    Asker, BodyReceiver, FetchError, Miss, ObjectKey, Overloaded, Party, Progress, Space, Waiting,
    Waker, lock,
};
pub(super) use judgement::kept_by;
pub use judgement::{PushJudgement, judge_push};
pub(super) use stream::{PushedHead, Pushing};

/// Copies that come at a time. The flight of each may hold what fits into memory.
const COPIES_MAX: usize = 64;

/// Of these, from one origin: as many as it is fetched from at a time, twice over, so that a
/// neighbour's copies find room as well.
const COPIES_PER_ORIGIN_MAX: usize = 8;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyEnd {
    /// It is in the cache now.
    Stored,
    /// It was there already.
    Held,
    /// What came was no response, or not as long as it said.
    Malformed,
    /// It stopped coming.
    Late,
    /// Its origin does not let it be kept, or only for some visitors.
    NotToBeKept,
    /// It is larger than anything that is kept.
    TooLarge,
    /// There is no room, or too much to do.
    Busy,
}

impl CopyEnd {
    /// All of them, in order; counters go by this order.
    pub const ALL: [Self; 7] = [
        Self::Stored,
        Self::Held,
        Self::Malformed,
        Self::Late,
        Self::NotToBeKept,
        Self::TooLarge,
        Self::Busy,
    ];

    /// Name for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Held => "held",
            Self::Malformed => "malformed",
            Self::Late => "late",
            Self::NotToBeKept => "not_to_be_kept",
            Self::TooLarge => "too_large",
            Self::Busy => "busy",
        }
    }

    /// What the origin is told.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Stored => StatusCode::CREATED,
            Self::Held => StatusCode::OK,
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::NotToBeKept => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// How a flight that failed looks to the origin.
    const fn of(error: FetchError) -> Self {
        match error {
            FetchError::BodyTimeout | FetchError::FirstByteTimeout | FetchError::ConnectTimeout => {
                Self::Late
            }
            FetchError::Truncated
            | FetchError::Malformed
            | FetchError::ClosedEarly
            | FetchError::RequestAborted
            | FetchError::BadRequest
            | FetchError::Loop => Self::Malformed,
            FetchError::Overloaded
            | FetchError::NameUnknown
            | FetchError::ConnectRefused
            | FetchError::ConnectFailed
            | FetchError::Aborted => Self::Busy,
        }
    }
}

/// What is counted of copies.
#[derive(Debug, Default)]
pub(super) struct CopyTally {
    pub ends: [AtomicU64; CopyEnd::ALL.len()],
    pub bytes: AtomicU64,
}

impl CopyTally {
    fn ended(&self, end: CopyEnd) {
        for (kind, counter) in CopyEnd::ALL.iter().zip(&self.ends) {
            if *kind == end {
                count(counter);
            }
        }
    }
}

/// Where copies wait for room.
#[derive(Debug)]
pub(super) struct CopyDesk {
    places: Arc<Semaphore>,
    /// Beyond it not even the answer is waited for.
    answers: Arc<Semaphore>,
    by_origin: Mutex<BTreeMap<Space, usize>>,
}

impl Default for CopyDesk {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(COPIES_MAX)),
            answers: Arc::new(Semaphore::new(COPIES_MAX * 2)),
            by_origin: Mutex::default(),
        }
    }
}

/// Room for one copy; given back when it is dropped.
struct Place {
    shared: Arc<Shared>,
    space: Space,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    fn take(shared: &Arc<Shared>, space: &Space) -> Option<Self> {
        let places = Arc::clone(&shared.copies.places);
        let permit = places.try_acquire_owned().ok()?;
        let mut by_origin = lock(&shared.copies.by_origin);
        let copies = by_origin.entry(space.clone()).or_default();
        if *copies >= COPIES_PER_ORIGIN_MAX {
            return None;
        }
        *copies += 1;
        Some(Self {
            shared: Arc::clone(shared),
            space: space.clone(),
            _permit: permit,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_origin = lock(&self.shared.copies.by_origin);
        if let Some(copies) = by_origin.get_mut(&self.space) {
            *copies -= 1;
            if *copies == 0 {
                by_origin.remove(&self.space);
            }
        }
    }
}

impl Fetcher {
    /// Takes in a copy of the object that `copy` is about: its body is the response as it went over
    /// a connection; without a body the object is fetched. With a `version` it replaces what is
    /// held unless that has this very ETag. The answer tells what became of it. A copy for which
    /// there is no room now is answered at once.
    pub(crate) fn take_copy(
        &self,
        copy: Miss,
        version: Option<Bytes>,
        waker: Arc<dyn Waker>,
        connection: u64,
    ) -> Result<Waiting, Overloaded> {
        let shared = Arc::clone(&self.shared);
        let place = Place::take(&shared, &copy.key.space);
        let making = async move {
            let (asker, body) = Asker::of(copy);
            let target = String::from_utf8_lossy(&asker.key.target).into_owned();
            let end = match &place {
                Some(_) => shared.take_copy(asker, version, body).await,
                None => CopyEnd::Busy,
            };
            drop(place);
            shared.tally.copies.ended(end);
            tracing::debug!(target, end = end.label(), "a copy");
            Reply {
                status: end.status(),
                json: format!("{{\"copy\":\"{}\"}}\n", end.label()),
            }
        };
        self.aside_within(&self.shared.copies.answers, making, waker, connection)
    }
}

impl Shared {
    /// Cancel safety: dropped half-way, what has come of the copy may still be stored.
    async fn take_copy(
        self: &Arc<Self>,
        asker: Box<Asker>,
        version: Option<Bytes>,
        body: Option<BodyReceiver>,
    ) -> CopyEnd {
        let bell = Arc::new(Bell::default());
        let caller = Caller {
            waker: Arc::clone(&bell) as Arc<dyn Waker>,
            connection: 0,
        };
        let (key, headers) = (asker.key.clone(), asker.headers.clone());
        let is_meant = |stored: &Stored| {
            let version = version.as_deref();
            version.is_none_or(|version| stored.head.header("etag") == Some(version))
        };
        match self.cache.find(key.borrowed(), &headers, self.now()) {
            Found::Object(stored)
                if stored.freshness(self.now()) == Freshness::Fresh && is_meant(&stored) =>
            {
                return CopyEnd::Held;
            }
            // Pushed, it says for itself whether that has changed.
            Found::Passes(_) if body.is_none() => return CopyEnd::NotToBeKept,
            Found::Object(_) | Found::Passes(_) | Found::Nothing => {}
        }
        let said = Arc::default();
        let asked = match body {
            Some(body) => self.begin_pushed(asker, caller, Pushing::new(body, Arc::clone(&said))),
            None => self.ask_shared(asker, caller),
        };
        let Ok(waiting) = asked else {
            return CopyEnd::Busy;
        };
        let limit = self.settings.total_timeout;
        let read = timeout(limit, bell.read_to_end(waiting)).await;
        let held = self.usable(&key, &headers);
        let said: Option<CopyEnd> = lock(&said).take();
        match (
            read.unwrap_or(ReadEnd::Failed(FetchError::BodyTimeout)),
            said,
        ) {
            (ReadEnd::Whole, _) if held.as_deref().is_some_and(is_meant) => CopyEnd::Stored,
            (_, Some(said)) => said,
            // A visitor's fetch was faster and has brought another version.
            (ReadEnd::Whole, None) if held.is_some() => CopyEnd::Busy,
            (ReadEnd::Failed(error), None) => CopyEnd::of(error),
            (ReadEnd::Whole | ReadEnd::Unkept, None) => CopyEnd::NotToBeKept,
        }
    }

    /// What a visitor with these headers would be given from the cache.
    fn usable(&self, key: &ObjectKey, headers: &[(Bytes, Bytes)]) -> Option<Arc<Stored>> {
        match self.cache.find(key.borrowed(), headers, self.now()) {
            Found::Object(stored) => match stored.freshness(self.now()) {
                // What is shown while it is renewed makes nobody wait either.
                Freshness::Fresh | Freshness::Spared | Freshness::Shown => Some(stored),
                Freshness::Stale => None,
            },
            Found::Passes(_) | Found::Nothing => None,
        }
    }

    /// A place at the flight under way for what `asker` names; where there is none, at a new one
    /// that is filled by the push.
    fn begin_pushed(
        self: &Arc<Self>,
        asker: Box<Asker>,
        caller: Caller,
        pushing: Pushing,
    ) -> Result<Waiting, Overloaded> {
        let mut table = lock(&self.table);
        let key = self.key_for(&asker);
        if table.find(&key).is_some() {
            drop(table);
            // Somebody waits for it already, and it comes once: not by the push.
            drop(pushing);
            return self.ask_shared(asker, caller);
        }
        let found = self
            .cache
            .find(asker.key.borrowed(), &asker.headers, self.now());
        let stale = match found {
            Found::Object(stored) => Some(stored),
            Found::Passes(_) | Found::Nothing => None,
        };
        let (flight, waiting) = self.begin(Party::Shared, caller);
        let ticket = table.admit(&self.settings, &asker.source, &flight, Some(key))?;
        drop(table);
        let mut fetch = Fetch::shared(Arc::clone(self), ticket, asker, stale);
        fetch.pushing = Some(pushing);
        flight.attach_task(self.runtime.spawn(fetch.run()).abort_handle());
        Ok(waiting)
    }
}

/// How the reading of a flight ended.
enum ReadEnd {
    Whole,
    /// Nothing of it will be in the cache.
    Unkept,
    Failed(FetchError),
}

/// Wakes the task that waits for a copy.
#[derive(Default)]
struct Bell(Notify);

impl Bell {
    /// Reads what is of no interest but for its end.
    async fn read_to_end(&self, mut waiting: Waiting) -> ReadEnd {
        loop {
            match waiting.read() {
                Progress::Nothing => self.0.notified().await,
                Progress::End => return ReadEnd::Whole,
                Progress::Failed(error) => return ReadEnd::Failed(error),
                Progress::Early(_)
                | Progress::Head(_)
                | Progress::Body(_)
                | Progress::File { .. }
                    if waiting.is_kept() => {}
                Progress::Early(_)
                | Progress::Head(_)
                | Progress::Body(_)
                | Progress::File { .. } => return ReadEnd::Unkept,
            }
        }
    }
}

impl Waker for Bell {
    fn wake(&self, _connection: u64) {
        self.0.notify_one();
    }
}
