//! Which connection gives way to a newcomer where there is no room for both.
//!
//! A flood of visitors who take their answers a few bytes at a time costs its sender nothing and
//! could hold every connection for ever. So the one that is missed least goes:
//!
//! 1. one on which nothing is under way, longest idle first;
//! 2. one whose visitor has been sending a head for a second;
//! 3. one whose visitor takes less than [`FLOOR`], slowest first, where connections of one network
//!    share the blame: a hundred slow ones of one address are each a hundredth as fast;
//! 4. where nobody was watched for long enough, those who seem to be slow after a quarter second;
//! 5. one that has been open for a moment and has said nothing.
//!
//! Whoever waits for us, for an application or for capacity never gives way, nor does anybody who
//! takes more than the floor, however large what he takes.
//!
//! Speed is measured by looking now and then: each newcomer pays for looking at a few connections.
//! What was found worst is kept in a short list, so that it need not be found again (as Redis keeps
//! a pool of keys to evict).
//!
//! Pure: no clock, no socket. Nothing is kept here while there is room.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use foldhash::fast::RandomState;
use levee_vocab::{Network, Timestamp};

/// What a connection is doing, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Occupation {
    /// Nothing since then, and it has had an answer.
    Idle { since: Timestamp },
    /// Its visitor was to say something, or to stop, since then.
    Awaited { since: Timestamp, said: Said },
    /// Its visitor takes what we have for him, or sends what we wait for.
    Moving {
        /// When this began.
        began: Timestamp,
        /// Bytes that have reached their end since.
        moved: u64,
    },
    /// It waits for us, for an application, or for capacity.
    Needed,
}

/// Whether anything was heard from a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Nothing,
    Something,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Eviction {
    /// By the place of the connection, the lower half of its token.
    looks: Vec<Look>,
    /// Slow connections of each network.
    slow: HashMap<Network, u32, RandomState>,
    /// Those that would be missed least, worst first.
    worst: Vec<(Reason, u64)>,
}

/// What was seen of a connection.
#[derive(Clone, Copy, Debug)]
struct Look {
    token: u64,
    network: Network,
    began: Timestamp,
    at: Timestamp,
    moved: u64,
    rate: Rate,
    pace: Pace,
}

/// Bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    /// The mean since the beginning, which says little because whoever reads nothing takes a whole
    /// receive buffer first, or what was seen in less than a second.
    Guessed(f64),
    /// Seen between two looks, or more.
    Measured(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Nothing is held against it.
    Fair,
    /// Counted among the slow ones of its network.
    Slow,
}

/// Why a connection may go; the least reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    IdleSince(Timestamp),
    AwaitedSince(Timestamp),
    /// Bytes a second, shared out.
    SlowAt(u64),
    SoonAwaitedSince(Timestamp),
    SoonSlowAt(u64),
    SilentSince(Timestamp),
}

/// Bytes a second above which a visitor keeps his connection. At this rate a page with pictures of
/// 500 kB takes half a minute, and to hold ten thousand connections by it takes more than a
/// gigabit a second.
const FLOOR: f64 = 16_384.0;
/// Time in which a visitor's speed can be measured, and in which a head should have come even from
/// far away by satellite.
const FAIR: Duration = Duration::from_secs(1);
/// The same where nobody else gives way: a round trip around the world.
const SOON: Duration = Duration::from_millis(250);
/// Time over which speed is averaged: a phone that changes its cell stands still for a second or
/// two.
const MEMORY: f64 = 2.0;
/// However fast somebody was, a few seconds without a byte make him slow.
const REMEMBERED_MAX: f64 = 4.0 * FLOOR;
/// Connections in the short list.
const WORST_MAX: usize = 16;
/// How often the worst one may prove to have become better before another one is taken as it is.
pub(super) const RECONSIDERED_MAX: usize = WORST_MAX;

impl Eviction {
    /// Takes note of what connection `token` from `address` is doing.
    pub fn note(&mut self, now: Timestamp, token: u64, address: IpAddr, occupation: Occupation) {
        let reason = match occupation {
            Occupation::Idle { since } => Some(Reason::IdleSince(since)),
            Occupation::Awaited { since, said } => awaited(now, since, said),
            Occupation::Moving { began, moved } => {
                let network = Network::of(address);
                self.measure(now, token, network, began, moved)
            }
            Occupation::Needed => None,
        };
        match occupation {
            Occupation::Moving { .. } => {}
            Occupation::Idle { .. } | Occupation::Awaited { .. } | Occupation::Needed => {
                self.acquit(token);
            }
        }
        self.worst.retain(|&(_, other)| other != token);
        if let Some(reason) = reason {
            let place = self.worst.partition_point(|&(other, _)| other <= reason);
            if place < WORST_MAX {
                self.worst.truncate(WORST_MAX - 1);
                self.worst.insert(place, (reason, token));
            }
        }
    }

    /// The connection that would be missed least of those noted, as it was then.
    pub fn worst(&self) -> Option<u64> {
        self.worst.first().map(|&(_, token)| token)
    }

    /// Forgets the connection `token`, which is closed.
    pub fn forget(&mut self, token: u64) {
        if !self.looks.is_empty() || !self.worst.is_empty() {
            self.acquit(token);
            self.worst.retain(|&(_, other)| other != token);
        }
    }

    /// Forgets everybody: there is room again.
    pub fn relax(&mut self) {
        if !self.looks.is_empty() || !self.worst.is_empty() {
            *self = Self::default();
        }
    }

    /// Measures how fast a visitor takes, and says why he should give way, if he should.
    fn measure(
        &mut self,
        now: Timestamp,
        token: u64,
        network: Network,
        began: Timestamp,
        moved: u64,
    ) -> Option<Reason> {
        let index = token as u32 as usize;
        if self.looks.len() <= index {
            self.looks.resize(index + 1, Look::UNUSED);
        }
        let before = self.looks[index];
        let is_same = before.token == token && before.began == began;
        let look = match is_same {
            true => before.again(now, moved),
            false => Look::first(now, token, network, began, moved),
        };
        let rate = look.rate.bytes();
        let is_slow = rate < FLOOR && now.since(began) >= SOON;
        self.acquit(before.token);
        self.looks[index] = look;
        if !is_slow {
            return None;
        }
        self.looks[index].pace = Pace::Slow;
        let of_network = self.slow.entry(network).or_default();
        *of_network += 1;
        // Thousandths, so that a shared rate of less than a byte still has an order.
        let shared = (rate * 1000.0 / f64::from(*of_network)) as u64;
        Some(match look.rate {
            Rate::Measured(_) => Reason::SlowAt(shared),
            Rate::Guessed(_) => Reason::SoonSlowAt(shared),
        })
    }

    /// Takes a connection out of the count of slow ones.
    fn acquit(&mut self, token: u64) {
        let Some(look) = self.looks.get_mut(token as u32 as usize) else {
            return;
        };
        if look.token != token {
            return;
        }
        let look = std::mem::replace(look, Look::UNUSED);
        if look.pace == Pace::Slow
            && let Some(of_network) = self.slow.get_mut(&look.network)
        {
            *of_network -= 1;
            if *of_network == 0 {
                self.slow.remove(&look.network);
            }
        }
    }
}

fn awaited(now: Timestamp, since: Timestamp, said: Said) -> Option<Reason> {
    let age = now.since(since);
    match said {
        _ if age >= FAIR => Some(Reason::AwaitedSince(since)),
        _ if age >= SOON => Some(Reason::SoonAwaitedSince(since)),
        Said::Nothing => Some(Reason::SilentSince(since)),
        Said::Something => None,
    }
}

impl Look {
    const UNUSED: Self = Self {
        token: u64::MAX,
        network: Network::of(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        began: Timestamp::ZERO,
        at: Timestamp::ZERO,
        moved: 0,
        rate: Rate::Guessed(0.0),
        pace: Pace::Fair,
    };

    /// The first look.
    fn first(now: Timestamp, token: u64, network: Network, began: Timestamp, moved: u64) -> Self {
        Self {
            token,
            network,
            began,
            at: now,
            moved,
            rate: Rate::Guessed(moved as f64 / now.since(began).as_secs_f64().max(1e-3)),
            pace: Pace::Fair,
        }
    }

    /// A later look. Two in quick succession say nothing new: bytes arrive in bursts.
    fn again(self, now: Timestamp, moved: u64) -> Self {
        let time = now.since(self.at);
        let seconds = time.as_secs_f64();
        let seen = moved.saturating_sub(self.moved) as f64 / seconds;
        if time < FAIR {
            return match self.rate {
                Rate::Guessed(_) if time >= SOON => Self {
                    rate: Rate::Guessed(seen),
                    ..self
                },
                Rate::Guessed(_) | Rate::Measured(_) => self,
            };
        }
        let weight = seconds / (seconds + MEMORY);
        let rate = match self.rate {
            Rate::Guessed(_) => seen,
            Rate::Measured(before) => before + (seen - before) * weight,
        };
        Self {
            at: now,
            moved,
            rate: Rate::Measured(rate.min(REMEMBERED_MAX)),
            ..self
        }
    }
}

impl Rate {
    const fn bytes(self) -> f64 {
        match self {
            Self::Guessed(rate) | Self::Measured(rate) => rate,
        }
    }
}

#[cfg(test)]
mod tests;
