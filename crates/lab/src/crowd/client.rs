//! One visitor's HTTP/1.1: connections that are counted, redirects that are followed.
//!
//! It stands on hyper's single connections rather than on a client with a pool, so that it is exact
//! how many connections there are and which request goes over which. It finds servers by [`Names`]
//! alone: a crowd can never reach another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::meter::Traffic;
use super::names::Names;
use super::url::Url;

/// A visitor: what it calls itself, and the connections it keeps open.
#[derive(Debug)]
pub struct Visitor {
    traffic: Traffic,
    agent: String,
    habit: Habit,
    names: Names,
    following: Following,
    idle: Mutex<BTreeMap<(String, u16), Vec<Connection>>>,
}

/// What a visitor does with a connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Closes it, as link preview fetchers do.
    OneRequestEach,
    /// Keeps it for the next request to the same server, as browsers do.
    KeepAlive,
}

/// What a visitor does with a redirect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Following {
    /// Asks where it leads, as everybody does.
    #[default]
    Follows,
    /// Is content with it: what is measured is the server that redirects.
    Stays,
}

/// Why a request was not answered as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Not whole within the visitor's patience.
    Late,
    /// Refused with 503.
    Refused,
    /// Another status that is neither success nor redirect.
    Status(u16),
    /// No connection could be made.
    Connect,
    /// The connection ended, or spoke no HTTP, before the response was whole.
    Broken,
    /// Whole, but not the bytes that the site has.
    WrongBody,
    /// Redirected too often, or in a circle.
    Loop,
    /// Redirected to an address that cannot be followed.
    Elsewhere,
    /// Never asked for, because the page that shows it did not come.
    NotAsked,
}

/// What a request came to on its way, kept even when it fails in the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trail {
    /// The first redirect: when it was whole, and its bytes on the wire.
    pub redirected: Option<(Instant, u64)>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Where it came from in the end.
    pub url: Url,
    /// Its body.
    pub body: Bytes,
    /// Bytes of the last response on the wire, with its head.
    pub wire_bytes: u64,
}

/// Redirects that a visitor follows for one request.
const REDIRECTS_MAX: usize = 5;
/// No object of the demo is larger; a server that sends more is broken.
const BODY_BYTES_MAX: usize = 8 << 20;

impl Visitor {
    /// A visitor without connections.
    pub fn new(traffic: Traffic, agent: String, habit: Habit) -> Self {
        Self {
            traffic,
            agent,
            habit,
            names: Names::default(),
            following: Following::default(),
            idle: Mutex::default(),
        }
    }

    /// The same visitor, who knows `names` and treats redirects as said.
    pub fn among(self, names: Names, following: Following) -> Self {
        Self {
            names,
            following,
            ..self
        }
    }

    /// Asks for `start` and follows redirects. Dropped half-way it closes the connection in use.
    pub async fn fetch(
        &self,
        method: &Method,
        start: &Url,
        trail: &mut Trail,
    ) -> Result<Fetched, Failure> {
        let mut url = start.clone();
        let mut seen = BTreeSet::new();
        loop {
            if seen.len() > REDIRECTS_MAX || !seen.insert(url.clone()) {
                return Err(Failure::Loop);
            }
            let answer = self.exchange(method, &url).await?;
            let Some(next) = answer.leads_to(&url)? else {
                return Ok(answer.into_fetched(url));
            };
            trail
                .redirected
                .get_or_insert_with(|| (Instant::now(), answer.wire_bytes));
            if self.following == Following::Stays {
                return Ok(answer.into_fetched(url));
            }
            url = next;
        }
    }

    /// One request and its whole response.
    async fn exchange(&self, method: &Method, url: &Url) -> Result<Exchange, Failure> {
        while let Some(mut connection) = self.idle_connection(url) {
            // A server may close a kept connection at any moment; then another one must do.
            if connection.sender.ready().await.is_err() {
                continue;
            }
            match self.exchange_over(connection, method, url).await {
                Err(Failure::Broken) => {}
                settled => return settled,
            }
        }
        let address = self.names.server_of(url).ok_or(Failure::Elsewhere)?;
        let connection = Connection::open(&self.traffic, address).await?;
        self.exchange_over(connection, method, url).await
    }

    async fn exchange_over(
        &self,
        mut connection: Connection,
        method: &Method,
        url: &Url,
    ) -> Result<Exchange, Failure> {
        let before = connection.received.load(Ordering::Relaxed);
        let request = self.request(method, url);
        let response = connection.sender.send_request(request).await;
        let (head, body) = response.map_err(|_| Failure::Broken)?.into_parts();
        let body: Limited<Incoming> = Limited::new(body, BODY_BYTES_MAX);
        let body = body
            .collect()
            .await
            .map_err(|_| Failure::Broken)?
            .to_bytes();
        let wire_bytes = connection.received.load(Ordering::Relaxed) - before;
        if self.habit == Habit::KeepAlive {
            self.keep(url, connection);
        }
        Ok(Exchange {
            response: Response::from_parts(head, body),
            wire_bytes,
        })
    }

    fn request(&self, method: &Method, url: &Url) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.target.parse().unwrap_or_default();
        let mut set = |name, value: &str| {
            if let Ok(value) = value.parse() {
                request.headers_mut().insert(name, value);
            }
        };
        set(header::HOST, &url.authority());
        set(header::USER_AGENT, &self.agent);
        set(header::ACCEPT, "*/*");
        if self.habit == Habit::OneRequestEach {
            set(header::CONNECTION, "close");
        }
        request
    }

    fn idle_connection(&self, url: &Url) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.get_mut(&(url.host.clone(), url.port))?.pop()
    }

    fn keep(&self, url: &Url, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let server = (url.host.clone(), url.port);
        idle.entry(server).or_default().push(connection);
    }
}

/// A response and what it weighed on the wire.
struct Exchange {
    response: Response<Bytes>,
    wire_bytes: u64,
}

impl Exchange {
    fn into_fetched(self, url: Url) -> Fetched {
        Fetched {
            url,
            body: self.response.into_body(),
            wire_bytes: self.wire_bytes,
        }
    }

    /// Where it redirects to; none for a success.
    fn leads_to(&self, url: &Url) -> Result<Option<Url>, Failure> {
        let status = self.response.status();
        if status == StatusCode::OK {
            return Ok(None);
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            return Err(Failure::Refused);
        }
        if !status.is_redirection() {
            return Err(Failure::Status(status.as_u16()));
        }
        let location = self.response.headers().get(header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok());
        let next = location.ok_or(Failure::Elsewhere)?;
        url.join(next).map(Some).map_err(|_| Failure::Elsewhere)
    }
}

/// One connection; closed when dropped.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    driver: JoinHandle<()>,
    received: Arc<AtomicU64>,
}

impl Connection {
    async fn open(traffic: &Traffic, address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|_| Failure::Connect)?;
        let stream = traffic.meter(stream, address.port());
        let received = stream.received();
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|_| Failure::Broken)?;
        // Errors of the connection reach the request as well; nobody else waits for them.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self {
            sender,
            driver,
            received,
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
