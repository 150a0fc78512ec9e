//! Which resources are hot, who holds a copy, and what to copy next.
//!
//! For one resource at one rescue server:
//!
//! ```text
//!             order               Held
//!   nothing ─────────▶ UnderWay ─────────▶ Held
//!                        ▲   │               │
//!                  order │   │ Refused,      │ CopyMissing
//!                        │   │ Failed, late  │
//!                        │   ▼               │
//!                       Resting ◀────────────┘
//! ```
//!
//! It rests twice as long each time. A rescue server that leaves takes all of its standings along;
//! a resource that returns to normal is forgotten, and its copies go by themselves.
//!
//! Orders are few at a time, the hottest resource first, because what is pushed leaves over the
//! link that visitors need; how they are shared, and when a rescue server is left alone
//! altogether, is in `copies/shares.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use levee_vocab::{LinkId, Timestamp};

use super::shares::Shares;
use super::{
    CopyMeans, CopyNews, CopyOrder, CopyOutcome, CopyRules, Embedded, Heat, HotRoute, Member,
};
use crate::homes::{home_order, object_hash};
use crate::hotspot::{HotSpotOutput, HotSpotStep};
use crate::law::Replication;
use crate::view::HotView;

/// Hot resources that are known at once: in the log of the paper a hundred took 99 % of all
/// requests at the spike.
const RESOURCES_MAX: usize = 512;

/// Objects of one page that are copied with it: the page of the paper had over twenty images.
const EMBEDDED_MAX: usize = 64;

/// Control intervals after which an order counts as failed that nobody answered.
const PATIENCE: u32 = 30;

/// The same at least: the shell gives a copy half a minute, however short an interval is.
const PATIENCE_MIN: Duration = Duration::from_secs(30);

/// Control intervals for which a rescue server is left alone with a resource after a failure; twice
/// as many each time, up to [`REST_MAX`].
const REST_MIN: u32 = 2;

/// The same at most, and after it refused.
const REST_MAX: u32 = 60;

/// See the file header.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopyLedger {
    resources: BTreeMap<String, HotResource>,
    /// The rescue servers, in the order of the plan.
    links: Vec<LinkId>,
    shares: Shares,
    routes: Arc<[HotRoute]>,
    /// When a resource last became hot, or hotter.
    risen: Option<Timestamp>,
    state: State,
}

/// Whether there may be something new to order or to tell the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Settled,
    Changed,
}

#[derive(Clone, Debug, Default)]
struct HotResource {
    /// Of its own; none where it is only embedded in what is hot.
    warmth: Option<Warmth>,
    /// Hot pages that embed it.
    pages: BTreeSet<String>,
    search: Search,
    told: Told,
    standings: BTreeMap<LinkId, Standing>,
}

/// How hot, and how often asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Warmth {
    heat: Heat,
    gap: Duration,
}

/// Whether it is known what a page embeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Search {
    #[default]
    Never,
    /// With the order to this rescue server.
    With(LinkId),
    Done,
}

/// What people were told of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    #[default]
    Nothing,
    Copying,
    Redirecting,
}

#[derive(Clone, Copy, Debug)]
struct Standing {
    state: CopyState,
    /// Since the resource became hot.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyState {
    UnderWay { until: Timestamp },
    Held,
    Resting { until: Timestamp },
}

impl CopyLedger {
    /// Takes in what changed its heat.
    pub(crate) fn step(&mut self, now: Timestamp, steps: &[HotSpotOutput]) -> Vec<CopyNews> {
        let mut news = Vec::new();
        for HotSpotOutput { url, step, gap } in steps {
            let heat = match step {
                HotSpotStep::Normal => {
                    news.extend(self.cool(url));
                    continue;
                }
                HotSpotStep::Copy => Heat::Warm,
                HotSpotStep::Redirect => Heat::Redirected,
            };
            if let Some(resource) = self.admit(url) {
                resource.warmth = Some(Warmth { heat, gap: *gap });
                self.risen = Some(now);
                self.state = State::Changed;
            }
        }
        news
    }

    /// `page` embeds these. Nothing changes unless it is hot.
    pub(crate) fn embed(&mut self, page: &str, resources: &[String]) {
        let Some(known) = self.resources.get_mut(page) else {
            return;
        };
        if known.warmth.is_none() {
            return;
        }
        known.search = Search::Done;
        for url in resources.iter().take(EMBEDDED_MAX) {
            if url != page
                && let Some(resource) = self.admit(url)
            {
                resource.pages.insert(page.to_owned());
                self.state = State::Changed;
            }
        }
    }

    /// An order ended. A late or unknown one changes nothing, except that what is held is held.
    pub(crate) fn end(
        &mut self,
        now: Timestamp,
        (link, url): (LinkId, &str),
        outcome: CopyOutcome,
        interval: Duration,
    ) -> Option<CopyNews> {
        let resource = self.resources.get_mut(url)?;
        let standing = resource.standings.get_mut(&link)?;
        let is_due = matches!(standing.state, CopyState::UnderWay { .. });
        match outcome {
            CopyOutcome::Held => {
                standing.state = CopyState::Held;
                self.shares.note_held(link);
            }
            CopyOutcome::Late if is_due => {
                standing.fail(now, interval);
                self.shares.note_late(now, link, interval);
            }
            CopyOutcome::Refused if is_due => standing.rest(now, interval * REST_MAX),
            CopyOutcome::Failed if is_due => standing.fail(now, interval),
            CopyOutcome::Refused | CopyOutcome::Failed | CopyOutcome::Late => return None,
        }
        resource.note_search(link, outcome);
        self.state = State::Changed;
        let url = url.to_owned();
        (outcome == CopyOutcome::Refused).then_some(CopyNews::Refused { link, url })
    }

    /// A visitor did not find it at `link` (H5).
    pub(crate) fn miss(&mut self, now: Timestamp, (link, url): (LinkId, &str), interval: Duration) {
        let resource = self.resources.get_mut(url);
        let standing = resource.and_then(|resource| resource.standings.get_mut(&link));
        if let Some(standing) = standing
            && standing.state == CopyState::Held
        {
            standing.fail(now, interval);
            self.state = State::Changed;
        }
    }

    /// A control interval is over: whoever rested may be asked again.
    pub(crate) fn pass(&mut self) {
        self.state = State::Changed;
    }

    /// Nobody holds anything any more, and what is embedded in pages is not known. What is hot
    /// stays known: that is told once.
    pub(crate) fn forget_copies(&mut self) {
        self.resources.retain(|_, one| one.warmth.is_some());
        for resource in self.resources.values_mut() {
            *resource = HotResource {
                warmth: resource.warmth,
                ..HotResource::default()
            };
        }
        self.routes = Arc::default();
        self.state = State::Changed;
    }

    /// Whether any resource is hot.
    pub(crate) fn is_hot(&self) -> bool {
        self.resources.values().any(|one| one.warmth.is_some())
    }

    /// Whether a resource became hot, or hotter, less than `time` ago.
    pub(crate) fn is_rising(&self, now: Timestamp, time: Duration) -> bool {
        self.is_hot() && self.risen.is_some_and(|risen| now < risen + time)
    }

    /// The hottest resource, and how often it is asked for.
    pub(crate) fn hottest(&self) -> Option<(String, Duration)> {
        let hot = self.resources.iter();
        let hot = hot.filter_map(|(url, one)| Some((one.warmth?, url)));
        hot.min_by_key(|(warmth, url)| (warmth.rank(), *url))
            .map(|(warmth, url)| (url.clone(), warmth.gap))
    }

    /// Who holds what, for the cores: the same list until it changes.
    pub(crate) fn routes(&self) -> Arc<[HotRoute]> {
        Arc::clone(&self.routes)
    }

    /// The rescue servers are `members` now, in the order of the plan: forgets those that left, and
    /// says what to copy next.
    pub(crate) fn order(
        &mut self,
        now: Timestamp,
        members: &[Member],
        rules: &CopyRules,
    ) -> (Vec<CopyOrder>, Vec<CopyNews>) {
        self.meet(members);
        if self.state == State::Settled {
            return (Vec::new(), Vec::new());
        }
        self.state = State::Settled;
        self.give_up_late(now, rules.interval);
        let (orders, mut news) = self.next_orders(now, members, rules);
        news.extend(self.renew_routes());
        (orders, news)
    }

    /// Every hot resource, the hottest first, for people.
    pub(crate) fn views(&self) -> Vec<HotView> {
        let ranked = self.ranked();
        let view = |(rank, url): &((Heat, Duration), String)| {
            let resource = &self.resources[url];
            let count = |wanted: fn(&CopyState) -> bool| {
                let states = resource.standings.values().map(|one| &one.state);
                states.filter(|state| wanted(state)).count()
            };
            HotView {
                url: url.clone(),
                heat: rank.0,
                gap: rank.1,
                holders: resource.holders().collect(),
                under_way: count(|state| matches!(state, CopyState::UnderWay { .. })),
                page: match resource.warmth {
                    Some(_) => None,
                    None => resource.pages.first().cloned(),
                },
            }
        };
        ranked.iter().map(view).collect()
    }

    fn admit(&mut self, url: &str) -> Option<&mut HotResource> {
        if !self.resources.contains_key(url) && self.resources.len() >= RESOURCES_MAX {
            return None;
        }
        Some(self.resources.entry(url.to_owned()).or_default())
    }

    /// `url` is as rare as ever: it is forgotten, with what only it embeds.
    fn cool(&mut self, url: &str) -> Option<CopyNews> {
        let resource = self.resources.get_mut(url)?;
        resource.warmth.take()?;
        let told = std::mem::take(&mut resource.told);
        resource.search = Search::Never;
        for other in self.resources.values_mut() {
            other.pages.remove(url);
        }
        self.resources
            .retain(|_, one| one.warmth.is_some() || !one.pages.is_empty());
        self.state = State::Changed;
        let url = url.to_owned();
        (told > Told::Nothing).then_some(CopyNews::Normal { url })
    }

    fn meet(&mut self, members: &[Member]) {
        if self.links.iter().eq(members.iter().map(|one| &one.link)) {
            return;
        }
        self.links = members.iter().map(|one| one.link).collect();
        self.shares.retain(&self.links);
        for resource in self.resources.values_mut() {
            let links = &self.links;
            resource.standings.retain(|link, _| links.contains(link));
            if let Search::With(link) = resource.search
                && !links.contains(&link)
            {
                resource.search = Search::Never;
            }
        }
        self.state = State::Changed;
    }

    fn give_up_late(&mut self, now: Timestamp, interval: Duration) {
        for resource in self.resources.values_mut() {
            let mut late = Vec::new();
            for (&link, standing) in &mut resource.standings {
                if let CopyState::UnderWay { until } = standing.state
                    && now >= until
                {
                    standing.fail(now, interval);
                    late.push(link);
                }
            }
            for link in late {
                self.shares.note_late(now, link, interval);
                resource.note_search(link, CopyOutcome::Failed);
            }
        }
    }

    /// Hot resources, the hottest first; what a page embeds after the page.
    fn ranked(&self) -> Vec<((Heat, Duration), String)> {
        let heats = self.resources.iter().filter_map(|(url, resource)| {
            let warmth = self.warmth(resource)?;
            let origin = resource.warmth.is_none();
            Some((warmth, origin, url))
        });
        let mut heats: Vec<_> = heats.collect();
        heats.sort_by_key(|(warmth, is_embedded, url)| (warmth.rank(), *is_embedded, *url));
        let heats = heats.into_iter();
        heats
            .map(|(warmth, _, url)| ((warmth.heat, warmth.gap), url.clone()))
            .collect()
    }

    /// Its own, or that of the hottest page that embeds it.
    fn warmth(&self, resource: &HotResource) -> Option<Warmth> {
        let pages = resource.pages.iter();
        let pages = pages.filter_map(|page| self.resources.get(page)?.warmth);
        pages.chain(resource.warmth).min_by_key(Warmth::rank)
    }

    fn next_orders(
        &mut self,
        now: Timestamp,
        members: &[Member],
        rules: &CopyRules,
    ) -> (Vec<CopyOrder>, Vec<CopyNews>) {
        let (mut orders, mut news) = (Vec::new(), Vec::new());
        let mut under_way = self.under_way();
        for (_, url) in self.ranked() {
            if !Shares::is_room(&under_way) {
                break;
            }
            let Some(resource) = self.resources.get_mut(&url) else {
                continue;
            };
            let until = now + (rules.interval * PATIENCE).max(PATIENCE_MIN);
            let shares = &self.shares;
            let is_trusted = |link| shares.is_trusted(now, link, &under_way);
            let trusted = members.iter().filter(|one| is_trusted(one.link));
            let wanted = resource.wanted(now, &url, &trusted.collect::<Vec<_>>(), rules);
            for (link, means) in wanted {
                if !self.shares.allow(now, link, &under_way) {
                    continue;
                }
                *under_way.entry(link).or_default() += 1;
                resource.begin(link, until);
                let embedded = resource.search_with(link, rules);
                orders.push(CopyOrder {
                    link,
                    url: url.clone(),
                    means,
                    embedded,
                });
            }
            if let Some(warmth) = resource.warmth
                && resource.told == Told::Nothing
                && !resource.standings.is_empty()
            {
                resource.told = Told::Copying;
                news.push(CopyNews::Copying {
                    url,
                    servers: members.len(),
                    gap: warmth.gap,
                });
            }
        }
        (orders, news)
    }

    fn under_way(&self) -> BTreeMap<LinkId, usize> {
        let mut counts = BTreeMap::new();
        for (&link, standing) in self.resources.values().flat_map(|one| &one.standings) {
            if let CopyState::UnderWay { .. } = standing.state {
                *counts.entry(link).or_default() += 1;
            }
        }
        counts
    }

    fn renew_routes(&mut self) -> Vec<CopyNews> {
        let routes = self.resources.iter().filter_map(|(url, resource)| {
            let warmth = self.warmth(resource)?;
            let held: BTreeSet<LinkId> = resource.holders().collect();
            let bits = self.links.iter().take(64).enumerate();
            let bits = bits.filter(|(_, link)| held.contains(link));
            let holders = bits.fold(0, |bits, (bit, _)| bits | 1 << bit);
            (holders != 0).then(|| HotRoute {
                url: url.clone(),
                holders,
                heat: warmth.heat,
            })
        });
        let routes: Vec<HotRoute> = routes.collect();
        if *routes == *self.routes {
            return Vec::new();
        }
        self.routes = routes.into();
        self.tell_redirects()
    }

    fn tell_redirects(&mut self) -> Vec<CopyNews> {
        let mut news = Vec::new();
        for route in &*self.routes {
            let resource = self.resources.get_mut(&route.url);
            if let Some(resource) = resource
                && let Some(warmth) = resource.warmth
                && route.heat == Heat::Redirected
                && resource.told < Told::Redirecting
            {
                resource.told = Told::Redirecting;
                news.push(CopyNews::Redirecting {
                    url: route.url.clone(),
                    servers: route.holders.count_ones() as usize,
                    gap: warmth.gap,
                });
            }
        }
        news
    }
}

impl HotResource {
    fn holders(&self) -> impl Iterator<Item = LinkId> + '_ {
        let standings = self.standings.iter();
        let held = standings.filter(|(_, standing)| standing.state == CopyState::Held);
        held.map(|(&link, _)| link)
    }

    /// To whom it may be copied now, and how: its home first.
    fn wanted(
        &self,
        now: Timestamp,
        url: &str,
        members: &[&Member],
        rules: &CopyRules,
    ) -> Vec<(LinkId, CopyMeans)> {
        let target = url.find('/').map_or("", |path| &url[path..]);
        let object = object_hash(&rules.origin, target.as_bytes());
        let order = home_order(members.iter().map(|one| (&one.alias, one.weight)), object);
        let order: Vec<LinkId> = order.iter().map(|&index| members[index].link).collect();
        let is_free = |link: &&LinkId| {
            self.standings
                .get(link)
                .is_none_or(|standing| match standing.state {
                    CopyState::UnderWay { .. } | CopyState::Held => false,
                    CopyState::Resting { until } => now >= until,
                })
        };
        let free = order.iter().filter(is_free).copied();
        let means = match rules.replication {
            Replication::Push => CopyMeans::Push,
            // Somebody has it: the others ask among themselves, and our link is spared.
            Replication::Home if self.holders().next().is_some() => CopyMeans::Pull,
            Replication::Pull => CopyMeans::Pull,
            Replication::Home if self.is_under_way() => return Vec::new(),
            Replication::Home => {
                let home = free.take(1).map(|link| (link, CopyMeans::Push));
                return home.collect();
            }
        };
        free.map(|link| (link, means)).collect()
    }

    fn is_under_way(&self) -> bool {
        let mut states = self.standings.values().map(|standing| standing.state);
        states.any(|state| matches!(state, CopyState::UnderWay { .. }))
    }

    fn begin(&mut self, link: LinkId, until: Timestamp) {
        let failures = self.standings.get(&link).map_or(0, |one| one.failures);
        let state = CopyState::UnderWay { until };
        self.standings.insert(link, Standing { state, failures });
    }

    /// Whether the order to `link` shall look for what is embedded: one of them, once.
    fn search_with(&mut self, link: LinkId, rules: &CopyRules) -> Embedded {
        let is_first = self.search == Search::Never && self.warmth.is_some();
        if rules.embedded == Embedded::Without || !is_first {
            return Embedded::Without;
        }
        self.search = Search::With(link);
        Embedded::With
    }

    fn note_search(&mut self, link: LinkId, outcome: CopyOutcome) {
        if self.search == Search::With(link) {
            self.search = match outcome {
                CopyOutcome::Held => Search::Done,
                CopyOutcome::Refused | CopyOutcome::Failed | CopyOutcome::Late => Search::Never,
            };
        }
    }
}

impl Standing {
    fn rest(&mut self, now: Timestamp, time: Duration) {
        self.failures = self.failures.saturating_add(1);
        self.state = CopyState::Resting { until: now + time };
    }

    fn fail(&mut self, now: Timestamp, interval: Duration) {
        let count = REST_MIN << self.failures.min(5);
        self.rest(now, interval * count.min(REST_MAX));
    }
}

impl Warmth {
    /// The hottest first.
    fn rank(&self) -> (std::cmp::Reverse<Heat>, Duration) {
        (std::cmp::Reverse(self.heat), self.gap)
    }
}
