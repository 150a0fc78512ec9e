//! Crawlers: put off beyond their ration, never redirected, never in a reader's way.

use std::io::Read;

use levee_control::{CrawlPlan, CrawlerNames};
use levee_proxy::{Behaviour, CrawlerRules};
use levee_vocab::ByteRate;

use crate::support::{Running, Setup, redirecting};

fn rules() -> CrawlerRules {
    CrawlerRules {
        names: CrawlerNames::new(&[], &["GoodBot".to_owned()]),
        by_behaviour: Behaviour::Watched,
        allowed: Vec::new(),
        fetches_max: 1,
    }
}

/// What crawlers get: pages, and being told, in kB/s.
fn plan(pages: u64, refusals: u64) -> Option<CrawlPlan> {
    Some(CrawlPlan {
        pages: ByteRate::from_kilobytes(pages),
        refusals: ByteRate::from_kilobytes(refusals),
    })
}

fn site(crawl: Option<CrawlPlan>) -> Running {
    let mut setup = Setup {
        crawlers: Some(rules()),
        trusted: vec!["127.0.0.0/8".parse().unwrap()],
        ..Setup::default()
    };
    setup.plan.crawl = crawl;
    let running = setup.start();
    running.write("page.html", "a page");
    running.write("robots.txt", "User-agent: *\n");
    running
}

fn request(target: &str, agent: &str, from: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nHost: site.example\r\nUser-Agent: {agent}\r\n\
         X-Forwarded-For: {from}\r\n\r\n"
    )
}

const CRAWLER: &str = "ExampleBot/1.0";
const READER: &str = "Mozilla/5.0 Firefox/140.0";

#[test]
fn a_crawler_gets_what_there_is_for_it_and_a_reader_everything() {
    let running = site(plan(1000, 1000));
    let response = running.ask(&request("/page.html", CRAWLER, "192.0.2.1"));
    assert_eq!((response.status, response.text()), (200, "a page"));

    let running = site(plan(0, 1000));
    let mut crawler = running.connect();
    crawler.send(request("/page.html", CRAWLER, "192.0.2.1"));
    let response = crawler.receive();
    assert_eq!(response.status, 429);
    assert_eq!(response.header("retry-after"), "60");
    assert_eq!(response.header("connection"), "close");
    assert_eq!(crawler.stream().read(&mut [0]).unwrap(), 0);
    for (target, agent) in [
        ("/page.html", READER),
        ("/page.html", "GoodBot/2"),
        ("/robots.txt", CRAWLER),
    ] {
        let response = running.ask(&request(target, agent, "192.0.2.1"));
        assert_eq!(response.status, 200, "{target} {agent}");
    }
    let sample = running.sample_until(|sample| sample.crawlers.connections == 0);
    assert_eq!((sample.crawlers.by_name, sample.crawlers.put_off), (1, 1));
    assert_eq!(sample.refused, 0);
}

#[test]
fn a_flood_is_closed_without_an_answer_when_enough_was_said() {
    let running = site(plan(0, 0));
    let mut crawler = running.connect();
    crawler.send(request("/page.html", CRAWLER, "192.0.2.1"));
    // A reset, or the end: either way there is no answer.
    let ended = crawler.stream().read(&mut [0]);
    assert!(!matches!(ended, Ok(1)), "{ended:?}");
    let sample = running.sample_until(|sample| sample.crawlers.closed == 1);
    assert_eq!(sample.dropped, 0);
}

#[test]
fn crawlers_are_never_redirected_and_what_they_want_is_not_hot() {
    let setup = Setup {
        crawlers: Some(rules()),
        plan: redirecting("www-vh1.rescue.example"),
        ..Setup::default()
    };
    let running = setup.start();
    running.write("page.html", "a page of some length ".repeat(100));
    let ask = |agent| {
        running
            .ask(&request("/page.html", agent, "192.0.2.1"))
            .status
    };
    assert_eq!((ask(CRAWLER), ask(READER)), (200, 302));
    let mut noted = Vec::new();
    running.sample_until(|_| {
        noted.extend(running.front.take_notes().arrivals);
        !noted.is_empty()
    });
    assert_eq!(noted.iter().map(|arrivals| arrivals.count).sum::<u64>(), 1);
}

#[test]
fn who_asks_for_very_many_pages_once_each_is_a_crawler_whatever_it_says() {
    let running = site(plan(0, 1000));
    let ask = |page: u32, from: &str| {
        let target = format!("/none-{page}");
        running.ask(&request(&target, READER, from)).status
    };
    let answered = (0..60).filter(|&page| ask(page, "192.0.2.1") == 404);
    let answered = answered.count() as u64;
    assert!((47..=50).contains(&answered), "{answered}");
    assert_eq!(ask(99, "192.0.2.200"), 429);
    assert_eq!(ask(99, "192.0.3.1"), 404);
    let sample = running.sample_until(|sample| sample.crawlers.by_behaviour > 0);
    let crawlers = sample.crawlers;
    assert_eq!(crawlers.by_behaviour, 60 - answered + 1);
    // What it was given before counts as a crawler's as well.
    assert!(crawlers.own_bytes > answered * 200, "{crawlers:?}");
}

#[test]
fn an_application_is_asked_for_so_much_by_crawlers_and_by_readers_beside_them() {
    let setup = Setup {
        crawlers: Some(rules()),
        upstream: Some(silent()),
        ..Setup::default()
    };
    let running = setup.start();
    let waits = |agent: &str, page: &str| {
        let mut client = running.connect();
        client.send(request(page, agent, "192.0.2.1"));
        client
    };
    let _first = waits(CRAWLER, "/1");
    running.sample_until(|sample| sample.crawlers.by_name == 1);
    assert_eq!(
        running.ask(&request("/2", CRAWLER, "192.0.2.1")).status,
        429
    );
    let _reader = waits(READER, "/3");
    let sample = running.sample_until(|sample| sample.requests == 3);
    assert_eq!(sample.crawlers.put_off, 1);
}

/// An application that takes requests and never answers.
fn silent() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        while let Ok((connection, _)) = listener.accept() {
            held.push(connection);
        }
    });
    address
}
