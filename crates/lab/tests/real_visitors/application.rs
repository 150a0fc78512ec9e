//! An application of one's own behind Levee: it is rescued like a folder, it still hears everything
//! that only it can answer, and bodies pass through in both directions while they come.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use levee_lab::site::Site;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::http;
use crate::stage::{Community, Draft, ORIGIN, until};

#[test]
fn an_application_is_rescued_and_still_hears_what_only_it_can_answer() {
    let application = Application::start();
    // There must be room for forms, which cannot be redirected.
    let wide = Draft {
        link: "200 kB/s",
        ..application.behind()
    };
    let community = Community::start(&wide);
    let origin = &community.origin;
    application
        .shared
        .site
        .set(Arc::clone(&origin.site))
        .unwrap();
    let crowd = community.in_mid_crowd(Duration::from_secs(8));
    let status = origin.status();
    let alias = status["rescue_servers"][0]["alias"].as_str().unwrap();
    let helper = community.member_of(alias);
    let alias = format!(
        "{}:{}",
        alias.split(':').next().unwrap(),
        helper.address.port
    );

    let post = &origin.site.post().path;
    let page = until("the page under the alias", || {
        Some(http::get(helper.socket(), &alias, post, "")).filter(|page| page.status == 200)
    });
    assert!(page.body == *origin.site.body(post));
    assert_eq!(page.header("x-robots-tag"), "noindex");
    // The cookie of the application is for the origin's own name: a stranger's domain gets none.
    let page = until("a page with a cookie", || {
        let page = http::get(helper.socket(), &alias, "/with-cookie", "");
        (page.status == 200).then_some(page)
    });
    assert_eq!(page.header("set-cookie"), "session=1; Path=/");

    let output = post_a_form(&format!("http://{alias}/echo"));
    assert_eq!(
        output, b"a=1",
        "it ends at the application, with its method and its body"
    );
    until("the end of the crowd", || crowd.is_over().then_some(()));
    let asked = application.asked();
    let form = asked.iter().find(|asked| asked.target == "/echo").unwrap();
    assert_eq!(form.method, "POST");
    assert_eq!(form.forwarded_for, "127.0.0.1");
    assert_eq!(form.host, origin.address.to_string());

    // One fetch by the origin's own cache serves all: the crowd, and its rescue servers.
    let hottest = asked.iter().filter(|asked| asked.target == *post).count();
    assert_eq!(hottest, 1, "the application was asked for the hot post");
    let records = crowd.ledger().records();
    let answered = records
        .iter()
        .filter(|record| record.result.is_ok())
        .count();
    assert!(
        answered * 2 > records.len(),
        "{answered} of {}",
        records.len()
    );
}

/// As a person's browser does it, following redirects.
fn post_a_form(url: &str) -> Vec<u8> {
    let output = Command::new("curl")
        .args(["--silent", "--location", "--max-time", "20"])
        .args(["--data", "a=1", url])
        .output();
    output
        .expect("curl is installed (Debian's package `curl`)")
        .stdout
}

#[test]
fn bodies_pass_through_while_they_come() {
    let application = Application::start();
    let draft = Draft {
        link: "10 MB/s",
        ..application.behind()
    };
    let community = Community::start(&draft);
    let origin = &community.origin;
    // The application sends back what it gets: the first piece is here before the second is sent.
    let mut stream = http::connect(origin.socket());
    let head = format!(
        "POST /echo HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        origin.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"5\r\nfirst\r\n").unwrap();
    let mut received = read_until(&mut stream, b"first");
    stream.write_all(b"6\r\nsecond\r\n0\r\n\r\n").unwrap();
    received.extend(read_until(&mut stream, b"\r\n0\r\n\r\n"));
    let answer = http::read(&received, false);
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "firstsecond")
    );

    // Larger than any buffer on the way, and back again.
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    let head = format!(
        "POST /echo HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
        origin.address,
        body.len()
    );
    let mut stream = http::connect(origin.socket());
    stream
        .write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())
        .unwrap();
    let received = std::thread::scope(|scope| {
        let mut writing = stream.try_clone().unwrap();
        let body = &body;
        scope.spawn(move || writing.write_all(body).unwrap());
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    assert!(http::read(&received, false).body == body);

    // To the origin's own visitors the cookie is what the application wants it to be.
    let host = origin.address.to_string();
    let page = http::get(origin.socket(), &host, "/with-cookie", "");
    assert_eq!(page.header("set-cookie"), COOKIE);
}

fn read_until(stream: &mut impl Read, end: &[u8]) -> Vec<u8> {
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while !received.windows(end.len()).any(|part| part == end) {
        let bytes = stream.read(&mut piece).unwrap();
        assert!(bytes > 0, "{:?}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..bytes]);
    }
    received
}

const COOKIE: &str = "session=1; Domain=localhost; Path=/";

/// A small application: it has the pages of a site, a page with a cookie, and an echo.
struct Application {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

#[derive(Default)]
struct Shared {
    site: OnceLock<Arc<Site>>,
    asked: Mutex<Vec<Asked>>,
}

#[derive(Clone, Debug)]
struct Asked {
    method: Method,
    target: String,
    host: String,
    forwarded_for: String,
}

impl Application {
    fn start() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        runtime.spawn(serve(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _runtime: runtime,
        }
    }

    /// An origin in front of it.
    fn behind(&self) -> Draft {
        Draft {
            upstream: Some(self.address),
            ..ORIGIN
        }
    }

    fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = shared.answer(request);
                async { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // Levee may close it at any moment.
            let _ = connection.await;
        });
    }
}

type Body = Either<Full<Bytes>, Incoming>;

impl Shared {
    fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let header = |name: &str| {
            let value = request.headers().get(name);
            value.map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        let target = request.uri().path().to_owned();
        self.asked.lock().unwrap().push(Asked {
            method: request.method().clone(),
            host: header("host"),
            forwarded_for: header("x-forwarded-for"),
            target: target.clone(),
        });
        if target == "/echo" {
            return Response::new(Either::Right(request.into_body()));
        }
        let whole = |body: Bytes| Either::Left(Full::new(body));
        if target == "/with-cookie" {
            let response = Response::builder().header("set-cookie", COOKIE);
            return response.body(whole(Bytes::from("a page"))).unwrap();
        }
        let response = Response::builder().header("cache-control", "public, max-age=600");
        match self.site.get().and_then(|site| site.objects.get(&target)) {
            Some(body) => response.body(whole(body.clone())).unwrap(),
            None => Response::builder()
                .status(404)
                .body(whole(Bytes::new()))
                .unwrap(),
        }
    }
}
