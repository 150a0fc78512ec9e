//! Who is taken for a crawler, and who is not; `tests/crawlers.rs` promises it for any requests.

use super::*;

fn block(text: &str) -> Block {
    Block::of(text.parse().unwrap())
}

fn at(milliseconds: u64) -> Timestamp {
    Timestamp::from_milliseconds(milliseconds)
}

fn request(block: Block, page: u64) -> PageRequest {
    PageRequest {
        page: mix(page),
        agent: 7,
        block,
        bytes: 10_000,
    }
}

#[test]
fn a_block_is_a_network() {
    assert_eq!(block("192.0.2.7"), block("192.0.2.200"));
    assert_eq!(block("192.0.2.7"), block("::ffff:192.0.2.9"));
    assert_ne!(block("192.0.2.7"), block("192.0.3.7"));
    assert_eq!(block("2001:db8:0:1::5"), block("2001:db8:0:ff::9"));
    assert_ne!(block("2001:db8:0:1::5"), block("2001:db8:0:100::5"));
}

#[test]
fn many_pages_once_each_are_a_crawlers_and_what_it_had_is_told() {
    let mut watch = CrawlerWatch::default();
    let crawler = block("192.0.2.7");
    let mut recognised = None;
    for page in 0..60 {
        match watch.note(at(page * 10), &request(crawler, page)) {
            Noted::Reader => assert_eq!(recognised, None),
            Noted::Recognised { bytes } => recognised = Some((page + 1, bytes)),
            Noted::Crawler => assert!(recognised.is_some()),
        }
    }
    let (pages, bytes) = recognised.unwrap();
    assert!((48..=50).contains(&pages), "{pages}");
    assert_eq!(bytes, (pages - 1) * 10_000);
    assert!(watch.suspects(at(700), crawler));
    assert!(!watch.suspects(at(700), block("192.0.3.7")));
    assert_eq!(watch.crawlers(at(700)), 1);
}

#[test]
fn it_stays_one_while_it_goes_on_and_is_forgiven_when_it_has_stopped() {
    let mut watch = CrawlerWatch::default();
    let crawler = block("192.0.2.7");
    let mut page = 0;
    let mut crawl = |watch: &mut CrawlerWatch, from: u64, pages: u64, every: u64| {
        for number in 0..pages {
            page += 1;
            watch.note(at(from + number * every), &request(crawler, page));
        }
    };
    // Thousands of pages in a minute, and then one in four seconds, because it is told to wait.
    crawl(&mut watch, 0, 6000, 10);
    assert!(watch.suspects(at(60_000), crawler));
    crawl(&mut watch, 60_000, 45, 4000);
    assert!(watch.suspects(at(239_000), crawler));
    // One in ten seconds is what a reader does.
    crawl(&mut watch, 240_000, 13, 10_000);
    assert!(!watch.suspects(at(371_000), crawler));
}

#[test]
fn a_crawler_that_stays_away_is_forgotten() {
    let mut watch = CrawlerWatch::default();
    let crawler = block("192.0.2.7");
    for page in 0..60 {
        watch.note(at(page), &request(crawler, page));
    }
    assert!(!watch.suspects(at(130_000), crawler));
    assert_eq!(watch.crawlers(at(130_000)), 0);
}

#[test]
fn readers_behind_one_address_who_want_the_same_are_readers() {
    let mut watch = CrawlerWatch::default();
    let office = block("192.0.2.7");
    for number in 0..10_000u64 {
        // A thousand pages, of which few are wanted much more than the others.
        let page = (mix(number) % 1000) * (mix(number ^ 99) % 1000) / 1000;
        let page = page * page / 1000;
        let other = block(&format!("198.51.{}.1", number % 50));
        watch.note(at(number * 10), &request(other, page));
        watch.note(at(number * 10), &request(office, page));
    }
    assert!(!watch.suspects(at(100_000), office));
}

#[test]
fn what_others_want_is_a_readers_also_in_the_block_of_a_crawler() {
    let mut watch = CrawlerWatch::default();
    let crawler = block("192.0.2.7");
    watch.note(at(0), &request(block("198.51.100.1"), 5000));
    watch.note(at(0), &request(block("198.51.101.1"), 5000));
    for page in 0..60 {
        watch.note(at(page), &request(crawler, page));
    }
    assert_eq!(watch.note(at(100), &request(crawler, 5000)), Noted::Reader);
    assert_eq!(watch.note(at(100), &request(crawler, 5001)), Noted::Crawler);
}

#[test]
fn many_kinds_of_browser_in_a_block_raise_the_bar() {
    let mut watch = CrawlerWatch::default();
    let office = block("192.0.2.7");
    let mut last = Noted::Reader;
    let mut pages = 0;
    while last == Noted::Reader {
        let mut one = request(office, pages);
        one.agent = pages;
        last = watch.note(at(pages * 10), &one);
        pages += 1;
    }
    // A crawler that changes its name with each request is one all the same.
    assert!((380..500).contains(&pages), "{pages}");
}

#[test]
fn a_stampede_for_one_page_pushes_no_crawler_out() {
    let mut watch = CrawlerWatch::default();
    let crawler = block("192.0.2.7");
    for page in 0..60 {
        watch.note(at(page), &request(crawler, page));
    }
    for number in 0..20_000u32 {
        let server = Block::of(std::net::Ipv4Addr::from(0x0A00_0000 + number * 256).into());
        let noted = watch.note(at(100 + u64::from(number)), &request(server, 9999));
        assert_eq!(noted, Noted::Reader);
    }
    assert!(watch.suspects(at(21_000), crawler));
}
