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
    /// Number of the next slot that has not been looked at.
    next: u64,
    entries: usize,
}

impl Wheel {
    /// An empty wheel that starts at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            slots: vec![Vec::new(); SLOTS],
            next: number(now),
            entries: 0,
        }
    }

    /// Has `token` looked at soon after `at`, or earlier where that is beyond the wheel. Returns when.
    pub fn set(&mut self, at: Timestamp, token: u64) -> Timestamp {
        let number = (number(at) + 1).clamp(self.next, self.next + SLOTS as u64 - 1);
        self.slots[number as usize % SLOTS].push(token);
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
            let slot = &mut self.slots[self.next as usize % SLOTS];
            self.entries -= slot.len();
            due.append(slot);
            self.next += 1;
        }
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.entries == 0 {
            return None;
        }
        (self.next..self.next + SLOTS as u64)
            .find(|number| !self.slots[*number as usize % SLOTS].is_empty())
            .map(start)
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
