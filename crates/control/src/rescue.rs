//! The state of a site in its community, and what each event makes of it (R1; dotslash 3.1, 4.4).
//!
//! ```text
//!                  load > T_alert                accepted
//!      ┌─ Normal ─────────────────▶ Calling ─────────────────▶ Sos
//!      │    ▲ ▲ ▲                      │                        │
//!      │    │ │ └──── nobody helps ────┘                        │
//!  SOS │    │ └────────────── all released or lost ─────────────┘
//!      ▼    │
//!    Rescue ┤ released or lost by the last origin
//!      │    │
//!      └──▶ Closing ─── confirmed, and load > T_alert ───▶ Calling
//!   shuts its rescues down itself
//! ```
//!
//! `Normal` and `Calling` are the paper's normal state, `Rescue` and `Closing` its rescue state.
//! A server is in exactly one phase, so it never both rescues and is rescued: an SOS is accepted in
//! `Normal` and `Rescue` only, and help is called for from `Normal` and after `Closing` only, in
//! which the rescues that we gave are shut down first. `Drained` is the end: the operator stops us.
//! `Drilling`, begun from `Normal` by an operator, is normal to all visitors but its own; whatever
//! ends it leads to where `Normal` would have led.
//!
//! Each phase carries only what is true in it. [`transition`] is the whole table, a row for each
//! phase; it computes the next phase and leaves what must be done on the [`Desk`]. The transitions
//! that the test `rescue_table` found by trying every input in every phase:
//!
//! ```text transitions
//! Normal   ──▶ Calling  IntervalEnded(own crowd)
//! Normal   ──▶ Calling  IntervalEnded(rescue server used up)
//! Normal   ──▶ Calling  IntervalEnded(rescue traffic above D_alloc)
//! Normal   ──▶ Calling  IntervalEnded(visitors wait)
//! Normal   ──▶ Drilling DrillOrdered
//! Normal   ──▶ Rescue   SosReceived(drill)
//! Normal   ──▶ Rescue   SosReceived(new origin)
//! Normal   ──▶ Rescue   SosReceived(over a used link)
//! Normal   ──▶ Rescue   SosReceived(same origin again)
//! Normal   ──▶ Drained  DrainStarted
//! Calling  ──▶ Normal   ParametersChanged(no community)
//! Calling  ──▶ Sos      RescueAccepted(asked)
//! Calling  ──▶ Sos      RescueAccepted(asked, knows drills)
//! Calling  ──▶ Drained  DrainStarted
//! Drilling ──▶ Normal   DrillStopped(client lost)
//! Drilling ──▶ Normal   DrillStopped(operator)
//! Drilling ──▶ Normal   ParametersChanged(no community)
//! Drilling ──▶ Normal   ShutdownReceived(rescue server)
//! Drilling ──▶ Normal   TimerFired(late)
//! Drilling ──▶ Calling  IntervalEnded(visitors wait)
//! Drilling ──▶ Rescue   SosReceived(new origin)
//! Drilling ──▶ Rescue   SosReceived(over a used link)
//! Drilling ──▶ Rescue   SosReceived(same origin again)
//! Drilling ──▶ Drained  DrainStarted
//! Sos      ──▶ Normal   DeliveryLate(rescue server)
//! Sos      ──▶ Normal   LinkLost(rescue server)
//! Sos      ──▶ Normal   MembersExpelled(rescue server)
//! Sos      ──▶ Normal   ParametersChanged(no community)
//! Sos      ──▶ Normal   ShutdownReceived(rescue server)
//! Sos      ──▶ Normal   TimerFired(late)
//! Sos      ──▶ Drained  DrainStarted
//! Rescue   ──▶ Normal   LinkLost(origin)
//! Rescue   ──▶ Normal   ShutdownReceived(origin)
//! Rescue   ──▶ Normal   SosReceived(over a used link)
//! Rescue   ──▶ Closing  DrillStopped(operator)
//! Rescue   ──▶ Closing  IntervalEnded(own crowd)
//! Rescue   ──▶ Closing  IntervalEnded(rescue server used up)
//! Rescue   ──▶ Closing  IntervalEnded(visitors wait)
//! Rescue   ──▶ Closing  ParametersChanged(no community)
//! Rescue   ──▶ Closing  TimerFired(late)
//! Rescue   ──▶ Drained  DrainStarted
//! Closing  ──▶ Calling  AnswerReceived(origin)
//! Closing  ──▶ Calling  LinkLost(origin)
//! Closing  ──▶ Calling  ShutdownReceived(origin)
//! Closing  ──▶ Calling  TimerFired(late)
//! Closing  ──▶ Drained  DrainStarted
//! ```

pub(crate) mod calls;
mod drafting;
pub(crate) mod drilling;
pub(crate) mod rescued;
pub(crate) mod rescuing;
mod usefulness;

use std::collections::BTreeMap;

use levee_vocab::{ByteRate, LinkId, Peer, ServerState, Timestamp};

use crate::desk::Desk;
use crate::drill::{DrillPlan, DrillRefusal, DrillStop, DrillView};
use crate::help::{Allotted, CallRefusal};
use crate::input::{Input, Rejection};
use crate::output::{Output, ShutdownCause};
use crate::rescue::calls::Calls;
pub(crate) use crate::rescue::drafting::measure_need;
use crate::rescue::drilling::{Drilling, begin, in_drill, refuse};
use crate::rescue::rescued::{Offer, Sos};
use crate::rescue::rescuing::{Closing, Rescue, reject};
use crate::view::PhaseName;

/// Where the site stands.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Neither helps nor is helped.
    Normal,
    /// Asks for help; nobody helps yet.
    Calling(Calls),
    /// Rehearses with whoever takes part; none of its visitors is redirected.
    Drilling(Drilling),
    /// Is helped by at least one.
    Sos(Sos),
    /// Helps at least one.
    Rescue(Rescue),
    /// Has shut its rescues down and waits until the origins know.
    Closing(Closing),
    /// Takes no part any more: the operator stops this server.
    Drained,
}

/// What `input` makes of `phase`. What must be done is left on the desk.
pub(crate) fn transition(desk: &mut Desk, phase: Phase, input: &Input) -> Phase {
    match phase {
        Phase::Normal => normal(desk, input),
        Phase::Calling(calls) => calling(desk, calls, input),
        Phase::Drilling(drilling) => in_drill(desk, drilling, input),
        Phase::Sos(sos) => in_sos(desk, sos, input),
        Phase::Rescue(rescue) => in_rescue(desk, rescue, input),
        Phase::Closing(closing) => in_closing(desk, closing, input),
        Phase::Drained => drained(desk, input),
    }
}

/// The row of [`Phase::Normal`].
fn normal(desk: &mut Desk, input: &Input) -> Phase {
    match input {
        Input::IntervalEnded(_) | Input::ResourcesStepped(_) => {
            measure_need(desk);
            call_for_help(desk, Calls::default())
        }
        Input::CandidatesFound(_) => {
            let mut calls = Calls::default();
            calls.continue_round(desk, &[]);
            settle_calls(calls)
        }
        Input::SosReceived { link, call } => Rescue::default().called(desk, *link, call),
        Input::RescueAccepted { link, .. } => too_late(desk, *link, Phase::Normal),
        Input::DrillOrdered(order) => begin(desk, *order),
        Input::DrainStarted => Phase::Drained,
        Input::TimerFired
        | Input::SearchFailed
        | Input::RescueRefused { .. }
        | Input::RateReceived { .. }
        | Input::PeersReceived { .. }
        | Input::PermitReceived { .. }
        | Input::OriginReturned { .. }
        | Input::RecordsChanged(_)
        | Input::MembersExpelled(_)
        | Input::DeliveryLate { .. }
        | Input::AnswerReceived { .. }
        | Input::ShutdownReceived { .. }
        | Input::LinkLost { .. }
        | Input::DrillStopped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::CopyMissing { .. }
        | Input::ParametersChanged(_) => Phase::Normal,
    }
}

/// The row of [`Phase::Calling`].
fn calling(desk: &mut Desk, mut calls: Calls, input: &Input) -> Phase {
    match input {
        Input::IntervalEnded(_) | Input::ResourcesStepped(_) => {
            measure_need(desk);
            call_for_help(desk, calls)
        }
        Input::RescueAccepted { .. } => match offer(input) {
            Some(offer) => Sos::with_calls(calls).accepted(desk, offer),
            None => Phase::Calling(calls),
        },
        Input::RescueRefused { link, rejection } => {
            Sos::with_calls(calls).refused(desk, *link, *rejection)
        }
        Input::ShutdownReceived { link } | Input::LinkLost { link, .. } => {
            Sos::with_calls(calls).refused(desk, *link, Rejection::Unreachable)
        }
        Input::CandidatesFound(_) => {
            calls.continue_round(desk, &[]);
            Phase::Calling(calls)
        }
        Input::TimerFired => Sos::with_calls(calls).time_passed(desk),
        Input::SosReceived { link, call } => {
            reject(desk, *link, call, CallRefusal::Calling);
            Phase::Calling(calls)
        }
        Input::ParametersChanged(_) if !desk.parameters.takes_part() => {
            Sos::with_calls(calls).end_all(desk, ShutdownCause::Drain)
        }
        Input::DrillOrdered(_) => {
            refuse(desk, DrillRefusal::InNeed);
            Phase::Calling(calls)
        }
        Input::DrainStarted => {
            calls.drop_all(desk);
            Phase::Drained
        }
        Input::SearchFailed
        | Input::RateReceived { .. }
        | Input::PeersReceived { .. }
        | Input::PermitReceived { .. }
        | Input::OriginReturned { .. }
        | Input::RecordsChanged(_)
        | Input::MembersExpelled(_)
        | Input::DeliveryLate { .. }
        | Input::AnswerReceived { .. }
        | Input::DrillStopped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::CopyMissing { .. }
        | Input::ParametersChanged(_) => Phase::Calling(calls),
    }
}

/// The row of [`Phase::Sos`].
fn in_sos(desk: &mut Desk, mut sos: Sos, input: &Input) -> Phase {
    match input {
        Input::IntervalEnded(sample) => sos.measured(desk, sample),
        Input::RescueAccepted { .. } => match offer(input) {
            Some(offer) => sos.accepted(desk, offer),
            None => Phase::Sos(sos),
        },
        Input::RescueRefused { link, rejection } => sos.refused(desk, *link, *rejection),
        Input::RateReceived {
            link,
            rate,
            carried,
        } => {
            sos.rate_told(desk, *link, *rate, *carried);
            Phase::Sos(sos)
        }
        Input::ShutdownReceived { link } => sos.shut_down(desk, *link),
        Input::LinkLost { link, loss } => sos.lost(desk, *link, *loss),
        Input::CandidatesFound(_) => sos.candidates_found(desk),
        Input::TimerFired => sos.time_passed(desk),
        Input::MembersExpelled(_) => sos.expelled(desk),
        Input::DeliveryLate { link } => sos.too_slow(desk, *link),
        Input::SosReceived { link, call } => {
            reject(desk, *link, call, CallRefusal::Rescued);
            Phase::Sos(sos)
        }
        Input::ParametersChanged(_) if !desk.parameters.takes_part() => {
            sos.end_all(desk, ShutdownCause::Drain)
        }
        Input::DrillOrdered(_) => {
            refuse(desk, DrillRefusal::InNeed);
            Phase::Sos(sos)
        }
        Input::DrainStarted => {
            sos.end_all(desk, ShutdownCause::Drain);
            Phase::Drained
        }
        Input::SearchFailed
        | Input::PeersReceived { .. }
        | Input::PermitReceived { .. }
        | Input::OriginReturned { .. }
        | Input::RecordsChanged(_)
        | Input::AnswerReceived { .. }
        | Input::DrillStopped(_)
        | Input::ResourcesStepped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::CopyMissing { .. }
        | Input::ParametersChanged(_) => Phase::Sos(sos),
    }
}

/// The row of [`Phase::Rescue`].
fn in_rescue(desk: &mut Desk, mut rescue: Rescue, input: &Input) -> Phase {
    match input {
        Input::IntervalEnded(sample) => rescue.measured(desk, sample),
        Input::SosReceived { link, call } => rescue.called(desk, *link, call),
        Input::AnswerReceived { link } => {
            rescue.answered(*link);
            Phase::Rescue(rescue)
        }
        Input::ShutdownReceived { link } => rescue.released(desk, *link),
        Input::LinkLost { link, loss } => rescue.lost(desk, *link, *loss),
        Input::TimerFired => rescue.time_passed(desk),
        Input::ParametersChanged(_) => rescue.settings_changed(desk),
        Input::MembersExpelled(_) => rescue.expelled(desk),
        Input::RescueAccepted { link, .. } => too_late(desk, *link, Phase::Rescue(rescue)),
        Input::DrillOrdered(_) => {
            refuse(desk, DrillRefusal::Helping);
            Phase::Rescue(rescue)
        }
        Input::DrillStopped(DrillStop::Operator) => {
            rescue.end_drill(desk, ShutdownCause::DrillStopped)
        }
        Input::DrainStarted => {
            rescue.close(desk, ShutdownCause::Drain);
            Phase::Drained
        }
        Input::CandidatesFound(_)
        | Input::DeliveryLate { .. }
        | Input::SearchFailed
        | Input::RescueRefused { .. }
        | Input::RateReceived { .. }
        | Input::DrillStopped(DrillStop::Client | DrillStop::ClientLost | DrillStop::Reload)
        | Input::ResourcesStepped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::RecordsChanged(_)
        | Input::CopyMissing { .. } => Phase::Rescue(rescue),
        Input::PeersReceived { link, peers } => {
            rescue.peers_told(desk, *link, peers);
            Phase::Rescue(rescue)
        }
        Input::PermitReceived { link, length } => {
            rescue.permitted(desk, *link, *length);
            Phase::Rescue(rescue)
        }
        Input::OriginReturned { link } => rescue.returned(desk, *link),
    }
}

/// The row of [`Phase::Closing`].
fn in_closing(desk: &mut Desk, closing: Closing, input: &Input) -> Phase {
    match input {
        Input::IntervalEnded(_) => closing.measured(desk),
        Input::AnswerReceived { link }
        | Input::ShutdownReceived { link }
        | Input::LinkLost { link, .. } => closing.confirmed(desk, *link),
        Input::TimerFired => closing.time_passed(desk),
        Input::SosReceived { link, call } => {
            reject(desk, *link, call, CallRefusal::Closing);
            Phase::Closing(closing)
        }
        Input::RescueAccepted { link, .. } => too_late(desk, *link, Phase::Closing(closing)),
        Input::DrillOrdered(_) => {
            refuse(desk, DrillRefusal::Helping);
            Phase::Closing(closing)
        }
        Input::DrainStarted => Phase::Drained,
        Input::CandidatesFound(_)
        | Input::SearchFailed
        | Input::RescueRefused { .. }
        | Input::RateReceived { .. }
        | Input::PeersReceived { .. }
        | Input::PermitReceived { .. }
        | Input::OriginReturned { .. }
        | Input::RecordsChanged(_)
        | Input::MembersExpelled(_)
        | Input::DeliveryLate { .. }
        | Input::DrillStopped(_)
        | Input::ResourcesStepped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::CopyMissing { .. }
        | Input::ParametersChanged(_) => Phase::Closing(closing),
    }
}

/// The row of [`Phase::Drained`].
fn drained(desk: &mut Desk, input: &Input) -> Phase {
    match input {
        Input::SosReceived { link, call } => {
            reject(desk, *link, call, CallRefusal::Drained);
            Phase::Drained
        }
        Input::RescueAccepted { link, .. } => too_late(desk, *link, Phase::Drained),
        Input::DrillOrdered(_) => {
            refuse(desk, DrillRefusal::Drained);
            Phase::Drained
        }
        Input::IntervalEnded(_)
        | Input::TimerFired
        | Input::CandidatesFound(_)
        | Input::SearchFailed
        | Input::RescueRefused { .. }
        | Input::RateReceived { .. }
        | Input::PeersReceived { .. }
        | Input::PermitReceived { .. }
        | Input::OriginReturned { .. }
        | Input::RecordsChanged(_)
        | Input::MembersExpelled(_)
        | Input::DeliveryLate { .. }
        | Input::AnswerReceived { .. }
        | Input::ShutdownReceived { .. }
        | Input::LinkLost { .. }
        | Input::ResourcesStepped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::CopyMissing { .. }
        | Input::ParametersChanged(_)
        | Input::DrillStopped(_)
        | Input::DrainStarted => Phase::Drained,
    }
}

impl Phase {
    /// The phase without what it carries.
    pub(crate) fn name(&self) -> PhaseName {
        match self {
            Self::Normal => PhaseName::Normal,
            Self::Calling(_) => PhaseName::Calling,
            Self::Drilling(_) => PhaseName::Drilling,
            Self::Sos(_) => PhaseName::Sos,
            Self::Rescue(_) => PhaseName::Rescue,
            Self::Closing(_) => PhaseName::Closing,
            Self::Drained => PhaseName::Drained,
        }
    }

    /// The state of the paper that this phase is part of.
    pub(crate) fn state(&self) -> ServerState {
        match self {
            Self::Normal | Self::Calling(_) | Self::Drilling(_) | Self::Drained => {
                ServerState::Normal
            }
            Self::Sos(_) => ServerState::Sos,
            Self::Rescue(_) | Self::Closing(_) => ServerState::Rescue,
        }
    }

    /// d_free: what the registry is told. A site that would say no offers nothing.
    pub(crate) fn free(&self, desk: &Desk) -> ByteRate {
        match self {
            // Whoever needs help in earnest gets it: the drill ends.
            Self::Normal | Self::Drilling(_) => Rescue::default().free(desk),
            Self::Rescue(rescue) => rescue.free(desk),
            Self::Calling(_) | Self::Sos(_) | Self::Closing(_) | Self::Drained => ByteRate::ZERO,
        }
    }

    /// The drill that we hold or take part in.
    pub(crate) fn drill(&self, desk: &Desk) -> Option<DrillView> {
        match self {
            Self::Drilling(drilling) => Some(drilling.view(desk)),
            Self::Rescue(rescue) => rescue.drill(),
            Self::Normal | Self::Calling(_) | Self::Sos(_) | Self::Closing(_) | Self::Drained => {
                None
            }
        }
    }

    /// How to redirect the visitors of our drill.
    pub(crate) fn drill_plan(&self, desk: &Desk) -> Option<DrillPlan> {
        match self {
            Self::Drilling(drilling) => Some(drilling.plan(desk)),
            Self::Normal
            | Self::Calling(_)
            | Self::Sos(_)
            | Self::Rescue(_)
            | Self::Closing(_)
            | Self::Drained => None,
        }
    }

    /// What each origin that we rescue is allotted, by its slot.
    pub(crate) fn allotted(&self) -> BTreeMap<u8, Allotted> {
        match self {
            Self::Rescue(rescue) => rescue.allotted(),
            Self::Normal
            | Self::Calling(_)
            | Self::Drilling(_)
            | Self::Sos(_)
            | Self::Closing(_)
            | Self::Drained => BTreeMap::new(),
        }
    }

    /// When this phase wants to hear [`Input::TimerFired`].
    pub(crate) fn next_deadline(&self, desk: &Desk) -> Option<Timestamp> {
        match self {
            Self::Normal | Self::Drained => None,
            Self::Calling(calls) => calls.next_deadline(),
            Self::Drilling(drilling) => Some(drilling.next_deadline()),
            Self::Sos(sos) => sos.next_deadline(),
            Self::Rescue(rescue) => rescue.next_deadline(|count| desk.parameters.intervals(count)),
            Self::Closing(closing) => Some(closing.next_deadline()),
        }
    }
}

/// Goes on in `Normal` or `Calling`: holds this interval's round if help is needed.
pub(crate) fn call_for_help(desk: &mut Desk, mut calls: Calls) -> Phase {
    calls.hold_round(desk, &[]);
    settle_calls(calls)
}

fn settle_calls(calls: Calls) -> Phase {
    if calls.is_empty() {
        Phase::Normal
    } else {
        Phase::Calling(calls)
    }
}

/// Somebody accepted a call that we gave up: it must not keep its reservation for us.
fn too_late(desk: &mut Desk, link: LinkId, phase: Phase) -> Phase {
    desk.act(Output::DropLink { link });
    phase
}

fn offer(input: &Input) -> Option<Offer> {
    match input {
        Input::RescueAccepted {
            link,
            alias,
            address,
            rate,
            key,
            beats,
            drill: _,
            tls,
        } => Some(Offer {
            link: *link,
            peer: Peer {
                alias: alias.clone(),
                address: *address,
                tls: *tls,
                rate: *rate,
            },
            key: *key,
            beats: *beats,
            tls: *tls,
        }),
        Input::IntervalEnded(_)
        | Input::TimerFired
        | Input::CandidatesFound(_)
        | Input::SearchFailed
        | Input::RescueRefused { .. }
        | Input::SosReceived { .. }
        | Input::RateReceived { .. }
        | Input::PeersReceived { .. }
        | Input::PermitReceived { .. }
        | Input::OriginReturned { .. }
        | Input::RecordsChanged(_)
        | Input::MembersExpelled(_)
        | Input::DeliveryLate { .. }
        | Input::AnswerReceived { .. }
        | Input::ShutdownReceived { .. }
        | Input::LinkLost { .. }
        | Input::ResourcesStepped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::CopyMissing { .. }
        | Input::ParametersChanged(_)
        | Input::DrillOrdered(_)
        | Input::DrillStopped(_)
        | Input::DrainStarted => None,
    }
}
