//! What the group promises, step by step and for any order of events.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn group(names: &[&str]) -> (UpstreamGroup, Vec<UpstreamId>) {
    let mut group = UpstreamGroup::new(UpstreamRules::default());
    let names = primaries(names);
    let ids = group.change(at(0), UpstreamRules::default(), &names);
    (group, ids)
}

fn primaries(names: &[&str]) -> Vec<(String, Tier)> {
    let named = |name: &&str| ((*name).to_owned(), Tier::Primary);
    names.iter().map(named).collect()
}

/// One request that shows `sign`; which upstream had it.
fn request(group: &mut UpstreamGroup, now: Timestamp, sign: Sign) -> UpstreamId {
    let choice = group.choose(&[]).expect("there is room");
    group.told(now, choice, sign);
    group.released(choice);
    choice.id
}

/// Fails the upstream until it is ejected.
fn eject(group: &mut UpstreamGroup, now: Timestamp, id: UpstreamId) {
    while group.view()[group.members.iter().position(|m| m.id == id).unwrap()]
        .ejected_until
        .is_none()
    {
        let others: Vec<_> = group.members.iter().map(|member| member.id).collect();
        let others: Vec<_> = others.into_iter().filter(|other| *other != id).collect();
        let tried = if others.is_empty() { vec![] } else { others };
        let choice = group.choose(&tried).unwrap();
        group.told(now, choice, Sign::Failure);
        group.released(choice);
    }
}

#[test]
fn equals_take_turns_and_the_least_busy_comes_first() {
    let (mut group, ids) = group(&["a", "b", "c"]);
    let turns: Vec<_> = (0..6)
        .map(|_| request(&mut group, at(0), Sign::Success))
        .collect();
    assert_eq!(turns, [&ids[..], &ids[..]].concat());
    let (first, second) = (group.choose(&[]).unwrap(), group.choose(&[]).unwrap());
    let third = group.choose(&[]).unwrap();
    group.released(second);
    assert_eq!(group.choose(&[]).unwrap().id, second.id);
    assert_ne!(first.id, third.id);
}

#[test]
fn one_that_fails_three_times_in_a_row_is_left_out_and_comes_back_by_a_check() {
    let (mut group, ids) = group(&["a", "b"]);
    eject(&mut group, at(10), ids[0]);
    assert_eq!(group.view()[0].ejected_until, Some(at(11)));
    for _ in 0..10 {
        assert_eq!(request(&mut group, at(10), Sign::Success), ids[1]);
    }
    assert!(group.take_due_checks(at(10)).is_empty());
    assert_eq!(group.next_deadline(), Some(at(11)));
    assert_eq!(group.take_due_checks(at(11)), [ids[0]]);
    assert!(group.take_due_checks(at(11)).is_empty(), "it is under way");
    group.checked(at(11), ids[0], Sign::Success);
    assert!(group.view()[0].ejected_until.is_none());
    // On probation: one failure, and it is out for twice as long.
    let choice = group.choose(&[ids[1]]).unwrap();
    group.told(at(12), choice, Sign::Failure);
    assert_eq!(group.view()[0].ejected_until, Some(at(14)));
    assert_eq!(group.view()[0].ejections, 2);
}

#[test]
fn a_dead_one_is_checked_at_the_interval_and_not_ever_more_rarely() {
    let (mut group, ids) = group(&["a", "b"]);
    eject(&mut group, at(10), ids[0]);
    let mut now = at(11);
    for _ in 0..20 {
        assert_eq!(group.take_due_checks(now), [ids[0]]);
        group.checked(now, ids[0], Sign::Failure);
        assert_eq!(group.next_deadline(), Some(now + Duration::from_secs(2)));
        now = now + Duration::from_secs(2);
    }
}

#[test]
fn ejections_grow_to_a_minute_and_are_short_again_after_a_rest() {
    let (mut group, ids) = group(&["a", "b"]);
    let mut now = at(100);
    let mut lengths = Vec::new();
    for _ in 0..8 {
        eject(&mut group, now, ids[0]);
        let until = group.view()[0].ejected_until.unwrap();
        lengths.push(until.since(now).as_secs());
        now = until;
        group.take_due_checks(now);
        group.checked(now, ids[0], Sign::Success);
    }
    assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 60, 60]);
    now = now + Duration::from_secs(61);
    eject(&mut group, now, ids[0]);
    assert_eq!(
        group.view()[0].ejected_until,
        Some(now + Duration::from_secs(1))
    );
}

#[test]
fn what_an_old_request_tells_does_not_undo_an_ejection() {
    let (mut group, ids) = group(&["a"]);
    let old = group.choose(&[]).unwrap();
    eject(&mut group, at(10), ids[0]);
    group.told(at(10), old, Sign::Success);
    assert!(group.view()[0].ejected_until.is_some());
    // But one that was tried because there was no other does.
    assert_eq!(request(&mut group, at(10), Sign::Success), ids[0]);
    assert!(group.view()[0].ejected_until.is_none());
}

#[test]
fn with_all_down_each_request_is_tried_once_and_not_twice() {
    let (mut group, ids) = group(&["a", "b"]);
    eject(&mut group, at(10), ids[0]);
    eject(&mut group, at(10), ids[1]);
    let choice = group.choose(&[]).unwrap();
    assert_eq!(group.choose(&[choice.id]), Err(NoChoice::Exhausted));
}

#[test]
fn backups_serve_while_no_other_is_up() {
    let mut group = UpstreamGroup::new(UpstreamRules::default());
    let names = [("a".into(), Tier::Primary), ("b".into(), Tier::Backup)];
    let ids = group.change(at(0), UpstreamRules::default(), &names);
    for _ in 0..3 {
        assert_eq!(request(&mut group, at(0), Sign::Failure), ids[0]);
    }
    assert_eq!(request(&mut group, at(0), Sign::Success), ids[1]);
    group.take_due_checks(at(1));
    group.checked(at(1), ids[0], Sign::Success);
    assert_eq!(request(&mut group, at(1), Sign::Success), ids[0]);
}

#[test]
fn one_without_room_is_passed_over_and_waited_for_where_all_are_full() {
    let rules = UpstreamRules {
        outstanding_max: 1,
        ..UpstreamRules::default()
    };
    let mut group = UpstreamGroup::new(rules);
    group.change(at(0), rules, &primaries(&["a", "b"]));
    let (first, _second) = (group.choose(&[]).unwrap(), group.choose(&[]).unwrap());
    assert_eq!(group.choose(&[]), Err(NoChoice::Full));
    group.released(first);
    assert_eq!(group.choose(&[]).unwrap().id, first.id);
}

#[test]
fn retries_are_a_fifth_of_requests_at_most_beside_a_small_reserve() {
    let (mut group, _) = group(&["a", "b"]);
    let mut granted = 0;
    for _ in 0..1000 {
        request(&mut group, at(0), Sign::Success);
        granted += u32::from(group.grant_retry() == RetryGrant::Granted);
    }
    assert!((200..=210).contains(&granted), "{granted}");
}

#[test]
fn what_stays_in_the_list_keeps_its_state_and_what_left_is_forgotten() {
    let (mut group, ids) = group(&["a", "b"]);
    eject(&mut group, at(10), ids[0]);
    let gone = group.choose(&[ids[0]]).unwrap();
    let after = group.change(at(10), UpstreamRules::default(), &primaries(&["c", "a"]));
    assert_eq!(after[1], ids[0]);
    assert!(group.view()[1].ejected_until.is_some());
    group.told(at(10), gone, Sign::Failure);
    group.released(gone);
    group.checked(at(10), gone.id, Sign::Success);
    assert_eq!(group.view().len(), 2);
    // The same name again is somebody new.
    let again = group.change(at(11), UpstreamRules::default(), &primaries(&["b"]));
    assert!(!ids.contains(&again[0]));
}

#[test]
fn where_all_are_checked_two_failed_checks_eject_and_one_passed_brings_back() {
    let rules = UpstreamRules {
        checked: Checked::All,
        ..UpstreamRules::default()
    };
    let mut group = UpstreamGroup::new(rules);
    let ids = group.change(at(0), rules, &primaries(&["a"]));
    for second in [2, 4] {
        assert!(group.view()[0].ejected_until.is_none());
        assert_eq!(group.take_due_checks(at(second)), ids);
        group.checked(at(second), ids[0], Sign::Failure);
    }
    assert_eq!(group.view()[0].ejected_until, Some(at(5)));
    assert_eq!(group.take_due_checks(at(5)), ids);
    group.checked(at(5), ids[0], Sign::Success);
    assert!(group.view()[0].ejected_until.is_none());
}

#[derive(Clone, Debug)]
enum Event {
    Ask { tried: usize },
    Tell { which: usize, sign: Sign },
    Release { which: usize },
    Pass { seconds: u64 },
    Check { sign: Sign },
    Change { mask: u8 },
}

fn events() -> impl Strategy<Value = Event> {
    let sign = prop_oneof![Just(Sign::Success), Just(Sign::Failure)];
    prop_oneof![
        4 => (0..4_usize).prop_map(|tried| Event::Ask { tried }),
        4 => (0..50_usize, sign.clone()).prop_map(|(which, sign)| Event::Tell { which, sign }),
        2 => (0..50_usize).prop_map(|which| Event::Release { which }),
        1 => (0..90_u64).prop_map(|seconds| Event::Pass { seconds }),
        2 => sign.prop_map(|sign| Event::Check { sign }),
        1 => any::<u8>().prop_map(|mask| Event::Change { mask }),
    ]
}

fn up(group: &UpstreamGroup) -> Vec<UpstreamId> {
    let members = group.members.iter().filter(|member| member.is_up());
    members.map(|member| member.id).collect()
}

proptest! {
    #[test]
    fn none_that_is_down_is_asked_while_another_is_up(
        script in prop::collection::vec(events(), 1..200)
    ) {
        let names = ["a", "b", "c", "d"];
        let rules = UpstreamRules { outstanding_max: 8, ..UpstreamRules::default() };
        let mut group = UpstreamGroup::new(rules);
        let mut ids = group.change(at(0), rules, &primaries(&names));
        let (mut now, mut running, mut retries) = (at(0), Vec::new(), 0.0);
        let (mut asks, mut under_way) = (0.0, BTreeMap::<UpstreamId, u32>::new());
        for event in script {
            match event {
                Event::Ask { tried } => {
                    let tried = &ids[..tried.min(ids.len())];
                    asks += f64::from(u8::from(tried.is_empty()));
                    let before = up(&group);
                    let untried = before.iter().filter(|id| !tried.contains(id)).count();
                    match group.choose(tried) {
                        Ok(choice) => {
                            prop_assert!(!tried.contains(&choice.id));
                            prop_assert!(untried == 0 || before.contains(&choice.id));
                            let count = under_way.entry(choice.id).or_default();
                            *count += 1;
                            prop_assert!(*count <= 8);
                            running.push(choice);
                        }
                        // At least one try, whatever is known.
                        Err(NoChoice::Exhausted) => {
                            prop_assert!(untried == 0 && (!tried.is_empty() || ids.is_empty()));
                        }
                        Err(NoChoice::Full) => prop_assert!(!ids.is_empty()),
                    }
                    if group.grant_retry() == RetryGrant::Granted {
                        retries += 1.0;
                        prop_assert!(retries <= 10.0 + 0.2 * asks + 1e-6);
                    }
                }
                Event::Tell { which, sign } => {
                    if let Some(choice) = running.get(which) {
                        group.told(now, *choice, sign);
                    }
                }
                Event::Release { which } if which < running.len() => {
                    let choice = running.swap_remove(which);
                    *under_way.entry(choice.id).or_default() -= 1;
                    group.released(choice);
                }
                Event::Release { .. } => {}
                Event::Pass { seconds } => now = now + Duration::from_secs(seconds),
                Event::Check { sign } => {
                    for id in group.take_due_checks(now) {
                        group.checked(now, id, sign);
                    }
                    // Whoever is ejected will be looked at again.
                    let ejected = group.members.iter().any(|member| !member.is_up());
                    prop_assert!(!ejected || group.next_deadline().is_some());
                }
                Event::Change { mask } => {
                    let stay = |(bit, name): (usize, &&'static str)| {
                        (mask & (1 << bit) != 0).then_some(*name)
                    };
                    let names: Vec<_> = names.iter().enumerate().filter_map(stay).collect();
                    ids = group.change(now, rules, &primaries(&names));
                }
            }
        }
    }
}
