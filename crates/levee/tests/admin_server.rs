//! The admin server over real sockets: routes, guards, limits, reload.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use levee::admin::{AdminLimits, Reporting, StatusSource, serve};
use levee::drill::{Account, Begun, DrillDesk, Invitation, Scheme};
use levee::purge_report::PurgeReport;
use levee_control::{Confirmation, DrillStop, PurgeOutcome};
use levee_observe::{History, Status, StatusBoard};
use levee_vocab::{Purge, WebAddress};

#[derive(Default)]
struct Board {
    board: StatusBoard,
    reloads: AtomicU64,
}

impl StatusSource for Board {
    fn status(&self) -> Arc<Status> {
        self.board.status()
    }

    fn history(&self) -> History {
        self.board.history()
    }

    fn drills(&self) -> &dyn DrillDesk {
        self
    }

    fn purge(&self, purge: Purge) -> Reporting {
        let servers = [Confirmation {
            site: WebAddress {
                host: "a.example".parse().unwrap(),
                port: 80,
            },
            outcome: PurgeOutcome::Silent,
        }];
        let report = PurgeReport::new(&purge, 7, &servers);
        Box::pin(async move { report })
    }

    fn reload(&self) -> Result<String, String> {
        match self.reloads.fetch_add(1, Ordering::Relaxed) {
            0 => Ok("reloaded".into()),
            _ => Err("link.rate is 0, but must be above it".into()),
        }
    }
}

impl DrillDesk for Board {
    fn begin(&self, length: Duration, rate: u32) -> Begun {
        Box::pin(async move {
            match length.as_secs() {
                0 => Err("no drill: the site has a crowd".to_owned()),
                seconds => Ok(Invitation {
                    key: format!("key for {seconds} s at {rate}"),
                    site: "news.example:80".into(),
                    address: ([127, 0, 0, 1], 80).into(),
                    scheme: Scheme::Http,
                }),
            }
        })
    }

    fn account(&self) -> Account {
        Account::default()
    }

    fn stop(&self, stop: DrillStop) -> Result<String, String> {
        Ok(stop.why().to_owned())
    }
}

struct Admin {
    address: SocketAddr,
    board: Arc<Board>,
    _runtime: tokio::runtime::Runtime,
}

impl Admin {
    fn start(limits: AdminLimits) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let board = Arc::new(Board::default());
        runtime.spawn(serve(listener, board.clone(), limits));
        Self {
            address,
            board,
            _runtime: runtime,
        }
    }

    fn publish_ready(&self) {
        self.board.board.publish(Status {
            site: "news.example".into(),
            ready: true,
            state: "normal".into(),
            uptime: 1.0,
            ..Status::default()
        });
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    /// Sends `head` (without its last empty line) and returns the whole answer.
    fn ask(&self, head: &str) -> String {
        let mut stream = self.connect();
        let request = format!("{head}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}", self.address))
    }
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn every_face_is_served_with_its_type_and_policy() {
    let admin = Admin::start(AdminLimits::default());
    admin.publish_ready();
    for (path, content_type, part) in [
        ("/", "text/html", "carries its visitors by itself"),
        ("/dashboard", "text/html", "/assets/dashboard.js"),
        (
            "/status.json",
            "application/json",
            "\"site\":\"news.example\"",
        ),
        ("/history.json", "application/json", "{\"snapshots\":[{"),
        ("/metrics", "text/plain; version=0.0.4", "levee_ready 1\n"),
        ("/dotslash-status", "text/html", "<dt>State<dd>normal"),
        ("/dotslash-status?auto", "text/plain", "State: normal\n"),
        ("/assets/style.css", "text/css", ".badge"),
        ("/assets/uplot.js", "text/javascript", "uPlot"),
        ("/-/healthy", "text/plain", "healthy"),
        ("/-/ready", "text/plain", "ready"),
    ] {
        let answer = admin.get(path);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        assert!(
            answer.contains(&format!("content-type: {content_type}")),
            "{path}"
        );
        assert!(
            answer.contains("content-security-policy: default-src 'none'"),
            "{path}"
        );
        assert!(body(&answer).contains(part), "{path}: {answer}");
    }
    assert!(admin.get("/nowhere").starts_with("HTTP/1.1 404 "));
    let head = admin.ask("HEAD / HTTP/1.1\r\nHost: localhost");
    assert!(head.starts_with("HTTP/1.1 200 ") && body(&head).is_empty());
    let post = admin.ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0");
    assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("allow: GET, HEAD"));
}

#[test]
fn ready_is_told_only_when_ready() {
    let admin = Admin::start(AdminLimits::default());
    assert!(admin.get("/-/ready").starts_with("HTTP/1.1 503 "));
    assert!(admin.get("/-/healthy").starts_with("HTTP/1.1 200 "));
    admin.publish_ready();
    assert!(admin.get("/-/ready").starts_with("HTTP/1.1 200 "));
}

#[test]
fn reload_is_for_the_operator_and_not_for_other_sites() {
    let admin = Admin::start(AdminLimits::default());
    let host = admin.address;
    let post = |more: &str| {
        admin.ask(&format!(
            "POST /-/reload HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0{more}"
        ))
    };
    assert!(admin.get("/-/reload").starts_with("HTTP/1.1 405 "));
    assert!(post("\r\nOrigin: http://evil.example").starts_with("HTTP/1.1 403 "));
    assert!(post("\r\nSec-Fetch-Site: cross-site").starts_with("HTTP/1.1 403 "));
    let rebound = "POST /-/reload HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0";
    assert!(admin.ask(rebound).starts_with("HTTP/1.1 421 "));
    assert_eq!(admin.board.reloads.load(Ordering::Relaxed), 0);
    let done = post("");
    assert!(done.starts_with("HTTP/1.1 200 ") && body(&done) == "reloaded\n");
    let wrong = post("");
    assert!(wrong.starts_with("HTTP/1.1 422 ") && body(&wrong).starts_with("link.rate is 0"));
}

#[test]
fn a_client_that_sends_half_a_head_is_let_go() {
    let admin = Admin::start(AdminLimits {
        head_time: Duration::from_millis(100),
        ..AdminLimits::default()
    });
    let mut slow = admin.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHos").unwrap();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer).unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn idle_connections_cannot_keep_an_operator_out() {
    let admin = Admin::start(AdminLimits {
        connections_max: 4,
        ..AdminLimits::default()
    });
    let mut idle: Vec<TcpStream> = (0..20).map(|_| admin.connect()).collect();
    assert!(admin.get("/-/healthy").starts_with("HTTP/1.1 200 "));
    // The oldest of them is gone: it reads its end, or that it was cut.
    let gone = match idle[0].read(&mut [0; 1]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(gone);
}

#[test]
fn garbage_costs_only_its_own_connection() {
    let admin = Admin::start(AdminLimits::default());
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  /\r\n\r\n",
        &[b'a'; 100_000],
    ] {
        let mut stream = admin.connect();
        // The server may close while we still send; that is its right.
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
    assert!(admin.get("/-/healthy").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_purge_is_answered_with_who_confirmed_it() {
    let admin = Admin::start(AdminLimits::default());
    let post = |query: &str| {
        let host = admin.address;
        admin.ask(&format!(
            "POST /-/purge?{query} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0"
        ))
    };
    let answer = post("url=%2Fa%3Fb%3Dc&soft=1");
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    assert!(
        answer.contains("\"purged\":\"/a?b=c\",\"soft\":true,\"objects\":7"),
        "{answer}"
    );
    assert!(answer.contains("\"unconfirmed\":1"), "{answer}");
    assert!(
        answer.contains("\"site\":\"a.example\",\"confirmed\":false"),
        "{answer}"
    );
    assert!(post("key=news&key=sport").contains("\"purged\":\"keys news sport\""));
    for bad in [
        "",
        "url=/a&key=b",
        "url=a",
        "key=a%20b&soft=2",
        "what=else",
        "key=%FF",
    ] {
        assert!(post(bad).starts_with("HTTP/1.1 400 "), "{bad}");
    }
    assert!(admin.get("/-/purge?url=/a").starts_with("HTTP/1.1 405 "));
}

#[test]
fn a_server_that_has_lost_a_thread_is_not_healthy() {
    let admin = Admin::start(AdminLimits::default());
    admin.publish_ready();
    assert!(admin.get("/-/healthy").starts_with("HTTP/1.1 200 "));
    admin.board.board.publish(Status {
        ready: true,
        lost_cores: 1,
        ..Status::default()
    });
    assert!(admin.get("/-/healthy").starts_with("HTTP/1.1 503 "));
}

#[test]
fn a_drill_is_begun_watched_and_ended_by_the_operator_only() {
    let admin = Admin::start(AdminLimits::default());
    let host = admin.address.to_string();
    let post = |target: &str, more: &str| {
        admin.ask(&format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0{more}"
        ))
    };
    let begun = post("/-/drill?seconds=60&rate=20", "");
    assert!(begun.contains("key for 60 s at 20"), "{begun}");
    let refused = post("/-/drill?seconds=0&rate=20", "");
    assert!(refused.starts_with("HTTP/1.1 409 "), "{refused}");
    for bad in ["", "?seconds=60", "?seconds=x&rate=1", "?speed=1"] {
        let answer = post(&format!("/-/drill{bad}"), "");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{bad}: {answer}");
    }
    let account = admin.get("/drill.json");
    assert!(account.contains("\"running\":false"), "{account}");
    assert!(post("/-/drill/stop", "").contains("an operator stopped it"));
    assert!(post("/-/drill/stop?by=client", "").contains("has seen enough"));
    let strange = "\r\nOrigin: http://evil.example";
    for target in ["/-/drill?seconds=60&rate=20", "/-/drill/stop"] {
        let answer = post(target, strange);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(admin.get(target).starts_with("HTTP/1.1 405 "), "{target}");
    }
}
