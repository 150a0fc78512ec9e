//! The network between the places of a world: delay, loss and partitions.
//!
//! Everything that travels here is carried by TCP, so that a lost packet comes later instead of
//! never, and what is sent into a partition arrives when it heals, if anybody still listens.

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::Random;

use crate::world::SiteId;

/// Something that can be cut off from something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A site.
    Site(SiteId),
    /// The registry.
    Registry,
    /// Everybody who reads a site.
    Visitors,
}

/// Delay, loss and partitions.
#[derive(Debug)]
pub struct Network {
    /// One-way delay between any two places.
    pub delay: Duration,
    /// Added to the delay, evenly from zero up to this.
    pub jitter: Duration,
    /// Share of the messages that lose a packet and come a retransmission later.
    pub loss: f64,
    groups: BTreeMap<Place, usize>,
    random: Random,
}

/// The least time after which TCP sends again (RFC 6298 allows a second, Linux waits 200 ms).
const RETRANSMISSION: Duration = Duration::from_millis(200);

impl Network {
    /// A network with 10 ms of delay and no faults.
    pub const fn new(random: Random) -> Self {
        Self {
            delay: Duration::from_millis(10),
            jitter: Duration::ZERO,
            loss: 0.0,
            groups: BTreeMap::new(),
            random,
        }
    }

    /// How long the next message takes.
    pub fn draw_delay(&mut self) -> Duration {
        let mut delay = self.delay;
        if !self.jitter.is_zero() {
            delay += self.jitter.mul_f64(self.random.fraction());
        }
        let mut again = RETRANSMISSION;
        // Five losses in a row are 12 s: longer than anything here waits.
        for _ in 0..5 {
            if self.loss <= 0.0 || !self.random.chance(self.loss) {
                break;
            }
            delay += again;
            again *= 2;
        }
        delay
    }

    /// Cuts the groups off from each other. A place that is in no group reaches everybody.
    pub fn partition(&mut self, groups: &[Vec<Place>]) {
        self.groups.clear();
        for (number, group) in groups.iter().enumerate() {
            self.groups
                .extend(group.iter().map(|&place| (place, number)));
        }
    }

    /// Ends every partition.
    pub fn heal(&mut self) {
        self.groups.clear();
    }

    /// Whether nothing passes between these two now.
    pub fn is_cut(&self, one: Place, other: Place) -> bool {
        match (self.groups.get(&one), self.groups.get(&other)) {
            (Some(one), Some(other)) => one != other,
            (Some(_) | None, None) | (None, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_cuts_the_groups_and_nobody_else() {
        let mut network = Network::new(Random::from_seed(1));
        let site = |number| Place::Site(SiteId(number));
        network.partition(&[vec![site(0)], vec![site(1), Place::Registry]]);
        assert!(network.is_cut(site(0), site(1)));
        assert!(network.is_cut(site(0), Place::Registry));
        assert!(!network.is_cut(site(1), Place::Registry));
        assert!(!network.is_cut(site(0), Place::Visitors));
        network.heal();
        assert!(!network.is_cut(site(0), site(1)));
    }
}
