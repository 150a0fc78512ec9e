//! Copies between two servers in one process: the cores of an origin, its replicator, and the cores
//! of a rescue server.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee::replicator::{CopiedSite, Copying, Replicator};
use levee::settings::CopiedLinks;
use levee_control::{
    CopyMeans, CopyOrder, CopyOutcome, Embedded, Input, OriginPhase, OriginRoute, Parameters,
    RoutePlan,
};
use levee_net::{Clock, Inherited};
use levee_proxy::{
    Content, FetchSettings, Fetcher, Folder, Front, FrontParts, FrontSettings, ObjectKey, Sample,
    Site, SiteTable, Space, UnknownHost,
};
use levee_vocab::{ByteRate, FetchKey, LinkId, Misses, WebAddress};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

const LINK: LinkId = LinkId::Outbound(1);
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with a folder of its own.
struct Server {
    front: Arc<Front>,
    fetcher: Fetcher,
    folder: TempDir,
    address: SocketAddr,
}

/// An origin, its replicator, and what that says.
struct Stage {
    origin: Server,
    replicator: Replicator,
    site: watch::Sender<CopiedSite>,
    told: mpsc::Receiver<Input>,
    charged: Arc<std::sync::atomic::AtomicU64>,
}

fn key() -> FetchKey {
    FetchKey::from_bytes([7; 16])
}

fn web(host: &str, port: u16) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port }
}

fn server(name: &str, plan: RoutePlan) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let clock: levee_proxy::Clock = Arc::new(|| Clock.now());
    let fetcher = Fetcher::new(FetchSettings::default(), Handle::current(), clock).unwrap();
    let settings = FrontSettings::listening_on(vec![(Ipv4Addr::LOCALHOST, 0).into()]);
    let bound = Front::bind(settings, &Inherited::default()).unwrap();
    let address = bound.local_addresses()[0];
    let site = Site {
        name: web(name, address.port()),
        other_names: vec!["static.example".parse().unwrap()],
        content: Content::Folder(Arc::new(Folder::open(folder.path()).unwrap())),
    };
    let parts = FrontParts {
        plan: Arc::new(plan),
        sites: Arc::new(SiteTable::new(vec![site], UnknownHost::Refuse)),
        fetcher: Some(fetcher.clone()),
        tls: None,
        link: None,
        log: None,
        handed_over: None,
        purge: None,
    };
    let front = Arc::new(bound.start(parts).unwrap());
    Server {
        front,
        fetcher,
        folder,
        address,
    }
}

fn stage() -> Stage {
    let origin = server(
        "origin.example",
        RoutePlan {
            fetch_keys: vec![(LINK, key())],
            ..RoutePlan::default()
        },
    );
    let (site, seen) = watch::channel(CopiedSite {
        web: web("origin.example", origin.address.port()),
        https: Some(8443),
        names: vec!["static.example".parse().unwrap()],
        links: CopiedLinks::Kept,
        publisher: None,
    });
    let charged = Arc::<std::sync::atomic::AtomicU64>::default();
    let counter = Arc::clone(&charged);
    let charge = Arc::new(move |bytes| {
        counter.fetch_add(bytes, std::sync::atomic::Ordering::SeqCst);
    });
    let (events, told) = mpsc::channel(64);
    let copying = Copying::new(seen, ByteRate::from_kilobytes(54), charge);
    Stage {
        replicator: Replicator::start(&origin.front, copying, events),
        site,
        origin,
        told,
        charged,
    }
}

impl Stage {
    /// What the origin's cores have counted, once they have counted anything: a core counts what
    /// it has sent after others may have read it.
    async fn counted(&self) -> Sample {
        let counted = async {
            loop {
                let sample = self.origin.front.sample();
                if sample.bytes > 0 {
                    return sample;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, counted).await.unwrap()
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.origin.folder.path().join(name), content).unwrap();
    }

    /// A rescue server, which is known to the replicator.
    fn rescued(&mut self) -> Server {
        let mut plan = RoutePlan::default();
        plan.hosts.names.insert("vh1.example".parse().unwrap(), 0);
        plan.hosts.origins.push(Arc::new(OriginRoute {
            tls: None,
            slot: 1,
            link: LinkId::Inbound(1),
            origin: self.space_of_origin(),
            address: self.origin.address,
            alias: "vh1.example".parse().unwrap(),
            key: Some(key()),
            ttl: Duration::from_secs(60),
            homes: None,
            misses: Misses::Fetch,
            phase: OriginPhase::Live,
        }));
        let server = server("rescue.example", plan);
        self.accept(server.address);
        server
    }

    fn accept(&mut self, address: SocketAddr) {
        let accepted = Input::RescueAccepted {
            tls: None,
            link: LINK,
            alias: web("vh1.example", address.port()),
            address: address.ip(),
            rate: ByteRate::from_kilobytes(1000),
            key: key(),
            beats: true,
            drill: false,
        };
        self.replicator.note(&accepted, &RoutePlan::default());
    }

    fn space_of_origin(&self) -> WebAddress {
        web("origin.example", self.origin.address.port())
    }

    fn order(&self, path: &str, means: CopyMeans, embedded: Embedded) -> Option<Input> {
        self.replicator.order(CopyOrder {
            link: LINK,
            url: format!("origin.example{path}"),
            means,
            embedded,
        })
    }

    async fn next(&mut self) -> Input {
        timeout(PATIENCE, self.told.recv()).await.unwrap().unwrap()
    }

    /// Orders a copy and waits for its end.
    async fn copy(&mut self, path: &str, means: CopyMeans) -> CopyOutcome {
        assert_eq!(self.order(path, means, Embedded::Without), None);
        let Input::CopyEnded { link, url, outcome } = self.next().await else {
            panic!("the end of the copy was to be told");
        };
        assert_eq!((link, url), (LINK, format!("origin.example{path}")));
        outcome
    }

    /// What `server` holds of the origin for a visitor.
    fn held(&self, server: &Server, path: &str) -> Option<String> {
        let WebAddress { host, port } = self.space_of_origin();
        let key = ObjectKey {
            space: Space::Origin(host, port),
            base: "".into(),
            target: path.to_owned().into(),
        };
        let headers = vec![("accept-encoding".into(), "gzip".into())];
        let stored = server
            .fetcher
            .lookup(key.borrowed(), &headers, Clock.now())?;
        let levee_proxy::Body::Memory(bytes) = &stored.body else {
            panic!("so small an object is in memory");
        };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_copy_is_what_a_fetch_would_have_brought_and_is_counted_as_one() {
    let mut stage = stage();
    let rescue = stage.rescued();
    stage.write("a.txt", "hello");
    assert_eq!(
        stage.copy("/a.txt", CopyMeans::Push).await,
        CopyOutcome::Held
    );
    assert_eq!(stage.held(&rescue, "/a.txt").unwrap(), "hello");
    let counters = rescue.fetcher.counters();
    assert_eq!((counters.fetches, counters.copies["stored"]), (0, 1));
    let sample = stage.counted().await;
    assert_eq!(sample.fetches_served, 1);
    let sent = stage.replicator.counts().read();
    assert_eq!((sent.held, sent.bytes), (1, sample.bytes));
    // It is held already.
    assert_eq!(
        stage.copy("/a.txt", CopyMeans::Push).await,
        CopyOutcome::Held
    );
    assert_eq!(rescue.fetcher.counters().copies["held"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pulled_copy_is_fetched_and_the_word_for_it_is_charged() {
    let mut stage = stage();
    let rescue = stage.rescued();
    stage.write("a.txt", "hello");
    assert_eq!(
        stage.copy("/a.txt", CopyMeans::Pull).await,
        CopyOutcome::Held
    );
    assert_eq!(stage.held(&rescue, "/a.txt").unwrap(), "hello");
    assert_eq!(rescue.fetcher.counters().fetches, 1);
    assert!(stage.charged.load(std::sync::atomic::Ordering::SeqCst) > 100);
    assert_eq!(stage.replicator.counts().read().bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_kept_is_not_sent() {
    let mut stage = stage();
    let rescue = stage.rescued();
    assert_eq!(
        stage.copy("/missing", CopyMeans::Push).await,
        CopyOutcome::Refused
    );
    assert_eq!(stage.copy("", CopyMeans::Push).await, CopyOutcome::Refused);
    stage.write("film.mp4", &"x".repeat(1_000_000));
    let film = stage.copy("/film.mp4", CopyMeans::Push).await;
    assert_eq!(
        film,
        CopyOutcome::Refused,
        "it would fill the link for 18 seconds"
    );
    assert_eq!(stage.replicator.counts().read().bytes, 0);
    assert!(
        rescue
            .fetcher
            .counters()
            .copies
            .values()
            .all(|&count| count == 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_goes_by_the_link_as_it_is_measured() {
    let mut stage = stage();
    let _rescue = stage.rescued();
    stage.write("film.mp4", &"x".repeat(1_000_000));
    for (kilobytes, outcome) in [
        (1000, CopyOutcome::Held),
        (300, CopyOutcome::Refused),
        (400, CopyOutcome::Held),
    ] {
        let parameters = Parameters::new(
            stage.space_of_origin(),
            stage.origin.address.ip(),
            "aliases.example".parse().unwrap(),
            ByteRate::from_kilobytes(kilobytes),
        );
        let measured = Input::ParametersChanged(Box::new(parameters));
        stage.replicator.note(&measured, &RoutePlan::default());
        let ended = stage.copy("/film.mp4", CopyMeans::Push).await;
        assert_eq!(ended, outcome, "{kilobytes} kB/s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_take_a_copy_fails_it_and_nothing_else() {
    let mut stage = stage();
    stage.write("a.txt", "hello");
    let order = |stage: &Stage| stage.order("/a.txt", CopyMeans::Push, Embedded::Without);
    assert!(order(&stage).is_some(), "nobody is known by this link");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    stage.accept(listener.local_addr().unwrap());
    for (answer, outcome) in [
        ("HTTP/1.1 403 Forbidden", CopyOutcome::Failed),
        ("HTTP/1.1 503 Service Unavailable", CopyOutcome::Failed),
        ("HTTP/1.1 409 Conflict", CopyOutcome::Refused),
        ("HTTP/1.1 413 Payload Too Large", CopyOutcome::Refused),
        // Versions that do not know copies.
        ("HTTP/1.1 307 Temporary Redirect", CopyOutcome::Refused),
        ("HTTP/1.1 501 Not Implemented", CopyOutcome::Refused),
        ("SSH-2.0-OpenSSH", CopyOutcome::Failed),
        ("", CopyOutcome::Failed),
    ] {
        assert_eq!(order(&stage), None);
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = vec![0; 4096];
        let read = stream.read(&mut asked).await.unwrap();
        let head = String::from_utf8_lossy(&asked[..read]).to_lowercase();
        assert!(head.starts_with("put /a.txt http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: message/http\r\n"), "{head}");
        let answer = format!("{answer}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        drop(stream);
        let Input::CopyEnded { outcome: ended, .. } = stage.next().await else {
            panic!("the end of the copy was to be told");
        };
        assert_eq!(ended, outcome, "{answer}");
    }
    drop(listener);
    assert_eq!(
        stage.copy("/a.txt", CopyMeans::Pull).await,
        CopyOutcome::Failed
    );
    // The rescue is over.
    let sample = Input::IntervalEnded(levee_control::LoadSample::default());
    stage.replicator.note(&sample, &RoutePlan::default());
    assert!(order(&stage).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_embeds_is_found_without_a_byte_on_the_link() {
    let mut stage = stage();
    let _rescue = stage.rescued();
    let port = stage.origin.address.port();
    stage.write(
        "index.html",
        &format!(
            "<img src=\"/a.png?v=1\"><img src=b.png><script src=/x.js></script>\
             <img src=\"http://static.example:{port}/c.png\"><link rel=stylesheet href=/s.css>\
             <img src=\"https://origin.example:8443/e.png\">\
             <img src=\"http://elsewhere.example/d.png\"><img src=\"https://origin.example/f.png\"><video src=/film.mp4></video>"
        ),
    );
    stage.write(
        "s.css",
        "@font-face { font-family: F; src: url(f.woff2) } p { background: url(g.png) }",
    );
    assert_eq!(stage.order("/", CopyMeans::Pull, Embedded::With), None);
    assert!(matches!(stage.next().await, Input::CopyEnded { .. }));
    let before = stage.counted().await.bytes;
    let Input::EmbeddedFound { page, resources } = stage.next().await else {
        panic!("what is embedded was to be told");
    };
    assert_eq!(page, "origin.example/");
    assert_eq!(
        resources,
        [
            "origin.example/s.css",
            "origin.example/x.js",
            "origin.example/f.woff2",
            "origin.example/a.png?v=1",
            "origin.example/b.png",
            "origin.example/c.png",
            "origin.example/e.png",
            "origin.example/g.png",
        ]
    );
    assert_eq!(stage.origin.front.sample().bytes, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_to_what_a_page_embeds_are_made_relative_where_that_is_wanted() {
    let mut stage = stage();
    let rescue = stage.rescued();
    let own = format!("http://origin.example:{}", stage.origin.address.port());
    let page = format!("<img src=\"{own}/a.png\"><a href=\"{own}/b\">b</a>");
    stage.write("page.html", &page);
    stage.write("a.txt", &page);
    // It has fetched the page as it is, for a visitor.
    assert_eq!(
        stage.copy("/page.html", CopyMeans::Pull).await,
        CopyOutcome::Held
    );
    assert_eq!(stage.held(&rescue, "/page.html").unwrap(), page);
    let rewritten = |site: &mut CopiedSite| site.links = CopiedLinks::Rewritten;
    stage.site.send_modify(rewritten);
    for means in [CopyMeans::Pull, CopyMeans::Push] {
        assert_eq!(stage.copy("/page.html", means).await, CopyOutcome::Held);
    }
    assert_eq!(
        stage.copy("/a.txt", CopyMeans::Push).await,
        CopyOutcome::Held
    );
    let rewritten = format!("<img src=\"/a.png\"><a href=\"{own}/b\">b</a>");
    assert_eq!(stage.held(&rescue, "/page.html").unwrap(), rewritten);
    assert_eq!(stage.held(&rescue, "/a.txt").unwrap(), page, "no page");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_page_that_was_fetched_as_it_is_is_sent_again_and_nothing_else_is() {
    let mut stage = stage();
    let rescue = stage.rescued();
    let own = format!("http://origin.example:{}", stage.origin.address.port());
    let page = format!("<img src=\"{own}/a.png\">");
    stage.write("page.html", &page);
    stage.write("other.html", &page);
    let rewriting = |stage: &Stage, links| stage.site.send_modify(|site| site.links = links);
    rewriting(&stage, CopiedLinks::Rewritten);
    let sent = stage.copy("/page.html", CopyMeans::Push).await;
    assert_eq!(sent, CopyOutcome::Held);

    let WebAddress { host, port } = stage.space_of_origin();
    rescue.fetcher.forget(&Space::Origin(host, port));
    rewriting(&stage, CopiedLinks::Kept);
    for path in ["/page.html", "/other.html"] {
        let fetched = stage.copy(path, CopyMeans::Pull).await;
        assert_eq!(fetched, CopyOutcome::Held);
        assert_eq!(stage.held(&rescue, path).unwrap(), page);
    }
    rewriting(&stage, CopiedLinks::Rewritten);
    for path in ["/other.html", "/page.html"] {
        let url = format!("origin.example{path}");
        stage.replicator.renew(LINK, &url);
    }
    let begun = std::time::Instant::now();
    while stage.held(&rescue, "/page.html").unwrap() == page {
        assert!(begun.elapsed() < PATIENCE);
        tokio::task::yield_now().await;
    }
    let rewritten = "<img src=\"/a.png\">";
    assert_eq!(stage.held(&rescue, "/page.html").unwrap(), rewritten);
    assert_eq!(stage.held(&rescue, "/other.html").unwrap(), page);
    let told = stage.told.try_recv();
    assert!(told.is_err(), "it is no news to the Brain: {told:?}");
}
