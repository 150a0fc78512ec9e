//! The flights under way: which can be joined, and how many there are, in all and for each source.

use std::collections::HashMap;
use std::sync::Arc;

use levee_vocab::Purge;

use super::FetchSettings;
use super::lane::Lane;
use super::purges::{Moment, PurgeLog, is_meant};
use crate::cache::CacheKey;
use crate::flight::{Flight, Overloaded, Party, Place, Source, Spaces};
use crate::tags::Tags;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Table {
    listed: HashMap<CacheKey, Listed>,
    /// Purges that flights under way may have been overtaken by.
    pub log: PurgeLog,
    sources: HashMap<Place, Lanes>,
    flights: usize,
}

/// A flight that can be joined.
struct Listed {
    flight: Arc<Flight>,
    /// Known when its head has come.
    tags: Option<Tags>,
}

/// How many fetches from one source run.
struct Lanes {
    flights: usize,
    /// Of these, renewals of objects that are still fresh.
    early: usize,
    shared: Arc<Lane>,
    private: Arc<Lane>,
}

/// The place of one flight in the table; given back with [`Table::release`].
pub(super) struct Ticket {
    pub flight: Arc<Flight>,
    /// Under which it can be joined, or could be.
    pub key: Option<CacheKey>,
    /// Where its fetch queues for its turn at the source.
    pub lane: Arc<Lane>,
    /// When the fetch began, by the log of purges.
    pub began: Moment,
    timing: Timing,
    place: Place,
}

/// Whether somebody would wait for a fetch if it did not run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    Due,
    Early,
}

/// Whether a flight can still be joined by those who ask for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Listed,
    Unlisted,
}

impl Table {
    /// How many flights are under way.
    pub fn len(&self) -> usize {
        self.flights
    }

    /// The flight that can be joined under `key`.
    pub fn find(&self, key: &CacheKey) -> Option<&Arc<Flight>> {
        self.listed.get(key).map(|listed| &listed.flight)
    }

    /// Takes a new flight in, listed under `key` where there is one.
    pub fn admit(
        &mut self,
        settings: &FetchSettings,
        source: &Source,
        flight: &Arc<Flight>,
        key: Option<CacheKey>,
    ) -> Result<Ticket, Overloaded> {
        if self.flights >= settings.flights_max {
            return Err(Overloaded::Flights);
        }
        let place = &source.place;
        let lanes = self.sources.entry(place.clone());
        let lanes = lanes.or_insert_with(|| Lanes {
            flights: 0,
            early: 0,
            shared: Lane::new(settings.shared_width(source)),
            private: Lane::new(settings.private_width(source)),
        });
        if lanes.flights >= settings.flights_per_source_max {
            return Err(Overloaded::Source);
        }
        lanes.flights += 1;
        self.flights += 1;
        let lane = match flight.party {
            Party::Shared => &lanes.shared,
            Party::Private => &lanes.private,
        };
        let ticket = Ticket {
            flight: Arc::clone(flight),
            lane: Arc::clone(lane),
            began: self.log.fetch_begins(),
            timing: Timing::Due,
            place: place.clone(),
            key: key.clone(),
        };
        if let Some(key) = key {
            let flight = Arc::clone(flight);
            self.listed.insert(key, Listed { flight, tags: None });
        }
        Ok(ticket)
    }

    /// As [`Table::admit`], for the renewal of an object that is still fresh: only so many of a
    /// source's turns are for these.
    pub fn admit_early(
        &mut self,
        settings: &FetchSettings,
        source: &Source,
        flight: &Arc<Flight>,
        key: CacheKey,
    ) -> Result<Ticket, Overloaded> {
        let early = self
            .sources
            .get(&source.place)
            .map_or(0, |lanes| lanes.early);
        if early >= settings.early_width(source) {
            return Err(Overloaded::Source);
        }
        let mut ticket = self.admit(settings, source, flight, Some(key))?;
        ticket.timing = Timing::Early;
        if let Some(lanes) = self.sources.get_mut(&source.place) {
            lanes.early += 1;
        }
        Ok(ticket)
    }

    /// Nobody can join the flight any more; the next who asks begins another.
    pub fn unlist(&mut self, ticket: &Ticket) {
        let Some(key) = &ticket.key else { return };
        if self.is_listed(ticket) == Listing::Listed {
            self.listed.remove(key);
        }
    }

    /// The flight proved to be for another key: it is found there from now on, unless another
    /// flight is there already. `tags` are those of its response.
    pub fn relist(&mut self, ticket: &mut Ticket, key: CacheKey, tags: &Tags) {
        if self.is_listed(ticket) == Listing::Unlisted {
            ticket.key = Some(key);
            return;
        }
        self.unlist(ticket);
        self.listed.entry(key.clone()).or_insert_with(|| Listed {
            flight: Arc::clone(&ticket.flight),
            tags: Some(tags.clone()),
        });
        ticket.key = Some(key);
    }

    fn is_listed(&self, ticket: &Ticket) -> Listing {
        let listed = ticket.key.as_ref().and_then(|key| self.listed.get(key));
        match listed {
            Some(listed) if Arc::ptr_eq(&listed.flight, &ticket.flight) => Listing::Listed,
            Some(_) | None => Listing::Unlisted,
        }
    }

    /// The flight is over.
    pub fn release(&mut self, ticket: &Ticket) {
        self.unlist(ticket);
        self.log.fetch_ends(ticket.began);
        self.flights -= 1;
        if let Some(lanes) = self.sources.get_mut(&ticket.place) {
            lanes.flights -= 1;
            lanes.early -= usize::from(ticket.timing == Timing::Early);
            if lanes.flights == 0 {
                self.sources.remove(&ticket.place);
            }
        }
    }

    /// Flights that a purge is about, or may be, go on for those who wait, but cannot be joined any
    /// more. Gives the purge's number in the log.
    pub fn purge_begins(&mut self, spaces: &Spaces, purge: &Purge) -> u64 {
        self.listed
            .retain(|key, listed| !is_meant(spaces, purge, &key.object, listed.tags.as_ref()));
        self.log.purge_begins(spaces, purge)
    }
}
