//! The objects that a rescue server holds for its origins, and the fetches under way.
//!
//! One fetch for an object and its lifetime, however many visitors wait for it (R8).

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::{HostName, Timestamp};

use crate::sim::request::RequestId;

/// An object of an origin. Objects of two origins never mix: the origin is part of the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The origin's name.
    pub origin: HostName,
    /// Number of the file at the origin.
    pub file: usize,
}

/// What the cache says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It is here, of this size.
    Hit(u64),
    /// It is being fetched; the request waits with the others.
    Joined,
    /// Nobody has asked yet; the request waits, and a fetch must begin.
    Missed {
        /// Number of that fetch.
        flight: u64,
    },
}

/// What became of a fetch that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The requests that waited for it.
    pub waiting: Vec<RequestId>,
    /// Whether an old copy stands in.
    pub instead: Instead,
}

/// What there is instead of an object that could not be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The copy whose lifetime is over.
    Stale,
    /// Nothing.
    Nothing,
}

/// How long after its lifetime an object stands in for an origin that cannot be reached, and how
/// long before the origin is asked again: the server's defaults.
const STALE_MAX: Duration = Duration::from_secs(600);
const STALE_RETRY: Duration = Duration::from_secs(5);

/// Objects and flights of one site.
#[derive(Debug, Default)]
pub struct RescueCache {
    objects: BTreeMap<ObjectKey, Object>,
    flights: BTreeMap<ObjectKey, Flight>,
    /// Fetches begun, for the statistics of a run.
    pub fetches: u64,
}

#[derive(Debug)]
struct Flight {
    number: u64,
    waiting: Vec<RequestId>,
}

#[derive(Debug)]
struct Object {
    bytes: u64,
    fresh_until: Timestamp,
    stale_until: Timestamp,
}

impl RescueCache {
    /// Asks for an object on behalf of `request`.
    pub fn ask(&mut self, now: Timestamp, key: &ObjectKey, request: RequestId) -> Lookup {
        if let Some(object) = self.objects.get(key)
            && now < object.fresh_until
        {
            return Lookup::Hit(object.bytes);
        }
        if let Some(flight) = self.flights.get_mut(key) {
            flight.waiting.push(request);
            return Lookup::Joined;
        }
        self.fetches += 1;
        let number = self.fetches;
        let waiting = vec![request];
        self.flights.insert(key.clone(), Flight { number, waiting });
        Lookup::Missed { flight: number }
    }

    /// Fetch number `flight` brought the object. Gives the requests that waited for it.
    pub fn store(
        &mut self,
        key: &ObjectKey,
        flight: u64,
        bytes: u64,
        fresh_until: Timestamp,
    ) -> Vec<RequestId> {
        let object = Object {
            bytes,
            fresh_until,
            stale_until: fresh_until + STALE_MAX,
        };
        self.objects.insert(key.clone(), object);
        self.end_flight(key, flight)
    }

    /// Fetch number `flight` failed. What it would have replaced stands in for a while.
    pub fn give_up(&mut self, now: Timestamp, key: &ObjectKey, flight: u64) -> GivenUp {
        let waiting = self.end_flight(key, flight);
        let instead = match self.objects.get_mut(key) {
            Some(object) if now < object.stale_until => {
                let spared_until = now + STALE_RETRY;
                object.fresh_until = object.fresh_until.max(spared_until.min(object.stale_until));
                Instead::Stale
            }
            Some(_) | None => Instead::Nothing,
        };
        GivenUp { waiting, instead }
    }

    fn end_flight(&mut self, key: &ObjectKey, flight: u64) -> Vec<RequestId> {
        match self.flights.get(key) {
            Some(under_way) if under_way.number == flight => {
                let ended = self.flights.remove(key);
                ended.map(|ended| ended.waiting).unwrap_or_default()
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// Every request that waits for a fetch.
    pub fn take_waiting(&mut self) -> Vec<RequestId> {
        let flights = std::mem::take(&mut self.flights);
        flights
            .into_values()
            .flat_map(|flight| flight.waiting)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_misses_share_one_fetch_until_the_object_is_stale() {
        let mut cache = RescueCache::default();
        let key = ObjectKey {
            origin: "origin.example".parse().expect("a good name"),
            file: 0,
        };
        let now = Timestamp::ZERO;
        let stale = Timestamp::from_seconds(60);
        assert_eq!(
            cache.ask(now, &key, RequestId(1)),
            Lookup::Missed { flight: 1 }
        );
        assert_eq!(cache.ask(now, &key, RequestId(2)), Lookup::Joined);
        assert_eq!(
            cache.store(&key, 1, 10, stale),
            [RequestId(1), RequestId(2)]
        );
        assert_eq!(cache.ask(now, &key, RequestId(3)), Lookup::Hit(10));
        assert_eq!(
            cache.ask(stale, &key, RequestId(4)),
            Lookup::Missed { flight: 2 }
        );
        assert_eq!(cache.fetches, 2);
        let failed = cache.give_up(stale, &key, 2);
        assert_eq!(
            (failed.waiting, failed.instead),
            (vec![RequestId(4)], Instead::Stale)
        );
        assert_eq!(cache.ask(stale, &key, RequestId(5)), Lookup::Hit(10));
    }
}
