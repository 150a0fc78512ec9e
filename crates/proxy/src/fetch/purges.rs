//! Purges, and the fetches that they overtake.
//!
//! ```text
//!  purge:   noted in the log ─▶ entries of the cache, a few at a time ─▶ done
//!  fetch:   begins ──────────── request to the source ──────────▶ answer ─▶ ask the log ─▶ keep
//! ```
//!
//! An answer whose fetch began before a purge was done may be older than the change that the purge
//! is about. So each fetch remembers when it began, and asks the log before it keeps anything: what
//! was purged since is not kept, and what was purged softly is kept as old. That also holds for an
//! old object that a fetch took along to fall back on. Who waits for such a fetch already gets its
//! answer; nobody joins it any more.
//!
//! The log forgets a purge when no fetch is under way that began before its end.

use std::collections::BTreeMap;

use levee_vocab::{Purge, PurgeKind, PurgeScope};

use super::counters::count_many;
use super::{Fetcher, Shared};
use crate::flight::{ObjectKey, Space, Spaces, lock};
use crate::tags::Tags;

/// Most purges in the log. Beyond it the oldest is replaced by a word about all objects: what was
/// under way then is not kept.
const LOG_MAX: usize = 1024;

/// A moment between two purges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

/// What the log says of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overtaken {
    No,
    Softly,
    Hard,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct PurgeLog {
    now: Moment,
    /// Fetches under way by when they began.
    under_way: BTreeMap<Moment, usize>,
    purges: Vec<Logged>,
    next_number: u64,
    /// Nothing is kept of what began before.
    nothing_before: Moment,
}

#[derive(Debug)]
struct Logged {
    number: u64,
    spaces: Spaces,
    purge: Purge,
    /// None while the cache is gone through.
    done: Option<Moment>,
}

impl PurgeLog {
    /// A fetch begins.
    pub fn fetch_begins(&mut self) -> Moment {
        *self.under_way.entry(self.now).or_default() += 1;
        self.now
    }

    /// A fetch that began then is over.
    pub fn fetch_ends(&mut self, began: Moment) {
        if let Some(count) = self.under_way.get_mut(&began) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&began);
                self.trim();
            }
        }
    }

    /// A purge begins; gives its number for [`PurgeLog::purge_ends`].
    pub fn purge_begins(&mut self, spaces: &Spaces, purge: &Purge) -> u64 {
        if self.purges.len() >= LOG_MAX {
            let oldest = self.purges.remove(0);
            let missed = oldest.done.unwrap_or(Moment(self.now.0 + 1));
            self.nothing_before = self.nothing_before.max(missed);
        }
        self.next_number += 1;
        self.purges.push(Logged {
            number: self.next_number,
            spaces: spaces.clone(),
            purge: purge.clone(),
            done: None,
        });
        self.next_number
    }

    /// The cache was gone through.
    pub fn purge_ends(&mut self, number: u64) {
        self.now.0 += 1;
        let now = self.now;
        let mut purges = self.purges.iter_mut();
        if let Some(logged) = purges.find(|logged| logged.number == number) {
            logged.done = Some(now);
        }
        self.trim();
    }

    /// Whether an answer of a fetch that began then was overtaken by a purge.
    pub fn overtaken(&self, began: Moment, object: &ObjectKey, tags: &Tags) -> Overtaken {
        if began < self.nothing_before {
            return Overtaken::Hard;
        }
        let mut verdict = Overtaken::No;
        for logged in &self.purges {
            let is_later = logged.done.is_none_or(|done| began < done);
            if !is_later || !is_meant(&logged.spaces, &logged.purge, object, Some(tags)) {
                continue;
            }
            match logged.purge.kind {
                PurgeKind::Hard => return Overtaken::Hard,
                PurgeKind::Soft => verdict = Overtaken::Softly,
            }
        }
        verdict
    }

    fn trim(&mut self) {
        let oldest = self.under_way.keys().next().copied();
        self.purges.retain(|logged| match (logged.done, oldest) {
            (None, _) => true,
            (Some(done), Some(oldest)) => oldest < done,
            (Some(_), None) => false,
        });
    }
}

/// Whether a purge is about an object. Where its tags are not known yet, any could be among them.
pub(super) fn is_meant(
    spaces: &Spaces,
    purge: &Purge,
    object: &ObjectKey,
    tags: Option<&Tags>,
) -> bool {
    spaces.include(&object.space)
        && match &purge.scope {
            PurgeScope::All => true,
            PurgeScope::Url(target) => target.as_str().as_bytes() == &object.target[..],
            PurgeScope::Tags(purged) => {
                tags.is_none_or(|tags| purged.iter().any(|tag| tags.has(tag.as_str())))
            }
        }
}

impl Fetcher {
    /// Removes objects of `spaces` from the cache, or makes them old; answers that are on their way
    /// too. Says how many objects were there. When it returns, nobody is given any of them as
    /// fresh.
    ///
    /// No lock is held for longer than some entries take, but all of it may take a while: many
    /// objects are not for a thread that keeps time.
    pub fn purge(&self, spaces: &Spaces, purge: &Purge) -> u64 {
        self.shared.purge(spaces, purge)
    }

    /// Forgets all objects of `space`, also those that are on their way: its rescue is over.
    pub fn forget(&self, space: &Space) {
        let all = Purge {
            scope: PurgeScope::All,
            kind: PurgeKind::Hard,
        };
        self.shared.go_through(&Spaces::One(space.clone()), &all);
    }
}

impl Shared {
    pub(super) fn purge(&self, spaces: &Spaces, purge: &Purge) -> u64 {
        let objects = self.go_through(spaces, purge);
        count_many(&self.tally.purges, 1);
        count_many(&self.tally.purged, objects);
        objects
    }

    /// As a purge, without counting as one.
    pub(super) fn go_through(&self, spaces: &Spaces, purge: &Purge) -> u64 {
        lock(&self.homes).purged(self.now(), spaces, purge);
        let number = lock(&self.table).purge_begins(spaces, purge);
        let objects = self.cache.purge(spaces, purge, self.now());
        lock(&self.table).log.purge_ends(number);
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(target: &'static str) -> ObjectKey {
        ObjectKey {
            space: Space::Own("site.example".parse().unwrap()),
            base: "http://site.example".into(),
            target: target.into(),
        }
    }

    fn url(target: &str, kind: PurgeKind) -> Purge {
        Purge::url(target, kind).unwrap()
    }

    fn purge(log: &mut PurgeLog, purge: &Purge) {
        let number = log.purge_begins(&Spaces::Own, purge);
        log.purge_ends(number);
    }

    #[test]
    fn what_began_before_the_end_of_a_purge_is_overtaken() {
        let mut log = PurgeLog::default();
        let none = Tags::default();
        let before = log.fetch_begins();
        let number = log.purge_begins(&Spaces::Own, &url("/a", PurgeKind::Hard));
        let during = log.fetch_begins();
        let asked = |log: &PurgeLog, began| log.overtaken(began, &object("/a"), &none);
        assert_eq!(asked(&log, before), Overtaken::Hard);
        log.purge_ends(number);
        let after = log.fetch_begins();
        assert_eq!(asked(&log, before), Overtaken::Hard);
        assert_eq!(asked(&log, during), Overtaken::Hard);
        assert_eq!(asked(&log, after), Overtaken::No);
        assert_eq!(log.overtaken(before, &object("/b"), &none), Overtaken::No);
    }

    #[test]
    fn a_hard_purge_counts_for_more_than_a_soft_one() {
        let mut log = PurgeLog::default();
        let none = Tags::default();
        let began = log.fetch_begins();
        purge(&mut log, &url("/a", PurgeKind::Soft));
        let asked = |log: &PurgeLog| log.overtaken(began, &object("/a"), &none);
        assert_eq!(asked(&log), Overtaken::Softly);
        purge(&mut log, &url("/a", PurgeKind::Hard));
        purge(&mut log, &url("/a", PurgeKind::Soft));
        assert_eq!(asked(&log), Overtaken::Hard);
    }

    #[test]
    fn the_log_is_empty_when_nothing_is_under_way_and_never_long() {
        let mut log = PurgeLog::default();
        let began = log.fetch_begins();
        for number in 0..LOG_MAX + 10 {
            purge(&mut log, &url(&format!("/{number}"), PurgeKind::Soft));
        }
        assert_eq!(log.purges.len(), LOG_MAX);
        let none = Tags::default();
        let verdict = log.overtaken(began, &object("/other"), &none);
        assert_eq!(verdict, Overtaken::Hard);
        let later = log.fetch_begins();
        assert_eq!(log.overtaken(later, &object("/0"), &none), Overtaken::No);
        log.fetch_ends(began);
        log.fetch_ends(later);
        assert!(log.purges.is_empty() && log.under_way.is_empty());
        purge(&mut log, &url("/a", PurgeKind::Hard));
        assert!(log.purges.is_empty());
    }
}
