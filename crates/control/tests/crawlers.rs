//! What is promised about crawlers, for any requests: a reader is not taken for one, what crawlers
//! cause calls nobody for help, and noting a request allocates nothing.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use levee_control::{
    Block, Brain, CrawlerNames, CrawlerTraffic, CrawlerWatch, Input, LoadSample, Named, Noted,
    Output, PageRequest, Parameters, Traffic,
};
use levee_vocab::{ByteRate, Random, Timestamp, WebAddress};
use proptest::prelude::*;

/// Different pages in a minute below which nobody is taken for a crawler.
const PAGES: usize = 48;
const MINUTE: u64 = 60_000;

#[derive(Clone, Copy, Debug)]
struct Request {
    /// Milliseconds after the one before.
    after: u64,
    block: u32,
    page: u64,
    agent: u64,
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request =
        (0..2000_u64, 0..4_u32, 0..400_u64, 0..12_u64).prop_map(|(after, block, page, agent)| {
            Request {
                after: after / 4,
                // Most come from one block.
                block: block.saturating_sub(2),
                page,
                agent,
            }
        });
    prop::collection::vec(request, 0..1500)
}

fn block(number: u32) -> Block {
    Block::of(Ipv4Addr::from(0xC633_0000 + number * 256).into())
}

fn note(watch: &mut CrawlerWatch, now: u64, request: &Request) -> Noted {
    let request = PageRequest {
        page: request.page.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        agent: request.agent,
        block: block(request.block),
        bytes: 10_000,
    };
    watch.note(Timestamp::from_milliseconds(now), &request)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a block does, and whatever others do: below the bar it is a reader's.
    #[test]
    fn who_asks_for_few_different_pages_in_any_minute_is_a_reader(all in requests()) {
        let mut watch = CrawlerWatch::default();
        let mut now = 0;
        let mut asked: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for request in &all {
            now += request.after;
            let pages = asked.entry(request.block).or_default();
            pages.retain(|&(at, _)| now - at <= MINUTE);
            let mut different: BTreeSet<u64> = pages.iter().map(|&(_, page)| page).collect();
            // A reader keeps below the bar: what would be too much is one of the pages again.
            let page = match different.len() + 1 < PAGES {
                true => request.page,
                false => *different.first().unwrap(),
            };
            different.insert(page);
            pages.push((now, page));
            let noted = note(&mut watch, now, &Request { page, ..*request });
            prop_assert_eq!(noted, Noted::Reader);
        }
    }

    /// However a crawler spreads its requests over the pages of a site, and whatever name it gives.
    #[test]
    fn who_asks_for_hundreds_of_pages_once_each_is_a_crawler(
        seed in any::<u64>(), agents in 1..100_u64, every in 1..100_u64,
    ) {
        let mut watch = CrawlerWatch::default();
        let mut random = Random::from_seed(seed);
        let mut recognised = None;
        for number in 0..600 {
            let page = number * 1000 + random.within(0..1000);
            let request = Request { after: 0, block: 0, page, agent: number % agents };
            match note(&mut watch, number * every, &request) {
                Noted::Recognised { .. } => recognised = Some(number),
                Noted::Reader => prop_assert_eq!(recognised, None),
                Noted::Crawler => {}
            }
        }
        prop_assert!(recognised.is_some_and(|number| number < 500), "{:?}", recognised);
    }
}

#[test]
fn a_request_is_noted_and_a_name_is_read_without_allocating() {
    let mut watch = CrawlerWatch::default();
    let names = CrawlerNames::new(&["wget".to_owned()], &[]);
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    names.judge(agent.as_bytes());
    let info = allocation_counter::measure(|| {
        for number in 0..10_000_u64 {
            let request = Request {
                after: 0,
                block: (number % 1000) as u32,
                page: number / 3,
                agent: number % 5,
            };
            note(&mut watch, number * 10, &request);
            assert_eq!(names.judge(agent.as_bytes()), Named::Nobody);
        }
    });
    assert_eq!(info.count_total, 0);
}

fn brain() -> Brain {
    let site = WebAddress {
        host: "www.example.org".parse().unwrap(),
        port: 80,
    };
    let domain = "aliases.example.net".parse().unwrap();
    let address = "192.0.2.1".parse().unwrap();
    let mut parameters = Parameters::new(site, address, domain, ByteRate::from_kilobytes(1250));
    parameters.rescue_port = 7401;
    Brain::new(parameters.check().unwrap(), 1, Vec::new())
}

/// An interval in which D_out is 1000 kB/s.
fn interval(own_kilobytes: u64, crawlers_kilobytes: u64) -> LoadSample {
    LoadSample {
        elapsed: Duration::from_secs(1),
        own: Traffic {
            bytes: own_kilobytes * 1000,
            requests: own_kilobytes,
            file_bytes: 0,
        },
        crawlers: CrawlerTraffic {
            own_bytes: crawlers_kilobytes * 1000,
            part: crawlers_kilobytes as f64 / own_kilobytes as f64,
            ..CrawlerTraffic::default()
        },
        ..LoadSample::default()
    }
}

/// Plays intervals of a second; tells whether help was looked for with need.
fn needs_help(samples: &[LoadSample]) -> bool {
    let mut brain = brain();
    let mut needs = false;
    for (second, sample) in (1..).zip(samples) {
        let now = Timestamp::from_milliseconds(second * 1000);
        let input = Input::IntervalEnded(sample.clone());
        let outputs = brain.handle(now, input);
        needs |= outputs.iter().any(|output| {
            matches!(output, Output::Explain(reason) if reason.to_string().contains("above"))
        });
    }
    needs
}

#[test]
fn what_crawlers_cause_is_no_reason_to_call_for_help() {
    assert!(needs_help(&[interval(900, 0)]));
    assert!(!needs_help(&[interval(900, 500)]));
    let mut busy = interval(100, 90);
    busy.cpu = 0.9;
    busy.connections = 0.9;
    busy.crawlers.connections = 0.8;
    assert!(!needs_help(&[busy]));
}

#[test]
fn what_a_crawler_had_before_it_was_recognised_is_left_out_when_it_leaves() {
    // 500 kB were given to it before; half of that leaves in the next second.
    assert!(!needs_help(&[interval(300, 550), interval(650, 0)]));
    assert!(needs_help(&[interval(300, 550), interval(800, 0)]));
    // What belongs to seconds long past is forgotten.
    assert!(needs_help(&[
        interval(300, 9_000),
        interval(0, 0),
        interval(600, 0)
    ]));
}

#[test]
fn crawlers_yield_to_readers() {
    let pages = |readers: u64| {
        let mut brain = brain();
        let now = Timestamp::from_milliseconds(1000);
        brain.handle(now, Input::IntervalEnded(interval(readers, 0)));
        brain.plan().crawl.unwrap().pages.as_kilobytes()
    };
    assert_eq!(pages(0), 250);
    assert_eq!(pages(240), 250);
    assert_eq!(pages(310), 150);
    assert_eq!(pages(480), 0);
    assert_eq!(pages(900), 0);
}
