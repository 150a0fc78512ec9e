//! A body on its way from its source into a flight, and into the cache.
//!
//! ```text
//!   Memory ──too large, or too much on its way──▶ Disk ──full──▶ Window
//!      └──────────── no disk, or not to be kept ─────────────────▲
//! ```
//!
//! In memory and on disk the body is held from its start, so that whoever comes later can still
//! join. In a window only what somebody has not read is held, and the source has to wait for its
//! readers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use tokio::time::{Instant, timeout, timeout_at};

use super::counters::count;
use super::integrity::Standing;
use super::task::Fetch;
use super::{Shared, lock};
use crate::cache::{Body, Stored};
use crate::cacheability::Keeping;
use crate::disk::{DiskFull, StoredFile};
use crate::flight::{FetchError, Kept, Party};
use crate::trailers;

/// Bytes gathered for one write. A write is a visit to another thread, so not each piece for
/// itself.
const WRITE_MIN: u64 = 256 << 10;

/// See the head of this file.
pub(super) struct Filling<'a> {
    fetch: &'a mut Fetch,
    keeping: Option<Keeping>,
    place: Place,
}

enum Place {
    Memory,
    Disk { file: Arc<StoredFile>, written: u64 },
    Window,
}

impl<'a> Filling<'a> {
    /// A body that is kept as `keeping` says, or only shown.
    pub fn new(fetch: &'a mut Fetch, keeping: Option<Keeping>) -> Self {
        let place = match fetch.ticket.flight.kept() {
            Kept::Whole => Place::Memory,
            Kept::Window => Place::Window,
        };
        Self {
            fetch,
            keeping,
            place,
        }
    }

    /// Reads the body to its end. Where this fails nothing is kept.
    pub async fn fill(&mut self, body: &mut Incoming) -> Result<(), FetchError> {
        let settings = &self.fetch.shared.settings;
        let (patience, total) = (settings.body_timeout, settings.total_timeout);
        let deadline = Instant::now() + total;
        loop {
            let now = Instant::now();
            let limit = match self.place {
                // A timer is not asked where a piece is there each time.
                Place::Memory | Place::Disk { .. } if now >= deadline => {
                    return Err(FetchError::BodyTimeout);
                }
                Place::Memory | Place::Disk { .. } => deadline.min(now + patience),
                Place::Window => now + patience,
            };
            let frame = timeout_at(limit, body.frame())
                .await
                .map_err(|_| FetchError::BodyTimeout)?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| body_error(&error))?;
            match frame.into_data() {
                Ok(piece) => self.take(piece).await,
                Err(frame) => self.trail(frame),
            }
        }
        self.fetch.see_end_of_push().await?;
        self.end().await;
        Ok(())
    }

    /// The last frame of a body: no piece of it, so its trailers.
    fn trail(&self, frame: Frame<Bytes>) {
        let trailers = frame.into_trailers().ok().and_then(trailers::passed_on);
        if let Some(trailers) = trailers {
            self.fetch.ticket.flight.trail(trailers);
        }
    }

    async fn take(&mut self, piece: Bytes) {
        let shared = Arc::clone(&self.fetch.shared);
        let length = piece.len() as u64;
        self.fetch.note_received(length);
        let held = self.fetch.ticket.flight.push(piece);
        match &self.place {
            Place::Memory => {
                let room = shared.reserve_in_flight(length);
                self.fetch.reserved += length;
                if held > shared.cache.object_max() || room == Room::None {
                    self.leave_memory().await;
                }
            }
            Place::Disk { .. } if held >= WRITE_MIN => self.write().await,
            Place::Disk { .. } => {}
            Place::Window => self.wait_for_readers().await,
        }
    }

    /// The body is too large for memory: to the disk, or only through.
    async fn leave_memory(&mut self) {
        let disk = self.keeping.as_ref().and(self.fetch.shared.cache.disk());
        let file = disk.map(|disk| disk.create(self.fetch.asker.key.space.disk_owner()));
        match file {
            Some(Ok(file)) => {
                self.place = Place::Disk { file, written: 0 };
                self.write().await;
            }
            Some(Err(full)) => self.give_up_disk(&full).await,
            None => self.go_through().await,
        }
        self.fetch.shared.release_in_flight(self.fetch.reserved);
        self.fetch.reserved = 0;
    }

    /// Writes to the file what is in memory.
    async fn write(&mut self) {
        let Place::Disk { file, written } = &mut self.place else {
            return;
        };
        let (pieces, end) = self.fetch.ticket.flight.pieces();
        let shared = &self.fetch.shared;
        let owner = self.fetch.asker.key.space.disk_owner();
        let settings = shared.settings.disk.as_ref();
        let object_max = settings.map_or(0, |disk| disk.object_max);
        let limit = shared.cache.disk().map_or(0, |disk| disk.limit_of(owner));
        if end > object_max.min(limit) {
            self.give_up_disk(&DiskFull::Limit).await;
            return;
        }
        shared.cache.make_disk_room(owner, end - *written);
        let (target, offset) = (Arc::clone(file), *written);
        let write = move || {
            let mut at = offset;
            for piece in pieces {
                target.write(at, &piece)?;
                at += piece.len() as u64;
            }
            Ok(())
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {
                *written = end;
                let file = Arc::clone(file);
                self.fetch.ticket.flight.hand_to_file(&file, end);
            }
            Ok(Err(full)) => self.give_up_disk(&full).await,
            Err(_) => self.give_up_disk(&DiskFull::Limit).await,
        }
    }

    async fn give_up_disk(&mut self, why: &DiskFull) {
        let target = String::from_utf8_lossy(&self.fetch.asker.key.target);
        tracing::debug!("not keeping {target}: {why}");
        self.go_through().await;
    }

    /// Keeps nothing: what is unread waits in memory, the rest at the source.
    async fn go_through(&mut self) {
        count(&self.fetch.shared.tally.unkept);
        self.fetch.object_to_push();
        self.keeping = None;
        self.place = Place::Window;
        lock(&self.fetch.shared.table).unlist(&self.fetch.ticket);
        self.fetch.ticket.flight.keep_window();
        self.wait_for_readers().await;
    }

    /// One visitor may be as slow as its core allows. Of several, one that stands still for too
    /// long must not hold the others up.
    async fn wait_for_readers(&self) {
        let flight = &self.fetch.ticket.flight;
        let settings = &self.fetch.shared.settings;
        match flight.party {
            Party::Private => flight.drained(settings.unread_max).await,
            Party::Shared => {
                while timeout(settings.body_timeout, flight.drained(settings.unread_max))
                    .await
                    .is_err()
                {
                    flight.drop_slowest(settings.unread_max, FetchError::Overloaded);
                }
            }
        }
    }

    /// The body is whole.
    async fn end(&mut self) {
        if let Place::Disk { .. } = self.place {
            self.write().await;
        }
        let body = match (&self.place, &self.keeping) {
            (Place::Memory, Some(_)) => self.fetch.ticket.flight.gather().map(Body::Memory),
            (Place::Disk { file, written }, Some(_)) => finish(file, *written).await,
            (Place::Memory | Place::Disk { .. } | Place::Window, _) => None,
        };
        let flight = &self.fetch.ticket.flight;
        match (body, &self.keeping, flight.head()) {
            (Some(body), Some(keeping), Some(head)) => {
                let standing = self.fetch.standing(&head, &body).await;
                let standing = standing.map(|standing| self.fetch.note_standing(standing));
                if standing == Some(Standing::Forged) {
                    self.fetch.ticket.flight.complete();
                    return;
                }
                let stored = Arc::new(Stored::new(head, body, keeping));
                self.fetch.keep(&stored);
                self.fetch.ticket.flight.complete_with(&stored, None);
                if standing == Some(Standing::Unsigned) {
                    self.fetch.seek_signature(&stored);
                }
            }
            (Some(_) | None, Some(_) | None, _) => flight.complete(),
        }
    }
}

async fn finish(file: &Arc<StoredFile>, length: u64) -> Option<Body> {
    let target = Arc::clone(file);
    let renamed = tokio::task::spawn_blocking(move || target.finish()).await;
    matches!(renamed, Ok(Ok(()))).then(|| Body::File {
        file: Arc::clone(file),
        length,
    })
}

/// Whether more bytes may be held for bodies on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Some,
    None,
}

impl Shared {
    fn reserve_in_flight(&self, bytes: u64) -> Room {
        let before = self.in_flight.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.settings.memory_in_flight {
            Room::None
        } else {
            Room::Some
        }
    }

    pub(super) fn release_in_flight(&self, bytes: u64) {
        self.in_flight.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Why there is no more of a body.
fn body_error(error: &hyper::Error) -> FetchError {
    if error.is_parse() {
        FetchError::Malformed
    } else {
        FetchError::Truncated
    }
}
