//! Asks a running server's admin address for its figures: behind `levee status` and `levee top`.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::Full;
use levee_observe::Status;
use levee_vocab::{HostName, Purge, PurgeKind, PurgeScope};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::timeout;

use crate::drill::{Account, Invitation};
use crate::exchange::{ask, exchange};
use crate::purge_report::PurgeReport;

/// The admin address is local or near: who does not answer by then is not there.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// It waits two seconds for its rescue servers, after its own cache.
const PURGE_MAX: Duration = Duration::from_secs(30);
/// Reading the settings looks up names and reads certificates.
const RELOAD_MAX: Duration = Duration::from_secs(30);
/// A status with every list full is some 100 kB.
const BYTES_MAX: usize = 4 << 20;

/// The JSON text of `GET /status.json`.
///
/// # Errors
/// A sentence that names the address and the way out.
///
/// Cancel safety: dropping it closes the connection, nothing else.
pub async fn status_text(admin: SocketAddr) -> Result<String, String> {
    let body = timeout(ANSWER_MAX, get(admin, "/status.json")).await;
    body.map_err(|_| late(admin, ANSWER_MAX))?
        .map_err(|error| absent(admin, &error))
}

/// Lets the server read its settings again; gives the sentence that it answers with.
///
/// # Errors
/// What was wrong with the settings, or a sentence as [`status_text`] has it.
///
/// Cancel safety: dropped half-way, the settings may have been read or not.
pub async fn reload(admin: SocketAddr) -> Result<String, String> {
    let request = http::Request::post("/-/reload").header("host", admin.to_string());
    let request = request.body(Full::default());
    let request = request.map_err(|error| error.to_string())?;
    let answer = timeout(RELOAD_MAX, ask(admin, request, BYTES_MAX)).await;
    let (status, body) = answer
        .map_err(|_| late(admin, RELOAD_MAX))?
        .map_err(|error| absent(admin, &error))?;
    let text = String::from_utf8_lossy(&body).into_owned();
    match status.is_success() {
        true => Ok(text),
        false => Err(text.trim_end().to_owned()),
    }
}

/// Has the server forgive a member that it has expelled; gives the sentence that it answers with.
///
/// # Errors
/// When the member is not expelled, or a sentence as [`status_text`] has it.
///
/// Cancel safety: dropped half-way, the member may be forgiven or not.
pub async fn forgive(admin: SocketAddr, member: &HostName) -> Result<String, String> {
    post(admin, &format!("/-/forgive?member={member}")).await
}

/// Has the server purge; gives what became of it.
///
/// # Errors
/// As [`reload`].
///
/// Cancel safety: dropped half-way, the purge goes on where it has begun.
pub async fn purge(admin: SocketAddr, purge: &Purge) -> Result<PurgeReport, String> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut query = match &purge.scope {
        PurgeScope::Url(target) => format!("url={}", encoded(target.as_str())),
        PurgeScope::Tags(tags) => {
            let keys = tags
                .iter()
                .map(|tag| format!("key={}", encoded(tag.as_str())));
            keys.collect::<Vec<_>>().join("&")
        }
        PurgeScope::All => String::new(),
    };
    if purge.kind == PurgeKind::Soft {
        query.push_str("&soft=1");
    }
    let request = http::Request::post(format!("/-/purge?{query}"));
    let request = request
        .header("host", admin.to_string())
        .body(Full::default());
    let request = request.map_err(|error| error.to_string())?;
    let answer = timeout(PURGE_MAX, ask(admin, request, BYTES_MAX)).await;
    let (status, body) = answer
        .map_err(|_| late(admin, PURGE_MAX))?
        .map_err(|error| absent(admin, &error))?;
    match status.is_success() {
        true => serde_json::from_slice(&body)
            .map_err(|error| format!("{admin} is not a levee: {error}")),
        false => Err(String::from_utf8_lossy(&body).trim_end().to_owned()),
    }
}

/// Begins a drill; gives what its visitors need to know.
///
/// # Errors
/// Why the server does not, or a sentence as [`status_text`] has it.
///
/// Cancel safety: dropped half-way, a drill that has begun ends by itself.
pub async fn begin_drill(
    admin: SocketAddr,
    length: Duration,
    rate: u32,
) -> Result<Invitation, String> {
    let seconds = length.as_secs();
    let body = post(admin, &format!("/-/drill?seconds={seconds}&rate={rate}")).await?;
    serde_json::from_str(&body).map_err(|error| format!("{admin} is not a levee: {error}"))
}

/// Ends a drill; `query` says who does.
///
/// # Errors
/// As [`begin_drill`].
///
/// Cancel safety: dropped half-way, it may be over or not.
pub async fn stop_drill(admin: SocketAddr, query: &str) -> Result<String, String> {
    post(admin, &format!("/-/drill/stop?{query}")).await
}

/// How the last drill goes or went.
///
/// # Errors
/// As [`status`].
///
/// Cancel safety: as [`status_text`].
pub async fn drill_account(admin: SocketAddr) -> Result<Account, String> {
    let body = timeout(ANSWER_MAX, get(admin, "/drill.json")).await;
    let text = body
        .map_err(|_| late(admin, ANSWER_MAX))?
        .map_err(|error| absent(admin, &error))?;
    serde_json::from_str(&text).map_err(|error| format!("{admin} is not a levee: {error}"))
}

async fn post(admin: SocketAddr, target: &str) -> Result<String, String> {
    let request = http::Request::post(target).header("host", admin.to_string());
    let request = request.body(Full::default());
    let request = request.map_err(|error| error.to_string())?;
    let answer = timeout(ANSWER_MAX, ask(admin, request, BYTES_MAX)).await;
    let (status, body) = answer
        .map_err(|_| late(admin, ANSWER_MAX))?
        .map_err(|error| absent(admin, &error))?;
    let text = String::from_utf8_lossy(&body).trim_end().to_owned();
    match status.is_success() {
        true => Ok(text),
        false => Err(text),
    }
}

fn absent(admin: SocketAddr, error: &str) -> String {
    format!("no levee answers at {admin}: {error}; give its admin address with --admin or -c FILE")
}

fn late(admin: SocketAddr, limit: Duration) -> String {
    format!("{admin} does not answer within {} s", limit.as_secs())
}

/// The figures of a running server.
///
/// # Errors
/// As [`status_text`], or when the answer is not ours.
///
/// Cancel safety: as [`status_text`].
pub async fn status(admin: SocketAddr) -> Result<Status, String> {
    let text = status_text(admin).await?;
    serde_json::from_str(&text).map_err(|error| format!("{admin} is not a levee: {error}"))
}

async fn get(admin: SocketAddr, target: &str) -> Result<String, String> {
    let request = http::Request::get(target)
        .header("host", admin.to_string())
        .body(Full::default())
        .map_err(|error| error.to_string())?;
    let body = exchange(admin, request, BYTES_MAX).await?;
    String::from_utf8(body.into()).map_err(|error| error.to_string())
}
