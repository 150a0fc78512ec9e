//! Origins that hang, break off, lie or die (R8): nothing half is kept, every wait ends, and an old
//! object is better than none.

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use levee_proxy::{CacheResult, FetchError, FetchSettings, Progress};
use stage::{Origin, Request, Stage, ok, say, say_and_close, say_and_hang, until};
use tokio::io::AsyncWriteExt;

/// Timeouts that a test can wait for.
fn impatient() -> FetchSettings {
    FetchSettings {
        first_byte_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        ..FetchSettings::default()
    }
}

/// What comes of a response that is then broken off, and that nothing of it is kept.
async fn check_broken(response: &'static str, expected: FetchError) {
    let origin = Origin::play(move |_, stream| say_and_close(stream, response)).await;
    let stage = Stage::new(impatient());
    let request = Request::rescue(&origin, "/broken");
    let waiting = [stage.ask(&request), stage.ask(&request)];
    for visitor in waiting {
        let error = visitor.whole().await.map(|answer| answer.head).unwrap_err();
        assert_eq!(error, expected, "for {response:?}");
    }
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());
    assert_eq!(stage.fetcher.counters().errors[expected.label()], 1);
}

#[tokio::test]
async fn broken_responses_fail_and_are_not_kept() {
    check_broken("", FetchError::ClosedEarly).await;
    check_broken("HTTP/1.1 200 OK\r\nContent-Le", FetchError::ClosedEarly).await;
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    check_broken(short, FetchError::Truncated).await;
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    check_broken(chunk, FetchError::Truncated).await;
    let garbage = "SSH-2.0-OpenSSH_9.2\r\n\r\n";
    check_broken(garbage, FetchError::Malformed).await;
    let liar = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    check_broken(liar, FetchError::Malformed).await;
    let coded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\ncoded";
    check_broken(coded, FetchError::Malformed).await;
    let coded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n";
    check_broken(coded, FetchError::Malformed).await;
    let twice = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n";
    check_broken(twice, FetchError::Malformed).await;
}

#[tokio::test]
async fn a_transfer_coding_that_codes_nothing_is_passed_over_and_announces_no_end() {
    let page = "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 9\r\n\
        Cache-Control: max-age=60\r\nConnection: close\r\n\r\npage";
    let origin = Origin::play(move |_, stream| say_and_close(stream, page)).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/");
    let answer = stage.get(&request).await.unwrap();
    let coding = answer.header("transfer-encoding");
    assert_eq!((answer.text(), coding), ("page", None));
    stage.settled().await;
    assert!(stage.lookup(&request).is_none(), "it may be half a page");
}

#[tokio::test]
async fn an_origin_that_resets_the_connection_leaves_no_half_object() {
    let origin = Origin::play(|_, mut stream| {
        Box::pin(async move {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
                .await
                .ok()?;
            stream.set_zero_linger().unwrap();
            None
        })
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/reset");
    assert!(stage.get(&request).await.is_err());
    assert!(stage.lookup(&request).is_none());
}

#[tokio::test]
async fn an_origin_that_never_answers_costs_a_bounded_wait() {
    let origin = Origin::play(|_, stream| say_and_hang(stream, "")).await;
    let stage = Stage::new(impatient());
    let request = Request::rescue(&origin, "/slow");
    let waiting: Vec<_> = (0..20).map(|_| stage.ask(&request)).collect();
    for visitor in waiting {
        let error = visitor.whole().await.unwrap_err();
        assert_eq!(error, FetchError::FirstByteTimeout);
        assert_eq!(error.status(), StatusCode::GATEWAY_TIMEOUT);
    }
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn a_body_that_stops_coming_fails_after_what_came() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
    let origin = Origin::play(move |_, stream| say_and_hang(stream, half)).await;
    let stage = Stage::new(impatient());
    let mut visitor = stage.ask(&Request::rescue(&origin, "/stalls"));
    visitor.head().await.unwrap();
    assert_eq!(visitor.bytes(4).await.unwrap(), b"half");
    let end = visitor.next().await;
    assert!(matches!(end, Progress::Failed(FetchError::BodyTimeout)));
}

#[tokio::test]
async fn a_dead_address_is_a_bad_gateway_at_once() {
    let origin = Origin::says("").await;
    let request = Request::rescue(&origin, "/");
    origin.kill().await;
    let stage = Stage::new(FetchSettings::default());
    let error = stage.get(&request).await.unwrap_err();
    assert_eq!(error, FetchError::ConnectRefused);
    assert_eq!(error.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn a_reused_connection_that_proves_dead_is_replaced_once() {
    // Answers the first request of each connection and closes at the second.
    let used = Arc::new(AtomicBool::new(false));
    let origin = Origin::play(move |asked, stream| {
        let first = !used.swap(true, Ordering::SeqCst);
        match (first, asked.number) {
            (false, 1) => say_and_close(stream, ""),
            (true | false, _) => say(stream, ok("", "fine")),
        }
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    assert!(stage.get(&Request::rescue(&origin, "/1")).await.is_ok());
    stage.settled().await;
    let second = stage.get(&Request::rescue(&origin, "/2")).await;
    assert_eq!(second.unwrap().text(), "fine");
    assert_eq!((origin.asks(), origin.connections()), (3, 2));
    assert_eq!(stage.fetcher.counters().retries, 1);
}

#[tokio::test]
async fn a_request_that_may_have_had_an_effect_is_not_repeated() {
    let origin = Origin::play(|asked, stream| match asked.number {
        0 => say(stream, ok("", "fine")),
        _ => say_and_close(stream, ""),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/order");
    assert!(stage.get(&request).await.is_ok());
    stage.settled().await;
    let order = stage.get(&request.clone().method(Method::POST)).await;
    assert_eq!(order.unwrap_err(), FetchError::ClosedEarly);
    assert_eq!(origin.asks(), 2);
}

#[tokio::test]
async fn connections_are_reused() {
    let origin = Origin::says(&ok("", "fine")).await;
    let stage = Stage::new(FetchSettings::default());
    for number in 0..20 {
        let request = Request::rescue(&origin, &format!("/{number}"));
        assert_eq!(stage.get(&request).await.unwrap().text(), "fine");
        stage.settled().await;
    }
    assert_eq!((origin.asks(), origin.connections()), (20, 1));
}

#[tokio::test]
async fn an_old_object_stands_in_for_a_dead_origin_for_a_while() {
    let origin = Origin::says(&ok("Cache-Control: max-age=10\r\nETag: \"1\"\r\n", "old")).await;
    let settings = FetchSettings {
        stale_if_error: Duration::from_secs(60),
        stale_retry: Duration::from_secs(5),
        ..FetchSettings::default()
    };
    let stage = Stage::new(settings);
    let request = Request::rescue(&origin, "/page");
    stage.get(&request).await.unwrap();
    origin.kill().await;
    stage.pass(Duration::from_secs(11));
    assert!(stage.lookup(&request).is_none());
    let waiting: Vec<_> = (0..50).map(|_| stage.ask(&request)).collect();
    for mut visitor in waiting {
        visitor.head().await.unwrap();
        assert_eq!(visitor.waiting.result(), CacheResult::Stale);
        assert_eq!(visitor.bytes(3).await.unwrap(), b"old");
    }
    // The dead origin is not asked again at once, and the age is told truly.
    let spared = stage.lookup(&request).unwrap();
    assert_eq!(spared.age(stage.now()).as_secs(), 11);
    stage.pass(Duration::from_secs(6));
    assert!(stage.lookup(&request).is_none());
    assert!(stage.get(&request).await.is_ok());
    stage.pass(Duration::from_secs(60));
    let error = stage.get(&request).await.unwrap_err();
    assert_eq!(error, FetchError::ConnectRefused);
}

#[tokio::test]
async fn an_old_object_stands_in_for_a_failing_or_hanging_origin() {
    let origin = Origin::play(|asked, stream| match asked.number {
        0 => say(stream, ok("Cache-Control: max-age=10\r\n", "old")),
        1 => say(
            stream,
            "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        _ => say_and_hang(stream, ""),
    })
    .await;
    let stage = Stage::new(impatient());
    let request = Request::rescue(&origin, "/page");
    for _ in 0..3 {
        assert_eq!(stage.get(&request).await.unwrap().text(), "old");
        stage.settled().await;
        stage.pass(Duration::from_secs(20));
    }
    assert_eq!(origin.asks(), 3);
}

#[tokio::test]
async fn must_revalidate_forbids_the_old_object() {
    let fields = "Cache-Control: max-age=10, must-revalidate\r\n";
    let origin = Origin::says(&ok(fields, "old")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/page");
    stage.get(&request).await.unwrap();
    origin.kill().await;
    stage.pass(Duration::from_secs(11));
    assert!(stage.get(&request).await.is_err());
}

#[tokio::test]
async fn a_server_error_is_shared_by_those_who_wait_and_not_kept() {
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    let origin = Origin::says(busy).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/page");
    let waiting: Vec<_> = (0..100)
        .map(|number| stage.ask(&request.clone().with("Cookie", &format!("id={number}"))))
        .collect();
    for visitor in waiting {
        let answer = visitor.whole().await.unwrap();
        assert_eq!((answer.head.status.as_u16(), answer.text()), (503, "busy"));
    }
    assert_eq!(origin.asks(), 1);
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());
}

#[tokio::test]
async fn a_body_without_announced_end_is_shown_but_not_kept() {
    let endless = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end";
    let origin = Origin::play(move |_, stream| say_and_close(stream, endless)).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/old-server");
    let waiting = [stage.ask(&request), stage.ask(&request)];
    for visitor in waiting {
        assert_eq!(visitor.whole().await.unwrap().text(), "until the end");
    }
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn a_stuck_visitor_holds_the_origin_back_and_not_our_memory() {
    let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = sent.clone();
    let origin = Origin::play(move |_, mut stream| {
        let sent = sent.clone();
        Box::pin(async move {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 50000000\r\n";
            stream.write_all(head.as_bytes()).await.ok()?;
            stream.write_all(b"\r\n").await.ok()?;
            for _ in 0..500 {
                stream.write_all(&[b'x'; 100_000]).await.ok()?;
                sent.fetch_add(100_000, Ordering::SeqCst);
            }
            Some(stream)
        })
    })
    .await;
    let stage = Stage::new(FetchSettings {
        unread_max: 64 << 10,
        ..FetchSettings::default()
    });
    let request = Request::upstream(&origin, "/download");
    let mut visitor = stage.ask(&request);
    visitor.head().await.unwrap();
    // The origin has stopped when it has sent no more for many turns of all tasks.
    let mut last = (0, 0);
    until_quiet(&counter, &mut last).await;
    assert!(last.0 < 20_000_000, "{} bytes are on their way", last.0);
    assert_eq!(visitor.bytes(50_000_000).await.unwrap().len(), 50_000_000);
    drop(visitor);
    stage.settled().await;
}

/// Waits until a counter has not moved for a while.
async fn until_quiet(counter: &std::sync::atomic::AtomicUsize, last: &mut (usize, usize)) {
    let seen = std::sync::Mutex::new(last);
    until(|| {
        let mut seen = seen.lock().unwrap();
        let now = counter.load(Ordering::SeqCst);
        **seen = if now == seen.0 && now > 0 {
            (now, seen.1 + 1)
        } else {
            (now, 0)
        };
        seen.1 > 2000
    })
    .await;
}

#[tokio::test]
async fn answers_of_every_shape_come_through() {
    let shapes = [
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n3;x=y\r\nody\r\n0\r\nX-Trailer: 1\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.0 200 OK\r\n\r\nbody",
        "HTTP/1.1 200\r\nContent-Length: 4\r\n\r\nbody",
    ];
    for shape in shapes {
        let origin = Origin::play(move |_, stream| say_and_close(stream, shape)).await;
        let stage = Stage::new(FetchSettings::default());
        let answer = stage.get(&Request::rescue(&origin, "/")).await.unwrap();
        assert_eq!(answer.text(), "body", "for {shape:?}");
        assert_eq!(answer.header("x-trailer"), None);
    }
}
