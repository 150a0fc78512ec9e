//! How many answers each block of addresses gets by UDP, so that nobody's address is flooded.
//!
//! Anybody can put another's address on a packet. So each block of addresses, a /24 or a /56, has a
//! budget of answers; what goes beyond it gets, every other time, an empty answer that says "ask by
//! TCP" and is no longer than the question. A real resolver asks by TCP and loses nothing.
//! Bounded memory: blocks share a fixed table, and a newcomer takes the place of whoever has the
//! same one.

use std::net::IpAddr;

use levee_vocab::{Random, Timestamp};

/// Answers a second that a block gets. A resolver of millions asks for a name once in each TTL,
/// from each of its machines.
const RATE: f64 = 50.0;
/// Answers that a block gets at once.
const BURST: f64 = 100.0;
/// Blocks that are told apart.
const BLOCKS: usize = 4096;

/// The budgets of all blocks.
#[derive(Debug)]
pub(crate) struct Budget {
    blocks: Vec<Block>,
    /// Nobody can tell from outside who shares a place with whom.
    salt: u64,
    sent: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    of: u64,
    left: f64,
    since: Timestamp,
}

/// What an asker gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// An answer.
    Whole,
    /// An empty one, which says that he shall ask by TCP.
    Empty,
    /// Nothing.
    None,
}

impl Budget {
    pub(crate) fn new(seed: u64) -> Self {
        let block = Block {
            of: 0,
            left: BURST,
            since: Timestamp::ZERO,
        };
        Self {
            blocks: vec![block; BLOCKS],
            salt: Random::from_seed(seed).next_bits(),
            sent: 0,
        }
    }

    /// What whoever asks from `address` at `now` gets.
    pub(crate) fn take(&mut self, now: Timestamp, address: IpAddr) -> Share {
        let of = self.block(address);
        let index = (Random::from_seed(of ^ self.salt).next_bits() % BLOCKS as u64) as usize;
        let block = &mut self.blocks[index];
        if block.of != of {
            *block = Block {
                of,
                left: BURST,
                since: now,
            };
        }
        let earned = now.since(block.since).as_secs_f64() * RATE;
        block.left = (block.left + earned).min(BURST);
        block.since = now;
        if block.left >= 1.0 {
            block.left -= 1.0;
            return Share::Whole;
        }
        self.sent = self.sent.wrapping_add(1);
        match self.sent % 2 {
            0 => Share::Empty,
            _ => Share::None,
        }
    }

    /// The block of `address` as a number; never 0, which is nobody.
    fn block(&self, address: IpAddr) -> u64 {
        match address.to_canonical() {
            IpAddr::V4(address) => u64::from(address.to_bits() >> 8) | 1 << 63,
            IpAddr::V6(address) => (address.to_bits() >> 72) as u64 | 1 << 62,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(budget: &mut Budget, now: Timestamp, address: &str, asked: usize) -> [usize; 3] {
        let mut counts = [0; 3];
        for _ in 0..asked {
            counts[match budget.take(now, address.parse().unwrap()) {
                Share::Whole => 0,
                Share::Empty => 1,
                Share::None => 2,
            }] += 1;
        }
        counts
    }

    #[test]
    fn a_flood_gets_a_bounded_number_of_answers_and_its_neighbour_all_of_them() {
        let mut budget = Budget::new(1);
        let start = Timestamp::from_seconds(10);
        let flood = count(&mut budget, start, "192.0.2.7", 1100);
        assert_eq!(flood, [100, 500, 500]);
        // The same block is one asker, another is not.
        assert_eq!(count(&mut budget, start, "192.0.2.8", 2), [0, 1, 1]);
        assert_eq!(count(&mut budget, start, "198.51.100.8", 20), [20, 0, 0]);
        let later = Timestamp::from_seconds(11);
        assert_eq!(count(&mut budget, later, "192.0.2.7", 60)[0], 50);
    }

    #[test]
    fn neighbours_of_ipv6_share_what_an_owner_has() {
        let mut budget = Budget::new(1);
        let now = Timestamp::from_seconds(10);
        count(&mut budget, now, "2001:db8:1:100::1", 200);
        assert_eq!(count(&mut budget, now, "2001:db8:1:1ff::9", 1)[0], 0);
        assert_eq!(count(&mut budget, now, "2001:db8:1:200::9", 1)[0], 1);
        assert_eq!(count(&mut budget, now, "::ffff:192.0.2.1", 200)[0], 100);
        assert_eq!(count(&mut budget, now, "192.0.2.2", 1)[0], 0);
    }
}
