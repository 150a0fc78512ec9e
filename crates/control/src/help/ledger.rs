//! What was given to whom in the last 24 hours, in bounded memory, over restarts.
//!
//! The window rolls: a calendar day would let somebody have two days' worth around midnight, and
//! whose midnight? Bytes are noted by the hour. An hour leaves the window only when its last byte
//! is 24 hours old, so in no 24 hours more is given than the limit. When it leaves, its bytes may
//! be given again.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use levee_vocab::{HostName, Timestamp};

/// Length of the window.
const WINDOW: Duration = Duration::from_hours(24);

/// Bytes are added up for so long.
const HOUR: Duration = Duration::from_hours(1);

/// The longest that anything is remembered.
pub const GIVEN_WINDOW: Duration = Duration::from_hours(25);

/// Most origins that are told apart. Those beyond count as one, whatever they are called.
const NAMES_MAX: usize = 1024;

/// What was given in an hour: a line of the state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRecord {
    /// To whom; none for all that are not told apart.
    pub origin: Option<HostName>,
    /// How much.
    pub bytes: u64,
    /// When it is forgotten, from now.
    pub left: Duration,
}

/// See the file header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// The oldest first.
    hours: VecDeque<Hour>,
    by_origin: BTreeMap<Option<HostName>, u64>,
    total: u64,
    /// What a run before this one gave, until there is a clock.
    restored: Vec<GivenRecord>,
    /// What the state folder does not know yet, and since when.
    unsaved: u64,
    saved: Timestamp,
}

#[derive(Clone, Debug)]
struct Hour {
    /// Nothing is added from then on.
    closes: Timestamp,
    /// It leaves the window.
    leaves: Timestamp,
    given: BTreeMap<Option<HostName>, u64>,
}

impl Ledger {
    /// What a run before this one gave.
    pub(crate) fn restore(records: Vec<GivenRecord>) -> Self {
        Self {
            restored: records,
            ..Self::default()
        }
    }

    /// `origin` was given so many bytes.
    pub(crate) fn add(&mut self, now: Timestamp, origin: &HostName, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.pass(now);
        let key = self.key(origin);
        if self.hours.back().is_none_or(|hour| now >= hour.closes) {
            let closes = now + HOUR;
            self.hours.push_back(Hour {
                closes,
                leaves: closes + WINDOW,
                given: BTreeMap::new(),
            });
        }
        if let Some(hour) = self.hours.back_mut() {
            *hour.given.entry(key.clone()).or_default() += bytes;
        }
        *self.by_origin.entry(key).or_default() += bytes;
        self.total += bytes;
        self.unsaved += bytes;
    }

    /// Forgets what has left the window.
    pub(crate) fn pass(&mut self, now: Timestamp) {
        for record in std::mem::take(&mut self.restored) {
            self.take_back(now, record);
        }
        while let Some(hour) = self.hours.pop_front_if(|hour| now >= hour.leaves) {
            for (key, bytes) in hour.given {
                self.total = self.total.saturating_sub(bytes);
                if let Some(sum) = self.by_origin.get_mut(&key) {
                    *sum = sum.saturating_sub(bytes);
                }
            }
            self.by_origin.retain(|_, sum| *sum > 0);
        }
    }

    /// Bytes given to all in the window.
    pub(crate) fn total(&self) -> u64 {
        let restored = self.restored.iter().map(|record| record.bytes);
        self.total + restored.sum::<u64>()
    }

    /// Bytes given to one.
    pub(crate) fn of(&self, origin: &HostName) -> u64 {
        let key = self.key(origin);
        let of_before = self.restored.iter().filter(|record| record.origin == key);
        let of_before = of_before.map(|record| record.bytes).sum::<u64>();
        self.by_origin.get(&key).copied().unwrap_or_default() + of_before
    }

    /// What was given to whom, most first.
    pub(crate) fn by_origin(&self) -> Vec<(Option<HostName>, u64)> {
        let mut all: Vec<_> = self.by_origin.clone().into_iter().collect();
        all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        all
    }

    /// Whether the state folder should be told: a hundredth of the lowest limit is not in it, or
    /// anything is for a minute; but not all the time. The caller writes it then.
    pub(crate) fn is_to_be_saved(&mut self, now: Timestamp, lowest_limit: Option<u64>) -> bool {
        const EVERY: Duration = Duration::from_mins(1);
        const SELDOM: Duration = Duration::from_secs(2);
        let age = now.since(self.saved);
        let is_much = lowest_limit.is_some_and(|limit| self.unsaved >= limit / 100);
        let is_due = self.unsaved > 0 && (age >= EVERY || (is_much && age >= SELDOM));
        if is_due {
            self.unsaved = 0;
            self.saved = now;
        }
        is_due
    }

    /// What to write to the state folder.
    pub(crate) fn records(&self, now: Timestamp) -> Vec<GivenRecord> {
        let of_hour = |hour: &Hour| {
            let left = hour.leaves.since(now);
            let given = hour.given.clone().into_iter();
            given.map(move |(origin, bytes)| GivenRecord {
                origin,
                bytes,
                left,
            })
        };
        let hours = self.hours.iter().flat_map(of_hour);
        self.restored.iter().cloned().chain(hours).collect()
    }

    /// A record of before counts until it was to be forgotten.
    fn take_back(&mut self, now: Timestamp, record: GivenRecord) {
        let leaves = now + record.left.min(GIVEN_WINDOW);
        let place = self.hours.partition_point(|hour| hour.leaves < leaves);
        let is_there = |hour: &Hour| hour.leaves == leaves;
        if !self.hours.get(place).is_some_and(is_there) {
            let hour = Hour {
                closes: now,
                leaves,
                given: BTreeMap::new(),
            };
            self.hours.insert(place, hour);
        }
        let key = record.origin.and_then(|origin| self.key(&origin));
        if let Some(hour) = self.hours.get_mut(place) {
            *hour.given.entry(key.clone()).or_default() += record.bytes;
        }
        *self.by_origin.entry(key).or_default() += record.bytes;
        self.total += record.bytes;
    }

    /// Under what `origin` is noted.
    fn key(&self, origin: &HostName) -> Option<HostName> {
        let key = Some(origin.clone());
        let is_known = self.by_origin.contains_key(&key);
        key.filter(|_| is_known || self.by_origin.len() < NAMES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> HostName {
        format!("www.site{number}.example").parse().unwrap()
    }

    fn hours(count: u64) -> Timestamp {
        Timestamp::from_seconds(count * 3600)
    }

    #[test]
    fn what_was_given_counts_for_a_day_at_least_and_an_hour_more_at_most() {
        let mut ledger = Ledger::default();
        ledger.add(hours(1), &name(1), 100);
        ledger.add(hours(1) + HOUR / 2, &name(2), 50);
        ledger.pass(hours(25) + HOUR / 2);
        assert_eq!((ledger.total(), ledger.of(&name(1))), (150, 100));
        ledger.pass(hours(26));
        assert_eq!((ledger.total(), ledger.of(&name(1))), (0, 0));
    }

    #[test]
    fn a_restart_forgets_nothing_and_prolongs_nothing() {
        let mut before = Ledger::default();
        before.add(hours(100), &name(1), 100);
        before.add(hours(110), &name(2), 50);
        let records = before.records(hours(112));
        // The clock begins anew with the machine.
        let mut ledger = Ledger::restore(records);
        assert_eq!((ledger.total(), ledger.of(&name(1))), (150, 100));
        ledger.pass(hours(0));
        assert_eq!((ledger.total(), ledger.of(&name(1))), (150, 100));
        ledger.pass(hours(13));
        assert_eq!((ledger.total(), ledger.of(&name(2))), (50, 50));
        ledger.pass(hours(23));
        assert_eq!(ledger.total(), 0);
    }

    #[test]
    fn names_without_end_are_not_told_apart() {
        let mut ledger = Ledger::default();
        for number in 0..3000 {
            ledger.add(hours(1), &name(number), 1);
        }
        assert_eq!(ledger.total(), 3000);
        assert_eq!(ledger.of(&name(0)), 1);
        assert_eq!(ledger.of(&name(2999)), 3000 - NAMES_MAX as u64);
        assert!(ledger.by_origin().len() <= NAMES_MAX + 1);
    }

    #[test]
    fn it_is_saved_by_amount_or_by_time_but_not_all_the_time() {
        let mut ledger = Ledger::default();
        let at = Timestamp::from_seconds;
        assert!(!ledger.is_to_be_saved(at(100), Some(1000)));
        ledger.add(at(100), &name(1), 9);
        assert!(ledger.is_to_be_saved(at(100), Some(1000)));
        ledger.add(at(101), &name(1), 500);
        assert!(!ledger.is_to_be_saved(at(101), Some(1000)));
        assert!(ledger.is_to_be_saved(at(102), Some(1000)));
        ledger.add(at(103), &name(1), 9);
        assert!(!ledger.is_to_be_saved(at(161), Some(1000)));
        assert!(ledger.is_to_be_saved(at(162), None));
    }
}
