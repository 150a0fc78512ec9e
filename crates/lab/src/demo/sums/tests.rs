//! Figures from made-up sights, checked by hand.

use levee_vocab::WebAddress;

use super::super::watch::{LinkSeen, PeerSeen, Seen};
use super::*;
use crate::crowd::ledger::Answer;

fn look(second: f64, carried: u64) -> Look {
    let mut seen = Seen::default();
    seen.link.carried = carried;
    Look {
        at: Duration::from_secs_f64(second),
        seen,
    }
}

fn record(kind: Asked, arrived_ms: u64, taken_ms: u64) -> Record {
    let arrived = Duration::from_millis(arrived_ms);
    let ended = arrived + Duration::from_millis(taken_ms);
    Record {
        kind,
        arrived,
        asked: arrived,
        ended,
        redirected: Some((ended, 182)),
        result: Ok(Answer {
            bytes: 1_000,
            wire_bytes: 1_200,
            port: 2,
        }),
    }
}

#[test]
fn bytes_between_two_looks_are_shared_out_in_proportion() {
    let looks = [look(0.5, 100), look(1.5, 300), look(2.5, 300)];
    assert_eq!(carried_at(&looks, Duration::from_secs(1)), 200.0);
    assert_eq!(carried_at(&looks, Duration::ZERO), 100.0);
    assert_eq!(carried_at(&looks, Duration::from_secs(9)), 300.0);
    assert_eq!(carried_by_second(&looks), [100.0, 100.0]);
}

#[test]
fn the_bound_counts_only_what_was_whole_in_time() {
    let played = BoundPlayed {
        start: Duration::ZERO,
        length: Duration::from_secs(10),
        rate: 105.0,
        records: vec![
            record(Asked::Single, 0, 100),
            record(Asked::Single, 1_000, 6_900),
            record(Asked::Single, 1_000, 7_100),
            record(Asked::Single, 9_900, 200),
        ],
    };
    let bound = bound(&played);
    assert_eq!(bound.redirect_bytes, 182.0);
    assert_eq!(bound.limit, 100.0);
    assert_eq!(bound.redirected, 0.2);
    assert_eq!((bound.followed, bound.requests), (4, 4));
}

/// A crowd of ten images a second for a minute, and one rescue server.
fn made_up() -> Played {
    let address = WebAddress {
        host: "news.localhost".parse().unwrap(),
        port: 1,
    };
    let rescued = Look {
        at: Duration::from_secs_f64(7.5),
        seen: Seen {
            state: "sos".to_owned(),
            rescue_servers: vec![PeerSeen {
                site: "alice.localhost:2".to_owned(),
                rate: 9,
                ..PeerSeen::default()
            }],
            link: LinkSeen {
                peak: 27_000,
                ..LinkSeen::default()
            },
            ..Seen::default()
        },
    };
    let side = |looks| Side {
        records: (0..600)
            .map(|n| record(Asked::Image, 6_000 + n * 100, 50))
            .collect(),
        traffic: BTreeMap::new(),
        looks,
        port: 1,
        lag: Duration::ZERO,
    };
    let member = MemberSeen {
        link: 1_000_000,
        looks: Vec::new(),
        own: vec![record(Asked::Page, 7_000, 10)],
    };
    Played {
        seed: 1,
        profile: Profile::stampede(Duration::from_secs(60)),
        with: side(vec![rescued]),
        without: side(Vec::new()),
        bound: None,
        members: BTreeMap::from([("alice".to_owned(), member)]),
        capacity_offered: 30_000,
        names: BTreeMap::new(),
        site: Site::generate(1, &address),
    }
}

#[test]
fn the_figures_of_a_small_crowd_are_those_done_by_hand() {
    let figures = made_up().figures();
    assert_eq!(figures.requests_max, 10.0);
    assert_eq!(figures.alone.body, 1_000.0);
    assert_eq!(figures.alone.head, 200.0);
    assert_eq!(figures.alone.overhead, 140.0);
    assert!((figures.requests_gain - 10.0 * 1_340.0 / 54_000.0).abs() < 1e-9);
    assert_eq!(figures.origin_rate_peak_ratio, 0.5);
    assert_eq!(
        figures.offered_capacity_ratio, 3.0,
        "10 requests/s of 1000 bytes"
    );
    assert_eq!(figures.first_redirect_seconds, Some(0.05));
    assert_eq!(figures.rescue_servers[0].name, "alice");
    assert_eq!(figures.rescue_servers[0].seconds, 1.5);
    assert_eq!(figures.members_own.answered, 1);
    assert_eq!(figures.series.redirects.iter().sum::<u64>(), 600);
    assert!(!figures.survived, "it never came back to normal");
}
