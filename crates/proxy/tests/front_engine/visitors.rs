//! Who a visitor is: what proxies in front of us say, whom we believe, and what an application
//! hears.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use levee_proxy::{Errand, FrontSettings};
use levee_wire::ProxyVersion;

use crate::support::{Running, Setup, origin};

fn echo(head: &str) -> String {
    let length = head.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}")
}

/// A front that listens behind a proxy on this machine.
fn behind_a_proxy(trusted: &str) -> Running {
    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let mut settings = FrontSettings::listening_on(vec![any]);
    settings.proxied = vec![any.into()];
    settings.deadlines.head = Duration::from_millis(200);
    let setup = Setup {
        settings,
        upstream: Some(origin(echo)),
        trusted: vec![trusted.parse().unwrap()],
        ..Setup::default()
    };
    setup.start()
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n\r\n";

/// What comes back when these pieces are sent one after the other.
fn said(running: &Running, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(running.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    for piece in pieces {
        // A connection that is refused half-way may be gone already.
        let _ = stream.write_all(piece);
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).to_lowercase()
}

#[test]
fn a_proxy_introduces_its_visitor_by_either_version() {
    let running = behind_a_proxy("127.0.0.1");
    let line = b"PROXY TCP4 203.0.113.9 192.0.2.1 5000 80\r\n".as_slice();
    let binary = [
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0f".as_slice(),
        &[203, 0, 113, 9, 192, 0, 2, 1, 0x13, 0x88, 0, 80],
        // A value that nobody here needs.
        &[0xEE, 0, 0],
    ]
    .concat();
    for header in [line, &binary] {
        let text = said(&running, &[&[header, GET].concat()]);
        assert!(text.contains("x-forwarded-for: 203.0.113.9\r\n"), "{text}");
    }
    let v6 = b"PROXY TCP6 2001:db8::9 2001:db8::1 5000 80\r\n";
    let text = said(&running, &[v6, GET]);
    assert!(text.contains("x-forwarded-for: 2001:db8::9\r\n"), "{text}");
}

#[test]
fn a_header_may_come_byte_by_byte_and_the_request_after_it() {
    let running = behind_a_proxy("127.0.0.1");
    let header = b"PROXY TCP4 203.0.113.9 192.0.2.1 5000 80\r\n";
    let mut pieces: Vec<&[u8]> = header.chunks(1).collect();
    pieces.extend(GET.chunks(7));
    let text = said(&running, &pieces);
    assert!(text.contains("x-forwarded-for: 203.0.113.9\r\n"), "{text}");
}

#[test]
fn a_proxys_own_connection_is_its_own() {
    let running = behind_a_proxy("127.0.0.1");
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".as_slice();
    for header in [local, b"PROXY UNKNOWN\r\n"] {
        let text = said(&running, &[header, GET]);
        assert!(text.contains("x-forwarded-for: 127.0.0.1\r\n"), "{text}");
    }
}

#[test]
fn a_connection_without_an_introduction_is_refused() {
    let running = behind_a_proxy("127.0.0.1");
    let liars: [&[u8]; 4] = [
        b"PROXY TCP4 203.0.113.9 192.0.2.1 5000\r\n",
        b"PROXY TCP4 203.0.113.9 192.0.2.1 5000 99999\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c",
        b"\x16\x03\x01\x02\x00",
    ];
    assert_eq!(said(&running, &[GET]), "");
    for liar in liars {
        assert_eq!(said(&running, &[liar, GET]), "");
    }
    let refused = running.sample_until(|sample| sample.bad_requests >= 5);
    assert_eq!(refused.requests, 0);
}

#[test]
fn an_introduction_that_never_ends_costs_a_bounded_time() {
    let running = behind_a_proxy("127.0.0.1");
    let mut stream = TcpStream::connect(running.address).unwrap();
    stream.write_all(b"PROXY TCP4 203").unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    assert!(bytes.is_empty());
}

#[test]
fn nobody_else_may_introduce_anybody() {
    let running = behind_a_proxy("192.0.2.1");
    let header = b"PROXY TCP4 203.0.113.9 192.0.2.1 5000 80\r\n";
    assert_eq!(said(&running, &[header, GET]), "");
}

#[test]
fn what_a_trusted_proxy_says_of_a_visitor_goes_along() {
    let running = Setup {
        upstream: Some(origin(echo)),
        trusted: vec!["127.0.0.0/8".parse().unwrap()],
        ..Setup::default()
    }
    .start();
    let response = running.ask(
        "GET / HTTP/1.1\r\nHost: site.example\r\nX-Forwarded-For: 203.0.113.9\r\n\
         X-Forwarded-Proto: https\r\nForwarded: for=203.0.113.9;proto=https\r\n\r\n",
    );
    let text = response.text().to_lowercase();
    for line in [
        "x-forwarded-for: 203.0.113.9, 127.0.0.1\r\n",
        "x-forwarded-proto: https\r\n",
        "x-forwarded-host: site.example\r\n",
        "forwarded: for=203.0.113.9;proto=https, for=127.0.0.1;host=\"site.example\";proto=http\r\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn answers_for_either_scheme_are_kept_apart() {
    let application = |head: &str| {
        let is_safe = head.to_lowercase().contains("x-forwarded-proto: https");
        let body = if is_safe { "page" } else { "move" };
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=60\r\n\
             Connection: close\r\n\r\n{body}"
        )
    };
    let running = Setup {
        upstream: Some(origin(application)),
        trusted: vec!["127.0.0.1".parse().unwrap()],
        ..Setup::default()
    }
    .start();
    let request = |scheme: &str| {
        let proto = format!("X-Forwarded-Proto: {scheme}\r\n");
        format!("GET / HTTP/1.1\r\nHost: site.example\r\n{proto}\r\n")
    };
    for (scheme, body) in [("http", "move"), ("https", "page")] {
        let first = running.ask(&request(scheme));
        let is_hit = first.header("cache-status").contains("hit");
        assert_eq!((first.text(), is_hit), (body, false));
    }
    for (scheme, body) in [("http", "move"), ("https", "page")] {
        assert_eq!(running.ask_until_kept(&request(scheme)).text(), body);
    }
}

/// An application that tells what it was sent, on one connection after the other.
fn raw_application() -> (SocketAddr, std::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            // The header of version 2 begins with an empty line of its own.
            while !bytes.ends_with(b"\r\n\r\n") || bytes.len() < 20 {
                let length = stream.read(&mut piece).unwrap();
                if length == 0 {
                    break;
                }
                bytes.extend_from_slice(&piece[..length]);
            }
            let answer =
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok";
            // It would keep the connection.
            let _ = stream.write_all(answer.as_bytes());
            if tell.send(bytes).is_err() {
                return;
            }
        }
    });
    (address, told)
}

#[test]
fn an_application_hears_of_each_visitor_before_the_request_on_a_connection_of_its_own() {
    for version in [ProxyVersion::V1, ProxyVersion::V2] {
        let (application, told) = raw_application();
        let running = Setup {
            upstream: Some(application),
            told_by: Some(version),
            ..Setup::default()
        }
        .start();
        for target in ["/a", "/b"] {
            let mut client = running.connect();
            let visitor = client.address();
            client.send(format!(
                "GET {target} HTTP/1.1\r\nHost: site.example\r\n\r\n"
            ));
            assert_eq!(client.receive().status, 200);
            let heard = told.recv_timeout(Duration::from_secs(20)).unwrap();
            let header = levee_wire::ProxyHeader::parse(&heard).unwrap().unwrap();
            let addresses = header.addresses.unwrap();
            assert_eq!(addresses.source, visitor);
            assert_eq!(addresses.destination, running.address);
            let request = String::from_utf8_lossy(&heard[header.length..]).into_owned();
            assert!(request.starts_with(&format!("GET {target} ")), "{request}");
        }
    }
}

#[test]
fn an_application_hears_for_whom_the_server_reads_its_own_page_and_not_that_it_is_this_machine() {
    let running = behind_a_proxy("127.0.0.1");
    for errand in [Errand::PassOn, Errand::Look] {
        let errand = errand([203, 0, 113, 9].into());
        let mut stream = running.front.visit(errand).unwrap();
        stream.set_nonblocking(false).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(GET).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answer = answer.to_lowercase();
        assert!(
            answer.contains("x-forwarded-for: 203.0.113.9\r\n"),
            "{answer}"
        );
    }
}
