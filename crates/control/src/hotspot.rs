//! Which resources are about to become hot spots (H1, H2), seen before they hurt.
//!
//! Why: a flash crowd wants few resources, and smaller spikes come hours before it. Whoever sees
//! these can have copies made while there is still room on the link.
//!
//! How: each core notes requests in an [`ArrivalTable`] of its own. A few times in an interval
//! [`HotSpots`] hears what all of them noted, adds it up by resource, and moves one average of
//! inter-arrival times for each:
//!
//! ```text
//!   core ── ArrivalTable ─┐
//!   core ── ArrivalTable ─┼─▶ add up ─▶ moving average ─▶ T_C, T_R, T_S ─▶ Copy, Redirect, Normal
//!   core ── ArrivalTable ─┘
//! ```
//!
//! Cores tell counts and the times of the first and the last request, not averages: counts add, so
//! the sum says the same as one table would that had seen every request.
//!
//! Memory is constant. Of more resources than there are places the least wanted go, by the rule of
//! Misra and Gries: with m places, whatever has more than 1/m of the requests of the last seconds
//! is sure to stay.
//!
//! It does not replicate, and does not choose rescue servers: it says what is worth it.

mod arrivals;
mod rules;
mod watched;
mod watching;

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::Timestamp;

pub use arrivals::{Arrival, ArrivalTable, Arrivals, UrlText};
pub use rules::HotSpotRules;
use watched::Watched;
pub use watched::{HotSpotStep, ResourcePhase};
pub use watching::Watching;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum HotSpotInput {
    /// This is what the cores noted since they told it last, in any order. Several times in a
    /// control interval.
    ArrivalsTold(Vec<Arrivals>),
    /// A control interval is over: what was told in it is shown.
    IntervalEnded,
    /// The operator changed the thresholds.
    RulesChanged(HotSpotRules),
}

/// Something to be done about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotSpotOutput {
    /// Host and path.
    pub url: String,
    /// What.
    pub step: HotSpotStep,
    /// The moving average of the time between two requests.
    pub gap: Duration,
}

/// One resource, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceView {
    /// Host and path, or the beginning of a very long one.
    pub url: String,
    /// Requests in the last interval.
    pub recent: u64,
    /// The moving average of the time between two of them.
    pub average: Duration,
    /// What has been done about it.
    pub phase: ResourcePhase,
}

/// Watches resources. See the file header.
#[derive(Clone, Debug)]
pub struct HotSpots {
    rules: HotSpotRules,
    places: usize,
    resources: BTreeMap<u64, Watched>,
    now: Timestamp,
}

/// Half of a resource's claim to its place is forgotten in this time: as long as eight requests
/// take, over which the average goes, at T_C.
const CLAIM_HALVES: f64 = 8.0;

/// A step that was taken, and how urgent it is.
struct Taken {
    urgency: f64,
    output: HotSpotOutput,
}

impl HotSpots {
    /// Watches as many resources as there are `places`.
    pub const fn new(rules: HotSpotRules, places: usize) -> Self {
        Self {
            rules,
            places,
            resources: BTreeMap::new(),
            now: Timestamp::ZERO,
        }
    }

    /// Takes one input and says what must be done: what returns to normal first, then the hottest
    /// resources first, those that are equally hot by their URL. An average is looked at whenever
    /// arrivals are told, so there is no deadline in between; that there were none is told too.
    pub fn handle(&mut self, now: Timestamp, input: HotSpotInput) -> Vec<HotSpotOutput> {
        let elapsed = now.since(self.now).as_secs_f64();
        self.now = now.max(self.now);
        match input {
            HotSpotInput::ArrivalsTold(arrivals) => {
                self.take_in(arrivals, elapsed);
                let mut taken = self.make_room();
                taken.extend(self.step());
                in_order(taken)
            }
            HotSpotInput::IntervalEnded => {
                for resource in self.resources.values_mut() {
                    resource.recent = std::mem::take(&mut resource.counted);
                }
                Vec::new()
            }
            HotSpotInput::RulesChanged(rules) => {
                self.rules = rules;
                for resource in self.resources.values_mut() {
                    resource.weigh_anew(&self.rules);
                }
                in_order(self.step())
            }
        }
    }

    /// Every resource that was asked for in the last interval or is not cold: those with the most
    /// requests first.
    pub fn view(&self) -> Vec<ResourceView> {
        let shown = self.resources.values().filter(|resource| {
            resource.recent > 0
                || match resource.phase {
                    ResourcePhase::Cold | ResourcePhase::Back => false,
                    ResourcePhase::Copied | ResourcePhase::Redirected => true,
                }
        });
        let shown = shown.map(|resource| ResourceView {
            url: resource.url.clone(),
            recent: resource.recent,
            average: resource.average(),
            phase: resource.phase,
        });
        let mut views: Vec<_> = shown.collect();
        views.sort_by(|a, b| b.recent.cmp(&a.recent).then_with(|| a.url.cmp(&b.url)));
        views
    }

    fn take_in(&mut self, arrivals: Vec<Arrivals>, elapsed: f64) {
        let fading = 0.5_f64.powf(elapsed / CLAIM_HALVES);
        for resource in self.resources.values_mut() {
            resource.claim *= fading;
        }
        let mut sums: BTreeMap<u64, Arrivals> = BTreeMap::new();
        for one in arrivals.into_iter().filter(|one| one.count > 0) {
            match sums.get_mut(&one.hash) {
                Some(sum) => sum.absorb(&one),
                None => {
                    sums.insert(one.hash, one);
                }
            }
        }
        for (hash, sum) in sums {
            let known = self.resources.entry(hash);
            let resource = known.or_insert_with(|| Watched::new(&sum, &self.rules));
            resource.take_in(&sum, &self.rules);
        }
    }

    /// Forgets what is not wanted any more, and what finds no place.
    fn make_room(&mut self) -> Vec<Taken> {
        let (now, rules) = (self.now, &self.rules);
        self.resources
            .retain(|_, resource| !resource.is_forgettable(now, rules));
        if self.resources.len() <= self.places {
            return Vec::new();
        }
        let mut claims: Vec<f64> = self.resources.values().map(|one| one.claim).collect();
        claims.sort_by(|a, b| b.total_cmp(a));
        // What the first without a place could claim is taken from everybody: so nobody can lose
        // more than one part in `places` of all claims, however often this happens.
        let bar = claims[self.places];
        let mut taken = Vec::new();
        self.resources.retain(|_, resource| {
            resource.claim -= bar;
            let stays = resource.claim > 0.0;
            if !stays {
                taken.extend(release(resource));
            }
            stays
        });
        taken
    }

    fn step(&mut self) -> Vec<Taken> {
        let mut taken = Vec::new();
        for resource in self.resources.values_mut() {
            let weight = self.rules.weight(resource.bytes);
            let urgency = resource.gap(self.now) / weight;
            for &step in resource.step(self.now, &self.rules) {
                let output = resource.told(step);
                taken.push(Taken { urgency, output });
            }
        }
        taken
    }
}

/// What has to be done before a resource is forgotten.
fn release(resource: &Watched) -> Option<Taken> {
    match resource.phase {
        ResourcePhase::Cold | ResourcePhase::Back => None,
        ResourcePhase::Copied | ResourcePhase::Redirected => Some(Taken {
            urgency: f64::INFINITY,
            output: resource.told(HotSpotStep::Normal),
        }),
    }
}

fn in_order(mut taken: Vec<Taken>) -> Vec<HotSpotOutput> {
    let rank = |taken: &Taken| match taken.output.step {
        HotSpotStep::Normal => 0,
        HotSpotStep::Copy | HotSpotStep::Redirect => 1,
    };
    // Stable, so that a resource is copied before it is redirected.
    taken.sort_by(|a, b| {
        rank(a)
            .cmp(&rank(b))
            .then_with(|| a.urgency.total_cmp(&b.urgency))
            .then_with(|| a.output.url.cmp(&b.output.url))
    });
    taken.into_iter().map(|taken| taken.output).collect()
}
