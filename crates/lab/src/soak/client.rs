//! The clients of a soak: each asks, checks every byte, and now and then leaves in the middle.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use levee_vocab::Random;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::body::Asked;

/// Whoever has no whole answer by then is stuck. Every deadline of the server is shorter.
const STUCK: Duration = Duration::from_secs(45);
/// Pause after a request that failed, so that a dead server is not stormed.
const PAUSE: Duration = Duration::from_millis(20);

/// What all clients have seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub requests: u64,
    pub whole: u64,
    pub wrong: u64,
    pub stuck: u64,
    pub left: u64,
    pub errors: BTreeMap<String, u64>,
}

/// Shared by all clients.
pub(super) type Ledger = Arc<Mutex<Tally>>;

/// What became of a request.
enum Outcome {
    Whole,
    Wrong,
    Left,
    Failed(String),
}

/// Asks until `end`.
pub(super) async fn ask_until(end: Instant, at: SocketAddr, seed: u64, ledger: Ledger) {
    let mut random = Random::from_seed(seed);
    let mut connection = None;
    while Instant::now() < end {
        let outcome = timeout(STUCK, ask(&mut connection, at, &mut random)).await;
        let is_failed = !matches!(outcome, Ok(Outcome::Whole));
        {
            let mut tally = ledger.lock().unwrap_or_else(PoisonError::into_inner);
            tally.requests += 1;
            match outcome {
                Ok(Outcome::Whole) => tally.whole += 1,
                Ok(Outcome::Wrong) => tally.wrong += 1,
                Ok(Outcome::Left) => tally.left += 1,
                Ok(Outcome::Failed(why)) => *tally.errors.entry(why).or_default() += 1,
                Err(_) => tally.stuck += 1,
            }
        }
        if is_failed {
            connection = None;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn ask(
    connection: &mut Option<SendRequest<Full<Bytes>>>,
    at: SocketAddr,
    random: &mut Random,
) -> Outcome {
    let failed = |what: &str| Outcome::Failed(what.to_owned());
    // The server may close between requests, and after a large form does.
    let is_open = match connection {
        Some(sender) => sender.ready().await.is_ok(),
        None => false,
    };
    if !is_open {
        *connection = connect(at).await;
    }
    let Some(sender) = connection else {
        return failed("no connection");
    };
    let asked = Asked::draw(random);
    let is_form = random.chance(0.1);
    let sent = match is_form {
        true => Bytes::from(asked.body()),
        false => Bytes::new(),
    };
    let mut request = Request::new(Full::new(sent));
    *request.uri_mut() = asked.path().parse().expect("a path of our own");
    let host = header::HeaderValue::from_static("soak.localhost");
    request.headers_mut().insert(header::HOST, host);
    if is_form {
        *request.method_mut() = Method::POST;
    }
    let Ok(response) = sender.send_request(request).await else {
        return failed("no head");
    };
    let status = response.status();
    let mut body = response.into_body();
    if random.chance(0.05) {
        // Leaves after the first piece, as a visitor does who clicks on.
        drop(body.frame().await);
        return Outcome::Left;
    }
    let Ok(body) = body.collect().await else {
        return failed("body broken off");
    };
    match status.as_u16() {
        200 if body.to_bytes() == asked.body() => Outcome::Whole,
        200 => Outcome::Wrong,
        other => Outcome::Failed(format!("status {other}")),
    }
}

async fn connect(at: SocketAddr) -> Option<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(at).await.ok()?;
    let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(async move {
        // Whoever waits for an answer on it is told as well.
        let _ = driver.await;
    });
    Some(sender)
}
