//! Name servers that keep copies of a zone, and when they know what was changed.
//!
//! Whoever looks a name up is answered by any name server of its zone, and those that fetch it from
//! the one that takes changes may be seconds behind. So each is asked itself, until it shows what
//! it should; nothing is asked of resolvers, which would remember that it was not there. One that
//! is silent again and again is given up: nobody else gets an answer from it either.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{RData, RecordType};
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::exchange::exchange;
use crate::name::DomainName;
use crate::remote::{RemoteZone, record_type, value};
use crate::zone::{Cause, Kind, Value};

/// A name server that does not show a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laggard {
    /// Which one.
    pub server: SocketAddr,
    /// Why nobody can say that it does; none where it answers, and shows something else.
    pub cause: Option<Cause>,
}

impl fmt::Display for Laggard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{} {cause}", self.server),
            None => write!(f, "{} does not show it", self.server),
        }
    }
}

/// Where name servers listen.
const PORT: u16 = 53;
/// Most names and addresses of name servers that are asked; zones have two to eight.
const NAMES_MAX: usize = 16;
const SERVERS_MAX: usize = 32;
/// Longest wait for the address of one, and for its answer.
const LOOK_WAIT: Duration = Duration::from_secs(5);
const ANSWER_WAIT: Duration = Duration::from_secs(3);
/// Pauses between two questions to one server: most copies are a moment late, if at all.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often in a row one may be silent.
const SILENCES_MAX: u32 = 3;
/// For which part of the whole wait one may refuse, as one does that is just loading the zone.
const REFUSALS_PART: u32 = 4;

/// Waits until all of `servers` show `value` at `name`, but not longer than `wait`, and gives those
/// that do not.
///
/// Cancel safety: may be dropped at any time.
pub async fn wait_until_shown(
    servers: Vec<SocketAddr>,
    (name, value): (&DomainName, &Value),
    wait: Duration,
) -> Vec<Laggard> {
    let now = Instant::now();
    let until = (now + wait / REFUSALS_PART, now + wait);
    let mut asking = JoinSet::new();
    for server in servers {
        let (name, value) = (name.clone(), value.clone());
        asking.spawn(async move { until_shown(server, (&name, &value), until).await.err() });
    }
    let mut laggards: Vec<Laggard> = asking.join_all().await.into_iter().flatten().collect();
    laggards.sort_by_key(|laggard| laggard.server);
    laggards
}

async fn until_shown(
    server: SocketAddr,
    record: (&DomainName, &Value),
    (refused_until, until): (Instant, Instant),
) -> Result<(), Laggard> {
    let (mut pause, mut silences) = (PAUSE_MIN, 0);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let cause = match shows(server, record, ANSWER_WAIT.min(left)).await {
            Ok(true) => return Ok(()),
            Ok(false) => None,
            Err(cause) => Some(cause),
        };
        let is_silent = matches!(cause, Some(Cause::TimedOut { .. }));
        silences = if is_silent { silences + 1 } else { 0 };
        let last = match cause {
            Some(_) if !is_silent => refused_until,
            Some(_) | None => until,
        };
        if silences == SILENCES_MAX || Instant::now() + pause >= last {
            return Err(Laggard { server, cause });
        }
        sleep(pause).await;
        pause = PAUSE_MAX.min(pause * 2);
    }
}

/// Whether `server` has `value` among those of `name`, by its own knowledge.
async fn shows(
    server: SocketAddr,
    (name, wanted): (&DomainName, &Value),
    wait: Duration,
) -> Result<bool, Cause> {
    let garbage = |why: &str| Cause::Garbage { why: why.into() };
    let mut question = Message::query();
    let kind = record_type(wanted.kind());
    question.add_query(Query::query(name.as_name().clone(), kind));
    let bytes = question.to_vec();
    let bytes = bytes.map_err(|error| garbage(&error.to_string()))?;
    let bytes = exchange(server, &bytes, wait).await?;
    let answer = Message::from_vec(&bytes);
    let answer = answer.map_err(|error| garbage(&error.to_string()))?;
    if answer.metadata.id != question.metadata.id {
        return Err(garbage("it answers another question"));
    }
    let code = answer.metadata.response_code;
    if code != ResponseCode::NoError && code != ResponseCode::NXDomain {
        return Err(Cause::Code(code.into()));
    }
    if !answer.metadata.authoritative {
        return Err(garbage("it does not keep the zone"));
    }
    let mut values = answer.answers.iter().filter_map(|one| value(&one.data));
    Ok(values.any(|one| one == *wanted))
}

impl RemoteZone {
    /// The name servers of the zone, as its primary names them, without the one that is asked.
    pub(crate) async fn find_copies(&self) -> Result<Vec<SocketAddr>, Cause> {
        let zone = self.zone();
        let mut question = Message::query();
        question.add_query(Query::query(zone.as_name().clone(), RecordType::NS));
        let answer = self.ask(question, zone).await?;
        let names = answer.answers.iter().filter_map(|record| {
            let RData::NS(name) = &record.data else {
                return None;
            };
            Some(DomainName::from(name.0.clone()))
        });
        let mut all = BTreeSet::new();
        for name in names.take(NAMES_MAX) {
            all.extend(self.addresses_of(&name).await);
        }
        all.remove(&self.server());
        Ok(all.into_iter().take(SERVERS_MAX).collect())
    }

    /// Where a name server listens; one that nobody can find is asked by nobody.
    async fn addresses_of(&self, name: &DomainName) -> Vec<SocketAddr> {
        let mut found: Vec<SocketAddr> = Vec::new();
        // The primary knows the names in its zone best, whatever this machine can look up.
        if self.zone().contains(name) {
            for kind in [Kind::A, Kind::Aaaa] {
                let values = self.send_read(name, kind).await.unwrap_or_default();
                found.extend(values.iter().filter_map(place));
            }
        }
        if found.is_empty() {
            let host = format!("{name}.");
            let looked = timeout(LOOK_WAIT, lookup_host((host.as_str(), PORT))).await;
            found.extend(looked.into_iter().flatten().flatten());
        }
        found
    }
}

fn place(value: &Value) -> Option<SocketAddr> {
    match value {
        Value::Address(address) => Some((*address, PORT).into()),
        Value::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::server::{OwnZone, OwnZoneSettings};
    use crate::zone::{Record, Zone};

    const ZONE: &str = "$TTL 30\n@ IN SOA ns admin 1 60 30 3600 5\n@ IN NS ns\nns IN A 192.0.2.1\n";

    async fn serve() -> (OwnZone, SocketAddr) {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = tcp.local_addr().unwrap();
        drop(tcp);
        (serve_at(place).await, place)
    }

    async fn serve_at(place: SocketAddr) -> OwnZone {
        let zone = OwnZone::new(OwnZoneSettings {
            zone: "site.test".parse().unwrap(),
            file: ZONE.into(),
            memory: None,
            grants: vec![],
            secondaries: vec![],
            seed: 1,
        })
        .unwrap();
        let tcp = TcpListener::bind(place).await.unwrap();
        let udp = tokio::net::UdpSocket::bind(place).await.unwrap();
        zone.serve(udp, tcp);
        zone
    }

    fn proof() -> (DomainName, Value) {
        let name = "_acme-challenge.site.test".parse().unwrap();
        (name, Value::Text("proof".into()))
    }

    #[tokio::test]
    async fn it_is_waited_for_a_copy_that_is_late_and_told_which_one_never_comes() {
        let ((late, first), (_never, second)) = (serve().await, serve().await);
        let (name, value) = proof();
        let record = Record {
            name: name.clone(),
            value: value.clone(),
            ttl: Duration::from_secs(1),
        };
        let change = async {
            sleep(PAUSE_MIN).await;
            late.add(record).await.unwrap();
        };
        let wait = Duration::from_secs(1);
        let waiting = wait_until_shown(vec![first, second], (&name, &value), wait);
        let (laggards, ()) = tokio::join!(waiting, change);
        let server = second;
        let cause = None;
        assert_eq!(laggards, [Laggard { server, cause }]);
        assert_eq!(
            laggards[0].to_string(),
            format!("{second} does not show it")
        );
    }

    #[tokio::test]
    async fn one_that_refuses_is_waited_for_a_while() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        drop(listener);
        let (name, value) = proof();
        let record = Record {
            name: name.clone(),
            value: value.clone(),
            ttl: Duration::from_secs(1),
        };
        // Nobody is there at first, as while one restarts.
        let begin = async {
            sleep(PAUSE_MIN * 8).await;
            let zone = serve_at(place).await;
            zone.add(record).await.unwrap();
            zone
        };
        let waiting = wait_until_shown(vec![place], (&name, &value), Duration::from_secs(40));
        let (laggards, _zone) = tokio::join!(waiting, begin);
        assert_eq!(laggards, []);
    }

    #[tokio::test]
    async fn one_that_is_not_there_or_keeps_another_zone_holds_nobody_up_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = listener.local_addr().unwrap();
        drop(listener);
        let (_zone, stranger) = serve().await;
        let name: DomainName = "_acme-challenge.other.test".parse().unwrap();
        let wait = Duration::from_secs(2);
        let record = (&name, &proof().1);
        let laggards = wait_until_shown(vec![gone, stranger], record, wait).await;
        let causes: Vec<_> = laggards.into_iter().map(|one| one.cause.unwrap()).collect();
        let is_gone = |cause: &Cause| matches!(cause, Cause::Unreachable { .. });
        let is_stranger = |cause: &Cause| *cause == Cause::Code(5);
        assert!(causes.iter().any(is_gone), "{causes:?}");
        assert!(causes.iter().any(is_stranger), "{causes:?}");
    }
}
