//! Copies that an origin has made here: pushed or pulled, by nobody else, and only of what it lets
//! be kept.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use levee_control::{OriginPhase, RoutePlan};
use levee_proxy::{Errand, Space, Spaces};
use levee_vocab::{Purge, PurgeKind, Timestamp};

use crate::support::{Client, PATIENCE, Response, Running, Setup, origin, redirecting, rescuing};

const ALIAS: &str = "site-vh1.alias.example";
const KEY: &str = "levee-fetch: 0123456789abcdef0123456789abcdef\r\n";
const WRONG: &str = "levee-fetch: 0123456789abcdef0123456789abcdee\r\n";
const MESSAGE: &str = "Content-Type: message/http\r\n";
const CODINGS: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";

/// A rescue server whose origin says `fetched`, and how often that was asked.
fn cast() -> (Running, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let address = origin(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        ok("Connection: close\r\n", "fetched")
    });
    (rescue_server(address), asked)
}

fn rescue_server(origin: SocketAddr) -> Running {
    started(rescuing(origin, OriginPhase::Live))
}

fn started(plan: RoutePlan) -> Running {
    Setup {
        plan,
        ..Setup::default()
    }
    .start()
}

fn ok(fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{body}")
}

fn put(host: &str, lines: &str, body: &str) -> String {
    let length = body.len();
    format!("PUT /a HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{lines}\r\n{body}")
}

fn push(running: &Running, message: &str) -> Response {
    running.ask(&put(ALIAS, &format!("{KEY}{MESSAGE}{CODINGS}"), message))
}

fn pull(running: &Running) -> Response {
    running.ask(&put(
        ALIAS,
        &format!("{KEY}{CODINGS}levee-copy: pull\r\n"),
        "",
    ))
}

fn visit(running: &Running) -> Response {
    running.ask(&visitor())
}

fn visitor() -> String {
    format!("GET /a HTTP/1.1\r\nHost: {ALIAS}\r\nAccept-Encoding: br, gzip, zstd\r\n\r\n")
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_copy_is_there_before_anybody_asks() {
    let (running, asked) = cast();
    let page = ok(
        "Content-Type: text/html\r\nVary: Accept-Encoding\r\n",
        "pushed",
    );
    let answer = push(&running, &page);
    assert_eq!(
        (answer.status, answer.text()),
        (201, "{\"copy\":\"stored\"}\n")
    );
    let page = visit(&running);
    assert_eq!((page.status, page.text()), (200, "pushed"));
    assert_eq!(page.header("content-type"), "text/html");
    assert_eq!(push(&running, &ok("", "another")).status, 200);
    assert_eq!(visit(&running).text(), "pushed");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let counters = running.fetcher.counters();
    assert_eq!((counters.copies["stored"], counters.copies["held"]), (1, 1));
    assert_eq!((counters.fetches, counters.bytes), (0, 0));
    assert!(counters.copy_bytes > 6);
    let sample = running.sample_until(|sample| sample.rescue_requests == 2);
    assert_eq!(sample.slots[&9].rescue_requests, 2, "visitors only");
}

#[test]
fn who_pushes_what_is_held_hears_so_although_he_is_still_speaking() {
    let (running, _) = cast();
    assert_eq!(push(&running, &ok("", "pushed")).status, 201);
    let head = format!(
        "PUT /a HTTP/1.1\r\nHost: {ALIAS}\r\n{KEY}{MESSAGE}{CODINGS}\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    let chunks = format!("2000\r\n{}\r\n", "x".repeat(0x2000)).repeat(40);
    // The answer comes at any moment: while some of the body waits, or none.
    for _ in 0..20 {
        let mut client = running.connect();
        client.send(format!("{head}{chunks}"));
        let answer = client.receive();
        let held = (200, "{\"copy\":\"held\"}\n");
        assert_eq!((answer.status, answer.text()), held);
        // Most clients speak to the end before they listen: a reset would be all that they hear.
        client.send(&chunks);
        assert!(client.rest().is_empty());
    }
}

#[test]
fn a_copy_of_another_version_replaces_what_a_visitor_has_had_fetched() {
    let address = origin(|_| {
        ok(
            "ETag: \"v\"\r\nVary: Accept-Encoding\r\nConnection: close\r\n",
            "fetched",
        )
    });
    let running = rescue_server(address);
    for _ in 0..3 {
        assert_eq!(visit(&running).text(), "fetched");
    }
    let version = "If-None-Match: \"v-relative\"\r\n";
    let page = ok("ETag: \"v-relative\"\r\n", "rewritten");
    let push_version = || {
        let lines = format!("{KEY}{MESSAGE}{CODINGS}{version}");
        running.ask(&put(ALIAS, &lines, &page)).status
    };
    assert_eq!(push_version(), 201);
    assert_eq!(visit(&running).text(), "rewritten");
    let plain = format!("GET /a HTTP/1.1\r\nHost: {ALIAS}\r\n\r\n");
    assert_eq!(running.ask(&plain).text(), "rewritten", "in any coding");
    assert_eq!(push_version(), 200, "it is there");
    assert_eq!(push(&running, &ok("", "another")).status, 200);
    assert_eq!(visit(&running).text(), "rewritten");
}

#[test]
fn a_copy_comes_in_pieces_as_well() {
    let (running, asked) = cast();
    let mut client = running.connect();
    client.send(format!(
        "PUT /a HTTP/1.1\r\nHost: {ALIAS}\r\nTransfer-Encoding: chunked\r\n{KEY}{MESSAGE}\r\n"
    ));
    let message = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\npus\r\n3\r\nhed\r\n0\r\n\r\n";
    for byte in message.chars() {
        client.send(format!("1\r\n{byte}\r\n"));
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.receive().status, 201);
    assert_eq!(visit(&running).text(), "pushed");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // The connection is as good as new.
    client.send(visitor());
    assert_eq!(client.receive().text(), "pushed");
}

#[test]
fn only_the_origin_itself_may_store_and_only_under_its_own_names() {
    let (running, asked) = cast();
    let page = ok("", "pushed");
    for (host, lines, status) in [
        (ALIAS, MESSAGE.to_owned(), 403),
        (ALIAS, format!("{WRONG}{MESSAGE}"), 403),
        (ALIAS, format!("levee-fetch: \r\n{MESSAGE}"), 403),
        (ALIAS, format!("{WRONG}levee-copy: pull\r\n"), 403),
        // Our own site takes no files, and a name of nobody leads nowhere.
        ("site.example", format!("{KEY}{MESSAGE}"), 405),
        ("site-vh2.alias.example", format!("{KEY}{MESSAGE}"), 421),
        // Half a wish, and two of them.
        (ALIAS, format!("{KEY}levee-copy: pull\r\n"), 400),
    ] {
        let answer = running.ask(&put(host, &lines, &page));
        assert_eq!(answer.status, status, "{host} {lines}");
    }
    let empty = format!("PUT /a HTTP/1.1\r\nHost: {ALIAS}\r\n{KEY}{MESSAGE}\r\n");
    assert_eq!(running.ask(&empty).status, 400);
    for target in ["/.levee/access-log", "/.well-known/acme-challenge/x"] {
        let put = put(ALIAS, &format!("{KEY}{MESSAGE}"), &page);
        assert_eq!(
            running
                .ask(&put.replace("/a ", &format!("{target} ")))
                .status,
            409
        );
    }
    assert_eq!(visit(&running).text(), "fetched");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // A visitor's own PUT is the origin's business.
    let own = running.ask(&put(ALIAS, "Content-Type: text/plain\r\n", "x"));
    assert_eq!(own.status, 307);
}

#[test]
fn one_origin_cannot_store_for_another() {
    let nobody: SocketAddr = ([127, 0, 0, 1], 1).into();
    let mut plan = rescuing(nobody, OriginPhase::Live);
    let mut other = (*plan.hosts.origins[0]).clone();
    other.key = Some("f".repeat(32).parse().unwrap());
    other.origin.host = "other.example".parse().unwrap();
    other.alias = "site-vh2.alias.example".parse().unwrap();
    plan.hosts.names.insert(other.alias.clone(), 1);
    plan.hosts.names.insert(other.origin.host.clone(), 1);
    plan.hosts.origins.push(Arc::new(other));
    let running = started(plan);
    let lines = format!("{KEY}{MESSAGE}");
    let page = ok("", "pushed");
    for host in ["site-vh2.alias.example", "other.example"] {
        assert_eq!(running.ask(&put(host, &lines, &page)).status, 403);
    }
    for host in ["origin.example", ALIAS] {
        let status = running.ask(&put(host, &lines, &page)).status;
        assert!([200, 201].contains(&status), "{host}: {status}");
    }
}

#[test]
fn the_key_of_a_rescue_that_has_ended_opens_nothing() {
    let until = Timestamp::from_seconds(u64::MAX / 2_000_000_000);
    for phase in [
        OriginPhase::Ending { until },
        OriginPhase::Restored { until },
        OriginPhase::Expired { until },
    ] {
        let running = started(rescuing(([127, 0, 0, 1], 1).into(), phase));
        assert_eq!(push(&running, &ok("", "pushed")).status, 403, "{phase:?}");
        assert_eq!(pull(&running).status, 403, "{phase:?}");
    }
}

#[test]
fn what_may_not_be_kept_or_is_no_response_is_neither_kept_nor_shown() {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n{fields}\r\npushed");
    let whole = head("");
    for (message, status) in [
        (head("Set-Cookie: a=b\r\n"), 409),
        (head("Cache-Control: private\r\n"), 409),
        (head("Cache-Control: no-store\r\n"), 409),
        (head("Cache-Control: max-age=0\r\n"), 409),
        (head("Vary: *\r\n"), 409),
        (head("Vary: Accept-Encoding, User-Agent\r\n"), 409),
        (head("Vary: Cookie\r\n"), 409),
        (whole.replace("200 OK", "206 Partial Content"), 409),
        (whole.replace("200 OK", "302 Found"), 409),
        (whole.replace("200 OK", "404 Not Found"), 409),
        (whole.replace("200 OK", "500 Oops"), 409),
        (whole.replace("200 OK", "101 Switching Protocols"), 409),
        (whole.replace("Content-Length: 6\r\n", ""), 409),
        (head("Transfer-Encoding: gzip\r\n"), 400),
        (head("Content-Length: 7\r\n"), 400),
        (whole.replace(": 6", ": 7"), 400),
        (whole.replace(": 6", ": 5"), 400),
        (whole.clone() + "x", 400),
        (whole.clone() + &whole, 400),
        (whole.replace("HTTP/1.1", "ICY"), 400),
        ("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".into(), 400),
        ("\0".repeat(100_000), 400),
        (
            "HTTP/1.1 200 OK\r\nX: ".to_owned() + &"x".repeat(1 << 20),
            400,
        ),
        (whole.replace(": 6", ": 99999999"), 413),
    ] {
        let (running, asked) = cast();
        let told: String = message.chars().take(80).collect();
        assert_eq!(push(&running, &message).status, status, "{told:?}");
        assert_eq!(visit(&running).text(), "fetched", "{told:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{told:?}");
    }
}

#[test]
fn a_message_that_is_cut_or_damaged_anywhere_is_stored_as_it_stands_or_not_at_all() {
    let (running, _) = cast();
    let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"a\"\r\n\r\n\
         3\r\npus\r\n3\r\nhed\r\n0\r\n\r\n";
    for cut in 1..whole.len() {
        let status = push(&running, &whole[..cut]).status;
        assert!([400, 409].contains(&status), "{status} after {cut} bytes");
    }
    let space = Space::Origin("origin.example".parse().unwrap(), 8080);
    for at in 0..whole.len() {
        for junk in ["\0", "\n", "0", "f", " ", ":"] {
            let damaged = format!("{}{junk}{}", &whole[..at], &whole[at + 1..]);
            match push(&running, &damaged).status {
                201 => {
                    let page = visit(&running);
                    let is_page = [damaged.contains("pus"), damaged.contains("hed")];
                    assert_eq!(
                        page.text() == "pushed",
                        is_page == [true, true],
                        "{damaged:?}"
                    );
                    assert_eq!(page.body.len(), 6, "{damaged:?}");
                    running.fetcher.forget(&space);
                }
                status => assert!([400, 409].contains(&status), "{status} for {damaged:?}"),
            }
        }
    }
}

#[test]
fn a_body_that_proves_too_long_for_memory_is_refused_while_it_comes() {
    let (running, _) = cast();
    let mut client = running.connect();
    client.send(format!(
        "PUT /a HTTP/1.1\r\nHost: {ALIAS}\r\nTransfer-Encoding: chunked\r\n{KEY}{MESSAGE}\
         Expect: 100-continue\r\n\r\n"
    ));
    assert_eq!(client.receive().status, 100);
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send(format!("{:x}\r\n{head}\r\n", head.len()));
    let inner = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16));
    let piece = format!("{:x}\r\n{inner}\r\n", inner.len());
    let mut stream = client.stream().try_clone().unwrap();
    // It goes on for ever, until it is told.
    let sender = std::thread::spawn(move || while stream.write_all(piece.as_bytes()).is_ok() {});
    assert_eq!(client.receive().status, 413);
    drop(client);
    sender.join().unwrap();
    assert_eq!(visit(&running).text(), "fetched");
}

#[test]
fn visitors_who_wait_for_a_push_that_dies_are_served_by_the_origin() {
    let (running, asked) = cast();
    let mut pusher = running.connect();
    pusher.send(format!(
        "PUT /a HTTP/1.1\r\nHost: {ALIAS}\r\nContent-Length: 100\r\n{KEY}{MESSAGE}\r\nHTTP/1.1 200"
    ));
    until("the push", || running.fetcher.flights().0 == 1);
    let mut visitors: Vec<_> = (0..3).map(|_| running.connect()).collect();
    for visitor_of in &mut visitors {
        visitor_of.send(visitor());
    }
    until("the visitors", || running.fetcher.counters().collapsed == 3);
    drop(pusher);
    for visitor in &mut visitors {
        assert_eq!(visitor.receive().text(), "fetched");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn visitors_who_come_while_a_copy_is_pushed_get_it() {
    let (running, asked) = cast();
    let message = ok("", "pushed");
    let mut pusher = running.connect();
    let put = put(ALIAS, &format!("{KEY}{MESSAGE}"), &message);
    let (first, last) = put.split_at(put.len() - 3);
    pusher.send(first);
    until("the push", || running.fetcher.flights().0 > 0);
    let mut client = running.connect();
    client.send(format!("GET /a HTTP/1.1\r\nHost: {ALIAS}\r\n\r\n"));
    until("the visitor", || running.fetcher.counters().collapsed == 1);
    pusher.send(last);
    assert_eq!(client.receive().text(), "pushed");
    assert_eq!(pusher.receive().status, 201);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[test]
fn a_pusher_that_is_killed_half_way_leaves_nothing_behind() {
    let (running, _) = cast();
    let mut pusher = running.connect();
    pusher.send(format!(
        "PUT /a HTTP/1.1\r\nHost: {ALIAS}\r\nContent-Length: 1000\r\n{KEY}{MESSAGE}\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nhalf"
    ));
    until("the push", || running.fetcher.counters().copy_bytes > 0);
    drop(pusher);
    until("its end", || {
        running.fetcher.counters().copies["malformed"] == 1
    });
    until("its flight's end", || running.fetcher.flights().0 == 0);
    assert_eq!(visit(&running).text(), "fetched");
}

#[test]
fn a_push_of_what_a_visitor_is_having_fetched_costs_no_second_copy() {
    let (go, gate) = mpsc::channel::<()>();
    let address = origin(move |_| {
        gate.recv().unwrap();
        ok("Connection: close\r\n", "fetched")
    });
    let running = rescue_server(address);
    let mut client = running.connect();
    client.send(visitor());
    until("the fetch", || running.fetcher.counters().fetches == 1);
    let mut pusher = running.connect();
    let lines = format!("{KEY}{MESSAGE}{CODINGS}");
    pusher.send(put(ALIAS, &lines, &ok("", "pushed")));
    until("the push", || running.fetcher.counters().collapsed == 1);
    go.send(()).unwrap();
    assert_eq!(client.receive().text(), "fetched");
    assert_eq!(pusher.receive().status, 201);
    assert_eq!(visit(&running).text(), "fetched");
    assert_eq!(running.fetcher.counters().copy_bytes, 0);
}

#[test]
fn what_is_purged_while_it_is_pushed_is_not_kept() {
    let (running, _) = cast();
    let put = put(ALIAS, &format!("{KEY}{MESSAGE}"), &ok("", "pushed"));
    let (first, last) = put.split_at(put.len() - 3);
    let mut pusher = running.connect();
    pusher.send(first);
    until("the push", || running.fetcher.counters().copy_bytes > 0);
    let space = Space::Origin("origin.example".parse().unwrap(), 8080);
    let purge = Purge::url("/a", PurgeKind::Hard).unwrap();
    running.fetcher.purge(&Spaces::One(space), &purge);
    pusher.send(last);
    assert_eq!(pusher.receive().status, 409);
    assert_eq!(visit(&running).text(), "fetched");
}

#[test]
fn more_pushes_than_one_origin_may_have_under_way_are_told_so_at_once() {
    let (running, _) = cast();
    let begin = |number: usize| {
        let mut pusher = running.connect();
        pusher.send(format!(
            "PUT /{number} HTTP/1.1\r\nHost: {ALIAS}\r\nContent-Length: 9\r\n{KEY}{MESSAGE}\r\n"
        ));
        pusher
    };
    let stalled: Vec<Client> = (0..8).map(begin).collect();
    until("eight", || running.fetcher.flights().0 == 8);
    for number in 8..200 {
        assert_eq!(begin(number).receive().status, 503);
    }
    assert_eq!(running.fetcher.counters().copies["busy"], 192);
    assert_eq!(visit(&running).text(), "fetched", "visitors do not notice");
    drop(stalled);
    until("their end", || running.fetcher.flights().0 == 0);
    running
        .fetcher
        .forget(&Space::Origin("origin.example".parse().unwrap(), 8080));
    assert_eq!(push(&running, &ok("", "pushed")).status, 201);
}

#[test]
fn a_pull_fetches_the_object_as_for_a_visitor() {
    let (running, asked) = cast();
    let answer = pull(&running);
    assert_eq!(
        (answer.status, answer.text()),
        (201, "{\"copy\":\"stored\"}\n")
    );
    assert_eq!(pull(&running).status, 200);
    assert_eq!(visit(&running).text(), "fetched");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn a_pull_of_what_is_old_has_it_renewed() {
    let old = "Age: 100\r\nCache-Control: max-age=50, stale-while-revalidate=1000\r\n";
    let running = rescue_server(origin(move |_| {
        ok(&format!("{old}Connection: close\r\n"), "x")
    }));
    assert_eq!(pull(&running).status, 201);
    assert_eq!(pull(&running).status, 201);
    until("two fetches", || running.fetcher.counters().fetches == 2);
}

#[test]
fn a_copy_is_purged_by_the_tags_that_came_with_it() {
    let (running, _) = cast();
    assert_eq!(
        push(&running, &ok("Surrogate-Key: sport news\r\n", "pushed")).status,
        201
    );
    let page = visit(&running);
    assert_eq!((page.text(), page.header("surrogate-key")), ("pushed", ""));
    let space = Space::Origin("origin.example".parse().unwrap(), 8080);
    let purge = Purge::tags("news", PurgeKind::Hard).unwrap();
    assert_eq!(running.fetcher.purge(&Spaces::One(space), &purge), 1);
    assert_eq!(visit(&running).text(), "fetched");
}

#[test]
fn ten_thousand_pushes_take_no_more_room_than_the_cache_has() {
    let (running, _) = cast();
    let body = "x".repeat(10_000);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (running, body) = (&running, &body);
            scope.spawn(move || {
                let mut client = running.connect();
                for number in 0..2500 {
                    let put = put(ALIAS, &format!("{KEY}{MESSAGE}"), &ok("", body));
                    client.send(put.replacen("/a", &format!("/{part}/{number}"), 1));
                    assert_eq!(client.receive().status, 201);
                }
            });
        }
    });
    assert_eq!(running.fetcher.counters().copies["stored"], 10_000);
    let (used, limit) = running.fetcher.cache_bytes();
    assert!(used <= limit && used > limit / 2, "{used} of {limit}");
    assert_eq!(visit(&running).text(), "fetched");
}

#[test]
fn a_pull_of_what_cannot_be_had_or_kept_says_so() {
    let gone = rescue_server(([127, 0, 0, 1], 1).into());
    assert_eq!(pull(&gone).status, 503);
    let private = origin(|_| ok("Cache-Control: private\r\nConnection: close\r\n", "x"));
    let running = rescue_server(private);
    assert_eq!(pull(&running).status, 409);
    assert_eq!(pull(&running).status, 409);
    let cut = origin(|_| "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx".into());
    assert_eq!(pull(&rescue_server(cut)).status, 400);
}

#[test]
fn the_server_reads_its_own_pages_from_inside_and_what_stays_inside_is_not_counted() {
    let running = Setup::default().start();
    running.write("a.html", "hello");
    let read = |errand| {
        let mut stream = running.front.visit(errand).unwrap();
        stream.set_nonblocking(false).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request = "GET /a.html HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
        answer.len() as u64
    };
    let reader = [192, 0, 2, 7].into();
    read(Errand::Look(reader));
    let length = read(Errand::PassOn(reader));
    let sample = running.sample_until(|sample| sample.own_requests > 0);
    assert_eq!((sample.own_requests, sample.bytes), (1, length));
}

#[test]
fn the_codings_of_copies_are_those_that_most_visitors_take_while_we_are_rescued() {
    let running = Setup::default().start();
    running.write("a.html", "hello");
    let ask = |lines: &str, times: usize| {
        let mut client = running.connect();
        for _ in 0..times {
            client.send(format!(
                "GET /a.html HTTP/1.1\r\nHost: site.example\r\n{lines}\r\n"
            ));
            client.receive();
        }
    };
    ask("Accept-Encoding: br\r\n", 100);
    assert_eq!(running.front.usual_codings(), None);
    running.publish(redirecting("www-vh1.rescue.example"));
    until("the plan", || {
        ask("", 1);
        running.front.sample().redirects > 0
    });
    ask("Accept-Encoding: gzip, deflate\r\n", 200);
    assert_eq!(running.front.usual_codings().as_deref(), Some("gzip"));
    ask("Accept-Encoding: zstd, br;q=0.1, gzip\r\n", 2000);
    assert_eq!(
        running.front.usual_codings().as_deref(),
        Some("br, zstd, gzip")
    );
    ask("", 2000);
    assert_eq!(running.front.usual_codings().as_deref(), Some(""));
}
