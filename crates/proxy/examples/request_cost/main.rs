//! What one request costs its core in user space: allocations and instructions, which no noise of a
//! machine can hide.
//!
//! `cargo run --release -p levee-proxy --example request_cost`
//!
//! Allocations are counted in this process by its own allocator, while a client that allocates
//! nothing asks. Instructions are counted by valgrind's callgrind, where it is installed: this
//! program runs itself as a server under it, twice, with N and with 2N requests, and divides the
//! difference by N, so that start and end do not count. Exit status 1 if a request allocates that
//! should not; by HTTP/2 it does, and the figure is there to be watched.

mod streams;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use levee_control::{
    CrawlerNames, HostTable, Law, OriginPhase, OriginRoute, RedirectPlan, Redirects, RoutePlan,
    Target,
};
use levee_net::{Clock, CountingAllocator, Inherited};
use levee_proxy::{
    Behaviour, Content, CrawlerRules, FetchSettings, Fetcher, Folder, Front, FrontParts,
    FrontSettings, Link, Site, SiteTable, UnknownHost, Upstream, UpstreamSettings, Upstreams,
};
use levee_vocab::{ByteRate, LinkId, Misses, WebAddress};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

type Failure = Box<dyn std::error::Error>;

/// Requests measured; more for the allocations, which cost nothing to count.
const REQUESTS: u32 = 20_000;
const REQUESTS_IN_VALGRIND: u32 = 1_000;
/// A connection that comes while the one before is just being closed takes a new place in the table
/// of connections, which grows now and then: a handful in 20,000 is that and not a request's cost.
const ALLOCATIONS_MAX: f64 = 0.001;
const FIELDS: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) \
    Gecko/20100101 Firefox/140.0\r\nAccept: text/html,*/*;q=0.8\r\nAccept-Language: \
    en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\n\r\n";

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// A small file of a folder.
    File,
    /// An object of the cache in front of an application.
    Cached,
    Missing,
    Redirect,
    /// To the origin of an alias that has expired.
    Back,
    Refusal,
}

/// How the client uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connections {
    Kept,
    OneEach,
    /// One, with ten requests of HTTP/2 at a time.
    Streams,
}

/// A refusal ends its connection.
const ALL: [(Answer, Connections); 13] = [
    (Answer::File, Connections::Kept),
    (Answer::File, Connections::OneEach),
    (Answer::Cached, Connections::Kept),
    (Answer::Cached, Connections::OneEach),
    (Answer::Missing, Connections::Kept),
    (Answer::Missing, Connections::OneEach),
    (Answer::Redirect, Connections::Kept),
    (Answer::Redirect, Connections::OneEach),
    (Answer::Back, Connections::Kept),
    (Answer::Back, Connections::OneEach),
    (Answer::Refusal, Connections::OneEach),
    (Answer::File, Connections::Streams),
    (Answer::Cached, Connections::Streams),
];

impl Answer {
    const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Cached => "cached",
            Self::Missing => "missing",
            Self::Redirect => "redirect",
            Self::Back => "redirect back",
            Self::Refusal => "refusal",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Missing => "/nothing",
            Self::File | Self::Cached | Self::Redirect | Self::Back | Self::Refusal => "/page",
        }
    }

    fn request(self) -> String {
        let host = match self {
            Self::Back => "alias.example",
            Self::File | Self::Cached | Self::Missing | Self::Redirect | Self::Refusal => {
                "site.example"
            }
        };
        format!("GET {} HTTP/1.1\r\nHost: {host}\r\n{FIELDS}", self.path())
    }

    const fn status(self) -> &'static [u8] {
        match self {
            Self::File | Self::Cached => b"HTTP/1.1 200 ",
            Self::Missing => b"HTTP/1.1 404 ",
            Self::Redirect | Self::Back => b"HTTP/1.1 302 ",
            Self::Refusal => b"HTTP/1.1 503 ",
        }
    }
}

fn main() -> Result<ExitCode, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = words.as_slice()
        && flag == "--serve"
    {
        let answers = ALL.iter().map(|(answer, _)| *answer);
        let answer = answers.into_iter().find(|answer| answer.name() == name);
        let server = Server::start(answer.ok_or("no such answer")?, None)?;
        println!("{}", server.address());
        // Until whoever started this server closes its end.
        std::io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("in user space, for each request          allocations  instructions");
    let mut worst = 0.0_f64;
    for (answer, connections) in ALL {
        let name = format!("{} {connections:?}", answer.name());
        let link = ByteRate::from_kilobytes(10_000_000);
        let paced = allocations(answer, connections, Some(link))?;
        println!("{:40} {paced:11.4}", format!("{name}, on a limited link"));
        let free = allocations(answer, connections, None)?;
        match instructions(answer, connections) {
            Ok(each) => println!("{name:40} {free:11.4}  {each:12}"),
            Err(error) => println!("{name:40} {free:11.4}  not counted: {error}"),
        }
        worst = match connections {
            Connections::Kept | Connections::OneEach => worst.max(paced).max(free),
            // The library keeps maps and heads for each stream (decision record 0022).
            Connections::Streams => worst,
        };
    }
    Ok(match worst > ALLOCATIONS_MAX {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// A front with all that it needs.
struct Server {
    front: Front,
    folder: PathBuf,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    fn start(answer: Answer, link: Option<ByteRate>) -> Result<Self, Failure> {
        let folder = format!("levee-request-cost-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("page"), [b'x'; 1000])?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let fetcher = Fetcher::new(FetchSettings::default(), runtime.handle().clone(), clock())?;
        let site = Site {
            name: web("site.example")?,
            other_names: Vec::new(),
            content: content(answer, &folder)?,
        };
        let mut settings = FrontSettings::listening_on(vec![([127, 0, 0, 1], 0).into()]);
        if answer == Answer::Refusal {
            settings.gate.wait_max = Duration::ZERO;
        }
        let front = Front::bind(settings, &Inherited::default())?.start(FrontParts {
            plan: Arc::new(plan(answer)?),
            sites: Arc::new(SiteTable::new(vec![site], UnknownHost::Refuse).rationing(crawlers())),
            fetcher: Some(fetcher),
            tls: None,
            link: link.map(|rate| Arc::new(Link::new(rate))),
            log: None,
            handed_over: None,
            purge: None,
        })?;
        Ok(Self {
            front,
            folder,
            _runtime: runtime,
        })
    }

    fn address(&self) -> SocketAddr {
        self.front.local_addresses()[0]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What is left in a folder for temporary files is no failure.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// As a server has them that was told nothing else.
fn crawlers() -> CrawlerRules {
    CrawlerRules {
        names: CrawlerNames::new(&[], &[]),
        by_behaviour: Behaviour::Watched,
        allowed: Vec::new(),
        fetches_max: 1,
    }
}

fn content(answer: Answer, folder: &Path) -> Result<Content, Failure> {
    if answer != Answer::Cached {
        return Ok(Content::Folder(Arc::new(Folder::open(folder)?)));
    }
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let settings = UpstreamSettings::at(&[listener.local_addr()?]);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that breaks shows at the other end, where the answer is checked.
            let _ = application(stream);
        }
    });
    Ok(Content::Upstream(Upstream {
        servers: Upstreams::new(settings, clock()),
        authority: None,
    }))
}

/// An application that says the same to everybody, for an hour.
fn application(mut stream: TcpStream) -> std::io::Result<()> {
    let length = stream.read(&mut [0; 4096])?;
    if length > 0 {
        let body = "x".repeat(1000);
        let head = "Cache-Control: max-age=3600\r\nContent-Length: 1000\r\nConnection: close";
        write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}")?;
    }
    Ok(())
}

fn plan(answer: Answer) -> Result<RoutePlan, Failure> {
    let rate = ByteRate::from_kilobytes(100_000_000);
    let (usable, targets) = match answer {
        Answer::File | Answer::Cached | Answer::Missing => return Ok(RoutePlan::default()),
        Answer::Back => return back(),
        Answer::Refusal => (ByteRate::ZERO, Vec::new()),
        Answer::Redirect => {
            let target = Target {
                tls: None,
                link: LinkId::Outbound(1),
                slot: 1,
                alias: web("site-vh1.rescue.example")?,
                address: [192, 0, 2, 1].into(),
                rate,
            };
            (rate, vec![target])
        }
    };
    Ok(RoutePlan {
        interval: 1,
        interval_length: Duration::from_secs(3600),
        redirect: Some(RedirectPlan {
            redirects: Redirects::On,
            law: Law::Load,
            early: ByteRate::ZERO,
            hot: Arc::default(),
            direct: ByteRate::ZERO,
            direct_ceiling: ByteRate::ZERO,
            usable,
            usable_share: 0.8,
            connection_overhead: 358,
            large_file: 1_000_000,
            targets,
        }),
        ..RoutePlan::default()
    })
}

/// A plan in which the name that is asked for was an alias of ours.
fn back() -> Result<RoutePlan, Failure> {
    let origin = OriginRoute {
        tls: None,
        slot: 1,
        link: LinkId::Inbound(1),
        origin: web("origin.example")?,
        address: ([127, 0, 0, 1], 80).into(),
        alias: "alias.example".parse()?,
        key: None,
        ttl: Duration::ZERO,
        homes: None,
        misses: Misses::Fetch,
        phase: OriginPhase::Expired {
            until: Clock.now() + Duration::from_secs(3600),
        },
    };
    Ok(RoutePlan {
        hosts: HostTable {
            names: [(origin.alias.clone(), 0)].into_iter().collect(),
            origins: vec![Arc::new(origin)],
        },
        ..RoutePlan::default()
    })
}

fn clock() -> levee_proxy::Clock {
    Arc::new(|| Clock.now())
}

fn web(host: &str) -> Result<WebAddress, Failure> {
    Ok(WebAddress {
        host: host.parse()?,
        port: 80,
    })
}

fn allocations(
    answer: Answer,
    connections: Connections,
    link: Option<ByteRate>,
) -> Result<f64, Failure> {
    let server = Server::start(answer, link)?;
    let client = Client {
        address: server.address(),
        request: answer.request(),
        answer,
        connections,
    };
    // Buffers, tables and the page itself come with the first requests.
    client.ask(REQUESTS / 4)?;
    let before = ALLOCATOR.allocations();
    client.ask(REQUESTS)?;
    let after = ALLOCATOR.allocations();
    Ok((after - before) as f64 / f64::from(REQUESTS))
}

/// Whoever asks.
struct Client {
    address: SocketAddr,
    request: String,
    answer: Answer,
    connections: Connections,
}

impl Client {
    /// Asks `count` times, without an allocation of its own.
    fn ask(&self, count: u32) -> Result<(), Failure> {
        if self.connections == Connections::Streams {
            return streams::ask(self.address, count);
        }
        let mut buffer = [0; 4096];
        let mut stream = TcpStream::connect(self.address)?;
        for number in 0..count {
            if number > 0 && self.connections == Connections::OneEach {
                stream = TcpStream::connect(self.address)?;
            }
            stream.write_all(self.request.as_bytes())?;
            let mut length = 0;
            // What was fetched comes in pieces the first time.
            while !is_whole(&buffer[..length]) {
                let read = stream.read(&mut buffer[length..])?;
                if read == 0 {
                    return Err("an answer ended too early".into());
                }
                length += read;
            }
            if !buffer.starts_with(self.answer.status()) {
                let text = String::from_utf8_lossy(&buffer[..length]);
                return Err(format!("{} expected, not {text}", self.answer.name()).into());
            }
        }
        Ok(())
    }
}

/// Whether `bytes` are an answer to its end.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else {
        return false;
    };
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, value)| value.parse().ok());
    length.is_some_and(|length: usize| bytes.len() >= end + 4 + length)
}

/// User-space instructions of one request, with its share of the turns of the event loop.
fn instructions(answer: Answer, connections: Connections) -> Result<u64, Failure> {
    let once = collected(answer, connections, REQUESTS_IN_VALGRIND)?;
    let twice = collected(answer, connections, 2 * REQUESTS_IN_VALGRIND)?;
    Ok(twice.saturating_sub(once) / u64::from(REQUESTS_IN_VALGRIND))
}

/// Instructions of a whole server that answers `count` requests.
fn collected(answer: Answer, connections: Connections, count: u32) -> Result<u64, Failure> {
    let mut server = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["--serve", answer.name()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = server.stdout.take().ok_or("the server has no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let asked = line.trim().parse().map_err(Failure::from);
    let asked = asked.and_then(|address| {
        let client = Client {
            address,
            request: answer.request(),
            answer,
            connections,
        };
        client.ask(count)
    });
    // Also ends the server where something went wrong.
    drop(server.stdin.take());
    let output = server.wait_with_output()?;
    asked?;
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text
        .lines()
        .filter_map(|line| line.split_once("Collected :"));
    let (_, number) = lines.next().ok_or("callgrind gave no figure")?;
    Ok(number.trim().parse()?)
}
