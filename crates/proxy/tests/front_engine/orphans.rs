//! Visitors of an origin that has died: what is held, what is not, and our operator's limits.

use std::time::Instant;

use levee_control::{HelpPlan, OriginPhase, RoutePlan};
use levee_proxy::UnknownHost;
use levee_vocab::{ByteRate, Timestamp};

use crate::support::{Response, Running, Setup, origin, rescuing};

/// The body of the only page.
const PAGE_BYTES: u64 = 5000;
/// A limit that is used up by a few pages.
const LIMIT: u64 = 20_000;
/// Seconds of a limit that can be saved up (`Ration`), and one more for a busy machine.
const SAVED: f64 = 3.0;

fn page() -> String {
    let body = "x".repeat(PAGE_BYTES as usize);
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {PAGE_BYTES}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

fn at_alias(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: site-vh1.alias.example\r\n\r\n")
}

/// The plan after the death of the origin, with this limit for it.
fn orphaned(limit: Option<u64>) -> RoutePlan {
    let until = Timestamp::from_seconds(u64::MAX / 2_000_000_000);
    let nowhere = ([127, 0, 0, 1], 1).into();
    let mut plan = rescuing(nowhere, OriginPhase::Orphaned { until });
    plan.version = 2;
    plan.help = limit.map(|bytes| HelpPlan {
        all: None,
        origins: vec![(9, ByteRate::from_bytes(bytes))],
    });
    plan
}

/// A rescue server that holds `/` of an origin which is dead by now.
fn bereaved(limit: Option<u64>) -> Running {
    let running = Setup {
        plan: rescuing(origin(|_| page()), OriginPhase::Live),
        ..Setup::default()
    }
    .start();
    running.ask_until_kept(&at_alias("/"));
    running.publish(orphaned(limit));
    // Until the new plan is in force, the origin has whatever is asked for.
    let mut others = (0..).map(|other| running.ask(&at_alias(&format!("/{other}"))));
    assert!(others.any(|response| response.status == 503));
    running
}

fn is_told_to_come_again(response: &Response, word: &str) {
    assert_eq!(response.status, 503, "{response:?}");
    assert!(response.header("retry-after").parse::<u64>().unwrap() > 0);
    assert_eq!(response.header("cache-control"), "no-store");
    assert!(response.text().contains(word), "{}", response.text());
}

#[test]
fn what_is_held_is_shown_and_what_is_not_says_so() {
    let running = bereaved(None);
    assert_eq!(running.ask(&at_alias("/")).status, 200);
    let other = running.ask(&at_alias("/other"));
    is_told_to_come_again(&other, "this page is not among that");
}

/// It would outlive the rescue; that its origin is dead makes it no better.
#[test]
fn the_script_of_a_service_worker_is_not_given_out_either() {
    let running = bereaved(None);
    let asked = at_alias("/").replace("\r\n\r\n", "\r\nService-Worker: script\r\n\r\n");
    assert_eq!(running.ask(&asked).status, 403);
    assert_eq!(running.ask(&at_alias("/")).status, 200);
}

#[test]
fn the_limit_of_help_binds_and_those_beyond_it_are_told_to_come_again() {
    let running = bereaved(Some(LIMIT));
    let began = Instant::now();
    let (mut given, mut refused) = (0.0, 0);
    while refused < 50 {
        let response = running.ask(&at_alias("/"));
        match response.status {
            200 => given += PAGE_BYTES as f64,
            _ => {
                refused += 1;
                is_told_to_come_again(&response, "have no room for more");
                assert_eq!(response.header("location"), "", "nobody is there");
            }
        }
        let seconds = began.elapsed().as_secs_f64() + SAVED;
        assert!(given <= LIMIT as f64 * seconds, "{given} in {seconds} s");
    }
    assert!(given > 0.0, "the limit is not nothing");
    // Nobody here is short of anything: this is no load for which others would have to help.
    let sample = running.sample_until(|sample| sample.withheld >= refused);
    assert_eq!((sample.refused, sample.dropped), (0, 0), "{sample:?}");
}

#[test]
fn a_limit_of_nothing_refuses_everybody() {
    let running = bereaved(Some(0));
    for target in ["/", "/other"] {
        is_told_to_come_again(&running.ask(&at_alias(target)), "no room");
    }
}

#[test]
fn after_the_permit_who_comes_by_the_name_of_the_site_is_told_that_it_is_away() {
    let until = Timestamp::from_seconds(u64::MAX / 2_000_000_000);
    let nowhere = ([127, 0, 0, 1], 1).into();
    let running = Setup {
        plan: rescuing(nowhere, OriginPhase::Expired { until }),
        // Who serves its own site to everybody does not serve it under this name.
        unknown: UnknownHost::Serve,
        ..Setup::default()
    }
    .start();
    let at = |host: &str| running.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    for host in ["origin.example", "ORIGIN.example:8080"] {
        let told = at(host);
        assert_eq!((told.status, told.header("retry-after")), (503, "60"));
        assert!(told.text().contains("no longer carries this site"));
    }
    // The alias leads back as ever: the name may lead elsewhere by now.
    assert_eq!(at("site-vh1.alias.example").status, 302);
}
