//! What a registry promises, one rule at a time.
#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use std::time::Duration;

use levee_registry::{
    AddressRule, Asker, Change, Input, Output, PrivateAddresses, Registry, RegistryLimits,
};
use levee_vocab::{HostName, Timestamp};
use levee_wire::registry::{Refusal, Reply, parse_request};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

/// Says one line from one address and gives the answer as text.
fn says(registry: &mut Registry, seconds: u64, from: &str, line: &str) -> String {
    let (number, request) = parse_request(format!("1 {line}").as_bytes()).unwrap();
    let address = from.parse().unwrap();
    let asker = Asker {
        connection: 5,
        address,
        clock: seconds * 1000,
    };
    let outputs = registry.handle(at(seconds), Input::RequestReceived { asker, request });
    let mut text = Vec::new();
    for output in outputs {
        match output {
            Output::Answer { connection, reply } => {
                assert_eq!(connection, 5);
                assert!(text.is_empty(), "one answer");
                reply.encode(number, &mut text);
            }
            Output::Announce(_) => {}
        }
    }
    String::from_utf8(text)
        .unwrap()
        .replace("1 210 ENTRY ", "")
        .replace("1 200 OK", "OK")
}

/// Without the stamps that the registry itself has given.
fn check(registry: &mut Registry, seconds: u64, from: &str, line: &str, expected: &[&str]) {
    let answer = says(registry, seconds, from, line);
    let plain = answer.lines().map(|line| match line.split_once(" stamp=") {
        Some((entry, _)) if !line.starts_with("1 4") => entry,
        Some(_) | None => line,
    });
    assert_eq!(plain.collect::<Vec<_>>(), expected, "{line}");
}

/// With them.
fn check_all(registry: &mut Registry, seconds: u64, from: &str, line: &str, expected: &[&str]) {
    let answer = says(registry, seconds, from, line);
    assert_eq!(answer.lines().collect::<Vec<_>>(), expected, "{line}");
}

fn registry() -> Registry {
    Registry::new(RegistryLimits::default())
}

const ONE: &str = "8.0.0.1";
const TWO: &str = "8.0.0.2";
const THREE: &str = "8.0.0.3";

#[test]
fn the_best_offers_come_first_and_equal_ones_by_name() {
    let mut r = registry();
    check(
        &mut r,
        0,
        ONE,
        "REGISTER c.org 80 8.0.0.1 7401 500 30",
        &["OK 30"],
    );
    check(
        &mut r,
        0,
        TWO,
        "REGISTER b.org 81 8.0.0.2 7402 900 30",
        &["OK 30"],
    );
    check(
        &mut r,
        1,
        THREE,
        "REGISTER a.org 82 8.0.0.3 7403 500 30",
        &["OK 30"],
    );
    let b = "b.org 81 8.0.0.2 7402 900 29";
    let c = "c.org 80 8.0.0.1 7401 500 29";
    let a = "a.org 82 8.0.0.3 7403 500 30";
    check(&mut r, 1, ONE, "SEARCH 9", &[b, a, c, "OK 3"]);
    check(&mut r, 1, ONE, "SEARCH 2", &[b, a, "OK 2"]);
    check(&mut r, 1, TWO, "SEARCH 2 except=b.org", &[a, c, "OK 2"]);
    check(&mut r, 1, TWO, "SEARCH 0", &["OK 0"]);
}

#[test]
fn a_changed_offer_counts_at_once_and_nothing_is_not_an_offer() {
    let mut r = registry();
    check(
        &mut r,
        0,
        ONE,
        "REGISTER a.org 80 8.0.0.1 7401 500 30",
        &["OK 30"],
    );
    check(
        &mut r,
        0,
        TWO,
        "REGISTER b.org 80 8.0.0.2 7401 400 30",
        &["OK 30"],
    );
    check(
        &mut r,
        1,
        ONE,
        "REGISTER a.org 80 8.0.0.1 7401 0 30",
        &["OK 30"],
    );
    check(
        &mut r,
        1,
        ONE,
        "SEARCH 9",
        &["b.org 80 8.0.0.2 7401 400 29", "OK 1"],
    );
    check(
        &mut r,
        1,
        ONE,
        "QUERY a.org",
        &["a.org 80 8.0.0.1 7401 0 30", "OK 1"],
    );
    check(&mut r, 1, ONE, "QUERY c.org", &["OK 0"]);
}

#[test]
fn an_entry_lives_until_its_time_is_over_even_when_the_timer_is_late() {
    let mut r = registry();
    check(
        &mut r,
        0,
        ONE,
        "REGISTER a.org 80 8.0.0.1 7401 500 30",
        &["OK 30"],
    );
    assert_eq!(r.next_deadline(), Some(at(30)));
    check(
        &mut r,
        10,
        ONE,
        "REGISTER a.org 80 8.0.0.1 7401 500 30",
        &["OK 30"],
    );
    assert_eq!(r.next_deadline(), Some(at(40)));
    assert_eq!(r.handle(at(39), Input::TimerFired), []);
    check(&mut r, 40, TWO, "SEARCH 9", &["OK 0"]);
    // That it is gone is remembered for a minute.
    assert_eq!(r.next_deadline(), Some(at(100)));
    assert_eq!(r.handle(at(50), Input::TimerFired), []);
    assert_eq!(r.handle(at(100), Input::TimerFired), []);
    assert_eq!(r.next_deadline(), None);
}

#[test]
fn changes_are_announced_for_the_log_and_a_mesh() {
    let mut r = registry();
    says(&mut r, 0, ONE, "REGISTER a.org 80 8.0.0.1 7401 500 30");
    let name: HostName = "a.org".parse().unwrap();
    let expired = Output::Announce(Change::Expired(name));
    assert_eq!(r.handle(at(30), Input::TimerFired), [expired]);
}

#[test]
fn who_speaks_may_register_only_its_own_address() {
    let mut r = registry();
    let refused = "1 403 Reject address is not yours or not permitted here";
    for address in [
        "8.0.0.2",
        "127.0.0.1",
        "10.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
    ] {
        let line = format!("REGISTER a.org 80 {address} 7401 500 30");
        check(&mut r, 0, ONE, &line, &[refused]);
    }
    check(
        &mut r,
        0,
        "10.0.0.1",
        "REGISTER a.org 80 10.0.0.1 7401 5 30",
        &[refused],
    );
    check(
        &mut r,
        0,
        "::ffff:8.0.0.1",
        "REGISTER a.org 80 8.0.0.1 7401 5 30",
        &["OK 30"],
    );
}

#[test]
fn inner_networks_and_trusting_communities_need_permission() {
    let mut inner = Registry::new(RegistryLimits {
        private_addresses: PrivateAddresses::Permitted,
        ..RegistryLimits::default()
    });
    let refused = "1 403 Reject address is not yours or not permitted here";
    check(
        &mut inner,
        0,
        "127.0.0.1",
        "REGISTER a.org 80 127.0.0.1 74 5 30",
        &["OK 30"],
    );
    check(
        &mut inner,
        0,
        "10.0.0.9",
        "REGISTER b.org 80 8.0.0.1 74 5 30",
        &["OK 30"],
    );
    check(
        &mut inner,
        0,
        ONE,
        "REGISTER c.org 80 10.0.0.1 74 5 30",
        &[refused],
    );
    check(
        &mut inner,
        0,
        "10.0.0.9",
        "REGISTER d.org 80 0.0.0.0 74 5 30",
        &[refused],
    );
    let mut trusting = Registry::new(RegistryLimits {
        address_rule: AddressRule::Any,
        ..RegistryLimits::default()
    });
    check(
        &mut trusting,
        0,
        ONE,
        "REGISTER a.org 80 8.0.0.2 74 5 30",
        &["OK 30"],
    );
    check(
        &mut trusting,
        0,
        ONE,
        "REGISTER a.org 80 10.0.0.1 74 5 30",
        &[refused],
    );
}

#[test]
fn a_name_belongs_to_whoever_holds_it() {
    let mut r = registry();
    check(
        &mut r,
        0,
        ONE,
        "REGISTER a.org 80 8.0.0.1 7401 500 30",
        &["OK 30"],
    );
    let taken = "1 409 Taken by another address until its registration ends";
    check(
        &mut r,
        1,
        TWO,
        "REGISTER a.org 80 8.0.0.2 7401 900 30",
        &[taken],
    );
    check(&mut r, 1, TWO, "DEREGISTER a.org", &[taken]);
    check(&mut r, 1, ONE, "DEREGISTER a.org", &["OK 1"]);
    check(&mut r, 1, ONE, "DEREGISTER a.org", &["OK 0"]);
    check(
        &mut r,
        1,
        TWO,
        "REGISTER a.org 80 8.0.0.2 7401 900 30",
        &["OK 30"],
    );
}

#[test]
fn a_network_of_ipv6_counts_as_one_address() {
    let mut r = Registry::new(RegistryLimits {
        entries_per_address_max: 2,
        ..RegistryLimits::default()
    });
    for (number, answer) in [(1, "OK 30"), (2, "OK 30"), (3, "1 503 Full")] {
        let address = format!("2600:0:0:1::{number}");
        let line = format!("REGISTER w{number}.org 80 {address} 7401 5 30");
        check(&mut r, 0, &address, &line, &[answer]);
    }
    let next = "REGISTER next.org 80 2600:0:0:2::1 7401 5 30";
    check(&mut r, 0, "2600:0:0:2::1", next, &["OK 30"]);
    // They share no more than the limit: each alone may change what it has registered.
    let taken = "1 409 Taken by another address until its registration ends";
    let other = "2600:0:0:1::2";
    check(&mut r, 1, other, "DEREGISTER w1.org", &[taken]);
    check(&mut r, 1, "2600:0:0:1::1", "DEREGISTER w1.org", &["OK 1"]);
    let again = "REGISTER w3.org 80 2600:0:0:1::2 7401 5 30";
    check(&mut r, 1, other, again, &["OK 30"]);
}

#[test]
fn a_full_registry_refuses_the_new_and_renews_the_old() {
    let mut r = Registry::new(RegistryLimits {
        entries_max: 3,
        entries_per_address_max: 2,
        ..RegistryLimits::default()
    });
    check(
        &mut r,
        0,
        ONE,
        "REGISTER a.org 80 8.0.0.1 7401 5 30",
        &["OK 30"],
    );
    check(
        &mut r,
        0,
        ONE,
        "REGISTER b.org 80 8.0.0.1 7401 5 30",
        &["OK 30"],
    );
    check(
        &mut r,
        0,
        ONE,
        "REGISTER c.org 80 8.0.0.1 7401 5 30",
        &["1 503 Full"],
    );
    check(
        &mut r,
        0,
        TWO,
        "REGISTER c.org 80 8.0.0.2 7401 5 30",
        &["OK 30"],
    );
    check(
        &mut r,
        0,
        THREE,
        "REGISTER d.org 80 8.0.0.3 7401 5 30",
        &["1 503 Full"],
    );
    check(
        &mut r,
        0,
        ONE,
        "REGISTER b.org 80 8.0.0.1 7401 6 30",
        &["OK 30"],
    );
    assert_eq!((r.view().entries, r.view().entries_max), (3, 3));
    let held = r.view().held.into_iter();
    let names: Vec<String> = held.map(|held| held.site.host.to_string()).collect();
    assert_eq!(names, ["a.org", "b.org", "c.org"]);
}

#[test]
fn lifetimes_are_kept_within_bounds() {
    let mut r = registry();
    check(
        &mut r,
        0,
        ONE,
        "REGISTER a.org 80 8.0.0.1 7401 5 0",
        &["OK 2"],
    );
    check(
        &mut r,
        0,
        ONE,
        "REGISTER b.org 80 8.0.0.1 7401 5 99999",
        &["OK 3600"],
    );
}

#[test]
fn an_unknown_command_is_answered_and_does_no_harm() {
    check(&mut registry(), 0, ONE, "GOSSIP", &["1 501 Unknown"]);
    let address: IpAddr = ONE.parse().unwrap();
    let request = levee_wire::registry::Request::Unknown("X".into());
    let asker = Asker {
        clock: 0,
        connection: 1,
        address,
    };
    let reply = Reply::Refused(Refusal::UnknownCommand);
    let answer = Output::Answer {
        connection: 1,
        reply,
    };
    let outputs = registry().handle(at(0), Input::RequestReceived { asker, request });
    assert_eq!(outputs, [answer]);
    assert!(Duration::ZERO < RegistryLimits::default().lifetime_min);
}

#[test]
fn a_search_finds_no_more_than_so_many_of_one_domain_while_there_are_others() {
    let mut r = registry();
    for (line, from) in [
        ("REGISTER a.one.org 80 8.0.0.1 7401 900 30", ONE),
        ("REGISTER b.one.org 80 8.0.0.1 7401 800 30", ONE),
        ("REGISTER c.one.org 80 8.0.0.1 7401 700 30", ONE),
        ("REGISTER a.two.org 80 8.0.0.2 7401 100 30", TWO),
    ] {
        check(&mut r, 0, from, line, &["OK 30"]);
    }
    let names = |answer: String| -> Vec<String> {
        let lines = answer.lines().filter(|line| line.contains(".org"));
        let first = |line: &str| line.split(' ').next().unwrap().to_owned();
        lines.map(first).collect()
    };
    let found = names(says(&mut r, 0, THREE, "SEARCH 3 per_domain=2"));
    assert_eq!(found, ["a.one.org", "b.one.org", "a.two.org"]);
    let found = names(says(&mut r, 0, THREE, "SEARCH 2 per_domain=1"));
    assert_eq!(found, ["a.one.org", "a.two.org"]);
    // A community of one domain is not left without help.
    let found = names(says(&mut r, 0, THREE, "SEARCH 9 per_domain=1"));
    assert_eq!(found, ["a.one.org", "b.one.org", "c.one.org", "a.two.org"]);
    let found = names(says(&mut r, 0, THREE, "SEARCH 3"));
    assert_eq!(found, ["a.one.org", "b.one.org", "c.one.org"]);
}

#[test]
fn of_two_registrations_the_one_with_the_larger_stamp_counts() {
    let mut r = registry();
    let line =
        |rate: u64, stamp: u64| format!("REGISTER a.com 80 8.0.0.1 7401 {rate} 30 stamp={stamp}");
    check(&mut r, 0, ONE, &line(5, 70), &["OK 30"]);
    let stale = "1 412 Stale stamp=70 is known here";
    check(&mut r, 1, ONE, &line(6, 69), &[stale]);
    check(&mut r, 1, ONE, &line(6, 70), &[stale]);
    // The same said twice is no mistake, and makes nothing live longer.
    check(&mut r, 1, ONE, &line(5, 70), &["OK 29"]);
    check(&mut r, 1, ONE, &line(6, 71), &["OK 30"]);
    check(
        &mut r,
        2,
        ONE,
        "DEREGISTER a.com stamp=70",
        &["1 412 Stale stamp=71 is known here"],
    );
    check(&mut r, 2, ONE, "DEREGISTER a.com stamp=72", &["OK 1"]);
    check(
        &mut r,
        3,
        ONE,
        &line(5, 72),
        &["1 412 Stale stamp=72 is known here"],
    );
    let future = "1 422 Stamp from the future: set your clock";
    check(&mut r, 3, ONE, &line(5, 603_001), &[future]);
    check(&mut r, 3, ONE, &line(5, 603_000), &["OK 30"]);
    // Who counts nothing is counted for.
    check(
        &mut r,
        3,
        ONE,
        "REGISTER a.com 80 8.0.0.1 7401 7 30",
        &["OK 30"],
    );
    let found = "a.com 80 8.0.0.1 7401 7 30 stamp=603001";
    check_all(&mut r, 3, TWO, "QUERY a.com", &[found, "OK 1"]);
}

#[test]
fn stamp_and_proof_are_passed_on_as_they_came() {
    let mut r = registry();
    let line = "REGISTER a.com 80 8.0.0.1 7401 5 30 stamp=7 key=ed25519:K sig=S";
    check(&mut r, 0, ONE, line, &["OK 30"]);
    let found = "a.com 80 8.0.0.1 7401 5 20 stamp=7 key=ed25519:K sig=S asked=30";
    check_all(&mut r, 10, TWO, "QUERY a.com", &[found, "OK 1"]);
}

#[test]
fn what_a_site_says_of_https_is_passed_on_until_it_says_something_else() {
    let mut r = registry();
    for (stamp, word) in [
        (7, ""),
        (8, " https=0"),
        (9, " https=1"),
        (10, " key=K sig=S https=1 https_sig=T"),
        (11, ""),
    ] {
        let entry = format!("a.com 80 8.0.0.1 7401 5 30 stamp={stamp}{word}");
        check(&mut r, 0, ONE, &format!("REGISTER {entry}"), &["OK 30"]);
        check_all(&mut r, 0, TWO, "SEARCH 1", &[&entry, "OK 1"]);
    }
}
