//! A crowd against a small server that can be told to misbehave.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use levee_vocab::WebAddress;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::client::Failure;
use super::ledger::Asked;
use super::meter::Traffic;
use super::schedule::Visit;
use super::*;
use crate::site::Site;

/// What the small server does with every request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// Serves the site.
    Honest,
    /// Redirects requests by its own name to an alias, serves those by the alias.
    ToAlias,
    /// Redirects everything back to itself.
    Circle,
    /// Changes a byte of each body.
    Alter,
    /// Says 503.
    Refuse,
    /// Reads and answers nothing.
    Hang,
    /// Closes in the middle of the body.
    Cut,
}

struct Server {
    manner: Manner,
    site: Arc<Site>,
    address: SocketAddr,
    connections: AtomicU64,
}

impl Server {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            self.connections.fetch_add(1, Ordering::Relaxed);
            let server = Arc::clone(&self);
            tokio::spawn(async move { server.converse(stream).await });
        }
    }

    async fn converse(&self, mut stream: TcpStream) {
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let text = String::from_utf8(std::mem::take(&mut head)).unwrap();
            let Some(answer) = self.answer(&text) else {
                std::future::pending::<()>().await;
                return;
            };
            if stream.write_all(&answer).await.is_err() || self.manner == Manner::Cut {
                return;
            }
        }
    }

    fn answer(&self, head: &str) -> Option<Vec<u8>> {
        let path = head.split(' ').nth(1).unwrap();
        let port = self.address.port();
        let redirect = |host: &str| {
            format!(
                "HTTP/1.1 302 Found\r\nlocation: http://{host}:{port}{path}\r\n\
                content-length: 0\r\n\r\n"
            )
        };
        match self.manner {
            Manner::Hang => return None,
            Manner::Refuse => {
                return Some(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n".to_vec());
            }
            Manner::Circle => return Some(redirect("news.localhost").into_bytes()),
            Manner::ToAlias if head.contains("host: news.localhost") => {
                return Some(redirect("alice-vh1.localhost").into_bytes());
            }
            Manner::Honest | Manner::ToAlias | Manner::Alter | Manner::Cut => {}
        }
        let mut body = self.site.body(path).to_vec();
        match self.manner {
            Manner::Alter => body[0] ^= 1,
            Manner::Cut => body.truncate(body.len() / 2),
            Manner::Honest | Manner::ToAlias | Manner::Circle | Manner::Refuse | Manner::Hang => {}
        }
        let length = self.site.body(path).len();
        let mut answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        if !head.starts_with("HEAD") {
            answer.extend(body);
        }
        Some(answer)
    }
}

/// Plays `visits` against a server of this manner and returns the records.
fn play_against(manner: Manner, visits: &[Visit]) -> (Vec<ledger::Record>, u64, Traffic) {
    let runtime = runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let own = WebAddress {
        host: "news.localhost".parse().unwrap(),
        port: address.port(),
    };
    let site = Arc::new(Site::generate(3, &own));
    let server = Arc::new(Server {
        manner,
        site: Arc::clone(&site),
        address,
        connections: AtomicU64::new(0),
    });
    runtime.spawn(Arc::clone(&server).serve(listener));
    let start = Instant::now();
    let traffic = Traffic::since(start);
    let stage = Stage {
        site,
        address: own,
        traffic: traffic.clone(),
        ledger: Arc::new(Ledger::since(start)),
        patience: if manner == Manner::Hang {
            Duration::from_millis(50)
        } else {
            Duration::from_secs(20)
        },
    };
    let arrivals = visits.iter().map(|visit| Arrival {
        at: Duration::ZERO,
        visit: visit.clone(),
    });
    let mut crowd = Crowd::send("test", stage, arrivals.collect()).unwrap();
    crowd.thread.take().unwrap().join().unwrap();
    let records = crowd.ledger().records();
    assert_eq!(crowd.ledger().progress().offered, records.len() as u64);
    (records, server.connections.load(Ordering::Relaxed), traffic)
}

fn both() -> [Visit; 2] {
    [Visit::Preview { server: 1 }, Visit::Reader { page: 0 }]
}

fn failures(records: &[ledger::Record]) -> Vec<Failure> {
    let mut failures: Vec<Failure> = records
        .iter()
        .filter_map(|record| record.result.err())
        .collect();
    failures.sort_unstable();
    failures.dedup();
    failures
}

#[test]
fn an_honest_site_answers_every_request() {
    let (records, connections, traffic) = play_against(Manner::Honest, &both());
    assert_eq!(failures(&records), []);
    let images = records.iter().filter(|record| record.kind == Asked::Image);
    assert!(images.count() >= 2);
    // Three of the fetcher, one for the page and its images, one more for its images.
    assert_eq!(connections, 5);
    let counted: u64 = traffic
        .by_port()
        .values()
        .flatten()
        .map(|bin| bin.connections)
        .sum();
    assert_eq!(counted, 5);
}

#[test]
fn redirects_are_followed_and_measured_and_images_stay_with_the_rescue_server() {
    let (records, _, _) = play_against(Manner::ToAlias, &both());
    assert_eq!(failures(&records), []);
    for record in &records {
        let redirected = record.redirected.is_some();
        assert_eq!(redirected, record.kind != Asked::Image, "{record:?}");
        if let Some((_, bytes)) = record.redirected {
            assert!((100..200).contains(&bytes), "{bytes}");
        }
    }
}

#[test]
fn every_way_to_fail_is_told_apart() {
    let check = |manner, expected: &[Failure]| {
        let (records, _, _) = play_against(manner, &both());
        assert_eq!(failures(&records), expected, "{manner:?}");
    };
    // HEAD has no body that could be wrong or cut.
    check(Manner::Alter, &[Failure::WrongBody, Failure::NotAsked]);
    check(Manner::Cut, &[Failure::Broken, Failure::NotAsked]);
    check(Manner::Circle, &[Failure::Loop, Failure::NotAsked]);
    check(Manner::Refuse, &[Failure::Refused, Failure::NotAsked]);
    check(Manner::Hang, &[Failure::Late, Failure::NotAsked]);
}

#[test]
fn a_dropped_crowd_goes_home_at_once() {
    let start = Instant::now();
    let own = WebAddress {
        host: "news.localhost".parse().unwrap(),
        port: 1,
    };
    let stage = Stage {
        site: Arc::new(Site::generate(3, &own)),
        address: own,
        traffic: Traffic::since(start),
        ledger: Arc::new(Ledger::since(start)),
        patience: PATIENCE,
    };
    let tomorrow = Arrival {
        at: Duration::from_secs(86_400),
        visit: Visit::Reader { page: 0 },
    };
    drop(Crowd::send("test", stage, vec![tomorrow]).unwrap());
    assert!(start.elapsed() < Duration::from_secs(60));
}
