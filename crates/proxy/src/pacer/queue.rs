//! What one core has ready for the link: connections by class.
//!
//! Each class goes in the order in which it came, but for redirects when they wait long. A kernel
//! acknowledges a request that has no answer after 40 ms in a packet of its own, which costs a
//! third of a redirect; where all redirects wait that long, the link carries a fifth fewer of them,
//! and so they go on waiting. Then the newest goes first: it is answered before that happens, and
//! those that have waited already get what is left over. They are never many, for while redirects
//! alone fill the link for longer than `gate.backlog_max` nobody else is let in.

use std::collections::VecDeque;
use std::time::Duration;

use levee_vocab::Timestamp;

use super::{CLASSES, Class, Link, Presence};

/// Connections that wait for the link, each at most once.
#[derive(Debug, Default)]
pub(crate) struct PacedQueue {
    classes: [VecDeque<Waiting>; CLASSES],
    ready_since: Timestamp,
}

/// One connection.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    token: u64,
    since: Timestamp,
}

/// When the newest redirect goes before the oldest: a little before the kernel loses patience
/// (TCP_ATO_MIN, 40 ms).
const PATIENCE: Duration = Duration::from_millis(30);

impl PacedQueue {
    /// Puts a connection at the end of its class.
    pub fn push(&mut self, link: &Link, class: Class, token: u64, now: Timestamp) {
        if self.is_empty() {
            self.ready_since = now;
        }
        let queue = &mut self.classes[class as usize];
        queue.push_back(Waiting { token, since: now });
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

    /// The next connection of the most urgent class.
    pub fn next(&self, now: Timestamp) -> Option<(Class, u64)> {
        [Class::Redirect, Class::Fetch, Class::Page, Class::Crawl]
            .into_iter()
            .find_map(|class| Some((class, self.next_of(class, now)?)))
    }

    fn next_of(&self, class: Class, now: Timestamp) -> Option<u64> {
        let queue = &self.classes[class as usize];
        let oldest = queue.front()?;
        let next = match class {
            Class::Redirect if now.since(oldest.since) >= PATIENCE => queue.back()?,
            Class::Redirect | Class::Fetch | Class::Page | Class::Crawl => oldest,
        };
        Some(next.token)
    }

    /// Takes the connection away that [`PacedQueue::next`] has told.
    pub fn pop(&mut self, link: &Link, (class, token): (Class, u64)) {
        let queue = &mut self.classes[class as usize];
        let popped = match queue.front() {
            Some(first) if first.token == token => queue.pop_front(),
            Some(_) | None => queue.pop_back(),
        };
        if popped.is_some() && queue.is_empty() {
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
