//! Answers for origins that are rescued.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use levee_control::{Homes, OriginPhase, RoutePlan};
use levee_proxy::Sample;
use levee_vocab::{ByteRate, FetchKey, LinkId, Peer, Peers, Timestamp};

use crate::support::{Running, Setup, origin, rescuing, web};

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"x\"\r\n\
    Content-Length: 5\r\nConnection: close\r\n\r\nhello";

fn at(host: &str, method: &str, target: &str, lines: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n")
}

#[test]
fn a_page_under_an_alias_is_fetched_once_and_says_where_it_lives() {
    let fetches = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&fetches);
    let (heads, head) = mpsc::channel();
    let address = origin(move |head| {
        seen.fetch_add(1, Ordering::Relaxed);
        heads.send(head.to_owned()).unwrap();
        PAGE.into()
    });
    let plan = rescuing(address, OriginPhase::Live);
    let running = Setup {
        plan,
        ..Setup::default()
    }
    .start();
    let alias = "site-vh1.alias.example:8080";
    let mut clients: Vec<_> = (0..5).map(|_| running.connect()).collect();
    for client in &mut clients {
        let lines = "Cookie: secret=1\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n";
        client.send(at(alias, "GET", "/a?b", lines));
    }
    for client in &mut clients {
        let response = client.receive();
        assert_eq!((response.status, response.text()), (200, "hello"));
        let link = "<http://origin.example:8080/a?b>; rel=\"canonical\"";
        assert_eq!(response.header("link"), link);
        assert_eq!(response.header("x-robots-tag"), "noindex");
    }
    assert_eq!(fetches.load(Ordering::Relaxed), 1);
    let head = head.recv().unwrap().to_lowercase();
    assert!(head.contains("host: origin.example:8080\r\n"), "{head}");
    assert!(
        head.contains("levee-fetch: 0123456789abcdef0123456789abcdef\r\n"),
        "{head}"
    );
    assert!(!head.contains("cookie"), "{head}");
    assert!(!head.contains("evil.example"), "{head}");
    let same = running.ask(&at(alias, "GET", "/a?b", "If-None-Match: \"x\"\r\n"));
    assert_eq!(same.status, 304);
    let part = running.ask(&at(alias, "GET", "/a?b", "Range: bytes=1-3\r\n"));
    assert_eq!((part.status, part.text()), (206, "ell"));
    let own = running.ask(&at("origin.example", "GET", "/a?b", ""));
    assert_eq!((own.text(), own.header("link")), ("hello", ""));
    let sample = running.sample_until(|sample| sample.rescue_requests == 8);
    assert_eq!(sample.slots[&9].rescue_requests, 8);
    assert_eq!(sample.slots[&9].rescue_bytes, sample.bytes);
}

#[test]
fn the_first_request_for_a_page_may_be_a_head() {
    // Link preview fetchers begin with HEAD, so a rescue server's very first request is often one.
    let running = Setup {
        plan: rescuing(origin(|_| PAGE.into()), OriginPhase::Live),
        ..Setup::default()
    }
    .start();
    let mut client = running.connect();
    client.send(at("site-vh1.alias.example:8080", "HEAD", "/a", ""));
    let response = client.receive_head();
    assert_eq!((response.status, response.text()), (200, ""));
    assert_eq!(response.header("content-length"), "5");
}

#[test]
fn an_old_page_that_is_shown_while_it_is_renewed_is_cut_like_any_other() {
    let old = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nAge: 100\r\n\
        Cache-Control: max-age=50, stale-while-revalidate=1000\r\n\
        Content-Length: 5\r\nConnection: close\r\n\r\nhello";
    let running = Setup {
        plan: rescuing(origin(move |_| old.into()), OriginPhase::Live),
        ..Setup::default()
    }
    .start();
    let alias = "site-vh1.alias.example:8080";
    let ask = |method, lines| running.ask(&at(alias, method, "/a", lines));
    // Who comes before the page is in the cache gets all of it.
    let part = loop {
        let response = ask("GET", "Range: bytes=1-3\r\n");
        if response.status != 200 {
            break response;
        }
    };
    assert_eq!((part.status, part.text()), (206, "ell"));
    assert!(part.header("age").parse::<u64>().unwrap() >= 100);
    assert_eq!(ask("GET", "If-None-Match: \"x\"\r\n").status, 304);
    assert_eq!(ask("GET", "").text(), "hello");
}

#[test]
fn what_a_rescue_server_must_not_answer_goes_to_the_origin() {
    let address = origin(|_| PAGE.into());
    let plan = rescuing(address, OriginPhase::Live);
    let running = Setup {
        plan,
        ..Setup::default()
    }
    .start();
    let back = "http://origin.example:8080/a?b";
    let alias = "site-vh1.alias.example";
    for (method, lines) in [
        ("POST", "Content-Length: 0\r\n"),
        ("GET", "Authorization: x\r\n"),
    ] {
        let response = running.ask(&at(alias, method, "/a?b", lines));
        assert_eq!((response.status, response.header("location")), (307, back));
        assert_eq!(response.header("cache-control"), "no-store");
    }
}

#[test]
fn an_expired_alias_sends_visitors_back() {
    let until = Timestamp::from_seconds(u64::MAX / 2_000_000_000);
    let plan = rescuing(([127, 0, 0, 1], 1).into(), OriginPhase::Expired { until });
    let running = Setup {
        plan,
        ..Setup::default()
    }
    .start();
    let ask = |method, target| {
        let length = "Content-Length: 0\r\n";
        let response = running.ask(&at("site-vh1.alias.example", method, target, length));
        assert_eq!(response.header("cache-control"), "no-store");
        let location = response.header("location").to_owned();
        (response.status, location)
    };
    let back = "http://origin.example:8080/a?b";
    let (status, location) = ask("GET", "/a?b");
    let word = location.strip_prefix(&format!("{back}&levee-back="));
    assert_eq!((status, word.unwrap().len()), (302, 16), "{location}");
    // Who has been sent back before is told to the origin without a proof: it answers in any case.
    let unsigned = format!("{back}&levee-back=");
    assert_eq!(ask("GET", "/a?b&levee-back=x"), (302, unsigned));
    assert_eq!(ask("POST", "/a?b"), (307, back.to_owned()));
    let sample = running.sample_until(|sample| sample.sent_back.over == 3);
    assert_eq!((sample.sent_back.missing, sample.sent_back.busy), (0, 0));
}

#[test]
fn a_restored_alias_leads_back_without_a_proof_and_has_the_rest_come_again() {
    let until = Timestamp::from_seconds(u64::MAX / 2_000_000_000);
    let plan = rescuing(([127, 0, 0, 1], 1).into(), OriginPhase::Restored { until });
    let running = Setup {
        plan,
        ..Setup::default()
    }
    .start();
    for target in ["/a?b", "/a?b&levee-back=x"] {
        let response = running.ask(&at("site-vh1.alias.example", "GET", target, ""));
        let back = "http://origin.example:8080/a?b&levee-back=";
        assert_eq!((response.status, response.header("location")), (302, back));
    }
    let post = at(
        "site-vh1.alias.example",
        "POST",
        "/",
        "Content-Length: 0\r\n",
    );
    let response = running.ask(&post);
    assert_eq!(response.status, 503);
    assert!(response.header("retry-after").parse::<u64>().unwrap() > 0);
    assert_eq!(response.header("cache-control"), "no-store");
}

#[test]
fn an_origin_that_is_gone_is_told_as_a_bad_gateway() {
    let gone = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let plan = rescuing(address, OriginPhase::Live);
    let running = Setup {
        plan,
        ..Setup::default()
    }
    .start();
    let response = running.ask(&at("site-vh1.alias.example", "GET", "/", ""));
    assert_eq!(response.status, 502);
}

#[test]
fn log_lines_are_taken_only_from_our_rescue_servers() {
    let key = "0123456789abcdef0123456789abcdef";
    let (lines, handed_over) = mpsc::channel();
    let setup = Setup {
        plan: RoutePlan {
            fetch_keys: vec![(LinkId::Outbound(3), key.parse().unwrap())],
            ..RoutePlan::default()
        },
        handed_over: Some(Arc::new(move |link, bytes| {
            lines.send((link, bytes)).unwrap()
        })),
        ..Setup::default()
    };
    let running = setup.start();
    let post = |lines: &str, body: &str| {
        running.ask(&(at("site.example", "POST", "/.levee/access-log", lines) + body))
    };
    let with_key = format!("levee-fetch: {key}\r\n");
    assert_eq!(post("Content-Length: 2\r\n", "a\n").status, 403);
    assert_eq!(
        post(&format!("{with_key}Content-Length: 4\r\n"), "a\nb\n").status,
        204
    );
    assert_eq!(
        handed_over.recv().unwrap(),
        (LinkId::Outbound(3), "a\nb\n".into())
    );
    let chunked = format!("{with_key}Transfer-Encoding: chunked\r\n");
    assert_eq!(post(&chunked, "2\r\nc\n\r\n0\r\n\r\n").status, 204);
    assert_eq!(handed_over.recv().unwrap().1, "c\n");
    assert_eq!(
        post(&format!("{with_key}Content-Length: 9999999\r\n"), "").status,
        413
    );
    let get = running.ask(&at("site.example", "GET", "/.levee/access-log", &with_key));
    assert_eq!(get.status, 405);
    assert_eq!(running.get("/.levee/else").status, 404);
}

/// An origin that says this of its only page, rescued by us and another.
fn with_another(page: &'static str) -> Running {
    let mut plan = rescuing(origin(move |_| page.into()), OriginPhase::Live);
    let peers = Peers {
        key: FetchKey::from_bytes([7; 16]),
        members: vec![Peer {
            alias: web("www-vh1.other.example", 80),
            address: "192.0.2.7".parse().unwrap(),
            tls: None,
            rate: ByteRate::from_kilobytes(100),
        }],
    };
    let alias = web("site-vh1.alias.example", 8080);
    let homes = Homes::new(&peers, &alias).unwrap();
    Arc::make_mut(&mut plan.hosts.origins[0]).homes = Some(Arc::new(homes));
    Setup {
        plan,
        ..Setup::default()
    }
    .start()
}

#[test]
fn another_rescue_server_is_answered_as_a_home_answers() {
    let running = with_another(
        "HTTP/1.1 200 OK\r\nSurrogate-Key: a b\r\nCDN-Cache-Control: max-age=60\r\n\
         Content-Length: 5\r\nConnection: close\r\n\r\nhello",
    );
    let alias = "site-vh1.alias.example:8080";
    let shows = format!("Levee-Home: {}\r\n", "07".repeat(16));
    let ask = at(alias, "GET", "/a", &shows);
    for response in [running.ask(&ask), running.ask_until_kept(&ask)] {
        assert_eq!((response.status, response.text()), (200, "hello"));
        assert_eq!(response.header("levee-home"), "yes");
        assert_eq!(response.header("surrogate-key"), "a b");
        assert_eq!(response.header("cdn-cache-control"), "max-age=60");
        assert_eq!(response.header("link"), "");
        assert_eq!(response.header("x-robots-tag"), "");
    }
    let copy = format!("{shows}Cache-Control: only-if-cached\r\n");
    assert_eq!(running.ask(&at(alias, "GET", "/a", &copy)).text(), "hello");
    let none = running.ask(&at(alias, "GET", "/b", &copy));
    assert_eq!((none.status, none.header("levee-home")), (504, ""));
    let visitor = running.ask(&at(alias, "GET", "/a", ""));
    assert_eq!(visitor.header("levee-home"), "");
    assert_eq!(visitor.header("surrogate-key"), "");
    assert_eq!(visitor.header("x-robots-tag"), "noindex");
    let all = |sample: &Sample| sample.slots[&9].rescue_bytes == sample.bytes;
    running.sample_until(|sample| sample.rescue_requests >= 5 && all(sample));
}

#[test]
fn who_pretends_to_be_another_rescue_server_is_sent_away() {
    let running = with_another(PAGE);
    let alias = "site-vh1.alias.example:8080";
    let wrong = format!("Levee-Home: {}\r\n", "08".repeat(16));
    let right = format!("Levee-Home: {}\r\n", "07".repeat(16));
    let ask = |host, method, lines: &str| running.ask(&at(host, method, "/a", lines)).status;
    assert_eq!(ask(alias, "GET", &wrong), 421);
    assert_eq!(ask(alias, "GET", "Levee-Home: yes\r\n"), 421);
    assert_eq!(ask(alias, "POST", &right), 421);
    assert_eq!(ask("site.example", "GET", &right), 421);
    assert_eq!(ask(alias, "GET", ""), 200);
}
