//! The objects that a rescue server holds for its origins, and the fetches under way.
//!
//! One fetch for an object and its lifetime, however many visitors wait for it (R8). For one more
//! lifetime nobody waits: the old copy is shown while it is fetched anew. Another rescue server
//! that asks us as the object's home waits: it is given what is fresh.

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::{HostName, Timestamp};

use crate::world::copies::Orderer;
use crate::world::event::Fetcher;
use crate::world::request::RequestId;

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
    /// An old copy is here, of this size, and nobody has asked for a newer one yet: the copy is
    /// sent, and a fetch must begin.
    Renewed {
        /// Size of the copy.
        bytes: u64,
        /// Number of that fetch.
        flight: u64,
    },
    /// It is being fetched; the request waits with the others.
    Joined,
    /// Nobody has asked yet; the request waits, and a fetch must begin.
    Missed {
        /// Number of that fetch.
        flight: u64,
    },
}

/// What the cache says to another rescue server, for which we are the object's home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is here.
    Hit(Brought),
    /// It is being fetched; the ask waits with the others.
    Joined,
    /// The ask waits, and a fetch must begin.
    Missed {
        /// Number of that fetch.
        flight: u64,
    },
}

/// An object on its way from one site to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// Its size.
    pub bytes: u64,
    /// For how long it is fresh yet; none where its origin does not say.
    pub fresh_for: Option<Duration>,
}

/// Who waits for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A visitor.
    Visitor(RequestId),
    /// Another rescue server.
    Another(Fetcher),
    /// The origin, which ordered a copy.
    Ordered(Orderer),
}

/// What became of a fetch that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Who waited for it.
    pub waiting: Vec<Waiter>,
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

/// How long after its lifetime an object stands in for an origin that cannot be reached, how long
/// before the origin is asked again, and how long after that visitors get the old copy at once
/// while it is asked: the server's defaults.
const STALE_MAX: Duration = Duration::from_secs(600);
const STALE_RETRY: Duration = Duration::from_secs(5);
const STALE_TRUST: Duration = Duration::from_secs(60);

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
    waiting: Vec<Waiter>,
}

#[derive(Debug)]
struct Object {
    bytes: u64,
    fresh_until: Timestamp,
    shown_until: Timestamp,
    stale_until: Timestamp,
}

impl RescueCache {
    /// Asks for an object on behalf of `request`.
    pub fn ask(&mut self, now: Timestamp, key: &ObjectKey, request: RequestId) -> Lookup {
        let shown = match self.objects.get(key) {
            Some(object) if now < object.fresh_until => return Lookup::Hit(object.bytes),
            Some(object) if now < object.shown_until => Some(object.bytes),
            Some(_) | None => None,
        };
        let waiter = Waiter::Visitor(request);
        match (shown, self.flights.get_mut(key)) {
            (Some(bytes), Some(_)) => Lookup::Hit(bytes),
            (Some(bytes), None) => Lookup::Renewed {
                bytes,
                flight: self.begin_flight(key, Vec::new()),
            },
            (None, Some(flight)) => {
                flight.waiting.push(waiter);
                Lookup::Joined
            }
            (None, None) => Lookup::Missed {
                flight: self.begin_flight(key, vec![waiter]),
            },
        }
    }

    /// Asks for an object on behalf of somebody who is no visitor.
    pub fn ask_for_another(&mut self, now: Timestamp, key: &ObjectKey, waiter: Waiter) -> Asked {
        if let Some(copy) = self.copy(now, key) {
            return Asked::Hit(copy);
        }
        match self.flights.get_mut(key) {
            Some(flight) => {
                flight.waiting.push(waiter);
                Asked::Joined
            }
            None => Asked::Missed {
                flight: self.begin_flight(key, vec![waiter]),
            },
        }
    }

    /// The object, where it is here and fresh.
    pub fn copy(&self, now: Timestamp, key: &ObjectKey) -> Option<Brought> {
        let object = self.objects.get(key)?;
        let left = object.fresh_until.since(now);
        (now < object.fresh_until).then_some(Brought {
            bytes: object.bytes,
            fresh_for: Some(left),
        })
    }

    fn begin_flight(&mut self, key: &ObjectKey, waiting: Vec<Waiter>) -> u64 {
        self.fetches += 1;
        let number = self.fetches;
        self.flights.insert(key.clone(), Flight { number, waiting });
        number
    }

    /// Fetch number `flight` brought the object, whose lifetime is `ttl` where it states none.
    /// Gives those who waited for it.
    pub fn store(
        &mut self,
        now: Timestamp,
        key: &ObjectKey,
        flight: u64,
        brought: Brought,
        ttl: Duration,
    ) -> Vec<Waiter> {
        let fresh_until = now + brought.fresh_for.unwrap_or(ttl);
        let object = Object {
            bytes: brought.bytes,
            fresh_until,
            shown_until: fresh_until + ttl,
            stale_until: fresh_until + ttl.max(STALE_MAX),
        };
        self.objects.insert(key.clone(), object);
        self.end_flight(key, flight)
    }

    /// Fetch number `flight` failed. What it would have replaced stands in for a while. Nothing
    /// changes where it was over before.
    pub fn give_up(&mut self, now: Timestamp, key: &ObjectKey, flight: u64) -> GivenUp {
        let under_way = self.flights.get(key);
        if under_way.is_none_or(|under_way| under_way.number != flight) {
            return GivenUp {
                waiting: Vec::new(),
                instead: Instead::Nothing,
            };
        }
        let waiting = self.end_flight(key, flight);
        let instead = match self.objects.get_mut(key) {
            Some(object) if now < object.stale_until => {
                let spared_until = (now + STALE_RETRY).min(object.stale_until);
                let trusted_until = (spared_until + STALE_TRUST).min(object.stale_until);
                object.fresh_until = object.fresh_until.max(spared_until);
                object.shown_until = object.shown_until.max(trusted_until);
                Instead::Stale
            }
            Some(_) | None => Instead::Nothing,
        };
        GivenUp { waiting, instead }
    }

    fn end_flight(&mut self, key: &ObjectKey, flight: u64) -> Vec<Waiter> {
        match self.flights.get(key) {
            Some(under_way) if under_way.number == flight => {
                let ended = self.flights.remove(key);
                ended.map(|ended| ended.waiting).unwrap_or_default()
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// Every visitor's request that waits for a fetch. Another rescue server sees the connection
    /// close, or gives up by itself.
    pub fn take_waiting(&mut self) -> Vec<RequestId> {
        let flights = std::mem::take(&mut self.flights).into_values();
        let waiting = flights.flat_map(|flight| flight.waiting);
        waiting
            .filter_map(|waiter| match waiter {
                Waiter::Visitor(request) => Some(request),
                Waiter::Another(_) | Waiter::Ordered(_) => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn brought(bytes: u64) -> Brought {
        let fresh_for = None;
        Brought { bytes, fresh_for }
    }

    const fn visitor(number: usize) -> Waiter {
        Waiter::Visitor(RequestId(number))
    }

    fn key() -> ObjectKey {
        ObjectKey {
            origin: "origin.example".parse().expect("a good name"),
            file: 0,
        }
    }

    #[test]
    fn simultaneous_misses_share_one_fetch() {
        let mut cache = RescueCache::default();
        let missed = Lookup::Missed { flight: 1 };
        assert_eq!(cache.ask(at(0), &key(), RequestId(1)), missed);
        assert_eq!(cache.ask(at(0), &key(), RequestId(2)), Lookup::Joined);
        assert_eq!(
            cache.store(at(0), &key(), 1, brought(10), TTL),
            [visitor(1), visitor(2)]
        );
        assert_eq!(cache.ask(at(59), &key(), RequestId(3)), Lookup::Hit(10));
        assert_eq!(cache.fetches, 1);
    }

    #[test]
    fn nobody_waits_for_the_renewal_of_an_object_for_a_second_lifetime() {
        let mut cache = RescueCache::default();
        cache.ask(at(0), &key(), RequestId(1));
        cache.store(at(0), &key(), 1, brought(10), TTL);
        let renewed = Lookup::Renewed {
            bytes: 10,
            flight: 2,
        };
        assert_eq!(cache.ask(at(60), &key(), RequestId(2)), renewed);
        assert_eq!(cache.ask(at(119), &key(), RequestId(3)), Lookup::Hit(10));
        assert_eq!(cache.ask(at(120), &key(), RequestId(4)), Lookup::Joined);
        assert_eq!(
            cache.store(at(121), &key(), 2, brought(20), TTL),
            [visitor(4)]
        );
        // The deadline of that fetch comes when it is long over.
        cache.give_up(at(130), &key(), 2);
        assert_eq!(cache.ask(at(121), &key(), RequestId(5)), Lookup::Hit(20));
        let missed = Lookup::Missed { flight: 3 };
        assert_eq!(cache.ask(at(241), &key(), RequestId(6)), missed);
        assert_eq!(cache.fetches, 3);
    }

    #[test]
    fn the_old_copy_stands_in_for_an_origin_that_does_not_answer() {
        let mut cache = RescueCache::default();
        cache.ask(at(0), &key(), RequestId(1));
        cache.store(at(0), &key(), 1, brought(10), TTL);
        let missed = Lookup::Missed { flight: 2 };
        assert_eq!(cache.ask(at(200), &key(), RequestId(2)), missed);
        let failed = cache.give_up(at(210), &key(), 2);
        let waiting = vec![visitor(2)];
        let instead = Instead::Stale;
        assert_eq!(failed, GivenUp { waiting, instead });
        assert_eq!(cache.ask(at(214), &key(), RequestId(3)), Lookup::Hit(10));
        // The next attempt makes nobody wait.
        let renewed = Lookup::Renewed {
            bytes: 10,
            flight: 3,
        };
        assert_eq!(cache.ask(at(215), &key(), RequestId(4)), renewed);
        let failed = cache.give_up(at(660), &key(), 3);
        assert_eq!(failed.instead, Instead::Nothing);
    }
}
