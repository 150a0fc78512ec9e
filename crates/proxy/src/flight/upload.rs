//! A request body on its way from a core to the fetch that sends it on.
//!
//! The core's side never blocks: it pushes until the channel is full and is woken when there is
//! room again. A sender that is dropped before [`BodySender::finish`] breaks the request off, so
//! that an upstream never takes half a body for a whole one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use thiserror::Error;

use super::{Waker, lock};

/// A channel for one request body. At most `unread_max` bytes wait in it, or one piece where that
/// is larger. `length` is the request's Content-Length; none where it was chunked.
pub fn body_channel(
    unread_max: usize,
    length: Option<u64>,
    waker: Arc<dyn Waker>,
    connection: u64,
) -> (BodySender, BodyReceiver) {
    let shared = Arc::new(Shared {
        unread_max,
        waker,
        connection,
        state: Mutex::new(State {
            pieces: VecDeque::new(),
            unread: 0,
            moved: 0,
            sender: Sender::Sending,
            receiver: Receiver::Reading,
            trailers: None,
            room_wanted: RoomWanted::No,
            reader: None,
        }),
    });
    let sender = BodySender {
        shared: Arc::clone(&shared),
    };
    let purpose = Purpose::Body { length };
    (sender, BodyReceiver { shared, purpose })
}

/// As [`body_channel`], for what goes up a tunnel after the protocol was changed. A miss with it
/// asks for WebSocket.
pub fn tunnel_channel(
    unread_max: usize,
    waker: Arc<dyn Waker>,
    connection: u64,
) -> (BodySender, BodyReceiver) {
    let (sender, mut receiver) = body_channel(unread_max, None, waker, connection);
    receiver.purpose = Purpose::Tunnel;
    (sender, receiver)
}

/// The core's end of a request body.
#[derive(Debug)]
pub struct BodySender {
    shared: Arc<Shared>,
}

/// The fetch's end of a request body.
#[derive(Debug)]
pub struct BodyReceiver {
    shared: Arc<Shared>,
    purpose: Purpose,
}

/// What a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The body of a request.
    Body { length: Option<u64> },
    /// The bytes that go up a tunnel, once there is one.
    Tunnel,
}

/// Looks at a request body from aside.
#[derive(Clone, Debug)]
pub(crate) struct UploadWatch(Arc<Shared>);

impl UploadWatch {
    /// A number that grows whenever a piece of the body is taken, or it ends.
    pub fn moved(&self) -> u64 {
        lock(&self.0.state).moved
    }
}

impl BodyReceiver {
    pub(crate) fn watch(&self) -> UploadWatch {
        UploadWatch(Arc::clone(&self.shared))
    }

    /// Whether it is for a tunnel, and so no body of the request that asks for one.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.purpose == Purpose::Tunnel
    }
}

/// What became of a pushed piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It will be sent.
    Taken,
    /// There is no room: here it is back. The waker is called when there is room.
    Full(Bytes),
    /// Nobody reads any more; the response, or its failure, tells why.
    Closed,
}

/// The visitor broke its body off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the request body was broken off")]
pub struct BrokenOff;

impl BodySender {
    /// Offers the next piece of the body. Never blocks.
    pub fn push(&self, piece: Bytes) -> Pushed {
        let mut state = lock(&self.shared.state);
        match state.receiver {
            Receiver::Gone => return Pushed::Closed,
            Receiver::Reading => {}
        }
        if state.unread > 0 && state.unread + piece.len() > self.shared.unread_max {
            state.room_wanted = RoomWanted::Yes;
            return Pushed::Full(piece);
        }
        state.unread += piece.len();
        state.pieces.push_back(piece);
        let reader = state.reader.take();
        drop(state);
        wake_reader(reader);
        Pushed::Taken
    }

    /// The body is whole.
    pub fn finish(self) {
        self.end(Sender::Finished);
    }

    /// The body is whole, and these fields go behind it, as far as the request's Trailer field
    /// names them.
    pub fn finish_with(self, trailers: HeaderMap) {
        lock(&self.shared.state).trailers = Some(trailers);
        self.end(Sender::Finished);
    }

    fn end(&self, how: Sender) {
        let mut state = lock(&self.shared.state);
        if state.sender == Sender::Sending {
            state.sender = how;
            state.moved += 1;
        }
        let reader = state.reader.take();
        drop(state);
        wake_reader(reader);
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        self.end(Sender::BrokenOff);
    }
}

impl Body for BodyReceiver {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut state = lock(&self.shared.state);
        if let Some(piece) = state.pieces.pop_front() {
            state.unread -= piece.len();
            state.moved += 1;
            let wanted = std::mem::replace(&mut state.room_wanted, RoomWanted::No);
            drop(state);
            match wanted {
                RoomWanted::Yes => self.shared.waker.wake(self.shared.connection),
                RoomWanted::No => {}
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match state.sender {
            Sender::Sending => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Sender::Finished => {
                let trailers = state.trailers.take();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Sender::BrokenOff => Poll::Ready(Some(Err(BrokenOff))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.purpose {
            Purpose::Body {
                length: Some(length),
            } => SizeHint::with_exact(length),
            Purpose::Body { length: None } | Purpose::Tunnel => SizeHint::new(),
        }
    }
}

impl Drop for BodyReceiver {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.receiver = Receiver::Gone;
        state.pieces.clear();
        let wanted = std::mem::replace(&mut state.room_wanted, RoomWanted::No);
        drop(state);
        match wanted {
            RoomWanted::Yes => self.shared.waker.wake(self.shared.connection),
            RoomWanted::No => {}
        }
    }
}

struct Shared {
    unread_max: usize,
    waker: Arc<dyn Waker>,
    connection: u64,
    state: Mutex<State>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBody")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

struct State {
    pieces: VecDeque<Bytes>,
    unread: usize,
    moved: u64,
    sender: Sender,
    receiver: Receiver,
    trailers: Option<HeaderMap>,
    room_wanted: RoomWanted,
    reader: Option<std::task::Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Sending,
    Finished,
    BrokenOff,
}

#[derive(Clone, Copy)]
enum Receiver {
    Reading,
    Gone,
}

#[derive(Clone, Copy)]
enum RoomWanted {
    No,
    Yes,
}

fn wake_reader(reader: Option<std::task::Waker>) {
    if let Some(reader) = reader {
        reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Waker for Counter {
        fn wake(&self, connection: u64) {
            assert_eq!(connection, 5);
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn poll(receiver: &mut BodyReceiver) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        Pin::new(receiver)
            .poll_frame(&mut context)
            .map_ok(|frame| frame.into_data().unwrap_or_default())
    }

    #[test]
    fn a_full_channel_takes_no_more_and_wakes_the_sender_when_it_does() {
        let counter = Arc::new(Counter::default());
        let (sender, mut receiver) = body_channel(10, None, counter.clone(), 5);
        let piece = Bytes::from_static(b"12345678");
        assert_eq!(sender.push(piece.clone()), Pushed::Taken);
        assert_eq!(sender.push(piece.clone()), Pushed::Full(piece.clone()));
        assert_eq!(counter.0.load(Ordering::SeqCst), 0);
        assert_eq!(poll(&mut receiver), Poll::Ready(Some(Ok(piece.clone()))));
        assert_eq!(counter.0.load(Ordering::SeqCst), 1);
        assert_eq!(sender.push(piece.clone()), Pushed::Taken);
        sender.finish();
        assert_eq!(poll(&mut receiver), Poll::Ready(Some(Ok(piece))));
        assert_eq!(poll(&mut receiver), Poll::Ready(None));
    }

    #[test]
    fn either_end_learns_that_the_other_is_gone() {
        let counter = Arc::new(Counter::default());
        let (sender, mut receiver) = body_channel(10, Some(3), counter.clone(), 5);
        assert_eq!(poll(&mut receiver), Poll::Pending);
        drop(sender);
        assert_eq!(poll(&mut receiver), Poll::Ready(Some(Err(BrokenOff))));
        let (sender, receiver) = body_channel(1, None, counter.clone(), 5);
        sender.push(Bytes::from_static(b"1"));
        assert!(matches!(
            sender.push(Bytes::from_static(b"2")),
            Pushed::Full(_)
        ));
        drop(receiver);
        assert_eq!(counter.0.load(Ordering::SeqCst), 1);
        assert_eq!(sender.push(Bytes::from_static(b"3")), Pushed::Closed);
    }
}
