//! Requests as they come over a wire: cut up, in rows, slow, wrong.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use crate::support::{Setup, get};

#[test]
fn bad_requests_get_their_status_and_end_the_connection() {
    let running = Setup::default().start();
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    let table = [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        (
            "GET / HTTP/1.1\r\nHost: site.example\r\nHost: site.example\r\n\r\n",
            400,
        ),
        ("GET / HTTP/1.1\nHost: site.example\n\n", 400),
        ("GET / HTTP/1.1\r\nHost : site.example\r\n\r\n", 400),
        (
            "GET / HTTP/1.1\r\nHost: site.example\r\nX: y\r\n z\r\n\r\n",
            400,
        ),
        (
            "GET http://b.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: 4\r\n\
             Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: site.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
            400,
        ),
        (long.as_str(), 414),
        ("GET / HTTP/3.7\r\nHost: site.example\r\n\r\n", 505),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\r\n\r\n", 400),
    ];
    for (request, status) in table {
        let mut client = running.connect();
        client.send(request);
        let response = client.receive();
        assert_eq!(response.status, status, "{request:?}");
        assert_eq!(response.header("connection"), "close", "{request:?}");
        assert!(client.rest().is_empty(), "{request:?}");
    }
    let many = format!(
        "GET / HTTP/1.1\r\nHost: site.example\r\n{}\r\n",
        "X: y\r\n".repeat(200)
    );
    assert_eq!(running.ask(&many).status, 431);
    let sample = running.sample_until(|sample| sample.connections == 0);
    assert_eq!(sample.bad_requests, table.len() as u64 + 1);
}

#[test]
fn requests_in_a_row_are_answered_in_order() {
    let running = Setup::default().start();
    running.write("a", "aa");
    running.write("b", vec![b'b'; 300_000]);
    let mut client = running.connect();
    let head = "HEAD /a HTTP/1.1\r\nHost: site.example\r\n\r\n";
    let post = "POST /a HTTP/1.1\r\nHost: site.example\r\nContent-Length: 5\r\n\r\nhello";
    let chunks = "POST /a HTTP/1.1\r\nHost: site.example\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\n0\r\n\r\n";
    client.send(
        [
            &get("/a"),
            &get("/b"),
            head,
            post,
            chunks,
            &get("/a"),
            &get("/none"),
        ]
        .concat(),
    );
    assert_eq!(client.receive().text(), "aa");
    assert_eq!(client.receive().body.len(), 300_000);
    let response = client.receive_head();
    assert_eq!(
        (response.status, response.header("content-length")),
        (200, "2")
    );
    assert_eq!(client.receive().status, 405);
    assert_eq!(client.receive().status, 405);
    assert_eq!(client.receive().text(), "aa");
    assert_eq!(client.receive().status, 404);
}

#[test]
fn a_request_that_comes_byte_by_byte_is_answered() {
    let running = Setup::default().start();
    running.write("a", "aa");
    let mut client = running.connect();
    client.stream().set_nodelay(true).unwrap();
    for byte in get("/a").bytes() {
        client.send([byte]);
    }
    assert_eq!(client.receive().text(), "aa");
}

#[test]
fn persistence_follows_version_and_wish() {
    let running = Setup::default().start();
    running.write("a", "aa");
    let ask = |request: &str| {
        let mut client = running.connect();
        client.send(request);
        let connection = client.receive().header("connection").to_owned();
        if connection == "close" {
            assert!(client.rest().is_empty());
        }
        connection
    };
    let own = "Host: site.example\r\n";
    assert_eq!(ask(&get("/a")), "");
    assert_eq!(
        ask(&format!(
            "GET /a HTTP/1.1\r\n{own}Connection: close\r\n\r\n"
        )),
        "close"
    );
    assert_eq!(ask(&format!("GET /a HTTP/1.0\r\n{own}\r\n")), "close");
    let kept = format!("GET /a HTTP/1.0\r\n{own}Connection: keep-alive\r\n\r\n");
    assert_eq!(ask(&kept), "keep-alive");
}

#[test]
fn methods_and_expectations_get_their_answers() {
    let running = Setup::default().start();
    let table = [
        ("BREW / HTTP/1.1", "", 501),
        ("DELETE / HTTP/1.1", "", 405),
        ("CONNECT site.example:80 HTTP/1.1", "", 501),
        ("OPTIONS * HTTP/1.1", "", 204),
        ("GET / HTTP/1.1", "Expect: the-unexpected\r\n", 417),
    ];
    for (line, header, status) in table {
        let request = format!("{line}\r\nHost: site.example\r\n{header}\r\n");
        assert_eq!(running.ask(&request).status, status, "{line}");
    }
    let unknown = "GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n";
    assert_eq!(running.ask(unknown).status, 421);
}

#[test]
fn slow_visitors_are_told_so_or_closed() {
    let mut setup = Setup::default();
    setup.settings.deadlines.head = Duration::from_millis(50);
    setup.settings.deadlines.idle = Duration::from_millis(50);
    let running = setup.start();
    running.write("a", "aa");
    let mut slow = running.connect();
    slow.send("GET /a HT");
    assert_eq!(slow.receive().status, 408);
    assert!(slow.rest().is_empty());
    let mut silent = running.connect();
    assert!(silent.rest().is_empty());
    let mut idle = running.connect();
    idle.send(get("/a"));
    assert_eq!(idle.receive().status, 200);
    assert!(idle.rest().is_empty());
    let mut half_body = running.connect();
    half_body.send("POST /a HTTP/1.1\r\nHost: site.example\r\nContent-Length: 5\r\n\r\nhe");
    assert_eq!(half_body.receive().status, 405);
    assert_eq!(half_body.receive().status, 408);
    running.sample_until(|sample| sample.connections == 0);
}

/// A request with a body that nobody wants and whose end nobody knows, and 320 KB of it.
fn endless(target: &str) -> (String, String) {
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: site.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let chunks = format!("2000\r\n{}\r\n", "x".repeat(0x2000)).repeat(40);
    (head, chunks)
}

#[test]
fn who_is_answered_before_a_long_body_is_over_hears_the_whole_answer() {
    let running = Setup::default().start();
    running.write("a", "aa");
    running.write("big", vec![7; 400_000]);
    for _ in 0..20 {
        let (head, chunks) = endless("/a");
        let mut client = running.connect();
        client.send(format!("{head}{chunks}"));
        assert_eq!(client.receive().text(), "aa");
        // Most clients speak to the end before they listen: a reset would be all that they hear.
        client.send(&chunks);
        assert!(client.rest().is_empty());
        // Of an answer that waits for its reader, a reset would take what has not left.
        let (head, chunks) = endless("/big");
        let mut client = running.connect();
        client.send(format!("{head}{chunks}"));
        assert_eq!(client.receive().body.len(), 400_000);
        // What is no chunk does not take it either.
        let mut client = running.connect();
        client.send(format!("{head}no chunk\r\n{chunks}"));
        assert_eq!(client.receive().body.len(), 400_000);
    }
}

#[test]
fn who_never_stops_after_his_answer_is_let_go() {
    let running = Setup::default().start();
    running.write("a", "aa");
    let (head, chunks) = endless("/a");
    let mut client = running.connect();
    client.send(head);
    while client.stream().write_all(chunks.as_bytes()).is_ok() {}
    running.sample_until(|sample| sample.connections == 0);
}

#[test]
fn a_visitor_who_stops_reading_is_given_up() {
    let mut setup = Setup::default();
    setup.settings.deadlines.progress = Duration::from_millis(50);
    let running = setup.start();
    running.write("big", vec![7; 30_000_000]);
    let mut client = running.connect();
    client.send(get("/big"));
    running.sample_until(|sample| sample.bytes > 0);
    running.sample_until(|sample| sample.connections == 0);
    assert!(client.rest().len() < 30_000_000);
}

#[test]
fn visitors_who_leave_cost_nobody_else_anything() {
    let running = Setup::default().start();
    running.write("a", "aa");
    running.write("big", vec![7; 30_000_000]);
    for _ in 0..50 {
        let mut client = running.connect();
        client.send(get("/big"));
        drop(client);
    }
    let mut half_closed = running.connect();
    half_closed.send(get("/a"));
    half_closed.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(half_closed.receive().text(), "aa");
    assert!(half_closed.rest().is_empty());
    let sample = running.sample_until(|sample| sample.connections == 0);
    assert_eq!(sample.panics, 0);
    assert_eq!(sample.accepted, 51);
}

#[test]
fn beyond_the_limit_the_longest_idle_connection_goes() {
    let mut setup = Setup::default();
    setup.settings.limits.connections = 3;
    let running = setup.start();
    running.write("a", "aa");
    let mut clients: Vec<_> = (0..5).map(|_| running.connect()).collect();
    for client in &mut clients {
        client.send(get("/a"));
        assert_eq!(client.receive().text(), "aa");
    }
    assert!(clients[0].rest().is_empty());
    assert!(clients[1].rest().is_empty());
    let last = clients.last_mut().unwrap();
    last.send(get("/a"));
    assert_eq!(last.receive().text(), "aa");
}

#[test]
fn a_drain_lets_nobody_in_and_ends() {
    let running = Setup::default().start();
    running.write("a", "aa");
    let mut idle = running.connect();
    idle.send(get("/a"));
    idle.receive();
    running.front.drain(Duration::from_secs(5));
    assert!(idle.rest().is_empty());
    while !running.front.is_drained() {
        std::thread::yield_now();
    }
    assert!(std::net::TcpStream::connect(running.address).is_err());
}

#[test]
fn a_visitor_who_says_no_more_is_let_go_at_once() {
    let running = Setup::default().start();
    running.write("index.html", "page");
    for _ in 0..500 {
        let mut client = running.connect();
        client.send(get("/"));
        client.stream().shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.receive().text(), "page");
        assert!(client.rest().is_empty());
    }
}
