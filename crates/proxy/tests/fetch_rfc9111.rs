//! What RFC 9111 asks of a cache beyond keeping and giving: parts of a response that are for one
//! visitor, what a 304 changes, what a change elsewhere makes old.

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::time::Duration;

use http::{Method, StatusCode};
use levee_proxy::{FetchSettings, Why, Wishes};
use stage::{Origin, Request, Stage, ok, say};

const SETS_COOKIE: &str =
    "Cache-Control: max-age=60, private=\"set-cookie\"\r\nSet-Cookie: a=b\r\nETag: \"1\"\r\n";

#[tokio::test]
async fn a_cookie_that_is_for_one_goes_to_the_one_who_asked() {
    let origin = Origin::says(&ok(SETS_COOKIE, "for all")).await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/");
    let first = stage.get(&request).await.unwrap();
    assert_eq!(
        (first.text(), first.header("set-cookie")),
        ("for all", Some("a=b"))
    );
    stage.settled().await;
    let second = stage.get(&request).await.unwrap();
    assert_eq!(
        (second.text(), second.header("set-cookie")),
        ("for all", None)
    );
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn a_cookie_that_comes_with_a_304_goes_to_the_one_who_asked() {
    let origin = Origin::play(|asked, stream| {
        let answer = match asked.header("if-none-match") {
            None => ok("Cache-Control: max-age=60\r\nETag: \"1\"\r\n", "for all"),
            Some(_) => "HTTP/1.1 304 Not Modified\r\nSet-Cookie: a=b\r\n\r\n".to_owned(),
        };
        say(stream, answer)
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(Duration::from_secs(61));
    let first = stage.get(&request).await.unwrap();
    assert_eq!(
        (first.text(), first.header("set-cookie")),
        ("for all", Some("a=b"))
    );
    stage.settled().await;
    let second = stage.get(&request).await.unwrap();
    assert_eq!(second.header("set-cookie"), None);
    assert_eq!(origin.asks(), 2);
}

#[tokio::test]
async fn a_304_changes_what_is_about_the_response_and_not_what_is_about_its_body() {
    let origin = Origin::play(|asked, stream| {
        let answer = match asked.header("if-none-match") {
            None => ok(
                "Cache-Control: max-age=60\r\nETag: \"1\"\r\nContent-Type: text/plain\r\n\
                 Content-MD5: x\r\nX-Version: 1\r\n",
                "body",
            ),
            Some(_) => "HTTP/1.1 304 Not Modified\r\nETag: \"2\"\r\nContent-Type: text/html\r\n\
                        Content-MD5: y\r\nContent-Encoding: gzip\r\nX-Version: 2\r\n\r\n"
                .to_owned(),
        };
        say(stream, answer)
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(Duration::from_secs(61));
    stage.get(&request).await.unwrap();
    stage.settled().await;
    let head = stage.lookup(&request).unwrap().head.clone();
    let field = |name| {
        head.header(name)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    };
    assert_eq!(field("content-type").as_deref(), Some("text/html"));
    assert_eq!(field("x-version").as_deref(), Some("2"));
    assert_eq!(field("etag").as_deref(), Some("\"1\""));
    assert_eq!(field("content-md5").as_deref(), Some("x"));
    assert_eq!(field("content-encoding"), None);
    assert_eq!(head.forwarding.why, Why::Stale);
    assert_eq!(head.forwarding.answered, Some(StatusCode::NOT_MODIFIED));
}

#[tokio::test]
async fn a_change_makes_old_what_its_response_names_on_the_same_site() {
    let origin = Origin::play(|asked, stream| {
        let fields = match asked.line().starts_with("POST") {
            true => "Location: /list\r\nContent-Location: http://elsewhere.example/other\r\n",
            false => "Cache-Control: max-age=60\r\n",
        };
        say(stream, ok(fields, "x"))
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let pages = ["/list", "/other", "/item"].map(|target| Request::upstream(&origin, target));
    for page in &pages {
        stage.get(page).await.unwrap();
    }
    stage.settled().await;
    let change = Request::upstream(&origin, "/item").method(Method::POST);
    stage.get(&change).await.unwrap();
    stage.settled().await;
    let kept = pages.map(|page| stage.lookup(&page).is_some());
    assert_eq!(kept, [false, true, false]);
}

#[tokio::test]
async fn an_old_copy_that_stands_in_says_what_its_source_said() {
    let origin = Origin::play(|asked, stream| {
        let answer = match asked.header("if-none-match") {
            None => ok("Cache-Control: max-age=60\r\nETag: \"1\"\r\n", "old"),
            Some(_) => "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        say(stream, answer)
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let request = Request::upstream(&origin, "/");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(Duration::from_secs(61));
    let head = stage.ask(&request).head().await.unwrap();
    assert_eq!(head.forwarding.why, Why::Spared);
    assert_eq!(
        head.forwarding.answered,
        Some(StatusCode::SERVICE_UNAVAILABLE)
    );
}

#[tokio::test]
async fn a_reload_asks_the_source_only_where_the_settings_say_so() {
    for (wishes, asks) in [(Wishes::Ignored, 1), (Wishes::Met, 2)] {
        let fields = "Cache-Control: max-age=60\r\nETag: \"1\"\r\n";
        let origin = Origin::says(&ok(fields, "page")).await;
        let stage = Stage::new(FetchSettings {
            wishes,
            ..FetchSettings::default()
        });
        let request = Request::upstream(&origin, "/");
        stage.get(&request).await.unwrap();
        stage.settled().await;
        let reload = request.clone().with("Cache-Control", "no-cache");
        assert_eq!(stage.get(&reload).await.unwrap().text(), "page");
        stage.settled().await;
        assert_eq!(origin.asks(), asks, "{wishes:?}");
        assert!(stage.lookup(&request).is_some(), "what came is kept");
    }
}

#[tokio::test]
async fn who_takes_old_copies_gets_them_where_nothing_forbids_it() {
    for (control, asks) in [("max-age=60", 1), ("max-age=60, must-revalidate", 2)] {
        let origin = Origin::says(&ok(&format!("Cache-Control: {control}\r\n"), "page")).await;
        let stage = Stage::new(FetchSettings {
            wishes: Wishes::Met,
            ..FetchSettings::default()
        });
        let request = Request::upstream(&origin, "/");
        stage.get(&request).await.unwrap();
        stage.settled().await;
        stage.pass(Duration::from_secs(70));
        let patient = request.with("Cache-Control", "max-stale=20");
        stage.get(&patient).await.unwrap();
        stage.settled().await;
        assert_eq!(origin.asks(), asks, "{control}");
    }
}

#[tokio::test]
async fn nothing_is_kept_for_who_wishes_so() {
    let origin = Origin::says(&ok("Cache-Control: max-age=60\r\n", "page")).await;
    let stage = Stage::new(FetchSettings {
        wishes: Wishes::Met,
        ..FetchSettings::default()
    });
    let request = Request::upstream(&origin, "/");
    let secret = request.clone().with("Cache-Control", "no-store");
    stage.get(&secret).await.unwrap();
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());
}
