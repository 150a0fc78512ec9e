//! Visitors who speak HTTP/2: what they get.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request};

use crate::support::{PATIENCE, Running, Setup, origin, redirecting};

/// A response, read to its end.
pub struct Answer {
    pub status: u16,
    headers: http::HeaderMap,
    body: Vec<u8>,
}

/// Runs `visit` with a session to `address`.
pub fn with_session<F, T>(address: SocketAddr, visit: impl FnOnce(SendRequest<Bytes>) -> F) -> T
where
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut client = h2::client::Builder::new();
        // Room for the others beside a stream that nobody reads.
        client.initial_connection_window_size(1 << 20);
        let (requests, connection) = client.handshake(socket).await.unwrap();
        tokio::spawn(connection);
        tokio::time::timeout(PATIENCE, visit(requests))
            .await
            .unwrap()
    })
}

/// Asks for `path` of our site, with `body`.
pub async fn ask(requests: &SendRequest<Bytes>, method: Method, path: &str, body: &str) -> Answer {
    let mut requests = requests.clone().ready().await.unwrap();
    let request = Request::builder()
        .method(method)
        .uri(format!("http://site.example{path}"))
        .body(())
        .unwrap();
    let (response, mut upload) = requests.send_request(request, body.is_empty()).unwrap();
    let mut rest = Bytes::copy_from_slice(body.as_bytes());
    while !rest.is_empty() {
        upload.reserve_capacity(rest.len());
        let room = poll_fn(|context| upload.poll_capacity(context)).await;
        let piece = rest.split_to(room.unwrap().unwrap().min(rest.len()));
        upload.send_data(piece, rest.is_empty()).unwrap();
    }
    read(response.await.unwrap()).await
}

async fn read(response: http::Response<h2::RecvStream>) -> Answer {
    let (head, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
    }
}

pub fn with_files() -> Running {
    let running = Setup::default().start();
    running.write("small.txt", "small");
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    running.write("large.bin", large);
    running
}

#[test]
fn many_streams_of_one_connection_get_whole_files() {
    let running = with_files();
    let large = std::fs::read(running.path("large.bin")).unwrap();
    with_session(running.address, async |requests| {
        for _ in 0..3 {
            let asked = ["/large.bin", "/small.txt", "/none"].map(|path| {
                let requests = requests.clone();
                tokio::spawn(async move { ask(&requests, Method::GET, path, "").await })
            });
            let [whole, small, missing] = asked;
            let whole = whole.await.unwrap();
            assert_eq!(whole.status, 200);
            assert!(whole.body == large, "{} bytes", whole.body.len());
            assert!(!whole.headers.contains_key("connection"));
            assert_eq!(small.await.unwrap().body, b"small");
            assert_eq!(missing.await.unwrap().status, 404);
        }
        let head = ask(&requests, Method::HEAD, "/small.txt", "").await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.headers["content-length"], "5");
    });
    let sample = running.sample_until(|sample| sample.http2_streams == 0);
    assert_eq!((sample.http2_accepted, sample.http2_requests), (1, 10));
}

#[test]
fn bodies_reach_the_application_whatever_their_length() {
    let running = Setup {
        upstream: Some(origin(|head| {
            let length = head.len();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}"
            )
        })),
        ..Setup::default()
    }
    .start();
    let body = "x".repeat(2_000_000);
    with_session(running.address, async |requests| {
        let answer = ask(&requests, Method::POST, "/a?b", &body).await;
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.starts_with("POST /a?b HTTP/1.1\r\n"), "{:.300}", text);
        assert!(text.to_lowercase().contains("host: site.example\r\n"));
        assert!(text.ends_with(&body));
        let answer = ask(&requests, Method::GET, "/", "").await;
        assert!(answer.body.starts_with(b"GET / HTTP/1.1\r\n"));
    });
}

#[test]
fn a_redirect_is_a_redirect_by_http_2_as_well() {
    let running = Setup {
        plan: redirecting("site-vh1.alias.example"),
        ..Setup::default()
    }
    .start();
    running.write("page.html", "x".repeat(5000));
    with_session(running.address, async |requests| {
        let answer = ask(&requests, Method::GET, "/page.html?a", "").await;
        assert_eq!(answer.status, 302);
        let to = "http://site-vh1.alias.example:8080/page.html?a";
        assert_eq!(answer.headers["location"], to);
    });
}

#[test]
fn a_stream_that_is_not_read_holds_up_no_other() {
    let running = with_files();
    with_session(running.address, async |requests| {
        let mut held = Vec::new();
        for _ in 0..4 {
            let mut requests = requests.clone().ready().await.unwrap();
            let request = Request::get("http://site.example/large.bin").body(());
            let (response, _) = requests.send_request(request.unwrap(), true).unwrap();
            // The head is read, the body is not: its window stays full.
            held.push(response.await.unwrap());
            // What this visitor has received of it must not fill the window of the connection.
            let stream = held.last_mut().unwrap().body_mut();
            let piece = stream.data().await.unwrap().unwrap();
            drop(piece);
        }
        drop(held.split_off(1));
        let small = ask(&requests, Method::GET, "/small.txt", "").await;
        assert_eq!(small.body, b"small");
    });
}

#[test]
fn two_names_in_one_request_are_refused() {
    let running = with_files();
    with_session(running.address, async |requests| {
        let mut requests = requests.ready().await.unwrap();
        let request = Request::get("http://site.example/small.txt").header("host", "other.example");
        let (response, _) = requests
            .send_request(request.body(()).unwrap(), true)
            .unwrap();
        assert_eq!(response.await.unwrap().status(), 400);
    });
}

#[test]
fn a_server_that_drains_lets_streams_finish_and_says_goodbye() {
    let running = with_files();
    with_session(running.address, async |requests| {
        let mut ready = requests.clone().ready().await.unwrap();
        let request = Request::get("http://site.example/large.bin").body(());
        let (response, _) = ready.send_request(request.unwrap(), true).unwrap();
        let response = response.await.unwrap();
        running.front.drain(PATIENCE);
        let whole = read(response).await;
        assert_eq!(whole.body.len(), 3_000_000);
        drop((requests, ready));
    });
    while !running.front.is_drained() {
        std::thread::yield_now();
    }
}

#[test]
fn a_wrong_preface_ends_the_connection_and_a_wrong_request_line_is_told() {
    let running = with_files();
    let answer = |sent: &str| {
        let mut socket = TcpStream::connect(running.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(sent.as_bytes()).unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    };
    assert_eq!(answer("INVALID CONNECTION PREFACE\r\n\r\n"), "");
    // The last ones look for a server of TLS, and for one of SSH.
    for line in [
        "hello",
        "BREW /pot",
        "BREW /pot coffee",
        "BREW pot HTTP",
        "BREW http://site.example/ coffee",
        "get / HTTP/1.1.1",
        "\u{16}\u{3}\u{1}\u{2}",
        "SSH-2.0-client",
    ] {
        let told = answer(&format!("{line}\r\n\r\n"));
        assert!(told.starts_with("HTTP/1.1 400 "), "{line}: {told}");
    }
}
