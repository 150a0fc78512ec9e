//! Takes what another registry tells.
//!
//! The newer version of a name wins, wherever it comes from (RFC 3528 section 4.3), so registries
//! that have heard the same agree, in whatever order they heard it. A peer's word passes the same
//! checks as that of a site: an address that may not be registered here does not come in by the
//! back door.
//!
//! What is left of an entry's life is the peer's word alone, since it changes on the way. Where the
//! site has signed for how long it is there, no peer can make that longer, or end it early: an
//! entry that was forgotten here at once would make us leave out who is there, in the peer's place.
//! So with how long a farewell is remembered: no peer makes us forget it while the entry that it
//! ended here could still live, or its old word, told once more, would bring back who has left.

use std::time::Duration;

use levee_vocab::Timestamp;
use levee_wire::mesh::{ToldEntry, ToldGone};
use levee_wire::registry::{Entry, Farewell, Refusal};

use crate::catalog::{Change, Held, Known, MEMORY, version_of};
use crate::departed::{Departed, Parting};
use crate::registry::Registry;
use crate::sums::Version;

/// What came of a peer's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// It was newer than what was known; none where nobody need be told.
    News(Option<Change>),
    /// It was known.
    Known,
    /// Something newer is known.
    Older,
    /// It is not taken.
    Refused(Refusal),
}

impl Registry {
    pub(crate) fn merge_entry(&mut self, now: Timestamp, clock: u64, told: ToldEntry) -> Merged {
        let ToldEntry { entry, owner, .. } = told;
        let address = self.limits.check_address(owner, entry.rescue.ip());
        let checked = address.and_then(|()| self.limits.check_stamp(entry.stamp, clock));
        if let Err(refusal) = checked {
            return Merged::Refused(refusal);
        }
        let known = self.catalog.known(&entry.site.host);
        if let Some(merged) = compare(known, version_of(&entry, owner)) {
            if merged == Merged::Known {
                self.catalog.complete(entry);
            }
            return merged;
        }
        // One address may have filled its part at each of several registries: they must agree all
        // the same, so here only the whole is limited.
        let is_new = !matches!(known, Some(Known::Here(_)));
        if is_new && self.catalog.count() >= self.limits.entries_max {
            return Merged::Refused(Refusal::Full);
        }
        let lifetime = self.life_left(&entry, clock);
        Merged::News(Some(self.catalog.put(Held {
            site: entry.site,
            rescue: entry.rescue,
            free: entry.free,
            owner,
            expires: now + lifetime,
            stamp: entry.stamp,
            https: entry.https,
            proof: entry.proof,
        })))
    }

    /// How long an entry that a peer tells of lives on here. `clock` is in milliseconds since 1970,
    /// as its stamp is where it is signed. The clocks of the site and of this machine may differ:
    /// then the peer's word counts, as far as the site has asked for so much.
    fn life_left(&self, entry: &Entry, clock: u64) -> Duration {
        let limits = &self.limits;
        let told = entry.lifetime.min(limits.lifetime_max);
        let Some(proof) = &entry.proof else {
            return told;
        };
        let asked = proof.asked.clamp(limits.lifetime_min, limits.lifetime_max);
        let age = Duration::from_millis(clock.saturating_sub(entry.stamp));
        told.max(asked.saturating_sub(age)).min(asked)
    }

    pub(crate) fn merge_gone(&mut self, now: Timestamp, clock: u64, told: ToldGone) -> Merged {
        let farewell = &told.farewell;
        if let Err(refusal) = self.limits.check_stamp(farewell.stamp, clock) {
            return Merged::Refused(refusal);
        }
        let version = Version::farewell(farewell.stamp);
        let known = self.catalog.known(&farewell.site);
        if let Some(merged) = compare(known, version) {
            return merged;
        }
        // As where the site itself says it: until no copy of the entry that we had can live.
        let at_least = match known {
            Some(Known::Here(held)) => held.expires + MEMORY,
            Some(Known::Gone(before)) => before.until,
            None => now,
        };
        let left = self.memory_left(farewell, told.left, clock);
        let departed = Departed {
            version,
            until: at_least.max(now + left),
            parting: Parting::Deregistered(told.farewell.proof),
        };
        Merged::News(self.catalog.depart(&told.farewell.site, departed))
    }

    /// How long a farewell is worth remembering by the word of the peer that tells of it. Where the
    /// site has signed when it said it, that is as long as an entry from before can live: told
    /// again and again, it must not fill our memory for ever.
    fn memory_left(&self, farewell: &Farewell, told: Duration, clock: u64) -> Duration {
        let longest = self.limits.lifetime_max + MEMORY;
        let age = match farewell.proof {
            Some(_) => Duration::from_millis(clock.saturating_sub(farewell.stamp)),
            None => Duration::ZERO,
        };
        told.min(longest.saturating_sub(age))
    }
}

/// None where `told` is news.
fn compare(known: Option<Known<'_>>, told: Version) -> Option<Merged> {
    let known = known?.version();
    match known.cmp(&told) {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Equal => Some(Merged::Known),
        std::cmp::Ordering::Greater => Some(Merged::Older),
    }
}
