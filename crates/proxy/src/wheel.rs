//! Deadlines of many connections, coarse and cheap.
//!
//! A wheel of time slots, each with the connections that must be looked at then. Setting a later
//! deadline touches nothing here: the connection is looked at when its old time comes, and is put
//! back. So a busy connection costs the wheel nothing.
//!
//! Each slot is a list that runs through one table with an entry for each place of a connection, so
//! setting, moving and forgetting a deadline neither searches nor allocates.

use std::time::Duration;

use levee_vocab::Timestamp;

/// Slots of the wheel.
const SLOTS: usize = 256;
/// Length of a slot. Deadlines are seconds; being late by a sixteenth of one hurts nobody.
const SLOT: Duration = Duration::from_millis(64);
/// Where a list ends.
const NONE: u32 = u32::MAX;

/// The wheel of one core.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// First entry of each slot.
    first: [u32; SLOTS],
    /// By the place of the connection, the lower half of its token.
    entries: Vec<Entry>,
    /// A bit for each slot that is not empty, so that the next one is found in a few instructions.
    occupied: [u64; SLOTS / 64],
    /// Number of the next slot that has not been looked at.
    next: u64,
    set: usize,
}

/// A connection's place in a list.
#[derive(Clone, Debug)]
struct Entry {
    token: u64,
    before: u32,
    after: u32,
    /// Its slot; none where it is in no list.
    slot: Option<u8>,
}

impl Entry {
    const UNSET: Self = Self {
        token: 0,
        before: NONE,
        after: NONE,
        slot: None,
    };
}

impl Wheel {
    /// An empty wheel that starts at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            first: [NONE; SLOTS],
            entries: Vec::new(),
            occupied: [0; SLOTS / 64],
            next: number(now),
            set: 0,
        }
    }

    /// Has `token` looked at soon after `at`, or earlier where that is beyond the wheel, and not
    /// when it was to be before. Returns when.
    pub fn set(&mut self, at: Timestamp, token: u64) -> Timestamp {
        let number = (number(at) + 1).clamp(self.next, self.next + SLOTS as u64 - 1);
        let slot = number as usize % SLOTS;
        let index = token as u32;
        if self.entries.len() <= index as usize {
            self.entries.resize(index as usize + 1, Entry::UNSET);
        }
        self.unlink(index);
        let after = std::mem::replace(&mut self.first[slot], index);
        if after != NONE {
            self.entries[after as usize].before = index;
        }
        // A slot number is below 256.
        self.entries[index as usize] = Entry {
            token,
            before: NONE,
            after,
            slot: Some(slot as u8),
        };
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.set += 1;
        start(number)
    }

    /// Forgets the connection `token`, which is closed.
    pub fn forget(&mut self, token: u64) {
        let index = token as u32;
        if self
            .entries
            .get(index as usize)
            .is_some_and(|entry| entry.token == token)
        {
            self.unlink(index);
        }
    }

    /// Moves everything that is due at `now` into `due`.
    pub fn take_due(&mut self, now: Timestamp, due: &mut Vec<u64>) {
        let last = number(now);
        while self.next <= last {
            if self.set == 0 {
                self.next = last + 1;
                return;
            }
            let slot = self.next as usize % SLOTS;
            while self.first[slot] != NONE {
                let index = self.first[slot];
                due.push(self.entries[index as usize].token);
                self.unlink(index);
            }
            self.next += 1;
        }
    }

    /// Takes an entry out of its list, if it is in one.
    fn unlink(&mut self, index: u32) {
        let unset = std::mem::replace(&mut self.entries[index as usize], Entry::UNSET);
        let Some(slot) = unset.slot.map(usize::from) else {
            return;
        };
        match unset.before {
            NONE => self.first[slot] = unset.after,
            before => self.entries[before as usize].after = unset.after,
        }
        if unset.after != NONE {
            self.entries[unset.after as usize].before = unset.before;
        }
        if self.first[slot] == NONE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        self.set -= 1;
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.set == 0 {
            return None;
        }
        let first = self.next as usize % SLOTS;
        let words = self.occupied.len();
        // The word of the first slot comes twice: its upper bits at the start, its lower at the
        // end.
        for step in 0..=words {
            let word = (first / 64 + step) % words;
            let mask = match step {
                0 => u64::MAX << (first % 64),
                last if last == words => !(u64::MAX << (first % 64)),
                _ => u64::MAX,
            };
            let bits = self.occupied[word] & mask;
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (slot + SLOTS - first) % SLOTS;
                return Some(start(self.next + ahead as u64));
            }
        }
        None
    }
}

fn number(at: Timestamp) -> u64 {
    at.as_nanoseconds() / SLOT.as_nanos() as u64
}

fn start(number: u64) -> Timestamp {
    Timestamp::from_nanoseconds(number * SLOT.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_next_deadline_is_found_wherever_the_wheel_stands() {
        for start_at in 0..600_u64 {
            for ahead in [1, 2, 63, 64, 65, 200, 254] {
                let now = start(start_at);
                let mut wheel = Wheel::new(now);
                let set = wheel.set(start(start_at + ahead), 1);
                wheel.set(start(start_at + 254), 2);
                assert_eq!(wheel.next_due(), Some(set), "{start_at} {ahead}");
            }
        }
    }

    #[test]
    fn deadlines_come_due_once_soon_after_their_time() {
        let mut wheel = Wheel::new(at(100.0));
        assert_eq!(wheel.next_due(), None);
        wheel.set(at(101.0), 1);
        wheel.set(at(103.0), 2);
        let far = wheel.set(at(1000.0), 3);
        assert!(far < at(117.0));
        let mut due = Vec::new();
        wheel.take_due(at(100.9), &mut due);
        assert!(due.is_empty());
        let next = wheel.next_due().unwrap();
        assert!(next >= at(101.0) && next < at(101.1), "{next}");
        wheel.take_due(next, &mut due);
        assert_eq!(due, [1]);
        wheel.take_due(at(500.0), &mut due);
        assert_eq!(due, [1, 2, 3]);
        assert_eq!(wheel.next_due(), None);
        // A deadline that is moved is due once, and that of a closed connection never.
        wheel.set(at(501.0), 5);
        wheel.set(at(502.0), 5);
        wheel.set(at(501.0), 6);
        wheel.set(at(501.0), 7);
        wheel.forget(6);
        wheel.forget(1 << 32 | 7);
        due.clear();
        wheel.take_due(at(501.5), &mut due);
        assert_eq!(due, [7]);
        wheel.take_due(at(503.0), &mut due);
        assert_eq!(due, [7, 5]);
        // A time that is past is due in the next slot, not never.
        due = vec![1, 2, 3];
        wheel.set(at(1.0), 4);
        wheel.take_due(at(504.0), &mut due);
        assert_eq!(due, [1, 2, 3, 4]);
    }
}
