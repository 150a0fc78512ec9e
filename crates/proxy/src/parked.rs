//! Requests that wait for capacity, before any work has been done for them.
//!
//! First come, first asked. The Gate may let a later one pass where the first cannot go yet (its
//! file is too large for what is left), so a few are asked behind one that must wait, but not all:
//! a long queue must not cost more than a short one.

use std::collections::VecDeque;

use levee_control::{Ask, Block, Redirectability};
use levee_vocab::Timestamp;

/// The queue of one core.
#[derive(Debug)]
pub(crate) struct ParkedQueue {
    /// Those that may be redirected, and those that may not: the one kind must not wait behind the
    /// other, because they wait for different things.
    lines: [VecDeque<ParkedRequest>; 3],
    next_ticket: u64,
    places: usize,
}

/// One request that waits.
#[derive(Clone, Debug)]
pub(crate) struct ParkedRequest {
    pub token: u64,
    pub ticket: u64,
    pub ask: Ask,
    /// Where its visitor comes from; none where that says nothing about him.
    pub block: Option<Block>,
    /// When its head was complete.
    pub since: Timestamp,
}

/// How many are asked in a row that must go on waiting.
const PATIENCE: usize = 8;

/// One round of asking.
#[derive(Debug)]
pub(crate) struct Round {
    line: usize,
    at: usize,
    refused: usize,
}

impl ParkedQueue {
    /// A queue for at most `places` requests.
    pub const fn new(places: usize) -> Self {
        Self {
            lines: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            next_ticket: 1,
            places,
        }
    }

    pub fn is_full(&self) -> bool {
        self.len() >= self.places
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    /// Puts a request at the end; gives its ticket.
    pub fn push(&mut self, token: u64, ask: Ask, block: Option<Block>, since: Timestamp) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let line = match ask.redirectable {
            Redirectability::Allowed => 0,
            Redirectability::ByHttps => 1,
            Redirectability::Never => 2,
        };
        self.lines[line].push_back(ParkedRequest {
            token,
            ticket,
            ask,
            block,
            since,
        });
        ticket
    }

    /// Begins a round: each request that is due is given by [`ParkedQueue::next`].
    pub const fn begin_round() -> Round {
        Round {
            line: 0,
            at: 0,
            refused: 0,
        }
    }

    /// The next request of the round.
    pub fn next(&mut self, round: &mut Round) -> Option<&mut ParkedRequest> {
        while round.line < self.lines.len()
            && (round.refused >= PATIENCE || round.at >= self.lines[round.line].len())
        {
            *round = Round {
                line: round.line + 1,
                at: 0,
                refused: 0,
            };
        }
        self.lines.get_mut(round.line)?.get_mut(round.at)
    }

    /// The request that was given last goes on waiting.
    pub const fn keep(&mut self, round: &mut Round) {
        round.at += 1;
        round.refused += 1;
    }

    /// The request that was given last has its answer, or is gone.
    pub fn remove(&mut self, round: &Round) -> Option<ParkedRequest> {
        self.lines.get_mut(round.line)?.remove(round.at)
    }
}

#[cfg(test)]
mod tests {
    use levee_control::Copies;

    use super::*;
    use levee_control::Visitor;
    use std::time::Duration;

    fn ask(redirectable: Redirectability) -> Ask {
        Ask {
            visitor: Visitor::Reader,
            redirectable,
            file_bytes: 1000,
            redirect_bytes: 200,
            overhead_bytes: 358,
            path_hash: 1,
            resource_hash: 0,
            copies: Copies::NONE,
            backlog: Duration::ZERO,
            waited: Duration::ZERO,
        }
    }

    /// Asks all; those whose token `grants` go. Gives the tokens in the order of their going.
    fn round(queue: &mut ParkedQueue, grants: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut gone = Vec::new();
        let mut round = ParkedQueue::begin_round();
        while let Some(request) = queue.next(&mut round) {
            let token = request.token;
            if grants(token) {
                queue.remove(&round);
                gone.push(token);
            } else {
                queue.keep(&mut round);
            }
        }
        gone
    }

    #[test]
    fn requests_go_in_order_and_a_few_may_pass() {
        let mut queue = ParkedQueue::new(30);
        for token in 0..20 {
            queue.push(token, ask(Redirectability::Allowed), None, Timestamp::ZERO);
        }
        queue.push(100, ask(Redirectability::Never), None, Timestamp::ZERO);
        assert_eq!(round(&mut queue, |token| token < 3), [0, 1, 2]);
        // 3 waits, 4 may pass; 15 is too far behind; the other line does not wait for this one.
        assert_eq!(
            round(&mut queue, |token| [4, 15, 100].contains(&token)),
            [4, 100]
        );
        assert_eq!(queue.len(), 16);
        assert!(!queue.is_full());
        assert_eq!(round(&mut queue, |_| true).len(), 16);
        assert!(queue.is_empty());
    }
}
