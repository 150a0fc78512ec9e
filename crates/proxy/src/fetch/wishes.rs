//! Meeting visitors' wishes where the settings say so: what is stored may not be good enough for a
//! request, or may do although it is old.
//!
//! A visitor who wants something newer joins the fetch that is under way, or begins one that all
//! may join, so an object costs its source one fetch at a time however many visitors reload.
//! Wishes towards origins that we rescue are never met.

use levee_vocab::Timestamp;

use super::Shared;
use crate::cache::{Freshness, Stored};
use crate::cacheability::{Had, Wish, Wishes};
use crate::flight::{Asker, RequestHeaders, SpaceRef};

/// How a stored response may be used for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wished {
    /// As for any other.
    AsUsual,
    /// Although it is old.
    EvenOld,
    /// Not before its source was asked.
    Newer,
}

impl Shared {
    /// How `stored` may be used for a request with these headers.
    pub(super) fn wished(
        &self,
        space: SpaceRef<'_>,
        stored: &Stored,
        headers: &(impl RequestHeaders + ?Sized),
        now: Timestamp,
    ) -> Wished {
        let Some(wish) = self.wish(space, headers) else {
            return Wished::AsUsual;
        };
        let had = Had {
            age: stored.age(now),
            fresh_for: stored.fresh_until.since(now),
            stale_since: now.since(stored.fresh_until),
        };
        let is_met = wish.is_met_by(had);
        match stored.freshness(now) {
            // What must not be used after its lifetime has none after it.
            Freshness::Spared | Freshness::Shown | Freshness::Stale
                if is_met && now < stored.stale_until =>
            {
                Wished::EvenOld
            }
            Freshness::Fresh if !is_met => Wished::Newer,
            Freshness::Spared | Freshness::Shown if wish.asks_for_new() => Wished::Newer,
            Freshness::Fresh | Freshness::Spared | Freshness::Shown | Freshness::Stale => {
                Wished::AsUsual
            }
        }
    }

    /// Whether nothing of a request's response is to be kept.
    pub(super) fn is_to_be_forgotten(&self, asker: &Asker) -> bool {
        let wish = self.wish(asker.key.space.borrowed(), &asker.headers);
        wish.is_some_and(|wish| wish.no_store)
    }

    fn wish(&self, space: SpaceRef<'_>, headers: &(impl RequestHeaders + ?Sized)) -> Option<Wish> {
        match (self.settings.wishes, space) {
            (Wishes::Met, SpaceRef::Own(_)) => Some(Wish::of(headers)),
            (Wishes::Met, SpaceRef::Origin(..)) | (Wishes::Ignored, _) => None,
        }
    }
}
