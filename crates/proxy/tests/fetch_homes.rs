//! An object's home is asked before its origin, and whatever goes wrong there the origin is asked.

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_control::{Homes, object_hash};
use levee_proxy::{Company, FetchSettings, Spaces};
use levee_vocab::{ByteRate, FetchKey, HostName, Peer, Peers, Purge, PurgeKind, WebAddress};
use stage::{Origin, Request, Stage, ok, say, say_and_close, say_and_hang, until};

const FROM_HOME: &str = "Levee-Home: yes\r\nCache-Control: max-age=60\r\n";

/// The homes of an origin whose only other rescue server is at `address`: it is home to everything.
fn at_home(address: SocketAddr) -> Company {
    let host: HostName = "www-vh1.home.example".parse().unwrap();
    let port = address.port();
    let peers = Peers {
        key: FetchKey::from_bytes([7; 16]),
        members: vec![Peer {
            alias: WebAddress { host, port },
            address: address.ip(),
            tls: None,
            rate: ByteRate::from_kilobytes(100),
        }],
    };
    let own = WebAddress {
        host: "www-vh2.ours.example".parse().unwrap(),
        port: 80,
    };
    Company::WithHomes(Arc::new(Homes::new(&peers, &own).unwrap()))
}

fn request(origin: &Origin, home: &Origin, target: &str) -> Request {
    asking(origin, home.address, target)
}

fn asking(origin: &Origin, home: SocketAddr, target: &str) -> Request {
    let mut request = Request::rescue(origin, target);
    request.source.key = Some(FetchKey::from_bytes([9; 16]));
    request.source.company = at_home(home);
    request
}

fn settings() -> FetchSettings {
    FetchSettings {
        home_wait: Duration::from_millis(200),
        ..FetchSettings::default()
    }
}

/// The origin, which says `origin`, and a stage.
async fn cast() -> (Stage, Origin) {
    let origin = Origin::says(&ok("Cache-Control: max-age=60\r\n", "origin")).await;
    (Stage::new(settings()), origin)
}

/// How many exceptions there were for this reason, and for all.
fn exceptions(stage: &Stage, why: &str) -> (u64, u64) {
    let all = stage.fetcher.counters().home_exceptions;
    (all[why], all.values().sum())
}

#[tokio::test]
async fn what_its_home_has_is_not_asked_of_the_origin_and_not_younger_for_it() {
    let (stage, origin) = cast().await;
    let home = Origin::play(|asked, stream| {
        let shown = asked.header("levee-home");
        assert_eq!(shown.unwrap(), "07".repeat(16));
        assert_eq!(asked.header("levee-fetch"), None);
        let host = asked.header("host").unwrap();
        assert!(host.starts_with("www-vh1.home.example:"), "{host}");
        let fields = format!("{FROM_HOME}Age: 40\r\nSurrogate-Key: a\r\n");
        say(stream, ok(&fields, "home"))
    })
    .await;
    let request = request(&origin, &home, "/a").with("Levee-Home", "of a visitor");
    let answer = stage.get(&request).await.unwrap();
    assert_eq!(answer.text(), "home");
    assert_eq!(answer.header("levee-home"), None);
    assert_eq!(
        stage.lookup(&request).unwrap().age(stage.now()).as_secs(),
        40
    );
    stage.settled().await;
    stage.pass(Duration::from_secs(19));
    assert_eq!(stage.get(&request).await.unwrap().text(), "home");
    assert_eq!((home.asks(), origin.asks()), (1, 0));
    let counters = stage.fetcher.counters();
    assert_eq!((counters.home_asks, counters.home_answers), (1, 1));
    assert_eq!((counters.fetches, counters.bytes), (0, 0));
    assert!(counters.home_bytes > 100);
    assert_eq!(exceptions(&stage, "refused"), (0, 0));
}

#[tokio::test]
async fn an_old_copy_is_compared_with_that_of_its_home() {
    let (stage, origin) = cast().await;
    let home = Origin::play(|asked, stream| {
        let fields = format!("{FROM_HOME}ETag: \"x\"\r\n");
        match asked.header("if-none-match") {
            None => say(stream, ok(&fields, "home")),
            Some(_) => say(stream, format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n")),
        }
    })
    .await;
    let request = request(&origin, &home, "/a");
    stage.get(&request).await.unwrap();
    stage.settled().await;
    stage.pass(Duration::from_secs(61));
    assert_eq!(stage.get(&request).await.unwrap().text(), "home");
    until(|| home.asks() == 2).await;
    stage.settled().await;
    assert!(stage.lookup(&request).is_some());
    assert_eq!(origin.asks(), 0);
    assert_eq!(stage.fetcher.counters().revalidated, 1);
}

#[tokio::test]
async fn whatever_is_not_the_word_of_a_home_leads_to_the_origin() {
    for answer in [
        ok("", "own page of somebody"),
        "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n".to_owned(),
        format!("HTTP/1.1 502 Bad Gateway\r\n{FROM_HOME}Content-Length: 0\r\n\r\n"),
        format!("HTTP/1.1 304 Not Modified\r\n{FROM_HOME}\r\n"),
    ] {
        let (stage, origin) = cast().await;
        let home = Origin::says(&answer).await;
        let request = request(&origin, &home, "/a");
        assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
        assert_eq!(exceptions(&stage, "refused"), (1, 1), "{answer}");
        stage.settled().await;
        // It is left alone for a while.
        let next = Request {
            target: "/b".into(),
            ..request
        };
        assert_eq!(stage.get(&next).await.unwrap().text(), "origin");
        assert_eq!(exceptions(&stage, "resting"), (1, 2));
        assert_eq!((home.asks(), origin.asks()), (1, 2));
    }
}

#[tokio::test]
async fn an_error_of_the_origin_is_as_good_from_its_home() {
    let (stage, origin) = cast().await;
    let answer = format!("HTTP/1.1 404 Not Found\r\n{FROM_HOME}Content-Length: 4\r\n\r\ngone");
    let home = Origin::says(&answer).await;
    let answer = stage.get(&request(&origin, &home, "/a")).await.unwrap();
    assert_eq!((answer.head.status.as_u16(), answer.text()), (404, "gone"));
    assert_eq!(origin.asks(), 0);
}

#[tokio::test]
async fn a_home_that_is_dead_breaks_off_or_hangs_costs_nobody_a_page() {
    let (stage, origin) = cast().await;
    let dead = Origin::says("").await;
    let address = dead.address;
    dead.kill().await;
    let request = asking(&origin, address, "/a");
    assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
    assert_eq!(exceptions(&stage, "unreachable"), (1, 1));

    let rude = Origin::play(|_, stream| say_and_close(stream, "")).await;
    let request = asking(&origin, rude.address, "/b");
    assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
    assert_eq!(exceptions(&stage, "broken"), (1, 2));

    let hanging = Origin::play(|_, stream| say_and_hang(stream, "")).await;
    let request = asking(&origin, hanging.address, "/c");
    assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
    assert_eq!(exceptions(&stage, "late"), (1, 3));

    let short = "HTTP/1.1 200 OK\r\nLevee-Home: yes\r\nContent-Length: 100\r\n\r\nhalf";
    let short = Origin::play(move |_, stream| say_and_close(stream, short)).await;
    let request = asking(&origin, short.address, "/d");
    stage.get(&request).await.unwrap_err();
    assert_eq!(exceptions(&stage, "broken"), (2, 4));
    stage.settled().await;
    assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
}

#[tokio::test]
async fn what_was_purged_lately_is_asked_of_the_origin() {
    let (stage, origin) = cast().await;
    let home = Origin::says(&ok(FROM_HOME, "home")).await;
    let request = request(&origin, &home, "/a");
    let spaces = Spaces::One(request.space.clone());
    let purge = Purge::url("/a", PurgeKind::Hard).unwrap();
    stage.fetcher.purge(&spaces, &purge);
    assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
    assert_eq!(exceptions(&stage, "purged"), (1, 1));
    let other = Request {
        target: "/b".into(),
        ..request.clone()
    };
    assert_eq!(stage.get(&other).await.unwrap().text(), "home");
    stage.settled().await;
    stage.pass(Duration::from_secs(66));
    stage.get(&request).await.unwrap();
    until(|| home.asks() == 2).await;
    // So many purges that they are not told apart.
    for number in 0..100 {
        let purge = Purge::url(&format!("/{number}"), PurgeKind::Hard).unwrap();
        stage.fetcher.purge(&spaces, &purge);
    }
    let third = Request {
        target: "/c".into(),
        ..request
    };
    assert_eq!(stage.get(&third).await.unwrap().text(), "origin");
}

#[tokio::test]
async fn a_home_is_asked_itself_only_for_what_is_fresh_and_asks_nobody_else() {
    let (stage, origin) = cast().await;
    let mut request = Request::rescue(&origin, "/a");
    request.source.company = Company::ForAnother(None);
    assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
    stage.settled().await;
    stage.pass(Duration::from_secs(59));
    stage.get(&request).await.unwrap();
    assert_eq!(origin.asks(), 1);
    // A visitor would be shown the old page.
    stage.pass(Duration::from_secs(2));
    let answer = stage.get(&request).await.unwrap();
    assert_eq!(answer.head.age(stage.now()).as_secs(), 0);
    assert_eq!(origin.asks(), 2);
}

/// The homes of an origin whose other rescue server, at `address`, has been joined by us.
fn joined(address: SocketAddr) -> Arc<Homes> {
    let Company::WithHomes(alone) = at_home(address) else {
        panic!("there are homes");
    };
    let member = |host: &str, port, address| Peer {
        alias: WebAddress {
            host: host.parse().unwrap(),
            port,
        },
        address,
        tls: None,
        rate: ByteRate::from_kilobytes(100),
    };
    let ours = member("www-vh2.ours.example", 80, address.ip());
    let peers = Peers {
        key: *alone.key(),
        members: vec![
            ours.clone(),
            member("www-vh1.home.example", address.port(), address.ip()),
        ],
    };
    Arc::new(Homes::new(&peers, &ours.alias).unwrap())
}

#[tokio::test]
async fn an_object_that_has_just_moved_here_is_asked_of_its_last_home_as_a_copy() {
    let (stage, origin) = cast().await;
    let last = Origin::play(|asked, stream| {
        assert_eq!(asked.header("cache-control").unwrap(), "only-if-cached");
        match asked.line().contains("copied") {
            true => say(stream, ok(&format!("{FROM_HOME}Age: 7\r\n"), "copy")),
            false => say(
                stream,
                "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n",
            ),
        }
    })
    .await;
    let homes = joined(last.address);
    let web = WebAddress {
        host: "www.example.org".parse().unwrap(),
        port: 80,
    };
    let ours = |name: &str| {
        let targets = (0..).map(|number| format!("/{name}-{number}"));
        let mut ours =
            targets.filter(|target| homes.are_ours(object_hash(&web, target.as_bytes())));
        ours.next().unwrap()
    };
    for company in [
        Company::WithHomes(Arc::clone(&homes)),
        Company::ForAnother(Some(Arc::clone(&homes))),
    ] {
        let name = format!("{}", matches!(company, Company::ForAnother(_)));
        let mut request = Request::rescue(&origin, &ours(&format!("copied-{name}")));
        request.source.company = company;
        assert_eq!(stage.get(&request).await.unwrap().text(), "copy");
        request.target = ours(&format!("new-{name}"));
        assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
    }
    assert_eq!((last.asks(), origin.asks()), (4, 2));
    assert_eq!(exceptions(&stage, "refused"), (0, 0));
    // What was fetched under the last list is over by now.
    stage.pass(Duration::from_secs(61));
    let mut request = Request::rescue(&origin, &ours("copied-late"));
    request.source.company = Company::WithHomes(homes.clone());
    assert_eq!(stage.get(&request).await.unwrap().text(), "origin");
    assert_eq!(last.asks(), 4);
}

#[tokio::test]
async fn what_is_for_one_visitor_is_not_asked_of_its_home() {
    let private = ok("Cache-Control: private\r\n", "yours");
    let origin = Origin::says(&private).await;
    let stage = Stage::new(settings());
    let from_home = private.replace("Cache-Control", "Levee-Home: yes\r\nCache-Control");
    let home = Origin::says(&from_home).await;
    let request = request(&origin, &home, "/a");
    for _ in 0..3 {
        assert_eq!(stage.get(&request).await.unwrap().text(), "yours");
        stage.settled().await;
    }
    assert_eq!((home.asks(), origin.asks()), (1, 2));
}
