//! Connections to sources, kept for the next request to the same address.
//!
//! hyper speaks HTTP on each of them; which connection a request gets is ours to decide, because a
//! request that failed on a reused connection must be repeated on a fresh one and nowhere else.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::request::Upload;
use crate::flight::{FetchError, lock};

/// How long a source may take to be ready for another request after the end of a response. It needs
/// no time for that; a connection that is not ready has a problem.
const READY_WAIT: Duration = Duration::from_secs(1);

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Pool {
    connect_timeout: Duration,
    idle_timeout: Duration,
    idle_max: usize,
    idle: Mutex<HashMap<SocketAddr, Vec<Idle>>>,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Upload>,
    since: Instant,
}

/// A connection in use. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Lease {
    address: SocketAddr,
    sender: SendRequest<Upload>,
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
            idle: Mutex::new(HashMap::new()),
        })
    }

    /// An idle connection, or a new one.
    pub async fn lease(&self, address: SocketAddr) -> Result<Lease, FetchError> {
        match self.take_idle(address) {
            Some(sender) => Ok(Lease {
                address,
                sender,
                history: History::Reused,
            }),
            None => self.connect(address).await,
        }
    }

    /// A new connection. Cancel safe.
    pub async fn connect(&self, address: SocketAddr) -> Result<Lease, FetchError> {
        let connecting = async {
            let stream = TcpStream::connect(address).await.map_err(|error| {
                tracing::debug!("cannot connect to {address}: {error}");
                connect_error(&error)
            })?;
            stream
                .set_nodelay(true)
                .map_err(|_| FetchError::ConnectFailed)?;
            let (sender, connection) = Builder::new()
                .handshake(TokioIo::new(stream))
                .await
                .map_err(|_| FetchError::ConnectFailed)?;
            tokio::spawn(async move {
                // Whoever waits for a response on it is told of the error as well.
                if let Err(error) = connection.with_upgrades().await {
                    tracing::trace!("connection to {address} ended: {error}");
                }
            });
            Ok(Lease {
                address,
                sender,
                history: History::Fresh,
            })
        };
        timeout(self.connect_timeout, connecting)
            .await
            .unwrap_or(Err(FetchError::ConnectTimeout))
    }

    /// Keeps the connection for the next request, where its source is ready for one.
    pub async fn give_back(self: &Arc<Self>, mut lease: Lease) {
        if !matches!(timeout(READY_WAIT, lease.sender.ready()).await, Ok(Ok(()))) {
            return;
        }
        let mut idle = lock(&self.idle);
        let connections = idle.entry(lease.address).or_default();
        connections.retain(|idle| !idle.sender.is_closed());
        if connections.len() < self.idle_max {
            connections.push(Idle {
                sender: lease.sender,
                since: Instant::now(),
            });
            tokio::spawn(close_later(Arc::downgrade(self), self.idle_timeout));
        }
    }

    /// The connection that was used last: the likeliest to be alive.
    fn take_idle(&self, address: SocketAddr) -> Option<SendRequest<Upload>> {
        let mut idle = lock(&self.idle);
        let connections = idle.get_mut(&address)?;
        while let Some(connection) = connections.pop() {
            if connection.sender.is_ready() && connection.since.elapsed() < self.idle_timeout {
                return Some(connection.sender);
            }
        }
        idle.remove(&address);
        None
    }

    fn close_old(&self) {
        let timeout = self.idle_timeout;
        lock(&self.idle).retain(|_, connections| {
            connections.retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < timeout);
            !connections.is_empty()
        });
    }
}

impl Lease {
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

/// Why there is no connection.
fn connect_error(error: &io::Error) -> FetchError {
    use std::io::ErrorKind;
    // Most kinds of errors, now and to come, say that there is no way.
    if matches!(error.kind(), ErrorKind::ConnectionRefused) {
        FetchError::ConnectRefused
    } else if matches!(error.kind(), ErrorKind::TimedOut) {
        FetchError::ConnectTimeout
    } else {
        FetchError::ConnectFailed
    }
}

async fn close_later(pool: Weak<Pool>, after: Duration) {
    tokio::time::sleep(after).await;
    if let Some(pool) = pool.upgrade() {
        pool.close_old();
    }
}
