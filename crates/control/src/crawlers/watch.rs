//! Crawlers that do not say what they are, by what their block of addresses does (/24 or /56).
//!
//! Readers ask for few pages, and for the same as other readers; what a page is made of they ask
//! for besides. A crawler asks for very many pages, once each, that nobody else asks for. So for
//! each block the table counts within a minute the pages that no other block asked for lately: how
//! many requests, and how many different ones. It is a crawler's block when the different ones are
//! at least [`PAGES`] for each kind of User-Agent that was seen in it, up to eight, and three in
//! four of all those requests. It stays one while each further minute has a quarter of that.
//!
//! **What is certain:** a block in which less than [`PAGES`] different pages that nobody else wants
//! are asked for within any minute is never taken for that of a crawler, whatever else it does and
//! whatever others do. Nor is one of which so many readers share what they want.
//!
//! Memory is constant, about 250 kB for each core. A block that finds no place takes that of the
//! one among eight that has asked for least, so a stampede of many addresses for one page pushes
//! no crawler out, and is not one. It takes no memory after it was made.

use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::Timestamp;

use super::shared::SharedPages;

/// Different pages in a minute, which nobody else asks for, that make a crawler. Nobody reads a
/// page every second and a quarter for a minute.
const PAGES: u32 = 48;

/// User-Agents in a block that raise the bar: many kinds of them are many people behind one
/// address. A crawler that changes its name with each request raises it no further.
const AGENTS_MAX: u32 = 8;

/// How long is counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Bits in which different pages are told apart.
const BITS: u32 = 2048;

/// So many bits set begin the next minute early, while pages that fall on the same bit are few
/// enough not to look like pages that were asked for twice.
const BITS_FULL: u32 = BITS / 8 * 3;

/// The highest bar can be reached before that.
const _: () = assert!(PAGES * AGENTS_MAX < BITS_FULL);

/// Blocks among which one finds its place.
const WAYS: usize = 8;

/// Blocks in all.
const BLOCKS: usize = 512;

/// A block of addresses that probably belongs to one owner: the /24 of an IPv4 address, the /56 of
/// an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block(u64);

impl Block {
    /// No block.
    pub(super) const NONE: Self = Self(0);

    /// That of `address`. An IPv4 address in IPv6 clothes counts as what it is.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self((1 << 60) | u64::from(u32::from(address) >> 8)),
            IpAddr::V6(address) => Self((1 << 61) | (u128::from(address) >> 72) as u64),
        }
    }
}

/// One request for a page.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    /// Hash of host, path and query.
    pub page: u64,
    /// Hash of the User-Agent.
    pub agent: u64,
    /// Where it comes from.
    pub block: Block,
    /// What answering it costs the link, in bytes.
    pub bytes: u64,
}

/// What a block is taken for after one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// For readers.
    Reader,
    /// For a crawler.
    Crawler,
    /// For a crawler, from this request on; those before it cost so many bytes.
    Recognised {
        /// Of the minute under way, this request not counted.
        bytes: u64,
    },
}

/// The table of one core. See the file header.
#[derive(Clone, Debug)]
pub struct CrawlerWatch {
    /// By place; those among which a block finds its own are neighbours.
    blocks: Box<[Block]>,
    counts: Box<[Count]>,
    shared: SharedPages,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    since: Timestamp,
    requests: u32,
    different: u32,
    /// A bit for each User-Agent, by its hash.
    agents: u64,
    bytes: u64,
    taken_for: TakenFor,
    pages: [u64; (BITS / 64) as usize],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenFor {
    Readers,
    Crawler,
}

const NO_COUNT: Count = Count {
    since: Timestamp::ZERO,
    requests: 0,
    different: 0,
    agents: 0,
    bytes: 0,
    taken_for: TakenFor::Readers,
    pages: [0; (BITS / 64) as usize],
};

impl Default for CrawlerWatch {
    fn default() -> Self {
        Self {
            blocks: vec![Block::NONE; BLOCKS].into(),
            counts: vec![NO_COUNT; BLOCKS].into(),
            shared: SharedPages::default(),
        }
    }
}

impl CrawlerWatch {
    /// Notes a request for a page, and tells what its block is taken for. A page that others ask
    /// for as well is a reader's also where the rest of its block is a crawler's.
    pub fn note(&mut self, now: Timestamp, request: &PageRequest) -> Noted {
        let place = self.find(request.block);
        let is_crawler = place.is_some_and(|place| self.is_crawler(now, place));
        let is_shared = match is_crawler {
            // What a crawler asks for is no sign of what readers want.
            true => self.shared.has(now, request.page),
            false => self.shared.note(now, request.page, request.block),
        };
        if is_shared {
            return Noted::Reader;
        }
        let place = place.unwrap_or_else(|| self.admit(now, request.block));
        let count = &mut self.counts[place];
        count.roll(now);
        let before = count.bytes;
        count.add(request);
        if is_crawler {
            return Noted::Crawler;
        }
        if !count.is_enough(PAGES) {
            return Noted::Reader;
        }
        count.taken_for = TakenFor::Crawler;
        Noted::Recognised { bytes: before }
    }

    /// Whether `block` is taken for a crawler's now.
    pub fn suspects(&mut self, now: Timestamp, block: Block) -> bool {
        let place = self.find(block);
        place.is_some_and(|place| self.is_crawler(now, place))
    }

    /// How many blocks are taken for crawlers' now.
    pub fn crawlers(&self, now: Timestamp) -> usize {
        let all = self.counts.iter();
        all.filter(|count| count.worth(now).0).count()
    }

    fn is_crawler(&mut self, now: Timestamp, place: usize) -> bool {
        let count = &mut self.counts[place];
        if count.taken_for == TakenFor::Crawler {
            count.roll(now);
        }
        count.taken_for == TakenFor::Crawler
    }

    fn ways(block: Block) -> std::ops::Range<usize> {
        let first = mix(block.0) as usize % (BLOCKS / WAYS) * WAYS;
        first..first + WAYS
    }

    fn find(&self, block: Block) -> Option<usize> {
        Self::ways(block).find(|&place| self.blocks[place] == block)
    }

    /// Gives `block` the place of the one that is missed least.
    fn admit(&mut self, now: Timestamp, block: Block) -> usize {
        let ways = Self::ways(block);
        let first = ways.start;
        let worth = |place: &usize| self.counts[*place].worth(now);
        let place = ways.min_by_key(worth).unwrap_or(first);
        self.blocks[place] = block;
        self.counts[place] = Count {
            since: now,
            ..NO_COUNT
        };
        place
    }
}

impl Count {
    /// Begins the next minute where it is time: a crawler that has done little is none any more.
    fn roll(&mut self, now: Timestamp) {
        let passed = now.since(self.since);
        if passed < MINUTE && self.different < BITS_FULL {
            return;
        }
        let goes_on = passed < 2 * MINUTE && self.is_enough(PAGES / 4);
        *self = Self {
            since: now,
            taken_for: match self.taken_for {
                TakenFor::Crawler if goes_on => TakenFor::Crawler,
                TakenFor::Crawler | TakenFor::Readers => TakenFor::Readers,
            },
            ..NO_COUNT
        };
    }

    fn add(&mut self, request: &PageRequest) {
        let bit = (mix(request.page) % u64::from(BITS)) as usize;
        let word = &mut self.pages[bit / 64];
        let mask = 1 << (bit % 64);
        if *word & mask == 0 {
            *word |= mask;
            self.different += 1;
        }
        self.requests += 1;
        self.agents |= 1 << (mix(request.agent) % 64);
        self.bytes = self.bytes.saturating_add(request.bytes);
    }

    /// Whether `pages` for each User-Agent were asked for, hardly any of them twice.
    fn is_enough(&self, pages: u32) -> bool {
        let agents = self.agents.count_ones().clamp(1, AGENTS_MAX);
        self.different >= pages * agents && self.different * 4 >= self.requests * 3
    }

    /// How much a block would be missed.
    fn worth(&self, now: Timestamp) -> (bool, u32) {
        let is_old = now.since(self.since) >= 2 * MINUTE;
        let is_crawler = self.taken_for == TakenFor::Crawler && !is_old;
        (is_crawler, if is_old { 0 } else { self.different })
    }
}

/// Spreads the bits of a hash (the finaliser of SplitMix64).
const fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests;
