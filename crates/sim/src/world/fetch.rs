//! Fetches: how a rescue server gets what it serves for an origin.
//!
//! The first visitor who asks for an object causes the fetch, the others wait for it; where there
//! is an old copy they get that. The origin charges it to its own traffic and never redirects it.

use std::time::Duration;

use levee_control::OriginRoute;
use levee_vocab::{FetchKey, LinkId};

use crate::world::cache::{Instead, Lookup, ObjectKey};
use crate::world::event::{Arrival, Event, Fetcher, Inner};
use crate::world::meter::Account;
use crate::world::network::Place;
use crate::world::pacer::SendClass;
use crate::world::request::{Answer, RequestId};
use crate::world::site::{Job, Process};
use crate::world::{SiteId, World};

/// How long a rescue server waits for the first byte of an object: the server's default.
const FETCH_WAIT: Duration = Duration::from_secs(10);

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
        let origin = request.origin;
        let Some(running) = self.sites[site.0].running_mut() else {
            return;
        };
        match running.cache.ask(now, &object, id) {
            Lookup::Hit(_) => self.send_rescued(site, id, route.link),
            Lookup::Renewed { flight, .. } => {
                self.begin_fetch(site, origin, object, flight, route);
                self.send_rescued(site, id, route.link);
            }
            Lookup::Joined => {}
            Lookup::Missed { flight } => self.begin_fetch(site, origin, object, flight, route),
        }
    }

    fn begin_fetch(
        &mut self,
        site: SiteId,
        origin: SiteId,
        object: ObjectKey,
        flight: u64,
        route: &OriginRoute,
    ) {
        let fetcher = Fetcher {
            site,
            life: self.sites[site.0].life,
            link: route.link,
            flight,
        };
        let what = Arrival::Fetch {
            fetcher,
            object: object.clone(),
            key: route.key,
        };
        let event = Event::Arrives { site: origin, what };
        self.carry(Place::Site(site), Place::Site(origin), event);
        let what = Inner::FetchEnded {
            object,
            fetcher,
            bytes: None,
        };
        self.plan_inside(site, FETCH_WAIT, what);
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
            bytes,
        };
        self.admit(site, SendClass::Fetch, bytes, job);
    }

    pub(crate) fn answer_fetch(
        &mut self,
        site: SiteId,
        fetcher: Fetcher,
        object: ObjectKey,
        bytes: Option<u64>,
    ) {
        let what = Inner::FetchEnded {
            object,
            fetcher,
            bytes,
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
        object: &ObjectKey,
        fetcher: Fetcher,
        bytes: Option<u64>,
    ) {
        let now = self.clock_of(site);
        let ttl = self.sites[site.0].settings.parameters.object_ttl;
        let Some(running) = self.sites[site.0].running_mut() else {
            return;
        };
        match bytes {
            Some(bytes) => {
                let waiting = running.cache.store(now, object, fetcher.flight, bytes, ttl);
                for id in waiting {
                    self.send_rescued(site, id, fetcher.link);
                }
            }
            None => {
                let given_up = running.cache.give_up(now, object, fetcher.flight);
                for id in given_up.waiting {
                    match given_up.instead {
                        Instead::Stale => self.send_rescued(site, id, fetcher.link),
                        Instead::Nothing => self.break_off(site, id),
                    }
                }
            }
        }
    }
}
