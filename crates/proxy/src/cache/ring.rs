//! Who stays when the memory is full: S3-FIFO (Yang and others, SOSP 2023), with a hard byte limit.
//!
//! ```text
//!   insert ─▶ small (a tenth) ──asked again──▶ main ─▶ out, unless asked since (then again round)
//!                  │ not asked                  ▲
//!                  ▼                            │ asked for again soon
//!                 out ───────▶ ghost (hashes) ──┘
//! ```
//!
//! Most objects are asked for once; they pass through the small queue and push nothing else out. A
//! hit only raises a counter, so it is cheap. Everything that the ring holds counts: values, keys,
//! slots, the index and the ghosts. Where the index would have to grow and there is no room, an
//! entry goes instead.
//!
//! Each owner has such queues of its own, and the one that holds most gives way (`owners.rs`); the
//! ghosts are common to all.
//!
//! An entry may carry labels, by which a purge finds it (`labels.rs`). A purge is a number of short
//! visits, each with an end, so that it holds nobody up.
//!
//! No clock, no lock, no I/O.

use super::index::Index;
use super::labels::{self, Labels};
use super::owners::{Owners, Queue};

/// The end of a chain.
const NONE: u32 = u32::MAX;
/// An object that was asked for this often survives as long as one asked for more often.
const HEAT_MAX: u8 = 3;
/// Requests after the first that lead from the small queue to main.
const PROMOTED_FROM: u8 = 2;
/// Share of what an owner holds for its small queue, from the paper.
const SMALL_SHARE: u64 = 10;
/// One ghost for so many bytes of the limit: about as many ghosts as main has entries of the size
/// that is usual for web objects, at a cost of 0.2 % of the limit.
const BYTES_PER_GHOST: u64 = 4096;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Ring<K, V> {
    limit: u64,
    /// Sum of the entries' costs; slots, index and ghosts come on top.
    entries_cost: u64,
    slots: Vec<Slot<K, V>>,
    free: u32,
    index: Index,
    labels: Labels,
    owners: Owners,
    ghosts: Vec<Ghost>,
}

#[derive(Debug)]
struct Slot<K, V> {
    entry: Option<Entry<K, V>>,
    hash: u64,
    cost: u64,
    /// Towards the newer end; for a free slot the next free one.
    newer: u32,
    older: u32,
    /// The first of its links.
    links: u32,
    place: Place,
    owner: u8,
    heat: u8,
    /// Requests since it was put here.
    asks: u16,
}

/// An entry that is to be kept.
#[derive(Debug)]
pub(super) struct New<'a, K, V> {
    pub hash: u64,
    pub key: K,
    pub value: V,
    /// Whose it is.
    pub owner: u64,
    /// What key and value weigh beside their own structs.
    pub cost: u64,
    /// By which a purge finds it.
    pub labels: &'a [u64],
}

/// What becomes of an entry that a purge looks at.
#[derive(Debug)]
pub(super) enum Verdict<V> {
    Keep,
    /// It gets this value, which weighs the same.
    Replace(V),
    Remove,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
}

/// What is left of an entry that was pushed out of the small queue.
#[derive(Clone, Copy, Debug, Default)]
struct Ghost {
    fingerprint: u32,
    /// When, in blocks that have left.
    left_at: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Small,
    Main,
}

/// The entry is larger than the ring may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl<K: Eq, V> Ring<K, V> {
    /// An empty ring that never weighs more than `limit` bytes.
    pub fn new(limit: u64) -> Self {
        let ghosts = usize::try_from(limit / BYTES_PER_GHOST).unwrap_or(usize::MAX);
        Self {
            limit,
            entries_cost: 0,
            slots: Vec::new(),
            free: NONE,
            index: Index::default(),
            labels: Labels::default(),
            owners: Owners::new(limit),
            ghosts: vec![Ghost::default(); ghosts],
        }
    }

    /// Bytes of everything that the ring holds.
    pub fn weight(&self) -> u64 {
        self.entries_cost + self.structure_weight()
    }

    fn structure_weight(&self) -> u64 {
        let slots = self.slots.capacity() * size_of::<Slot<K, V>>();
        let ghosts = self.ghosts.capacity() * size_of::<Ghost>();
        let rest = self.index.weight() + self.labels.weight() + self.owners.weight();
        (slots + ghosts + rest) as u64
    }

    /// The value under a key with `hash` for which `is` holds; counts as a request.
    pub fn find(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        let number = self.number_of(hash, is)?;
        let slot = &mut self.slots[number as usize];
        slot.heat = (slot.heat + 1).min(HEAT_MAX);
        slot.asks = slot.asks.saturating_add(1);
        self.owners.note_asked(slot.owner);
        slot.entry.as_ref().map(|entry| &entry.value)
    }

    /// Puts a value under a key, in place of the one that is there. What has to go is appended to
    /// `out`, so that the caller can drop it after its lock.
    pub fn insert(&mut self, new: New<'_, K, V>, out: &mut Vec<V>) -> Result<(), TooLarge> {
        let hash = new.hash;
        let owner = self.owners.enter(new.owner);
        let before = self.number_of(hash, |other| *other == new.key);
        let heat = before.map_or(0, |number| self.slots[number as usize].heat);
        let place = match before {
            Some(number) => self.slots[number as usize].place,
            None if self.is_ghost(hash, owner) => Place::Main,
            None => Place::Small,
        };
        out.extend(before.and_then(|number| self.take_out(number)));
        let number = match self.make_room(new.cost, new.labels.len(), out) {
            Ok(number) => number,
            Err(too_large) => {
                out.push(new.value);
                return Err(too_large);
            }
        };
        let links = self.labels.attach(number, new.labels);
        let (key, value) = (new.key, new.value);
        self.slots[number as usize] = Slot {
            entry: Some(Entry { key, value }),
            hash,
            cost: new.cost,
            newer: NONE,
            older: NONE,
            links,
            place,
            owner,
            heat,
            asks: 0,
        };
        self.entries_cost += new.cost;
        self.owners.note_inserted(new.cost, self.limit);
        self.index.insert(hash, number);
        self.link(number, place);
        assert!(self.weight() <= self.limit, "room was made before");
        Ok(())
    }

    /// Gives the entry under a key another value of the same weight, where `is_old` holds for the
    /// one that it has. Gives back the one that went.
    pub fn replace(
        &mut self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        is_old: impl Fn(&V) -> bool,
        value: V,
    ) -> Result<V, V> {
        let number = self.number_of(hash, is);
        let slot = number.map(|number| &mut self.slots[number as usize]);
        match slot.and_then(|slot| slot.entry.as_mut()) {
            Some(entry) if is_old(&entry.value) => Ok(std::mem::replace(&mut entry.value, value)),
            Some(_) | None => Err(value),
        }
    }

    /// How many entries carry `label`.
    pub fn labelled(&self, label: u64) -> u32 {
        self.labels.count(label)
    }

    /// Asks `judge` about `most` entries that carry `label`, in turns.
    pub fn judge_labelled(
        &mut self,
        label: u64,
        most: u32,
        mut judge: impl FnMut(&K, &V) -> Verdict<V>,
        out: &mut Vec<V>,
    ) {
        for _ in 0..most {
            let Some(number) = self.labels.next(label) else {
                return;
            };
            self.judge(number, &mut judge, out);
        }
    }

    /// Asks `judge` about the entries in some slots, beginning with `from`. Gives the slot to go on
    /// with, as long as there is one.
    pub fn judge_slots(
        &mut self,
        from: usize,
        most: usize,
        mut judge: impl FnMut(&K, &V) -> Verdict<V>,
        out: &mut Vec<V>,
    ) -> Option<usize> {
        let end = self.slots.len().min(from.saturating_add(most));
        for number in from..end {
            self.judge(number as u32, &mut judge, out);
        }
        (end < self.slots.len()).then_some(end)
    }

    fn judge(
        &mut self,
        number: u32,
        judge: &mut impl FnMut(&K, &V) -> Verdict<V>,
        out: &mut Vec<V>,
    ) {
        let Some(entry) = &mut self.slots[number as usize].entry else {
            return;
        };
        match judge(&entry.key, &entry.value) {
            Verdict::Keep => {}
            Verdict::Replace(value) => out.push(std::mem::replace(&mut entry.value, value)),
            Verdict::Remove => out.extend(self.take_out(number)),
        }
    }

    /// How often the value under a key was asked for since it was put there.
    pub fn asks(&self, hash: u64, is: impl Fn(&K) -> bool) -> u16 {
        let number = self.number_of(hash, is);
        number.map_or(0, |number| self.slots[number as usize].asks)
    }

    /// Takes a value out.
    pub fn remove(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<V> {
        let number = self.number_of(hash, is)?;
        self.take_out(number)
    }

    /// Lets the entry go that is worth least; none where the ring is empty.
    pub fn evict(&mut self) -> Option<V> {
        let giving = self.owners.next_to_give()?;
        self.evict_of(giving)
    }

    /// As [`Ring::evict`], but nothing of the owner called `spared`.
    pub fn evict_but(&mut self, spared: u64) -> Option<V> {
        let giving = self.owners.next_to_give_but(spared)?;
        self.evict_of(giving)
    }

    fn evict_of(&mut self, giving: u8) -> Option<V> {
        loop {
            let owner = self.owners.at(giving);
            let small_is_full = owner.small.cost * SMALL_SHARE > owner.cost();
            let number = match (owner.small.oldest, owner.main.oldest) {
                (NONE, NONE) => return None,
                (small, NONE) => small,
                (small, _) if small != NONE && small_is_full => small,
                (_, main) => main,
            };
            let slot = &mut self.slots[number as usize];
            match (slot.place, slot.heat) {
                (Place::Small, 0..PROMOTED_FROM) => {
                    let hash = slot.hash;
                    self.owners.at_mut(giving).left_small += slot.cost;
                    self.remember_ghost(hash, giving);
                    return self.take_out(number);
                }
                (Place::Small, _) => {
                    slot.heat = 0;
                    self.relink(number, Place::Main);
                }
                (Place::Main, 0) => return self.take_out(number),
                (Place::Main, heat) => {
                    slot.heat = heat - 1;
                    self.relink(number, Place::Main);
                }
            }
        }
    }

    /// A free slot, with room for `cost` bytes and for the growth of slots and index that the
    /// insertion needs. An eviction frees a slot, so a ring without room for growth goes on at its
    /// size.
    fn make_room(&mut self, cost: u64, labels: usize, out: &mut Vec<V>) -> Result<u32, TooLarge> {
        loop {
            let slots = self.slots_after_growth();
            let index = self.index.growth(1);
            // While one table is copied into a larger one both exist.
            let growth = slots.unwrap_or(0) * size_of::<Slot<K, V>>()
                + index.unwrap_or(0)
                + self.labels.growth(labels);
            let weight = self.weight().saturating_add(cost);
            if weight.saturating_add(growth as u64) <= self.limit {
                if let Some(capacity) = slots {
                    self.slots.reserve_exact(capacity - self.slots.len());
                }
                if index.is_some() {
                    let slots = &self.slots;
                    self.index.grow(1, |number| slots[number as usize].hash);
                }
                self.labels.grow(labels);
                return Ok(self.take_free());
            }
            out.push(self.evict().ok_or(TooLarge)?);
        }
    }

    /// The number of slots to make where none is free.
    fn slots_after_growth(&self) -> Option<usize> {
        let full = self.free == NONE && self.slots.len() == self.slots.capacity();
        full.then(|| (self.slots.len() / 2 * 3).max(SLOTS_MIN))
    }

    fn take_free(&mut self) -> u32 {
        let number = self.free;
        if number != NONE {
            self.free = self.slots[number as usize].newer;
            return number;
        }
        self.slots.push(Slot {
            entry: None,
            hash: 0,
            cost: 0,
            newer: NONE,
            older: NONE,
            links: labels::NONE,
            place: Place::Small,
            owner: 0,
            heat: 0,
            asks: 0,
        });
        (self.slots.len() - 1) as u32
    }

    fn number_of(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<u32> {
        self.index.find(hash, |number| {
            let slot = &self.slots[number as usize];
            slot.hash == hash && slot.entry.as_ref().is_some_and(|entry| is(&entry.key))
        })
    }

    fn take_out(&mut self, number: u32) -> Option<V> {
        self.unlink(number);
        let slots = &self.slots;
        let hash = slots[number as usize].hash;
        self.index
            .remove(hash, number, |other| slots[other as usize].hash);
        let links = self.slots[number as usize].links;
        self.labels.detach(links);
        let slot = &mut self.slots[number as usize];
        self.entries_cost -= slot.cost;
        slot.newer = self.free;
        self.free = number;
        slot.entry.take().map(|entry| entry.value)
    }

    fn relink(&mut self, number: u32, place: Place) {
        self.unlink(number);
        self.slots[number as usize].place = place;
        self.link(number, place);
    }

    /// Puts a slot at the newest end of a queue.
    fn link(&mut self, number: u32, place: Place) {
        let owner = self.slots[number as usize].owner;
        let newest = self.queue(owner, place).newest;
        let slot = &mut self.slots[number as usize];
        slot.newer = NONE;
        slot.older = newest;
        let cost = slot.cost;
        if newest != NONE {
            self.slots[newest as usize].newer = number;
        }
        let queue = self.queue(owner, place);
        queue.newest = number;
        queue.cost += cost;
        if queue.oldest == NONE {
            queue.oldest = number;
        }
    }

    fn unlink(&mut self, number: u32) {
        let slot = &self.slots[number as usize];
        let (newer, older, cost) = (slot.newer, slot.older, slot.cost);
        let (owner, place) = (slot.owner, slot.place);
        if newer != NONE {
            self.slots[newer as usize].older = older;
        }
        if older != NONE {
            self.slots[older as usize].newer = newer;
        }
        let queue = self.queue(owner, place);
        queue.cost -= cost;
        if newer == NONE {
            queue.newest = older;
        }
        if older == NONE {
            queue.oldest = newer;
        }
    }

    fn queue(&mut self, owner: u8, place: Place) -> &mut Queue {
        let owner = self.owners.at_mut(owner);
        match place {
            Place::Small => &mut owner.small,
            Place::Main => &mut owner.main,
        }
    }

    fn remember_ghost(&mut self, hash: u64, owner: u8) {
        let left_small = self.owners.at(owner).left_small;
        if let Some(ghost) = self.ghost_place(hash) {
            self.ghosts[ghost] = Ghost {
                fingerprint: fingerprint(hash),
                left_at: blocks(left_small),
            };
        }
    }

    /// Whether it left the small queue not long ago: no more has left since than main holds. Later
    /// than that it is no wonder that it is asked for again.
    fn is_ghost(&self, hash: u64, owner: u8) -> bool {
        self.ghost_place(hash).is_some_and(|place| {
            let ghost = self.ghosts[place];
            let since = blocks(self.owners.at(owner).left_small).wrapping_sub(ghost.left_at);
            ghost.fingerprint == fingerprint(hash) && since <= blocks(self.limit)
        })
    }

    fn ghost_place(&self, hash: u64) -> Option<usize> {
        (!self.ghosts.is_empty()).then(|| (hash >> 8) as usize % self.ghosts.len())
    }
}

/// Smallest number of slots.
const SLOTS_MIN: usize = 32;

/// Bytes in the unit by which ghosts grow old.
fn blocks(bytes: u64) -> u32 {
    (bytes / BYTES_PER_GHOST) as u32
}

/// Never zero, which stands for no ghost.
fn fingerprint(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

#[cfg(test)]
mod tests;
