//! One fetch for any number of simultaneous misses, whatever the visitors and the answer do (R8).

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use levee_proxy::{CacheResult, FetchError, FetchSettings, Overloaded, Progress};
use stage::{Origin, Request, Stage, Visitor, ok, say, say_and_hang, until};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, Semaphore};

const PAGE: &str = "the page that everybody wants";

/// An origin that answers only when told to.
async fn patient_origin(response: String) -> (Origin, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let origin = Origin::play(move |_, stream| {
        let (gate, response) = (gate.clone(), response.clone());
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            say(stream, response).await
        })
    })
    .await;
    (origin, opened)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_simultaneous_asks_make_one_request() {
    let (origin, gate) = patient_origin(ok("", PAGE)).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    let visitors: Vec<Visitor> = (0..1000).map(|_| stage.ask(&request)).collect();
    gate.add_permits(1000);
    for visitor in visitors {
        assert_eq!(visitor.whole().await.unwrap().text(), PAGE);
    }
    assert_eq!(origin.asks(), 1);
    let counters = stage.fetcher.counters();
    assert_eq!((counters.misses, counters.collapsed), (1000, 999));
    assert_eq!((counters.fetches, counters.stored), (1, 1));
    assert!(stage.lookup(&request).is_some());
    // Whoever looked before the object came, and asks only now, finds it all the same.
    let late = stage.ask(&request);
    assert_eq!(late.waiting.result(), CacheResult::Hit);
    assert_eq!(late.whole().await.unwrap().text(), PAGE);
    assert_eq!(origin.asks(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_that_ask_at_the_same_moment_make_one_request() {
    let (origin, gate) = patient_origin(ok("", PAGE)).await;
    gate.add_permits(1000);
    let stage = Arc::new(Stage::new(FetchSettings::default()));
    let request = Request::rescue(&origin, "/post");
    let asking = (0..8).map(|_| {
        let (stage, request) = (stage.clone(), request.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                assert_eq!(stage.get(&request).await.unwrap().text(), PAGE);
            }
        })
    });
    for task in asking.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn visitors_who_leave_take_nothing_from_those_who_stay() {
    let (origin, gate) = patient_origin(ok("", PAGE)).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    let first = stage.ask(&request);
    let stays = stage.ask(&request);
    let last = stage.ask(&request);
    until(|| origin.asks() == 1).await;
    drop(first);
    drop(last);
    gate.add_permits(1);
    assert_eq!(stays.whole().await.unwrap().text(), PAGE);
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn a_fetch_that_nobody_waits_for_goes_on_for_the_cache() {
    let (origin, gate) = patient_origin(ok("", PAGE)).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    drop(stage.ask(&request));
    until(|| origin.asks() == 1).await;
    gate.add_permits(1);
    stage.settled().await;
    assert!(stage.lookup(&request).is_some());
}

#[tokio::test]
async fn only_so_many_fetches_go_on_for_nobody() {
    let (origin, _gate) = patient_origin(ok("", PAGE)).await;
    let stage = Stage::new(FetchSettings {
        abandoned_max: 1,
        ..FetchSettings::default()
    });
    let left: Vec<_> = ["/1", "/2", "/3"]
        .map(|target| stage.ask(&Request::rescue(&origin, target)))
        .into();
    until(|| origin.asks() == 3).await;
    drop(left);
    until(|| stage.fetcher.flights().0 == 1).await;
    // The one that goes on can be joined again, and makes room for another.
    let joined = stage.ask(&Request::rescue(&origin, "/1"));
    assert_eq!(joined.waiting.result(), CacheResult::Collapsed);
    assert_eq!(origin.asks(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_for_one_goes_to_the_first_and_all_others_fetch_for_themselves() {
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let seen = running.clone();
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let origin = Origin::play(move |asked, stream| {
        let (running, gate) = (running.clone(), gate.clone());
        Box::pin(async move {
            let now = running.0.fetch_add(1, Ordering::SeqCst) + 1;
            running.1.fetch_max(now, Ordering::SeqCst);
            gate.acquire().await.unwrap().forget();
            running.0.fetch_sub(1, Ordering::SeqCst);
            let body = format!("for {}", asked.number);
            say(stream, ok("Cache-Control: private\r\n", &body)).await
        })
    })
    .await;
    let stage = Stage::new(FetchSettings {
        private_fetches_per_source: 8,
        ..FetchSettings::default()
    });
    let request = Request::upstream(&origin, "/basket");
    let visitors: Vec<Visitor> = (0..100).map(|_| stage.ask(&request)).collect();
    until(|| origin.asks() == 1).await;
    opened.add_permits(1000);
    let mut bodies = Vec::new();
    for visitor in visitors {
        bodies.push(visitor.whole().await.unwrap().text().to_owned());
    }
    assert_eq!(bodies[0], "for 0");
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 100, "each has an answer of its own");
    assert_eq!(origin.asks(), 100);
    assert!(seen.1.load(Ordering::SeqCst) <= 9, "bounded concurrency");
    assert!(stage.lookup(&request).is_none());
    // For a while nobody queues behind such an answer again.
    let next = stage.ask(&request);
    assert_eq!(next.waiting.result(), CacheResult::Passed);
    next.whole().await.unwrap();
}

#[tokio::test]
async fn an_answer_for_one_who_has_left_is_given_to_nobody() {
    let (origin, gate) = patient_origin(ok("Set-Cookie: session=first\r\n", "personal")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/account");
    let first = stage.ask(&request);
    let second = stage.ask(&request);
    until(|| origin.asks() == 1).await;
    drop(first);
    gate.add_permits(2);
    assert_eq!(second.whole().await.unwrap().text(), "personal");
    assert_eq!(origin.asks(), 2, "the second asked for itself");
    stage.settled().await;
}

#[tokio::test]
async fn a_slow_stream_is_seen_before_it_ends_and_late_visitors_get_it_from_its_start() {
    let more = Arc::new(Notify::new());
    let told = more.clone();
    let origin = Origin::play(move |_, mut stream| {
        let more = more.clone();
        Box::pin(async move {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                .await
                .ok()?;
            for piece in ["4\r\nfour\r\n", "5\r\nfive5\r\n", "0\r\n\r\n"] {
                stream.write_all(piece.as_bytes()).await.ok()?;
                more.notified().await;
            }
            Some(stream)
        })
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/stream");
    let mut early = stage.ask(&request);
    assert_eq!(early.head().await.unwrap().length, None);
    assert_eq!(early.bytes(4).await.unwrap(), b"four");
    assert!(matches!(early.waiting.read(), Progress::Nothing));
    let mut late = stage.ask(&request);
    late.head().await.unwrap();
    assert_eq!(late.bytes(4).await.unwrap(), b"four");
    told.notify_one();
    assert_eq!(late.bytes(5).await.unwrap(), b"five5");
    assert_eq!(early.bytes(5).await.unwrap(), b"five5");
    told.notify_one();
    assert!(matches!(early.next().await, Progress::End));
    assert!(matches!(late.next().await, Progress::End));
    assert_eq!(origin.asks(), 1);
    assert_eq!(stage.get(&request).await.unwrap().text(), "fourfive5");
}

#[tokio::test]
async fn waiters_and_flights_have_limits() {
    let origin = Origin::play(|_, stream| say_and_hang(stream, "")).await;
    let stage = Stage::new(FetchSettings {
        waiters_max: 2,
        flights_max: 3,
        flights_per_source_max: 2,
        ..FetchSettings::default()
    });
    let request = Request::rescue(&origin, "/1");
    let _one = stage.ask(&request);
    let _two = stage.ask(&request);
    let third = stage.try_ask(&request).err();
    assert_eq!(third, Some(Overloaded::Waiters));
    let _other = stage.ask(&Request::rescue(&origin, "/2"));
    let more = stage.try_ask(&Request::rescue(&origin, "/3")).err();
    assert_eq!(more, Some(Overloaded::Source));
    let elsewhere = Origin::play(|_, stream| say_and_hang(stream, "")).await;
    let _third = stage.ask(&Request::rescue(&elsewhere, "/4"));
    let more = stage.try_ask(&Request::rescue(&elsewhere, "/5")).err();
    assert_eq!(more, Some(Overloaded::Flights));
    assert_eq!(stage.fetcher.counters().overloaded, 3);
}

#[tokio::test]
async fn a_wait_for_a_turn_has_an_end() {
    let slow = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow";
    let origin = Origin::play(move |_, stream| say_and_hang(stream, slow)).await;
    let stage = Stage::new(FetchSettings {
        rescue_fetches_per_source: 1,
        wait_max: Duration::from_millis(50),
        ..FetchSettings::default()
    });
    let mut first = stage.ask(&Request::rescue(&origin, "/1"));
    first.head().await.unwrap();
    let second = stage.get(&Request::rescue(&origin, "/2")).await;
    assert_eq!(second.unwrap_err(), FetchError::Overloaded);
    assert_eq!(FetchError::Overloaded.status(), 503);
    assert_eq!(origin.asks(), 1);
}

/// A cold rescue server: many objects are wanted at once over one full link.
#[tokio::test]
async fn the_most_wanted_object_is_fetched_next() {
    let gate = Arc::new(Semaphore::new(0));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let (opened, told) = (gate.clone(), lines.clone());
    let origin = Origin::play(move |asked, stream| {
        told.lock().unwrap().push(asked.line().to_owned());
        let gate = gate.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            say(stream, ok("", PAGE)).await
        })
    })
    .await;
    let stage = Stage::new(FetchSettings {
        rescue_fetches_per_source: 1,
        ..FetchSettings::default()
    });
    let _first = stage.ask(&Request::rescue(&origin, "/first"));
    until(|| origin.asks() == 1).await;
    let _leaves = stage.ask(&Request::rescue(&origin, "/left"));
    let visitors: Vec<_> = ["/one", "/two", "/three", "/two", "/three", "/three"]
        .iter()
        .map(|target| stage.ask(&Request::rescue(&origin, target)))
        .collect();
    opened.add_permits(5);
    for visitor in visitors {
        assert_eq!(visitor.whole().await.unwrap().text(), PAGE);
    }
    let asked = lines.lock().unwrap().join(" ");
    let order = ["/first", "/three", "/two", "/left", "/one"]
        .map(|target| asked.find(&format!("GET {target} ")).unwrap());
    assert!(order.is_sorted(), "{asked}");
}

#[test]
fn when_the_fetch_side_dies_everybody_is_told() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let origin = runtime.block_on(Origin::play(|_, stream| say_and_hang(stream, "")));
    let stage = Stage::on(runtime.handle().clone(), FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    let mut visitors: Vec<Visitor> = (0..10).map(|_| stage.ask(&request)).collect();
    runtime.block_on(until(|| origin.asks() == 1));
    runtime.shutdown_timeout(Duration::from_secs(10));
    for visitor in &mut visitors {
        let told = visitor.waiting.read();
        assert!(matches!(told, Progress::Failed(FetchError::Aborted)));
    }
    assert_eq!(stage.fetcher.flights().0, 0);
    // Nobody is left to fetch, and that is said at once as well.
    let told = stage.ask(&request).waiting.read();
    assert!(matches!(told, Progress::Failed(FetchError::Aborted)));
}

#[tokio::test]
async fn a_fetch_that_panics_fails_its_visitors_and_nothing_else() {
    let (origin, gate) = patient_origin(ok("", PAGE)).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let times = asked.clone();
    // The first look at the clock is the visitor's, the second is that of the fetch with its
    // answer.
    let clock = Arc::new(move || {
        assert_ne!(times.fetch_add(1, Ordering::SeqCst), 2, "planted");
        levee_vocab::Timestamp::from_seconds(1)
    });
    let runtime = tokio::runtime::Handle::current();
    let fetcher = levee_proxy::Fetcher::new(FetchSettings::default(), runtime, clock).unwrap();
    let request = Request::rescue(&origin, "/post");
    let (bell, other) = (stage::bell(), stage::bell());
    let first = fetcher.ask(request.miss(), bell.clone(), 1).unwrap();
    let second = fetcher.ask(request.miss(), other.clone(), 2).unwrap();
    gate.add_permits(1);
    for visitor in [Visitor::with(first, bell), Visitor::with(second, other)] {
        assert_eq!(visitor.whole().await.unwrap_err(), FetchError::Aborted);
    }
    assert_eq!(FetchError::Aborted.status(), 502);
    until(|| fetcher.flights().0 == 0).await;
    gate.add_permits(1);
    let bell = stage::bell();
    let again = fetcher.ask(request.miss(), bell.clone(), 3).unwrap();
    let again = Visitor::with(again, bell).whole().await.unwrap();
    assert_eq!(again.text(), PAGE);
}
