//! Hands the access-log lines of an origin's visitors back to that origin, so that its statistics
//! stay whole although others carried its visitors (R8).
//!
//! Every ten seconds, each origin's lines go to its web address as one POST with the fetch key of the
//! rescue. It comes in over the origin's inbound link, which a crowd leaves idle, and costs its
//! outbound link one short answer. Lines that cannot be handed over are given up and counted: an
//! origin that is gone must not fill its helper's memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use levee_control::{OriginRoute, RoutePlan};
use levee_observe::AccessLog;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// Where an origin takes its lines.
pub const PATH: &str = "/.levee/access-log";
/// An answer costs the origin's link some 450 bytes; one in ten seconds is nothing even on 54 kB/s.
const PERIOD: Duration = Duration::from_secs(10);
/// The origin is overrun: it may take its time, but not for ever.
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// Largest body of one POST; the rest goes with the next.
const BODY_MAX: usize = 1 << 20;

/// Hands lines over until `plans` is closed.
///
/// Cancel safety: dropped half-way, the lines under way are lost.
pub async fn run(log: AccessLog, mut plans: watch::Receiver<Arc<RoutePlan>>) {
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        if plans.has_changed().is_err() {
            return;
        }
        let plan = Arc::clone(&plans.borrow_and_update());
        for alias in log.hand_over().aliases() {
            let Some(lines) = log.hand_over().take(&alias) else {
                continue;
            };
            let origin = plan
                .hosts
                .origins
                .iter()
                .find(|origin| origin.alias.as_str() == alias);
            let sent = match origin {
                Some(origin) => hand_over(origin, &lines.body).await,
                None => Err("its rescue is over".to_owned()),
            };
            if let Err(error) = sent {
                tracing::warn!(%alias, lines = lines.lines, %error, "log lines could not be handed over");
                log.note_lost(lines.lines);
            }
            log.note_lost(lines.left_out);
        }
    }
}

async fn hand_over(origin: &OriginRoute, body: &[u8]) -> Result<(), String> {
    let Some(key) = origin.key else {
        return Err("it gave no fetch key".into());
    };
    for part in parts(body) {
        match timeout(ANSWER_MAX, post(origin, &key.to_string(), part)).await {
            Ok(sent) => sent?,
            Err(_) => return Err(format!("no answer within {} s", ANSWER_MAX.as_secs())),
        }
    }
    Ok(())
}

/// Whole lines of at most [`BODY_MAX`] bytes each.
fn parts(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let end = match body.len() {
            0 => return None,
            length if length <= BODY_MAX => length,
            _ => body[..BODY_MAX]
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(BODY_MAX, |at| at + 1),
        };
        let (part, rest) = body.split_at(end);
        body = rest;
        Some(part)
    })
}

async fn post(origin: &OriginRoute, key: &str, body: &[u8]) -> Result<(), String> {
    let told = |error: &dyn std::error::Error| error.to_string();
    let stream = TcpStream::connect(origin.address)
        .await
        .map_err(|error| told(&error))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| told(&error))?;
    let request = http::Request::post(PATH)
        .header("host", origin.origin.to_string())
        .header("levee-fetch", key)
        .header("content-type", "application/x-ndjson")
        .header("connection", "close")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .map_err(|error| told(&error))?;
    let answer = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| told(&error))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answers {status}")),
        }
    };
    tokio::select! {
        answer = answer => answer,
        _ = connection => Err("it closed the connection".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_cut_between_lines() {
        let line = [b'x'; 999];
        let mut body = Vec::new();
        for _ in 0..2500 {
            body.extend_from_slice(&line);
            body.push(b'\n');
        }
        let cut: Vec<_> = parts(&body).collect();
        assert_eq!(cut.concat(), body);
        assert_eq!(cut.len(), 3);
        assert!(
            cut.iter()
                .all(|part| part.len() <= BODY_MAX && part.ends_with(b"\n"))
        );
    }
}
