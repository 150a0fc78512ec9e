//! What one core has ready for the link: connections by class.

use std::collections::VecDeque;

use levee_vocab::Timestamp;

use super::{Class, Link, Presence};

/// Connections that wait for the link, each at most once.
#[derive(Debug, Default)]
pub(crate) struct PacedQueue {
    classes: [VecDeque<u64>; 3],
    ready_since: Timestamp,
}

impl PacedQueue {
    /// Puts a connection at the end of its class.
    pub fn push(&mut self, link: &Link, class: Class, token: u64, now: Timestamp) {
        if self.is_empty() {
            self.ready_since = now;
        }
        let queue = &mut self.classes[class as usize];
        queue.push_back(token);
        if queue.len() == 1 {
            link.note_waiting(class, Presence::Begun);
        }
    }

    /// Puts a connection before all others of its class: it goes on with what it has begun.
    pub fn push_first(&mut self, link: &Link, class: Class, token: u64, now: Timestamp) {
        self.push(link, class, token, now);
        let queue = &mut self.classes[class as usize];
        queue.rotate_right(1);
    }

    /// The first connection of the most urgent class.
    pub fn first(&self) -> Option<(Class, u64)> {
        [Class::Redirect, Class::Fetch, Class::Page]
            .into_iter()
            .find_map(|class| Some((class, *self.classes[class as usize].front()?)))
    }

    /// Takes the first connection of `class` away.
    pub fn pop(&mut self, link: &Link, class: Class) {
        let queue = &mut self.classes[class as usize];
        if queue.pop_front().is_some() && queue.is_empty() {
            link.note_waiting(class, Presence::Ceased);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.classes.iter().all(VecDeque::is_empty)
    }

    /// Since when there has been something to send without a break.
    pub const fn ready_since(&self) -> Timestamp {
        self.ready_since
    }
}
