//! Metering (R2): the cores' counters, which only grow, into what one control interval had.
//!
//! The cores count by slot, a small number that a rescue has while it lasts; here slots become
//! links again. Differences are taken over the true length of the interval, so a late tick, a
//! suspended machine or a stepped clock gives an honest rate and not a spike.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use levee_control::{
    BrainView, CrawlerTraffic, HotSpotInput, HotSpotOutput, HotSpotRules, HotSpots, Input,
    LoadSample, OriginPhase, ResourceView, RoutePlan, Traffic,
};
use levee_net::cpu_time;
use levee_proxy::{CameBack, CoreNotes, Front, MarkedVisitors, MissingCopy, Sample, SlotSample};
use levee_vocab::{LinkId, Timestamp};

use crate::integrity::SceneBoard;

/// Intervals of redirects that are at risk when a rescue server proves dead: so long may a hang go
/// unnoticed.
const RISK_INTERVALS: usize = 3;

/// Resources that are watched: many more than a crowd wants, in a few hundred kilobytes.
const WATCHED_PLACES: usize = 1024;

/// Takes samples and remembers the last.
#[derive(Debug)]
pub struct Sampler {
    before: Reading,
    now: Reading,
    load: LoadSample,
    plan: Arc<RoutePlan>,
    hot_spots: HotSpots,
    resources: Vec<ResourceView>,
    /// When the cores were last told to tell what they were asked for.
    looked: Timestamp,
    /// What each running rescue has had since it began.
    served: BTreeMap<LinkId, Traffic>,
    /// Redirects of the last intervals to each rescue server, newest last.
    recent: BTreeMap<LinkId, VecDeque<u64>>,
    redirects_at_risk: u64,
    /// Hot resources that rescue servers had fetched before the last look.
    fetched: Vec<MissingCopy>,
    /// Visitors whom each rescue server sent back in the interval under way.
    came_back: BTreeMap<LinkId, u64>,
    /// Those of them who came without a signature, and what our marks tell of them.
    marked: MarkedVisitors,
    /// Slots of rescue servers that proved dead in the interval that is not over.
    dead_slots: Vec<u8>,
    connections_max: u64,
    cores: f64,
}

#[derive(Clone, Debug)]
struct Reading {
    at: Timestamp,
    cpu: Duration,
    sample: Sample,
}

impl Reading {
    fn take(front: &Front, at: Timestamp) -> Self {
        Self {
            at,
            cpu: cpu_time(),
            sample: front.sample(),
        }
    }
}

impl Sampler {
    /// Begins at `now`, for a front with `cores` threads and room for `connections_max`.
    pub fn start(front: &Front, now: Timestamp, cores: usize, connections_max: usize) -> Self {
        let reading = Reading::take(front, now);
        Self {
            before: reading.clone(),
            now: reading,
            load: LoadSample::default(),
            plan: Arc::default(),
            hot_spots: HotSpots::new(HotSpotRules::default(), WATCHED_PLACES),
            resources: Vec::new(),
            looked: now,
            served: BTreeMap::new(),
            recent: BTreeMap::new(),
            redirects_at_risk: 0,
            fetched: Vec::new(),
            came_back: BTreeMap::new(),
            marked: MarkedVisitors::default(),
            dead_slots: Vec::new(),
            connections_max: connections_max as u64,
            cores: cores.max(1) as f64,
        }
    }

    /// Ends the interval at `now`. `view` and `plan` tell which link holds which slot.
    pub fn take(
        &mut self,
        front: &Front,
        now: Timestamp,
        view: &BrainView,
        plan: Arc<RoutePlan>,
    ) -> LoadSample {
        self.before = std::mem::replace(&mut self.now, Reading::take(front, now));
        self.plan = plan;
        self.hot_spots
            .handle(self.looked, HotSpotInput::IntervalEnded);
        self.resources = self.hot_spots.view();
        let elapsed = self.elapsed();
        let (sample, before) = (&self.now.sample, &self.before.sample);
        let mut load = LoadSample {
            elapsed,
            own: Traffic {
                bytes: sample.own_bytes.saturating_sub(before.own_bytes),
                requests: sample.own_requests.saturating_sub(before.own_requests),
                file_bytes: 0,
            },
            refused: (sample.refused + sample.dropped)
                .saturating_sub(before.refused + before.dropped),
            waiting: sample.waiting,
            crawlers: self.crawlers(),
            https_bytes: sample
                .https_own_bytes
                .saturating_sub(before.https_own_bytes),
            drill_bytes: sample.drill_bytes.saturating_sub(before.drill_bytes),
            withheld_bytes: sample.withheld_bytes.saturating_sub(before.withheld_bytes),
            came_back: std::mem::take(&mut self.came_back),
            cpu: self.cpu_level(),
            connections: sample.connections as f64 / self.connections_max as f64,
            ..LoadSample::default()
        };
        for rescue in &view.rescue_servers {
            load.redirects
                .insert(rescue.link, self.redirected(rescue.slot));
        }
        let MarkedVisitors { unsigned, marks } = std::mem::take(&mut self.marked);
        for (link, marks) in marks {
            let redirected = load.redirects.get(&link).map_or(0, |all| all.requests);
            *load.came_back.entry(link).or_default() += marks.comebacks(redirected, unsigned);
        }
        let mut rescued = 0;
        for origin in &self.plan.hosts.origins {
            match origin.phase {
                OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. } => {
                    let traffic = self.rescued(origin.slot);
                    rescued += traffic.bytes;
                    load.rescue.insert(origin.link, traffic);
                }
                OriginPhase::Restored { .. } | OriginPhase::Expired { .. } => {}
            }
        }
        // Redirects back from expired aliases belong to nobody's rescue, but they left over our
        // link.
        let rescue_bytes = sample.rescue_bytes.saturating_sub(before.rescue_bytes);
        load.own.bytes += rescue_bytes.saturating_sub(rescued);
        self.note_last_redirects();
        self.note_rescues(&load);
        self.load = load.clone();
        load
    }

    /// A rescue server proved dead: visitors whom it got lately may not have been served. `plan` is
    /// the one in which it still had its part.
    pub fn note_dead(&mut self, plan: &RoutePlan, link: LinkId) {
        let recent = self.recent.remove(&link).unwrap_or_default();
        self.redirects_at_risk += recent.iter().sum::<u64>();
        let mut targets = plan.redirect.iter().flat_map(|redirect| &redirect.targets);
        let dead = targets.find(|target| target.link == link);
        self.dead_slots.extend(dead.map(|target| target.slot));
    }

    /// True length of the last interval.
    pub fn elapsed(&self) -> Duration {
        self.now.at.since(self.before.at)
    }

    /// What the Brain was told of the last interval.
    pub fn load(&self) -> &LoadSample {
        &self.load
    }

    /// Counters since the start.
    pub fn total(&self) -> &Sample {
        &self.now.sample
    }

    /// Counters before the last interval.
    pub fn before(&self) -> &Sample {
        &self.before.sample
    }

    /// The resources that were asked for in the last interval, most first.
    pub fn resources(&self) -> &[ResourceView] {
        &self.resources
    }

    /// The plan of the last interval.
    pub fn plan(&self) -> &RoutePlan {
        &self.plan
    }

    /// What a running rescue has had since it began.
    pub fn since_rescue_began(&self, link: LinkId) -> Traffic {
        self.served.get(&link).copied().unwrap_or_default()
    }

    /// Redirects to rescue servers that proved dead soon after.
    pub fn redirects_at_risk(&self) -> u64 {
        self.redirects_at_risk
    }

    /// Open connections and their limit.
    pub fn connections(&self) -> (u64, u64) {
        (self.now.sample.connections, self.connections_max)
    }

    /// Takes the cores' notes: adds up what they were asked for (H1), and says which resources
    /// changed their heat, and which copies visitors did not find (H5). The cores were told to tell
    /// it at the look before this one, so that is when it was true: by now each resource would seem
    /// to have paused.
    pub fn look(&mut self, front: &Front, now: Timestamp, scene: &mut SceneBoard) -> Vec<Input> {
        let CoreNotes {
            arrivals,
            mut missing,
            fetched,
            came_back,
            marked,
        } = front.take_notes();
        for CameBack { link, visitors } in came_back {
            *self.came_back.entry(link).or_default() += visitors;
        }
        self.marked.add(&marked);
        self.fetched = fetched;
        scene.hear(&arrivals);
        let looked = std::mem::replace(&mut self.looked, now);
        let told = HotSpotInput::ArrivalsTold(arrivals);
        let steps = self.hot_spots.handle(looked, told);
        // Each core tells a copy once.
        missing.sort_unstable_by(|a, b| (a.link, &a.url).cmp(&(b.link, &b.url)));
        missing.dedup();
        let mut inputs = stepped(steps);
        inputs.extend(missing.into_iter().map(|MissingCopy { link, url }| {
            tracing::debug!(%link, url, "a rescue server lacks a copy");
            Input::CopyMissing { link, url }
        }));
        inputs
    }

    /// Gives the hot resources that rescue servers had fetched before the last look.
    pub fn take_fetched(&mut self) -> Vec<MissingCopy> {
        std::mem::take(&mut self.fetched)
    }

    /// From now on goes by `rules`; says which resources are hot by these, or not any more.
    pub fn watch_by(&mut self, rules: &HotSpotRules) -> Vec<Input> {
        let changed = HotSpotInput::RulesChanged(rules.clone());
        stepped(self.hot_spots.handle(self.looked, changed))
    }

    fn cpu_level(&self) -> f64 {
        let used = self.now.cpu.saturating_sub(self.before.cpu);
        used.as_secs_f64() / self.elapsed().as_secs_f64().max(1e-3) / self.cores
    }

    fn crawlers(&self) -> CrawlerTraffic {
        let (now, before) = (&self.now.sample, &self.before.sample);
        let all = now.requests.saturating_sub(before.requests);
        let requests = |sample: &Sample| sample.crawlers.by_name + sample.crawlers.by_behaviour;
        let (own, rescue) = (before.crawlers.own_bytes, before.crawlers.rescue_bytes);
        let theirs = requests(now).saturating_sub(requests(before));
        CrawlerTraffic {
            own_bytes: now.crawlers.own_bytes.saturating_sub(own),
            rescue_bytes: now.crawlers.rescue_bytes.saturating_sub(rescue),
            part: (theirs as f64 / all.max(1) as f64).min(1.0),
            connections: now.crawlers.connections as f64 / self.connections_max as f64,
        }
    }

    fn slot(sample: &Sample, slot: u8) -> SlotSample {
        sample.slots.get(&slot).copied().unwrap_or_default()
    }

    fn redirected(&self, slot: u8) -> Traffic {
        let now = Self::slot(&self.now.sample, slot);
        let before = Self::slot(&self.before.sample, slot);
        Traffic {
            bytes: now
                .redirect_accounted
                .saturating_sub(before.redirect_accounted),
            requests: now.redirects.saturating_sub(before.redirects),
            file_bytes: now
                .redirect_file_bytes
                .saturating_sub(before.redirect_file_bytes),
        }
    }

    fn rescued(&self, slot: u8) -> Traffic {
        let now = Self::slot(&self.now.sample, slot);
        let before = Self::slot(&self.before.sample, slot);
        Traffic {
            bytes: now.rescue_bytes.saturating_sub(before.rescue_bytes),
            requests: now.rescue_requests.saturating_sub(before.rescue_requests),
            file_bytes: 0,
        }
    }

    /// Redirects of the last interval to rescue servers that proved dead in it, also those by cores
    /// that had not heard of it yet.
    fn note_last_redirects(&mut self) {
        for slot in std::mem::take(&mut self.dead_slots) {
            self.redirects_at_risk += self.redirected(slot).requests;
        }
    }

    fn note_rescues(&mut self, load: &LoadSample) {
        self.served
            .retain(|link, _| load.rescue.contains_key(link) || load.redirects.contains_key(link));
        for (&link, traffic) in load.rescue.iter().chain(&load.redirects) {
            let served = self.served.entry(link).or_default();
            served.bytes += traffic.bytes;
            served.requests += traffic.requests;
            served.file_bytes += traffic.file_bytes;
        }
        self.recent
            .retain(|link, _| load.redirects.contains_key(link));
        for (&link, traffic) in &load.redirects {
            let recent = self.recent.entry(link).or_default();
            recent.push_back(traffic.requests);
            if recent.len() > RISK_INTERVALS {
                recent.pop_front();
            }
        }
    }
}

fn stepped(steps: Vec<HotSpotOutput>) -> Vec<Input> {
    for HotSpotOutput { url, step, gap } in &steps {
        tracing::debug!(url, ?step, ?gap, "a resource changed its heat");
    }
    match steps.is_empty() {
        true => Vec::new(),
        false => vec![Input::ResourcesStepped(steps)],
    }
}
