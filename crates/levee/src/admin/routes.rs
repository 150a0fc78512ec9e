//! What the admin address answers to which path.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use levee_observe as observe;
use levee_vocab::{Purge, PurgeKind};
use percent_encoding::percent_decode_str;

use super::guard::Refusal;
use super::{StatusSource, drill, expelled};

/// An answer, whole.
pub(crate) type Answer = Response<Full<Bytes>>;

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// Nothing but what this server itself sends may be loaded or run, so even a hole in the escaping
/// would let no stranger's script in.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

const READ: [Method; 2] = [Method::GET, Method::HEAD];

/// Answers one request that the guard has let through.
///
/// Cancel safety: a reload that has begun goes on without the one who asked.
pub(super) async fn answer<B>(request: &Request<B>, source: Arc<dyn StatusSource>) -> Answer {
    let path = request.uri().path();
    match (path, request.method()) {
        ("/-/reload", &Method::POST) => reload(source).await,
        ("/-/reload", _) => method_not_allowed("POST"),
        ("/-/purge", &Method::POST) => purge(request.uri().query(), source).await,
        ("/-/purge", _) => method_not_allowed("POST"),
        ("/-/drill", &Method::POST) => drill::begin(request.uri().query(), source).await,
        ("/-/drill/stop", &Method::POST) => drill::stop(request.uri().query(), &*source),
        ("/-/forgive", &Method::POST) => expelled::forgive(request.uri().query(), source).await,
        ("/-/drill" | "/-/drill/stop" | "/-/forgive", _) => method_not_allowed("POST"),
        (path, method) if READ.contains(method) => read(path, request.uri().query(), &*source),
        (_, _) => method_not_allowed("GET, HEAD"),
    }
}

/// The answer to a request that the guard has not let through.
pub(super) fn refuse(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::ForeignHost => whole(
            StatusCode::MISDIRECTED_REQUEST,
            TEXT,
            "This name may be a stranger's. Ask for this server by its address or as localhost, \
             or put the name into the setting admin.names.\n",
        ),
        Refusal::ForeignOrigin => whole(
            StatusCode::FORBIDDEN,
            TEXT,
            "This request was sent by another site's page.\n",
        ),
    }
}

fn read(path: &str, query: Option<&str>, source: &dyn StatusSource) -> Answer {
    if let Some(asset) = observe::asset(path) {
        let mut answer = whole(StatusCode::OK, asset.content_type, asset.body);
        // Short, so that a new version of this server is seen soon.
        let keep = HeaderValue::from_static("max-age=60");
        answer.headers_mut().insert(header::CACHE_CONTROL, keep);
        return answer;
    }
    let ok = StatusCode::OK;
    let status = source.status();
    match path {
        "/" => whole(ok, HTML, observe::render_page(&status)),
        "/dashboard" => whole(ok, HTML, observe::DASHBOARD_HTML),
        "/status.json" => whole(ok, JSON, status.to_json()),
        "/drill.json" => drill::account(source),
        "/history.json" => whole(ok, JSON, source.history().to_json()),
        "/metrics" => whole(
            ok,
            observe::METRICS_CONTENT_TYPE,
            observe::render_metrics(&status),
        ),
        "/dotslash-status" => match query {
            Some("auto") => whole(ok, TEXT, observe::render_auto(&status)),
            Some(_) | None => whole(ok, HTML, observe::render_auto_page(&status)),
        },
        "/-/healthy" if status.lost_cores > 0 => {
            let sentence = "a thread that answers visitors has died; restart the server\n";
            whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, sentence)
        }
        "/-/healthy" => whole(ok, TEXT, "healthy\n"),
        "/-/ready" if status.ready => whole(ok, TEXT, "ready\n"),
        "/-/ready" => whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, "not ready\n"),
        _ => whole(
            StatusCode::NOT_FOUND,
            TEXT,
            "Nothing is here. See / and /dashboard.\n",
        ),
    }
}

async fn reload(source: Arc<dyn StatusSource>) -> Answer {
    let done = tokio::task::spawn_blocking(move || source.reload()).await;
    match done {
        Ok(Ok(sentence)) => whole(StatusCode::OK, TEXT, sentence + "\n"),
        Ok(Err(complaint)) => whole(StatusCode::UNPROCESSABLE_ENTITY, TEXT, complaint + "\n"),
        Err(error) => {
            tracing::error!(%error, "reloading the settings broke off");
            let sentence = "reloading broke off; the old settings stay, see the log\n";
            whole(StatusCode::INTERNAL_SERVER_ERROR, TEXT, sentence)
        }
    }
}

/// `?url=/news`, or `?key=a&key=b`, and `&soft=1`.
async fn purge(query: Option<&str>, source: Arc<dyn StatusSource>) -> Answer {
    let purge = match purge_of(query.unwrap_or_default()) {
        Ok(purge) => purge,
        Err(complaint) => return whole(StatusCode::BAD_REQUEST, TEXT, complaint + "\n"),
    };
    // As a task of its own: it ends well although whoever asked leaves.
    match tokio::spawn(source.purge(purge)).await {
        Ok(report) if report.unconfirmed == 0 => whole(StatusCode::OK, JSON, report.json() + "\n"),
        Ok(report) => whole(StatusCode::ACCEPTED, JSON, report.json() + "\n"),
        Err(error) => {
            tracing::error!(%error, "a purge broke off");
            let sentence = "the purge broke off; see the log\n";
            whole(StatusCode::INTERNAL_SERVER_ERROR, TEXT, sentence)
        }
    }
}

fn purge_of(query: &str) -> Result<Purge, String> {
    let (mut url, mut keys, mut kind) = (None, String::new(), PurgeKind::Hard);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| format!("`{name}` is not text"))?;
        match name {
            "url" => url = Some(value.into_owned()),
            "key" => {
                keys.push_str(&value);
                keys.push(' ');
            }
            "soft" if value == "1" => kind = PurgeKind::Soft,
            "soft" if value == "0" => kind = PurgeKind::Hard,
            _ => return Err(format!("`{pair}` is none of url=, key= and soft=1")),
        }
    }
    let purge = match (url, keys.is_empty()) {
        (Some(url), true) => Purge::url(&url, kind),
        (None, false) => Purge::tags(&keys, kind),
        (_, _) => return Err("give url=/path, or key=word once or more".to_owned()),
    };
    purge.map_err(|error| error.to_string())
}

fn method_not_allowed(allowed: &'static str) -> Answer {
    let mut answer = whole(
        StatusCode::METHOD_NOT_ALLOWED,
        TEXT,
        "not with this method\n",
    );
    let allowed = HeaderValue::from_static(allowed);
    answer.headers_mut().insert(header::ALLOW, allowed);
    answer
}

pub(crate) fn whole(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
