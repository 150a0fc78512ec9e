//! The side of the rescue server: the origins whose visitors we carry (R5, R9).
//!
//! What an origin is allotted: D_resc, or less by the limits of `help`, is divided equally among
//! the origins that are helped, so the only one gets all of it, and a newcomer takes an equal part
//! from the others, who are told by RATE. The registry is told what a newcomer would get: D_resc /
//! (origins + 1). That is D_resc less what is allotted for good; what the present origins have
//! beyond that is theirs until somebody comes. An origin that may have less than an equal part
//! leaves the rest to the others.

mod limits;

mod orphans;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use levee_vocab::{ByteRate, LinkId, Peers, Timestamp, WebAddress};

use crate::aliases::GRACE;
use crate::allocation::Need;
use crate::desk::Desk;
use crate::drill::{DRILL_LENGTH_MAX, DrillView};
use crate::help::{CallRefusal, allot};
use crate::input::{LinkLoss, LoadSample, Records, RescueCall};
use crate::load::Load;
use crate::output::{Output, ShutdownCause};
use crate::parameters::{Drills, Parameters};
use crate::reason::Reason;
use crate::redirect::{adjusted_rate, initial_rate};
use crate::rescue::calls::Calls;
use crate::rescue::rescued::is_news;
use crate::rescue::{Phase, call_for_help};
use crate::termination::{Overload, OverloadWatch, Rescued, idle_time};
use crate::view::RescueView;
use orphans::Life;

/// Control intervals without an answer to our RATE after which an origin counts as dead.
const SILENCE: f64 = 3.0;

/// Control intervals after the end of a drill in which the origin may still tell us of it.
const DRILL_GRACE: f64 = 3.0;

/// Control intervals for which a closing server waits for its origins' answers.
const FAREWELL_MAX: f64 = 2.0;

/// A site that rescues at least one other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rescue {
    origins: BTreeMap<LinkId, Origin>,
    overload: OverloadWatch,
}

#[derive(Clone, Debug)]
struct Origin {
    site: WebAddress,
    alias: WebAddress,
    slot: u8,
    since: Timestamp,
    allotted: ByteRate,
    rate: ByteRate,
    rate_told: ByteRate,
    used: ByteRate,
    idle_max: Duration,
    last_visit: Timestamp,
    beat: Beat,
    /// It is a drill, which ends at the latest then.
    drill: Option<Timestamp>,
    life: Life,
}

/// Whether an origin hears a RATE in each interval, and answers it.
#[derive(Clone, Copy, Debug)]
enum Beat {
    /// It did not ask for that.
    None,
    /// Every RATE was answered so far.
    Answered,
    /// None was since then.
    UnansweredSince(Timestamp),
}

/// Our rescues were shut down; the origins have not confirmed it yet.
#[derive(Clone, Debug)]
pub(crate) struct Closing {
    awaiting: BTreeSet<LinkId>,
    until: Timestamp,
}

impl Rescue {
    /// An origin calls: helps it, or says why not.
    pub(crate) fn called(mut self, desk: &mut Desk, link: LinkId, call: &RescueCall) -> Phase {
        if self.origins.contains_key(&link) {
            // A rejection closes the link, and the rescue on it.
            let until = desk.after(GRACE);
            self.part(desk, link, until, LinkLoss::Garbage.why());
            reject(desk, link, call, CallRefusal::Twice);
            return self.settle();
        }
        self.replace(desk, call);
        if call.drill.is_none() && Self::default().check(desk, call).is_ok() {
            self.make_way(desk);
        }
        match self.take_in(desk, link, call) {
            Ok(()) => {}
            Err(why) => reject(desk, link, call, why),
        }
        self.settle()
    }

    /// A control interval is over.
    pub(crate) fn measured(mut self, desk: &mut Desk, sample: &LoadSample) -> Phase {
        for (link, origin) in &mut self.origins {
            let traffic = sample.rescue.get(link).copied().unwrap_or_default();
            origin.used = ByteRate::of(traffic.bytes, sample.elapsed);
            if traffic.requests > 0 {
                origin.last_visit = desk.now;
            }
        }
        if self.drill().is_some() && self.is_loaded(&desk.load, &desk.parameters) {
            desk.allocation.set_need(Need::OneMore);
            return self.end_drill(desk, ShutdownCause::Overload);
        }
        let thresholds = desk.parameters.thresholds;
        let rescued = match self.origins.values().any(Origin::is_linked) {
            true => Rescued::Living,
            false => Rescued::Dead,
        };
        match self.overload.measure(&desk.load, &thresholds, rescued) {
            Overload::None => {}
            Overload::Partial => return self.shed_largest(desk),
            Overload::Complete => {
                desk.allocation.set_need(Need::OneMore);
                return self.close(desk, ShutdownCause::Overload);
            }
        }
        let closing = self.end_days(desk);
        self.allot(desk);
        for (&link, origin) in &mut self.origins {
            let rate = adjusted_rate(origin.rate, origin.allotted, origin.used, &thresholds);
            // What there is may have become less.
            let rate = rate.min(initial_rate(origin.allotted, &thresholds));
            origin.tell(desk, link, rate);
        }
        match closing {
            Some(closing) => self.settle_after(closing),
            None => Phase::Rescue(self),
        }
    }

    /// An origin answered a RATE.
    pub(crate) fn answered(&mut self, link: LinkId) {
        if let Some(origin) = self.origins.get_mut(&link) {
            origin.beat = match origin.beat {
                Beat::None => Beat::None,
                Beat::Answered | Beat::UnansweredSince(_) => Beat::Answered,
            };
        }
    }

    /// The origin on `link` told who else helps it.
    pub(crate) fn peers_told(&self, desk: &mut Desk, link: LinkId, peers: &Peers) {
        if let Some(origin) = self.origins.get(&link) {
            desk.aliases.find_homes(link, peers, &origin.alias);
        }
    }

    /// The origin on `link` let us go.
    pub(crate) fn released(mut self, desk: &mut Desk, link: LinkId) -> Phase {
        let until = desk.after(1.0);
        self.part(desk, link, until, "it needs no more help");
        self.share_out(desk);
        self.settle()
    }

    /// Time has passed: origins may have fallen silent, or sent nobody for too long.
    pub(crate) fn time_passed(mut self, desk: &mut Desk) -> Phase {
        for link in self.find(|origin| origin.is_silent(desk)) {
            desk.act(Output::DropLink { link });
            self.died(desk, link, LinkLoss::Silent);
        }
        for link in self.find(|origin| origin.permit_ends().is_some_and(|end| desk.now >= end)) {
            self.part(
                desk,
                link,
                desk.now,
                "it has not come back, and its permit is over",
            );
        }
        let grace = desk.parameters.intervals(DRILL_GRACE);
        let is_over = |ends: Timestamp| desk.now >= ends + grace;
        let over = self.find(|origin| origin.drill.is_some_and(is_over));
        if !over.is_empty() {
            return self.end_drill(desk, ShutdownCause::DrillOver);
        }
        let idle = self.find(|origin| desk.now >= origin.idle_at());
        let closing = self.shut_down(desk, idle, ShutdownCause::Idle);
        self.share_out(desk);
        self.settle_after(closing)
    }

    /// The operator reloaded the settings.
    pub(crate) fn settings_changed(mut self, desk: &mut Desk) -> Phase {
        if !desk.parameters.takes_part() || desk.parameters.origins_max == 0 {
            return self.close(desk, ShutdownCause::Drain);
        }
        if self.drill().is_some() && desk.parameters.drills == Drills::Declined {
            return self.end_drill(desk, ShutdownCause::DrillStopped);
        }
        let unwanted = self.unwanted(desk);
        let closing = self.shut_down(desk, unwanted, ShutdownCause::Drain);
        self.share_out(desk);
        self.settle_after(closing)
    }

    /// Ends all rescues.
    pub(crate) fn close(mut self, desk: &mut Desk, cause: ShutdownCause) -> Phase {
        let all = self.find(|_| true);
        let closing = self.shut_down(desk, all, cause);
        self.settle_after(closing)
    }

    /// Ends the drill that we take part in; rescues go on.
    pub(crate) fn end_drill(mut self, desk: &mut Desk, cause: ShutdownCause) -> Phase {
        let drills = self.find(|origin| origin.drill.is_some());
        let closing = self.shut_down(desk, drills, cause);
        self.settle_after(closing)
    }

    /// The drill that we take part in.
    pub(crate) fn drill(&self) -> Option<DrillView> {
        let mut origins = self.origins.values();
        origins.find_map(|origin| {
            Some(DrillView {
                site: origin.site.host.clone(),
                ends: origin.drill?,
                members: Vec::new(),
            })
        })
    }

    /// What a newcomer would get: d_free. It would end a drill.
    pub(crate) fn free(&self, desk: &Desk) -> ByteRate {
        if self.drill().is_some() {
            return Self::default().free(desk);
        }
        let is_full = self.origins.len() >= desk.parameters.origins_max;
        let is_given = !desk.is_day_worth_beginning();
        if is_full
            || is_given
            || desk.records == Records::Lost
            || self.is_loaded(&desk.load, &desk.parameters)
        {
            return ByteRate::ZERO;
        }
        let mut limits = self.limits(desk);
        limits.push(desk.newcomer_rate());
        let shares = allot(desk.help_rate(), &limits);
        shares.last().copied().unwrap_or_default()
    }

    pub(crate) fn next_deadline(&self, interval: impl Fn(f64) -> Duration) -> Option<Timestamp> {
        let deadline = |origin: &Origin| {
            let ends = match origin.drill {
                Some(ends) => ends + interval(DRILL_GRACE),
                None => origin.idle_at(),
            };
            let ends = ends.min(origin.idle_at());
            let ends = origin.permit_ends().map_or(ends, |permit| permit.min(ends));
            match origin.beat {
                Beat::None | Beat::Answered => ends,
                Beat::UnansweredSince(since) => ends.min(since + interval(SILENCE)),
            }
        };
        self.origins.values().map(deadline).min()
    }

    /// The origins, for people.
    pub(crate) fn views(&self) -> Vec<RescueView> {
        let view = |(&link, origin): (&LinkId, &Origin)| RescueView {
            link,
            slot: origin.slot,
            peer: origin.site.clone(),
            alias: origin.alias.clone(),
            since: origin.since,
            rate: origin.rate,
            used: origin.used,
            orphaned_until: origin.permit_ends(),
        };
        self.origins.iter().map(view).collect()
    }

    /// An origin that calls again has restarted: its old rescue is dead.
    fn replace(&mut self, desk: &mut Desk, call: &RescueCall) {
        let host = call.origin.host.clone();
        for link in self.find(|origin| origin.site.host == host) {
            desk.act(Output::DropLink { link });
            let until = desk.after(GRACE);
            self.part(desk, link, until, "it called again");
        }
    }

    /// A site in need calls: a drill gives way to it.
    fn make_way(&mut self, desk: &mut Desk) {
        let drills = self.find(|origin| origin.drill.is_some());
        if !drills.is_empty() {
            self.shut_down(desk, drills, ShutdownCause::RealCall);
        }
    }

    fn take_in(
        &mut self,
        desk: &mut Desk,
        link: LinkId,
        call: &RescueCall,
    ) -> Result<(), CallRefusal> {
        self.check(desk, call)?;
        let slot = desk.slots.take(|slot| desk.aliases.uses_slot(slot));
        let slot = slot.ok_or(CallRefusal::SlotsTaken)?;
        let place = (link, slot);
        let alias = desk.aliases.give(&desk.parameters, call, place, desk.now);
        let alias = alias.ok_or(CallRefusal::NoAlias)?;
        desk.act(Output::RememberAliases);
        let origin = Origin {
            site: call.origin.clone(),
            alias: WebAddress {
                host: alias,
                port: desk.parameters.site.port,
            },
            slot,
            since: desk.now,
            allotted: ByteRate::ZERO,
            rate: ByteRate::ZERO,
            rate_told: ByteRate::ZERO,
            used: ByteRate::ZERO,
            idle_max: idle_time(call.idle_max),
            last_visit: desk.now,
            beat: if call.beats {
                Beat::Answered
            } else {
                Beat::None
            },
            drill: call.drill.map(|length| desk.now + length),
            life: Life::Linked { permit: None },
        };
        self.origins.insert(link, origin);
        self.share_out(desk);
        self.welcome(desk, link);
        Ok(())
    }

    /// Why an origin cannot be helped, if so.
    pub(crate) fn check(&self, desk: &Desk, call: &RescueCall) -> Result<(), CallRefusal> {
        let parameters = &desk.parameters;
        let host = &call.origin.host;
        if !parameters.takes_part() {
            return Err(CallRefusal::OutsideCommunity);
        }
        if *host == parameters.site.host {
            return Err(CallRefusal::OwnName);
        }
        if desk.allocation.is_expelled(host) {
            return Err(CallRefusal::Expelled);
        }
        if desk.aliases.contains(host) {
            return Err(CallRefusal::OwnAlias);
        }
        desk.check_limits(host)?;
        if desk.records == Records::Lost {
            return Err(CallRefusal::AliasForgotten);
        }
        if self.is_loaded(&desk.load, parameters) {
            return Err(CallRefusal::Loaded);
        }
        if call.drill.is_some_and(|length| length > DRILL_LENGTH_MAX) {
            return Err(CallRefusal::DrillTooLong);
        }
        match (call.drill, parameters.drills) {
            (Some(_), Drills::Declined) => return Err(CallRefusal::DrillDeclined),
            (Some(_), Drills::Joined) if !self.origins.is_empty() => {
                return Err(CallRefusal::DrillWhileHelping);
            }
            (Some(_), Drills::Joined) | (None, _) => {}
        }
        if self.free(desk) == ByteRate::ZERO {
            return Err(CallRefusal::Full);
        }
        Ok(())
    }

    /// Rescue traffic fills a rescue server by design: beside it only its own load counts.
    fn is_loaded(&self, load: &Load, parameters: &Parameters) -> bool {
        if self.origins.is_empty() {
            load.is_above(parameters.thresholds.alert)
        } else {
            load.own() > parameters.thresholds.alert || load.is_above(parameters.thresholds.cutoff)
        }
    }

    fn welcome(&mut self, desk: &mut Desk, link: LinkId) {
        let Some(origin) = self.origins.get_mut(&link) else {
            return;
        };
        origin.rate = initial_rate(origin.allotted, &desk.parameters.thresholds);
        origin.rate_told = origin.rate;
        if let Some(ends) = origin.drill {
            desk.explain(Reason::DrillJoined {
                site: origin.site.host.clone(),
                length: ends.since(desk.now),
            });
        }
        desk.explain(Reason::RescueBegan {
            peer: origin.site.host.clone(),
            rate: origin.rate,
        });
        desk.act(Output::AcceptSos {
            link,
            alias: origin.alias.clone(),
            rate: origin.rate,
        });
    }

    /// Divides D_resc anew; whoever has more than D_init now is cut to it. Whoever gets more is
    /// raised by the law of the next interval.
    fn share_out(&mut self, desk: &mut Desk) {
        self.allot(desk);
        for (&link, origin) in &mut self.origins {
            let initial = initial_rate(origin.allotted, &desk.parameters.thresholds);
            if origin.rate > initial {
                origin.change_rate(desk, link, initial);
            }
        }
    }

    fn shed_largest(mut self, desk: &mut Desk) -> Phase {
        let largest = self.origins.iter().max_by_key(|(_, origin)| origin.used);
        let links = largest.map(|(&link, _)| link).into_iter().collect();
        let closing = self.shut_down(desk, links, ShutdownCause::Overload);
        self.share_out(desk);
        self.settle_after(closing)
    }

    fn shut_down(&mut self, desk: &mut Desk, links: Vec<LinkId>, cause: ShutdownCause) -> Closing {
        let mut awaiting = BTreeSet::new();
        for link in links {
            // Nobody is there to be told of the end, or to answer.
            if self.origins.get(&link).is_some_and(Origin::is_linked) {
                desk.act(Output::ShutDown { link, cause });
                awaiting.insert(link);
            }
            let until = desk.after(GRACE);
            self.part(desk, link, until, cause.why());
        }
        Closing {
            awaiting,
            until: desk.after(FAREWELL_MAX),
        }
    }

    fn part(&mut self, desk: &mut Desk, link: LinkId, until: Timestamp, why: &'static str) {
        if let Some(origin) = self.origins.remove(&link) {
            desk.aliases.end(link, until);
            desk.explain(Reason::RescueEnded {
                peer: origin.site.host,
                why,
            });
        }
    }

    fn find(&self, is_sought: impl Fn(&Origin) -> bool) -> Vec<LinkId> {
        let sought = self.origins.iter().filter(|(_, origin)| is_sought(origin));
        sought.map(|(&link, _)| link).collect()
    }

    fn settle(self) -> Phase {
        if self.origins.is_empty() {
            Phase::Normal
        } else {
            Phase::Rescue(self)
        }
    }

    /// The last rescue that we end ourselves is over only when the origin has confirmed it.
    fn settle_after(self, closing: Closing) -> Phase {
        if self.origins.is_empty() && !closing.awaiting.is_empty() {
            Phase::Closing(closing)
        } else {
            self.settle()
        }
    }
}

impl Origin {
    /// The rate after an interval: told if it changed, or as a beat.
    fn tell(&mut self, desk: &mut Desk, link: LinkId, rate: ByteRate) {
        let is_changed = rate != self.rate;
        match self.beat {
            Beat::None if !is_changed => {}
            Beat::None | Beat::Answered | Beat::UnansweredSince(_) => {
                self.change_rate(desk, link, rate);
            }
        }
    }

    fn change_rate(&mut self, desk: &mut Desk, link: LinkId, rate: ByteRate) {
        self.rate = rate;
        // An orphan's share shrinks like any other, but nobody is there to be told.
        if !self.is_linked() {
            return;
        }
        if self.beat_is_answered() {
            self.beat = Beat::UnansweredSince(desk.now);
        }
        let carried = Some(self.used);
        desk.act(Output::TellRate {
            link,
            rate,
            carried,
        });
        let from = self.rate_told;
        if is_news(from, rate) {
            self.rate_told = rate;
            let peer = self.site.host.clone();
            desk.explain(Reason::RateChanged {
                peer,
                from,
                to: rate,
            });
        }
    }

    fn beat_is_answered(&self) -> bool {
        match self.beat {
            Beat::Answered => true,
            Beat::None | Beat::UnansweredSince(_) => false,
        }
    }

    fn is_silent(&self, desk: &Desk) -> bool {
        match self.beat {
            Beat::None | Beat::Answered => false,
            Beat::UnansweredSince(since) => desk.now >= since + desk.parameters.intervals(SILENCE),
        }
    }

    fn idle_at(&self) -> Timestamp {
        self.last_visit + self.idle_max
    }
}

impl Closing {
    /// The origin on `link` knows, or is gone.
    pub(crate) fn confirmed(mut self, desk: &mut Desk, link: LinkId) -> Phase {
        self.awaiting.remove(&link);
        self.settle(desk)
    }

    /// A control interval is over: the need for help may have come or gone.
    pub(crate) fn measured(self, desk: &mut Desk) -> Phase {
        let need = if desk.load.own() > desk.parameters.thresholds.alert {
            Need::OneMore
        } else {
            Need::None
        };
        desk.allocation.set_need(need);
        Phase::Closing(self)
    }

    /// Time has passed: an origin that does not answer is not waited for any longer.
    pub(crate) fn time_passed(self, desk: &mut Desk) -> Phase {
        if desk.now >= self.until {
            return call_for_help(desk, Calls::default());
        }
        Phase::Closing(self)
    }

    pub(crate) fn next_deadline(&self) -> Timestamp {
        self.until
    }

    fn settle(self, desk: &mut Desk) -> Phase {
        if self.awaiting.is_empty() {
            return call_for_help(desk, Calls::default());
        }
        Phase::Closing(self)
    }
}

/// Says no.
pub(crate) fn reject(desk: &mut Desk, link: LinkId, call: &RescueCall, refusal: CallRefusal) {
    let origin = &call.origin.host;
    desk.not_helped.note(desk.now, origin, refusal);
    let reason = Reason::SosRejected {
        origin: origin.clone(),
        why: refusal.why(),
    };
    desk.journal.note(desk.now, reason.clone());
    desk.act(Output::RejectSos { link, reason });
}
