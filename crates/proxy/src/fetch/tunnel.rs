//! A connection that has become something else than HTTP: bytes in both directions, unread.
//!
//! ```text
//!  visitor ──BodySender──▶ up ──▶ upstream
//!     ▲                              │
//!     └────── window of the flight ◀─┘ down
//! ```
//!
//! Both directions use what bodies use, so backpressure, pacing and metering are those of bodies:
//! at most a window of bytes waits in each direction, and beyond it the faster side has to wait.
//! One direction may end before the other. Deadlines are the engine's; it leaves the flight, which
//! ends this task.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::exchange::Reply;
use super::response::{Recipients, clean};
use super::task::Fetch;
use crate::cacheability::Audience;
use crate::flight::{BodyReceiver, FetchError, Kept, ResponseHead, Why};

/// The one protocol that is passed on.
const WEBSOCKET: &str = "websocket";
/// Most that is read from the upstream at once.
const PIECE: usize = 16 * 1024;

/// Makes a request ask for a tunnel.
pub(super) fn ask_for(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(WEBSOCKET));
}

impl Fetch {
    /// Leave to open a tunnel, where this fetch asks for one.
    pub(super) fn tunnel_permit(&self) -> Result<Option<OwnedSemaphorePermit>, FetchError> {
        if !self.body.as_ref().is_some_and(BodyReceiver::is_tunnel) {
            return Ok(None);
        }
        let tunnels = std::sync::Arc::clone(&self.shared.tunnels);
        let permit = tunnels.try_acquire_owned();
        permit.map(Some).map_err(|_| FetchError::Overloaded)
    }

    /// The upstream has changed the protocol. Ends when both directions have.
    ///
    /// Cancel safety: dropped half-way, both sides see the connection break.
    pub(super) async fn tunnel(
        &mut self,
        mut reply: Reply,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(), FetchError> {
        let visitor = self.body.take();
        // An upstream that changes the protocol unasked, or to another one, is not understood.
        let (Some(visitor), Some(_permit)) = (visitor, permit) else {
            return Err(FetchError::Malformed);
        };
        let is_websocket = reply
            .parts
            .headers
            .get(header::UPGRADE)
            .is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(WEBSOCKET.as_bytes()));
        let upgrade = reply.parts.extensions.remove::<OnUpgrade>();
        let upgrade = upgrade.filter(|_| is_websocket);
        let upgrade = upgrade.ok_or(FetchError::Malformed)?;
        let limit = self.shared.settings.first_byte_timeout;
        let upgraded = timeout(limit, upgrade).await;
        let upgraded = upgraded
            .map_err(|_| FetchError::FirstByteTimeout)?
            .map_err(|_| FetchError::ClosedEarly)?;
        // A tunnel may last for days and has a limit of its own: it must not keep requests waiting.
        drop(reply.lease.claim.take());
        let head = self.tunnel_head(&reply);
        let flight = &self.ticket.flight;
        flight.publish(&head.into(), Audience::FirstOnly, Kept::Window);
        let (from_upstream, to_upstream) = tokio::io::split(TokioIo::new(upgraded));
        let (down, ()) = tokio::join!(self.down(from_upstream), up(visitor, to_upstream));
        down
    }

    fn tunnel_head(&self, reply: &Reply) -> ResponseHead {
        let recipients = Recipients::One(self.asker.source.purpose);
        let head = clean(&reply.parts, &reply.arrival, recipients, Why::Bypass);
        let lines = [
            b"connection: upgrade\r\nupgrade: websocket\r\n".as_slice(),
            &head.lines,
        ];
        ResponseHead {
            lines: Bytes::from(lines.concat()),
            length: None,
            ..head
        }
    }

    /// Passes on what the upstream says, until it has said everything.
    async fn down(&self, mut upstream: impl AsyncRead + Unpin) -> Result<(), FetchError> {
        let flight = &self.ticket.flight;
        let mut buffer = BytesMut::new();
        loop {
            // Small pieces share a block, so that what is held is what is counted.
            if buffer.capacity() < PIECE / 8 {
                buffer = BytesMut::with_capacity(PIECE);
            }
            match upstream.read_buf(&mut buffer).await {
                Ok(0) => break,
                Ok(bytes) => {
                    let space = &self.asker.key.space;
                    self.shared.tally.received(space, bytes as u64);
                    flight.push(buffer.split().freeze());
                    flight.drained(self.shared.settings.unread_max).await;
                }
                Err(_) => return Err(FetchError::Truncated),
            }
        }
        flight.complete();
        Ok(())
    }
}

/// Passes on what the visitor says, until it has said everything. Where the upstream does not
/// listen any more, what it says decides.
async fn up(mut visitor: BodyReceiver, mut upstream: impl AsyncWrite + Unpin) {
    while let Some(frame) = Pin::new(&mut visitor).frame().await {
        let Some(piece) = frame.ok().and_then(|frame| frame.into_data().ok()) else {
            return;
        };
        if upstream.write_all(&piece).await.is_err() {
            return;
        }
    }
    // Where it fails the connection is gone, and reading from it tells.
    let _ = upstream.shutdown().await;
}
