//! Connections to sources, kept for the next request to the same one.
//!
//! hyper speaks HTTP on each of them; which connection a request gets is ours to decide, because a
//! request that failed on a reused connection must be repeated on a fresh one and nowhere else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, timeout};

use super::dial::{Belonging, Way, dial};
use super::request::Upload;
use crate::flight::{FetchError, lock};
use crate::upstream::{Claim, Endpoint};

/// How long a source may take to be ready for another request after the end of a response. It needs
/// no time for that; a connection that is not ready has a problem.
const READY_WAIT: Duration = Duration::from_secs(1);

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Pool {
    connect_timeout: Duration,
    idle_timeout: Duration,
    idle_max: usize,
    shelf: Mutex<Shelf>,
}

/// The connections that nobody uses.
#[derive(Debug, Default)]
struct Shelf {
    idle: HashMap<Endpoint, Vec<Idle>>,
    /// Whether a task waits to close the oldest: one for all, since a task for each connection that
    /// is given back would be one for each request of the last `idle_timeout`.
    is_watched: bool,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Upload>,
    since: Instant,
}

/// A connection in use. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Lease {
    endpoint: Endpoint,
    belonging: Belonging,
    sender: SendRequest<Upload>,
    /// The upstream that it keeps busy.
    pub claim: Option<Claim>,
    /// Whether it served a request before.
    pub history: History,
}

/// Whether a connection has served a request before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum History {
    /// It was made for this request.
    Fresh,
    /// Its other end may have closed it in the meantime.
    Reused,
}

impl Pool {
    pub fn new(connect_timeout: Duration, idle_timeout: Duration, idle_max: usize) -> Arc<Self> {
        Arc::new(Self {
            connect_timeout,
            idle_timeout,
            idle_max,
            shelf: Mutex::default(),
        })
    }

    /// An idle connection, or a new one. Cancel safe.
    pub async fn lease(&self, way: &Way) -> Result<Lease, FetchError> {
        let idle = match way.belonging() {
            Belonging::Everybody => self.take_idle(&way.endpoint),
            Belonging::OneVisitor => None,
        };
        match idle {
            Some(sender) => Ok(Lease::new(way, sender, History::Reused)),
            None => self.connect(way).await,
        }
    }

    /// A new connection. Cancel safe.
    pub async fn connect(&self, way: &Way) -> Result<Lease, FetchError> {
        let dialled = timeout(self.connect_timeout, dial(way)).await;
        let sender = dialled.unwrap_or(Err(FetchError::ConnectTimeout))?;
        Ok(Lease::new(way, sender, History::Fresh))
    }

    /// Keeps the connection for the next request, where its source is ready for one.
    pub async fn give_back(self: &Arc<Self>, mut lease: Lease) {
        if lease.belonging == Belonging::OneVisitor {
            return;
        }
        if !matches!(timeout(READY_WAIT, lease.sender.ready()).await, Ok(Ok(()))) {
            return;
        }
        // Where the upstream was taken from the list meanwhile, nobody will ask for it again.
        if lease.claim.as_ref().is_some_and(Claim::is_obsolete) {
            return;
        }
        let mut shelf = lock(&self.shelf);
        let connections = shelf.idle.entry(lease.endpoint.clone()).or_default();
        connections.retain(|idle| !idle.sender.is_closed());
        if connections.len() >= self.idle_max {
            return;
        }
        let since = Instant::now();
        let sender = lease.sender;
        connections.push(Idle { sender, since });
        if !std::mem::replace(&mut shelf.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(self), since + self.idle_timeout));
        }
    }

    /// The connection that was used last: the likeliest to be alive.
    fn take_idle(&self, endpoint: &Endpoint) -> Option<SendRequest<Upload>> {
        let idle = &mut lock(&self.shelf).idle;
        let connections = idle.get_mut(endpoint)?;
        while let Some(connection) = connections.pop() {
            if connection.sender.is_ready() && connection.since.elapsed() < self.idle_timeout {
                return Some(connection.sender);
            }
        }
        idle.remove(endpoint);
        None
    }

    /// Closes the idle connections to these.
    pub fn close(&self, endpoints: &[Endpoint]) {
        let idle = &mut lock(&self.shelf).idle;
        idle.retain(|endpoint, _| !endpoints.contains(endpoint));
    }

    /// Closes what nobody used for too long. Says when the next will have come so far; where none
    /// is left, nobody watches any more.
    fn close_old(&self) -> Option<Instant> {
        let timeout = self.idle_timeout;
        let mut shelf = lock(&self.shelf);
        shelf.idle.retain(|_, connections| {
            connections.retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < timeout);
            !connections.is_empty()
        });
        let oldest = shelf.idle.values().flatten().map(|idle| idle.since).min();
        shelf.is_watched = oldest.is_some();
        oldest.map(|since| since + timeout)
    }
}

impl Lease {
    fn new(way: &Way, sender: SendRequest<Upload>, history: History) -> Self {
        Self {
            endpoint: way.endpoint.clone(),
            belonging: way.belonging(),
            sender,
            claim: None,
            history,
        }
    }

    /// A connection that serves one request and is not kept.
    pub const fn for_once(endpoint: Endpoint, sender: SendRequest<Upload>) -> Self {
        Self {
            endpoint,
            belonging: Belonging::OneVisitor,
            sender,
            claim: None,
            history: History::Fresh,
        }
    }

    /// Sends a request and waits for the head of its response.
    pub async fn send(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, Unanswered> {
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response),
            Err(mut failed) => Err(match failed.take_message() {
                Some(request) => Unanswered::Unsent(Box::new(request)),
                None => Unanswered::Failed(failed.into_error()),
            }),
        }
    }
}

/// Why a request has no response.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The connection was closed before anything was sent: here it is back.
    Unsent(Box<Request<Upload>>),
    /// The connection failed; perhaps the request had its effect.
    Failed(hyper::Error),
}

/// Closes idle connections when their time is over, from `next` on, until none is left.
async fn watch(pool: Weak<Pool>, mut next: Instant) {
    loop {
        tokio::time::sleep_until(next).await;
        match pool.upgrade().and_then(|pool| pool.close_old()) {
            Some(later) => next = later,
            None => return,
        }
    }
}
