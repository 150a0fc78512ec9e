//! Hands the access-log lines of an origin's visitors back to that origin, so that its statistics
//! stay whole although others carried its visitors (R8).
//!
//! Every ten seconds, each origin's lines go to its web address as one POST with the fetch key of
//! the rescue. It comes in over the origin's inbound link, which a crowd leaves idle, and costs its
//! outbound link one short answer. All origins are asked at once: one that is slow holds up no
//! other.
//!
//! An origin that is away, or was restarted and knows the key no more, takes its lines when it has
//! called for help again: with the key of that call. They wait for an hour and are bounded in bytes
//! (`levee_observe::HandOver`); then, or where nobody knows whether they were taken, they are given
//! up and counted. An origin that is gone must not fill its helper's memory, and no line is to be
//! in its log twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use levee_control::{HostTable, OriginPhase, OriginRoute, RoutePlan};
use levee_observe::{AccessLog, HandOverLines};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::exchange::ask_on;

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
/// Lines of an origin that does not come back are given up after this.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Hands lines over until `plans` is closed.
///
/// Cancel safety: dropped half-way, the lines under way are lost.
pub async fn run(log: AccessLog, mut plans: watch::Receiver<Arc<RoutePlan>>) {
    let mut ticks = tokio::time::interval(PERIOD);
    let mut waits = Waits::default();
    loop {
        ticks.tick().await;
        if plans.has_changed().is_err() {
            return;
        }
        let plan = Arc::clone(&plans.borrow_and_update());
        waits.hand_over_all(&log, &plan.hosts).await;
    }
}

/// Whose lines wait for their origin to come back, by alias, and since when.
#[derive(Debug, Default)]
struct Waits(BTreeMap<String, Instant>);

/// Why lines were not handed over.
#[derive(Debug)]
enum Failure {
    /// They were not taken.
    NotTaken(String),
    /// They may have been taken.
    Unknown(String),
}

impl Waits {
    async fn hand_over_all(&mut self, log: &AccessLog, hosts: &HostTable) {
        let aliases = log.hand_over().aliases();
        self.0.retain(|alias, _| aliases.contains(alias));
        let mut asking = JoinSet::new();
        for alias in aliases {
            let way = way_of(&alias, hosts);
            let is_live = way.is_some_and(|origin| origin.phase == OriginPhase::Live);
            let since = self.0.get(&alias).copied();
            let is_old = since.is_some_and(|since| since.elapsed() > WAIT_MAX);
            if since.is_some() && !is_live && !is_old {
                continue;
            }
            let Some(mut lines) = log.hand_over().take(&alias) else {
                continue;
            };
            let Some(origin) = way.filter(|_| !is_old).map(Arc::clone) else {
                tracing::warn!(%alias, lines = lines.lines, "log lines are given up: their origin is gone");
                self.0.remove(&alias);
                log.note_lost(lines.lines);
                continue;
            };
            asking.spawn(async move {
                let outcome = hand_over(&origin, &mut lines).await;
                (alias, lines, outcome)
            });
        }
        while let Some(Ok((alias, lines, outcome))) = asking.join_next().await {
            self.conclude(log, (alias, lines), outcome);
        }
    }

    fn conclude(
        &mut self,
        log: &AccessLog,
        (alias, lines): (String, HandOverLines),
        outcome: Result<(), Failure>,
    ) {
        match outcome {
            Ok(()) => {
                self.0.remove(&alias);
            }
            Err(Failure::NotTaken(error)) => {
                if !self.0.contains_key(&alias) {
                    tracing::warn!(%alias, lines = lines.lines, %error, "log lines wait for their origin");
                }
                self.0.entry(alias.clone()).or_insert_with(Instant::now);
                log.hand_over().give_back(&alias, lines);
            }
            Err(Failure::Unknown(error)) => {
                tracing::warn!(%alias, lines = lines.lines, %error, "log lines may be lost");
                // Those that came meanwhile have waited for nobody yet.
                self.0.remove(&alias);
                log.note_lost(lines.lines);
            }
        }
    }
}

/// Where the lines of `alias` go, and with which key: to its origin, which may have called for help
/// again since. Whoever merely has its name gets nothing.
fn way_of<'a>(alias: &str, hosts: &'a HostTable) -> Option<&'a Arc<OriginRoute>> {
    let own = origin_of(alias, hosts)?;
    let is_same = |other: &Arc<OriginRoute>| {
        other.origin.host == own.origin.host && other.address.ip() == own.address.ip()
    };
    let mut newest = hosts.origins.iter().rev();
    let again = newest.find(|other| other.phase == OriginPhase::Live && is_same(other));
    Some(again.unwrap_or(own))
}

/// Whose visitors asked for `host`: an alias that we gave out, or an origin's own name, under which
/// its visitors come while DNS leads some of them to us.
fn origin_of<'a>(host: &str, hosts: &'a HostTable) -> Option<&'a Arc<OriginRoute>> {
    let is_asked_for = |origin: &&Arc<OriginRoute>| {
        origin.alias.as_str() == host || origin.origin.host.as_str() == host
    };
    // Numbers of aliases ascend: of two rescues of one origin, the newer has the key that counts.
    hosts.origins.iter().rev().find(is_asked_for)
}

/// Hands all of `lines` over; what is left of them then was not, or may have been.
async fn hand_over(origin: &OriginRoute, lines: &mut HandOverLines) -> Result<(), Failure> {
    let Some(key) = origin.key else {
        return Err(Failure::NotTaken("it gave no fetch key".to_owned()));
    };
    let key = key.to_string();
    let (mut sent, mut outcome) = (0, Ok(()));
    for part in parts(&lines.body) {
        outcome = post(origin, &key, part.to_vec()).await;
        if outcome.is_err() {
            break;
        }
        sent += part.len();
    }
    let taken: Vec<u8> = lines.body.drain(..sent).collect();
    lines.lines = lines.lines.saturating_sub(lines_in(&taken));
    outcome
}

fn lines_in(part: &[u8]) -> u64 {
    part.iter().filter(|&&byte| byte == b'\n').count() as u64
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

async fn post(origin: &OriginRoute, key: &str, body: Vec<u8>) -> Result<(), Failure> {
    let request = http::Request::post(PATH)
        .header("host", origin.origin.to_string())
        .header("levee-fetch", key)
        .header("content-type", "application/x-ndjson")
        .header("connection", "close")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Failure::NotTaken(error.to_string()))?;
    let late = || format!("no answer within {} s", ANSWER_MAX.as_secs());
    let connecting = timeout(ANSWER_MAX, TcpStream::connect(origin.address)).await;
    let stream = connecting.map_err(|_| Failure::NotTaken(late()))?;
    let stream = stream.map_err(|error| Failure::NotTaken(error.to_string()))?;
    match timeout(ANSWER_MAX, ask_on(stream, request, ANSWER_BYTES_MAX)).await {
        Ok(Ok((status, _))) if status.is_success() => Ok(()),
        Ok(Ok((status, _))) => Err(Failure::NotTaken(format!("it answers {status}"))),
        Ok(Err(error)) => Err(Failure::Unknown(error)),
        Err(_) => Err(Failure::Unknown(late())),
    }
}

#[cfg(test)]
mod tests {
    use levee_observe::{LogFormat, LogTarget};
    use levee_vocab::{FetchKey, LinkId, Misses, Timestamp, WebAddress};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

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

    /// Answers the next POST so; its whole text.
    async fn answer(listener: &TcpListener, status: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"}\n") {
            assert!(stream.read_buf(&mut text).await.unwrap() > 0);
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn an_origin_that_was_restarted_gets_its_lines_when_it_has_called_again() {
        let (log, _thread) = AccessLog::start(LogTarget::Off, LogFormat::Json).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let route = |number: u64, phase| {
            let mut route = OriginRoute::clone(&origin(number, "a.example", phase));
            route.address = listener.local_addr().unwrap();
            route.key = Some(FetchKey::from_bytes([number as u8; 16]));
            Arc::new(route)
        };
        let hosts = |origins| HostTable {
            origins,
            ..HostTable::default()
        };
        let alias = "www-vh1.aliases.example";
        let lines = HandOverLines {
            body: b"{}\n{}\n".to_vec(),
            lines: 2,
        };
        log.hand_over().give_back(alias, lines);
        let mut waits = Waits::default();
        let until = Timestamp::ZERO;
        let over = hosts(vec![route(1, OriginPhase::Expired { until })]);
        let told = waits.hand_over_all(&log, &over);
        tokio::join!(told, answer(&listener, "404 Not Found"));
        // Nobody is there who could take them: nobody is asked.
        waits.hand_over_all(&log, &over).await;
        let again = hosts(vec![
            route(1, OriginPhase::Expired { until }),
            route(2, OriginPhase::Live),
        ]);
        let told = waits.hand_over_all(&log, &again);
        let ((), text) = tokio::join!(told, answer(&listener, "204 No Content"));
        let key = FetchKey::from_bytes([2; 16]).to_string();
        assert!(text.contains(&format!("levee-fetch: {key}")), "{text}");
        assert!(text.ends_with("\r\n\r\n{}\n{}\n"), "{text}");
        assert_eq!(log.hand_over().aliases(), Vec::<String>::new());
        assert_eq!(log.lost(), 0);
    }

    #[tokio::test]
    async fn an_origin_that_is_slow_holds_up_no_other() {
        let (log, _thread) = AccessLog::start(LogTarget::Off, LogFormat::Json).unwrap();
        let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let quick = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let route = |number: u64, name: &str, listener: &TcpListener| {
            let mut route = OriginRoute::clone(&origin(number, name, OriginPhase::Live));
            route.address = listener.local_addr().unwrap();
            route.key = Some(FetchKey::from_bytes([number as u8; 16]));
            Arc::new(route)
        };
        let hosts = HostTable {
            origins: vec![route(1, "a.example", &slow), route(2, "b.example", &quick)],
            ..HostTable::default()
        };
        for number in [1, 2] {
            let lines = HandOverLines {
                body: b"{}\n".to_vec(),
                lines: 1,
            };
            let alias = format!("www-vh{number}.aliases.example");
            log.hand_over().give_back(&alias, lines);
        }
        let mut waits = Waits::default();
        let told = waits.hand_over_all(&log, &hosts);
        let answered = async {
            answer(&quick, "204 No Content").await;
            answer(&slow, "204 No Content").await;
        };
        tokio::join!(told, answered);
        assert_eq!(log.hand_over().aliases(), Vec::<String>::new());
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn lines_of_another_server_with_the_same_name_are_not_its() {
        let until = Timestamp::ZERO;
        let mut stranger = OriginRoute::clone(&origin(2, "a.example", OriginPhase::Live));
        stranger.address = ([192, 0, 2, 1], 80).into();
        let hosts = HostTable {
            origins: vec![
                origin(1, "a.example", OriginPhase::Expired { until }),
                Arc::new(stranger),
            ],
            ..HostTable::default()
        };
        let way = way_of("www-vh1.aliases.example", &hosts).map(|way| way.link);
        assert_eq!(way, Some(LinkId::Inbound(1)));
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
