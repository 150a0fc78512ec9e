//! How the few copy orders that may be under way are shared among the rescue servers.
//!
//! Why: a rescue server that takes connections and never answers holds an order until it is late.
//! Several of them, each with all that one may have, would stop the copies to everybody else.
//!
//! - The second half of the places is only for rescue servers that have no order under way.
//! - One whose order was late rests altogether, twice as long each time; then it gets one order at
//!   a time, until it holds a copy.

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::{LinkId, Timestamp};

/// Orders under way in all. They share what the link has left over.
const ORDERS_MAX: usize = 8;

/// Orders under way to one rescue server: one on its way and one being stored.
const ORDERS_PER_LINK: usize = 2;

/// Beyond so many only who has none gets one.
const ORDERS_AT_WILL: usize = ORDERS_MAX / 2;

/// Control intervals for which a rescue server rests after a late order: as long as it was waited
/// for. Twice as many each time, up to [`REST_MAX`].
const REST_MIN: u32 = 30;

/// The same at most: about a quarter of an hour at one second.
const REST_MAX: u32 = REST_MIN << 5;

/// See the file header.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    /// Those whose last order was late.
    late: BTreeMap<LinkId, Rest>,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Timestamp,
    /// Since it held something.
    times: u32,
}

impl Shares {
    /// An order to `link` was late. Two that are late together count once.
    pub(super) fn note_late(&mut self, now: Timestamp, link: LinkId, interval: Duration) {
        let times = self.late.get(&link).map_or(0, |rest| rest.times);
        let rests = self.late.get(&link).is_some_and(|rest| now < rest.until);
        if !rests {
            let count = REST_MIN << times.min(5);
            let rest = Rest {
                until: now + interval * count.min(REST_MAX),
                times: times.saturating_add(1),
            };
            self.late.insert(link, rest);
        }
    }

    /// `link` holds what it was ordered to.
    pub(super) fn note_held(&mut self, link: LinkId) {
        self.late.remove(&link);
    }

    /// Forgets all others.
    pub(super) fn retain(&mut self, links: &[LinkId]) {
        self.late.retain(|link, _| links.contains(link));
    }

    /// Whether anybody may get an order.
    pub(super) fn is_room(under_way: &BTreeMap<LinkId, usize>) -> bool {
        under_way.values().sum::<usize>() < ORDERS_MAX
    }

    /// Whether `link` is asked at all: another home is found for what would go to one that rests,
    /// or that is doubted and has its one order.
    pub(super) fn is_trusted(
        &self,
        now: Timestamp,
        link: LinkId,
        under_way: &BTreeMap<LinkId, usize>,
    ) -> bool {
        let Some(rest) = self.late.get(&link) else {
            return true;
        };
        now >= rest.until && !under_way.contains_key(&link)
    }

    /// Whether `link` may get an order beside those that are `under_way`.
    pub(super) fn allow(
        &self,
        now: Timestamp,
        link: LinkId,
        under_way: &BTreeMap<LinkId, usize>,
    ) -> bool {
        let own = under_way.get(&link).copied().unwrap_or_default();
        let total = under_way.values().sum::<usize>();
        let late = self.late.get(&link);
        let rests = late.is_some_and(|rest| now < rest.until);
        let is_doubted = late.is_some();
        match own {
            0 => !rests && total < ORDERS_MAX,
            own => !is_doubted && own < ORDERS_PER_LINK && total < ORDERS_AT_WILL,
        }
    }
}
