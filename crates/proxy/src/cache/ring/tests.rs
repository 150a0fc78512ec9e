//! What stays and what goes, and that the accounts balance whatever is done.

use super::*;
use proptest::prelude::*;

fn hash(key: u32) -> u64 {
    u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn put(ring: &mut Ring<u32, u32>, key: u32, cost: u64) -> Result<(), TooLarge> {
    put_of(ring, 0, key, cost)
}

fn put_of(ring: &mut Ring<u32, u32>, owner: u64, key: u32, cost: u64) -> Result<(), TooLarge> {
    let new = New {
        hash: hash(key),
        owner,
        key,
        value: key,
        cost,
        labels: &[],
    };
    ring.insert(new, &mut Vec::new())
}

#[test]
fn one_time_objects_do_not_push_out_what_is_asked_for_again() {
    let mut ring = Ring::new(1 << 20);
    for key in 0..100 {
        put(&mut ring, key, 4000).unwrap();
    }
    for key in (0..100).chain(0..100) {
        ring.find(hash(key), |other| *other == key);
    }
    for key in 1000..20_000 {
        put(&mut ring, key, 4000).unwrap();
    }
    let kept = (0..100).filter(|&key| ring.find(hash(key), |other| *other == key).is_some());
    assert_eq!(kept.count(), 100);
}

#[test]
fn a_ghost_comes_back_into_main() {
    let mut ring = Ring::new(200_000);
    for key in 0..400 {
        put(&mut ring, key, 4000).unwrap();
    }
    put(&mut ring, 399 - 60, 4000).unwrap();
    assert!(ring.owners.at(0).main.cost > 0);
}

#[test]
fn what_is_larger_than_the_ring_is_refused() {
    let mut ring = Ring::new(100_000);
    put(&mut ring, 1, 1000).unwrap();
    assert_eq!(put(&mut ring, 2, 100_000), Err(TooLarge));
    put(&mut ring, 3, 1000).unwrap();
    assert_eq!(Ring::<u32, u32>::new(0).evict(), None);
}

fn finds(ring: &mut Ring<u32, u32>, keys: std::ops::Range<u32>) -> usize {
    let found = keys.filter(|&key| ring.find(hash(key), |other| *other == key).is_some());
    found.count()
}

#[test]
fn an_owner_with_a_crowd_takes_what_is_free_and_nothing_from_one_that_holds_little() {
    let mut ring = Ring::new(1 << 20);
    for key in 0..80 {
        put_of(&mut ring, 1, key, 4000).unwrap();
    }
    // Each of them is hot: S3-FIFO alone would keep them all in main.
    for key in 1000..20_000 {
        put_of(&mut ring, 2, key, 4000).unwrap();
        for _ in 0..4 {
            ring.find(hash(key), |other| *other == key);
        }
        if key % 500 == 0 {
            assert_eq!(finds(&mut ring, 0..80), 80, "{key}");
        }
    }
    // All the rest is the crowd's.
    assert!(finds(&mut ring, 19_850..20_000) >= 149);
}

#[test]
fn owners_who_all_want_more_than_there_is_get_the_same() {
    let mut ring = Ring::new(1 << 20);
    for round in 0..4000 {
        // The second wants three times as much.
        put_of(&mut ring, 1, round, 4000).unwrap();
        for more in 0..3 {
            put_of(&mut ring, 2, 10_000 + 3 * round + more, 4000).unwrap();
        }
    }
    let costs: Vec<u64> = ring.owners.all().iter().map(|owner| owner.cost()).collect();
    assert!(costs[0].abs_diff(costs[1]) <= 4000, "{costs:?}");
}

#[test]
fn what_belongs_to_one_that_has_left_goes_first_in_the_end() {
    let mut ring = Ring::new(1 << 20);
    for key in 0..80 {
        put_of(&mut ring, 1, key, 4000).unwrap();
    }
    for key in 1000..10_000 {
        put_of(&mut ring, 2, key, 4000).unwrap();
    }
    assert_eq!(ring.owners.at(0).cost(), 0);
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u32, u64),
    Find(u32),
    Remove(u32),
    RemoveBelow(u32),
    RemoveLabelled(u32),
    Evict,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..150_u32;
    prop_oneof![
        6 => (key.clone(), prop_oneof![0..300_u64, 0..20_000_u64])
            .prop_map(|(key, cost)| Operation::Insert(key, cost)),
        4 => key.clone().prop_map(Operation::Find),
        1 => key.clone().prop_map(Operation::Remove),
        1 => (0..20_u32).prop_map(Operation::RemoveBelow),
        1 => (0..7_u32).prop_map(Operation::RemoveLabelled),
        1 => Just(Operation::Evict),
    ]
}

proptest! {
    /// The limit is never exceeded, nothing is found that was taken out, everything that goes
    /// is handed out once, and the accounts return to zero.
    #[test]
    fn the_limit_holds_and_the_accounts_balance(
        operations in prop::collection::vec(operation(), 1..300),
        limit in 8_000..60_000_u64,
    ) {
        let mut ring = Ring::new(limit);
        let mut gone = std::collections::BTreeSet::new();
        let mut value = 0_u64;
        let mut held = std::collections::BTreeMap::new();
        for operation in operations {
            let mut out = Vec::new();
            match operation {
                Operation::Insert(key, cost) => {
                    value += 1;
                    held.insert(value, key);
                    let labels = [u64::from(key % 7), u64::from(key % 5) + 100];
                    let hash = hash(key);
                    let owner = u64::from(key % 40);
                    let new = New { hash, owner, key, value, cost, labels: &labels };
                    let _ = ring.insert(new, &mut out);
                }
                Operation::Find(key) => {
                    if let Some(found) = ring.find(hash(key), |other| *other == key) {
                        prop_assert_eq!(held.get(found), Some(&key));
                    }
                }
                Operation::Remove(key) => out.extend(ring.remove(hash(key), |other| *other == key)),
                Operation::RemoveBelow(bound) => {
                    let judge = |key: &u32, _: &u64| match *key < bound {
                        true => Verdict::Remove,
                        false => Verdict::Keep,
                    };
                    let mut from = Some(0);
                    while let Some(at) = from {
                        from = ring.judge_slots(at, 8, judge, &mut out);
                    }
                    let found = (0..bound).any(|key| {
                        ring.find(hash(key), |other| *other == key).is_some()
                    });
                    prop_assert!(!found);
                }
                Operation::RemoveLabelled(rest) => {
                    let label = u64::from(rest);
                    while ring.labelled(label) > 0 {
                        ring.judge_labelled(label, 3, |_, _| Verdict::Remove, &mut out);
                    }
                    prop_assert!(out.iter().all(|value| held[value] % 7 == rest));
                    let keys = (0..150).filter(|key| key % 7 == rest);
                    let left = keys.filter(|key| held.values().any(|other| other == key));
                    prop_assert_eq!(left.count(), out.len());
                }
                Operation::Evict => out.extend(ring.evict()),
            }
            for value in out {
                prop_assert!(gone.insert(value), "handed out twice");
                prop_assert!(held.remove(&value).is_some());
            }
            prop_assert!(ring.weight() <= limit);
            let costs = ring.owners.all().iter().map(|owner| owner.cost());
            prop_assert_eq!(costs.sum::<u64>(), ring.entries_cost);
        }
        for (value, key) in &held {
            let found = ring.find(hash(*key), |other| other == key).copied();
            prop_assert_eq!(found, Some(*value));
        }
        while ring.evict().is_some() {}
        prop_assert_eq!(ring.entries_cost, 0);
        prop_assert_eq!(ring.weight(), ring.structure_weight());
    }
}
