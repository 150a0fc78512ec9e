//! A front on a free port, a client that reads exactly one response, and a scripted origin.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use levee_control::{Law, OriginPhase, OriginRoute, RedirectPlan, Redirects, RoutePlan, Target};
use levee_net::Inherited;
use levee_proxy::{
    Content, CrawlerRules, FetchSettings, Fetcher, Folder, Front, FrontParts, FrontSettings,
    HandedOverLog, Link, PurgeInlet, Sample, Site, SiteTable, TlsOffer, UnknownHost, Upstream,
    UpstreamSettings, Upstreams,
};
use levee_vocab::{AddressBlock, ByteRate, HostName, LinkId, Misses, WebAddress};
use levee_wire::ProxyVersion;

/// Longest that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How to start a front; change what a test is about.
pub struct Setup {
    pub settings: FrontSettings,
    pub fetch: FetchSettings,
    pub plan: RoutePlan,
    pub tls: Option<TlsOffer>,
    pub link: Option<ByteRate>,
    pub unknown: UnknownHost,
    pub upstream: Option<SocketAddr>,
    /// How the upstream is told who a visitor is.
    pub told_by: Option<ProxyVersion>,
    pub trusted: Vec<AddressBlock>,
    pub crawlers: Option<CrawlerRules>,
    pub handed_over: Option<HandedOverLog>,
    pub purge: Option<PurgeInlet>,
    pub purge_from: Vec<AddressBlock>,
}

/// A running front and its folder.
pub struct Running {
    pub front: Front,
    pub address: SocketAddr,
    /// Where HTTPS is spoken.
    pub tls_address: Option<SocketAddr>,
    pub fetcher: Fetcher,
    folder: tempfile::TempDir,
    // Held so that fetches have somewhere to run.
    _runtime: tokio::runtime::Runtime,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: FrontSettings::listening_on(vec![(Ipv4Addr::LOCALHOST, 0).into()]),
            fetch: FetchSettings::default(),
            plan: RoutePlan::default(),
            tls: None,
            link: None,
            unknown: UnknownHost::Refuse,
            upstream: None,
            told_by: None,
            trusted: Vec::new(),
            crawlers: None,
            handed_over: None,
            purge: None,
            purge_from: Vec::new(),
        }
    }
}

impl Setup {
    pub fn start(self) -> Running {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let clock: levee_proxy::Clock = Arc::new(|| levee_net::Clock.now());
        let content = match self.upstream {
            Some(address) => {
                let mut settings = UpstreamSettings::at(&[address]);
                settings.proxy_protocol = self.told_by;
                Content::Upstream(Upstream {
                    servers: Upstreams::new(settings, Arc::clone(&clock)),
                    authority: None,
                })
            }
            None => Content::Folder(Arc::new(Folder::open(folder.path()).unwrap())),
        };
        let fetcher = Fetcher::new(self.fetch, runtime.handle().clone(), clock);
        let fetcher = fetcher.unwrap();
        let mut settings = self.settings;
        if self.tls.is_some() {
            settings.listen_tls = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()];
        }
        let sites = SiteTable::new(vec![site(content)], self.unknown)
            .with_purge_from(self.purge_from)
            .trusting(self.trusted);
        let bound = Front::bind(settings, &Inherited::default()).unwrap();
        let tls_address = bound.local_tls_addresses().first().copied();
        let front = bound.start(FrontParts {
            plan: Arc::new(self.plan),
            sites: Arc::new(match self.crawlers {
                Some(rules) => sites.rationing(rules),
                None => sites,
            }),
            fetcher: Some(fetcher.clone()),
            tls: self.tls,
            link: self.link.map(|rate| Arc::new(Link::new(rate))),
            log: None,
            handed_over: self.handed_over,
            purge: self.purge,
        });
        let front = front.unwrap();
        Running {
            address: front.local_addresses()[0],
            tls_address,
            fetcher,
            front,
            folder,
            _runtime: runtime,
        }
    }
}

fn site(content: Content) -> Site {
    Site {
        name: web("site.example", 80),
        other_names: Vec::new(),
        content,
    }
}

impl Running {
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn connect(&self) -> Client {
        Client::to(self.address)
    }

    /// The response to one request on a connection of its own.
    pub fn ask(&self, request: &str) -> Response {
        let mut client = self.connect();
        client.send(request);
        client.receive()
    }

    /// The response to a GET at our own name.
    pub fn get(&self, target: &str) -> Response {
        self.ask(&get(target))
    }

    /// Asks until the answer comes from the cache: whoever reads the end of a fetch may be
    /// answered before the object is kept.
    pub fn ask_until_kept(&self, request: &str) -> Response {
        let started = Instant::now();
        loop {
            let response = self.ask(request);
            if response.header("cache-status").contains("; hit") {
                return response;
            }
            assert!(started.elapsed() < PATIENCE, "never kept: {response:?}");
        }
    }

    /// Takes samples until one fits.
    pub fn sample_until(&self, mut fits: impl FnMut(&Sample) -> bool) -> Sample {
        let started = Instant::now();
        loop {
            let sample = self.front.sample();
            if fits(&sample) {
                return sample;
            }
            assert!(started.elapsed() < PATIENCE, "never came: {sample:?}");
            std::thread::yield_now();
        }
    }

    /// The same, where the cores have to look who takes what they have for him.
    pub fn look_until(&self, mut fits: impl FnMut(&Sample) -> bool) {
        self.sample_until(|sample| {
            drop(self.front.take_notes());
            fits(sample)
        });
    }

    /// Nobody brought back that a copy is missing: waits until what the cores noted was told.
    pub fn tells_nothing_missing(&self) {
        let mut arrivals = 0;
        self.sample_until(|_| {
            let notes = self.front.take_notes();
            assert_eq!(notes.missing, []);
            arrivals += notes.arrivals.len();
            arrivals > 0
        });
    }

    pub fn publish(&self, plan: RoutePlan) {
        self.front.publish(&Arc::new(plan), &[]);
    }
}

pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: site.example\r\n\r\n")
}

pub fn web(host: &str, port: u16) -> WebAddress {
    WebAddress {
        host: host.parse().unwrap(),
        port,
    }
}

/// A plan that redirects everything to `alias` with plenty of room.
pub fn redirecting(alias: &str) -> RoutePlan {
    RoutePlan {
        version: 1,
        interval: 1,
        interval_length: Duration::from_secs(3600),
        redirect: Some(RedirectPlan {
            redirects: Redirects::On,
            law: Law::Load,
            early: ByteRate::ZERO,
            hot: Arc::default(),
            direct: ByteRate::ZERO,
            direct_ceiling: ByteRate::ZERO,
            usable: ByteRate::from_kilobytes(1_000_000),
            usable_share: 0.8,
            connection_overhead: 358,
            large_file: 1_000_000_000,
            targets: vec![Target {
                tls: None,
                link: LinkId::Outbound(1),
                slot: 7,
                alias: web(alias, 8080),
                address: [192, 0, 2, 1].into(),
                rate: ByteRate::from_kilobytes(1_000_000),
            }],
        }),
        ..RoutePlan::default()
    }
}

/// A plan that knows one origin by its name and its alias.
pub fn rescuing(address: SocketAddr, phase: OriginPhase) -> RoutePlan {
    let alias: HostName = "site-vh1.alias.example".parse().unwrap();
    let origin = web("origin.example", 8080);
    let mut plan = RoutePlan::default();
    plan.hosts.names.insert(alias.clone(), 0);
    plan.hosts.names.insert(origin.host.clone(), 0);
    plan.hosts.origins.push(Arc::new(OriginRoute {
        tls: None,
        slot: 9,
        link: LinkId::Inbound(1),
        origin,
        address,
        alias,
        key: Some("0123456789abcdef0123456789abcdef".parse().unwrap()),
        ttl: Duration::from_secs(60),
        homes: None,
        misses: Misses::Fetch,
        phase,
    }));
    plan
}

/// One connection to a front.
pub struct Client {
    reader: BufReader<TcpStream>,
}

/// One response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// The whole head, with the empty line.
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    /// The first value of a header; empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut named = lines.filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.next().map_or("", |(_, value)| value)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    /// Where it comes from.
    pub fn address(&self) -> SocketAddr {
        self.reader.get_ref().local_addr().unwrap()
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// The next response.
    pub fn receive(&mut self) -> Response {
        self.receive_as(Expect::Body)
    }

    /// The response to a HEAD.
    pub fn receive_head(&mut self) -> Response {
        self.receive_as(Expect::HeadOnly)
    }

    fn receive_as(&mut self, expect: Expect) -> Response {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.reader.read_line(&mut head).unwrap();
            assert!(read > 0, "the connection ended after {head:?}");
        }
        let status = head[9..12].parse().unwrap();
        let mut response = Response {
            status,
            head,
            body: Vec::new(),
        };
        if expect == Expect::HeadOnly || matches!(status, 100 | 204 | 304) {
            return response;
        }
        if response.header("transfer-encoding") == "chunked" {
            response.body = self.chunks();
        } else {
            let length: usize = response.header("content-length").parse().unwrap();
            response.body.resize(length, 0);
            self.reader.read_exact(&mut response.body).unwrap();
        }
        response
    }

    fn chunks(&mut self) -> Vec<u8> {
        self.read_chunks().unwrap()
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
            let start = body.len();
            body.resize(start + length + 2, 0);
            self.reader.read_exact(&mut body[start..])?;
            assert!(body.ends_with(b"\r\n"));
            body.truncate(start + length);
            if length == 0 {
                return Ok(body);
            }
        }
    }

    /// What comes until the other side closes; a reset counts as the end.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.reader.read_to_end(&mut rest);
        rest
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Body,
    HeadOnly,
}

/// A server that answers each connection's only request with what `answer` makes of it. One that
/// breaks off half-way gets no answer, and the next is served all the same.
pub fn origin(answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let reader = BufReader::new(stream.unwrap());
            // It is the other side's to say what it lacks.
            let _ = answer_once(Client { reader }, &answer);
        }
    });
    address
}

fn answer_once(mut client: Client, answer: impl Fn(&str) -> String) -> io::Result<()> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if client.reader.read_line(&mut head)? == 0 {
            break;
        }
    }
    if head.is_empty() {
        return Ok(());
    }
    let body = match head.to_lowercase().contains("transfer-encoding: chunked") {
        true => client.read_chunks()?,
        false => body_of(&head, &mut client)?,
    };
    head.push_str(&String::from_utf8_lossy(&body));
    let answer = answer(&head);
    client.reader.get_mut().write_all(answer.as_bytes())
}

fn body_of(head: &str, client: &mut Client) -> io::Result<Vec<u8>> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths
        .next()
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    client.reader.read_exact(&mut body)?;
    Ok(body)
}
