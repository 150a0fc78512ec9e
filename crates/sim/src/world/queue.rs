//! What will happen, in the order in which it will happen.
//!
//! Two events at the same time happen in the order in which they were planned, so that a run
//! follows from its seed alone.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use levee_vocab::Timestamp;

/// Events ordered by time, then by when they were planned.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Planned<E>>,
    sequence: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Plans `event` for `at`.
    pub fn plan(&mut self, at: Timestamp, event: E) {
        self.sequence += 1;
        self.heap.push(Planned {
            at,
            sequence: self.sequence,
            event,
        });
    }

    /// The next event that is due at or before `end`.
    pub fn next_until(&mut self, end: Timestamp) -> Option<(Timestamp, E)> {
        if self.heap.peek()?.at > end {
            return None;
        }
        self.heap.pop().map(|planned| (planned.at, planned.event))
    }
}

#[derive(Debug)]
struct Planned<E> {
    at: Timestamp,
    sequence: u64,
    event: E,
}

impl<E> Ord for Planned<E> {
    /// Reversed, because the heap gives its largest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl<E> Eq for Planned<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_of_planning() {
        let mut queue = EventQueue::default();
        queue.plan(Timestamp::from_seconds(2), 'c');
        queue.plan(Timestamp::from_seconds(1), 'a');
        queue.plan(Timestamp::from_seconds(1), 'b');
        let end = Timestamp::from_seconds(1);
        assert_eq!(queue.next_until(end).map(|next| next.1), Some('a'));
        assert_eq!(queue.next_until(end).map(|next| next.1), Some('b'));
        assert_eq!(queue.next_until(end), None);
    }
}
