//! Fields behind a body, in both directions and both protocols.

use std::future::poll_fn;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode};

use crate::http2::with_session;
use crate::support::{Running, Setup, get};

/// What an application answers.
const TRAILED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\
    Cache-Control: no-store\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\
    Grpc-Status: 0\r\nContent-Length: 99\r\nSet-Cookie: a=b\r\nHost: evil.example\r\n\r\n";

/// A site with an application that answers `answer`; what it was sent comes out of the channel.
fn with_application(answer: &'static str) -> (Running, Receiver<String>) {
    let (heard, hears) = channel();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let upstream: SocketAddr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let request = read_request(BufReader::new(stream.as_ref().unwrap()));
            stream.unwrap().write_all(answer.as_bytes()).unwrap();
            let _ = heard.send(request);
        }
    });
    let running = Setup {
        upstream: Some(upstream),
        ..Setup::default()
    }
    .start();
    (running, hears)
}

/// A head, and where it announces a body in chunks everything to the end of its trailers.
fn read_request(mut reader: BufReader<&TcpStream>) -> String {
    let mut read_to = |end: &str| {
        let mut text = String::new();
        while !text.ends_with(end) && reader.read_line(&mut text).unwrap() > 0 {}
        text.to_lowercase()
    };
    let mut text = read_to("\r\n\r\n");
    if text.contains("transfer-encoding: chunked") {
        text += &read_to("\r\n0\r\n");
        let mut trailers = String::new();
        while !trailers.ends_with("\r\n\r\n") && trailers != "\r\n" {
            let line = read_to("\n");
            trailers += &line;
            if line.is_empty() {
                break;
            }
        }
        text += &trailers;
    }
    text
}

fn asking(te: &str) -> String {
    get("/").replace(
        "\r\n\r\n",
        &format!("\r\n{te}Connection: close, te\r\n\r\n"),
    )
}

fn whole(running: &Running, request: &str) -> String {
    let mut client = running.connect();
    client.send(request);
    String::from_utf8(client.rest()).unwrap()
}

#[test]
fn trailers_reach_a_visitor_who_says_that_he_takes_them() {
    let (running, hears) = with_application(TRAILED);
    for _ in 0..2 {
        let text = whole(&running, &asking("TE: gzip, trailers\r\n"));
        assert!(text.contains("trailer: X-Sum\r\n"), "{text}");
        let end = "\r\n0\r\nx-sum: 5\r\ngrpc-status: 0\r\n\r\n";
        assert!(text.ends_with(end), "{text}");
        let request = hears.recv().unwrap();
        assert!(request.contains("\r\nte: trailers\r\n"), "{request}");
        assert!(request.contains("\r\nconnection: te\r\n"), "{request}");
    }
    let text = whole(&running, &asking(""));
    assert!(text.ends_with("hello\r\n0\r\n\r\n"), "{text}");
    let request = hears.recv().unwrap();
    assert!(!request.contains("\r\nte:"), "{request}");
    let old = whole(
        &running,
        "GET / HTTP/1.0\r\nHost: site.example\r\nTE: trailers\r\n\r\n",
    );
    assert!(old.ends_with("\r\n\r\nhello"), "{old}");
}

#[test]
fn an_object_that_is_kept_has_no_trailers_for_anybody() {
    let (running, _) = with_application(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\
         Cache-Control: max-age=60\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n",
    );
    for _ in 0..2 {
        let text = whole(&running, &asking("TE: trailers\r\n"));
        assert!(text.contains("hello"), "{text}");
        assert!(!text.to_lowercase().contains("x-sum"), "{text}");
    }
}

#[test]
fn trailers_of_a_request_reach_the_application_as_far_as_they_may() {
    let (running, hears) =
        with_application("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    // However they are cut.
    for pause_at in [0, 3, 20] {
        let mut client = running.connect();
        client.send(
            "POST / HTTP/1.1\r\nHost: site.example\r\nTransfer-Encoding: chunked\r\n\
             Trailer: X-Sum, Host, Authorization\r\n\r\n2\r\nok\r\n0\r\n",
        );
        let trailers = "X-Sum: 2\r\nHost: evil.example\r\nAuthorization: x\r\nX-Unnamed: y\r\n\r\n";
        client.send(&trailers[..pause_at]);
        std::thread::yield_now();
        client.send(&trailers[pause_at..]);
        assert_eq!(client.receive().status, 200);
        let request = hears.recv().unwrap();
        assert!(request.ends_with("\r\n0\r\nx-sum: 2\r\n\r\n"), "{request}");
        assert!(!request.contains("evil"), "{request}");
    }
}

#[test]
fn lines_behind_a_body_that_are_no_fields_break_the_request_off() {
    let (running, hears) =
        with_application("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let mut client = running.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: site.example\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nok\r\n0\r\nGET /smuggled HTTP/1.1\r\nHost: site.example\r\n\r\n",
    );
    let _ = client.rest();
    drop(running);
    let requests: Vec<String> = hears.try_iter().collect();
    assert!(!requests.concat().contains("smuggled"), "{requests:?}");
}

/// Asks by HTTP/2 as gRPC does; gives the status, the body, and the trailers.
async fn call(
    mut requests: h2::client::SendRequest<Bytes>,
    trailers: Option<HeaderMap>,
) -> (http::response::Parts, Vec<u8>, Option<HeaderMap>) {
    requests = requests.ready().await.unwrap();
    let request = Request::post("http://site.example/service/Method")
        .header("te", "trailers")
        .header("trailer", "x-sum")
        .body(());
    let (response, mut upload) = requests.send_request(request.unwrap(), false).unwrap();
    upload.send_data("ask".into(), trailers.is_none()).unwrap();
    if let Some(trailers) = trailers {
        upload.send_trailers(trailers).unwrap();
    }
    let (parts, mut stream) = response.await.unwrap().into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    let trailers = stream.trailers().await.unwrap();
    (parts, body, trailers)
}

#[test]
fn a_call_as_grpc_makes_it_is_answered_with_trailers() {
    let (running, hears) = with_application(TRAILED);
    with_session(running.address, async |requests| {
        let mut sent = HeaderMap::new();
        sent.insert("x-sum", HeaderValue::from_static("3"));
        let (parts, body, trailers) = call(requests, Some(sent)).await;
        assert_eq!((parts.status, &body[..]), (StatusCode::OK, &b"hello"[..]));
        let trailers = trailers.unwrap();
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers["x-sum"], "5");
        assert_eq!(trailers.len(), 2, "{trailers:?}");
    });
    let request = hears.recv().unwrap();
    assert!(request.contains("\r\nte: trailers\r\n"), "{request}");
    assert!(
        request.ends_with("\r\n3\r\nask\r\n0\r\nx-sum: 3\r\n\r\n"),
        "{request}"
    );
}

#[test]
fn a_response_of_a_head_alone_ends_with_its_head() {
    let (running, _) = with_application(
        "HTTP/1.1 200 OK\r\nGrpc-Status: 12\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    with_session(running.address, async |mut requests| {
        requests = requests.ready().await.unwrap();
        let request = Request::post("http://site.example/none").body(());
        let (response, _) = requests.send_request(request.unwrap(), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.headers()["grpc-status"], "12");
        // A client of gRPC takes the call for broken where an empty frame had to say it.
        assert!(response.body().is_end_stream());
    });
}

#[test]
fn early_hints_reach_a_visitor_by_http_2() {
    let (running, _) = with_application(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\n\
         X-Hop: secret\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    with_session(running.address, async |mut requests| {
        requests = requests.ready().await.unwrap();
        let request = Request::get("http://site.example/").body(());
        let (mut response, _) = requests.send_request(request.unwrap(), true).unwrap();
        let hints = poll_fn(|context| response.poll_informational(context)).await;
        let hints = hints.unwrap().unwrap();
        assert_eq!(hints.status(), StatusCode::EARLY_HINTS);
        assert_eq!(hints.headers()["link"], "</a.css>; rel=preload");
        assert_eq!(hints.headers().len(), 1, "{:?}", hints.headers());
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

#[test]
fn nobody_can_have_our_own_fields_taken_away() {
    let (running, hears) =
        with_application("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let fields = "Connection: close, X-Forwarded-For, Via, Host, X-Hop\r\nX-Hop: y\r\n\r\n";
    whole(
        &running,
        &get("/").replace("\r\n\r\n", &format!("\r\n{fields}")),
    );
    let request = hears.recv().unwrap();
    for line in [
        "\r\nx-forwarded-for: 127.0.0.1\r\n",
        "\r\nvia: 1.1 levee\r\n",
        "\r\nhost: site.example\r\n",
    ] {
        assert!(request.contains(line), "{line} is not in {request}");
    }
    assert!(!request.contains("x-hop"), "{request}");
}
