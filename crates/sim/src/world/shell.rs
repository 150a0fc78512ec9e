//! Around a Brain: tells it what happened and does what it wants.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use levee_control::{
    ArrivalTable, Asks, Brain, Candidate, Gate, HotSpots, Input, LoadSample, Output,
};
use levee_vocab::{ByteRate, Timestamp};

use crate::world::cache::RescueCache;
use crate::world::event::{Event, Inner, RegistryEvent};
use crate::world::links::Message;
use crate::world::meter::Meter;
use crate::world::network::Place;
use crate::world::pacer::Pacer;
use crate::world::registry::on_the_wire;
use crate::world::site::{Poll, Process, Running};
use crate::world::{SiteId, World};

/// Requests that a site may have open at once; the level of the resource `connections` follows.
const CONNECTIONS_MAX: f64 = 20_000.0;

/// Resources that a site can tell apart between two looks, and that it watches: as in the server.
const ARRIVAL_PLACES: usize = 256;
const WATCHED_PLACES: usize = 1024;

/// How long a site waits for a registry that does not answer.
const SEARCH_WAIT: Duration = Duration::from_secs(2);

impl World {
    /// Starts the process of a site.
    pub(crate) fn start(&mut self, id: SiteId) {
        let now = self.clock_of(id);
        let seed = self.random.next_bits();
        let site = &mut self.sites[id.0];
        site.life += 1;
        let parameters = site.settings.parameters.clone();
        let link = parameters.link;
        let spots = HotSpots::new(parameters.hot_spots.rules.clone(), WATCHED_PLACES);
        let interval = parameters.interval;
        let brain = Brain::new(parameters, seed, site.records.clone());
        let mut gate = Gate::new(site.settings.limits.clone());
        gate.adopt(now, brain.plan(), 1.0);
        self.watch.note_plan(now, id, &brain.plan());
        site.process = Process::Up(Box::new(Running {
            brain,
            gate,
            pacer: Pacer::new(link),
            meter: Meter::new(now),
            last_sample: LoadSample::default(),
            parked: VecDeque::new(),
            arrivals: ArrivalTable::new(ARRIVAL_PLACES),
            spots,
            hot: BTreeMap::new(),
            cache: RescueCache::default(),
            asks: Asks::default(),
            asked: BTreeMap::new(),
            links: BTreeMap::new(),
            armed: None,
            poll: Poll::Idle,
        }));
        self.plan_inside(id, interval, Inner::IntervalEnded);
        self.plan_look(id);
        self.arm_deadline(id);
    }

    /// Tells the Brain of a site, and obeys it. Nothing happens where no process runs.
    pub(crate) fn tell(&mut self, id: SiteId, input: Input) {
        let now = self.clock_of(id);
        let Some(running) = self.sites[id.0].running_mut() else {
            return;
        };
        let outputs = running.brain.handle(now, input.clone());
        self.trace
            .record(self.now, &self.sites[id.0].settings.label, &input, &outputs);
        if let Some(running) = self.sites[id.0].running() {
            self.watch.check_brain(self.now, id, &running.brain);
        }
        for output in outputs {
            self.obey(id, output);
        }
        self.arm_deadline(id);
    }

    pub(crate) fn end_interval(&mut self, id: SiteId) {
        let now = self.clock_of(id);
        let site = &mut self.sites[id.0];
        let interval = site.settings.parameters.interval;
        if let Some(running) = site.running_mut() {
            let waiting = running.parked.len();
            let sample = running
                .meter
                .take(now, waiting, waiting as f64 / CONNECTIONS_MAX);
            running.last_sample = sample.clone();
            site.totals.add(&sample);
            self.plan_inside(id, interval, Inner::IntervalEnded);
            self.tell(id, Input::IntervalEnded(sample));
            self.poll_parked(id);
        }
    }

    pub(crate) fn meet_deadline(&mut self, id: SiteId) {
        let now = self.clock_of(id);
        let Some(running) = self.sites[id.0].running_mut() else {
            return;
        };
        running.armed = None;
        if running.brain.next_deadline().is_some_and(|due| due <= now) {
            self.tell(id, Input::TimerFired);
        } else {
            self.arm_deadline(id);
        }
    }

    pub(crate) fn search_ended(&mut self, id: SiteId, found: Option<Vec<Candidate>>) {
        let input = match found {
            Some(candidates) => Input::CandidatesFound(candidates),
            None => Input::SearchFailed,
        };
        self.tell(id, input);
    }

    /// Plans an event for the Brain's next deadline, if it is earlier than what is planned.
    pub(crate) fn arm_deadline(&mut self, id: SiteId) {
        let ahead = self.sites[id.0].clock_ahead;
        let earliest = self.now;
        let Some(running) = self.sites[id.0].running_mut() else {
            return;
        };
        let Some(due) = running.brain.next_deadline() else {
            return;
        };
        let due = due.as_nanoseconds().saturating_sub(ahead.as_nanos() as u64);
        let at = Timestamp::from_nanoseconds(due).max(earliest);
        if running.armed.is_none_or(|armed| at < armed) {
            running.armed = Some(at);
            self.plan_inside(id, at.since(earliest), Inner::DeadlineCame);
        }
    }

    fn obey(&mut self, id: SiteId, output: Output) {
        match output {
            Output::CallForHelp {
                link,
                candidate,
                call,
            } => self.call_for_help(id, link, &candidate, call),
            Output::AcceptSos { link, alias, rate } => self.accept_sos(id, link, alias, rate),
            Output::RejectSos { link, .. } => {
                self.send(id, link, Message::Rejected);
                self.close_link(id, link);
            }
            Output::TellRate {
                link,
                rate,
                carried,
            } => {
                let carried = carried.map(on_the_wire);
                self.send(id, link, Message::Rate(on_the_wire(rate), carried))
            }
            Output::TellPeers { link, members } => self.send(id, link, Message::Peers(members)),
            Output::ShutDown { link, .. } => self.shut_down(id, link),
            Output::DropLink { link } => self.close_link(id, link),
            Output::SearchRegistry { count } => self.search_registry(id, count),
            Output::Register { free } => self.register(id, free),
            Output::Copy(order) => self.copy(id, order),
            Output::SwapPlan => self.swap_plan(id),
            Output::RememberAliases => self.remember_aliases(id),
            Output::RememberGiven | Output::Explain(_) => {}
        }
    }

    fn swap_plan(&mut self, id: SiteId) {
        let now = self.clock_of(id);
        if let Some(running) = self.sites[id.0].running_mut() {
            let plan = running.brain.plan();
            self.watch.note_plan(now, id, &plan);
            running.index_hot(&plan);
            running.gate.adopt(now, plan, 1.0);
        }
        self.poll_parked(id);
    }

    fn remember_aliases(&mut self, id: SiteId) {
        let site = &mut self.sites[id.0];
        if let Some(running) = site.running() {
            site.records = running.brain.aliases();
        }
    }

    fn register(&mut self, site: SiteId, free: ByteRate) {
        let event = Event::Registry(RegistryEvent::Registered { site, free });
        // A registration into a partition is lost: the next one follows soon.
        if !self.network.is_cut(Place::Site(site), Place::Registry) {
            self.carry(Place::Site(site), Place::Registry, event);
        }
    }

    fn search_registry(&mut self, site: SiteId, count: usize) {
        let life = self.sites[site.0].life;
        if self.network.is_cut(Place::Site(site), Place::Registry) {
            self.plan_inside(site, SEARCH_WAIT, Inner::SearchEnded(None));
        } else {
            let event = Event::Registry(RegistryEvent::Searched { site, life, count });
            self.carry(Place::Site(site), Place::Registry, event);
        }
    }
}
