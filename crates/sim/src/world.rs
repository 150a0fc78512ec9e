//! A world of many sites under a virtual clock, from one seed.
//!
//! Why: what happens when a rescue server dies in the middle of a crowd, or when sixty sites help
//! each other through a bad night, cannot be tried often enough with real processes. Here it takes
//! milliseconds, and a seed repeats it byte for byte.
//!
//! How: one queue of events, ordered by time. Each site runs the same `Brain` and `Gate` as the
//! server. What the server's shell does around them (links, registry client, cache, pacer, meter)
//! is modelled in the files of `world/`, one each. Crowds of visitors follow redirects as browsers
//! do.
//!
//! What it does not do: decide. Every decision comes from `levee_control`. It also has no bytes: a
//! message is a value, a response is its length.

pub mod cache;
pub mod copies;
pub mod crowd;
pub mod drill;
pub mod event;
pub mod faults;
pub mod fetch;
pub mod links;
pub mod meter;
pub mod network;
pub mod pacer;
pub mod path;
pub mod queue;
pub mod registry;
pub mod request;
pub mod rescue;
pub mod shell;
pub mod site;
pub mod trace;
pub mod visitors;
pub mod watch;
pub mod way_back;

use std::collections::BTreeMap;
use std::time::Duration;

use levee_control::{Candidate, Input, Visitors};
use levee_vocab::{AliasHttps, ByteRate, HostName, Random, Timestamp, WebAddress};

use crate::world::crowd::{Crowd, CrowdSettings};
use crate::world::event::{Arrival, Event, Inner, RegistryEvent};
use crate::world::links::Connection;
use crate::world::network::{Network, Place};
use crate::world::queue::EventQueue;
use crate::world::registry::Directory;
use crate::world::request::{CrowdId, Requests};
use crate::world::site::{Process, RESCUE_PORT, Site, SiteSettings, Totals, Voice, address_of};
use crate::world::trace::Trace;
use crate::world::watch::Watch;

/// Number of a site in its world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiteId(pub usize);

/// Sites, a registry, a network, crowds and a clock.
#[derive(Debug)]
pub struct World {
    /// Virtual time.
    pub now: Timestamp,
    /// The sites, by `SiteId`.
    pub sites: Vec<Site>,
    /// The crowds, by `CrowdId`.
    pub crowds: Vec<Crowd>,
    /// Delay, loss and partitions.
    pub network: Network,
    /// Whether the registry is there.
    pub registry_state: RegistryState,
    /// What happened, for people.
    pub trace: Trace,
    /// The invariants.
    pub watch: Watch,
    queue: EventQueue<Event>,
    registry: Directory,
    requests: Requests,
    connections: Vec<Connection>,
    /// Messages that were sent into a partition.
    stuck: Vec<(Place, Place, Event)>,
    /// Who answers to which name: what DNS says to visitors.
    names: BTreeMap<HostName, SiteId>,
    random: Random,
}

/// Whether the registry is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryState {
    /// It answers.
    Up,
    /// Connections to it are refused.
    Down,
}

impl World {
    /// An empty world whose whole future follows from `seed` and from what is done to it.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::from_seed(seed);
        Self {
            now: Timestamp::ZERO,
            sites: Vec::new(),
            crowds: Vec::new(),
            network: Network::new(random.fork()),
            registry_state: RegistryState::Up,
            trace: Trace::default(),
            watch: Watch::default(),
            queue: EventQueue::default(),
            registry: Directory::default(),
            requests: Requests::default(),
            connections: Vec::new(),
            stuck: Vec::new(),
            names: BTreeMap::new(),
            random,
        }
    }

    /// Number that the next site will have.
    pub const fn next_site(&self) -> SiteId {
        SiteId(self.sites.len())
    }

    /// Adds a site and starts it.
    pub fn add_site(&mut self, settings: SiteSettings) -> SiteId {
        let id = self.next_site();
        let name = settings.parameters.site.host.clone();
        self.trace.name_site(&name, &settings.label);
        self.names.insert(name, id);
        self.sites.push(Site {
            settings,
            process: Process::Killed,
            life: 0,
            records: Vec::new(),
            voice: Voice::Speaks,
            clock_ahead: Duration::ZERO,
            totals: Totals::default(),
            links_accepted: 0,
        });
        self.start(id);
        id
    }

    /// Lets a crowd come, from now on.
    pub fn add_crowd(&mut self, settings: CrowdSettings) -> CrowdId {
        let id = CrowdId(self.crowds.len());
        let mut crowd = Crowd::new(settings, self.now, self.random.fork());
        if let Some(at) = crowd.next_arrival(self.now) {
            self.queue.plan(at, Event::VisitorComes(id));
        }
        self.crowds.push(crowd);
        id
    }

    /// Moves the clock to `end`; everything up to then happens.
    pub fn run_until(&mut self, end: Timestamp) {
        while let Some((at, event)) = self.queue.next_until(end) {
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    /// The site with this label.
    pub fn find_site(&self, label: &str) -> Option<SiteId> {
        let found = self
            .sites
            .iter()
            .position(|site| site.settings.label == label);
        found.map(SiteId)
    }

    /// The newest crowd with this name.
    pub fn find_crowd(&self, name: &str) -> Option<CrowdId> {
        let found = self
            .crowds
            .iter()
            .rposition(|crowd| crowd.settings.name == name);
        found.map(CrowdId)
    }

    /// Requests that have no answer yet.
    pub fn requests_open(&self) -> usize {
        self.requests.count()
    }

    /// The time that a site's clock shows.
    pub(crate) fn clock_of(&self, site: SiteId) -> Timestamp {
        self.now + self.sites[site.0].clock_ahead
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives { site, what } => self.arrive(site, what),
            Event::Inside { site, life, what } => self.go_on(site, life, what),
            Event::Registry(what) => self.ask_registry(what),
            Event::VisitorComes(crowd) => self.visitor_comes(crowd),
            Event::Answered { request, answer } => self.visitor_reads(request, answer),
        }
    }

    fn arrive(&mut self, site: SiteId, what: Arrival) {
        if let Process::Frozen(_, held) = &mut self.sites[site.0].process {
            held.push(Event::Arrives { site, what });
            return;
        }
        match what {
            Arrival::Request(request) => self.request_arrives(site, request),
            Arrival::Message {
                connection,
                to,
                message,
            } => self.message_arrives(connection, to, message),
            Arrival::Ask { fetcher, object } => self.ask_arrives(site, fetcher, object),
            Arrival::Order {
                orderer,
                object,
                means,
            } => self.order_arrives(site, orderer, object, means),
            Arrival::Fetch {
                fetcher,
                object,
                key,
            } => self.fetch_arrives(site, fetcher, object, key),
        }
    }

    fn go_on(&mut self, site: SiteId, life: u32, what: Inner) {
        if self.sites[site.0].life != life {
            return;
        }
        if let Process::Frozen(_, held) = &mut self.sites[site.0].process {
            held.push(Event::Inside { site, life, what });
            return;
        }
        match what {
            Inner::IntervalEnded => self.end_interval(site),
            Inner::Looked => self.look(site),
            Inner::CopyEnded { link, url, outcome } => {
                self.tell(site, Input::CopyEnded { link, url, outcome });
            }
            Inner::DeadlineCame => self.meet_deadline(site),
            Inner::PieceLeft => self.piece_left(site),
            Inner::PollParked => self.poll_parked_again(site),
            Inner::CallExpired(link) => self.call_expired(site, link),
            Inner::CloseExpired(link) => self.close_link(site, link),
            Inner::SearchEnded(found) => self.search_ended(site, found),
            Inner::FetchEnded {
                object,
                fetcher,
                brought,
            } => self.fetch_ended(site, object, fetcher, brought),
        }
    }

    fn ask_registry(&mut self, what: RegistryEvent) {
        match (what, self.registry_state) {
            (RegistryEvent::Registered { site, free }, RegistryState::Up) => {
                let offer = self.offer_of(site, free);
                self.registry.register(self.now, offer);
            }
            (RegistryEvent::Registered { .. }, RegistryState::Down) => {}
            (RegistryEvent::Searched { site, life, count }, RegistryState::Up) => {
                let asker = self.offer_of(site, ByteRate::ZERO);
                let found = self.registry.search(self.now, count, &asker);
                self.tell_found(site, life, Some(found));
            }
            (RegistryEvent::Searched { site, life, .. }, RegistryState::Down) => {
                self.tell_found(site, life, None);
            }
        }
    }

    fn offer_of(&self, site: SiteId, free: ByteRate) -> Candidate {
        let parameters = &self.sites[site.0].settings.parameters;
        Candidate {
            site: parameters.site.clone(),
            rescue: (address_of(site), RESCUE_PORT).into(),
            free,
            https: match parameters.visitors {
                Visitors::Http => AliasHttps::No,
                Visitors::Both | Visitors::Https => AliasHttps::Yes,
            },
        }
    }

    fn tell_found(&mut self, site: SiteId, life: u32, found: Option<Vec<Candidate>>) {
        let what = Inner::SearchEnded(found);
        let event = Event::Inside { site, life, what };
        self.carry(Place::Registry, Place::Site(site), event);
    }

    /// Carries something over the network; into a partition it goes only when that heals.
    fn carry(&mut self, from: Place, to: Place, event: Event) {
        if self.network.is_cut(from, to) {
            self.stuck.push((from, to, event));
        } else {
            let at = self.now + self.network.draw_delay();
            self.queue.plan(at, event);
        }
    }

    fn plan_inside(&mut self, site: SiteId, after: Duration, what: Inner) {
        let life = self.sites[site.0].life;
        let event = Event::Inside { site, life, what };
        self.queue.plan(self.now + after, event);
    }

    /// A name that visitors can find from now on.
    fn publish_name(&mut self, alias: &WebAddress, site: SiteId) {
        self.names.insert(alias.host.clone(), site);
    }
}
