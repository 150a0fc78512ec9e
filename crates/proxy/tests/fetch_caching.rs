//! What is kept, for whom, under which name, and what goes to the origin (R8, RFC 9111).

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use levee_proxy::{
    CacheResult, FetchError, FetchSettings, Miss, Pushed, RequestHeaders, Space, body_channel,
};
use stage::{Asked, Origin, Request, Stage, Visitor, bell, ok, say, until};

/// An origin that writes down what it is asked, and answers with `response`.
async fn noting(response: impl Fn(&Asked) -> String + Send + Sync + 'static) -> (Origin, Notes) {
    let notes = Notes::default();
    let written = notes.clone();
    let origin = Origin::play(move |asked, stream| {
        let answer = response(&asked);
        written.lock().unwrap().push(asked);
        say(stream, answer)
    })
    .await;
    (origin, notes)
}

type Notes = Arc<Mutex<Vec<Asked>>>;

#[tokio::test]
async fn head_then_get_is_one_fetch() {
    let (origin, notes) = noting(|_| ok("Content-Type: text/html\r\n", "the post")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/post");
    let mut asks_head = stage.ask(&request.clone().method(Method::HEAD));
    let head = asks_head.head().await.unwrap();
    assert_eq!((head.status.as_u16(), head.length), (200, Some(8)));
    drop(asks_head);
    assert_eq!(stage.get(&request).await.unwrap().text(), "the post");
    stage.settled().await;
    assert!(stage.lookup(&request).is_some());
    assert_eq!(origin.asks(), 1);
    assert_eq!(notes.lock().unwrap()[0].line(), "GET /post HTTP/1.1");
}

#[tokio::test]
async fn two_origins_with_the_same_path_never_mix() {
    let first = Origin::says(&ok("", "of the first")).await;
    let second = Origin::says(&ok("", "of the second")).await;
    let stage = Stage::new(FetchSettings::default());
    let one = Request::rescue(&first, "/index.html");
    let mut other = Request::rescue(&second, "/index.html");
    other.space = Space::Origin("www.example.net".parse().unwrap(), 80);
    let (a, b) = tokio::join!(stage.get(&one), stage.get(&other));
    assert_eq!(a.unwrap().text(), "of the first");
    assert_eq!(b.unwrap().text(), "of the second");
    stage.fetcher.forget(&one.space);
    assert!(stage.lookup(&one).is_none());
    assert!(stage.lookup(&other).is_some());
    let sources = stage.fetcher.counters().sources;
    assert_eq!(sources.len(), 2);
    assert!(sources[&one.space].bytes > 12 && sources[&one.space].fetches == 1);
}

#[tokio::test]
async fn a_rescue_that_ends_during_a_fetch_keeps_nothing_of_it() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opened = gate.clone();
    let origin = Origin::play(move |_, stream| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            say(stream, ok("", "late")).await
        })
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/page");
    let visitor = stage.ask(&request);
    until(|| origin.asks() == 1).await;
    stage.fetcher.forget(&request.space);
    opened.add_permits(1);
    assert_eq!(visitor.whole().await.unwrap().text(), "late");
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());
}

#[tokio::test]
async fn a_response_is_fetched_once_for_each_variant() {
    let (origin, _) = noting(|asked| {
        let packed = asked.header("accept-encoding").is_some();
        let language = asked.header("accept-language").unwrap_or_default();
        let coding = if packed {
            "Content-Encoding: gzip\r\n"
        } else {
            ""
        };
        let fields = format!("Vary: Accept-Encoding, Accept-Language\r\n{coding}");
        ok(&fields, &format!("{language} {packed}"))
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = |language: &str, codings: &str| {
        let request = Request::rescue(&origin, "/page").with("Accept-Language", language);
        match codings {
            "" => request,
            codings => request.with("Accept-Encoding", codings),
        }
    };
    let wishes = [
        ("de", "gzip, br", "de true"),
        ("de", "", "de false"),
        ("en", "gzip, br", "en true"),
        ("de", "br,gzip;q=0.8", "de true"),
    ];
    // All at once, before anybody knows that the response varies.
    let waiting: Vec<_> = (0..40)
        .map(|number| wishes[number % 4])
        .map(|(language, codings, body)| (stage.ask(&request(language, codings)), body))
        .collect();
    for (visitor, body) in waiting {
        assert_eq!(visitor.whole().await.unwrap().text(), body);
    }
    assert_eq!(origin.asks(), 3);
    for (language, codings, _) in wishes {
        assert!(stage.lookup(&request(language, codings)).is_some());
    }
    assert!(stage.lookup(&request("fr", "")).is_none());
}

#[tokio::test]
async fn an_unchanged_object_is_refreshed_without_its_body() {
    let (origin, notes) = noting(|asked| match asked.header("if-none-match") {
        Some(tag) => {
            assert_eq!(tag, "\"1\"");
            "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=20\r\nX-New: yes\r\n\r\n"
                .to_owned()
        }
        None => ok(
            "Cache-Control: max-age=10\r\nETag: \"1\"\r\nX-Old: yes\r\n",
            "the body",
        ),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/page");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(Duration::from_secs(11));
    let waiting: Vec<_> = (0..20).map(|_| stage.ask(&request)).collect();
    for mut visitor in waiting {
        let head = visitor.head().await.unwrap();
        assert_eq!(visitor.waiting.result(), CacheResult::Revalidated);
        assert_eq!((head.status.as_u16(), head.length), (200, Some(8)));
        assert_eq!(head.header("x-new"), Some(&b"yes"[..]));
        assert_eq!(head.header("x-old"), Some(&b"yes"[..]));
        assert_eq!(
            head.headers().filter(|(name, _)| *name == b"via").count(),
            1
        );
        assert_eq!(visitor.bytes(8).await.unwrap(), b"the body");
    }
    stage.pass(Duration::from_secs(15));
    assert!(stage.lookup(&request).is_some());
    assert_eq!(notes.lock().unwrap().len(), 2);
    assert_eq!(stage.fetcher.counters().revalidated, 1);
    stage.settled().await;
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn the_age_grows_while_an_object_is_kept() {
    let origin = Origin::says(&ok("Age: 5\r\nCache-Control: max-age=20\r\n", "page")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::rescue(&origin, "/page");
    let answer = stage.get(&request).await.unwrap();
    assert_eq!(answer.header("age"), None);
    stage.pass(Duration::from_secs(10));
    let kept = stage.lookup(&request).unwrap();
    assert_eq!(kept.age(stage.now()).as_secs(), 15);
    stage.pass(Duration::from_secs(5));
    assert!(stage.lookup(&request).is_none());
}

#[tokio::test]
async fn a_fetch_for_a_rescue_carries_the_key_and_nothing_of_the_visitor() {
    let (origin, notes) = noting(|_| {
        ok(
            "Connection: x-hop\r\nX-Hop: 1\r\nAlt-Svc: h3=\":443\"\r\nVia: 1.1 cache\r\nX-End: 2\r\n",
            "page",
        )
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let key = "0123456789abcdef0123456789abcdef";
    let mut request = Request::rescue(&origin, "/a?b=c%20d")
        .with("Host", "www-vh1.rescue.example")
        .with("Cookie", "id=1")
        .with("Authorization", "Basic x")
        .with("Range", "bytes=0-1")
        .with("If-None-Match", "\"x\"")
        .with("Connection", "close")
        .with("Keep-Alive", "timeout=5")
        .with("levee-fetch", "forged")
        .with("Via", "1.0 proxy")
        .with("User-Agent", "tester");
    request.source.key = Some(key.parse().unwrap());
    let answer = stage.get(&request).await.unwrap();
    let asked = notes.lock().unwrap()[0].clone();
    assert_eq!(asked.line(), "GET /a?b=c%20d HTTP/1.1");
    let dropped = [
        "cookie",
        "authorization",
        "range",
        "if-none-match",
        "keep-alive",
    ];
    for name in dropped {
        assert_eq!(asked.header(name), None, "{name}");
    }
    assert_eq!(asked.header("host").unwrap(), "www.example.org");
    assert_eq!(asked.header("levee-fetch").unwrap(), key);
    assert_eq!(asked.header("user-agent").unwrap(), "tester");
    assert_eq!(asked.head.matches("via:").count(), 2);
    assert!(asked.head.contains("via: 1.1 levee\r\n"));
    for name in ["connection", "x-hop", "alt-svc", "content-length"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("x-end"), Some("2"));
    assert!(answer.header("date").is_some());
    let via: Vec<_> = answer
        .head
        .headers()
        .filter(|(name, _)| *name == b"via")
        .collect();
    assert_eq!(via.len(), 2);
    // Credentials make no difference under an alias, so this visitor is served from the cache.
    assert!(stage.lookup(&request).is_some());
}

#[tokio::test]
async fn a_request_that_went_in_circles_is_refused() {
    let origin = Origin::says(&ok("", "page")).await;
    let stage = Stage::new(FetchSettings::default());
    let looping =
        Request::rescue(&origin, "/").with("Via", "1.1 levee, 1.1 levee, 1.1 levee, 1.1 levee");
    let error = stage.get(&looping).await.unwrap_err();
    assert_eq!((error, error.status().as_u16()), (FetchError::Loop, 508));
    let chain = Request::rescue(&origin, "/").with("Via", "1.1 levee, 1.1 other (levee)");
    assert!(stage.get(&chain).await.is_ok());
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn pages_for_visitors_with_cookies_are_theirs_alone() {
    let (origin, _) = noting(|asked| {
        let who = asked.header("cookie").unwrap_or("nobody".to_owned());
        let modified = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nLast-Modified: Sat, 06 Nov 1993 08:49:37 GMT\r\n";
        ok(modified, &who)
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let plain = Request::upstream(&origin, "/page");
    let (ann, bob) = (
        plain.clone().with("Cookie", "ann"),
        plain.clone().with("Cookie", "bob"),
    );
    // Ann is the first, so all wait for her page at first.
    let waiting = [&ann, &bob, &plain, &plain, &ann].map(|request| stage.ask(request));
    let mut bodies = Vec::new();
    for visitor in waiting {
        bodies.push(visitor.whole().await.unwrap().text().to_owned());
    }
    assert_eq!(bodies, ["ann", "bob", "nobody", "nobody", "ann"]);
    assert_eq!(origin.asks(), 4, "those without a cookie share one");
    stage.settled().await;
    assert!(stage.lookup(&plain).is_some());
    assert!(stage.lookup(&bob).is_none());
    assert_eq!(stage.get(&bob).await.unwrap().text(), "bob");
}

#[tokio::test]
async fn objects_that_say_they_are_for_all_are_for_visitors_with_cookies_too() {
    let origin = Origin::says(&ok("Cache-Control: max-age=60\r\n", "style")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/style.css");
    let waiting: Vec<_> = (0..20)
        .map(|number| stage.ask(&request.clone().with("Cookie", &number.to_string())))
        .collect();
    for visitor in waiting {
        assert_eq!(visitor.whole().await.unwrap().text(), "style");
    }
    assert_eq!(origin.asks(), 1);
    let authorized = request.with("Authorization", "Basic x");
    assert!(stage.lookup(&authorized).is_none());
}

#[tokio::test]
async fn a_cookie_passes_to_one_visitor_without_its_domain() {
    let origin = Origin::says(&ok(
        "Set-Cookie: a=b; Domain=example.org; Path=/\r\n",
        "page",
    ))
    .await;
    let stage = Stage::new(FetchSettings::default());
    let answer = stage
        .get(&Request::rescue(&origin, "/login"))
        .await
        .unwrap();
    assert_eq!(answer.header("set-cookie"), Some("a=b; Path=/"));
    // An application of our own knows for which of its names a cookie is.
    let answer = stage
        .get(&Request::upstream(&origin, "/login"))
        .await
        .unwrap();
    let whole = "a=b; Domain=example.org; Path=/";
    assert_eq!(answer.header("set-cookie"), Some(whole));
    let shared = Origin::says(&ok(
        "Cache-Control: public, max-age=9\r\nSet-Cookie: a=b\r\n",
        "x",
    ))
    .await;
    let answer = stage
        .get(&Request::rescue(&shared, "/shared"))
        .await
        .unwrap();
    assert_eq!(answer.header("set-cookie"), None);
}

#[tokio::test]
async fn a_visitors_conditions_and_ranges_go_along_where_the_answer_is_its_own() {
    let (origin, notes) = noting(|asked| match asked.header("range") {
        Some(_) => {
            "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/4\r\nContent-Length: 2\r\n\r\npa".into()
        }
        None => ok("Cache-Control: no-store\r\n", "page"),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/private");
    stage.get(&request).await.unwrap();
    let part = stage
        .get(&request.with("Range", "bytes=0-1"))
        .await
        .unwrap();
    assert_eq!((part.head.status.as_u16(), part.text()), (206, "pa"));
    assert_eq!(notes.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_request_body_streams_to_the_upstream_and_what_it_changes_is_forgotten() {
    let (origin, notes) = noting(|asked| match asked.line().starts_with("POST") {
        true => "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".to_owned(),
        false => ok("Cache-Control: max-age=60\r\n", "list"),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/list");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    assert!(stage.lookup(&request).is_some());

    let ring = bell();
    let (sender, receiver) = body_channel(16, Some(30), ring.clone(), 7);
    let mut miss: Miss = request.clone().method(Method::POST).miss();
    miss.body = Some(receiver);
    let waiting = stage.fetcher.ask(miss, ring.clone(), 7).unwrap();
    let poster = Visitor::with(waiting, ring);
    for _ in 0..3 {
        let mut piece = Bytes::from_static(b"0123456789");
        while let Pushed::Full(back) = sender.push(piece.clone()) {
            piece = back;
            tokio::task::yield_now().await;
        }
    }
    sender.finish();
    assert_eq!(poster.whole().await.unwrap().head.status.as_u16(), 201);
    let posted = notes.lock().unwrap()[1].clone();
    assert_eq!(posted.body, b"0123456789".repeat(3));
    assert_eq!(posted.header("content-length").unwrap(), "30");
    assert!(stage.lookup(&request).is_none());
}

#[tokio::test]
async fn a_request_body_that_breaks_off_never_looks_whole() {
    let (origin, notes) = noting(|_| ok("", "")).await;
    let stage = Stage::new(FetchSettings::default());
    for length in [Some(100), None] {
        let ring = bell();
        let (sender, receiver) = body_channel(1000, length, ring.clone(), 7);
        let mut miss = Request::upstream(&origin, "/list")
            .method(Method::POST)
            .miss();
        miss.body = Some(receiver);
        let waiting = stage.fetcher.ask(miss, ring.clone(), 7).unwrap();
        sender.push(Bytes::from_static(b"half"));
        drop(sender);
        let error = Visitor::with(waiting, ring).whole().await.unwrap_err();
        assert_eq!(error, FetchError::RequestAborted);
    }
    stage.settled().await;
    let whole = notes
        .lock()
        .unwrap()
        .iter()
        .filter(|asked| asked.header("content-length").is_some())
        .count();
    assert_eq!(whole, 0);
}

#[tokio::test]
async fn what_cannot_be_sent_on_is_refused() {
    let origin = Origin::says(&ok("", "page")).await;
    let stage = Stage::new(FetchSettings::default());
    let bad = [
        Request::rescue(&origin, "/a b"),
        Request::rescue(&origin, "/").with("X", "a\r\nInjected: yes"),
        Request::rescue(&origin, "/").with("bad name", "x"),
    ];
    for request in bad {
        let error = stage.get(&request).await.unwrap_err();
        assert_eq!(
            (error, error.status().as_u16()),
            (FetchError::BadRequest, 400)
        );
    }
    assert_eq!(origin.asks(), 0);
    assert!(Request::rescue(&origin, "/").headers().is_empty());
    assert!(!Request::rescue(&origin, "/").headers().has("host"));
}

/// A visitor who makes up a Host must not decide what others see.
#[tokio::test]
async fn what_an_application_says_to_one_host_is_not_told_to_another() {
    let origin = Origin::play(|asked, stream| {
        let page = asked.header("host").unwrap_or_default();
        say(stream, ok("Cache-Control: max-age=60\r\n", &page))
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = |host: &str| Request::upstream(&origin, "/").with("host", host);
    for host in ["evil.example", "www.example.org", "evil.example"] {
        let page = stage.get(&request(host)).await.unwrap();
        assert_eq!(page.text(), stage.get(&request(host)).await.unwrap().text());
    }
    assert!(stage.lookup(&request("www.example.org")).is_some());
    assert!(stage.lookup(&request("example.org")).is_none());
    assert_eq!(origin.asks(), 2);
}
