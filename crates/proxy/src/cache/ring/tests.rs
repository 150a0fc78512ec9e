//! What stays and what goes, and that the accounts balance whatever is done.

use super::*;
use proptest::prelude::*;

fn hash(key: u32) -> u64 {
    u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn put(ring: &mut Ring<u32, u32>, key: u32, cost: u64) -> Result<(), TooLarge> {
    let new = New {
        hash: hash(key),
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
    assert!(ring.main.cost > 0);
}

#[test]
fn what_is_larger_than_the_ring_is_refused() {
    let mut ring = Ring::new(100_000);
    put(&mut ring, 1, 1000).unwrap();
    assert_eq!(put(&mut ring, 2, 100_000), Err(TooLarge));
    put(&mut ring, 3, 1000).unwrap();
    assert_eq!(Ring::<u32, u32>::new(0).evict(), None);
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
                    let new = New { hash, key, value, cost, labels: &labels };
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
            prop_assert_eq!(ring.small.cost + ring.main.cost, ring.entries_cost);
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
