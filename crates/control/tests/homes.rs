//! What holds of homes for all members, weights and objects.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use levee_control::{AskEnd, Asking, Asks, Home, HomeChoice, Homes, NeededBy, object_hash};
use levee_vocab::{ByteRate, FetchKey, Peer, Peers, Timestamp, WebAddress};
use proptest::prelude::*;

fn web(host: &str) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port: 80 }
}

fn alias(number: usize) -> WebAddress {
    web(&format!("www-vh1.rescue{number}.example"))
}

/// Members with these weights.
fn peers(weights: &[u64]) -> Peers {
    let member = |(number, &weight): (usize, &u64)| Peer {
        alias: alias(number),
        address: format!("192.0.2.{number}").parse().unwrap(),
        tls: None,
        rate: ByteRate::from_kilobytes(weight),
    };
    Peers {
        key: FetchKey::from_bytes([7; 16]),
        members: weights.iter().enumerate().map(member).collect(),
    }
}

/// The homes as somebody sees them who is none of them.
fn seen_from_outside(peers: &Peers) -> Homes {
    Homes::new(peers, &web("elsewhere.example")).unwrap()
}

fn object(number: usize) -> u64 {
    object_hash(&web("www.origin.example"), format!("/{number}").as_bytes())
}

/// Whom a visitor's miss leads to, long after the last member came.
fn choose(asks: &mut Asks, now: Timestamp, homes: &Homes, object: u64) -> HomeChoice {
    asks.choose(now, homes, (object, Duration::ZERO), NeededBy::Visitor)
}

/// The first choice, by one who has asked nobody yet.
fn home(homes: &Homes, object: u64) -> Option<Home> {
    choose(&mut Asks::default(), at(0), homes, object).home
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

proptest! {
    #[test]
    fn all_members_find_the_same_home(
        weights in prop::collection::vec(1_u64..5000, 2..8),
        target in "/[a-z0-9?=&]{0,30}",
    ) {
        let peers = peers(&weights);
        let object = object_hash(&web("www.origin.example"), target.as_bytes());
        let expected = home(&seen_from_outside(&peers), object).unwrap();
        for number in 0..weights.len() {
            let homes = Homes::new(&peers, &alias(number)).unwrap();
            let found = home(&homes, object).map_or(alias(number), |home| home.alias);
            prop_assert_eq!(&found, &expected.alias);
        }
    }

    #[test]
    fn only_objects_of_a_member_that_left_move(
        weights in prop::collection::vec(1_u64..5000, 3..8),
        leaver in any::<prop::sample::Index>(),
    ) {
        let mut peers = peers(&weights);
        let before = seen_from_outside(&peers);
        let left = peers.members.remove(leaver.index(weights.len())).alias;
        let after = seen_from_outside(&peers);
        for number in 0..100 {
            let object = object(number);
            let (old, new) = (home(&before, object).unwrap(), home(&after, object).unwrap());
            prop_assert!(old == new || old.alias == left);
        }
    }

    #[test]
    fn the_next_home_is_the_one_of_those_who_know_that_the_first_has_left(
        weights in prop::collection::vec(1_u64..5000, 3..8),
        number in 0_usize..1000,
    ) {
        let all = peers(&weights);
        let homes = seen_from_outside(&all);
        let mut asks = Asks::default();
        let first = choose(&mut asks, at(0), &homes, object(number)).home.unwrap();
        asks.end(at(0), first.address, AskEnd::Failed);
        let second = choose(&mut asks, at(0), &homes, object(number));
        let members = all.members.into_iter().filter(|peer| peer.alias != first.alias);
        let left = Peers { members: members.collect(), ..all };
        prop_assert_eq!(second.home, home(&seen_from_outside(&left), object(number)));
        prop_assert_eq!((second.resting, second.busy), (1, 0));
    }
}

#[test]
fn each_member_is_home_to_its_share() {
    let weights = [1000, 2000, 4000, 1000];
    let homes = seen_from_outside(&peers(&weights));
    let mut counts = BTreeMap::new();
    let objects = 80_000;
    for number in 0..objects {
        let home = home(&homes, object(number)).unwrap();
        *counts.entry(home.alias.to_string()).or_insert(0_u64) += 1;
    }
    for (count, weight) in counts.values().zip(weights) {
        let expected = objects as f64 * weight as f64 / 8000.0;
        let off = (*count as f64 - expected).abs() / expected;
        assert!(off < 0.03, "{counts:?}");
    }
}

/// The hash is part of the protocol: members of different versions must agree.
#[test]
fn homes_never_change() {
    let homes = seen_from_outside(&peers(&[100, 200, 300, 400]));
    let found = (0..16).map(|number| home(&homes, object(number)).unwrap().address.ip());
    let last = found
        .map(|ip| ip.to_string().pop().unwrap())
        .collect::<String>();
    assert_eq!(object(0), 0x70BD_5668_B483_5251);
    assert_eq!(last, "3210131323311331");
}

#[test]
fn where_nobody_else_helps_there_are_no_homes() {
    assert_eq!(Homes::new(&peers(&[]), &alias(0)), None);
    assert_eq!(Homes::new(&peers(&[100]), &alias(0)), None);
    assert!(Homes::new(&peers(&[100]), &alias(1)).is_some());
}

#[test]
fn a_home_that_fails_rests_longer_each_time_and_is_tried_by_one_first() {
    let homes = Homes::new(&peers(&[100]), &alias(1)).unwrap();
    let mut asks = Asks::default();
    let address = choose(&mut asks, at(0), &homes, 1).home.unwrap().address;
    asks.end(at(0), address, AskEnd::Failed);
    let mut now = 0;
    for rest in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(choose(&mut asks, at(now + rest - 1), &homes, 1).resting, 1);
        now += rest;
        assert!(
            choose(&mut asks, at(now), &homes, 1).home.is_some(),
            "{now}"
        );
        assert_eq!(choose(&mut asks, at(now), &homes, 2).resting, 1);
        asks.end(at(now), address, AskEnd::Failed);
    }
    assert!(choose(&mut asks, at(now + 30), &homes, 1).home.is_some());
    asks.end(at(now + 30), address, AskEnd::Answered);
    for number in 0..8 {
        assert!(
            choose(&mut asks, at(now + 30), &homes, number)
                .home
                .is_some()
        );
    }
}

#[test]
fn a_home_of_everything_gives_way_to_others_when_it_has_twice_its_share() {
    let homes = seen_from_outside(&peers(&[100, 100, 100, 100]));
    let mut asks = Asks::default();
    let first = choose(&mut asks, at(0), &homes, object(0)).home.unwrap();
    let mut at_first = 1;
    for _ in 1..100 {
        let choice = choose(&mut asks, at(0), &homes, object(0));
        at_first += i32::from(choice.home.unwrap() == first);
    }
    assert!((40..=51).contains(&at_first), "{at_first}");
    for _ in 0..200 {
        asks.end(at(0), first.address, AskEnd::Answered);
    }
    assert_eq!(
        choose(&mut asks, at(0), &homes, object(0)).home,
        Some(first)
    );
}

#[test]
fn a_new_home_asks_who_had_the_object_before_it_for_a_copy_while_that_lives() {
    let all = peers(&[100, 100, 100]);
    let (older, lifetime) = (peers(&[100, 100]), Duration::from_secs(60));
    let newcomer = Homes::new(&all, &alias(2)).unwrap();
    let mut moved = 0;
    for number in 0..300 {
        let object = object(number);
        let was = home(&seen_from_outside(&older), object).unwrap();
        if home(&newcomer, object).is_some() {
            continue;
        }
        moved += 1;
        for needed_by in [NeededBy::Visitor, NeededBy::Another] {
            let mut asks = Asks::default();
            let new = asks.choose(at(0), &newcomer, (object, lifetime), needed_by);
            assert_eq!((new.home.as_ref(), new.asking), (Some(&was), Asking::Copy));
            asks.end(at(0), was.address, AskEnd::Answered);
            let last = asks.choose(at(59), &newcomer, (object, lifetime), needed_by);
            assert_eq!(last.home, Some(was.clone()));
            asks.end(at(59), was.address, AskEnd::Failed);
            let failed = asks.choose(at(59), &newcomer, (object, lifetime), needed_by);
            assert_eq!((failed.home, failed.resting), (None, 0));
            let old = asks.choose(at(60), &newcomer, (object, lifetime), needed_by);
            assert_eq!(old.home, None);
        }
    }
    assert!((70..130).contains(&moved), "{moved} of 300 moved");
}
