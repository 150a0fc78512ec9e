//! Who gives way, and that the books of it are right whatever happens in whatever order.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn at(seconds: f64) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs_f64(seconds)
}

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(198, 51, 100, last).into()
}

fn idle(since: f64) -> Occupation {
    Occupation::Idle { since: at(since) }
}

fn head(since: f64) -> Occupation {
    Occupation::Awaited {
        since: at(since),
        said: Said::Something,
    }
}

/// Somebody who has taken so many bytes of what began at 100 s.
fn moving(moved: u64) -> Occupation {
    Occupation::Moving {
        began: at(100.0),
        moved,
    }
}

/// Notes connections 0, 1, ... of different visitors when it begins and at `now`, and says which
/// would go.
fn worst_at(now: f64, occupations: &[Occupation]) -> Option<u64> {
    let mut eviction = Eviction::default();
    for (token, occupation) in (0..).zip(occupations) {
        watch(&mut eviction, now, token, *occupation);
    }
    eviction.worst()
}

/// Looks at a connection when something begins there, and again at `now`.
fn watch(eviction: &mut Eviction, now: f64, token: u64, occupation: Occupation) {
    if let Occupation::Moving { began, .. } = occupation {
        let first = Occupation::Moving { began, moved: 0 };
        eviction.note(began, token, address(token as u8), first);
    }
    eviction.note(at(now), token, address(token as u8), occupation);
}

#[test]
fn the_longest_idle_goes_first_then_late_heads_then_the_slowest() {
    let stalled = moving(0);
    let all = [idle(103.0), idle(101.0), head(100.5), stalled];
    assert_eq!(worst_at(104.0, &all), Some(1));
    assert_eq!(worst_at(104.0, &all[2..]), Some(0));
    let fast = moving(400_000);
    let phone = moving(20_000);
    assert_eq!(worst_at(104.0, &[fast, phone, stalled]), Some(2));
    assert_eq!(worst_at(104.0, &[fast, phone]), Some(1));
    assert_eq!(worst_at(104.0, &[fast]), None);
}

#[test]
fn who_waits_for_us_never_gives_way() {
    assert_eq!(
        worst_at(200.0, &[Occupation::Needed, moving(1 << 30)]),
        None
    );
}

#[test]
fn nobody_is_judged_within_a_second_while_somebody_else_was_watched_for_longer() {
    let late = Occupation::Moving {
        began: at(103.5),
        moved: 0,
    };
    assert_eq!(worst_at(104.0, &[late, moving(40_000)]), Some(1));
    assert_eq!(worst_at(104.0, &[late]), Some(0));
    assert_eq!(worst_at(103.6, &[late]), None);
    assert_eq!(worst_at(104.0, &[head(103.9)]), None);
    let silent = Occupation::Awaited {
        since: at(103.9),
        said: Said::Nothing,
    };
    assert_eq!(worst_at(104.0, &[late, silent]), Some(0));
    assert_eq!(worst_at(104.0, &[silent]), Some(0));
}

#[test]
fn a_burst_at_the_beginning_does_not_pay_for_standing_still() {
    let mut eviction = Eviction::default();
    // A whole kernel buffer at once, then nothing, beside a phone at a steady 8 kB/s.
    for second in 1..=30_u64 {
        let now = at(100.0 + second as f64);
        eviction.note(now, 0, address(0), moving(1_000_000));
        eviction.note(now, 1, address(1), moving(second * 8_000));
    }
    assert_eq!(eviction.worst(), Some(0));
}

#[test]
fn a_phone_that_stands_still_for_two_seconds_is_no_victim() {
    let mut eviction = Eviction::default();
    for second in 1..=10_u64 {
        let now = at(100.0 + second as f64);
        eviction.note(now, 0, address(0), moving(second.min(8) * 60_000));
    }
    assert_eq!(eviction.worst(), None);
}

#[test]
fn slow_connections_of_one_network_share_the_blame() {
    let mut eviction = Eviction::default();
    let v6 = |last: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, last));
    eviction.note(at(110.0), 0, address(1), moving(20_000));
    for token in 1..=50 {
        eviction.note(at(110.0), token, v6(token as u16), moving(100_000));
    }
    assert_eq!(
        eviction.worst(),
        Some(50),
        "2 kB/s alone is better than 50 at 10"
    );
    // When they have gone, nothing is left of the count.
    for token in 1..=50 {
        eviction.forget(token);
    }
    eviction.note(at(110.0), 0, address(1), moving(20_000));
    assert_eq!(eviction.worst(), Some(0));
    assert_eq!(eviction.slow.len(), 1);
    eviction.note(at(111.0), 0, address(1), Occupation::Needed);
    assert!(eviction.slow.is_empty());
}

#[test]
fn what_is_known_of_a_place_is_forgotten_with_its_connection() {
    let mut eviction = Eviction::default();
    let next = |generation: u64| generation << 32 | 5;
    eviction.note(at(104.0), next(1), HERE, moving(0));
    // Its successor at the same place begins anew.
    eviction.note(at(104.0), next(2), HERE, moving(1 << 20));
    eviction.forget(next(1));
    assert_eq!(eviction.worst(), None);
    eviction.relax();
    assert!(eviction.looks.is_empty());
}

fn occupations() -> impl Strategy<Value = Occupation> {
    let time = 90_000..110_000_u64;
    prop_oneof![
        time.clone().prop_map(|since| Occupation::Idle {
            since: Timestamp::from_milliseconds(since)
        }),
        (time.clone(), any::<bool>()).prop_map(|(since, silent)| Occupation::Awaited {
            since: Timestamp::from_milliseconds(since),
            said: match silent {
                true => Said::Nothing,
                false => Said::Something,
            },
        }),
        (time, 0..3_000_000_u64).prop_map(|(began, moved)| Occupation::Moving {
            began: Timestamp::from_milliseconds(began),
            moved,
        }),
        Just(Occupation::Needed),
    ]
}

proptest! {
    /// Whatever happens in whatever order: counts return to nothing, the list is short, sorted and
    /// without doubles, and who is needed or closed is not in it.
    #[test]
    fn the_books_are_right(
        steps in prop::collection::vec((0..40_u64, 0..4_u8, 0..5_u8, occupations()), 1..300),
    ) {
        let mut eviction = Eviction::default();
        let mut now = Timestamp::from_milliseconds(110_000);
        for (place, generation, what, occupation) in steps {
            now = now + Duration::from_millis(97);
            let token = u64::from(generation) << 32 | place;
            match what {
                0 => eviction.forget(token),
                _ => eviction.note(now, token, address(place as u8 % 7), occupation),
            }
            let listed = eviction.worst.iter().any(|&(_, other)| other == token);
            let may_be_listed = what > 0 && occupation != Occupation::Needed;
            prop_assert!(may_be_listed || !listed);
            prop_assert!(eviction.worst.len() <= WORST_MAX);
            prop_assert!(eviction.worst.is_sorted_by_key(|&(reason, _)| reason));
            let slow = eviction.looks.iter().filter(|look| look.pace == Pace::Slow).count();
            let counted: u32 = eviction.slow.values().sum();
            prop_assert_eq!(slow as u32, counted);
        }
        for place in 0..40 {
            for generation in 0..4 {
                eviction.forget(generation << 32 | place);
            }
        }
        prop_assert!(eviction.slow.is_empty());
        prop_assert_eq!(eviction.worst(), None);
    }

    /// Of visitors who were watched fairly, nobody goes while a slower one of a network at least as
    /// crowded is there.
    #[test]
    fn the_slowest_goes_first(amounts in prop::collection::vec(0..400_000_u64, 1..100)) {
        let mut eviction = Eviction::default();
        for (token, moved) in (0..).zip(&amounts) {
            watch(&mut eviction, 120.0, token, moving(*moved));
        }
        let slowest = *amounts.iter().min().unwrap();
        match eviction.worst() {
            Some(token) => prop_assert_eq!(amounts[token as usize], slowest),
            None => prop_assert!(slowest as f64 / 20.0 >= FLOOR),
        }
    }

    /// Somebody above the floor never gives way, whatever the others do.
    #[test]
    fn who_is_fast_enough_stays(
        others in prop::collection::vec(occupations(), 0..40),
        rate in 20_000..10_000_000_u64,
    ) {
        let mut eviction = Eviction::default();
        let fast = 99;
        for second in 1..20_u64 {
            let now = at(110.0 + second as f64);
            eviction.note(now, fast, HERE, moving((second + 10) * rate));
            for (token, occupation) in (0..).zip(&others) {
                eviction.note(now, token, HERE, *occupation);
            }
            prop_assert!(eviction.worst.iter().all(|&(_, token)| token != fast));
        }
    }
}
