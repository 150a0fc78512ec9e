//! A log is played again, and says what its site would have needed.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use levee_control::{GateLimits, Redirectability};
use levee_sim::SiteId;
use levee_sim::replay::{Outcome, Replay, ReplaySettings, Visit};
use levee_sim::site::default_parameters;
use levee_vocab::{ByteRate, Timestamp};

/// The DSL line of the paper.
const LINK: ByteRate = ByteRate::from_bytes(53_900);

fn settings(neighbours: &[u64]) -> ReplaySettings {
    ReplaySettings {
        origin: default_parameters(SiteId(0), "origin", LINK),
        limits: GateLimits::default(),
        neighbours: neighbours
            .iter()
            .map(|&rate| ByteRate::from_kilobytes(rate))
            .collect(),
        seed: 1,
    }
}

/// So many requests a second for ten files of 6 kB.
fn visits(rate: f64, seconds: std::ops::Range<u64>) -> Vec<Visit> {
    let start = Timestamp::from_seconds(seconds.start);
    let count = (rate * (seconds.end - seconds.start) as f64) as u64;
    (0..count)
        .map(|number| Visit {
            at: start + Duration::from_secs_f64(number as f64 / rate),
            resource: number % 10,
            bytes: 6000,
            redirectability: Redirectability::Allowed,
        })
        .collect()
}

fn play(visits: &[Visit], neighbours: &[u64]) -> Outcome {
    let mut replay = Replay::new(settings(neighbours));
    visits.iter().for_each(|visit| replay.visit(visit));
    replay.finish()
}

/// A day with a crowd of 40 a second at noon, for two minutes.
fn day_with_a_crowd() -> Vec<Visit> {
    let mut day = visits(0.1, 0..43_200);
    day.extend(visits(40.0, 43_200..43_320));
    day.extend(visits(0.1, 43_320..86_400));
    day
}

#[test]
fn a_crowd_that_is_too_much_alone_is_survived_with_a_neighbour() {
    let day = day_with_a_crowd();
    let alone = play(&day, &[]);
    assert!(!alone.has_survived());
    assert_eq!(alone.redirects, 0);
    assert!(alone.refused + alone.failed > 2000, "{alone:?}");
    let from = alone.overloaded_from.unwrap();
    assert!(
        (43_200..43_320).contains(&(from.as_seconds() as u64)),
        "{from}"
    );

    let helped = play(&day, &[2000]);
    assert!(helped.has_survived(), "{helped:?}");
    let from = helped.redirected_from.unwrap().as_seconds();
    assert!((43_200.0..43_210.0).contains(&from), "{from}");
    let until = helped.redirected_until.unwrap().as_seconds();
    assert!((43_310.0..43_325.0).contains(&until), "{until}");
    assert!(helped.carried[0] > 3000, "{helped:?}");
}

#[test]
fn every_request_of_the_log_has_one_fate() {
    for neighbours in [&[][..], &[30], &[500, 500]] {
        let outcome = play(&day_with_a_crowd(), neighbours);
        let ended = outcome.answered + outcome.refused + outcome.failed;
        assert_eq!(outcome.requests, ended, "{outcome:?}");
    }
}

#[test]
fn a_quiet_log_needs_no_simulation_at_all() {
    // Three weeks, without a second that is worth it.
    let outcome = play(&visits(0.05, 0..1_800_000), &[1000; 4]);
    assert_eq!(outcome.episodes, 0);
    assert_eq!(outcome.answered, 90_000);
    assert!(outcome.has_survived());
}

#[test]
fn what_may_not_be_redirected_is_not() {
    let mut crowd = visits(40.0, 100..160);
    for visit in &mut crowd {
        visit.redirectability = Redirectability::Never;
    }
    let outcome = play(&crowd, &[2000]);
    assert_eq!(outcome.redirects, 0);
    assert!(!outcome.has_survived());
}

#[test]
fn the_same_log_gives_the_same_answer() {
    let crowd = visits(60.0, 100..160);
    assert_eq!(play(&crowd, &[100, 300]), play(&crowd, &[100, 300]));
}
