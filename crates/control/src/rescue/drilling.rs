//! The side of the site that drills: an SOS whose need is ordered instead of measured.
//!
//! All that happens on the links is the business of [`Sos`], as in a rescue. Here is only what is
//! different: each candidate is asked once, one after the other, until there are enough; nothing is
//! released by load; and everything more important ends it at once.

use levee_vocab::{ByteRate, HostName, LinkId, Timestamp};

use crate::allocation::Need;
use crate::desk::Desk;
use crate::drill::{
    DRILL_ALONE_MAX, DRILL_LENGTH_MAX, DRILL_LINK_SHARE, DrillEnd, DrillOrder, DrillPlan,
    DrillRefusal, DrillView,
};
use crate::help::CallRefusal;
use crate::input::{Input, Rejection, RescueCall};
use crate::output::{Output, ShutdownCause};
use crate::parameters::Thresholds;
use crate::reason::Reason;
use crate::rescue::calls::Calls;
use crate::rescue::rescued::{Offer, Sos};
use crate::rescue::rescuing::{Rescue, reject};
use crate::rescue::{Phase, call_for_help, measure_need, offer};

/// A site that rehearses. See the file header.
#[derive(Clone, Debug)]
pub(crate) struct Drilling {
    sos: Sos,
    order: DrillOrder,
    ends: Timestamp,
    /// When it ends if nobody helps then.
    alone_until: Timestamp,
    load: LoadSeen,
}

/// Whether the last interval was above T_alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadSeen {
    Low,
    High,
}

/// The row of [`Phase::Drilling`].
pub(crate) fn in_drill(desk: &mut Desk, drilling: Drilling, input: &Input) -> Phase {
    match input {
        Input::IntervalEnded(_) => drilling.measured(desk),
        Input::RescueAccepted { drill, .. } => match offer(input) {
            Some(offer) => drilling.accepted(desk, offer, *drill),
            None => Phase::Drilling(drilling),
        },
        Input::RescueRefused { link, rejection } => drilling.refused(desk, *link, *rejection),
        Input::RateReceived { link, rate, .. } => drilling.rate_told(desk, *link, *rate),
        Input::ShutdownReceived { link } => drilling.declined(desk, *link),
        Input::LinkLost { link, loss } => {
            Phase::Drilling(drilling.go_on(desk, |desk, sos| sos.lost(desk, *link, *loss)))
        }
        Input::CandidatesFound(_) => Phase::Drilling(drilling.ask_next(desk)),
        Input::TimerFired => drilling.time_passed(desk),
        Input::SosReceived { link, call } => drilling.called(desk, *link, call),
        Input::ParametersChanged(_) if !desk.parameters.takes_part() => {
            drilling.end(desk, DrillEnd::Drain)
        }
        Input::DrillOrdered(_) => {
            refuse(desk, DrillRefusal::UnderWay);
            Phase::Drilling(drilling)
        }
        Input::DrillStopped(stop) => drilling.end(desk, DrillEnd::Stopped(*stop)),
        Input::DrainStarted => {
            drilling.end(desk, DrillEnd::Drain);
            Phase::Drained
        }
        Input::SearchFailed
        | Input::PeersReceived { .. }
        | Input::PermitReceived { .. }
        | Input::OriginReturned { .. }
        | Input::RecordsChanged(_)
        | Input::MembersExpelled(_)
        | Input::DeliveryLate { .. }
        | Input::AnswerReceived { .. }
        | Input::ResourcesStepped(_)
        | Input::EmbeddedFound { .. }
        | Input::CopyEnded { .. }
        | Input::CopyMissing { .. }
        | Input::ParametersChanged(_) => Phase::Drilling(drilling),
    }
}

/// A drill is ordered where there is nothing else to do: begins it, or says why not.
pub(crate) fn begin(desk: &mut Desk, order: DrillOrder) -> Phase {
    if let Err(why) = check(desk, order) {
        refuse(desk, why);
        return Phase::Normal;
    }
    let ends = desk.now + order.length;
    desk.allocation.begin_drill(ends);
    desk.explain(Reason::DrillBegan {
        length: order.length,
    });
    let drilling = Drilling {
        sos: Sos::with_calls(Calls::default()),
        order,
        ends,
        alone_until: desk.after(DRILL_ALONE_MAX),
        load: LoadSeen::Low,
    };
    Phase::Drilling(drilling.ask_next(desk))
}

/// Says that no drill begins.
pub(crate) fn refuse(desk: &mut Desk, why: DrillRefusal) {
    desk.explain(Reason::DrillRefused { why });
}

fn check(desk: &Desk, order: DrillOrder) -> Result<(), DrillRefusal> {
    if !desk.parameters.takes_part() {
        return Err(DrillRefusal::NoCommunity);
    }
    if order.length.is_zero() || order.length > DRILL_LENGTH_MAX {
        return Err(DrillRefusal::Length);
    }
    // Half of what calls for help: a drill must not be what makes the difference.
    if desk.load.is_above(desk.parameters.thresholds.alert / 2.0) {
        return Err(DrillRefusal::Loaded);
    }
    Ok(())
}

impl Drilling {
    pub(crate) fn next_deadline(&self) -> Timestamp {
        let first = self
            .sos
            .next_deadline()
            .map_or(self.ends, |at| at.min(self.ends));
        match self.sos.helps_or_is_asked() {
            true => first,
            false => first.min(self.alone_until),
        }
    }

    pub(crate) fn sos(&self) -> &Sos {
        &self.sos
    }

    /// How its visitors are redirected.
    pub(crate) fn plan(&self, desk: &Desk) -> DrillPlan {
        let mut redirect = self.sos.redirect_plan(desk);
        redirect.direct = ByteRate::ZERO;
        redirect.direct_ceiling = redirect.direct_ceiling.times(DRILL_LINK_SHARE);
        redirect.usable = redirect.usable.times(DRILL_LINK_SHARE);
        DrillPlan {
            key: self.order.key,
            redirect,
        }
    }

    pub(crate) fn view(&self, desk: &Desk) -> DrillView {
        DrillView {
            site: desk.parameters.site.host.clone(),
            ends: self.ends,
            members: self.sos.members(),
        }
    }

    /// A real crowd comes first: its own call for help begins in this very interval. On a small
    /// link the first fetches of a drill may fill one interval above T_alert, but not two.
    fn measured(mut self, desk: &mut Desk) -> Phase {
        let Thresholds { alert, high, .. } = desk.parameters.thresholds;
        let before = self.load;
        self.load = match desk.load.is_above(alert) {
            true => LoadSeen::High,
            false => LoadSeen::Low,
        };
        let goes_on = before == LoadSeen::High && self.load == LoadSeen::High;
        if goes_on || desk.load.is_above(high) {
            self.end(desk, DrillEnd::Crowd);
            measure_need(desk);
            return call_for_help(desk, Calls::default());
        }
        Phase::Drilling(self.ask_next(desk))
    }

    /// A candidate accepted. One that did not say that it knows of the drill would take our
    /// visitors for a crowd: it is let go before it sees any.
    fn accepted(self, desk: &mut Desk, offer: Offer, knows: bool) -> Phase {
        if knows {
            let accepted = self.go_on(desk, |desk, sos| sos.accepted(desk, offer));
            return Phase::Drilling(accepted);
        }
        let link = offer.link;
        let site = self.sos.asked(link);
        let drilling = self.go_on(desk, |desk, sos| {
            desk.act(Output::DropLink { link });
            sos.refused(desk, link, Rejection::NoDrills)
        });
        pardon(desk, site);
        Phase::Drilling(drilling)
    }

    /// Who says no to a drill may still help in need, so it is not left alone for that.
    fn refused(self, desk: &mut Desk, link: LinkId, why: Rejection) -> Phase {
        let site = self.sos.asked(link);
        let drilling = self.go_on(desk, |desk, sos| sos.refused(desk, link, why));
        match why {
            Rejection::Refused | Rejection::NoDrills => pardon(desk, site),
            Rejection::Unreachable | Rejection::Garbage => {}
        }
        Phase::Drilling(drilling)
    }

    fn rate_told(mut self, desk: &mut Desk, link: LinkId, rate: ByteRate) -> Phase {
        self.sos.rate_told(desk, link, rate, None);
        Phase::Drilling(self)
    }

    /// Any rescue server can end it for all.
    fn declined(self, desk: &mut Desk, link: LinkId) -> Phase {
        let Some(site) = self.sos.helper(link) else {
            return self.refused(desk, link, Rejection::Refused);
        };
        let drilling = self.step(desk, |desk, sos| sos.shut_down(desk, link));
        pardon(desk, Some(site.clone()));
        drilling.end(desk, DrillEnd::Declined(site))
    }

    /// A site in need comes before every drill; another's drill does not.
    fn called(self, desk: &mut Desk, link: LinkId, call: &RescueCall) -> Phase {
        if call.drill.is_some() {
            reject(desk, link, call, CallRefusal::Drilling);
            return Phase::Drilling(self);
        }
        let helper = Rescue::default();
        if let Err(why) = helper.check(desk, call) {
            reject(desk, link, call, why);
            return Phase::Drilling(self);
        }
        self.end(desk, DrillEnd::Called(call.origin.host.clone()));
        helper.called(desk, link, call)
    }

    fn time_passed(self, desk: &mut Desk) -> Phase {
        if desk.now >= self.ends {
            return self.end(desk, DrillEnd::Over);
        }
        let drilling = self.go_on(desk, |desk, sos| sos.time_passed(desk));
        match drilling.sos.helps_or_is_asked() || desk.now < drilling.alone_until {
            true => Phase::Drilling(drilling),
            false => drilling.end(desk, DrillEnd::Alone),
        }
    }

    /// Lets everybody go who takes part.
    fn end(self, desk: &mut Desk, why: DrillEnd) -> Phase {
        let phase = self.sos.end_all(desk, ShutdownCause::DrillOver);
        desk.allocation.end_drill();
        desk.explain(Reason::DrillEnded { why });
        phase
    }

    /// Asks the next candidate, if none is being asked.
    fn ask_next(mut self, desk: &mut Desk) -> Self {
        desk.allocation.set_need(Need::OneMore);
        self.sos.ask(desk);
        desk.allocation.set_need(Need::None);
        self
    }

    /// Takes a step of the SOS, and asks whoever is left to ask.
    fn go_on(self, desk: &mut Desk, step: impl FnOnce(&mut Desk, Sos) -> Phase) -> Self {
        self.step(desk, step).ask_next(desk)
    }

    /// What happened on a link is the business of the SOS; where that would be over, the drill is
    /// not.
    fn step(self, desk: &mut Desk, step: impl FnOnce(&mut Desk, Sos) -> Phase) -> Self {
        desk.allocation.set_need(Need::None);
        let sos = match step(desk, self.sos) {
            Phase::Sos(sos) => sos,
            Phase::Calling(calls) => Sos::with_calls(calls),
            Phase::Normal
            | Phase::Drilling(_)
            | Phase::Rescue(_)
            | Phase::Closing(_)
            | Phase::Drained => Sos::with_calls(Calls::default()),
        };
        Self { sos, ..self }
    }
}

/// What a site does in a drill is not held against it in need.
fn pardon(desk: &mut Desk, site: Option<HostName>) {
    if let Some(site) = site {
        desk.allocation.note_success(&site);
    }
}
