//! Those who do not play by the rules: rescue servers and registries of the test's own, with keys
//! of members, and the crowd that makes an origin call for help.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use levee::drill::Scheme;
use levee::trust::{Channel, CommunityStream, Trust};
use levee_wire::registry::{Request, encode_list, parse_list_request, parse_request, sign_answer};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, split,
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::broadcast;
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;

use super::stage::{PAGES, PATIENCE, Site, body_of, page, runtime};

/// What a rescue server of the test does with visitors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// It gives them what the origin has published.
    Honest,
    /// It changes a word on every page.
    Alters,
    /// It does so for those who come by HTTPS.
    AltersByHttps,
    /// It sends everybody elsewhere.
    Misleads,
    /// It sends everybody back with a word that it has not signed.
    SendsBack,
    /// Its link carries a hundredth of what it promises.
    Boasts,
    /// It has everybody sent to a machine that is not its own.
    PointsElsewhere,
}

/// Where no member is. An address is a name that needs no DNS.
pub const BYSTANDER: &str = "127.0.0.99";

impl Conduct {
    /// What it says that it takes, in kB/s: so little that others are asked as well, or all.
    const fn rate(self) -> u32 {
        match self {
            Self::Honest | Self::Alters | Self::AltersByHttps | Self::Misleads => 20,
            Self::SendsBack | Self::Boasts | Self::PointsElsewhere => 900,
        }
    }
}

/// A rescue server that says yes to every call for help.
pub struct Player {
    /// Where it takes calls.
    pub rescue: SocketAddr,
    /// Where it serves visitors.
    pub web: SocketAddr,
    /// Lines that it has heard.
    heard: Arc<Mutex<Vec<String>>>,
    sayings: broadcast::Sender<String>,
}

impl Player {
    /// One who has the key of `trust`.
    pub fn starts(trust: Arc<Trust>, conduct: Conduct) -> Self {
        let (links, rescue) = listens();
        let (visitors, web) = listens();
        let (secure, tls) = listens();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let (sayings, _) = broadcast::channel(16);
        let scene = Arc::new(Scene {
            trust,
            conduct,
            web,
            tls,
            heard: Arc::clone(&heard),
            sayings: sayings.clone(),
            source: Mutex::default(),
            link: tokio::sync::Mutex::default(),
        });
        plays(async move {
            let links = TcpListener::from_std(links).unwrap();
            let visitors = TcpListener::from_std(visitors).unwrap();
            let secure = TcpListener::from_std(secure).unwrap();
            let acceptor = acceptor();
            loop {
                let scene = Arc::clone(&scene);
                tokio::select! {
                    Ok((link, _)) = links.accept() => {
                        tokio::spawn(async move { scene.help(link).await });
                    }
                    Ok((visitor, _)) = visitors.accept() => {
                        tokio::spawn(async move { scene.serve(visitor, Scheme::Http).await });
                    }
                    Ok((visitor, _)) = secure.accept() => {
                        let handshake = acceptor.accept(visitor);
                        tokio::spawn(async move {
                            scene.serve(handshake.await.ok()?, Scheme::Https).await
                        });
                    }
                }
            }
        });
        Self {
            rescue,
            web,
            heard,
            sayings,
        }
    }

    /// Waits until a line with these words has come.
    pub fn hears(&self, words: &str) {
        until(&format!("the player hears {words}"), || {
            self.has_heard(words)
        });
    }

    pub fn has_heard(&self, words: &str) -> bool {
        let heard = self.heard.lock().unwrap();
        heard.iter().any(|line| line.contains(words))
    }

    /// The alias under which it serves.
    pub fn alias(&self) -> String {
        alias_at(self.web.port())
    }

    /// Says a line to every origin that it helps.
    pub fn says(&self, line: &str) {
        self.sayings.send(line.to_owned()).unwrap();
    }
}

/// Bytes a second that the link of a boaster carries.
const TRUE_RATE: u32 = 9_000;

fn alias_at(port: u16) -> String {
    format!("vh{port}.player.test:{port}")
}

struct Scene {
    trust: Arc<Trust>,
    conduct: Conduct,
    web: SocketAddr,
    /// Where it serves visitors by HTTPS.
    tls: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    sayings: broadcast::Sender<String>,
    source: Mutex<Shelf>,
    /// Carries one page after the other.
    link: tokio::sync::Mutex<()>,
}

/// Where to fetch from, and what was fetched.
#[derive(Default)]
struct Shelf {
    /// The origin's name and port, where it is, and the key to fetch with.
    origin: Option<(String, SocketAddr, String)>,
    /// Responses by target.
    kept: BTreeMap<String, Vec<u8>>,
}

impl Scene {
    async fn help(&self, link: TcpStream) -> Option<()> {
        let (stream, _) = self.trust.accept(link, Channel::Rescue).await.ok()?;
        let (reader, mut writer) = split(stream);
        let mut lines = BufReader::new(reader).lines();
        let mut sayings = self.sayings.subscribe();
        loop {
            let answer = tokio::select! {
                line = lines.next_line() => self.answer(&line.ok()??),
                saying = sayings.recv() => saying.ok().map(|line| format!("{line}\n")),
            };
            if let Some(answer) = answer {
                writer.write_all(answer.as_bytes()).await.ok()?;
                writer.flush().await.ok()?;
            }
        }
    }

    fn answer(&self, line: &str) -> Option<String> {
        self.heard.lock().unwrap().push(line.to_owned());
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            [number, "SOS", name, address, port, ..] => {
                let key = words.iter().find_map(|word| word.strip_prefix("key="))?;
                let at = format!("{address}:{port}").parse().unwrap();
                let origin = (format!("{name}:{port}"), at, key.to_owned());
                self.source.lock().unwrap().origin = Some(origin);
                let (web, rate) = (self.web.port(), self.conduct.rate());
                let alias = alias_at(web);
                let alias = match self.conduct == Conduct::PointsElsewhere {
                    true => BYSTANDER,
                    false => alias.split(':').next()?,
                };
                let by_https = self.conduct == Conduct::AltersByHttps;
                let tls = match by_https {
                    true => format!(" tls={}", self.tls.port()),
                    false => String::new(),
                };
                Some(format!(
                    "{number} 200 OK {alias} 127.0.0.1 {web} {rate}{tls}\n"
                ))
            }
            // It answers.
            [_, code, ..] if code.parse::<u16>().is_ok() => None,
            [number, ..] => Some(format!("{number} 200 OK\n")),
            [] => None,
        }
    }

    async fn serve<S>(&self, visitor: S, scheme: Scheme) -> Option<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (reader, mut writer) = split(visitor);
        let mut lines = BufReader::new(reader).lines();
        let first = lines.next_line().await.ok()??;
        let target = first.split(' ').nth(1)?.to_owned();
        while !lines.next_line().await.ok()??.is_empty() {}
        let response = match self.conduct {
            Conduct::Honest | Conduct::PointsElsewhere => self.fetch(&target).await?,
            Conduct::Alters => altered(&self.fetch(&target).await?),
            Conduct::AltersByHttps => match scheme {
                Scheme::Http => self.fetch(&target).await?,
                Scheme::Https => altered(&self.fetch(&target).await?),
            },
            Conduct::Misleads => ELSEWHERE.as_bytes().to_vec(),
            Conduct::SendsBack => self.sent_back(&target)?,
            Conduct::Boasts => {
                let page = self.fetch(&target).await?;
                let _turn = self.link.lock().await;
                let bytes = u32::try_from(page.len()).ok()?;
                tokio::time::sleep(Duration::from_secs(1) * bytes / TRUE_RATE).await;
                page
            }
        };
        writer.write_all(&response).await.ok()?;
        writer.shutdown().await.ok()
    }

    fn sent_back(&self, target: &str) -> Option<Vec<u8>> {
        let (host, _, _) = self.source.lock().unwrap().origin.clone()?;
        // Who came back before goes back with the word that he has.
        let word = match target.contains("levee-back=") {
            true => "",
            false => "?levee-back=",
        };
        let location = format!("http://{host}{target}{word}");
        let head = "HTTP/1.1 302 Found\r\nconnection: close\r\ncontent-length: 0\r\n";
        Some(format!("{head}location: {location}\r\n\r\n").into_bytes())
    }

    /// What the origin says, asked once.
    async fn fetch(&self, target: &str) -> Option<Vec<u8>> {
        let kept = self.source.lock().unwrap().kept.get(target).cloned();
        if let Some(kept) = kept {
            return Some(kept);
        }
        let (host, at, key) = self.source.lock().unwrap().origin.clone()?;
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: {host}\r\nlevee-fetch: {key}\r\n\
             accept-encoding: identity\r\nconnection: close\r\n\r\n"
        );
        let mut origin = TcpStream::connect(at).await.ok()?;
        origin.write_all(request.as_bytes()).await.ok()?;
        let mut response = Vec::new();
        origin.read_to_end(&mut response).await.ok()?;
        if response.starts_with(b"HTTP/1.1 200") {
            let mut source = self.source.lock().unwrap();
            source.kept.insert(target.to_owned(), response.clone());
        }
        Some(response)
    }
}

/// The same page with one word changed, of the same length.
fn altered(response: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(response).into_owned();
    text.replace("nobody else", "anybody can").into_bytes()
}

/// Where visitors of no page of the origin are sent.
const ELSEWHERE: &str = "HTTP/1.1 302 Found\r\nlocation: http://www.evil.test/\r\n\
                         connection: close\r\ncontent-length: 0\r\n\r\n";

/// A server that answers whoever connects in clear, before it has heard anything.
pub fn answers_in_clear() -> SocketAddr {
    let (listener, at) = listens();
    plays(async move {
        let listener = TcpListener::from_std(listener).unwrap();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream
                .write_all(b"1 200 OK vh1.player.test 127.0.0.1 80 900\n")
                .await;
        }
    });
    at
}

/// A registry that says what it likes, with the key of one that the authority has named.
pub struct Liar {
    pub at: SocketAddr,
    entries: Arc<Mutex<Vec<String>>>,
}

impl Liar {
    /// It hands out `list`, and takes every registration.
    pub fn starts(trust: Arc<Trust>, list: String) -> Self {
        let (listener, at) = listens();
        let entries = Arc::<Mutex<Vec<String>>>::default();
        let said = Arc::clone(&entries);
        plays(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (trust, said, list) = (Arc::clone(&trust), Arc::clone(&said), list.clone());
                tokio::spawn(async move {
                    let (stream, _) = trust.accept(stream, Channel::Registry).await.ok()?;
                    lie(stream, &trust, &list, &said).await
                });
            }
        });
        Self { at, entries }
    }

    /// From now on every search finds these, as they stand after `210 ENTRY`.
    pub fn finds(&self, entries: &[String]) {
        entries.clone_into(&mut self.entries.lock().unwrap());
    }
}

async fn lie(
    stream: CommunityStream,
    trust: &Trust,
    list: &str,
    said: &Mutex<Vec<String>>,
) -> Option<()> {
    let (reader, mut writer) = split(stream);
    let mut lines = BufReader::new(reader).lines();
    loop {
        let line = lines.next_line().await.ok()??;
        let mut answer = Vec::new();
        if let Some((number, _)) = parse_list_request(line.as_bytes()) {
            encode_list(number, Some(list), &mut answer);
        } else {
            let (number, request) = parse_request(line.as_bytes()).ok()?;
            let entries = said.lock().unwrap().clone();
            answer = answer_of(number, &request, &entries, trust);
        }
        writer.write_all(&answer).await.ok()?;
        writer.flush().await.ok()?;
    }
}

fn answer_of(number: u32, request: &Request, entries: &[String], trust: &Trust) -> Vec<u8> {
    let Request::Search(search) = request else {
        return format!("{number} 200 OK 30\n").into_bytes();
    };
    let count = entries.len();
    let lines = entries.iter();
    let mut answer: String = lines
        .map(|entry| format!("{number} 210 ENTRY {entry}\n"))
        .collect();
    answer.push_str(&format!("{number} 200 OK {count}\n"));
    let mut answer = answer.into_bytes();
    if let Some(nonce) = search.nonce {
        sign_answer(&mut answer, |lines| trust.answer_signature(nonce, lines));
    }
    answer
}

/// Visitors of an origin, more than its link carries. They follow redirects, and go with it.
pub struct Crowd {
    seen: Arc<Mutex<Vec<Visit>>>,
    _gone: tokio::sync::oneshot::Sender<()>,
}

/// How a visit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub redirects: usize,
    pub end: VisitEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitEnd {
    /// The page as it was published.
    Right,
    /// Another page.
    Wrong,
    /// A server has no room: 503.
    Refused,
    /// No whole answer.
    Lost,
}

/// Visitors a second who overrun a thin link three times.
const RUSH: u32 = 40;
/// More is a loop.
const REDIRECTS_MAX: usize = 8;

impl Crowd {
    pub fn comes_to(site: &Site) -> Self {
        let seen = Arc::<Mutex<Vec<Visit>>>::default();
        let (gone, mut left) = tokio::sync::oneshot::channel();
        let (records, authority) = (Arc::clone(&seen), site.web.to_string());
        plays(async move {
            let mut ticks = interval(Duration::from_secs(1) / RUSH);
            for number in 0_u16.. {
                tokio::select! {
                    _ = ticks.tick() => {}
                    _ = &mut left => return,
                }
                let (records, authority) = (Arc::clone(&records), authority.clone());
                // Each comes from a network of his own.
                let [high, low] = number.to_be_bytes();
                let from = Ipv4Addr::new(127, 1 + high, low, 1);
                let page = page(u32::from(number) % PAGES);
                tokio::spawn(async move {
                    let visit = visit(from, &authority, &page).await;
                    records.lock().unwrap().push(visit);
                });
            }
        });
        Self { seen, _gone: gone }
    }

    /// Waits until so many more visits have ended like this.
    pub fn meets(&self, more: usize, end: VisitEnd) {
        let count = || {
            let seen = self.seen();
            seen.iter().filter(|visit| visit.end == end).count()
        };
        let before = count();
        until(&format!("{more} visits that end {end:?}"), || {
            count() >= before + more
        });
    }

    pub fn seen(&self) -> Vec<Visit> {
        self.seen.lock().unwrap().clone()
    }
}

async fn visit(from: Ipv4Addr, authority: &str, path: &str) -> Visit {
    let (mut authority, mut target) = (authority.to_owned(), path.to_owned());
    let mut redirects = 0;
    loop {
        let answer = timeout(PATIENCE, get(from, &authority, &target)).await;
        let Ok(Some(answer)) = answer else {
            let end = VisitEnd::Lost;
            return Visit { redirects, end };
        };
        let location = answer.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .starts_with("location: ")
                .then(|| &line[10..])
        });
        let next = location.and_then(|next| next.strip_prefix("http://"));
        if let Some((host, path)) = next.and_then(|next| Some(next.split_at(next.find('/')?)))
            && redirects < REDIRECTS_MAX
        {
            (authority, target) = (host.to_owned(), path.to_owned());
            redirects += 1;
            continue;
        }
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let end = match answer.get(9..12) {
            Some("200") if body == body_of(path) => VisitEnd::Right,
            Some("200") => VisitEnd::Wrong,
            Some("503") => VisitEnd::Refused,
            Some(_) | None => VisitEnd::Lost,
        };
        return Visit { redirects, end };
    }
}

/// Every name is this machine.
async fn get(from: Ipv4Addr, authority: &str, target: &str) -> Option<String> {
    let port: u16 = authority.rsplit_once(':')?.1.parse().ok()?;
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind((from, 0).into()).ok()?;
    let mut stream = socket
        .connect((Ipv4Addr::LOCALHOST, port).into())
        .await
        .ok()?;
    let request =
        format!("GET {target} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    String::from_utf8(answer).ok()
}

/// Shows a certificate of its own making: who alters pages has one that browsers believe.
fn acceptor() -> TlsAcceptor {
    let names = vec!["*.player.test".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    Arc::new(config).into()
}

fn listens() -> (std::net::TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// Plays on a thread of its own until the test ends.
fn plays(part: impl Future<Output = ()> + Send + 'static) {
    thread::spawn(move || runtime().block_on(part));
}

/// Looks until it is so.
pub fn until(what: &str, mut is_it: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !is_it() {
        assert!(std::time::Instant::now() < end, "waited too long: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
