//! Visitors whom a rescue server sends back (H4, H5): both sides, over real sockets.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use http::Method;
use levee_control::{GateLimits, Heat, HotRoute, OriginPhase, RoutePlan};
use levee_proxy::{Comebacks, FetchSettings, MarkedVisitors, MissingCopy, UnknownHost};
use levee_vocab::{ByteRate, LinkId, Misses};

use crate::http2::{ask, with_session};
use crate::support::{Response, Running, Setup, origin, redirecting, rescuing};

const ALIAS: &str = "site-vh1.alias.example";
const KEY: &str = "0123456789abcdef0123456789abcdef";
/// Where the rescue server of these tests leads back to.
const ORIGIN: &str = "origin.example";

fn at(host: &str, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// An origin that redirects everything and whose only rescue server has [`KEY`].
fn an_origin() -> Setup {
    Setup {
        plan: RoutePlan {
            fetch_keys: vec![(LinkId::Outbound(1), KEY.parse().unwrap())],
            ..redirecting(ALIAS)
        },
        unknown: UnknownHost::Serve,
        ..Setup::default()
    }
}

/// A rescue server that may fetch nothing from an origin that nobody would reach.
fn that_cannot_fetch(phase: OriginPhase) -> Setup {
    Setup {
        plan: rescuing(([127, 0, 0, 1], 1).into(), phase),
        fetch: FetchSettings {
            flights_max: 0,
            ..FetchSettings::default()
        },
        ..Setup::default()
    }
}

/// The target to which `response` leads back.
fn way_back(response: &Response) -> String {
    assert_eq!(response.status, 302, "{}", response.head);
    assert_eq!(response.header("cache-control"), "no-store");
    let location = response.header("location").to_owned();
    let target = location.strip_prefix("http://origin.example:8080");
    target.unwrap().to_owned()
}

/// A target with a word that says that `target` is missing.
fn missing(target: &str) -> String {
    let running = that_cannot_fetch(OriginPhase::Live).start();
    way_back(&running.ask(&at(ALIAS, target)))
}

fn page(running: &Running) {
    running.write("a", vec![b'a'; 5000]);
}

#[test]
fn a_rescue_server_that_may_not_fetch_sends_its_visitors_back_once() {
    let running = that_cannot_fetch(OriginPhase::Live).start();
    let back = way_back(&running.ask(&at(ALIAS, "/a?b=c")));
    let word = back.strip_prefix("/a?b=c&levee-back=").unwrap();
    assert_eq!(word.len(), 16, "{word}");
    for again in [&*back, "/a?levee-back=", "/a?levee-back=x&b"] {
        let response = running.ask(&at(ALIAS, again));
        assert_eq!(response.status, 503, "{again}");
    }
    // By the origin's own name they would come here again.
    assert_eq!(running.ask(&at(ORIGIN, "/a")).status, 503);
    let sample = running.sample_until(|sample| sample.refused == 5);
    assert_eq!((sample.sent_back.missing, sample.sent_back.busy), (1, 0));
}

#[test]
fn the_origin_learns_who_has_fetched_what_there_are_copies_of() {
    let mut setup = an_origin();
    setup.plan.redirect.as_mut().unwrap().hot = Arc::new([HotRoute {
        url: "site.example/a".to_owned(),
        holders: 1,
        heat: Heat::Warm,
    }]);
    let running = setup.start();
    page(&running);
    running.write("b", vec![b'b'; 5000]);
    for target in ["/b", "/a?c", "/a"] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {ORIGIN}\r\nlevee-fetch: {KEY}\r\n\r\n");
        assert_eq!(running.ask(&head).status, 200, "{target}");
    }
    let mut told = Vec::new();
    running.sample_until(|_| {
        told.extend(running.front.take_notes().fetched);
        !told.is_empty()
    });
    let copy = MissingCopy {
        link: LinkId::Outbound(1),
        url: "site.example/a".to_owned(),
    };
    assert_eq!(told, [copy]);
}

#[test]
fn the_origin_answers_who_comes_back_and_learns_what_is_missing() {
    let running = an_origin().start();
    page(&running);
    assert_eq!(running.ask(&at(ORIGIN, "/a")).status, 302);
    let back = missing("/a");
    for _ in 0..2 {
        let response = running.ask(&at(ORIGIN, &back));
        assert_eq!((response.status, response.body.len()), (200, 5000));
    }
    // Under this path another object than the copy is missing: that teaches nothing.
    let query = missing("/a?b");
    assert_eq!(running.ask(&at(ORIGIN, &query)).status, 200);
    let mut told = Vec::new();
    let sample = running.sample_until(|_| {
        told.extend(running.front.take_notes().missing);
        !told.is_empty()
    });
    let believed = Comebacks {
        believed: 3,
        ..Comebacks::default()
    };
    assert_eq!(sample.comebacks, believed);
    let copy = MissingCopy {
        link: LinkId::Outbound(1),
        url: "site.example/a".into(),
    };
    assert_eq!(told, [copy]);
}

/// The target to which an origin redirects who has a word that proves nothing.
fn marked(running: &Running, target: &str) -> String {
    let response = running.ask(&at(ORIGIN, target));
    assert_eq!(response.status, 302, "{target}");
    let on = response.header("location");
    let on = on.strip_prefix(&format!("http://{ALIAS}:8080"));
    on.unwrap().to_owned()
}

#[test]
fn a_word_that_proves_nothing_is_replaced_by_a_mark_that_is_answered_when_it_comes_back() {
    let running = an_origin().start();
    page(&running);
    let back = missing("/a");
    let (before, last) = back.split_at(back.len() - 1);
    let forged = format!("{before}{}", if last == "A" { "B" } else { "A" });
    let elsewhere = missing("/b").replace("/b", "/a");
    for target in [
        &*forged,
        &elsewhere,
        "/a?levee-back=",
        "/a?levee-back=x",
        "/a?levee-back=1&levee-back=2",
    ] {
        let mark = marked(&running, target);
        let word = mark.strip_prefix("/a?levee-back=").unwrap();
        assert!(word.len() == 16 && !target.ends_with(word), "{mark}");
        assert_eq!(running.ask(&at(ORIGIN, &mark)).status, 200, "{target}");
    }
    // Who shares it within the minute lends nobody more than that.
    running.write("b", vec![b'b'; 5000]);
    let mark = marked(&running, "/a?levee-back=").replace("/a", "/b");
    assert_ne!(marked(&running, &mark), mark);
    let sample = running.sample_until(|sample| sample.comebacks.returned == 5);
    let comebacks = &sample.comebacks;
    assert_eq!((comebacks.unsigned, comebacks.doubtful), (4, 3));
    assert_eq!(sample.redirects, 7);
    running.tells_nothing_missing();
}

#[test]
fn the_origin_learns_from_its_marks_who_sends_visitors_back_without_signing() {
    let running = an_origin().start();
    page(&running);
    // However often somebody asks, he is one.
    for _ in 0..20 {
        let mark = marked(&running, "/a?levee-back=");
        assert_eq!(running.ask(&at(ORIGIN, &mark)).status, 200);
    }
    let mut told = MarkedVisitors::default();
    running.sample_until(|_| {
        told.add(&running.front.take_notes().marked);
        told.marks.iter().any(|(_, marks)| marks.returned > 0)
    });
    let &[(link, marks)] = &*told.marks else {
        panic!("{told:?}");
    };
    assert_eq!(link, LinkId::Outbound(1));
    // A test on a busy machine may take some seconds, and each has a count.
    assert!(marks.returned < 20 && told.unsigned < 20, "{told:?}");
}

#[test]
fn an_alias_that_has_expired_sends_visitors_back_with_the_word_that_they_have() {
    let until = levee_net::Clock.now() + Duration::from_secs(600);
    for phase in [
        OriginPhase::Expired { until },
        OriginPhase::Restored { until },
    ] {
        let running = that_cannot_fetch(phase).start();
        for word in ["levee-back=BQECCQkJCQkJCQkJ", "levee-back="] {
            let target = format!("/a?b&{word}");
            assert_eq!(way_back(&running.ask(&at(ALIAS, &target))), target);
        }
    }
}

#[test]
fn nobody_behind_sees_the_word() {
    let (heads, head) = mpsc::channel();
    let upstream = origin(move |head| {
        heads.send(head.lines().next().unwrap().to_owned()).unwrap();
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\
         Connection: close\r\n\r\nx"
            .into()
    });
    let running = Setup {
        upstream: Some(upstream),
        ..an_origin()
    }
    .start();
    let back = missing("/a?b=c");
    assert_eq!(running.ask(&at(ORIGIN, &back)).text(), "x");
    assert_eq!(head.recv().unwrap(), "GET /a?b=c HTTP/1.1");
    // The same object, however the visitor came, and wherever somebody has put the word.
    let word = back.split_once('&').unwrap().1;
    let moved = format!("/a?{word}&b=c");
    assert_eq!(running.ask(&at(ORIGIN, &moved)).text(), "x");
    assert!(head.try_recv().is_err(), "the object was here already");
}

#[test]
fn a_visitor_by_http2_comes_back_as_well() {
    let running = an_origin().start();
    page(&running);
    let back = missing("/a").replace("levee-back", "levee%2Dback");
    with_session(running.address, async |requests| {
        let answer = ask(&requests, Method::GET, "/a?levee-back=", "").await;
        assert_eq!(answer.status, 302);
        let answer = ask(&requests, Method::GET, &back, "").await;
        // The word is for the other name of this site.
        assert_eq!(answer.status, 302);
    });
    assert_eq!(running.ask(&at(ORIGIN, &back)).status, 200);
}

#[test]
fn a_rescue_server_that_is_not_to_fetch_sends_back_for_what_it_does_not_hold() {
    let (heads, head) = mpsc::channel();
    let address = origin(move |head| {
        heads.send(head.lines().next().unwrap().to_owned()).unwrap();
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx".into()
    });
    let mut setup = Setup {
        plan: rescuing(address, OriginPhase::Live),
        ..Setup::default()
    };
    let route = Arc::make_mut(&mut setup.plan.hosts.origins[0]);
    route.misses = Misses::SendBack;
    let running = setup.start();
    let back = way_back(&running.ask(&at(ALIAS, "/a")));
    assert!(head.try_recv().is_err());
    // Nobody is sent back twice, and nobody is left without a page for it.
    assert_eq!(running.ask(&at(ALIAS, &back)).text(), "x");
    assert_eq!(head.recv().unwrap(), "GET /a HTTP/1.1");
    // In a moment it holds it.
    let mut sent_back = 1;
    while running.ask(&at(ALIAS, "/a")).status == 302 {
        sent_back += 1;
    }
    assert!(head.try_recv().is_err());
    let sample = running.sample_until(|sample| sample.sent_back.missing == sent_back);
    assert_eq!(sample.refused, 0);
}

#[test]
fn an_overrun_rescue_server_sends_back_and_says_that_it_holds_the_object() {
    let mut setup = Setup {
        plan: rescuing(([127, 0, 0, 1], 1).into(), OriginPhase::Live),
        link: Some(ByteRate::from_bytes(20_000)),
        ..Setup::default()
    };
    setup.settings.gate = GateLimits {
        backlog_max: Duration::from_secs(1),
        wait_max: Duration::ZERO,
    };
    let rescue = setup.start();
    rescue.write("own", vec![b'a'; 40_000]);
    let mut first = rescue.connect();
    first.send(at("site.example", "/own"));
    rescue.sample_until(|sample| sample.own_requests == 1);
    let response = rescue.ask(&at(ALIAS, "/a"));
    assert_eq!(response.header("connection"), "close");
    let back = way_back(&response);
    let sample = rescue.sample_until(|sample| sample.refused == 1);
    assert_eq!((sample.sent_back.missing, sample.sent_back.busy), (0, 1));
    let running = an_origin().start();
    page(&running);
    assert_eq!(running.ask(&at(ORIGIN, &back)).status, 200);
    // Who comes back is not counted again among those who ask for the page.
    assert_eq!(running.ask(&at(ORIGIN, "/none")).status, 404);
    running.sample_until(|sample| sample.comebacks.believed == 1);
    running.tells_nothing_missing();
}

#[test]
fn what_is_wrong_at_the_origin_is_told_and_nobody_is_sent_there() {
    let gone = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let running = Setup {
        plan: rescuing(address, OriginPhase::Live),
        ..Setup::default()
    }
    .start();
    assert_eq!(running.ask(&at(ALIAS, "/")).status, 502);
}

#[test]
fn without_the_key_of_the_rescue_nobody_is_sent_back_from_a_serving_alias() {
    let mut setup = that_cannot_fetch(OriginPhase::Live);
    Arc::make_mut(&mut setup.plan.hosts.origins[0]).key = None;
    assert_eq!(setup.start().ask(&at(ALIAS, "/a")).status, 503);
}

#[test]
fn a_fetch_that_is_given_up_before_its_first_byte_sends_back() {
    // Two objects from a source that may be asked for one at a time, and never answers.
    let (held, holder) = mpsc::channel::<()>();
    let address = origin(move |_| {
        let _ = holder.recv();
        String::new()
    });
    let running = Setup {
        plan: rescuing(address, OriginPhase::Live),
        fetch: FetchSettings {
            rescue_fetches_per_source: 1,
            shared_fetches_per_source: 1,
            wait_max: Duration::from_millis(1),
            ..FetchSettings::default()
        },
        ..Setup::default()
    }
    .start();
    let mut first = running.connect();
    first.send(at(ALIAS, "/a"));
    running.sample_until(|sample| sample.requests == 1);
    let back = way_back(&running.ask(&at(ALIAS, "/b")));
    assert!(back.starts_with("/b?levee-back="), "{back}");
    running.sample_until(|sample| sample.sent_back.missing == 1);
    drop(held);
}
