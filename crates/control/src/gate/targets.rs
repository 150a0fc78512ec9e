//! Which rescue server a request is sent to (R6; dotslash 4.2).
//!
//! Weighted round robin with D_redi as weight, by bytes: the rescue server whose turn is the
//! furthest behind (start-time fair queueing), so that all are used up together. Files above a size
//! go by consistent hashing (the highest of the hashes of path and rescue server), so that each is
//! cached at few of them: a rescue server that comes or goes moves only its own files. The hash is
//! bounded by load: one that is more than half used, and a quarter above the average, is passed
//! over.

use std::time::Duration;

use levee_vocab::{LinkId, Timestamp};

use super::Redirectability;
use super::allowance::Allowance;
use crate::plan::RedirectPlan;

/// Level up to which a rescue server is always good enough for the large files that hash to it.
const HASH_LEVEL: f64 = 0.5;

/// How far above the average level a rescue server may be for its large files.
const HASH_EXCESS: f64 = 1.25;

/// The rescue servers of the plan, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    all: Vec<Target>,
    /// Where the turn stands.
    turn: f64,
}

#[derive(Clone, Debug)]
struct Target {
    link: LinkId,
    /// Whether visitors by HTTPS can be sent there.
    speaks_https: bool,
    seed: u64,
    rate: f64,
    budget: Allowance,
    /// When its next turn is, in seconds of its own rate.
    turn: f64,
}

/// What a new plan means for the budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// An interval begins.
    New,
    /// The interval goes on with other rates.
    Same,
}

impl Targets {
    /// The targets of `plan`, with `share` of their rates. Those that stay keep what was spent.
    pub(super) fn renew(
        &mut self,
        now: Timestamp,
        plan: &RedirectPlan,
        length: Duration,
        share: f64,
        term: Term,
    ) {
        let old = std::mem::take(&mut self.all);
        for target in &plan.targets {
            let rate = target.rate.as_bytes() as f64 * share;
            let kept = old.iter().find(|kept| kept.link == target.link);
            let mut budget = kept.map(|kept| kept.budget.clone()).unwrap_or_default();
            match (term, kept) {
                (Term::Same, Some(_)) => budget.set_rate(rate),
                (Term::Same, None) | (Term::New, _) => budget.begin(now, length, rate),
            }
            self.all.push(Target {
                link: target.link,
                speaks_https: target.tls.is_some(),
                seed: hash_of(target.alias.host.as_str().as_bytes()),
                rate,
                budget,
                turn: kept.map_or(self.turn, |kept| kept.turn),
            });
        }
    }

    /// Chooses a rescue server with room for `file_bytes` and charges it.
    pub(super) fn pick(
        &mut self,
        now: Timestamp,
        file_bytes: u64,
        hash: Option<u64>,
        reach: Redirectability,
    ) -> Option<usize> {
        let bytes = file_bytes as f64;
        let choice = hash.and_then(|hash| self.by_hash((now, bytes), hash, reach));
        let index = match choice {
            Some(index) => index,
            None => self.by_turn((now, bytes), reach)?,
        };
        let target = self.all.get_mut(index)?;
        let turn = target.turn.max(self.turn);
        if choice.is_none() {
            self.turn = turn;
        }
        target.turn = turn + bytes / target.rate;
        target.budget.charge(bytes);
        Some(index)
    }

    /// Chooses by turn one of those that hold a copy (bit i of `holders` for target i) and has room
    /// for `file_bytes`, and charges it.
    pub(super) fn pick_holder(
        &mut self,
        now: Timestamp,
        file_bytes: u64,
        holders: u64,
        reach: Redirectability,
    ) -> Option<usize> {
        let bytes = file_bytes as f64;
        let holds = |index: usize| index < 64 && holders >> index & 1 == 1;
        let chosen = self
            .with_room((now, bytes), reach)
            .filter(|(index, _)| holds(*index))
            .min_by(|(_, a), (_, b)| a.turn.max(self.turn).total_cmp(&b.turn.max(self.turn)));
        let index = chosen.map(|(index, _)| index)?;
        let target = self.all.get_mut(index)?;
        // The turn of all stands still: it is that of those who are asked for anything.
        target.turn = target.turn.max(self.turn) + bytes / target.rate;
        target.budget.charge(bytes);
        Some(index)
    }

    /// Whether no rescue server can take `file_bytes` in the rest of this interval.
    pub(super) fn are_used_up(&self, file_bytes: u64, reach: Redirectability) -> bool {
        self.all
            .iter()
            .filter(|target| target.is_within(reach))
            .all(|target| target.budget.is_used_up(file_bytes as f64))
    }

    /// Whether any rescue server can be reached by who may be redirected like this.
    pub(super) fn are_within(&self, reach: Redirectability) -> bool {
        self.all.iter().any(|target| target.is_within(reach))
    }

    fn by_turn(&self, need: (Timestamp, f64), reach: Redirectability) -> Option<usize> {
        self.with_room(need, reach)
            .min_by(|(_, a), (_, b)| a.turn.max(self.turn).total_cmp(&b.turn.max(self.turn)))
            .map(|(index, _)| index)
    }

    fn by_hash(&self, need: (Timestamp, f64), hash: u64, reach: Redirectability) -> Option<usize> {
        let spent: f64 = self.all.iter().map(|target| target.budget.spent()).sum();
        let whole: f64 = self.all.iter().map(|target| target.budget.whole()).sum();
        let bound = (HASH_EXCESS * spent / whole).max(HASH_LEVEL);
        self.with_room(need, reach)
            .filter(|(_, target)| target.budget.spent() <= bound * target.budget.whole())
            .max_by_key(|(_, target)| mix(hash ^ target.seed))
            .map(|(index, _)| index)
    }

    /// Those within `reach` that have room for so many bytes now.
    fn with_room(
        &self,
        (now, bytes): (Timestamp, f64),
        reach: Redirectability,
    ) -> impl Iterator<Item = (usize, &Target)> {
        self.all.iter().enumerate().filter(move |(_, target)| {
            target.is_within(reach) && target.budget.has_room_or_is_fresh(now, bytes)
        })
    }
}

impl Target {
    const fn is_within(&self, reach: Redirectability) -> bool {
        match reach {
            Redirectability::Allowed => true,
            Redirectability::ByHttps => self.speaks_https,
            Redirectability::Never => false,
        }
    }
}

/// FNV-1a, the same on every core and every run.
fn hash_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Spreads the bits of a hash (the finaliser of SplitMix64).
const fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}
