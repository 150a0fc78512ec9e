//! Who stays: LRU, S3-FIFO and W-TinyLFU as their authors describe them, and the one who knows the
//! future.
//!
//! Each keeps costs in bytes, and is told of a request by `ask`, which says whether the object was
//! there and takes it in where it was not.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// A policy with a limit in bytes.
pub trait Policy {
    /// Whether `object` was there. `next` is the number of the request that asks for it again.
    fn ask(&mut self, object: u32, cost: u64, next: u64) -> bool;
}

/// A queue in the order of use, with the sum of its costs.
#[derive(Default)]
struct Recency {
    order: BTreeMap<u64, u32>,
    places: HashMap<u32, (u64, u64)>,
    clock: u64,
    cost: u64,
}

impl Recency {
    fn has(&self, object: u32) -> bool {
        self.places.contains_key(&object)
    }

    fn put(&mut self, object: u32, cost: u64) {
        self.take(object);
        self.clock += 1;
        self.order.insert(self.clock, object);
        self.places.insert(object, (self.clock, cost));
        self.cost += cost;
    }

    fn take(&mut self, object: u32) -> Option<u64> {
        let (place, cost) = self.places.remove(&object)?;
        self.order.remove(&place);
        self.cost -= cost;
        Some(cost)
    }

    fn oldest(&self) -> Option<u32> {
        self.order.values().next().copied()
    }
}

/// Least recently used.
pub struct Lru {
    limit: u64,
    queue: Recency,
}

impl Lru {
    pub fn new(limit: u64) -> Self {
        let queue = Recency::default();
        Self { limit, queue }
    }
}

impl Policy for Lru {
    fn ask(&mut self, object: u32, cost: u64, _next: u64) -> bool {
        let was_there = self.queue.has(object);
        if cost <= self.limit {
            self.queue.put(object, cost);
        }
        while self.queue.cost > self.limit {
            let oldest = self.queue.oldest();
            oldest.and_then(|oldest| self.queue.take(oldest));
        }
        was_there
    }
}

/// S3-FIFO (Yang and others, SOSP 2023): small queue of a tenth, ghosts for as many bytes as main.
pub struct S3Fifo {
    limit: u64,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    small_cost: u64,
    main_cost: u64,
    held: HashMap<u32, (u64, u8)>,
    ghosts: Recency,
}

impl S3Fifo {
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            small: VecDeque::new(),
            main: VecDeque::new(),
            small_cost: 0,
            main_cost: 0,
            held: HashMap::new(),
            ghosts: Recency::default(),
        }
    }

    fn evict_small(&mut self) {
        while let Some(object) = self.small.pop_front() {
            let (cost, frequency) = self.held[&object];
            self.small_cost -= cost;
            if frequency > 1 {
                self.main.push_back(object);
                self.main_cost += cost;
                self.held.insert(object, (cost, 0));
                continue;
            }
            self.held.remove(&object);
            self.ghosts.put(object, cost);
            while self.ghosts.cost > self.limit / 10 * 9 {
                let oldest = self.ghosts.oldest();
                oldest.and_then(|oldest| self.ghosts.take(oldest));
            }
            return;
        }
    }

    fn evict_main(&mut self) {
        while let Some(object) = self.main.pop_front() {
            let (cost, frequency) = self.held[&object];
            if frequency > 0 {
                self.held.insert(object, (cost, frequency - 1));
                self.main.push_back(object);
                continue;
            }
            self.held.remove(&object);
            self.main_cost -= cost;
            return;
        }
    }
}

impl Policy for S3Fifo {
    fn ask(&mut self, object: u32, cost: u64, _next: u64) -> bool {
        if let Some((_, frequency)) = self.held.get_mut(&object) {
            *frequency = (*frequency + 1).min(3);
            return true;
        }
        if cost > self.limit {
            return false;
        }
        while self.small_cost + self.main_cost + cost > self.limit {
            match self.small_cost >= self.limit / 10 || self.main.is_empty() {
                true => self.evict_small(),
                false => self.evict_main(),
            }
        }
        self.held.insert(object, (cost, 0));
        match self.ghosts.take(object) {
            Some(_) => {
                self.main.push_back(object);
                self.main_cost += cost;
            }
            None => {
                self.small.push_back(object);
                self.small_cost += cost;
            }
        }
        false
    }
}

/// W-TinyLFU (Einziger, Friedman and Manes, 2017): a window of a hundredth, main by segmented LRU
/// with four fifths protected, admission by a sketch of frequencies that forgets by halves.
pub struct TinyLfu {
    limit: u64,
    window: Recency,
    probation: Recency,
    protected: Recency,
    sketch: Vec<[u8; 4]>,
    seen: u64,
    sample: u64,
}

impl TinyLfu {
    /// `objects` is about how many fit.
    pub fn new(limit: u64, objects: u64) -> Self {
        let width = (objects.max(64) * 8).next_power_of_two();
        Self {
            limit,
            window: Recency::default(),
            probation: Recency::default(),
            protected: Recency::default(),
            sketch: vec![[0; 4]; width as usize],
            seen: 0,
            sample: objects.max(64) * 10,
        }
    }

    fn places(&self, object: u32) -> [usize; 4] {
        let mask = self.sketch.len() - 1;
        std::array::from_fn(|row| {
            let seed = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(row as u64 * 2 + 1);
            let mixed = (u64::from(object) + 1).wrapping_mul(seed);
            (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) as usize >> 20 & mask
        })
    }

    fn note(&mut self, object: u32) {
        let least = self.frequency(object);
        for (row, place) in self.places(object).into_iter().enumerate() {
            let counter = &mut self.sketch[place][row];
            if *counter == least {
                *counter = (*counter + 1).min(15);
            }
        }
        self.seen += 1;
        if self.seen >= self.sample {
            self.seen /= 2;
            self.sketch.iter_mut().flatten().for_each(|one| *one /= 2);
        }
    }

    fn frequency(&self, object: u32) -> u8 {
        let places = self.places(object).into_iter().enumerate();
        places
            .map(|(row, place)| self.sketch[place][row])
            .min()
            .unwrap_or(0)
    }

    /// The one that leaves the window takes the places of those in main that are wanted less.
    fn admit(&mut self, candidate: u32, cost: u64) {
        let room = self.limit - self.limit / 100;
        let wanted = self.frequency(candidate);
        while self.probation.cost + self.protected.cost + cost > room {
            let victim = self.probation.oldest().or_else(|| self.protected.oldest());
            let Some(victim) = victim else { return };
            if self.frequency(victim) >= wanted {
                return;
            }
            self.probation
                .take(victim)
                .or_else(|| self.protected.take(victim));
        }
        self.probation.put(candidate, cost);
    }
}

impl Policy for TinyLfu {
    fn ask(&mut self, object: u32, cost: u64, _next: u64) -> bool {
        self.note(object);
        if self.window.has(object) {
            self.window.put(object, cost);
            return true;
        }
        if self.protected.has(object) || self.probation.has(object) {
            self.probation.take(object);
            self.protected.put(object, cost);
            while self.protected.cost > self.limit / 100 * 79 {
                let Some(oldest) = self.protected.oldest() else {
                    break;
                };
                let cost = self.protected.take(oldest).unwrap_or_default();
                self.probation.put(oldest, cost);
            }
            return true;
        }
        self.window.put(object, cost);
        while self.window.cost > self.limit / 100 {
            let Some(oldest) = self.window.oldest() else {
                break;
            };
            let cost = self.window.take(oldest).unwrap_or_default();
            self.admit(oldest, cost);
        }
        false
    }
}

/// Belady's: whoever is asked for again last goes first, and is not even taken in. For objects of
/// unequal sizes that is a high mark and not the highest possible.
pub struct Clairvoyant {
    limit: u64,
    cost: u64,
    by_next: BTreeSet<(u64, u32)>,
    held: HashMap<u32, (u64, u64)>,
}

impl Clairvoyant {
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            cost: 0,
            by_next: BTreeSet::new(),
            held: HashMap::new(),
        }
    }
}

impl Policy for Clairvoyant {
    fn ask(&mut self, object: u32, cost: u64, next: u64) -> bool {
        let before = self.held.remove(&object);
        if let Some((old, _)) = before {
            self.by_next.remove(&(old, object));
            self.cost -= cost;
        }
        if next != u64::MAX {
            self.held.insert(object, (next, cost));
            self.by_next.insert((next, object));
            self.cost += cost;
        }
        while self.cost > self.limit {
            let Some((_, last)) = self.by_next.pop_last() else {
                break;
            };
            let (_, cost) = self.held.remove(&last).unwrap_or_default();
            self.cost -= cost;
        }
        before.is_some()
    }
}
