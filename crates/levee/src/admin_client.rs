//! Asks a running server's admin address for its figures: behind `levee status` and `levee top`.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::Full;
use levee_observe::Status;
use tokio::time::timeout;

use crate::exchange::exchange;

/// The admin address is local or near: who does not answer by then is not there.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// A status with every list full is some 100 kB.
const BYTES_MAX: usize = 4 << 20;

/// The JSON text of `GET /status.json`.
///
/// # Errors
/// A sentence that names the address and the way out.
///
/// Cancel safety: dropping it closes the connection, nothing else.
pub async fn status_text(admin: SocketAddr) -> Result<String, String> {
    match timeout(ANSWER_MAX, ask(admin)).await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(format!(
            "no levee answers at {admin}: {error}; give its admin address with --admin or -c FILE"
        )),
        Err(_) => Err(format!(
            "{admin} does not answer within {} s",
            ANSWER_MAX.as_secs()
        )),
    }
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

async fn ask(admin: SocketAddr) -> Result<String, String> {
    let request = http::Request::get("/status.json")
        .header("host", admin.to_string())
        .body(Full::default())
        .map_err(|error| error.to_string())?;
    let body = exchange(admin, request, BYTES_MAX).await?;
    String::from_utf8(body.into()).map_err(|error| error.to_string())
}
