//! Answers of our own that take a while: made beside the cores, read by one visitor like a fetch.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Semaphore;

use super::{Fetcher, Shared};
use crate::cacheability::Audience;
use crate::flight::{
    FetchError, Flight, Forwarding, Kept, Overloaded, Party, ResponseHead, Waiting, Waker, Why,
};
use crate::tags::Tags;

/// Most of them at a time. They are made for operators and their programs, not for visitors.
pub(super) const ASIDES_MAX: usize = 64;

/// An answer that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its body, JSON.
    pub json: String,
}

impl Fetcher {
    /// A place at an answer that `making` will give. The making goes on where the visitor leaves.
    pub(crate) fn aside(
        &self,
        making: impl Future<Output = Reply> + Send + 'static,
        waker: Arc<dyn Waker>,
        connection: u64,
    ) -> Result<Waiting, Overloaded> {
        self.aside_within(&self.shared.asides, making, waker, connection)
    }

    /// The same, where `places` limits how many of its kind are made at a time.
    pub(super) fn aside_within(
        &self,
        places: &Arc<Semaphore>,
        making: impl Future<Output = Reply> + Send + 'static,
        waker: Arc<dyn Waker>,
        connection: u64,
    ) -> Result<Waiting, Overloaded> {
        let shared = &self.shared;
        let permit = Arc::clone(places).try_acquire_owned();
        let permit = permit.map_err(|_| Overloaded::Flights)?;
        let abandoned = Arc::clone(&shared.abandoned);
        let (flight, waiting) = Flight::begin(Party::Private, abandoned, waker, connection);
        let guard = Unanswered(flight);
        let shared = Arc::clone(shared);
        self.shared.runtime.spawn(async move {
            let reply = making.await;
            guard.answer(&shared, reply);
            drop(permit);
        });
        Ok(waiting)
    }
}

/// Whatever becomes of the making, its visitor is told.
struct Unanswered(Arc<Flight>);

impl Unanswered {
    fn answer(&self, shared: &Shared, reply: Reply) {
        let lines = "content-type: application/json\r\ncache-control: no-store\r\n";
        let body = Bytes::from(reply.json);
        let head = ResponseHead {
            reading: crate::flight::Reading::Unsaid,
            status: reply.status,
            lines: Bytes::from_static(lines.as_bytes()),
            tags: Tags::default(),
            length: Some(body.len() as u64),
            age_initial: Duration::ZERO,
            received: shared.now(),
            forwarding: Forwarding::unkept(Why::Here),
        };
        let flight = &self.0;
        flight.publish(&Arc::new(head), Audience::FirstOnly, Kept::Window);
        flight.push(body);
        flight.complete();
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        // Does nothing where it was answered.
        self.0.fail(FetchError::Aborted);
    }
}
