//! What the cache and the fetches have done since the start.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::copies::{CopyEnd, CopyTally};
use super::homes::{HomeException, HomeTally};
use super::integrity::IntegrityTally;
use crate::flight::{FetchError, Space, lock};

/// All figures at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchCounters {
    /// Requests answered from the cache with a fresh object.
    pub hits: u64,
    /// Requests answered from the cache with an object past its lifetime, because its source could
    /// not be reached a moment ago.
    pub stale_hits: u64,
    /// Requests that the cache could not answer.
    pub misses: u64,
    /// Of these, those that shared another's fetch.
    pub collapsed: u64,
    /// Of these, those whose response is for one visitor.
    pub passed: u64,
    /// Requests refused because too many wait or too many fetches run.
    pub overloaded: u64,
    /// Requests sent to sources; a repeated one counts twice.
    pub fetches: u64,
    /// Of these, repeated on a fresh connection.
    pub retries: u64,
    /// Responses that said that nothing has changed.
    pub revalidated: u64,
    /// Objects put into the cache.
    pub stored: u64,
    /// Objects that were served but not kept, because neither memory nor disk had room.
    pub unkept: u64,
    /// Renewals of hot objects that were still fresh.
    pub early_renewals: u64,
    /// Purges carried out.
    pub purges: u64,
    /// Objects that they removed or made old.
    pub purged: u64,
    /// Bytes of heads and bodies from sources.
    pub bytes: u64,
    /// Requests sent to other rescue servers as the homes of objects.
    pub home_asks: u64,
    /// Of these, those that a home answered.
    pub home_answers: u64,
    /// Bytes of heads and bodies from homes.
    pub home_bytes: u64,
    /// How often the origin, or the next home, was asked for an object that has its home elsewhere,
    /// by reason.
    pub home_exceptions: BTreeMap<&'static str, u64>,
    /// Objects of origins whose key is known, by what their signature said of them.
    pub signatures: BTreeMap<&'static str, u64>,
    /// Copies that origins wanted to have made here, by what became of them.
    pub copies: BTreeMap<&'static str, u64>,
    /// Bytes of heads and bodies that origins have pushed.
    pub copy_bytes: u64,
    /// Failed fetches by cause.
    pub errors: BTreeMap<&'static str, u64>,
    /// Bytes by source.
    pub sources: BTreeMap<Space, SourceCounters>,
}

/// What came from one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Requests sent.
    pub fetches: u64,
    /// Bytes of heads and bodies.
    pub bytes: u64,
}

impl FetchCounters {
    /// Failed fetches of every cause.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// The live figures. Written by look-ups and by fetch tasks, which are never many at a time.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub hits: AtomicU64,
    pub stale_hits: AtomicU64,
    pub misses: AtomicU64,
    pub collapsed: AtomicU64,
    pub passed: AtomicU64,
    pub overloaded: AtomicU64,
    pub retries: AtomicU64,
    pub revalidated: AtomicU64,
    pub stored: AtomicU64,
    pub unkept: AtomicU64,
    pub early_renewals: AtomicU64,
    pub purges: AtomicU64,
    pub purged: AtomicU64,
    pub(super) homes: HomeTally,
    pub(super) copies: CopyTally,
    pub(super) integrity: IntegrityTally,
    errors: [AtomicU64; FetchError::ALL.len()],
    sources: Mutex<BTreeMap<Space, SourceCounters>>,
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    count_many(counter, 1);
}

/// So many more.
pub(crate) fn count_many(counter: &AtomicU64, many: u64) {
    counter.fetch_add(many, Ordering::Relaxed);
}

impl Tally {
    pub fn fetched(&self, space: &Space) {
        let mut sources = lock(&self.sources);
        sources.entry(space.clone()).or_default().fetches += 1;
    }

    pub fn received(&self, space: &Space, bytes: u64) {
        let mut sources = lock(&self.sources);
        sources.entry(space.clone()).or_default().bytes += bytes;
    }

    pub fn failed(&self, error: FetchError) {
        for (kind, counter) in FetchError::ALL.iter().zip(&self.errors) {
            if *kind == error {
                count(counter);
            }
        }
    }

    pub fn read(&self) -> FetchCounters {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let sources = lock(&self.sources).clone();
        let errors = FetchError::ALL.iter().zip(&self.errors);
        let copies = CopyEnd::ALL.iter().zip(&self.copies.ends);
        let exceptions = HomeException::ALL.iter().zip(&self.homes.exceptions);
        FetchCounters {
            hits: value(&self.hits),
            stale_hits: value(&self.stale_hits),
            misses: value(&self.misses),
            collapsed: value(&self.collapsed),
            passed: value(&self.passed),
            overloaded: value(&self.overloaded),
            fetches: sources.values().map(|source| source.fetches).sum(),
            retries: value(&self.retries),
            revalidated: value(&self.revalidated),
            stored: value(&self.stored),
            unkept: value(&self.unkept),
            early_renewals: value(&self.early_renewals),
            purges: value(&self.purges),
            purged: value(&self.purged),
            bytes: sources.values().map(|source| source.bytes).sum(),
            home_asks: value(&self.homes.asks),
            home_answers: value(&self.homes.answers),
            home_bytes: value(&self.homes.bytes),
            home_exceptions: exceptions
                .map(|(why, counter)| (why.label(), value(counter)))
                .collect(),
            signatures: self.integrity.read(),
            copies: copies
                .map(|(end, counter)| (end.label(), value(counter)))
                .collect(),
            copy_bytes: value(&self.copies.bytes),
            errors: errors
                .map(|(error, counter)| (error.label(), value(counter)))
                .collect(),
            sources,
        }
    }
}
