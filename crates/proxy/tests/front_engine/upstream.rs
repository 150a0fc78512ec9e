//! A site whose pages come from an application.

use std::time::Instant;

use crate::support::{PATIENCE, Setup, get, origin};

fn echo(head: &str) -> String {
    let length = head.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}")
}

#[test]
fn an_application_gets_the_request_and_who_sent_it() {
    let running = Setup {
        upstream: Some(origin(echo)),
        ..Setup::default()
    }
    .start();
    let response = running.ask(
        "PATCH /a?b HTTP/1.1\r\nHost: site.example\r\nX-Forwarded-For: 9.9.9.9\r\nCookie: c=d\r\n\
         Connection: x-hop\r\nX-Hop: y\r\nContent-Length: 3\r\n\r\nabc",
    );
    let text = response.text().to_lowercase();
    assert!(text.starts_with("patch /a?b http/1.1\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\nabc"), "{text}");
    for line in [
        "host: site.example\r\n",
        "cookie: c=d\r\n",
        "x-forwarded-for: 127.0.0.1\r\n",
        "x-forwarded-proto: http\r\n",
        "x-forwarded-host: site.example\r\n",
        "via: 1.1 levee\r\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(
        !text.contains("9.9.9.9") && !text.contains("x-hop"),
        "{text}"
    );
}

#[test]
fn bodies_of_any_framing_reach_the_application() {
    let running = Setup {
        upstream: Some(origin(echo)),
        ..Setup::default()
    }
    .start();
    let body = "x".repeat(2_000_000);
    let known = format!(
        "POST / HTTP/1.1\r\nHost: site.example\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(running.ask(&known).text().ends_with(&body));
    let mut client = running.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: site.example\r\nTransfer-Encoding: chunked\r\n\
         Expect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.receive().status, 100);
    client.send("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    assert!(client.receive().text().ends_with("hello world"));
}

#[test]
fn a_trace_is_not_passed_on_and_learns_what_is() {
    let running = Setup {
        upstream: Some(origin(echo)),
        ..Setup::default()
    }
    .start();
    let response = running.ask("TRACE / HTTP/1.1\r\nHost: site.example\r\n\r\n");
    assert_eq!(response.status, 405);
    assert!(response.header("allow").contains("POST"), "{response:?}");
}

#[test]
fn nothing_behind_a_broken_body_is_a_request() {
    let running = Setup {
        upstream: Some(origin(echo)),
        ..Setup::default()
    }
    .start();
    for broken in [
        "zz\r\n",
        "-1\r\n",
        "3\r\nabcd\r\n",
        "3\r\nabc\r\n0\r\na b\r\n",
    ] {
        let mut client = running.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: site.example\r\nTransfer-Encoding: chunked\r\n\r\n{broken}"
        ));
        let response = client.receive();
        assert_eq!(response.status, 400, "{broken:?}");
        assert_eq!(response.header("connection"), "close", "{broken:?}");
        // Whoever reads the body from its start again finds its end here, and a request.
        client.send(format!("0\r\n\r\n{}", get("/smuggled")));
        assert!(client.rest().is_empty(), "{broken:?}");
    }
}

#[test]
fn an_answer_of_unknown_length_comes_in_chunks() {
    let upstream = origin(|_| "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end".into());
    let running = Setup {
        upstream: Some(upstream),
        ..Setup::default()
    }
    .start();
    let mut client = running.connect();
    client.send(get("/"));
    let response = client.receive();
    assert_eq!(response.header("transfer-encoding"), "chunked");
    assert_eq!(response.text(), "until the end");
    client.send("GET / HTTP/1.0\r\nHost: site.example\r\n\r\n");
    let rest = String::from_utf8(client.rest()).unwrap();
    assert!(rest.ends_with("\r\n\r\nuntil the end"), "{rest}");
}

#[test]
fn cache_status_says_what_the_cache_did() {
    let upstream = origin(|head| {
        let fields = match head.starts_with("GET /kept ") {
            true => "Cache-Control: max-age=60\r\nCache-Status: inner; hit",
            false => "Cache-Control: no-store",
        };
        format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{fields}\r\nConnection: close\r\n\r\nok")
    });
    let running = Setup {
        upstream: Some(upstream),
        ..Setup::default()
    }
    .start();
    let said = |request: &str| {
        let response = running.ask(request);
        let lines = response
            .head
            .lines()
            .filter_map(|line| line.split_once(": "));
        let ours = lines.filter(|(name, _)| name.eq_ignore_ascii_case("cache-status"));
        // What is left of the lifetime depends on how busy this machine is.
        let value = |value: &str| value.trim_end_matches(char::is_numeric).to_owned();
        ours.map(|(_, text)| value(text)).collect::<Vec<_>>()
    };
    assert_eq!(
        said(&get("/kept")),
        ["inner; hit", "levee; fwd=uri-miss; stored; ttl="]
    );
    // Who comes before the object is kept shares the fetch, which is as good.
    let is_shared = |said: &[String]| said.iter().any(|line| line.contains("collapsed"));
    let end = Instant::now() + PATIENCE;
    let next = loop {
        let next = said(&get("/kept"));
        if !is_shared(&next) || Instant::now() > end {
            break next;
        }
    };
    assert_eq!(next, ["inner; hit", "levee; hit; ttl="]);
    assert_eq!(said(&get("/private")), ["levee; fwd=uri-miss"]);
    assert_eq!(said(&get("/private")), ["levee; fwd=bypass"]);
    let post = "POST /kept HTTP/1.1\r\nHost: site.example\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(said(post), ["levee; fwd=method"]);
}

#[test]
fn proxy_status_says_why_there_is_no_answer() {
    let running = Setup {
        upstream: Some(origin(|_| "this is not HTTP\r\n\r\n".into())),
        ..Setup::default()
    }
    .start();
    let response = running.ask(&get("/"));
    assert_eq!(response.status, 502);
    assert_eq!(
        response.header("proxy-status"),
        "levee; error=http_protocol_error"
    );
}

#[test]
fn early_hints_come_before_the_response_to_those_who_know_them() {
    let running = Setup {
        upstream: Some(origin(|_| {
            let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
            let response = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\
                            Connection: close\r\n\r\nok";
            format!("{hints}{response}")
        })),
        ..Setup::default()
    }
    .start();
    for _ in 0..2 {
        let mut client = running.connect();
        client.send(get("/"));
        let hints = client.receive_head();
        assert_eq!(
            (hints.status, hints.header("link")),
            (103, "</a.css>; rel=preload")
        );
        let response = client.receive();
        assert_eq!((response.status, response.text()), (200, "ok"));
    }
    let old = running.ask("GET / HTTP/1.0\r\nHost: site.example\r\n\r\n");
    assert_eq!((old.status, old.text()), (200, "ok"));
}
