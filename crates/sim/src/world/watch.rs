//! The invariants of a community, watched at every event.
//!
//! - A site never rescues and is rescued at the same time: its plan redirects, or serves origins
//!   whose rescue is live, or neither (R1).
//! - What is redirected to a rescue server in one interval never exceeds D_redi, but for a single
//!   file larger than a whole interval's D_redi, whose excess is owed by the following ones (R5).
//! - Nothing is redirected that may not be, and no crawler.
//! - A visitor follows four redirects at most (`REDIRECTS_MAX`): there are no loops (R1, R8).
//! - An alias is written to the state folder before it is used, and no number is given twice (R8).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use levee_control::{AliasRecord, Ask, Brain, OriginPhase, Redirectability, RoutePlan};
use levee_vocab::{HostName, LinkId, ServerState, Timestamp};

use crate::world::SiteId;

/// What was seen so far, and what should not have been.
#[derive(Debug, Default)]
pub struct Watch {
    /// Violations, oldest first.
    pub violations: Vec<Violation>,
    spending: BTreeMap<SiteId, BTreeMap<LinkId, Spending>>,
    aliases: BTreeSet<(SiteId, u64)>,
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Timestamp,
    /// Where.
    pub site: SiteId,
    /// What.
    pub what: Invariant,
}

/// The invariants that can be broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// The site both rescues and is rescued.
    BothRoles,
    /// The state that the Brain shows is not what its plan does.
    StateAgainstPlan(ServerState),
    /// More was redirected than D_redi.
    RedirectedTooMuch {
        /// In this interval, file bytes.
        spent: u64,
        /// D_redi of one interval.
        granted: u64,
    },
    /// Something was redirected that may not be.
    RedirectedNeverToBe,
    /// A visitor was sent around.
    TooManyHops(u8),
    /// An alias is in use that the state folder does not know.
    AliasNotRemembered(HostName),
    /// A number was given twice.
    AliasReused(HostName),
    /// A site is not back to normal although the crowds left long ago and all faults are healed.
    NotNormal(ServerState),
    /// Requests were lost without an answer or a failure.
    RequestsLeft(usize),
}

/// Redirects that no visitor exceeds.
pub const HOPS_ALLOWED: u8 = levee_control::REDIRECTS_MAX as u8;

/// Intervals of D_redi that one file may owe at most: a download that is broken off must not count
/// for hours.
const OWED_MAX: f64 = 10.0;

/// What was redirected to one rescue server, in file bytes.
#[derive(Debug)]
struct Spending {
    interval: u64,
    since: Timestamp,
    rate: f64,
    spent: f64,
    owed: f64,
}

impl Watch {
    /// After each input: what the Brain shows and what its plan says must agree.
    pub fn check_brain(&mut self, at: Timestamp, site: SiteId, brain: &Brain) {
        let plan = brain.plan();
        let origins = &plan.hosts.origins;
        let rescues = origins
            .iter()
            .any(|origin| origin.phase == OriginPhase::Live);
        let is_rescued = plan.redirect.is_some();
        if rescues && is_rescued {
            self.report(at, site, Invariant::BothRoles);
        }
        let agrees = match plan.state {
            ServerState::Normal => !rescues && !is_rescued,
            ServerState::Sos => !rescues && is_rescued,
            ServerState::Rescue => !is_rescued,
        };
        if !agrees {
            self.report(at, site, Invariant::StateAgainstPlan(plan.state));
        }
    }

    /// A site has a new plan; `now` is the time of its own clock.
    pub fn note_plan(&mut self, now: Timestamp, site: SiteId, plan: &RoutePlan) {
        let Some(redirect) = &plan.redirect else {
            self.spending.remove(&site);
            return;
        };
        let mut before = self.spending.remove(&site).unwrap_or_default();
        let length = plan.interval_length.as_secs_f64();
        for target in &redirect.targets {
            let rate = target.rate.as_bytes() as f64;
            let kept = before.remove(&target.link);
            let mut spending = kept.unwrap_or_else(|| Spending::begin(now, plan.interval, rate));
            if spending.interval != plan.interval {
                let earned = spending.rate * now.since(spending.since).as_secs_f64();
                let owed = spending.owed + spending.spent - earned;
                spending = Spending::begin(now, plan.interval, rate);
                spending.owed = owed.clamp(0.0, rate * length * OWED_MAX);
            }
            spending.rate = rate;
            let all = self.spending.entry(site).or_default();
            all.insert(target.link, spending);
        }
    }

    /// A redirect was granted at `now` of the site's own clock to target number `target` of `plan`.
    pub fn check_redirect(
        &mut self,
        now: Timestamp,
        site: SiteId,
        plan: &RoutePlan,
        target: usize,
        ask: &Ask,
    ) {
        if ask.redirectable == Redirectability::Never || ask.visitor.is_crawler() {
            self.report(now, site, Invariant::RedirectedNeverToBe);
        }
        let targets = plan.redirect.as_ref().map(|redirect| &redirect.targets);
        let target = targets.and_then(|targets| targets.get(target));
        let all = self.spending.get_mut(&site);
        let found = target
            .zip(all)
            .and_then(|(target, all)| all.get_mut(&target.link));
        let Some(spending) = found else {
            return self.report(now, site, Invariant::RedirectedNeverToBe);
        };
        // An interval that is longer than planned goes on at the same rate.
        let length = plan.interval_length.max(now.since(spending.since));
        let granted = spending.rate * length.as_secs_f64();
        let before = spending.spent + spending.owed;
        let after = before + ask.file_bytes as f64;
        spending.spent += ask.file_bytes as f64;
        // A byte for rounding.
        if after > granted + 1.0 && before > 0.0 {
            let (spent, granted) = (after as u64, granted as u64);
            self.report(now, site, Invariant::RedirectedTooMuch { spent, granted });
        }
    }

    /// A visitor of `origin` was redirected for the `hops`th time.
    pub fn check_hops(&mut self, at: Timestamp, origin: SiteId, hops: u8) {
        if hops > HOPS_ALLOWED {
            self.report(at, origin, Invariant::TooManyHops(hops));
        }
    }

    /// A site answers an SOS with this alias.
    pub fn check_alias(
        &mut self,
        at: Timestamp,
        site: SiteId,
        alias: &HostName,
        records: &[AliasRecord],
    ) {
        let Some(record) = records.iter().find(|record| record.alias == *alias) else {
            return self.report(at, site, Invariant::AliasNotRemembered(alias.clone()));
        };
        if !self.aliases.insert((site, record.number)) {
            self.report(at, site, Invariant::AliasReused(alias.clone()));
        }
    }

    /// Rescues that began so far.
    pub fn rescues_begun(&self) -> u64 {
        self.aliases.len() as u64
    }

    /// Notes that something does not hold.
    pub fn report(&mut self, at: Timestamp, site: SiteId, what: Invariant) {
        self.violations.push(Violation { at, site, what });
    }
}

impl Spending {
    const fn begin(since: Timestamp, interval: u64, rate: f64) -> Self {
        Self {
            interval,
            since,
            rate,
            spent: 0.0,
            owed: 0.0,
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BothRoles => f.write_str("rescues and is rescued at the same time"),
            Self::StateAgainstPlan(state) => {
                write!(f, "is in state {state}, but its plan does something else")
            }
            Self::RedirectedTooMuch { spent, granted } => write!(
                f,
                "redirected {spent} bytes to a rescue server in an interval, {granted} were granted"
            ),
            Self::RedirectedNeverToBe => f.write_str("redirected what may never be redirected"),
            Self::TooManyHops(hops) => write!(f, "a visitor was redirected {hops} times"),
            Self::AliasNotRemembered(alias) => {
                write!(f, "uses alias {alias} before it is in the state folder")
            }
            Self::AliasReused(alias) => write!(f, "gave the number of alias {alias} before"),
            Self::NotNormal(state) => write!(f, "is still in state {state}"),
            Self::RequestsLeft(count) => write!(f, "{count} requests were never answered"),
        }
    }
}
