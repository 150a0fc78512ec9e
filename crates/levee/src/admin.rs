//! The admin address: status page, dashboard, metrics and reload, on a listener of its own.
//!
//! It must answer in the middle of the flood, so it shares nothing with the visitors' side but the
//! last status: its own listener, its own connection limit, its own deadlines. Slow or idle clients
//! lose their connection to newer ones, so that nobody can keep an operator out by holding on.
//! What is answered is in `admin/routes.rs`, who may ask in `admin/guard.rs`.

mod drill;
mod expelled;
mod guard;
mod routes;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use levee_observe::{History, Status};
use levee_vocab::{HostName, Purge};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

pub(crate) use routes::{Answer, HTML, JSON, TEXT, whole};

use crate::drill::DrillDesk;
use crate::purge_report::PurgeReport;

/// A purge under way; it goes on where this is dropped.
pub type Reporting = Pin<Box<dyn Future<Output = PurgeReport> + Send>>;

/// What the admin server needs of the server whose face it is.
pub trait StatusSource: Send + Sync {
    /// The newest status.
    fn status(&self) -> Arc<Status>;

    /// The last three minutes.
    fn history(&self) -> History;

    /// Rehearsals of a rescue.
    fn drills(&self) -> &dyn DrillDesk;

    /// Removes objects here and at our rescue servers.
    fn purge(&self, purge: Purge) -> Reporting;

    /// Takes a member off the list of the expelled; says so in a sentence, or why not. Blocks for
    /// the disk for a moment.
    fn forgive(&self, member: &HostName) -> Result<String, String> {
        Err(format!("{member} is not expelled"))
    }

    /// Reads the settings anew and puts them in force; says in a sentence what was done, or what is
    /// wrong with them. May take its time: it runs on a thread for such work.
    fn reload(&self) -> Result<String, String>;
}

/// Limits of the admin server, and the names under which it may be asked.
#[derive(Clone, Debug)]
pub struct AdminLimits {
    /// Names for the Host header beside `localhost` and addresses. A request under another name is
    /// refused, because a stranger's page can point a name of its own at this machine.
    pub hosts: Vec<String>,
    /// Most connections at once; one more ends the oldest.
    pub connections_max: usize,
    /// Time that a client may take to send the head of a request, and to be idle between two.
    pub head_time: Duration,
    /// Time after which a connection ends, whatever it does: a client that reads slowly goes then.
    pub connection_time: Duration,
}

impl Default for AdminLimits {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            // A few people with a browser each, and what collects metrics.
            connections_max: 64,
            head_time: Duration::from_secs(10),
            connection_time: Duration::from_secs(300),
        }
    }
}

/// Answers on `listener` for ever.
///
/// Cancel safety: when dropped, the listener closes and every connection ends at once.
pub async fn serve(listener: TcpListener, source: Arc<dyn StatusSource>, limits: AdminLimits) {
    let limits = Arc::new(limits);
    let mut connections = JoinSet::new();
    let mut oldest_first: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Most likely out of file descriptors. A short pause lets some be closed.
                tracing::warn!(%error, "the admin address cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        oldest_first.retain(|connection| !connection.is_finished());
        while oldest_first.len() >= limits.connections_max.max(1) {
            if let Some(oldest) = oldest_first.pop_front() {
                oldest.abort();
            }
        }
        let connection = converse(stream, Arc::clone(&source), Arc::clone(&limits));
        oldest_first.push_back(connections.spawn(connection));
    }
}

/// Whether `request` may be answered by an admin address that has no names of its own.
pub(crate) fn is_asked_by_us<B>(request: &hyper::Request<B>) -> bool {
    guard::check(request, &[]).is_ok()
}

async fn converse(stream: TcpStream, source: Arc<dyn StatusSource>, limits: Arc<AdminLimits>) {
    let service = service_fn(|request| {
        let (source, limits) = (Arc::clone(&source), Arc::clone(&limits));
        async move {
            let answer = match guard::check(&request, &limits.hosts) {
                Ok(()) => routes::answer(&request, source).await,
                Err(refusal) => routes::refuse(refusal),
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(limits.connection_time, connection).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!(%error, "an admin connection ended badly"),
    }
}
