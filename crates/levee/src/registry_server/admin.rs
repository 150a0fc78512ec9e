//! The admin address of a registry: its status as JSON, for its operator.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::StatusDesk;
use crate::admin::is_asked_by_us;

/// Answers on `listener` for ever.
///
/// Cancel safety: when dropped, the listener closes and every connection ends at once.
pub async fn serve_status(listener: TcpListener, desk: StatusDesk) {
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(failure) => {
                warn!(%failure, "the admin address cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS_MAX {
            continue;
        }
        let desk = desk.clone();
        let service = service_fn(move |request| {
            let desk = desk.clone();
            async move { Ok::<_, Infallible>(answer(&request, &desk).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(CONNECTION_TIME)
            .serve_connection(TokioIo::new(stream), service);
        connections.spawn(async {
            match timeout(CONNECTION_TIME, connection).await {
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(failure)) => debug!(%failure, "an admin connection ended badly"),
            }
        });
    }
}

async fn answer<B>(request: &Request<B>, desk: &StatusDesk) -> Response<Full<Bytes>> {
    if !is_asked_by_us(request) {
        let text = "Ask for this registry by its address or as localhost.\n";
        return plain(StatusCode::MISDIRECTED_REQUEST, text);
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/" | "/status.json") => {}
        (&Method::GET, _) => return plain(StatusCode::NOT_FOUND, "Here is only /status.json.\n"),
        (_, _) => return plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET is understood.\n"),
    }
    let Some(status) = desk.status().await else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "The registry stops.\n");
    };
    let mut text = serde_json::to_string_pretty(&status)
        .expect("a status is made of texts, numbers, lists and maps of them");
    text.push('\n');
    let mut response = Response::new(Full::new(text.into()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}

/// An operator, and what collects figures.
const CONNECTIONS_MAX: usize = 16;
const CONNECTION_TIME: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
