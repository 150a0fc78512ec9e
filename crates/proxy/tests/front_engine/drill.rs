//! The visitors of a drill, and everybody else meanwhile.

use levee_control::{DrillPlan, RoutePlan};
use levee_proxy::{DRILL_FIELD, DRILL_LOOK, UnknownHost};
use levee_vocab::{ByteRate, LinkId};

use crate::support::{Running, Setup, get, redirecting};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const FETCHES: &str = "2123456789abcdef0123456789abcdef";
const WRONG: &str = "1123456789abcdef0123456789abcdef";

fn drilling() -> RoutePlan {
    let mut plan = redirecting("site-vh1.rescue.example");
    let redirect = plan.redirect.take().unwrap();
    plan.drill = Some(DrillPlan {
        key: KEY.parse().unwrap(),
        redirect,
    });
    plan
}

fn start(plan: RoutePlan) -> Running {
    let running = Setup {
        plan,
        unknown: UnknownHost::Serve,
        ..Setup::default()
    }
    .start();
    running.write("a", vec![b'a'; 5000]);
    running
}

fn showing(key: &str) -> String {
    format!("GET /a HTTP/1.1\r\nHost: site.example\r\n{DRILL_FIELD}: {key}\r\n\r\n")
}

#[test]
fn only_who_shows_the_key_of_the_drill_is_redirected() {
    let running = start(drilling());
    let redirected = running.ask(&showing(KEY));
    assert_eq!(redirected.status, 302);
    let location = "http://site-vh1.rescue.example:8080/a";
    assert_eq!(redirected.header("location"), location);
    for request in [get("/a"), showing(WRONG), showing("")] {
        assert_eq!(running.ask(&request).status, 200, "{request}");
    }
    let sample = running.sample_until(|sample| sample.own_requests == 3);
    assert_eq!(sample.slots[&7].redirects, 1);
}

#[test]
fn without_a_drill_its_key_is_nothing() {
    let running = start(RoutePlan::default());
    assert_eq!(running.ask(&showing(KEY)).status, 200);
}

#[test]
fn a_drill_above_its_part_of_the_link_is_told_so_and_counts_as_no_crowd() {
    let mut plan = drilling();
    if let Some(drill) = &mut plan.drill {
        drill.redirect.usable = ByteRate::ZERO;
    }
    let running = start(plan);
    assert_eq!(running.ask(&showing(KEY)).status, 429);
    assert_eq!(running.ask(&get("/a")).status, 200);
    let sample = running.sample_until(|sample| sample.own_requests == 2);
    assert_eq!((sample.refused, sample.waiting), (0, 0));
}

/// Asks with the key until the plan is in force, which comes to the cores by message.
fn turns(running: &Running, before: u16, after: u16) {
    let mut answers = (0..).map(|_| running.ask(&showing(KEY)).status);
    assert_eq!(answers.find(|status| *status != before), Some(after));
}

#[test]
fn what_a_drill_causes_is_counted_apart() {
    let mut plan = drilling();
    plan.fetch_keys = vec![(LinkId::Outbound(1), FETCHES.parse().unwrap())];
    let running = start(plan);
    assert_eq!(
        running.ask(&showing(&format!("{KEY}{DRILL_LOOK}"))).status,
        200
    );
    let fetch = format!("GET /a HTTP/1.1\r\nHost: site.example\r\nLevee-Fetch: {FETCHES}\r\n\r\n");
    assert_eq!(running.ask(&fetch).status, 200);
    let sample = running.sample_until(|sample| {
        sample.drill_bytes > 10_000 && sample.drill_bytes == sample.own_bytes
    });
    assert_eq!(running.ask(&get("/a")).status, 200);
    let after = running.sample_until(|after| after.own_bytes > sample.own_bytes + 5000);
    assert_eq!(after.drill_bytes, sample.drill_bytes);
}

#[test]
fn who_comes_after_his_drill_is_told_so_and_counts_as_no_crowd() {
    let running = start(drilling());
    assert_eq!(running.ask(&showing(KEY)).status, 302);
    running.publish(RoutePlan::default());
    turns(&running, 302, 410);
    for request in [get("/a"), showing(WRONG)] {
        assert_eq!(running.ask(&request).status, 200, "{request}");
    }
    let sample = running.sample_until(|sample| sample.own_bytes > 10_000 && sample.drill_bytes > 0);
    assert!((1..500).contains(&sample.drill_bytes), "{sample:?}");
    running.publish(drilling());
    turns(&running, 410, 302);
}
