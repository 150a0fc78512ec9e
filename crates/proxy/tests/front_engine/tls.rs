//! HTTPS, by rustls's own client: versions, names, resumption, renewal, and visitors who misbehave.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use levee_control::OriginPhase;
use levee_proxy::{Certificates, Cleartext, MinVersion, PairFiles, TlsKeys, TlsOffer, UnknownHost};
use levee_vocab::{LinkId, Misses};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

use crate::support::{PATIENCE, Response, Running, Setup, get, origin, redirecting, rescuing};

type Visitor = StreamOwned<ClientConnection, TcpStream>;

/// Certificates for some names, in a folder, and who believes them.
struct Papers {
    folder: tempfile::TempDir,
    roots: RootCertStore,
}

impl Papers {
    fn of(names: &[&str]) -> Self {
        let mut papers = Self {
            folder: tempfile::tempdir().unwrap(),
            roots: RootCertStore::empty(),
        };
        names.iter().for_each(|name| papers.renew(name));
        papers
    }

    fn renew(&mut self, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        self.roots.add(made.cert.der().clone()).unwrap();
        let file = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        std::fs::write(file("pem"), made.cert.pem()).unwrap();
        std::fs::write(file("key"), made.signing_key.serialize_pem()).unwrap();
    }

    fn offer(&self, keys: &TlsKeys) -> TlsOffer {
        let (certificates, errors) = Certificates::load(None, Some(self.folder.path()));
        assert!(errors.is_empty(), "{errors:?}");
        let preferred = "site.example".parse().unwrap();
        keys.offer(
            &certificates,
            MinVersion::Tls12,
            &preferred,
            UnknownHost::Refuse,
        )
        .unwrap()
    }

    fn client(&self, versions: &[&'static rustls::SupportedProtocolVersion]) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        Arc::new(config)
    }
}

const BOTH: [&rustls::SupportedProtocolVersion; 2] =
    [&rustls::version::TLS12, &rustls::version::TLS13];

fn serving(papers: &Papers, keys: &TlsKeys) -> Running {
    let mut setup = Setup::default();
    setup.settings.cores = 2;
    setup.tls = Some(papers.offer(keys));
    setup.start()
}

fn visitor(running: &Running, client: &Arc<ClientConfig>, name: &str) -> Visitor {
    let socket = TcpStream::connect(running.tls_address.unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = name.to_owned().try_into().unwrap();
    StreamOwned::new(
        ClientConnection::new(Arc::clone(client), name).unwrap(),
        socket,
    )
}

/// The response to one request on an open connection.
fn ask(visitor: &mut Visitor, request: &str) -> Response {
    visitor.write_all(request.as_bytes()).unwrap();
    receive(visitor)
}

/// The next response.
fn receive(from: &mut impl Read) -> Response {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        from.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let mut response = Response {
        status: head[9..12].parse().unwrap(),
        head,
        body: Vec::new(),
    };
    let length = response.header("content-length").parse().unwrap_or(0);
    response.body.resize(length, 0);
    from.read_exact(&mut response.body).unwrap();
    response
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

#[test]
fn both_versions_carry_pages_of_every_size_without_a_wrong_byte() {
    let papers = Papers::of(&["site.example"]);
    let running = serving(&papers, &TlsKeys::new().unwrap());
    let sizes = [0, 1, 16_383, 16_384, 16_385, 100_000, 5_000_000];
    for size in sizes {
        running.write(&format!("{size}.bin"), bytes(size));
    }
    for version in BOTH {
        let client = papers.client(&[version]);
        let mut visitor = visitor(&running, &client, "site.example");
        for size in sizes {
            let response = ask(&mut visitor, &get(&format!("/{size}.bin")));
            assert_eq!(response.status, 200);
            assert!(response.body == bytes(size), "{size}");
        }
    }
    let sample = running.sample_until(|sample| sample.handshakes.full == 2);
    assert_eq!((sample.handshakes.tls12, sample.handshakes.tls13), (1, 1));
}

/// So that whoever decides about help knows how many could not be sent to servers without HTTPS.
#[test]
fn what_visitors_by_https_get_is_counted_apart() {
    let papers = Papers::of(&["site.example"]);
    let running = serving(&papers, &TlsKeys::new().unwrap());
    running.write("page.bin", bytes(10_000));
    assert_eq!(running.ask(&get("/page.bin")).status, 200);
    let plain = running.sample_until(|sample| sample.own_bytes > 10_000);
    assert_eq!(plain.https_own_bytes, 0);
    let mut visitor = visitor(&running, &papers.client(&BOTH), "site.example");
    assert_eq!(ask(&mut visitor, &get("/page.bin")).status, 200);
    // The handshake, with its certificate, left over the same link.
    let least = plain.own_bytes + 500;
    running.sample_until(|sample| {
        sample.https_own_bytes > least
            && sample.own_bytes == plain.own_bytes + sample.https_own_bytes
    });
}

#[test]
fn a_visitor_who_takes_a_large_page_late_gets_every_byte() {
    let papers = Papers::of(&["site.example"]);
    let running = serving(&papers, &TlsKeys::new().unwrap());
    running.write("large.bin", bytes(20_000_000));
    let mut visitor = visitor(&running, &papers.client(&BOTH), "site.example");
    visitor.write_all(get("/large.bin").as_bytes()).unwrap();
    // By then the kernel is full and has taken records by halves.
    running.look_until(|sample| sample.held_up == 1);
    assert!(receive(&mut visitor).body == bytes(20_000_000));
    let next = ask(&mut visitor, &get("/missing"));
    assert_eq!(next.status, 404);
}

#[test]
fn a_visitor_resumes_on_any_core_and_after_a_reload_but_not_after_a_restart() {
    let papers = Papers::of(&["site.example"]);
    let keys = TlsKeys::new().unwrap();
    let running = serving(&papers, &keys);
    for version in BOTH {
        let client = papers.client(&[version]);
        let kind = || {
            let mut visitor = visitor(&running, &client, "site.example");
            assert_eq!(ask(&mut visitor, &get("/")).status, 404);
            visitor.conn.handshake_kind().unwrap()
        };
        assert_eq!(kind(), HandshakeKind::Full);
        for _ in 0..8 {
            assert_eq!(kind(), HandshakeKind::Resumed);
        }
        running.front.set_tls(&papers.offer(&keys));
        assert_eq!(kind(), HandshakeKind::Resumed);
    }
    let client = papers.client(&BOTH);
    for (started, expected) in [(0, HandshakeKind::Full), (1, HandshakeKind::Full)] {
        let running = serving(&papers, &TlsKeys::new().unwrap());
        let mut visitor = visitor(&running, &client, "site.example");
        assert_eq!(ask(&mut visitor, &get("/")).status, 404);
        assert_eq!(visitor.conn.handshake_kind(), Some(expected), "{started}");
    }
}

#[test]
fn each_name_gets_its_certificate_and_a_name_that_nobody_knows_gets_none() {
    let papers = Papers::of(&["site.example", "*.other.example"]);
    let running = serving(&papers, &TlsKeys::new().unwrap());
    let client = papers.client(&BOTH);
    for name in ["site.example", "a.other.example"] {
        let mut visitor = visitor(&running, &client, name);
        assert_ne!(ask(&mut visitor, &get("/")).status, 0, "{name}");
    }
    let mut stranger = visitor(&running, &client, "nobody.example");
    assert!(stranger.write_all(b"x").is_err());
    running.sample_until(|sample| sample.handshakes.failed == 1);
}

#[test]
fn a_renewed_certificate_is_shown_to_new_visitors_and_disturbs_no_open_connection() {
    let mut papers = Papers::of(&["site.example"]);
    let keys = TlsKeys::new().unwrap();
    let running = serving(&papers, &keys);
    let mut before = visitor(&running, &papers.client(&BOTH), "site.example");
    assert_eq!(ask(&mut before, &get("/")).status, 404);
    papers.renew("site.example");
    running.front.set_tls(&papers.offer(&keys));
    let file = papers.folder.path().join("site.example.pem");
    let renewed = CertificateDer::from_pem_file(file).unwrap();
    loop {
        let mut after = visitor(&running, &papers.client(&BOTH), "site.example");
        assert_eq!(ask(&mut after, &get("/")).status, 404);
        // A core may still have the message before it.
        if after.conn.peer_certificates().unwrap().first() == Some(&renewed) {
            break;
        }
    }
    assert_eq!(ask(&mut before, &get("/")).status, 404);
}

#[test]
fn plain_http_on_the_port_of_https_is_told_so() {
    let papers = Papers::of(&["site.example"]);
    let running = serving(&papers, &TlsKeys::new().unwrap());
    let mut socket = TcpStream::connect(running.tls_address.unwrap()).unwrap();
    socket.write_all(get("/").as_bytes()).unwrap();
    let response = receive(&mut socket);
    assert_eq!(response.status, 400);
    assert!(String::from_utf8_lossy(&response.body).contains("https://"));
    assert_eq!(socket.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn nonsense_costs_its_own_connection_and_a_slow_handshake_is_done() {
    let papers = Papers::of(&["site.example"]);
    let running = serving(&papers, &TlsKeys::new().unwrap());
    let address = running.tls_address.unwrap();
    for nonsense in [
        &[0_u8; 600][..],
        &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0],
        &[0x80; 40],
    ] {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(nonsense).unwrap();
        let mut rest = Vec::new();
        // The end, or a reset, after an alert.
        let _ = socket.read_to_end(&mut rest);
        assert!(rest.len() < 16, "{rest:?}");
    }
    running.sample_until(|sample| sample.handshakes.failed == 3);
    let client = papers.client(&BOTH);
    let name = "site.example".try_into().unwrap();
    let mut tls = ClientConnection::new(client, name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    while tls.wants_write() {
        tls.write_tls(&mut Bytewise(&mut socket)).unwrap();
    }
    let mut visitor = StreamOwned::new(tls, socket);
    assert_eq!(ask(&mut visitor, &get("/")).status, 404);
}

/// Writes one byte at a time.
struct Bytewise<'a>(&'a mut TcpStream);

impl Write for Bytewise<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_handshake_that_never_ends_is_closed_at_the_deadline_of_a_head() {
    let papers = Papers::of(&["site.example"]);
    let mut setup = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        ..Setup::default()
    };
    setup.settings.deadlines.head = Duration::from_millis(200);
    let running = setup.start();
    let mut socket = TcpStream::connect(running.tls_address.unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(&[22, 3, 1]).unwrap();
    assert_eq!(socket.read(&mut [0; 8]).unwrap(), 0);
    running.sample_until(|sample| sample.handshakes.failed == 1 && sample.connections == 0);
}

#[test]
fn the_end_of_a_connection_is_announced_and_a_cut_one_ends_nothing_else() {
    let papers = Papers::of(&["site.example"]);
    let running = serving(&papers, &TlsKeys::new().unwrap());
    let client = papers.client(&BOTH);
    let mut polite = visitor(&running, &client, "site.example");
    let request = "GET / HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(&mut polite, request).status, 404);
    // rustls calls an end without close_notify an error.
    assert_eq!(polite.read(&mut [0; 8]).unwrap(), 0);
    let mut cut = visitor(&running, &client, "site.example");
    cut.write_all(b"POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: 9\r\n\r\nhalf")
        .unwrap();
    cut.sock.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    match cut.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof),
    }
    let mut closing = visitor(&running, &client, "site.example");
    assert_eq!(ask(&mut closing, &get("/")).status, 404);
    closing.conn.send_close_notify();
    closing.flush().unwrap();
    // Nothing but the visitor's last word has come, and it is answered with ours.
    assert_eq!(closing.read(&mut [0; 8]).unwrap(), 0);
    running.sample_until(|sample| sample.connections == 0);
}

#[test]
fn a_visitor_by_https_is_not_sent_to_an_alias_by_http() {
    let papers = Papers::of(&["site.example"]);
    let setup = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        plan: redirecting("alias.example"),
        ..Setup::default()
    };
    let running = setup.start();
    running.write("page.html", "a page");
    assert_eq!(running.get("/page.html").status, 302);
    let mut visitor = visitor(&running, &papers.client(&BOTH), "site.example");
    assert_ne!(ask(&mut visitor, &get("/page.html")).status, 302);
}

#[test]
fn a_visitor_by_https_is_sent_to_an_alias_by_https_and_back_in_the_same_way() {
    let papers = Papers::of(&["site.example", "site-vh1.alias.example"]);
    let mut setup = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        plan: redirecting("www-vh1.rescue.example"),
        ..Setup::default()
    };
    let redirect = setup.plan.redirect.as_mut().unwrap();
    redirect.targets[0].tls = Some(8443);
    let running = setup.start();
    running.write("page.html", vec![b'a'; 5000]);
    let client = papers.client(&BOTH);
    let mut by_https = visitor(&running, &client, "site.example");
    let sent = ask(&mut by_https, &get("/page.html?x=1"));
    assert_eq!(sent.status, 302);
    let alias = "https://www-vh1.rescue.example:8443/page.html?x=1";
    assert_eq!(sent.header("location"), alias);
    let by_http = running.get("/page.html");
    assert_eq!(by_http.status, 302);
    assert!(by_http.header("location").starts_with("http://www-vh1."));

    // The rescue server, which may not fetch for the moment.
    let mut plan = rescuing(running.address, OriginPhase::Live);
    let origin = Arc::make_mut(&mut plan.hosts.origins[0]);
    (origin.tls, origin.misses) = (Some(8443), Misses::SendBack);
    let rescue = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        plan,
        ..Setup::default()
    }
    .start();
    let at_alias = "GET /page.html HTTP/1.1\r\nHost: site-vh1.alias.example\r\n\r\n";
    let mut by_https = visitor(&rescue, &client, "site-vh1.alias.example");
    let back = ask(&mut by_https, at_alias);
    assert_eq!(back.status, 302);
    let way = back.header("location");
    assert!(
        way.starts_with("https://origin.example:8443/page.html?levee-back="),
        "{way}"
    );
    let back = rescue.ask(at_alias);
    let way = back.header("location");
    assert!(way.starts_with("http://origin.example:8080/"), "{way}");
}

#[test]
fn what_a_rescue_server_fetches_is_what_visitors_by_https_get() {
    let papers = Papers::of(&["site.example"]);
    let key = "0123456789abcdef0123456789abcdef";
    let mut setup = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        upstream: Some(origin(sends_to_https)),
        ..Setup::default()
    };
    setup.settings.cleartext = Cleartext::Redirected { port: 443 };
    setup.plan.fetch_keys = vec![(LinkId::Outbound(1), key.parse().unwrap())];
    let running = setup.start();
    let fetch = |key: &str| {
        running.ask(&format!(
            "GET / HTTP/1.1\r\nHost: site.example\r\nLevee-Fetch: {key}\r\n\r\n"
        ))
    };
    assert_eq!(fetch(key).body, b"page");
    // Who shows another key is a visitor like any other.
    assert_eq!(fetch("0123456789abcdef0123456789abcdee").status, 308);
}

#[test]
fn visitors_by_http_are_sent_to_https_where_the_operator_wants_that() {
    let papers = Papers::of(&["site.example"]);
    let mut setup = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        ..Setup::default()
    };
    setup.settings.cleartext = Cleartext::Redirected { port: 443 };
    let running = setup.start();
    running.write("page.html", "a page");
    running.write(".well-known/acme-challenge/token", "proof");
    let sent = running.get("/page.html?x=1");
    assert_eq!(sent.status, 308);
    assert_eq!(
        sent.header("location"),
        "https://site.example/page.html?x=1"
    );
    assert_eq!(running.get("/.well-known/acme-challenge/token").status, 200);
    let mut visitor = visitor(&running, &papers.client(&BOTH), "site.example");
    assert_eq!(ask(&mut visitor, &get("/page.html")).body, b"a page");
}

#[test]
fn certificates_that_are_no_good_are_told_with_their_files() {
    let papers = Papers::of(&["site.example", "other.example"]);
    let file = |name: &str| papers.folder.path().join(name);
    let told = |certificate: &Path, key: &Path| {
        let pair = PairFiles {
            certificate: certificate.into(),
            key: key.into(),
        };
        let (_, errors) = Certificates::load(Some(&pair), None);
        errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (site, site_key) = (file("site.example.pem"), file("site.example.key"));
    assert_eq!(told(&site, &site_key), "");
    let mismatch = told(&site, &file("other.example.key"));
    assert!(mismatch.contains("does not belong"), "{mismatch}");
    assert!(told(&site, &site).contains("has no private key"));
    assert!(told(&site_key, &site_key).contains("has no certificate"));
    assert!(told(&file("missing.pem"), &site_key).contains("missing.pem"));
    std::fs::write(file("torn.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n").unwrap();
    assert!(told(&file("torn.pem"), &site_key).contains("torn.pem"));
}

/// An application that sends visitors by HTTP to HTTPS, and lets both be kept.
fn sends_to_https(head: &str) -> String {
    let kept = "Cache-Control: max-age=60\r\nConnection: close\r\n";
    match head.to_lowercase().contains("x-forwarded-proto: https\r\n") {
        true => format!("HTTP/1.1 200 OK\r\n{kept}Content-Length: 4\r\n\r\npage"),
        false => format!(
            "HTTP/1.1 301 Moved Permanently\r\nLocation: https://site.example/\r\n{kept}\
             Content-Length: 0\r\n\r\n"
        ),
    }
}

#[test]
fn a_redirect_to_https_is_not_shown_to_those_who_followed_it() {
    let papers = Papers::of(&["site.example"]);
    let running = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        upstream: Some(origin(sends_to_https)),
        ..Setup::default()
    }
    .start();
    let client = papers.client(&BOTH);
    for _ in 0..3 {
        let claims = "GET / HTTP/1.1\r\nHost: site.example\r\nX-Forwarded-Proto: https\r\n\r\n";
        assert_eq!(running.ask(claims).status, 301);
        let mut visitor = visitor(&running, &client, "site.example");
        assert_eq!(ask(&mut visitor, &get("/")).body, b"page");
    }
}

#[test]
fn a_large_upload_by_https_reaches_the_application_whole() {
    let papers = Papers::of(&["site.example"]);
    let running = Setup {
        tls: Some(papers.offer(&TlsKeys::new().unwrap())),
        upstream: Some(origin(|head| {
            let length = head.len();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}"
            )
        })),
        ..Setup::default()
    }
    .start();
    for version in BOTH {
        let mut visitor = visitor(&running, &papers.client(&[version]), "site.example");
        let body = "0123456789".repeat(200_000);
        let length = body.len();
        let head =
            format!("POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: {length}\r\n\r\n");
        let response = ask(&mut visitor, &(head + &body));
        assert!(response.text().ends_with(&body));
    }
}

#[test]
fn a_proxy_introduces_its_visitor_before_the_handshake() {
    let papers = Papers::of(&["site.example"]);
    let keys = TlsKeys::new().unwrap();
    let mut setup = Setup {
        upstream: Some(origin(|head| {
            let length = head.len();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}"
            )
        })),
        trusted: vec!["127.0.0.1".parse().unwrap()],
        ..Setup::default()
    };
    setup.tls = Some(papers.offer(&keys));
    // The same text stands for both listeners.
    setup.settings.proxied = setup.settings.listen.clone();
    let running = setup.start();
    let header = b"PROXY TCP4 203.0.113.9 192.0.2.1 5000 443\r\n";
    let client = papers.client(&BOTH);
    for cut in [0, 1, header.len()] {
        let mut visitor = visitor(&running, &client, "site.example");
        visitor.sock.set_nodelay(true).unwrap();
        visitor.sock.write_all(&header[..cut]).unwrap();
        visitor.sock.write_all(&header[cut..]).unwrap();
        let text = ask(&mut visitor, &get("/")).text().to_lowercase();
        assert!(text.contains("x-forwarded-for: 203.0.113.9\r\n"), "{text}");
        assert!(text.contains("x-forwarded-proto: https\r\n"), "{text}");
    }
    // Without an introduction there is no handshake.
    let mut stranger = visitor(&running, &client, "site.example");
    assert!(stranger.write_all(get("/").as_bytes()).is_err());
}
