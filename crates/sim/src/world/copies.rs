//! Hot spots and their copies: what the server's sampler and replicator do.
//!
//! A copy is fetched by its rescue server when it is ordered, from us or from its home. Pushed, it
//! would cross the same links with the same bytes one delay earlier. A rescue server here fetches
//! what it lacks, whatever its origin said of that.

use levee_control::{
    Arrival, Copies, CopyMeans, CopyOrder, CopyOutcome, HotSpotInput, Input, NeededBy, Onward,
    Redirectability, RoutePlan,
};
use levee_vocab::LinkId;

use crate::world::cache::{Asked, ObjectKey, Waiter};
use crate::world::event::{self, Event, Inner};
use crate::world::network::Place;
use crate::world::request::RequestId;
use crate::world::site::{Process, Running};
use crate::world::{SiteId, World};

/// Looks at what is asked for in a control interval, as in the server.
const LOOKS: u32 = 4;

/// Who ordered a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orderer {
    /// The origin.
    pub site: SiteId,
    /// Its life when it did.
    pub life: u32,
    /// Its link with the rescue server.
    pub link: LinkId,
}

impl Running {
    /// Who holds a file, by the plan in force.
    pub(crate) fn copies_of(&self, file: usize) -> Copies {
        self.hot.get(&file).copied().unwrap_or(Copies::NONE)
    }

    /// What is hot by `plan`, by the numbers of files.
    pub(crate) fn index_hot(&mut self, plan: &RoutePlan) {
        let routes = plan
            .redirect
            .iter()
            .flat_map(|redirect| redirect.hot.iter());
        let copies = routes.filter_map(|route| {
            let (holders, heat) = (route.holders, route.heat);
            Some((file_of(&route.url)?, Copies { holders, heat }))
        });
        self.hot = copies.collect();
    }
}

impl World {
    /// A visitor asks for something: counts towards its heat if it is the site's own, and he was
    /// not sent back for it, and is no crawler.
    pub(crate) fn note_arrival(&mut self, site: SiteId, id: RequestId) {
        let now = self.clock_of(site);
        let Some(request) = self.requests.find(id) else {
            return;
        };
        let is_own = request.host == *self.sites[site.0].name();
        let keys = self.sites[site.0].running();
        let keys = keys.map_or(&[][..], |running| &running.gate.plan().fetch_keys);
        let comes_back = request.word.at_origin(keys).onward() == Onward::Never;
        let is_crawler = request.visitor.is_crawler();
        let is_ours_only = request.redirectability == Redirectability::Never;
        if !is_own || comes_back || is_crawler || is_ours_only {
            return;
        }
        let path = format!("/{}", request.file);
        let arrival = Arrival {
            hash: request.file as u64,
            bytes: request.bytes,
            host: request.host.as_str(),
            path: &path,
        };
        if let Some(running) = self.sites[site.0].running_mut() {
            running.arrivals.note(now, &arrival);
        }
    }

    pub(crate) fn plan_look(&mut self, id: SiteId) {
        let interval = self.sites[id.0].settings.parameters.interval;
        self.plan_inside(id, interval / LOOKS, Inner::Looked);
    }

    pub(crate) fn look(&mut self, id: SiteId) {
        let now = self.clock_of(id);
        let Some(running) = self.sites[id.0].running_mut() else {
            return;
        };
        let told = HotSpotInput::ArrivalsTold(running.arrivals.take());
        let steps = running.spots.handle(now, told);
        if !steps.is_empty() {
            self.tell(id, Input::ResourcesStepped(steps));
        }
        self.plan_look(id);
    }

    /// Sends an order to its rescue server. What is lost on the way is given up by the Brain.
    pub(crate) fn copy(&mut self, id: SiteId, order: CopyOrder) {
        let CopyOrder {
            link, url, means, ..
        } = order;
        let (Some((connection, side)), Some(file)) = (self.find_link(id, link), file_of(&url))
        else {
            return;
        };
        let orderer = Orderer {
            site: id,
            life: self.sites[id.0].life,
            link,
        };
        let object = ObjectKey {
            origin: self.sites[id.0].name().clone(),
            file,
        };
        let site = self.connections[connection.0].end(side.other()).site;
        let what = event::Arrival::Order {
            orderer,
            object,
            means,
        };
        let event = Event::Arrives { site, what };
        self.carry(Place::Site(id), Place::Site(site), event);
    }

    pub(crate) fn order_arrives(
        &mut self,
        site: SiteId,
        orderer: Orderer,
        object: ObjectKey,
        means: CopyMeans,
    ) {
        let now = self.clock_of(site);
        if matches!(self.sites[site.0].process, Process::PoweredOff) {
            return;
        }
        let route = self.route(site, &object);
        let (Some(route), Some(running)) = (route, self.sites[site.0].running_mut()) else {
            return self.tell_copied(site, orderer, &object, CopyOutcome::Failed);
        };
        let waiter = Waiter::Ordered(orderer);
        match running.cache.ask_for_another(now, &object, waiter) {
            Asked::Hit(_) => self.tell_copied(site, orderer, &object, CopyOutcome::Held),
            Asked::Joined => {}
            Asked::Missed { flight } => match means {
                CopyMeans::Push => self.ask_origin(site, object, flight),
                CopyMeans::Pull => {
                    self.begin_fetch(site, object, flight, (&route, NeededBy::Visitor));
                }
            },
        }
    }

    pub(crate) fn tell_copied(
        &mut self,
        site: SiteId,
        orderer: Orderer,
        object: &ObjectKey,
        outcome: CopyOutcome,
    ) {
        let what = Inner::CopyEnded {
            link: orderer.link,
            url: format!("{}/{}", object.origin, object.file),
            outcome,
        };
        let event = Event::Inside {
            site: orderer.site,
            life: orderer.life,
            what,
        };
        self.carry(Place::Site(site), Place::Site(orderer.site), event);
    }
}

/// The number of the file at `url`.
fn file_of(url: &str) -> Option<usize> {
    url.rsplit('/').next()?.parse().ok()
}
