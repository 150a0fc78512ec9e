//! Hands the access-log lines of an origin's visitors back to that origin, so that its statistics
//! stay whole although others carried its visitors (R8).
//!
//! Every ten seconds, each origin's lines go to its web address as one POST with the fetch key of
//! the rescue. It comes in over the origin's inbound link, which a crowd leaves idle, and costs its
//! outbound link one short answer. Lines that cannot be handed over are given up and counted: an
//! origin that is gone must not fill its helper's memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use levee_control::{HostTable, OriginRoute, RoutePlan};
use levee_observe::AccessLog;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::exchange::exchange;

/// Where an origin takes its lines.
pub const PATH: &str = "/.levee/access-log";
/// An answer costs the origin's link some 450 bytes; one in ten seconds is nothing even on 54 kB/s.
const PERIOD: Duration = Duration::from_secs(10);
/// The origin is overrun: it may take its time, but not for ever.
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// The answer has no body.
const ANSWER_BYTES_MAX: usize = 1024;
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
        for host in log.hand_over().aliases() {
            let Some(lines) = log.hand_over().take(&host) else {
                continue;
            };
            let sent = match origin_of(&host, &plan.hosts) {
                Some(origin) => hand_over(origin, &lines.body).await,
                None => Err("its rescue is over".to_owned()),
            };
            if let Err(error) = sent {
                tracing::warn!(%host, lines = lines.lines, %error, "log lines could not be handed over");
                log.note_lost(lines.lines);
            }
            log.note_lost(lines.left_out);
        }
    }
}

/// Whose visitors asked for `host`: an alias that we gave out, or an origin's own name, under which
/// its visitors come while DNS leads some of them to us.
fn origin_of<'a>(host: &str, hosts: &'a HostTable) -> Option<&'a OriginRoute> {
    let is_asked_for = |origin: &&Arc<OriginRoute>| {
        origin.alias.as_str() == host || origin.origin.host.as_str() == host
    };
    // Numbers of aliases ascend: of two rescues of one origin, the newer has the key that counts.
    hosts
        .origins
        .iter()
        .rev()
        .find(is_asked_for)
        .map(|origin| &**origin)
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
    let request = http::Request::post(PATH)
        .header("host", origin.origin.to_string())
        .header("levee-fetch", key)
        .header("content-type", "application/x-ndjson")
        .header("connection", "close")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .map_err(|error| error.to_string())?;
    exchange(origin.address, request, ANSWER_BYTES_MAX)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use levee_control::OriginPhase;
    use levee_vocab::{LinkId, Misses, Timestamp, WebAddress};

    use super::*;

    fn origin(number: u64, name: &str, phase: OriginPhase) -> Arc<OriginRoute> {
        Arc::new(OriginRoute {
            tls: None,
            slot: 1,
            link: LinkId::Inbound(number),
            origin: WebAddress {
                host: name.parse().unwrap(),
                port: 80,
            },
            address: ([127, 0, 0, 1], 80).into(),
            alias: format!("www-vh{number}.aliases.example").parse().unwrap(),
            key: None,
            ttl: Duration::from_secs(60),
            homes: None,
            misses: Misses::Fetch,
            phase,
        })
    }

    #[test]
    fn lines_go_to_the_origin_whose_visitors_they_are() {
        let until = Timestamp::ZERO;
        let hosts = HostTable {
            origins: vec![
                origin(1, "a.example", OriginPhase::Expired { until }),
                origin(2, "b.example", OriginPhase::Ending { until }),
                origin(3, "a.example", OriginPhase::Live),
            ],
            ..HostTable::default()
        };
        let link = |host: &str| origin_of(host, &hosts).map(|origin| origin.link);
        assert_eq!(link("www-vh1.aliases.example"), Some(LinkId::Inbound(1)));
        assert_eq!(link("www-vh3.aliases.example"), Some(LinkId::Inbound(3)));
        assert_eq!(link("a.example"), Some(LinkId::Inbound(3)), "the newer one");
        assert_eq!(link("b.example"), Some(LinkId::Inbound(2)));
        assert_eq!(link("c.example"), None);
    }

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
