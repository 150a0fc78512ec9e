//! Old objects are shown at once while one fetch for nobody renews them (RFC 5861, R8).

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use levee_proxy::{CacheResult, FetchError, FetchSettings};
use stage::{Asked, Origin, Request, Stage, Visitor, ok, say, say_and_close, say_and_hang, until};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

const SECOND: Duration = Duration::from_secs(1);

/// An origin whose first answer comes at once, and all others when they are let go.
async fn slow_later(
    response: impl Fn(&Asked) -> String + Send + Sync + 'static,
) -> (Origin, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(1));
    let opened = gate.clone();
    let origin = Origin::play(move |asked, stream| {
        let (gate, answer) = (gate.clone(), response(&asked));
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            say(stream, answer).await
        })
    })
    .await;
    (origin, opened)
}

/// A numbered page: `page 0` is the first answer.
fn numbered(fields: &'static str) -> impl Fn(&Asked) -> String + Send + Sync {
    move |asked| ok(fields, &format!("page {}", asked.number))
}

/// Reads an answer, and tells how the cache had its part in it.
async fn read(mut visitor: Visitor) -> (CacheResult, String) {
    visitor.head().await.unwrap();
    let result = visitor.waiting.result();
    let body = visitor.bytes(usize::MAX).await.unwrap();
    (result, String::from_utf8(body).unwrap())
}

/// What a visitor gets, from the cache or by asking, as the engine does it.
async fn visit(stage: &Stage, request: &Request) -> (CacheResult, String) {
    match stage.lookup(request) {
        Some(stored) => match &stored.body {
            levee_proxy::Body::Memory(bytes) => {
                let result = match stored.freshness(stage.now()) {
                    levee_proxy::Freshness::Fresh => CacheResult::Hit,
                    levee_proxy::Freshness::Spared
                    | levee_proxy::Freshness::Shown
                    | levee_proxy::Freshness::Stale => CacheResult::Stale,
                };
                (result, String::from_utf8(bytes.to_vec()).unwrap())
            }
            levee_proxy::Body::File { .. } => panic!("a small object is in memory"),
        },
        None => read(stage.ask(request)).await,
    }
}

fn stale(page: &str) -> (CacheResult, String) {
    (CacheResult::Stale, page.to_owned())
}

/// A crowd meets an object whose lifetime of ten seconds is over: all get the old one at once, one
/// request goes to the origin, and its answer is there for those who come later.
async fn check_crowd(fields: &'static str, ask: fn(&Origin, &str) -> Request) {
    let (origin, gate) = slow_later(numbered(fields)).await;
    let stage = Stage::new(FetchSettings::default());
    let mut request = ask(&origin, "/post");
    request.source.ttl = 10 * SECOND;
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(11 * SECOND);
    for number in 0..100 {
        let method = [Method::GET, Method::HEAD][number % 2].clone();
        let seen = visit(&stage, &request.clone().method(method)).await;
        assert_eq!(seen, stale("page 0"), "with {fields:?}");
    }
    until(|| origin.asks() == 2).await;
    // Longer than anybody would wait, and still the same fetch.
    for _ in 0..3 {
        stage.pass(2 * SECOND);
        assert_eq!(visit(&stage, &request).await, stale("page 0"));
    }
    let counters = stage.fetcher.counters();
    assert_eq!((counters.misses, counters.stale_hits), (1, 103));
    gate.add_permits(1);
    stage.settled().await;
    let fresh = (CacheResult::Hit, "page 1".to_owned());
    assert_eq!(visit(&stage, &request).await, fresh);
    assert_eq!(origin.asks(), 2);
}

#[tokio::test]
async fn nobody_waits_for_a_renewal_that_the_origin_allows() {
    let stated = "Cache-Control: max-age=10, stale-while-revalidate=10\r\n";
    check_crowd(stated, Request::rescue).await;
    check_crowd(stated, Request::upstream).await;
}

#[tokio::test]
async fn nobody_waits_for_a_renewal_within_a_second_ttl_of_the_sos() {
    check_crowd("", Request::rescue).await;
}

/// After `pass` an object with these fields is not shown without asking.
async fn check_waits(fields: &'static str, pass: u32, ask: fn(&Origin, &str) -> Request) {
    let origin = Origin::play(move |asked, stream| {
        let body = format!("page {}", asked.number);
        say(stream, ok(fields, &body))
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = ask(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(pass * SECOND);
    let fetched = (CacheResult::Miss, "page 1".to_owned());
    assert_eq!(visit(&stage, &request).await, fetched, "with {fields:?}");
    stage.settled().await;
}

#[tokio::test]
async fn what_is_too_old_or_must_not_be_shown_old_is_waited_for() {
    check_waits("Cache-Control: max-age=10\r\n", 11, Request::rescue).await;
    check_waits("Cache-Control: max-age=10\r\n", 11, Request::upstream).await;
    let stated = "Cache-Control: max-age=10, stale-while-revalidate=10\r\n";
    check_waits(stated, 21, Request::upstream).await;
    // The age on arrival counts.
    let old = "Age: 15\r\nCache-Control: max-age=10, stale-while-revalidate=10\r\n";
    check_waits(old, 6, Request::upstream).await;
    let forbidden = "Cache-Control: max-age=10, stale-while-revalidate=10, must-revalidate\r\n";
    check_waits(forbidden, 11, Request::rescue).await;
    check_waits("Cache-Control: must-revalidate\r\n", 61, Request::rescue).await;
    check_waits("", 121, Request::rescue).await;
}

#[tokio::test]
async fn a_renewal_asks_whether_the_object_has_changed() {
    let origin = Origin::play(|asked, stream| match asked.header("if-none-match") {
        Some(tag) if tag == "\"1\"" => say(stream, "HTTP/1.1 304 Not Modified\r\n\r\n"),
        Some(_) | None => say(stream, ok("ETag: \"1\"\r\n", "page")),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    for lifetime in 1..4 {
        stage.pass(61 * SECOND);
        assert_eq!(visit(&stage, &request).await, stale("page"));
        stage.settled().await;
        let fresh = (CacheResult::Hit, "page".to_owned());
        assert_eq!(visit(&stage, &request).await, fresh);
        assert_eq!(origin.asks(), 1 + lifetime, "one fetch for a lifetime");
    }
    assert_eq!(stage.fetcher.counters().revalidated, 3);
}

#[tokio::test]
async fn an_answer_that_forbids_keeping_ends_the_showing() {
    let origin = Origin::play(|asked, stream| match asked.number {
        0 => say(stream, ok("ETag: \"1\"\r\n", "page 0")),
        1 => say(
            stream,
            "HTTP/1.1 304 Not Modified\r\nCache-Control: no-store\r\n\r\n",
        ),
        number => say(stream, ok("", &format!("page {number}"))),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(61 * SECOND);
    assert_eq!(visit(&stage, &request).await, stale("page 0"));
    stage.settled().await;
    let fetched = (CacheResult::Miss, "page 2".to_owned());
    assert_eq!(visit(&stage, &request).await, fetched);
}

#[tokio::test]
async fn an_object_that_becomes_personal_is_shown_to_nobody_else() {
    let origin = Origin::play(|asked, stream| {
        let fields = match asked.number {
            0 => "Cache-Control: public, max-age=10, stale-while-revalidate=100\r\n",
            _ => "Cache-Control: private\r\n",
        };
        say(stream, ok(fields, &format!("page {}", asked.number)))
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/basket").with("Cookie", "ann");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(11 * SECOND);
    assert_eq!(visit(&stage, &request).await, stale("page 0"));
    stage.settled().await;
    let own = (CacheResult::Passed, "page 2".to_owned());
    assert_eq!(visit(&stage, &request).await, own);
}

#[tokio::test]
async fn a_source_in_trouble_is_asked_now_and_then_and_nobody_waits_for_it() {
    let healthy = Arc::new(AtomicUsize::new(1));
    let health = healthy.clone();
    let origin = Origin::play(move |asked, stream| {
        let body = format!("page {}", asked.number);
        match (health.load(Ordering::SeqCst), asked.number % 3) {
            (1, _) => say(stream, ok("", &body)),
            (_, 0) => say_and_close(stream, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
            (_, 1) => say_and_close(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
            (_, _) => say_and_hang(stream, ""),
        }
    })
    .await;
    let stage = Stage::new(FetchSettings {
        first_byte_timeout: Duration::from_millis(50),
        ..FetchSettings::default()
    });
    let request = Request::rescue(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    healthy.store(0, Ordering::SeqCst);
    stage.pass(61 * SECOND);
    // Far beyond the second ttl, and less than ten minutes after the lifetime.
    for round in 0..40 {
        for _ in 0..10 {
            assert_eq!(visit(&stage, &request).await, stale("page 0"));
        }
        stage.settled().await;
        assert_eq!(origin.asks(), 2 + round, "one fetch in six seconds");
        stage.pass(6 * SECOND);
    }
    healthy.store(1, Ordering::SeqCst);
    assert_eq!(visit(&stage, &request).await, stale("page 0"));
    stage.settled().await;
    assert_eq!(visit(&stage, &request).await.0, CacheResult::Hit);
}

#[tokio::test]
async fn an_object_that_nobody_asked_for_since_its_source_failed_is_asked_for_first() {
    let origin = Origin::play(|asked, stream| match asked.number {
        // The second attempt as well.
        1 | 2 => say_and_close(stream, ""),
        number => say(stream, ok("", &format!("page {number}"))),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(119 * SECOND);
    assert_eq!(visit(&stage, &request).await, stale("page 0"));
    stage.settled().await;
    stage.pass(66 * SECOND);
    let fetched = (CacheResult::Miss, "page 3".to_owned());
    assert_eq!(visit(&stage, &request).await, fetched);
}

#[tokio::test]
async fn no_more_renewals_run_than_may() {
    let (origin, gate) = slow_later(numbered("")).await;
    gate.add_permits(2);
    let stage = Stage::new(FetchSettings {
        abandoned_max: 2,
        ..FetchSettings::default()
    });
    let requests: Vec<_> = (0..3)
        .map(|number| Request::rescue(&origin, &format!("/{number}")))
        .collect();
    for request in &requests {
        stage.get(request).await.unwrap();
        stage.settled().await;
    }
    stage.pass(61 * SECOND);
    for request in requests.iter().cycle().take(30) {
        assert_eq!(visit(&stage, request).await.0, CacheResult::Stale);
    }
    until(|| origin.asks() == 5).await;
    assert_eq!(stage.fetcher.flights().0, 2);
    gate.add_permits(3);
    stage.settled().await;
    // The third is renewed when it is asked for again.
    stage.pass(6 * SECOND);
    assert_eq!(visit(&stage, &requests[2]).await.0, CacheResult::Stale);
    until(|| origin.asks() == 6).await;
    stage.settled().await;
    for request in &requests {
        assert_eq!(visit(&stage, request).await.0, CacheResult::Hit);
    }
}

#[tokio::test]
async fn who_comes_too_late_for_the_old_object_waits_for_the_renewal_under_way() {
    let (origin, gate) = slow_later(numbered("")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(61 * SECOND);
    assert_eq!(visit(&stage, &request).await, stale("page 0"));
    until(|| origin.asks() == 2).await;
    stage.pass(60 * SECOND);
    let late = stage.ask(&request);
    gate.add_permits(1);
    assert_eq!(
        read(late).await,
        (CacheResult::Collapsed, "page 1".to_owned())
    );
    assert_eq!(origin.asks(), 2);
}

#[tokio::test]
async fn a_renewal_brings_nothing_back_after_the_rescue_or_a_change() {
    let (origin, gate) = slow_later(numbered("")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(61 * SECOND);
    assert_eq!(visit(&stage, &request).await, stale("page 0"));
    until(|| origin.asks() == 2).await;
    stage.fetcher.forget(&request.space);
    gate.add_permits(1);
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());

    let fields = "Cache-Control: max-age=10, stale-while-revalidate=100\r\n";
    let (origin, gate) = slow_later(numbered(fields)).await;
    let request = Request::upstream(&origin, "/list");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(11 * SECOND);
    assert_eq!(visit(&stage, &request).await, stale("page 0"));
    until(|| origin.asks() == 2).await;
    let change = stage.ask(&request.clone().method(Method::POST));
    until(|| origin.asks() == 3).await;
    // Whichever of the two is answered first, what was asked before the change is not kept.
    gate.add_permits(2);
    change.whole().await.unwrap();
    stage.settled().await;
    stage.pass(11 * SECOND);
    gate.add_permits(1);
    assert_eq!(read(stage.ask(&request)).await.1, "page 3");
}

#[tokio::test]
async fn an_old_object_is_better_than_a_refusal() {
    let origin = Origin::play(|asked, stream| match asked.number {
        0 => say(stream, ok("Cache-Control: max-age=10\r\n", "page")),
        _ => say_and_hang(stream, ""),
    })
    .await;
    let stage = Stage::new(FetchSettings {
        flights_max: 1,
        ..FetchSettings::default()
    });
    let request = Request::rescue(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    let _busy = stage.ask(&Request::rescue(&origin, "/other"));
    stage.pass(11 * SECOND);
    assert_eq!(visit(&stage, &request).await, stale("page"));
    stage.pass(600 * SECOND);
    assert!(stage.try_ask(&request).is_err());
}

#[tokio::test]
async fn a_body_that_trickles_for_ever_ends_all_the_same() {
    let origin = Origin::play(|_, mut stream| {
        Box::pin(async move {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).await.ok()?;
            loop {
                stream.write_all(b"1\r\nx\r\n").await.ok()?;
                tokio::task::yield_now().await;
            }
        })
    })
    .await;
    let stage = Stage::new(FetchSettings {
        total_timeout: Duration::from_millis(100),
        ..FetchSettings::default()
    });
    let request = Request::rescue(&origin, "/film");
    let waiting = [stage.ask(&request), stage.ask(&request)];
    for visitor in waiting {
        let error = visitor.whole().await.map(|answer| answer.head).unwrap_err();
        assert_eq!(error, FetchError::BodyTimeout);
    }
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());
}

/// Asks `times` times, and tells how often the object came from the cache as fresh.
async fn hits(stage: &Stage, request: &Request, times: usize) -> usize {
    let mut hits = 0;
    for _ in 0..times {
        hits += usize::from(visit(stage, request).await.0 == CacheResult::Hit);
    }
    hits
}

/// An object of a hundred seconds, asked for `times` times, then again in its last fifth.
async fn check_early(times: usize, settings: FetchSettings, renewals: usize) {
    let origin = Origin::play(move |asked, stream| {
        let fields = "Cache-Control: max-age=100, must-revalidate\r\n";
        say(stream, ok(fields, &format!("page {}", asked.number)))
    })
    .await;
    let stage = Stage::new(settings);
    let request = Request::upstream(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    assert_eq!(hits(&stage, &request, times).await, times);
    stage.pass(79 * SECOND);
    // Too early for any object.
    assert_eq!(visit(&stage, &request).await.0, CacheResult::Hit);
    assert_eq!(origin.asks(), 1);
    stage.pass(20 * SECOND);
    // Who brings the renewal about does not wait for it, and all others find what is there.
    assert_eq!(hits(&stage, &request, 5).await, 5);
    stage.settled().await;
    assert_eq!(origin.asks(), 1 + renewals);
    let counters = stage.fetcher.counters();
    assert_eq!(counters.early_renewals, renewals as u64);
    assert_eq!((counters.misses, counters.stale_hits), (1, 0));
    let page = format!("page {renewals}");
    assert_eq!(visit(&stage, &request).await, (CacheResult::Hit, page));
}

#[tokio::test]
async fn a_hot_object_is_renewed_before_its_end_and_nobody_waits() {
    check_early(20, FetchSettings::default(), 1).await;
}

#[tokio::test]
async fn what_few_ask_for_and_what_nobody_wants_renewed_is_not_renewed_early() {
    check_early(3, FetchSettings::default(), 0).await;
    let never = FetchSettings {
        refresh_hits: None,
        ..FetchSettings::default()
    };
    check_early(20, never, 0).await;
}

#[tokio::test]
async fn an_early_renewal_that_fails_costs_one_fetch_and_nobody_sees_it() {
    let origin = Origin::play(|asked, stream| match asked.number {
        0 => say(stream, ok("Cache-Control: max-age=100\r\n", "page 0")),
        _ => say_and_close(stream, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/post");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    hits(&stage, &request, 20).await;
    stage.pass(99 * SECOND);
    assert_eq!(hits(&stage, &request, 1).await, 1);
    stage.settled().await;
    assert_eq!(hits(&stage, &request, 20).await, 20);
    assert_eq!(origin.asks(), 2);
}

#[tokio::test]
async fn early_renewals_take_a_quarter_of_a_sources_turns() {
    let (origin, gate) = slow_later(numbered("Cache-Control: max-age=100\r\n")).await;
    gate.add_permits(15);
    let stage = Stage::new(FetchSettings {
        shared_fetches_per_source: 8,
        ..FetchSettings::default()
    });
    let pages: Vec<Request> = (0..16)
        .map(|number| Request::upstream(&origin, &format!("/{number}")))
        .collect();
    for page in &pages {
        stage.get(page).await.unwrap();
        stage.settled().await;
        hits(&stage, page, 20).await;
    }
    stage.pass(99 * SECOND);
    for page in &pages {
        assert_eq!(hits(&stage, page, 3).await, 3);
    }
    until(|| origin.asks() == 18).await;
    assert_eq!(stage.fetcher.flights().0, 2);
    gate.add_permits(100);
    stage.settled().await;
}

#[tokio::test]
async fn a_rescued_origin_is_not_asked_early_for_what_may_be_shown_while_it_is_renewed() {
    let (origin, gate) = slow_later(numbered("")).await;
    let stage = Stage::new(FetchSettings::default());
    let mut request = Request::rescue(&origin, "/post");
    request.source.ttl = 100 * SECOND;
    stage.get(&request).await.unwrap();
    stage.settled().await;
    hits(&stage, &request, 20).await;
    stage.pass(99 * SECOND);
    assert_eq!(hits(&stage, &request, 3).await, 3);
    assert_eq!((origin.asks(), stage.fetcher.flights().0), (1, 0));
    drop(gate);
}
