//! What every phase of a Brain works with: its settings, its clock, what it knows, and what it
//! has decided so far about the present input.
//!
//! It exists so that the phases (`rescue`) carry only what is true in them. It decides nothing.

mod copying;
mod dismissal;

use std::time::Duration;

use levee_vocab::{FetchKey, HostName, LinkId, Random, Resource, Timestamp};

use crate::aliases::Aliases;
use crate::allocation::{Allocation, Need, Nobody};
use crate::copies::CopyLedger;
use crate::discovery::{Discovery, Due};
use crate::help::{GivenRecord, Ledger, Refusals};
use crate::input::{LoadSample, Records};
use crate::journal::Journal;
use crate::load::{Load, Pressure};
use crate::output::Output;
use crate::parameters::Parameters;
use crate::plan::CrawlPlan;
use crate::reason::{Reason, Wanted};
use crate::slots::Slots;
use crate::view::AliasRecord;

/// Control intervals for which the key of an ended rescue is still honoured: fetches for visitors
/// who were under way must not be redirected. Twice as long as an alias serves on.
const KEY_GRACE: f64 = 20.0;

/// Keys of ended rescues kept at most.
const RETIRED_KEYS_MAX: usize = 64;

/// Control intervals between two explanations that requests are being refused.
const REFUSAL_NEWS: u32 = 10;

/// A level must fall to this share of its threshold before rising above it is news again.
const RISE_AGAIN: f64 = 0.8;

/// See the file header.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) parameters: Parameters,
    pub(crate) now: Timestamp,
    /// Number of the control interval.
    pub(crate) interval: u64,
    pub(crate) load: Load,
    pub(crate) allocation: Allocation,
    pub(crate) aliases: Aliases,
    pub(crate) slots: Slots,
    pub(crate) discovery: Discovery,
    pub(crate) copies: CopyLedger,
    pub(crate) journal: Journal,
    /// What was given to whom in the last day.
    pub(crate) given: Ledger,
    /// Whom we did not help.
    pub(crate) not_helped: Refusals,
    /// An alias that a crash would forget is not given out.
    pub(crate) records: Records,
    retired_keys: Vec<RetiredKey>,
    raised: Vec<Resource>,
    refused: Refused,
    outputs: Vec<Output>,
}

#[derive(Clone, Debug)]
struct RetiredKey {
    link: LinkId,
    key: FetchKey,
    until: Timestamp,
}

/// Share of D_out by which what crawlers get goes up and down.
const CRAWL_STEP: f64 = 0.05;

/// Part of their share that goes to telling crawlers to come back later.
const CRAWL_REFUSALS: f64 = 0.1;

/// Refusals that were not told yet.
#[derive(Clone, Debug, Default)]
struct Refused {
    requests: u64,
    elapsed: Duration,
    quiet_intervals: u32,
}

impl Desk {
    pub(crate) fn new(
        parameters: Parameters,
        random: Random,
        (records, given): (Vec<AliasRecord>, Vec<GivenRecord>),
    ) -> Self {
        Self {
            parameters,
            now: Timestamp::ZERO,
            interval: 0,
            load: Load::default(),
            allocation: Allocation::new(random),
            aliases: Aliases::restore(records),
            slots: Slots::default(),
            discovery: Discovery::default(),
            copies: CopyLedger::default(),
            journal: Journal::default(),
            given: Ledger::restore(given),
            not_helped: Refusals::default(),
            records: Records::default(),
            retired_keys: Vec::new(),
            raised: Vec::new(),
            refused: Refused::default(),
            outputs: Vec::new(),
        }
    }

    /// Something must be done.
    pub(crate) fn act(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// A decision for people.
    pub(crate) fn explain(&mut self, reason: Reason) {
        self.journal.note(self.now, reason.clone());
        self.outputs.push(Output::Explain(reason));
    }

    /// All that was decided about the present input. The aliases are written down and the plan is
    /// swapped before anything is said to others, because what is said rests on them.
    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        let mut outputs = std::mem::take(&mut self.outputs);
        outputs.sort_by_key(|output| match output {
            Output::RememberAliases => 0,
            Output::RememberGiven => 3,
            Output::SwapPlan => 1,
            Output::CallForHelp { .. }
            | Output::AcceptSos { .. }
            | Output::RejectSos { .. }
            | Output::TellRate { .. }
            | Output::TellPeers { .. }
            | Output::ShutDown { .. }
            | Output::DropLink { .. }
            | Output::SearchRegistry { .. }
            | Output::Register { .. }
            | Output::Copy(_)
            | Output::Explain(_) => 2,
        });
        outputs
    }

    /// The point `count` control intervals from now.
    pub(crate) fn after(&self, count: f64) -> Timestamp {
        self.now + self.parameters.intervals(count)
    }

    /// A control interval is over.
    pub(crate) fn measure(&mut self, sample: &LoadSample) {
        self.interval += 1;
        self.copies.pass();
        self.load.measure(&self.parameters, sample);
        self.note_given(sample);
        self.tell_rises();
        self.tell_refusals(sample);
    }

    /// What crawlers get: their share of D_out, as far as readers leave room for it below T_alert.
    /// It changes in steps, so that the plan does not change with each interval.
    pub(crate) fn crawl_plan(&self) -> CrawlPlan {
        let parameters = &self.parameters;
        let usable = parameters.usable_rate();
        let room = parameters.thresholds.alert - self.load.bandwidth();
        let pressed = self.load.pressure() == Pressure::Pressed;
        let room = if pressed { 0.0 } else { room };
        let steps = (room / CRAWL_STEP).floor() * CRAWL_STEP;
        CrawlPlan {
            pages: usable.times(steps.clamp(0.0, parameters.crawler_share)),
            refusals: usable.times(parameters.crawler_share * CRAWL_REFUSALS),
        }
    }

    /// The rescue of `link` is over: its key is honoured for a while.
    pub(crate) fn retire_key(&mut self, link: LinkId, key: FetchKey) {
        if self.retired_keys.len() == RETIRED_KEYS_MAX {
            self.retired_keys.remove(0);
        }
        // So long visitors still come to whoever was in our name.
        let named = self.parameters.name_ttl.unwrap_or_default();
        let until = self.after(KEY_GRACE) + named;
        self.retired_keys.push(RetiredKey { link, key, until });
    }

    /// Keys of ended rescues that are still honoured.
    pub(crate) fn retired_keys(&self) -> impl Iterator<Item = (LinkId, FetchKey)> + '_ {
        self.retired_keys
            .iter()
            .map(|retired| (retired.link, retired.key))
    }

    /// Forgets keys whose time is over.
    pub(crate) fn forget_keys(&mut self) {
        let now = self.now;
        self.retired_keys.retain(|retired| now < retired.until);
    }

    /// When the next key is forgotten.
    pub(crate) fn next_key_deadline(&self) -> Option<Timestamp> {
        self.retired_keys.iter().map(|retired| retired.until).min()
    }

    /// Leaves a candidate alone for `intervals`, longer if it fails often.
    pub(crate) fn rest(&mut self, host: &HostName, intervals: f64) {
        let rest = self.parameters.intervals(intervals);
        self.allocation.note_failure(self.now, host, rest);
    }

    /// Says that nobody is left to ask for what is needed: once until somebody was asked.
    pub(crate) fn tell_nobody_left(&mut self) {
        let wanted = match self.allocation.need() {
            Need::None => return,
            Need::OneMore => Wanted::Anybody,
            Need::OneMoreByHttps => Wanted::ByHttps,
        };
        if self.allocation.note_nobody_left() == Nobody::New {
            self.explain(Reason::NoCandidate(wanted));
        }
    }

    /// Nobody is left to ask: look for others, once an interval.
    pub(crate) fn search_in_need(&mut self) {
        if self.discovery.search_in_need(self.interval) == Due::Now {
            self.act(Output::SearchRegistry {
                count: self.parameters.candidates_max,
            });
        }
    }

    fn tell_rises(&mut self) {
        let threshold = self.parameters.thresholds.alert;
        let levels: Vec<_> = self.load.levels().collect();
        for (resource, level) in levels {
            let raised = self.raised.contains(&resource);
            if level > threshold && !raised {
                self.raised.push(resource);
                self.explain(Reason::LoadRose {
                    resource,
                    level,
                    threshold,
                });
            } else if level < threshold * RISE_AGAIN {
                self.raised.retain(|&other| other != resource);
            }
        }
    }

    fn tell_refusals(&mut self, sample: &LoadSample) {
        let refusals = &mut self.refused;
        refusals.quiet_intervals = refusals.quiet_intervals.saturating_sub(1);
        if sample.refused > 0 || refusals.requests > 0 {
            refusals.requests += sample.refused;
            refusals.elapsed += sample.elapsed;
        }
        if refusals.requests == 0 || refusals.quiet_intervals > 0 {
            return;
        }
        let (requests, elapsed) = (refusals.requests, refusals.elapsed);
        *refusals = Refused {
            quiet_intervals: REFUSAL_NEWS,
            ..Refused::default()
        };
        self.explain(Reason::Refusing { requests, elapsed });
    }
}
