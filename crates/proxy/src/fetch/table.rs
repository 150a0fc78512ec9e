//! The flights under way: which can be joined, and how many there are, in all and for each source.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use super::FetchSettings;
use super::lane::Lane;
use crate::cache::CacheKey;
use crate::flight::{Flight, ObjectKey, Overloaded, Party, Source, Space};

/// See the head of this file.
#[derive(Default)]
pub(super) struct Table {
    listed: HashMap<CacheKey, Arc<Flight>>,
    sources: HashMap<SocketAddr, Lanes>,
    flights: usize,
}

/// How many fetches from one source run.
struct Lanes {
    flights: usize,
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
    address: SocketAddr,
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
        self.listed.get(key)
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
        let address = source.address;
        let shared_width = settings.shared_width(source.purpose);
        let lanes = self.sources.entry(address).or_insert_with(|| Lanes {
            flights: 0,
            shared: Lane::new(shared_width),
            private: Lane::new(settings.private_fetches_per_source),
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
            address,
            key: key.clone(),
        };
        if let Some(key) = key {
            self.listed.insert(key, Arc::clone(flight));
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
    /// flight is there already.
    pub fn relist(&mut self, ticket: &mut Ticket, key: CacheKey) {
        if self.is_listed(ticket) == Listing::Unlisted {
            ticket.key = Some(key);
            return;
        }
        self.unlist(ticket);
        self.listed
            .entry(key.clone())
            .or_insert_with(|| Arc::clone(&ticket.flight));
        ticket.key = Some(key);
    }

    fn is_listed(&self, ticket: &Ticket) -> Listing {
        let listed = ticket.key.as_ref().and_then(|key| self.listed.get(key));
        match listed {
            Some(flight) if Arc::ptr_eq(flight, &ticket.flight) => Listing::Listed,
            Some(_) | None => Listing::Unlisted,
        }
    }

    /// The flight is over.
    pub fn release(&mut self, ticket: &Ticket) {
        self.unlist(ticket);
        self.flights -= 1;
        if let Some(lanes) = self.sources.get_mut(&ticket.address) {
            lanes.flights -= 1;
            if lanes.flights == 0 {
                self.sources.remove(&ticket.address);
            }
        }
    }

    /// Flights for `space` go on for those who wait, but keep nothing and cannot be joined.
    pub fn forget(&mut self, space: &Space) {
        self.forget_where(|object| object.space == *space);
    }

    /// As [`Table::forget`], for the flights of one object, all its variants.
    pub fn forget_object(&mut self, object: &ObjectKey) {
        self.forget_where(|other| other == object);
    }

    fn forget_where(&mut self, is: impl Fn(&ObjectKey) -> bool) {
        self.listed.retain(|key, flight| {
            let goes = is(&key.object);
            if goes {
                flight.forget();
            }
            !goes
        });
    }
}
