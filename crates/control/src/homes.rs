//! Where an object has its home: which of an origin's rescue servers fetches it for all of them.
//!
//! ```text
//!  miss ─▶ homes by score ─▶ ourselves? ─ yes ─▶ new here? ─ no ─▶ ask the origin
//!             ▲   │ no                             │ yes
//!             │   ▼                                ▼
//!     next ◀──┴─ failed lately,         ask the next for its copy,
//!                or asked too much? ── no ─▶ ask it     then the origin
//! ```
//!
//! Without homes each rescue server fetches each object, and what a crowd costs the origin grows
//! with the help that it gets. So rescue servers that know each other ask an object's home first,
//! and the home asks the origin. Homes are found by weighted rendezvous hashing (Thaler and
//! Ravishankar 1998; weights by the logarithmic method): each member gets the score
//! `-weight / ln(u)`, with `u` in (0, 1) drawn from a hash of member and object, and the highest
//! score wins. When a member comes or leaves, only objects that are then its own, or were, move.
//!
//! All members must find the same home, so the hash is part of the protocol: FNV-1a of 64 bits over
//! `host:port` of a member's alias, and over `host:port`, a zero byte and the target as sent of an
//! object; the two joined by exclusive or and finished as in SplitMix64; `u` is half more than its
//! upper 53 bits, over 2^53.
//!
//! When a member comes, it is home to objects that it does not have. Their home was with the next
//! of its order until then, so for as long as an object lives the new home asks there for a copy,
//! and is given one or nothing at once.
//!
//! Whatever goes wrong at a home leads to the next one, which is the home that all will find when
//! the origin has noticed as well. Who is asked asks others for no more than a copy, so nobody asks
//! in circles.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use levee_vocab::{ByteRate, FetchKey, Peers, Timestamp, WebAddress};

/// Times its share of the asks under way that one home may have. Below it chance alone decides.
const EXCESS: f64 = 2.0;

/// Asks under way that any home may have: as many as a browser opens connections to one server, for
/// a few objects. Fewer say nothing about a home's load.
const FREE_ASKS: f64 = 16.0;

/// How long a home that failed is left alone: the time in which its origin finds out, at least.
const REST_MIN: Duration = Duration::from_secs(1);

/// The same after many failures in a row.
const REST_MAX: Duration = Duration::from_secs(30);

/// Homes that are remembered: a lying origin may name others every second.
const STANDINGS_MAX: usize = 256;

/// Lists of members that are remembered: sixteen origins, each with some that came and left.
const LISTS_MAX: usize = 128;

/// The rescue servers of one origin, as one of them sees them. Part of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Homes {
    key: FetchKey,
    /// Of all members: tells one list from another.
    hash: u64,
    members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    hash: u64,
    weight: f64,
    whose: Whose,
}

#[derive(Clone, Debug, PartialEq)]
enum Whose {
    Ours,
    Theirs(Home),
}

/// A rescue server that can be asked for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The name under which it serves the origin's objects.
    pub alias: WebAddress,
    /// Where it answers.
    pub address: SocketAddr,
    /// The port at which the alias answers by HTTPS, where it does.
    pub tls: Option<u16>,
}

/// Where to ask for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeChoice {
    /// Whom; none for the origin.
    pub home: Option<Home>,
    /// What for.
    pub asking: Asking,
    /// Better homes that failed lately.
    pub resting: u64,
    /// Better homes that were asked too much already.
    pub busy: u64,
}

/// What another rescue server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// The object, as its home: it asks the origin where it must.
    Object,
    /// Its copy, if it has one that is fresh: it asks nobody.
    Copy,
}

/// For whom we need an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededBy {
    /// A visitor: its home is asked.
    Visitor,
    /// Another rescue server, for which we are its home.
    Another,
}

/// How an ask ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskEnd {
    /// It brought the object.
    Answered,
    /// It did not.
    Failed,
}

impl Homes {
    /// The homes of an origin that calls us `own`; none where there is nobody else.
    pub fn new(peers: &Peers, own: &WebAddress) -> Option<Self> {
        let members = peers.members.iter().map(|peer| {
            let whose = match peer.alias == *own {
                true => Whose::Ours,
                false => Whose::Theirs(Home {
                    alias: peer.alias.clone(),
                    address: SocketAddr::new(peer.address, peer.alias.port),
                    tls: peer.tls,
                }),
            };
            Member {
                hash: fnv(FNV_START, name(&peer.alias).as_bytes()),
                weight: weight(peer.rate),
                whose,
            }
        });
        let members: Vec<Member> = members.collect();
        let has_others = members.iter().any(|member| member.whose != Whose::Ours);
        let hash = members.iter().fold(FNV_START, |hash, member| {
            fnv(hash, &(member.hash ^ member.weight.to_bits()).to_le_bytes())
        });
        let key = peers.key;
        has_others.then_some(Self { key, hash, members })
    }

    /// The other rescue servers of the origin.
    pub fn neighbours(&self) -> impl Iterator<Item = &Home> {
        self.members
            .iter()
            .filter_map(|member| match &member.whose {
                Whose::Ours => None,
                Whose::Theirs(home) => Some(home),
            })
    }

    /// What those who ask each other show.
    pub const fn key(&self) -> &FetchKey {
        &self.key
    }

    /// Whether the home of `object` is with us.
    pub fn are_ours(&self, object: u64) -> bool {
        let first = self.order(object).into_iter().next();
        first.is_none_or(|member| member.whose == Whose::Ours)
    }

    /// Members in the order in which they are at home to `object`.
    fn order(&self, object: u64) -> Vec<&Member> {
        let mut scored: Vec<(f64, &Member)> = self
            .members
            .iter()
            .map(|member| (member.score(object), member))
            .collect();
        scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.hash.cmp(&b.hash)));
        scored.into_iter().map(|(_, member)| member).collect()
    }

    fn others(&self) -> impl Iterator<Item = (f64, SocketAddr)> {
        self.members
            .iter()
            .filter_map(|member| match &member.whose {
                Whose::Ours => None,
                Whose::Theirs(home) => Some((member.weight, home.address)),
            })
    }
}

impl Member {
    fn score(&self, object: u64) -> f64 {
        score(self.hash, self.weight, object)
    }
}

/// Indices of `members` in the order in which they are at home to `object`, as an origin sees them:
/// each with its alias, and its weight.
pub(crate) fn home_order<'a>(
    members: impl Iterator<Item = (&'a WebAddress, ByteRate)>,
    object: u64,
) -> Vec<usize> {
    let scored = members.map(|(alias, rate)| {
        let hash = fnv(FNV_START, name(alias).as_bytes());
        (score(hash, weight(rate), object), hash)
    });
    let mut scored: Vec<_> = scored.enumerate().collect();
    scored.sort_by(|(_, (one, a)), (_, (other, b))| other.total_cmp(one).then(a.cmp(b)));
    scored.into_iter().map(|(index, _)| index).collect()
}

fn weight(rate: ByteRate) -> f64 {
    rate.as_kilobytes().max(1) as f64
}

fn score(hash: u64, weight: f64, object: u64) -> f64 {
    let bits = finish(hash ^ object) >> 11;
    let fraction = (bits as f64 + 0.5) / (1_u64 << 53) as f64;
    -weight / fraction.ln()
}

/// The hash of an object: of its origin, and its target as sent.
pub fn object_hash(origin: &WebAddress, target: &[u8]) -> u64 {
    let origin = fnv(FNV_START, name(origin).as_bytes());
    fnv(fnv(origin, &[0]), target)
}

fn name(address: &WebAddress) -> String {
    format!("{}:{}", address.host, address.port)
}

const FNV_START: u64 = 0xCBF2_9CE4_8422_2325;

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

const fn finish(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

/// How it stands with the homes that this server asks.
#[derive(Clone, Debug, Default)]
pub struct Asks {
    standings: BTreeMap<SocketAddr, Standing>,
    /// When each list of members was first seen.
    seen: BTreeMap<u64, Timestamp>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    under_way: u32,
    /// In a row.
    failures: u32,
    rests_until: Timestamp,
}

impl Asks {
    /// Whom to ask for `object`, which lives as long as `lifetime`; whoever it is has one more ask
    /// under way, until [`Asks::end`].
    pub fn choose(
        &mut self,
        now: Timestamp,
        homes: &Homes,
        (object, lifetime): (u64, Duration),
        needed_by: NeededBy,
    ) -> HomeChoice {
        let is_new = self.is_new(now, homes, lifetime);
        let mut choice = HomeChoice {
            home: None,
            asking: match needed_by {
                NeededBy::Visitor => Asking::Object,
                NeededBy::Another => Asking::Copy,
            },
            resting: 0,
            busy: 0,
        };
        let mut order = homes.order(object).into_iter();
        if needed_by == NeededBy::Another {
            order.find(|member| member.whose == Whose::Ours);
        }
        for member in order {
            let home = match &member.whose {
                Whose::Ours => {
                    choice.asking = Asking::Copy;
                    continue;
                }
                Whose::Theirs(home) => home,
            };
            if choice.asking == Asking::Copy && !is_new {
                break;
            }
            let standing = self.standing(home.address);
            let is_resting = standing.is_resting(now);
            let is_busy = f64::from(standing.under_way) >= self.most(homes, member.weight);
            match (choice.asking, is_resting, is_busy) {
                (_, false, false) => {
                    self.forget(now);
                    self.standings.entry(home.address).or_default().under_way += 1;
                    choice.home = Some(home.clone());
                    break;
                }
                // One is enough: it was the home, or nobody knows.
                (Asking::Copy, _, _) => break,
                (Asking::Object, true, _) => choice.resting += 1,
                (Asking::Object, false, true) => choice.busy += 1,
            }
        }
        choice
    }

    /// Whether objects that were fetched under another list may still live.
    fn is_new(&mut self, now: Timestamp, homes: &Homes, lifetime: Duration) -> bool {
        if self.seen.len() >= LISTS_MAX && !self.seen.contains_key(&homes.hash) {
            let oldest = self.seen.iter().min_by_key(|(_, since)| **since);
            if let Some(oldest) = oldest.map(|(&hash, _)| hash) {
                self.seen.remove(&oldest);
            }
        }
        let since = *self.seen.entry(homes.hash).or_insert(now);
        now < since + lifetime
    }

    /// An ask of the home at `address` is over.
    pub fn end(&mut self, now: Timestamp, address: SocketAddr, end: AskEnd) {
        let Some(standing) = self.standings.get_mut(&address) else {
            return;
        };
        standing.under_way = standing.under_way.saturating_sub(1);
        match end {
            AskEnd::Answered => standing.failures = 0,
            AskEnd::Failed if standing.is_resting(now) => {}
            AskEnd::Failed => {
                let rest = REST_MIN * 2_u32.pow(standing.failures.min(5));
                standing.failures += 1;
                standing.rests_until = now + rest.min(REST_MAX);
            }
        }
        if standing.under_way == 0 && standing.failures == 0 {
            self.standings.remove(&address);
        }
    }

    /// Most asks under way at a home of this weight.
    fn most(&self, homes: &Homes, weight: f64) -> f64 {
        let all = homes.others().map(|(_, address)| self.standing(address));
        let under_way: u32 = all.map(|standing| standing.under_way).sum();
        let weights: f64 = homes.others().map(|(weight, _)| weight).sum();
        (EXCESS * f64::from(under_way + 1) * weight / weights).max(FREE_ASKS)
    }

    fn standing(&self, address: SocketAddr) -> Standing {
        self.standings.get(&address).copied().unwrap_or_default()
    }

    /// Makes room: what is forgotten is a failure that is over.
    fn forget(&mut self, now: Timestamp) {
        if self.standings.len() >= STANDINGS_MAX {
            let is_over = |standing: &Standing| standing.under_way == 0 && !standing.rests(now);
            self.standings.retain(|_, standing| !is_over(standing));
        }
    }
}

impl Standing {
    /// Whether it is to be left alone: for a while after a failure, and then while somebody tries.
    fn is_resting(&self, now: Timestamp) -> bool {
        self.rests(now) || (self.failures > 0 && self.under_way > 0)
    }

    fn rests(&self, now: Timestamp) -> bool {
        self.failures > 0 && now < self.rests_until
    }
}
