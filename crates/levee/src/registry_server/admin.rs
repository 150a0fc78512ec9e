//! The admin address of a registry, for its operator: a page, its figures as JSON, and metrics.

use std::convert::Infallible;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use levee_observe::{self as observe, MeshStatus};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::StatusDesk;
use crate::admin::{Answer, HTML, JSON, TEXT, is_asked_by_us, whole};

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

async fn answer<B>(request: &Request<B>, desk: &StatusDesk) -> Answer {
    if !is_asked_by_us(request) {
        let text = "Ask for this registry by its address or as localhost.\n";
        return whole(StatusCode::MISDIRECTED_REQUEST, TEXT, text);
    }
    if request.method() != Method::GET {
        let text = "Only GET is understood.\n";
        return whole(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
    }
    let path = request.uri().path();
    if let Some(asset) = observe::asset(path) {
        return whole(StatusCode::OK, asset.content_type, asset.body);
    }
    let Some(status) = desk.status().await else {
        let text = "The registry stops.\n";
        return whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, text);
    };
    let ok = StatusCode::OK;
    match path {
        "/" => whole(ok, HTML, observe::render_registry_page(&status)),
        "/status.json" => whole(ok, JSON, json(&status)),
        "/metrics" => {
            let metrics = observe::render_registry_metrics(&status);
            whole(ok, observe::METRICS_CONTENT_TYPE, metrics)
        }
        _ => {
            let text = "Here are only /, /status.json and /metrics.\n";
            whole(StatusCode::NOT_FOUND, TEXT, text)
        }
    }
}

fn json(status: &MeshStatus) -> String {
    let mut text = serde_json::to_string_pretty(status)
        .expect("a status is made of texts, numbers, lists and maps of them");
    text.push('\n');
    text
}

/// An operator, and what collects figures.
const CONNECTIONS_MAX: usize = 16;
const CONNECTION_TIME: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
