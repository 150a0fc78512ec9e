//! One visitor's HTTP: connections that are counted, redirects that are followed.
//!
//! It stands on hyper's single connections rather than on a client with a pool, so that it is exact
//! how many connections there are and which request goes over which. It finds servers by [`Names`]
//! alone: a crowd can never reach another machine. By HTTP/2 it says so at once (RFC 9113 section
//! 3.3), and has one connection to each server for all its requests. To an https address it goes
//! only where it believes somebody ([`Authorities`]), and speaks HTTP/1.1 there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::authorities::Authorities;
use super::meter::Traffic;
use super::names::Names;
use super::url::{Scheme, Url};

/// A visitor: what it calls itself, and the connections it keeps open.
#[derive(Debug)]
pub struct Visitor {
    traffic: Traffic,
    agent: String,
    habit: Habit,
    names: Names,
    following: Following,
    protocol: Protocol,
    authorities: Option<Authorities>,
    idle: Mutex<BTreeMap<(String, u16), Vec<Connection>>>,
}

/// How a visitor speaks to servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2 without asking first, any number of requests at a time on a connection.
    Http2,
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
    /// The server did not prove that the name is its own.
    Unproven,
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
    /// The server that was asked last.
    pub server: Option<IpAddr>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Where it came from in the end.
    pub url: Url,
    /// Its body.
    pub body: Bytes,
    /// Bytes of the last response on the wire, with its head; by HTTP/2, where responses share a
    /// connection, those of its body.
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
            protocol: Protocol::default(),
            authorities: None,
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

    /// The same visitor, who speaks as said.
    pub fn speaking(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// The same visitor, who believes these authorities, or nobody.
    pub fn believing(self, authorities: Option<Authorities>) -> Self {
        Self {
            authorities,
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
            let answer = self.exchange(method, &url, trail).await?;
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
    async fn exchange(
        &self,
        method: &Method,
        url: &Url,
        trail: &mut Trail,
    ) -> Result<Exchange, Failure> {
        while let Some(mut connection) = self.idle_connection(url) {
            // A server may close a kept connection at any moment; then another one must do.
            if connection.sender.ready().await.is_err() {
                self.forget(url, &connection);
                continue;
            }
            trail.server = Some(connection.server);
            match self.exchange_over(connection, method, url).await {
                Err(Failure::Broken) => {}
                settled => return settled,
            }
        }
        let connection = self.connect(url, trail).await?;
        self.exchange_over(connection, method, url).await
    }

    /// A connection to the first of the servers of `url` that takes one, as browsers do it where a
    /// name has several addresses.
    async fn connect(&self, url: &Url, trail: &mut Trail) -> Result<Connection, Failure> {
        let servers = self.names.servers_of(url).await;
        let mut failure = Failure::Elsewhere;
        for server in servers {
            trail.server = Some(server.ip());
            match self.open(server, url).await {
                Ok(connection) => return Ok(connection),
                Err(Failure::Connect) => failure = Failure::Connect,
                Err(other) => return Err(other),
            }
        }
        Err(failure)
    }

    async fn open(&self, server: SocketAddr, url: &Url) -> Result<Connection, Failure> {
        let stream = TcpStream::connect(server).await;
        let stream = stream.map_err(|_| Failure::Connect)?;
        let stream = self.traffic.meter(stream, server.port());
        let received = stream.received();
        let (sender, driver) = match (url.scheme, &self.authorities) {
            (Scheme::Http, _) => begin(stream, self.protocol).await?,
            (Scheme::Https, None) => return Err(Failure::Elsewhere),
            (Scheme::Https, Some(authorities)) => {
                let stream = authorities.shake_hands(&url.host, stream).await;
                let stream = stream.map_err(|_| Failure::Unproven)?;
                begin(stream, Protocol::Http1).await?
            }
        };
        Ok(Connection {
            sender,
            driver: Arc::new(Driver(driver)),
            received,
            server: server.ip(),
        })
    }

    async fn exchange_over(
        &self,
        mut connection: Connection,
        method: &Method,
        url: &Url,
    ) -> Result<Exchange, Failure> {
        let before = connection.received.load(Ordering::Relaxed);
        let request = self.request(method, url);
        let response = connection.sender.send(request).await;
        let (head, body) = response.map_err(|_| Failure::Broken)?.into_parts();
        let body: Limited<Incoming> = Limited::new(body, BODY_BYTES_MAX);
        let body = body
            .collect()
            .await
            .map_err(|_| Failure::Broken)?
            .to_bytes();
        let wire_bytes = match self.protocol {
            Protocol::Http1 => connection.received.load(Ordering::Relaxed) - before,
            Protocol::Http2 => body.len() as u64,
        };
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
        let (uri, names_host) = match self.protocol {
            Protocol::Http1 => (url.target.clone(), true),
            // The scheme and the host are pseudo-header fields.
            Protocol::Http2 => (format!("http://{}{}", url.authority(), url.target), false),
        };
        *request.uri_mut() = uri.parse().unwrap_or_default();
        let mut set = |name, value: &str| {
            if let Ok(value) = value.parse() {
                request.headers_mut().insert(name, value);
            }
        };
        if names_host {
            set(header::HOST, &url.authority());
        }
        set(header::USER_AGENT, &self.agent);
        set(header::ACCEPT, "*/*");
        // HTTP/2 has no such field; the connection is closed all the same.
        if self.habit == Habit::OneRequestEach && self.protocol == Protocol::Http1 {
            set(header::CONNECTION, "close");
        }
        request
    }

    /// A connection to the server of `url` on which a request can be sent: by HTTP/1.1 one that
    /// nobody uses, by HTTP/2 the one that there is.
    fn idle_connection(&self, url: &Url) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(&(url.host.clone(), url.port))?;
        let connection = connections.pop()?;
        connections.extend(connection.copy());
        Some(connection)
    }

    fn keep(&self, url: &Url, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let server = (url.host.clone(), url.port);
        let connections = idle.entry(server).or_default();
        if !connections.iter().any(|kept| kept.is(&connection)) {
            connections.push(connection);
        }
    }

    fn forget(&self, url: &Url, connection: &Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = idle.get_mut(&(url.host.clone(), url.port)) {
            connections.retain(|kept| !kept.is(connection));
        }
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

/// One connection; closed when the last of its copies is dropped.
#[derive(Debug)]
struct Connection {
    sender: Sender,
    driver: Arc<Driver>,
    received: Arc<AtomicU64>,
    server: IpAddr,
}

/// Where requests go in.
#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

/// What moves the bytes of a connection.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

/// Begins to speak HTTP. Errors of the connection reach each request as well; nobody else waits
/// for them.
async fn begin<S>(stream: S, protocol: Protocol) -> Result<(Sender, JoinHandle<()>), Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(stream);
    let broken = |_| Failure::Broken;
    match protocol {
        Protocol::Http1 => {
            let (sender, connection) = http1::handshake(stream).await.map_err(broken)?;
            let driver = tokio::spawn(async move { drop(connection.await) });
            Ok((Sender::Http1(sender), driver))
        }
        Protocol::Http2 => {
            let handshake = http2::handshake(TokioExecutor::new(), stream);
            let (sender, connection) = handshake.await.map_err(broken)?;
            let driver = tokio::spawn(async move { drop(connection.await) });
            Ok((Sender::Http2(sender), driver))
        }
    }
}

impl Connection {
    /// The same connection for one more request at the same time, where that can be.
    fn copy(&self) -> Option<Self> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Self {
                sender: Sender::Http2(sender.clone()),
                driver: Arc::clone(&self.driver),
                received: Arc::clone(&self.received),
                server: self.server,
            }),
        }
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.driver, &other.driver)
    }
}

impl Sender {
    async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(sender) => sender.ready().await,
            Self::Http2(sender) => sender.ready().await,
        }
    }

    async fn send(&mut self, request: Request<Empty<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => sender.send_request(request).await,
            Self::Http2(sender) => sender.send_request(request).await,
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
