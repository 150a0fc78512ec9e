//! One flight: what has come so far, and everybody who reads it.
//!
//! Two halves, each with its own enum: how far the fetch has come ([`Phase`]), and where each
//! reader stands ([`Seat`]). The fetch task is the only writer. All methods take the lock for a
//! moment; wakers are called after it is given back.
//!
//! The head is published together with its audience. Whoever waits but may not share the response
//! (another variant, other credentials, an answer that is for one visitor alone) keeps its place
//! and is given another flight by the fetch task ([`Flight::reseat`]).

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::buffer::{Buffer, Piece};
use super::reader::{
    Asker, Attention, FIRST, HeadSeen, Kept, NotJoined, Party, Reader, Seat, View,
};
use super::{CacheResult, FetchError, ResponseHead, Waiting, Waker, lock};
use crate::cache::Stored;
use crate::cacheability::Audience;
use crate::disk::StoredFile;

/// See the head of this file.
pub(crate) struct Flight {
    pub party: Party,
    /// Fetches that nobody waits for any more, of all flights; and the most of them.
    pub abandoned: Arc<Semaphore>,
    state: Mutex<State>,
    /// The fetch waits here while readers are too far behind.
    progress: Notify,
    task: OnceLock<AbortHandle>,
}

struct State {
    phase: Phase,
    kept: Kept,
    /// The head as the first reader gets it, where it is more than others may have.
    first_head: Option<Arc<ResponseHead>>,
    /// Interim responses that the first reader has not seen.
    early: VecDeque<Bytes>,
    buffer: Buffer,
    trailers: Option<Arc<HeaderMap>>,
    readers: BTreeMap<u64, Reader>,
    next_reader: u64,
    /// Held while nobody reads a fetch that goes on all the same.
    abandoned: Option<OwnedSemaphorePermit>,
}

enum Phase {
    /// No head yet.
    Asked,
    /// The head is out, the body comes.
    Streaming(Arc<ResponseHead>, Audience),
    /// All of the body has come.
    Complete(Arc<ResponseHead>, Audience),
    /// The object is in the cache; readers go over to it.
    Stored(Arc<Stored>, Option<CacheResult>),
    /// It broke off, or was cancelled.
    Failed(FetchError),
}

/// Interim responses that wait to be read.
const EARLY_MAX: usize = 4;

impl Flight {
    /// A flight that has just been asked for, and the place of the request by which it is fetched.
    pub fn begin(
        party: Party,
        abandoned: Arc<Semaphore>,
        waker: Arc<dyn Waker>,
        connection: u64,
    ) -> (Arc<Self>, Waiting) {
        let first = Reader::new(waker, connection, Seat::Reading);
        let flight = Self::new(party, abandoned, None, BTreeMap::from([(FIRST, first)]));
        let result = match party {
            Party::Shared => CacheResult::Miss,
            Party::Private => CacheResult::Passed,
        };
        (
            Arc::clone(&flight),
            Waiting::of_flight(flight, FIRST, result),
        )
    }

    /// A flight that goes on with `permit`, one of `abandoned`, although nobody reads it yet.
    pub fn begin_unattended(abandoned: Arc<Semaphore>, permit: OwnedSemaphorePermit) -> Arc<Self> {
        Self::new(Party::Shared, abandoned, Some(permit), BTreeMap::new())
    }

    fn new(
        party: Party,
        abandoned: Arc<Semaphore>,
        permit: Option<OwnedSemaphorePermit>,
        readers: BTreeMap<u64, Reader>,
    ) -> Arc<Self> {
        Arc::new(Self {
            party,
            abandoned,
            state: Mutex::new(State {
                phase: Phase::Asked,
                kept: Kept::Whole,
                early: VecDeque::new(),
                first_head: None,
                buffer: Buffer::default(),
                trailers: None,
                readers,
                next_reader: FIRST + 1,
                abandoned: permit,
            }),
            progress: Notify::new(),
            task: OnceLock::new(),
        })
    }

    /// Tells which task fills this flight, so that it can be cancelled.
    pub fn attach_task(&self, task: AbortHandle) {
        // Whoever left before the task was known could not cancel it.
        let deserted = matches!(lock(&self.state).phase, Phase::Failed(_));
        if deserted {
            task.abort();
        }
        self.task
            .set(task)
            .expect("a flight is given its task once");
    }

    /// Adds a reader. At most `readers_max` wait at a time.
    pub fn join(
        self: &Arc<Self>,
        asker: Box<Asker>,
        waker: Arc<dyn Waker>,
        connection: u64,
        readers_max: usize,
    ) -> Result<Waiting, NotJoined> {
        let mut state = lock(&self.state);
        let seat = match &state.phase {
            Phase::Asked => Seat::Waiting(asker),
            Phase::Streaming(_, audience) | Phase::Complete(_, audience) => {
                let from_start = state.kept == Kept::Whole && state.buffer.is_whole();
                if !from_start || !audience.welcomes_late(&asker) {
                    return Err(NotJoined::NotForIt(asker));
                }
                Seat::Reading
            }
            Phase::Stored(..) | Phase::Failed(_) => return Err(NotJoined::Over(asker)),
        };
        if state.readers.len() >= readers_max {
            return Err(NotJoined::Full);
        }
        let reader = state.next_reader;
        state.next_reader += 1;
        state.abandoned = None;
        let place = Reader::new(waker, connection, seat);
        state.readers.insert(reader, place);
        drop(state);
        let flight = Arc::clone(self);
        Ok(Waiting::of_flight(flight, reader, CacheResult::Collapsed))
    }

    /// What reader `reader` can have now. `head` tells whether it has seen the head.
    pub fn view(&self, reader: u64, head: HeadSeen) -> View {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let place = state
            .readers
            .get_mut(&reader)
            .expect("a reader stays listed until it leaves");
        let view = match std::mem::replace(&mut place.seat, Seat::Reading) {
            Seat::Moved(waiting) => {
                place.seat = Seat::Leaving;
                return View::Moved(waiting);
            }
            seat @ Seat::Leaving => {
                place.seat = seat;
                View::Nothing
            }
            seat @ (Seat::Waiting(_) | Seat::Reading) => {
                place.seat = seat;
                let is_first = reader == FIRST && head == HeadSeen::No;
                if is_first && let Some(early) = state.early.pop_front() {
                    return View::Early(early);
                }
                let own = state.first_head.as_ref();
                let own = own.filter(|_| is_first);
                match (own, state.phase.has_head()) {
                    (Some(own), true) => View::Head(Arc::clone(own)),
                    (Some(_) | None, _) => {
                        view_phase(&state.phase, (&state.buffer, place.position), head)
                            .unwrap_or_else(|| View::End(state.trailers.clone()))
                    }
                }
            }
        };
        match &view {
            View::Nothing => place.attention = Attention::Asleep,
            View::Piece(Piece::Bytes(bytes)) => place.position += bytes.len() as u64,
            View::Piece(Piece::File { length, .. }) => place.position += length,
            View::Early(_)
            | View::Head(_)
            | View::End(_)
            | View::Failed(_)
            | View::Stored(..)
            | View::Moved(_) => {}
        }
        drop(guard);
        match &view {
            View::Piece(_) => self.progress.notify_one(),
            View::Nothing
            | View::Early(_)
            | View::Head(_)
            | View::End(_)
            | View::Failed(_)
            | View::Stored(..)
            | View::Moved(_) => {}
        }
        view
    }

    /// Reader `reader` wants nothing more. A fetch that nobody waits for goes on where its answer
    /// may serve others later and not too many such fetches run; otherwise it is cancelled.
    pub fn leave(&self, reader: u64) {
        let mut state = lock(&self.state);
        let gone = state.readers.remove(&reader);
        let deserted = state.readers.is_empty() && state.phase.is_flying();
        let cancelled = deserted && !self.may_go_on(&mut state);
        if cancelled {
            state.phase = Phase::Failed(FetchError::Aborted);
        }
        drop(state);
        if let Some(task) = self.task.get().filter(|_| cancelled) {
            task.abort();
        }
        // Dropped without the lock: a reader that was moved takes its other flight with it.
        drop(gone);
        self.progress.notify_one();
    }

    fn may_go_on(&self, state: &mut State) -> bool {
        let useful = self.party == Party::Shared && state.kept == Kept::Whole;
        let permit = useful.then(|| Arc::clone(&self.abandoned).try_acquire_owned().ok());
        state.abandoned = permit.flatten();
        state.abandoned.is_some()
    }

    /// Shows the head to all whom `audience` includes, and returns the others: each must be given
    /// another flight with [`Flight::reseat`].
    pub fn publish(
        &self,
        head: &Arc<ResponseHead>,
        audience: Audience,
        kept: Kept,
    ) -> Vec<(u64, Box<Asker>)> {
        let mut state = lock(&self.state);
        let mut excluded = Vec::new();
        for (&number, reader) in &mut state.readers {
            match std::mem::replace(&mut reader.seat, Seat::Reading) {
                Seat::Waiting(asker) if !audience.includes(number, &asker) => {
                    reader.seat = Seat::Leaving;
                    excluded.push((number, asker));
                }
                Seat::Waiting(_) | Seat::Reading => {}
                seat @ (Seat::Leaving | Seat::Moved(_)) => reader.seat = seat,
            }
        }
        state.kept = kept;
        state.phase = Phase::Streaming(Arc::clone(head), audience);
        self.wake_all(state);
        excluded
    }

    /// The first reader gets this head instead of the one that is published next: it has fields
    /// that are for nobody else.
    pub fn keep_for_first(&self, head: ResponseHead) {
        lock(&self.state).first_head = Some(Arc::new(head));
    }

    /// Gives an excluded reader its new flight.
    pub fn reseat(&self, reader: u64, waiting: Waiting) {
        let mut state = lock(&self.state);
        let Some(place) = state.readers.get_mut(&reader) else {
            drop(state);
            return;
        };
        place.seat = Seat::Moved(waiting);
        place.attention = Attention::Woken;
        let (waker, connection) = (Arc::clone(&place.waker), place.connection);
        drop(state);
        wake(&waker, connection);
    }

    /// How reader `reader` is woken, for its new flight.
    pub fn waker_of(&self, reader: u64) -> Option<(Arc<dyn Waker>, u64)> {
        lock(&self.state)
            .readers
            .get(&reader)
            .map(|place| (Arc::clone(&place.waker), place.connection))
    }

    /// Passes an interim response on to the reader by whose request the flight is fetched. Only a
    /// few wait for one who is slow: they are hints.
    pub fn inform(&self, early: Bytes) {
        let mut state = lock(&self.state);
        if matches!(state.phase, Phase::Asked) && state.early.len() < EARLY_MAX {
            state.early.push_back(early);
            self.wake_all(state);
        }
    }

    /// Adds a piece of the body; returns how many bytes are in memory now.
    pub fn push(&self, piece: Bytes) -> u64 {
        let mut state = lock(&self.state);
        state.buffer.push(piece);
        let held = state.buffer.held();
        self.wake_all(state);
        held
    }

    /// Keeps what came behind the body, for those who read this flight to its end. Who goes over to
    /// the object in the cache does without.
    pub fn trail(&self, trailers: HeaderMap) {
        lock(&self.state).trailers = Some(Arc::new(trailers));
    }

    /// Waits until at most `unread_max` bytes are held for the slowest reader.
    pub async fn drained(&self, unread_max: u64) {
        while self.release_read() > unread_max {
            self.progress.notified().await;
        }
    }

    fn release_read(&self) -> u64 {
        let mut state = lock(&self.state);
        let slowest = state.readers.values().filter(|place| place.reads());
        let slowest = slowest.map(|place| place.position).min();
        let received = state.buffer.received();
        state.buffer.forget_before(slowest.unwrap_or(received));
        state.buffer.held()
    }

    /// Readers who leave more than `unread_max` bytes unread get an error instead of the rest.
    pub fn drop_slowest(&self, unread_max: u64, error: FetchError) {
        let mut state = lock(&self.state);
        let received = state.buffer.received();
        for place in state.readers.values_mut().filter(|place| place.reads()) {
            if place.position + unread_max < received {
                place.seat = Seat::Moved(Waiting::failed(error));
                place.attention = Attention::Asleep;
            }
        }
        self.wake_all(state);
    }

    /// How much of the body is held.
    pub fn kept(&self) -> Kept {
        lock(&self.state).kept
    }

    /// The head, once it is published.
    pub fn head(&self) -> Option<Arc<ResponseHead>> {
        match &lock(&self.state).phase {
            Phase::Streaming(head, _) | Phase::Complete(head, _) => Some(Arc::clone(head)),
            Phase::Asked | Phase::Stored(..) | Phase::Failed(_) => None,
        }
    }

    /// From now on only what is unread is held.
    pub fn keep_window(&self) {
        lock(&self.state).kept = Kept::Window;
    }

    /// Everything in memory, for the disk, and how far it reaches.
    pub fn pieces(&self) -> (Vec<Bytes>, u64) {
        let mut state = lock(&self.state);
        let pieces = state.buffer.pieces();
        (pieces, state.buffer.received())
    }

    /// `file` now holds the body up to `end`.
    pub fn hand_to_file(&self, file: &Arc<StoredFile>, end: u64) {
        lock(&self.state).buffer.hand_to_file(file, end);
    }

    /// The whole body in one piece, where it is all in memory.
    pub fn gather(&self) -> Option<Bytes> {
        lock(&self.state).buffer.gather()
    }

    /// The body is whole.
    pub fn complete(&self) {
        let mut state = lock(&self.state);
        state.phase = match std::mem::replace(&mut state.phase, Phase::Asked) {
            Phase::Streaming(head, audience) => Phase::Complete(head, audience),
            phase @ (Phase::Asked | Phase::Complete(..) | Phase::Stored(..) | Phase::Failed(_)) => {
                phase
            }
        };
        self.wake_all(state);
    }

    /// The object is in the cache: readers go over to it. The head must have been published.
    /// `result` is what they report, where it is another than they know.
    pub fn complete_with(&self, stored: &Arc<Stored>, result: Option<CacheResult>) {
        let mut state = lock(&self.state);
        state.phase = Phase::Stored(Arc::clone(stored), result);
        state.buffer = Buffer::default();
        self.wake_all(state);
    }

    /// Whether somebody reads, or will.
    pub fn is_read(&self) -> bool {
        lock(&self.state).readers.values().any(Reader::reads)
    }

    /// How many wait for it, by which turns at its source are given.
    pub fn readers(&self) -> usize {
        lock(&self.state).readers.len()
    }

    /// It broke off. Does nothing where it is over already.
    pub fn fail(&self, error: FetchError) {
        let mut state = lock(&self.state);
        if state.phase.is_flying() {
            state.phase = Phase::Failed(error);
            state.buffer = Buffer::default();
        }
        // Nobody will reseat those who were told to leave.
        for place in state.readers.values_mut() {
            if let Seat::Leaving = place.seat {
                place.seat = Seat::Moved(Waiting::failed(error));
                place.attention = Attention::Asleep;
            }
        }
        self.wake_all(state);
    }

    fn wake_all(&self, mut state: MutexGuardOf<'_>) {
        let mut sleepers = Vec::new();
        for place in state.readers.values_mut() {
            if place.attention == Attention::Asleep && !matches!(place.seat, Seat::Leaving) {
                place.attention = Attention::Woken;
                sleepers.push((Arc::clone(&place.waker), place.connection));
            }
        }
        drop(state);
        for (waker, connection) in sleepers {
            wake(&waker, connection);
        }
    }
}

type MutexGuardOf<'a> = std::sync::MutexGuard<'a, State>;

impl Phase {
    fn has_head(&self) -> bool {
        match self {
            Self::Streaming(..) | Self::Complete(..) | Self::Stored(..) => true,
            Self::Asked | Self::Failed(_) => false,
        }
    }

    fn is_flying(&self) -> bool {
        match self {
            Self::Asked | Self::Streaming(..) => true,
            Self::Complete(..) | Self::Stored(..) | Self::Failed(_) => false,
        }
    }
}

/// What a reader finds who stands there; none at the end.
fn view_phase(phase: &Phase, (buffer, position): (&Buffer, u64), head: HeadSeen) -> Option<View> {
    let (published, then) = match phase {
        Phase::Asked => return Some(View::Nothing),
        Phase::Failed(error) => return Some(View::Failed(*error)),
        Phase::Stored(stored, result) => return Some(View::Stored(Arc::clone(stored), *result)),
        Phase::Streaming(head, _) => (head, Some(View::Nothing)),
        Phase::Complete(head, _) => (head, None),
    };
    if head == HeadSeen::No {
        return Some(View::Head(Arc::clone(published)));
    }
    buffer.read(position).map(View::Piece).or(then)
}

/// A core whose mailbox fails must not take the flight of all others with it.
fn wake(waker: &Arc<dyn Waker>, connection: u64) {
    if catch_unwind(AssertUnwindSafe(|| waker.wake(connection))).is_err() {
        tracing::error!("waking connection {connection} failed");
    }
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flight")
            .field("party", &self.party)
            .finish_non_exhaustive()
    }
}
