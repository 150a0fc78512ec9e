//! Aliases through their whole life, and the deadline that is remembered.

use levee_vocab::{ByteRate, WebAddress};
use proptest::prelude::*;

use super::*;

fn address(host: &str) -> WebAddress {
    WebAddress {
        host: host.parse().unwrap(),
        port: 80,
    }
}

fn parameters() -> Parameters {
    Parameters::new(
        address("www.example.org"),
        "192.0.2.1".parse().unwrap(),
        "aliases.example.net".parse().unwrap(),
        ByteRate::from_kilobytes(1000),
    )
}

fn keeping(seconds: u64) -> Parameters {
    Parameters {
        alias_keep: Duration::from_secs(seconds),
        ..parameters()
    }
}

fn call(link: u64) -> RescueCall {
    let origin = address(&format!("origin{link}.example.com"));
    let at = "192.0.2.9".parse().unwrap();
    RescueCall::new(origin, at, Duration::from_secs(300))
}

fn give(aliases: &mut Aliases, link: u64) -> HostName {
    aliases
        .give(
            &parameters(),
            &call(link),
            (LinkId::Inbound(link), 3),
            Timestamp::ZERO,
        )
        .unwrap()
}

#[test]
fn an_alias_serves_until_its_origin_has_stopped_and_then_leads_back() {
    let keep = keeping(100);
    let mut aliases = Aliases::restore(Vec::new());
    let alias = give(&mut aliases, 1);
    assert_eq!(alias.as_str(), "www-vh1.aliases.example.net");
    aliases.end(LinkId::Inbound(1), Timestamp::from_seconds(10));
    aliases.acknowledge(LinkId::Inbound(1), Timestamp::from_seconds(2));
    aliases.acknowledge(LinkId::Inbound(1), Timestamp::from_seconds(8));
    let leads = |aliases: &Aliases, host: &str| {
        let table = aliases.table();
        match table.destination(host) {
            crate::plan::Destination::NotOurs => "nowhere",
            crate::plan::Destination::Rescued(_) => "rescued",
            crate::plan::Destination::Restored(..) => "later",
            crate::plan::Destination::Expired(_) => "back",
        }
    };
    aliases.expire(Timestamp::from_seconds(1), &keep);
    assert_eq!(leads(&aliases, alias.as_str()), "rescued");
    assert_eq!(leads(&aliases, "origin1.example.com"), "rescued");
    aliases.expire(Timestamp::from_seconds(2), &keep);
    assert_eq!(leads(&aliases, alias.as_str()), "back");
    assert_eq!(leads(&aliases, "origin1.example.com"), "nowhere");
    aliases.expire(Timestamp::from_seconds(102), &keep);
    assert_eq!(leads(&aliases, alias.as_str()), "nowhere");
    assert_eq!(aliases.next_deadline(), None);
}

#[test]
fn an_origin_whose_name_leads_here_is_served_until_others_have_forgotten_that() {
    let keep = keeping(100);
    let mut aliases = Aliases::restore(Vec::new());
    for (number, seconds) in [(1, 30), (2, 100_000)] {
        let link = LinkId::Inbound(number);
        let call = RescueCall {
            name_ttl: Some(Duration::from_secs(seconds)),
            ..call(number)
        };
        aliases.give(&parameters(), &call, (link, 3), Timestamp::ZERO);
        aliases.end(link, Timestamp::from_seconds(10));
        aliases.acknowledge(link, Timestamp::from_seconds(2));
    }
    let leads = |aliases: &Aliases, link: u64, now: &[u64]| {
        let mut aliases = aliases.clone();
        for now in now {
            aliases.expire(Timestamp::from_seconds(*now), &keep);
        }
        let host = format!("origin{link}.example.com");
        let table = aliases.table();
        match table.destination(&host) {
            crate::plan::Destination::Rescued(_) => "rescued",
            crate::plan::Destination::Expired(_) => "known",
            crate::plan::Destination::NotOurs | crate::plan::Destination::Restored(..) => "nowhere",
        }
    };
    assert_eq!(leads(&aliases, 1, &[31]), "rescued");
    // Whoever still comes by its own name is no visitor of our site.
    assert_eq!(leads(&aliases, 1, &[32]), "known");
    assert_eq!(leads(&aliases, 1, &[32, 131]), "known");
    assert_eq!(leads(&aliases, 1, &[32, 132]), "nowhere");
    assert_eq!(leads(&aliases, 2, &[3601]), "rescued");
    // Nobody is held to it for ever.
    assert_eq!(leads(&aliases, 2, &[3602]), "known");
}

/// Its name may still lead here, and nobody but we would know that it is not a name of ours.
#[test]
fn a_name_that_led_here_is_known_after_a_restart() {
    let mut aliases = Aliases::restore(Vec::new());
    give(&mut aliases, 1);
    let call = RescueCall {
        name_ttl: Some(Duration::from_secs(30)),
        ..call(2)
    };
    let place = (LinkId::Inbound(2), 3);
    aliases.give(&parameters(), &call, place, Timestamp::ZERO);
    let mut restored = Aliases::restore(aliases.records());
    let knows = |aliases: &Aliases, host: &str| aliases.table().names.contains_key(host);
    for now in [7, 11] {
        restored.expire(Timestamp::from_seconds(now), &keeping(9));
        assert!(!knows(&restored, "origin1.example.com"));
        assert!(knows(&restored, "origin2.example.com"));
    }
    let again = Aliases::restore(restored.records());
    assert!(knows(&again, "origin2.example.com"));
    restored.expire(Timestamp::from_seconds(20), &keeping(9));
    assert!(!knows(&restored, "origin2.example.com"));
}

#[test]
fn numbers_are_never_given_twice_even_after_a_restart() {
    let mut aliases = Aliases::restore(Vec::new());
    give(&mut aliases, 1);
    give(&mut aliases, 2);
    for link in [1, 2] {
        aliases.end(LinkId::Inbound(link), Timestamp::ZERO);
    }
    aliases.expire(Timestamp::from_seconds(1), &keeping(0));
    aliases.expire(Timestamp::from_seconds(2), &keeping(0));
    assert!(aliases.table().names.is_empty());
    let mut restored = Aliases::restore(aliases.records());
    let alias = give(&mut restored, 3);
    assert_eq!(alias.as_str(), "www-vh3.aliases.example.net");
}

#[test]
fn a_restored_alias_refuses_until_its_origin_has_noticed_the_restart() {
    let mut aliases = Aliases::restore(Vec::new());
    let alias = give(&mut aliases, 1);
    let mut restored = Aliases::restore(aliases.records());
    let phase = |aliases: &Aliases| aliases.table().origins[0].phase;
    let until = Timestamp::ZERO;
    assert_eq!(phase(&restored), OriginPhase::Restored { until });
    restored.expire(Timestamp::from_seconds(7), &keeping(9));
    let until = Timestamp::from_seconds(11);
    assert_eq!(phase(&restored), OriginPhase::Restored { until });
    assert_eq!(restored.next_deadline(), Some(until));
    restored.expire(until, &keeping(9));
    let until = Timestamp::from_seconds(20);
    assert_eq!(phase(&restored), OriginPhase::Expired { until });
    restored.expire(until, &keeping(9));
    assert!(!restored.contains(&alias));
}

proptest! {
    /// Whatever happens, the deadline that is remembered is that of the alias which moves next.
    #[test]
    fn the_deadline_is_that_of_the_next_alias(
        steps in prop::collection::vec((0..5_u8, 1..6_u64, 0..40_u64), 1..60),
        restored in any::<bool>(),
    ) {
        let mut aliases = Aliases::restore(Vec::new());
        let mut now = 0;
        if restored {
            give(&mut aliases, 1);
            aliases = Aliases::restore(aliases.records());
        }
        for (step, link, time) in steps {
            let (until, link) = (Timestamp::from_seconds(now + time), LinkId::Inbound(link));
            match step {
                0 | 1 => { give(&mut aliases, time % 5 + 1); }
                2 => aliases.end(link, until),
                3 => aliases.acknowledge(link, until),
                _ => {
                    now += time;
                    aliases.expire(Timestamp::from_seconds(now), &keeping(20));
                }
            }
            let remembered = aliases.next_deadline();
            aliases.find_deadline();
            prop_assert_eq!(remembered, aliases.next_deadline());
        }
    }
}
