//! Drills at the admin address: begin, look on, stop.
//!
//! `POST /-/drill?seconds=60&rate=20` gives the key of the drill, `GET /drill.json` tells how it
//! goes, `POST /-/drill/stop` ends it. The key is in no other answer. What goes on is told outside
//! of `/-/`, whose answers strangers' pages may read.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use levee_control::DrillStop;

use super::StatusSource;
use super::routes::{Answer, JSON, TEXT, whole};

/// Begins a drill.
pub(super) async fn begin(query: Option<&str>, source: Arc<dyn StatusSource>) -> Answer {
    let (length, rate) = match wanted(query.unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err(complaint) => return whole(StatusCode::BAD_REQUEST, TEXT, complaint + "\n"),
    };
    match source.drills().begin(length, rate).await {
        Ok(invitation) => {
            let text = serde_json::to_string(&invitation).unwrap_or_default();
            whole(StatusCode::OK, JSON, text + "\n")
        }
        Err(complaint) => whole(StatusCode::CONFLICT, TEXT, complaint + "\n"),
    }
}

/// How the last drill goes or went.
pub(super) fn account(source: &dyn StatusSource) -> Answer {
    let text = serde_json::to_string(&source.drills().account()).unwrap_or_default();
    whole(StatusCode::OK, JSON, text + "\n")
}

/// Ends a drill; `by=client` is the command that makes its visits.
pub(super) fn stop(query: Option<&str>, source: &dyn StatusSource) -> Answer {
    let stop = match query {
        Some("by=client") => DrillStop::Client,
        Some(_) | None => DrillStop::Operator,
    };
    match source.drills().stop(stop) {
        Ok(sentence) => whole(StatusCode::OK, TEXT, sentence + "\n"),
        Err(complaint) => whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, complaint + "\n"),
    }
}

fn wanted(query: &str) -> Result<(Duration, u32), String> {
    let (mut seconds, mut rate) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("seconds", number)) => seconds = number.parse().ok(),
            Some(("rate", number)) => rate = number.parse().ok(),
            Some(_) | None => return Err(format!("`{pair}` is none of seconds= and rate=")),
        }
    }
    match (seconds, rate) {
        (Some(seconds), Some(rate)) => Ok((Duration::from_secs(seconds), rate)),
        (_, _) => Err("give seconds=60 and rate=20, in whole numbers".to_owned()),
    }
}
