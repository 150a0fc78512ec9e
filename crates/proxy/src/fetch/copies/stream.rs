//! A response that comes as the body of a request (`message/http`, RFC 9112 section 10.1), read by
//! the same client as the responses that are asked for.
//!
//! ```text
//!  PUT's body ─▶ PushedStream ─▶ hyper ─▶ head, body ─▶ nothing may come behind it
//! ```
//!
//! The client gets a connection on which its request goes nowhere, and which answers it with the
//! pushed bytes. So whatever is refused of an answer to a fetch is refused here: two lengths,
//! unknown codings, a body that ends early. A second response behind the first, by which somebody
//! might want to have a page stored under the name of another, is an error like any other excess.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use hyper::body::Body;
use hyper::client::conn::http1::{Builder, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::super::exchange::{Patience, Reply};
use super::super::pool::Lease;
use super::super::request::Upload;
use super::super::task::Fetch;
use super::CopyEnd;
use super::judgement::may_be_a_copy;
use crate::flight::{BodyReceiver, FetchError, Place, lock};
use crate::upstream::Endpoint;

/// A push under way.
#[derive(Debug)]
pub(in crate::fetch) struct Pushing {
    /// The request's body, until it is read.
    body: Option<BodyReceiver>,
    /// Where the origin is told why the copy is not taken.
    said: Arc<Mutex<Option<CopyEnd>>>,
    /// Tells whether something came behind the response.
    rest: Option<oneshot::Receiver<Rest>>,
}

/// What came behind a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    Something,
    /// The request was broken off.
    Unknown,
}

/// What a fetch finds of a push.
pub(in crate::fetch) enum PushedHead {
    /// The response: it may be kept.
    Reply(Box<Reply>),
    /// There is none, and somebody else waits for the object.
    Wanted,
    /// There is none, and nobody waits.
    Unwanted,
}

impl Pushing {
    pub(super) const fn new(body: BodyReceiver, said: Arc<Mutex<Option<CopyEnd>>>) -> Self {
        Self {
            body: Some(body),
            said,
            rest: None,
        }
    }
}

impl Fetch {
    /// The head of the pushed response; otherwise the push is over, and who has to be served all
    /// the same is told. Without a push the object is wanted.
    pub(in crate::fetch) async fn take_push(&mut self) -> PushedHead {
        let Some(pushing) = &mut self.pushing else {
            return PushedHead::Wanted;
        };
        let why = match pushing.body.take() {
            Some(body) => match self.read_push(body).await {
                Ok(reply) => match self.objection(&reply) {
                    None => return PushedHead::Reply(Box::new(reply)),
                    Some(why) => why,
                },
                Err(error) => CopyEnd::of(error),
            },
            None => CopyEnd::Malformed,
        };
        if let Some(pushing) = self.pushing.take() {
            *lock(&pushing.said) = Some(why);
        }
        // Under the lock, because nobody joins without it: who comes later begins a flight anew.
        let mut table = lock(&self.shared.table);
        if self.ticket.flight.readers() > 1 {
            return PushedHead::Wanted;
        }
        table.unlist(&self.ticket);
        self.ticket.flight.fail(FetchError::Aborted);
        PushedHead::Unwanted
    }

    async fn read_push(&mut self, body: BodyReceiver) -> Result<Reply, FetchError> {
        let begun = Instant::now();
        let stream = TokioIo::new(PushedStream::new(body));
        let shaken = Builder::new().handshake(stream).await;
        let (sender, connection) = shaken.map_err(|_| FetchError::Malformed)?;
        let (tell, told) = oneshot::channel();
        tokio::spawn(tell_rest(connection, tell));
        if let Some(pushing) = &mut self.pushing {
            pushing.rest = Some(told);
        }
        let endpoint = match &self.asker.source.place {
            Place::Address(address) => Endpoint::Address(*address),
            Place::Upstreams(_) => return Err(FetchError::BadRequest),
        };
        let lease = Lease::for_once(endpoint, sender);
        let patience = Patience::new(self.shared.settings.first_byte_timeout, None);
        let sent = self.send(lease, Upload::None, &patience).await;
        let ((response, _), lease) = sent.map_err(|failed| failed.error)?;
        Ok(self.replied((response, begun.elapsed()), lease))
    }

    /// Why the response is not taken as a copy, if it is not.
    fn objection(&self, reply: &Reply) -> Option<CopyEnd> {
        match may_be_a_copy(&self.answer_in(reply), &self.policy()) {
            true if self.is_too_large(reply) => Some(CopyEnd::TooLarge),
            true => None,
            false => Some(CopyEnd::NotToBeKept),
        }
    }

    /// What is pushed goes neither into memory nor onto the disk.
    pub(in crate::fetch) fn object_to_push(&self) {
        let Some(pushing) = &self.pushing else { return };
        let (_, length) = self.ticket.flight.pieces();
        let why = match self.is_over_size(length) {
            true => CopyEnd::TooLarge,
            false => CopyEnd::Busy,
        };
        *lock(&pushing.said) = Some(why);
    }

    /// Waits for the end of a push: a response behind which something comes is not what it says.
    pub(in crate::fetch) async fn see_end_of_push(&mut self) -> Result<(), FetchError> {
        let Some(told) = self
            .pushing
            .as_mut()
            .and_then(|pushing| pushing.rest.take())
        else {
            return Ok(());
        };
        match timeout(self.shared.settings.body_timeout, told).await {
            Ok(Ok(Rest::Nothing)) => Ok(()),
            Ok(Ok(Rest::Something)) => Err(FetchError::Malformed),
            Ok(Ok(Rest::Unknown) | Err(_)) => Err(FetchError::Truncated),
            Err(_) => Err(FetchError::BodyTimeout),
        }
    }
}

/// Tells what comes behind the response, unless nobody wants to know any more: the push is then
/// over, and whoever sends it learns that.
async fn tell_rest(
    connection: Connection<TokioIo<PushedStream>, Upload>,
    mut tell: oneshot::Sender<Rest>,
) {
    let rest = tokio::select! {
        rest = read_rest(connection) => rest,
        () = tell.closed() => return,
    };
    // Nobody wants to know: see above.
    let _ = tell.send(rest);
}

/// Reads the response for whoever holds its other end, and then what comes behind it.
async fn read_rest(mut connection: Connection<TokioIo<PushedStream>, Upload>) -> Rest {
    let end = std::future::poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let parts = connection.into_parts();
    if !parts.read_buf.is_empty() {
        return Rest::Something;
    }
    if let Err(error) = end {
        tracing::trace!("a push ended: {error}");
        return Rest::Unknown;
    }
    match parts.io.into_inner().read_u8().await {
        Ok(_) => Rest::Something,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Rest::Nothing,
        Err(_) => Rest::Unknown,
    }
}

/// The client's connection: what is written to it goes nowhere.
#[derive(Debug)]
struct PushedStream {
    body: BodyReceiver,
    piece: Bytes,
    request: Requested,
}

/// Whether the request is out: an answer that is there before it would be no answer.
#[derive(Debug)]
enum Requested {
    NotYet(Option<Waker>),
    Yes,
}

impl PushedStream {
    const fn new(body: BodyReceiver) -> Self {
        Self {
            body,
            piece: Bytes::new(),
            request: Requested::NotYet(None),
        }
    }
}

impl AsyncRead for PushedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Requested::NotYet(reader) = &mut self.request {
            *reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        while self.piece.is_empty() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(broken_off))) => {
                    let error = io::Error::new(io::ErrorKind::ConnectionAborted, broken_off);
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Some(Ok(frame))) => self.piece = frame.into_data().unwrap_or_default(),
            }
        }
        let length = self.piece.len().min(buffer.remaining());
        buffer.put_slice(&self.piece[..length]);
        self.piece.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PushedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Requested::NotYet(Some(reader)) =
            std::mem::replace(&mut self.request, Requested::Yes)
        {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
