//! Purges by URL and by tag, hard and soft, and the answers that they overtake.

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use levee_proxy::{FetchSettings, Freshness, Space, Spaces};
use levee_vocab::{Purge, PurgeKind, PurgeScope};
use stage::{Asked, Origin, Request, Stage, Visitor, ok, say, say_and_close, until};
use tokio::sync::Semaphore;

const SECOND: Duration = Duration::from_secs(1);

/// An origin that numbers its pages, and answers each request with `fields`.
async fn numbered(fields: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Origin {
    Origin::play(move |asked, stream| {
        let page = format!("page {}", asked.number);
        say(stream, ok(&fields(&asked), &page))
    })
    .await
}

/// The same, but each answer waits until it is let go.
async fn held_back(
    fields: impl Fn(&Asked) -> String + Send + Sync + 'static,
) -> (Origin, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let origin = Origin::play(move |asked, stream| {
        let answer = ok(&fields(&asked), &format!("page {}", asked.number));
        let gate = gate.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            say(stream, answer).await
        })
    })
    .await;
    (origin, opened)
}

fn lasting(_: &Asked) -> String {
    "Cache-Control: max-age=600\r\n".to_owned()
}

fn tagged(asked: &Asked) -> String {
    let tags = asked.line().split(['?', ' ']).nth(2).unwrap();
    let tags = tags.replace('+', " ");
    format!("Cache-Control: max-age=600\r\nSurrogate-Key: {tags}\r\n")
}

fn url(target: &str, kind: PurgeKind) -> Purge {
    Purge::url(target, kind).unwrap()
}

fn tags(tags: &str, kind: PurgeKind) -> Purge {
    Purge::tags(tags, kind).unwrap()
}

async fn body(visitor: Visitor) -> String {
    visitor.whole().await.unwrap().text().to_owned()
}

async fn get(stage: &Stage, request: &Request) -> String {
    let answer = stage.get(request).await.unwrap();
    stage.settled().await;
    answer.text().to_owned()
}

#[tokio::test]
async fn a_purged_url_loses_all_its_variants_for_good() {
    let vary = |_: &Asked| "Cache-Control: max-age=600\r\nVary: Accept-Language\r\n".to_owned();
    let origin = numbered(vary).await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::upstream(&origin, "/page");
    let [german, french] = ["de", "fr"].map(|one| page.clone().with("accept-language", one));
    assert_eq!(get(&stage, &german).await, "page 0");
    assert_eq!(get(&stage, &french).await, "page 1");
    let purge = url("http://www.example.org/page", PurgeKind::Hard);
    assert_eq!(stage.fetcher.purge(&Spaces::Own, &purge), 2);
    assert_eq!(get(&stage, &german).await, "page 2");
    // The note by which the page varies is there again, and leads to nothing old.
    assert_eq!(get(&stage, &french).await, "page 3");
    let counters = stage.fetcher.counters();
    assert_eq!((counters.purges, counters.purged), (1, 2));
}

#[tokio::test]
async fn a_request_that_changes_an_object_takes_all_its_variants_away() {
    let vary = |_: &Asked| "Cache-Control: max-age=600\r\nVary: Accept-Language\r\n".to_owned();
    let origin = numbered(vary).await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::upstream(&origin, "/page");
    let [german, french] = ["de", "fr"].map(|one| page.clone().with("accept-language", one));
    get(&stage, &german).await;
    get(&stage, &french).await;
    assert_eq!(get(&stage, &page.method(Method::POST)).await, "page 2");
    assert_eq!(get(&stage, &german).await, "page 3");
    assert_eq!(get(&stage, &french).await, "page 4");
    assert_eq!(stage.fetcher.counters().purges, 0);
}

#[tokio::test]
async fn a_change_reaches_all_names_of_its_site_and_no_other_site() {
    let origin = numbered(lasting).await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::upstream(&origin, "/page");
    let other_name = page.clone().with("host", "example.org");
    let mut neighbour = page.clone();
    neighbour.space = Space::Own("www.example.net".parse().unwrap());
    assert_eq!(get(&stage, &page).await, "page 0");
    assert_eq!(get(&stage, &other_name).await, "page 1");
    assert_eq!(get(&stage, &neighbour).await, "page 2");
    let change = page.clone().method(Method::POST);
    assert_eq!(get(&stage, &change).await, "page 3");
    assert_eq!(get(&stage, &page).await, "page 4");
    assert_eq!(get(&stage, &other_name).await, "page 5");
    assert_eq!(get(&stage, &neighbour).await, "page 2");
    let purge = url("/page", PurgeKind::Hard);
    assert_eq!(stage.fetcher.purge(&Spaces::Own, &purge), 3);
}

#[tokio::test]
async fn a_tag_leads_to_all_that_carry_it_and_to_nothing_else() {
    let origin = numbered(tagged).await;
    let stage = Stage::new(FetchSettings::default());
    let ask = |target| Request::rescue(&origin, target);
    let both = ask("/a?news+sport");
    let (news, sport) = (ask("/b?news"), ask("/c?sport"));
    let mut other = ask("/d?news");
    other.space = stage::own();
    for request in [&both, &news, &sport, &other] {
        let answer = stage.get(request).await.unwrap();
        assert_eq!(answer.header("surrogate-key"), None);
    }
    stage.settled().await;
    let purge = tags("politics news", PurgeKind::Hard);
    assert_eq!(stage.fetcher.purge(&both.spaces(), &purge), 2);
    assert!(stage.lookup(&both).is_none() && stage.lookup(&news).is_none());
    assert!(stage.lookup(&sport).is_some() && stage.lookup(&other).is_some());
    assert_eq!(stage.fetcher.purge(&both.spaces(), &purge), 0);
}

#[tokio::test]
async fn a_response_with_too_many_tags_goes_with_every_tag() {
    let many: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let many = many.join(" ");
    let fields =
        move |_: &Asked| format!("Cache-Control: max-age=600\r\nSurrogate-Key: {many}\r\n");
    let origin = numbered(fields).await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::rescue(&origin, "/page");
    get(&stage, &page).await;
    let purge = tags("something", PurgeKind::Hard);
    assert_eq!(stage.fetcher.purge(&page.spaces(), &purge), 1);
}

#[tokio::test]
async fn a_softly_purged_object_is_shown_while_one_fetch_renews_it() {
    let origin = numbered(lasting).await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::rescue(&origin, "/page");
    get(&stage, &page).await;
    let purge = url("/page", PurgeKind::Soft);
    assert_eq!(stage.fetcher.purge(&page.spaces(), &purge), 1);
    for _ in 0..3 {
        let found = stage
            .lookup(&page)
            .map(|stored| stored.freshness(stage.now()));
        match found {
            None => assert_eq!(body(stage.ask(&page)).await, "page 0"),
            Some(freshness) => assert_eq!(freshness, Freshness::Spared),
        }
    }
    stage.settled().await;
    assert_eq!(origin.asks(), 2);
    let renewed = stage.lookup(&page).unwrap();
    assert_eq!(renewed.freshness(stage.now()), Freshness::Fresh);
}

#[tokio::test]
async fn a_softly_purged_object_stands_in_for_a_dead_source() {
    let origin = Origin::play(|asked, stream| match asked.number {
        0 => say_and_close(stream, ok("Cache-Control: max-age=600\r\n", "page")),
        _ => say_and_close(stream, Vec::new()),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::rescue(&origin, "/page");
    get(&stage, &page).await;
    stage
        .fetcher
        .purge(&page.spaces(), &url("/page", PurgeKind::Soft));
    assert_eq!(get(&stage, &page).await, "page");
    stage.pass(30 * SECOND);
    assert_eq!(get(&stage, &page).await, "page");
    // No longer than it might have stood in from the moment of the purge.
    stage.pass(600 * SECOND);
    stage.get(&page).await.unwrap_err();
}

#[tokio::test]
async fn an_answer_that_a_purge_overtook_is_given_to_who_waits_and_not_kept() {
    let purges = [
        url("/page?news", PurgeKind::Hard),
        tags("news", PurgeKind::Hard),
        Purge {
            scope: PurgeScope::All,
            kind: PurgeKind::Hard,
        },
    ];
    for purge in purges {
        let (origin, gate) = held_back(tagged).await;
        let stage = Stage::new(FetchSettings::default());
        let page = Request::rescue(&origin, "/page?news");
        let early = stage.ask(&page);
        until(|| origin.asks() == 1).await;
        stage.fetcher.purge(&page.spaces(), &purge);
        // Who comes after the purge must not get what was asked for before it.
        let late = stage.ask(&page);
        until(|| origin.asks() == 2).await;
        gate.add_permits(1);
        let (first, second) = tokio::join!(body(early), async {
            gate.add_permits(1);
            body(late).await
        });
        assert_eq!(first, "page 0");
        assert_eq!(second, "page 1", "{purge:?}");
        stage.settled().await;
        assert_eq!(get(&stage, &page).await, "page 1", "{purge:?}");
        assert_eq!(stage.fetcher.counters().stored, 1);
    }
}

#[tokio::test]
async fn an_answer_that_a_soft_purge_overtook_is_kept_as_old() {
    let (origin, gate) = held_back(tagged).await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::rescue(&origin, "/page?news");
    let early = stage.ask(&page);
    until(|| origin.asks() == 1).await;
    stage
        .fetcher
        .purge(&page.spaces(), &tags("news", PurgeKind::Soft));
    gate.add_permits(10);
    assert_eq!(body(early).await, "page 0");
    stage.settled().await;
    assert!(stage.lookup(&page).is_none());
    assert_eq!(get(&stage, &page).await, "page 0");
    assert_eq!(get(&stage, &page).await, "page 1");
}

#[tokio::test]
async fn another_tag_does_not_keep_visitors_from_an_answer_whose_head_has_come() {
    let origin = Origin::play(|asked, mut stream| {
        Box::pin(async move {
            use tokio::io::AsyncWriteExt;
            let whole = ok(&tagged(&asked), "page");
            stream
                .write_all(&whole.as_bytes()[..whole.len() - 2])
                .await
                .unwrap();
            std::future::pending::<()>().await;
            Some(stream)
        })
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::rescue(&origin, "/page?news");
    let mut early = stage.ask(&page);
    early.head().await.unwrap();
    stage
        .fetcher
        .purge(&page.spaces(), &tags("sport", PurgeKind::Hard));
    stage.ask(&page).head().await.unwrap();
    assert_eq!(origin.asks(), 1);
    stage
        .fetcher
        .purge(&page.spaces(), &tags("news", PurgeKind::Hard));
    stage.ask(&page).head().await.unwrap();
    assert_eq!(origin.asks(), 2);
}

#[tokio::test]
async fn an_old_object_is_not_put_back_by_a_fetch_that_failed_after_its_purge() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let origin = Origin::play(move |asked, stream| {
        let gate = held.clone();
        Box::pin(async move {
            match asked.number {
                0 => say(stream, ok("Cache-Control: max-age=10\r\n", "old")).await,
                _ => {
                    gate.acquire().await.unwrap().forget();
                    None
                }
            }
        })
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::rescue(&origin, "/page");
    get(&stage, &page).await;
    stage.pass(11 * SECOND);
    let waits = stage.ask(&page);
    until(|| origin.asks() == 2).await;
    stage
        .fetcher
        .purge(&page.spaces(), &url("/page", PurgeKind::Hard));
    gate.add_permits(10);
    // It waited already when the page was purged.
    assert_eq!(body(waits).await, "old");
    stage.settled().await;
    stage.get(&page).await.unwrap_err();
}

#[tokio::test]
async fn an_object_that_proved_unchanged_keeps_its_tags() {
    let origin = Origin::play(|asked, stream| match asked.header("if-none-match") {
        None => {
            let fields = "ETag: \"x\"\r\nCache-Control: max-age=10\r\nSurrogate-Key: news\r\n";
            say(stream, ok(fields, "page"))
        }
        Some(_) => say(stream, "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let page = Request::rescue(&origin, "/page");
    get(&stage, &page).await;
    stage.pass(11 * SECOND);
    assert_eq!(get(&stage, &page).await, "page");
    assert_eq!(stage.fetcher.counters().revalidated, 1);
    assert!(stage.lookup(&page).is_some());
    let purge = tags("news", PurgeKind::Hard);
    assert_eq!(stage.fetcher.purge(&page.spaces(), &purge), 1);
    assert!(stage.lookup(&page).is_none());
}
