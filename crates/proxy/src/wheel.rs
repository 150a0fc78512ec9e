//! Deadlines of many connections, coarse and cheap.
//!
//! A wheel of time slots, each with the connections that must be looked at then. Setting a later
//! deadline touches nothing here: the connection is looked at when its old time comes, and is put
//! back. So a busy connection costs the wheel nothing.

use std::time::Duration;

use levee_vocab::Timestamp;

/// Slots of the wheel.
const SLOTS: usize = 256;
/// Length of a slot. Deadlines are seconds; being late by a sixteenth of one hurts nobody.
const SLOT: Duration = Duration::from_millis(64);

/// The wheel of one core.
#[derive(Debug)]
pub(crate) struct Wheel {
    slots: Vec<Vec<u64>>,
    /// A bit for each slot that is not empty, so that the next one is found in a few instructions.
    occupied: [u64; SLOTS / 64],
    /// Number of the next slot that has not been looked at.
    next: u64,
    entries: usize,
}

impl Wheel {
    /// An empty wheel that starts at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            slots: vec![Vec::new(); SLOTS],
            occupied: [0; SLOTS / 64],
            next: number(now),
            entries: 0,
        }
    }

    /// Has `token` looked at soon after `at`, or earlier where that is beyond the wheel. Returns
    /// when.
    pub fn set(&mut self, at: Timestamp, token: u64) -> Timestamp {
        let number = (number(at) + 1).clamp(self.next, self.next + SLOTS as u64 - 1);
        let slot = number as usize % SLOTS;
        self.slots[slot].push(token);
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.entries += 1;
        start(number)
    }

    /// Moves everything that is due at `now` into `due`.
    pub fn take_due(&mut self, now: Timestamp, due: &mut Vec<u64>) {
        let last = number(now);
        while self.next <= last {
            if self.entries == 0 {
                self.next = last + 1;
                return;
            }
            let slot = self.next as usize % SLOTS;
            self.entries -= self.slots[slot].len();
            due.append(&mut self.slots[slot]);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            self.next += 1;
        }
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.entries == 0 {
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
        // A time that is past is due in the next slot, not never.
        wheel.set(at(1.0), 4);
        wheel.take_due(at(501.0), &mut due);
        assert_eq!(due, [1, 2, 3, 4]);
    }
}
