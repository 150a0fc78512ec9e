//! All decisions of rescue control behind one door.
//!
//! [`Brain::handle`] is told what happened and says what must be done. It owns the phase of the
//! site (`rescue`) and the desk at which every phase works; around the transition it keeps house:
//! timers, aliases, the registry, the plan that the cores read, the journal. It reads no clock,
//! opens no socket and draws no randomness but from its seed, so the same inputs give the same
//! outputs.

use std::sync::Arc;

use levee_vocab::{ByteRate, Random, ServerState, Timestamp};

use crate::desk::Desk;
use crate::discovery::Due;
use crate::help::GivenRecord;
use crate::input::{Input, LinkLoss};
use crate::output::Output;
use crate::parameters::Parameters;
use crate::plan::{OriginRoute, RoutePlan};
use crate::reason::Reason;
use crate::rescue::{Phase, transition};
use crate::view::{AliasRecord, BrainView, CallView, EndingView};

/// The mind of one site. See the file header.
#[derive(Clone, Debug)]
pub struct Brain {
    desk: Desk,
    phase: Phase,
    plan: Arc<RoutePlan>,
}

impl Brain {
    /// A site in the normal state, with the aliases that it gave out before it was restarted.
    /// `parameters` went through [`Parameters::check`].
    pub fn new(parameters: Parameters, seed: u64, aliases: Vec<AliasRecord>) -> Self {
        Self::restore(parameters, seed, (aliases, Vec::new()))
    }

    /// As [`Brain::new`], with what was given to others before the restart as well.
    pub fn restore(
        parameters: Parameters,
        seed: u64,
        kept: (Vec<AliasRecord>, Vec<GivenRecord>),
    ) -> Self {
        let desk = Desk::new(parameters, Random::from_seed(seed), kept);
        let mut brain = Self {
            desk,
            phase: Phase::Normal,
            plan: Arc::default(),
        };
        brain.plan = Arc::new(brain.draft_plan());
        brain
    }

    /// Takes one input and says what must be done, in this order. A `now` before that of the last
    /// input counts as that; an interval of no length measures nothing.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Vec<Output> {
        self.desk.now = now.max(self.desk.now);
        let before = self.phase.state();
        if is_empty(&input) {
            self.step(&Input::TimerFired);
        } else {
            self.take_in(&input);
            self.step(&input);
        }
        if self.is_due() {
            self.step(&Input::TimerFired);
        }
        self.tell_state(before);
        self.order_copies();
        self.keep_house();
        let outputs = self.desk.take_outputs();
        self.desk.journal.record(self.desk.now, input, &outputs);
        outputs
    }

    /// When to call [`Brain::handle`] with [`Input::TimerFired`], if nothing happens before.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let registry = if self.desk.parameters.takes_part() {
            Some(self.desk.discovery.next_deadline())
        } else {
            None
        };
        [
            registry,
            self.phase.next_deadline(&self.desk),
            self.desk.aliases.next_deadline(),
            self.desk.next_key_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The plan for the cores; new after each [`Output::SwapPlan`].
    pub fn plan(&self) -> Arc<RoutePlan> {
        self.plan.clone()
    }

    /// The whole mind, for people.
    pub fn view(&self) -> BrainView {
        let (rescue_servers, origins, redirect_threshold) = match &self.phase {
            Phase::Drilling(drilling) => (drilling.sos().views(), Vec::new(), None),
            Phase::Sos(sos) => (sos.views(), Vec::new(), Some(sos.threshold(&self.desk))),
            Phase::Rescue(rescue) => (Vec::new(), rescue.views(), None),
            Phase::Normal | Phase::Calling(_) | Phase::Closing(_) | Phase::Drained => {
                (Vec::new(), Vec::new(), None)
            }
        };
        BrainView {
            state: self.phase.state(),
            phase: self.phase.name(),
            usable: self.desk.parameters.usable_rate(),
            free: self.free(),
            levels: self.desk.load.shown().collect(),
            redirect_threshold,
            calm_intervals: self.desk.load.calm_intervals(),
            rescue_servers,
            origins,
            ending: self.ending(),
            drill: self.phase.drill(&self.desk),
            help: self.desk.help_view(),
            hot: self.desk.hot_views(),
            candidates: self.desk.allocation.candidates().to_vec(),
            call: match &self.phase {
                Phase::Calling(_) => CallView::Asking,
                Phase::Normal
                | Phase::Drilling(_)
                | Phase::Sos(_)
                | Phase::Rescue(_)
                | Phase::Closing(_)
                | Phase::Drained => self.desk.allocation.call_view(self.desk.now),
            },
            decisions: self.desk.journal.decisions(),
        }
    }

    fn ending(&self) -> Vec<EndingView> {
        let view = |(route, since): (&OriginRoute, _)| EndingView {
            link: route.link,
            peer: route.origin.clone(),
            alias: route.alias.clone(),
            since,
        };
        self.desk.aliases.ending().map(view).collect()
    }

    /// The aliases given out, to be kept over a restart.
    pub fn aliases(&self) -> Vec<AliasRecord> {
        self.desk.aliases.records()
    }

    /// What was given to others in the last day, to be kept over a restart.
    pub fn given(&self) -> Vec<GivenRecord> {
        self.desk.given.records(self.desk.now)
    }

    /// The last inputs and outputs, a line each, for the report of a failure.
    pub fn story(&self) -> String {
        self.desk.journal.story()
    }

    /// The settings in force.
    pub fn parameters(&self) -> &Parameters {
        &self.desk.parameters
    }

    /// What an input tells beyond the phase: measurements, candidates, settings, confirmations.
    fn take_in(&mut self, input: &Input) {
        let desk = &mut self.desk;
        match input {
            Input::IntervalEnded(sample) => desk.measure(sample),
            Input::CandidatesFound(found) => {
                desk.allocation.renew(found.clone(), &desk.parameters);
            }
            Input::ParametersChanged(parameters) => {
                desk.adopt(parameters);
                desk.cut_unwanted();
            }
            Input::ResourcesStepped(steps) => desk.note_steps(steps),
            Input::EmbeddedFound { page, resources } => desk.copies.embed(page, resources),
            Input::CopyEnded { link, url, outcome } => desk.end_copy((*link, url), *outcome),
            Input::CopyMissing { link, url } => {
                let interval = desk.parameters.interval;
                desk.copies.miss(desk.now, (*link, url), interval);
            }
            // An origin that confirms the end of its rescue redirects nobody any more: one interval
            // for visitors who are under way, then its alias may lead back.
            Input::AnswerReceived { link } | Input::ShutdownReceived { link } => {
                let until = desk.after(1.0);
                desk.aliases.acknowledge(*link, until);
            }
            Input::MembersExpelled(hosts) => {
                desk.allocation.expel(hosts);
                desk.cut_unwanted();
            }
            Input::LinkLost {
                link,
                loss: LinkLoss::Distrusted,
            } => desk.cut(*link),
            Input::RecordsChanged(records) => desk.records = *records,
            Input::TimerFired
            | Input::SearchFailed
            | Input::RescueAccepted { .. }
            | Input::RescueRefused { .. }
            | Input::SosReceived { .. }
            | Input::RateReceived { .. }
            | Input::PeersReceived { .. }
            | Input::PermitReceived { .. }
            | Input::OriginReturned { .. }
            | Input::DeliveryLate { .. }
            | Input::LinkLost {
                loss: LinkLoss::Closed | LinkLoss::Silent | LinkLoss::Garbage | LinkLoss::NotAMember,
                ..
            }
            | Input::DrillOrdered(_)
            | Input::DrillStopped(_)
            | Input::DrainStarted => {}
        }
    }

    fn step(&mut self, input: &Input) {
        let phase = std::mem::replace(&mut self.phase, Phase::Normal);
        self.phase = transition(&mut self.desk, phase, input);
    }

    fn is_due(&self) -> bool {
        self.phase
            .next_deadline(&self.desk)
            .is_some_and(|deadline| self.desk.now >= deadline)
    }

    /// Has copied what is hot, wherever it can be (H3).
    fn order_copies(&mut self) {
        let members = match &self.phase {
            Phase::Sos(sos) => sos.copy_members(),
            Phase::Normal
            | Phase::Calling(_)
            | Phase::Drilling(_)
            | Phase::Rescue(_)
            | Phase::Closing(_)
            | Phase::Drained => Vec::new(),
        };
        self.desk.order_copies(&members);
    }

    fn tell_state(&mut self, from: ServerState) {
        let to = self.phase.state();
        if from != to {
            self.desk.explain(Reason::StateChanged { from, to });
        }
    }

    fn keep_house(&mut self) {
        let desk = &mut self.desk;
        desk.aliases.expire(desk.now, &desk.parameters);
        desk.forget_keys();
        desk.keep_ledger();
        self.talk_to_registry();
        self.renew_plan();
    }

    fn talk_to_registry(&mut self) {
        let free = self.free();
        let desk = &mut self.desk;
        if !desk.parameters.takes_part() {
            return;
        }
        let period = desk.parameters.registry_period;
        if desk.discovery.register(desk.now, period, free) == Due::Now {
            desk.act(Output::Register { free });
        }
        if desk.discovery.search(desk.now, period) == Due::Now {
            let count = desk.parameters.candidates_max;
            desk.act(Output::SearchRegistry { count });
        }
    }

    fn free(&self) -> ByteRate {
        if self.desk.parameters.takes_part() {
            self.phase.free(&self.desk)
        } else {
            ByteRate::ZERO
        }
    }

    /// Swaps the plan when it says something new: the number of the interval alone is new only
    /// where budgets depend on it.
    fn renew_plan(&mut self) {
        let mut draft = self.draft_plan();
        let redirects = |plan: &RoutePlan| plan.redirect.is_some() || plan.drill.is_some();
        if !redirects(&draft) && !redirects(&self.plan) {
            draft.interval = self.plan.interval;
        }
        if draft != *self.plan {
            draft.version += 1;
            self.plan = Arc::new(draft);
            self.desk.act(Output::SwapPlan);
        }
    }

    /// The plan as it should be, with the version of the plan as it is.
    fn draft_plan(&self) -> RoutePlan {
        let desk = &self.desk;
        let (redirect, keys) = match &self.phase {
            Phase::Sos(sos) => (Some(sos.redirect_plan(desk)), sos.keys().collect()),
            Phase::Drilling(drilling) => (None, drilling.sos().keys().collect()),
            Phase::Normal
            | Phase::Calling(_)
            | Phase::Rescue(_)
            | Phase::Closing(_)
            | Phase::Drained => (None, Vec::new()),
        };
        let mut fetch_keys = keys;
        fetch_keys.extend(desk.retired_keys());
        RoutePlan {
            version: self.plan.version,
            state: self.phase.state(),
            interval: desk.interval,
            interval_length: desk.parameters.interval,
            hosts: desk.aliases.table(),
            fetch_keys,
            redirect,
            drill: self.phase.drill_plan(desk),
            crawl: Some(desk.crawl_plan()),
            help: desk.help_plan(&self.phase.allotted()),
        }
    }
}

/// Whether nothing can be learned from this: rates over no time mean nothing.
fn is_empty(input: &Input) -> bool {
    if let Input::IntervalEnded(sample) = input {
        sample.elapsed.is_zero()
    } else {
        false
    }
}
