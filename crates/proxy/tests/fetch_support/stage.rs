//! Scripted origins over real sockets, and visitors who wait for them.
//!
//! An origin can hang, truncate, answer byte by byte or break off, whatever its script says. Time
//! that decides about freshness stands still until a test moves it.

#![allow(clippy::unwrap_used, dead_code, missing_docs)]

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use levee_proxy::{
    Company, FetchError, FetchSettings, Fetcher, Miss, ObjectKey, Overloaded, Place, Progress,
    Purpose, ResponseHead, Source, Space, Spaces, Stored, UpstreamSettings, Upstreams, Waiting,
    Waker,
};
use levee_vocab::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A request as an origin sees it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub number: usize,
    pub head: String,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().skip(1);
        let mut fields = lines.filter_map(|line| line.split_once(':'));
        fields
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    }
}

/// What a script hands back: the connection where it goes on, nothing where it is closed.
pub type Played = Pin<Box<dyn Future<Output = Option<TcpStream>> + Send>>;

/// An origin on a port of its own.
pub struct Origin {
    pub address: SocketAddr,
    asks: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Origin {
    pub async fn play(script: impl Fn(Asked, TcpStream) -> Played + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asks = Arc::new(AtomicUsize::new(0));
        let connections = Arc::new(AtomicUsize::new(0));
        let (script, counter, opened) = (Arc::new(script), asks.clone(), connections.clone());
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                open.spawn(talk(stream, script.clone(), counter.clone()));
            }
        });
        Self {
            address,
            asks,
            connections,
            task,
        }
    }

    /// Answers each request with the same bytes.
    pub async fn says(response: &str) -> Self {
        let response = response.to_owned();
        Self::play(move |_, stream| say(stream, response.clone())).await
    }

    pub fn asks(&self) -> usize {
        self.asks.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Dies: the listener and all connections with it.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn talk(
    mut stream: TcpStream,
    script: Arc<impl Fn(Asked, TcpStream) -> Played>,
    asks: Arc<AtomicUsize>,
) {
    while let Some((head, body)) = read_request(&mut stream).await {
        let number = asks.fetch_add(1, Ordering::SeqCst);
        match script(Asked { number, head, body }, stream).await {
            Some(same) => stream = same,
            None => return,
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8(bytes).unwrap();
    let length = head.to_ascii_lowercase();
    let length = length
        .split("content-length:")
        .nth(1)
        .and_then(|rest| rest.lines().next()?.trim().parse().ok())
        .unwrap_or(0);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, body))
}

/// Sends bytes and keeps the connection.
pub fn say(mut stream: TcpStream, bytes: impl Into<Vec<u8>>) -> Played {
    let bytes = bytes.into();
    Box::pin(async move {
        stream.write_all(&bytes).await.ok()?;
        Some(stream)
    })
}

/// Sends bytes and closes.
pub fn say_and_close(mut stream: TcpStream, bytes: impl Into<Vec<u8>>) -> Played {
    let bytes = bytes.into();
    Box::pin(async move {
        stream.write_all(&bytes).await.ok()?;
        None
    })
}

/// Sends bytes, then nothing, and keeps the connection open for ever.
pub fn say_and_hang(mut stream: TcpStream, bytes: impl Into<Vec<u8>>) -> Played {
    let bytes = bytes.into();
    Box::pin(async move {
        stream.write_all(&bytes).await.ok()?;
        std::future::pending::<()>().await;
        Some(stream)
    })
}

/// A whole response with a length.
pub fn ok(headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
}

/// Wakes one visitor's task.
#[derive(Default)]
pub struct Bell(Notify);

/// For a visitor who asks without a stage.
pub fn bell() -> Arc<Bell> {
    Arc::new(Bell::default())
}

impl Waker for Bell {
    fn wake(&self, _connection: u64) {
        self.0.notify_one();
    }
}

/// A fetcher, and the clock by which things age.
pub struct Stage {
    pub fetcher: Fetcher,
    clock: Arc<AtomicU64>,
}

impl Stage {
    pub fn new(settings: FetchSettings) -> Self {
        Self::on(Handle::current(), settings)
    }

    pub fn on(runtime: Handle, settings: FetchSettings) -> Self {
        let clock = Arc::new(AtomicU64::new(1_000_000_000));
        let hands = clock.clone();
        let now = Arc::new(move || Timestamp::from_nanoseconds(hands.load(Ordering::SeqCst)));
        let fetcher = Fetcher::new(settings, runtime, now).unwrap();
        Self { fetcher, clock }
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanoseconds(self.clock.load(Ordering::SeqCst))
    }

    pub fn pass(&self, time: Duration) {
        self.clock
            .fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
    }

    /// A group of these upstreams, by the stage's clock.
    pub fn group(&self, settings: UpstreamSettings) -> Arc<Upstreams> {
        let hands = self.clock.clone();
        let now = move || Timestamp::from_nanoseconds(hands.load(Ordering::SeqCst));
        Upstreams::new(settings, Arc::new(now))
    }

    pub fn lookup(&self, request: &Request) -> Option<Arc<Stored>> {
        let key = request.key();
        self.fetcher
            .lookup(key.borrowed(), &request.headers(), self.now())
    }

    pub fn ask(&self, request: &Request) -> Visitor {
        self.try_ask(request).unwrap()
    }

    pub fn try_ask(&self, request: &Request) -> Result<Visitor, Overloaded> {
        let bell = Arc::new(Bell::default());
        let waiting = self.fetcher.ask(request.miss(), bell.clone(), 7)?;
        Ok(Visitor { waiting, bell })
    }

    /// Asks and reads to the end.
    pub async fn get(&self, request: &Request) -> Result<Answer, FetchError> {
        self.ask(request).whole().await
    }

    /// Waits until no fetch is under way.
    pub async fn settled(&self) {
        until(|| self.fetcher.flights().0 == 0).await;
    }
}

/// Waits for a condition; panics after ten seconds.
pub async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, waiting)
        .await
        .expect("the condition should have come true");
}

/// What a visitor asks for.
#[derive(Clone, Debug)]
pub struct Request {
    pub space: Space,
    pub target: String,
    pub method: Method,
    pub fields: Vec<(String, String)>,
    pub source: Source,
}

/// The space of the site that most tests are about.
pub fn own() -> Space {
    Space::Own("www.example.org".parse().unwrap())
}

impl Request {
    /// For an origin that is rescued.
    pub fn rescue(origin: &Origin, target: &str) -> Self {
        Self {
            space: Space::Origin("www.example.org".parse().unwrap(), 80),
            target: target.to_owned(),
            method: Method::GET,
            fields: Vec::new(),
            source: Source {
                place: Place::Address(origin.address),
                authority: "www.example.org".to_owned(),
                key: None,
                ttl: Duration::from_secs(60),
                purpose: Purpose::Rescue,
                company: Company::Alone,
            },
        }
    }

    /// For the site's own application.
    pub fn upstream(origin: &Origin, target: &str) -> Self {
        let mut request = Self::rescue(origin, target);
        request.space = own();
        request.source.purpose = Purpose::Upstream;
        request
    }

    /// For one of several upstreams.
    pub fn balanced(upstreams: &Arc<Upstreams>, target: &str) -> Self {
        Self {
            space: own(),
            target: target.to_owned(),
            method: Method::GET,
            fields: Vec::new(),
            source: Source {
                place: Place::Upstreams(Arc::clone(upstreams)),
                authority: "www.example.org".to_owned(),
                key: None,
                ttl: Duration::from_secs(60),
                purpose: Purpose::Upstream,
                company: Company::Alone,
            },
        }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Its space alone.
    pub fn spaces(&self) -> Spaces {
        Spaces::One(self.space.clone())
    }

    pub fn headers(&self) -> Vec<(Bytes, Bytes)> {
        let fields = self.fields.iter().cloned();
        fields
            .map(|(name, value)| (Bytes::from(name), Bytes::from(value)))
            .collect()
    }

    /// A site of our own is asked by its name, or by the Host among the fields.
    pub fn key(&self) -> ObjectKey {
        let mut hosts = self.fields.iter().filter(|(name, _)| name == "host");
        let host = hosts.next().map_or("www.example.org", |(_, host)| host);
        let base = match &self.space {
            Space::Own(_) => Bytes::from(format!("http://{host}")),
            Space::Origin(..) => Bytes::new(),
        };
        ObjectKey {
            space: self.space.clone(),
            base,
            target: Bytes::from(self.target.clone()),
        }
    }

    pub fn miss(&self) -> Miss {
        Miss {
            key: self.key(),
            method: self.method.clone(),
            headers: self.headers(),
            source: self.source.clone(),
            visitor: None,
            body: None,
        }
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub head: Arc<ResponseHead>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.head.header(name);
        value.map(|value| std::str::from_utf8(value).unwrap())
    }
}

/// Somebody who waits.
pub struct Visitor {
    pub waiting: Waiting,
    bell: Arc<Bell>,
}

impl Visitor {
    pub fn with(waiting: Waiting, bell: Arc<Bell>) -> Self {
        Self { waiting, bell }
    }

    /// The next thing that is not nothing. Hangs where nobody wakes us, so lost wakes are found.
    pub async fn next(&mut self) -> Progress {
        let limit = Duration::from_secs(20);
        let next = async {
            loop {
                let progress = self.waiting.read();
                if !matches!(progress, Progress::Nothing) {
                    return progress;
                }
                self.bell.0.notified().await;
            }
        };
        tokio::time::timeout(limit, next)
            .await
            .expect("the visitor should have been woken")
    }

    pub async fn head(&mut self) -> Result<Arc<ResponseHead>, FetchError> {
        match self.next().await {
            Progress::Head(head) => Ok(head),
            Progress::Failed(error) => Err(error),
            other @ (Progress::Nothing
            | Progress::Early(_)
            | Progress::Body(_)
            | Progress::File { .. }
            | Progress::End) => panic!("a head was expected, not {other:?}"),
        }
    }

    /// Reads at least `length` more bytes of the body.
    pub async fn bytes(&mut self, length: usize) -> Result<Vec<u8>, FetchError> {
        let mut read = Vec::new();
        while read.len() < length {
            match self.next().await {
                Progress::End => break,
                Progress::Failed(error) => return Err(error),
                progress @ (Progress::Nothing
                | Progress::Early(_)
                | Progress::Head(_)
                | Progress::Body(_)
                | Progress::File { .. }) => read.extend(content(&progress)),
            }
        }
        Ok(read)
    }

    pub async fn whole(mut self) -> Result<Answer, FetchError> {
        let head = self.head().await?;
        let body = self.bytes(usize::MAX).await?;
        Ok(Answer { head, body })
    }
}

/// The bytes of a piece, wherever they lie.
pub fn content(progress: &Progress) -> Vec<u8> {
    match progress {
        Progress::Body(bytes) => bytes.to_vec(),
        Progress::File {
            file,
            offset,
            length,
        } => {
            let mut bytes = vec![0; usize::try_from(*length).unwrap()];
            std::os::unix::fs::FileExt::read_exact_at(&***file, &mut bytes, *offset).unwrap();
            bytes
        }
        other @ (Progress::Nothing
        | Progress::Early(_)
        | Progress::Head(_)
        | Progress::End
        | Progress::Failed(_)) => {
            panic!("a piece of the body was expected, not {other:?}")
        }
    }
}
