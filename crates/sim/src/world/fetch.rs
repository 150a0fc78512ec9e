//! Fetches: how a rescue server gets what it serves for an origin.
//!
//! The first visitor who asks for an object causes the fetch, the others wait for it; where there
//! is an old copy they get that. Another rescue server is asked first where the object has its home
//! there. The origin charges a fetch to its own traffic and never redirects it; a home charges an
//! ask to the rescue of that origin.

use std::time::Duration;

use levee_control::{
    AskEnd, Asking, CopyOutcome, Destination, Home, NeededBy, OriginRoute, object_hash,
};
use levee_vocab::{FetchKey, LinkId};

use crate::world::cache::{Asked, Brought, Instead, Lookup, ObjectKey, Waiter};
use crate::world::event::{Arrival, Event, Fetcher, From, Inner};
use crate::world::meter::Account;
use crate::world::network::Place;
use crate::world::pacer::SendClass;
use crate::world::request::{Answer, RequestId};
use crate::world::site::{Job, Process};
use crate::world::{SiteId, World};

/// How long a rescue server waits for the first byte of an object: the server's default.
const FETCH_WAIT: Duration = Duration::from_secs(10);

/// The same for an object's home.
const HOME_WAIT: Duration = Duration::from_secs(5);

impl World {
    /// Serves an object of an origin from the cache, or fetches it first.
    pub(crate) fn serve_rescued(&mut self, site: SiteId, id: RequestId, route: &OriginRoute) {
        let now = self.clock_of(site);
        let Some(request) = self.requests.find(id) else {
            return;
        };
        let object = ObjectKey {
            origin: route.origin.host.clone(),
            file: request.file,
        };
        let Some(running) = self.sites[site.0].running_mut() else {
            return;
        };
        match running.cache.ask(now, &object, id) {
            Lookup::Hit(_) => self.send_rescued(site, id, route.link),
            Lookup::Renewed { flight, .. } => {
                self.begin_fetch(site, object, flight, (route, NeededBy::Visitor));
                self.send_rescued(site, id, route.link);
            }
            Lookup::Joined => {}
            Lookup::Missed { flight } => {
                self.begin_fetch(site, object, flight, (route, NeededBy::Visitor));
            }
        }
    }

    /// Asks the object's home, or the origin.
    pub(crate) fn begin_fetch(
        &mut self,
        site: SiteId,
        object: ObjectKey,
        flight: u64,
        (route, needed_by): (&OriginRoute, NeededBy),
    ) {
        let now = self.clock_of(site);
        let hash = object_hash(&route.origin, object.file.to_string().as_bytes());
        let choice = match (&route.homes, self.sites[site.0].running_mut()) {
            (Some(homes), Some(running)) => Some(running.asks.choose(
                now,
                homes,
                (hash, route.ttl),
                needed_by,
            )),
            (None, _) | (_, None) => None,
        };
        let asking = choice.and_then(|choice| Some((choice.home?, choice.asking)));
        match asking {
            Some((home, Asking::Object)) => {
                self.ask_home(site, object, flight, (&home, From::Home))
            }
            Some((home, Asking::Copy)) => self.ask_home(site, object, flight, (&home, From::Copy)),
            None => self.ask_origin(site, object, flight),
        }
    }

    fn ask_home(
        &mut self,
        site: SiteId,
        object: ObjectKey,
        flight: u64,
        (home, from): (&Home, From),
    ) {
        if let Some(running) = self.sites[site.0].running_mut() {
            running.asked.insert(flight, home.address);
        }
        let Some(fetcher) = self.fetcher(site, &object, flight, from) else {
            return;
        };
        if let Some(&at) = self.names.get(&home.alias.host) {
            let what = Arrival::Ask {
                fetcher,
                object: object.clone(),
            };
            let event = Event::Arrives { site: at, what };
            self.carry(Place::Site(site), Place::Site(at), event);
        }
        self.plan_end(site, object, fetcher, HOME_WAIT);
    }

    pub(crate) fn ask_origin(&mut self, site: SiteId, object: ObjectKey, flight: u64) {
        let fetcher = self.fetcher(site, &object, flight, From::Origin);
        let (Some(fetcher), Some(&origin)) = (fetcher, self.names.get(&object.origin)) else {
            return self.give_up(site, &object, flight);
        };
        let key = self.route(site, &object).and_then(|route| route.key);
        let what = Arrival::Fetch {
            fetcher,
            object: object.clone(),
            key,
        };
        let event = Event::Arrives { site: origin, what };
        self.carry(Place::Site(site), Place::Site(origin), event);
        self.plan_end(site, object, fetcher, FETCH_WAIT);
    }

    /// The rescue by which `site` serves an object; none where it does not.
    pub(crate) fn route(&self, site: SiteId, object: &ObjectKey) -> Option<OriginRoute> {
        let plan = self.sites[site.0].running()?.gate.plan();
        match plan.hosts.destination(object.origin.as_str()) {
            Destination::Rescued(route) => Some((**route).clone()),
            Destination::NotOurs | Destination::Restored(..) | Destination::Expired(_) => None,
        }
    }

    fn fetcher(
        &self,
        site: SiteId,
        object: &ObjectKey,
        flight: u64,
        from: From,
    ) -> Option<Fetcher> {
        Some(Fetcher {
            site,
            life: self.sites[site.0].life,
            link: self.route(site, object)?.link,
            from,
            flight,
        })
    }

    /// Plans the moment from which on nobody waits for an answer.
    fn plan_end(&mut self, site: SiteId, object: ObjectKey, fetcher: Fetcher, after: Duration) {
        let what = Inner::FetchEnded {
            object,
            fetcher,
            brought: None,
        };
        self.plan_inside(site, after, what);
    }

    /// Another rescue server asks for an object that has its home here.
    pub(crate) fn ask_arrives(&mut self, site: SiteId, fetcher: Fetcher, object: ObjectKey) {
        let now = self.clock_of(site);
        if matches!(self.sites[site.0].process, Process::PoweredOff) {
            return;
        }
        let route = self.route(site, &object);
        let route = route.filter(|route| route.homes.is_some());
        let (Some(route), Some(running)) = (route, self.sites[site.0].running_mut()) else {
            return self.answer_fetch(site, fetcher, object, None);
        };
        let asked = match (fetcher.from, running.cache.copy(now, &object)) {
            (From::Copy, None) => return self.answer_fetch(site, fetcher, object, None),
            (From::Copy, Some(copy)) => Asked::Hit(copy),
            (From::Home | From::Origin, _) => {
                let waiter = Waiter::Another(fetcher);
                running.cache.ask_for_another(now, &object, waiter)
            }
        };
        match asked {
            Asked::Hit(brought) => {
                self.send_home(site, fetcher, object, brought, route.link);
            }
            Asked::Joined => {}
            Asked::Missed { flight } => {
                self.begin_fetch(site, object, flight, (&route, NeededBy::Another));
            }
        }
    }

    /// Sends an object to another rescue server.
    fn send_home(
        &mut self,
        site: SiteId,
        fetcher: Fetcher,
        object: ObjectKey,
        brought: Brought,
        link: LinkId,
    ) {
        let now = self.clock_of(site);
        if let Some(running) = self.sites[site.0].running_mut() {
            running.gate.note_direct(now, brought.bytes);
        }
        let job = Job::Fetched {
            fetcher,
            object,
            brought,
            account: Account::Rescue(link),
        };
        self.admit(site, SendClass::Fetch, brought.bytes, job);
    }

    /// Sends an object that is in the cache.
    fn send_rescued(&mut self, site: SiteId, id: RequestId, link: LinkId) {
        let Some(bytes) = self.requests.find(id).map(|request| request.bytes) else {
            return;
        };
        let job = Job::Response {
            request: id,
            account: Some(Account::Rescue(link)),
            answer: Answer::Whole,
        };
        self.admit(site, SendClass::Page, bytes, job);
    }

    pub(crate) fn fetch_arrives(
        &mut self,
        site: SiteId,
        fetcher: Fetcher,
        object: ObjectKey,
        key: Option<FetchKey>,
    ) {
        let now = self.clock_of(site);
        let bytes = self.sites[site.0].settings.files.get(object.file).copied();
        if matches!(self.sites[site.0].process, Process::PoweredOff) {
            // No host, no answer: the one who fetches gives up by itself.
            return;
        }
        let (Some(running), Some(bytes)) = (self.sites[site.0].running_mut(), bytes) else {
            return self.answer_fetch(site, fetcher, object, None);
        };
        let plan = running.gate.plan();
        // Without a key of a rescue that stands it is a request like any other, and what a visitor
        // would be told is of no use to a cache.
        let is_known = key.is_some_and(|key| plan.fetch_keys.iter().any(|known| known.1 == key));
        if !is_known {
            return self.answer_fetch(site, fetcher, object, None);
        }
        running.gate.note_direct(now, bytes);
        let job = Job::Fetched {
            fetcher,
            object,
            brought: Brought {
                bytes,
                fresh_for: None,
            },
            account: Account::Own,
        };
        self.admit(site, SendClass::Fetch, bytes, job);
    }

    pub(crate) fn answer_fetch(
        &mut self,
        site: SiteId,
        fetcher: Fetcher,
        object: ObjectKey,
        brought: Option<Brought>,
    ) {
        let what = Inner::FetchEnded {
            object,
            fetcher,
            brought,
        };
        let event = Event::Inside {
            site: fetcher.site,
            life: fetcher.life,
            what,
        };
        self.carry(Place::Site(site), Place::Site(fetcher.site), event);
    }

    pub(crate) fn fetch_ended(
        &mut self,
        site: SiteId,
        object: ObjectKey,
        fetcher: Fetcher,
        brought: Option<Brought>,
    ) {
        let now = self.clock_of(site);
        let ttl = self.sites[site.0].settings.parameters.object_ttl;
        let Some(running) = self.sites[site.0].running_mut() else {
            return;
        };
        if fetcher.from != From::Origin {
            let Some(home) = running.asked.remove(&fetcher.flight) else {
                return;
            };
            let end = match (fetcher.from, brought) {
                (From::Home | From::Origin, None) => AskEnd::Failed,
                (From::Copy, None) | (_, Some(_)) => AskEnd::Answered,
            };
            running.asks.end(now, home, end);
            if brought.is_none() {
                return self.ask_origin(site, object, fetcher.flight);
            }
        }
        match brought {
            Some(brought) => {
                let flight = fetcher.flight;
                let waiting = running.cache.store(now, &object, flight, brought, ttl);
                let fresh_for = brought.fresh_for.unwrap_or(ttl);
                let brought = Brought {
                    fresh_for: Some(fresh_for),
                    ..brought
                };
                for waiter in waiting {
                    self.send_to_waiter(site, waiter, &object, (brought, fetcher.link));
                }
            }
            None => self.give_up(site, &object, fetcher.flight),
        }
    }

    fn send_to_waiter(
        &mut self,
        site: SiteId,
        waiter: Waiter,
        object: &ObjectKey,
        (brought, link): (Brought, LinkId),
    ) {
        match waiter {
            Waiter::Visitor(request) => self.send_rescued(site, request, link),
            Waiter::Another(fetcher) => {
                self.send_home(site, fetcher, object.clone(), brought, link);
            }
            Waiter::Ordered(orderer) => {
                self.tell_copied(site, orderer, object, CopyOutcome::Held);
            }
        }
    }

    /// The origin does not bring the object: the old copy for the visitors who wait, if there is
    /// one.
    fn give_up(&mut self, site: SiteId, object: &ObjectKey, flight: u64) {
        let now = self.clock_of(site);
        let link = self.route(site, object).map(|route| route.link);
        let Some(running) = self.sites[site.0].running_mut() else {
            return;
        };
        let given_up = running.cache.give_up(now, object, flight);
        for waiter in given_up.waiting {
            match (waiter, given_up.instead, link) {
                (Waiter::Visitor(request), Instead::Stale, Some(link)) => {
                    self.send_rescued(site, request, link);
                }
                (Waiter::Visitor(request), Instead::Nothing, _)
                | (Waiter::Visitor(request), Instead::Stale, None) => {
                    self.break_off(site, request);
                }
                (Waiter::Ordered(orderer), _, _) => {
                    self.tell_copied(site, orderer, object, CopyOutcome::Failed);
                }
                (Waiter::Another(fetcher), _, _) => {
                    self.answer_fetch(site, fetcher, object.clone(), None);
                }
            }
        }
    }
}
