//! From the hash of a key to a slot: an open-addressing table of four bytes a place.
//!
//! Our own instead of the standard map, because its bytes count against the cache's limit: we must
//! know what it weighs, and decide ourselves when it grows.

/// An empty place.
const NONE: u32 = u32::MAX;
/// Smallest number of places.
const PLACES_MIN: usize = 64;

/// See the head of this file. Linear probing; a removal closes the gap that it leaves, so there are
/// no tombstones and churn does not wear the table out.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: Vec<u32>,
    taken: usize,
}

impl Index {
    /// Bytes that the table occupies.
    pub fn weight(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }

    /// Bytes that the table would occupy after the growth that `more` insertions need; none where
    /// they need none.
    pub fn growth(&self, more: usize) -> Option<usize> {
        let places = self.places_for(more);
        (places > self.places.len()).then(|| places * size_of::<u32>())
    }

    /// Three quarters full: chains stay short, and a place costs at most 11 bytes an entry.
    fn places_for(&self, more: usize) -> usize {
        let mut places = self.places.len().max(PLACES_MIN);
        while self.taken + more > places / 4 * 3 {
            places *= 2;
        }
        places
    }

    /// Makes room for `more`. `hash_of` tells the hash of the key in a slot.
    pub fn grow(&mut self, more: usize, hash_of: impl Fn(u32) -> u64) {
        let size = self.places_for(more);
        let old = std::mem::replace(&mut self.places, vec![NONE; size]);
        for slot in old.into_iter().filter(|&slot| slot != NONE) {
            let place = self.free_place(hash_of(slot));
            self.places[place] = slot;
        }
    }

    /// The slot for which `is` holds among those with `hash`.
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let mut place = self.home(hash);
        loop {
            match self.places[place] {
                NONE => return None,
                slot if is(slot) => return Some(slot),
                _ => place = self.after(place),
            }
        }
    }

    /// Adds `slot`, whose key must not be in the table. There must be room ([`Index::growth`]).
    pub fn insert(&mut self, hash: u64, slot: u32) {
        assert!(self.growth(1).is_none(), "the table was grown before");
        let place = self.free_place(hash);
        self.places[place] = slot;
        self.taken += 1;
    }

    /// Takes `slot` out.
    pub fn remove(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        let mut gap = self.home(hash);
        while self.places[gap] != slot {
            assert!(self.places[gap] != NONE, "a slot to remove is in the table");
            gap = self.after(gap);
        }
        self.places[gap] = NONE;
        self.taken -= 1;
        // Whoever stands after the gap and could stand in it moves up.
        let mut place = self.after(gap);
        while self.places[place] != NONE {
            let home = self.home(hash_of(self.places[place]));
            if self.distance(home, place) >= self.distance(gap, place) {
                self.places.swap(gap, place);
                gap = place;
            }
            place = self.after(place);
        }
    }

    fn free_place(&self, hash: u64) -> usize {
        let mut place = self.home(hash);
        while self.places[place] != NONE {
            place = self.after(place);
        }
        place
    }

    fn home(&self, hash: u64) -> usize {
        // The low bits choose the shard, so the place comes from others.
        (hash >> 20) as usize & (self.places.len() - 1)
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The table answers like a map, also where many hashes are the same.
        #[test]
        fn the_table_answers_like_a_map(
            operations in prop::collection::vec((0..200_u32, 0..4_u8), 1..400),
            spread in prop_oneof![Just(1_u64), Just(7), Just(u64::MAX / 200)],
        ) {
            let hash = |slot: u32| u64::from(slot).wrapping_mul(spread) << 18;
            let mut index = Index::default();
            let mut model = BTreeSet::new();
            for (slot, operation) in operations {
                if operation == 0 {
                    if model.remove(&slot) {
                        index.remove(hash(slot), slot, hash);
                    }
                } else if model.insert(slot) {
                    if let Some(bytes) = index.growth(1) {
                        index.grow(1, hash);
                        prop_assert_eq!(index.weight(), bytes);
                    }
                    index.insert(hash(slot), slot);
                }
                for slot in 0..200 {
                    let found = index.find(hash(slot), |other| other == slot);
                    prop_assert_eq!(found.is_some(), model.contains(&slot));
                }
            }
        }
    }
}
