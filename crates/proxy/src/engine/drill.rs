//! The visitors of a drill: they show its key, and meet the redirects that a rescue would make.
//!
//! Everybody else is served as if there were no drill. What decides about a drill's visitor is a
//! Gate of its own, which is told of an SOS with a small part of the link; so a drill rehearses the
//! very arithmetic of a rescue, and can never use more than that part. A key that is not that of
//! the present drill is no key: who shows it is a visitor like all others. Who shows that of the
//! last drill was under way when it ended, and is told so in a few bytes: he would be the very
//! crowd that the drill was not.
//!
//! What a drill causes is counted apart, also what its rescue servers fetch: it is no crowd.

use std::sync::Arc;

use levee_control::{Ask, Gate, GateLimits, Redirectability, RoutePlan, Verdict};
use levee_vocab::{FetchKey, Timestamp};

use super::Core;
use super::serve::{Served, Visit};
use super::work::Work;
use crate::answer::{Answer, Body, Cause, Kind};
use crate::connection::Connection;
use crate::redirect::Redirects;
use crate::request::{DRILL_LOOK, Request};
use crate::response::{Closing, Plain};

/// What a core knows of our drill, if there is one.
#[derive(Debug)]
pub(crate) struct Drill {
    key: Option<FetchKey>,
    /// That of the drill before, while there is none.
    last_key: Option<FetchKey>,
    gate: Gate,
    redirects: Redirects,
}

/// What becomes of a visitor of a drill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// As in a rescue.
    Visit(Verdict),
    /// He sees what the site shows.
    Look,
    /// His drill is over.
    Late,
}

impl Drill {
    pub fn new(limits: GateLimits) -> Self {
        Self {
            key: None,
            last_key: None,
            gate: Gate::new(limits),
            redirects: Redirects::default(),
        }
    }

    /// Decides by `plan` from now on.
    pub fn adopt(&mut self, now: Timestamp, plan: &RoutePlan, share: f64) {
        let drill = plan.drill.as_ref();
        let key = drill.map(|drill| drill.key);
        self.last_key = match key {
            Some(_) => None,
            None => self.key.or(self.last_key),
        };
        self.key = key;
        self.redirects = Redirects::of(drill.map(|drill| &drill.redirect));
        let redirect = drill.map(|drill| drill.redirect.clone());
        let as_in_need = RoutePlan {
            version: plan.version,
            interval: plan.interval,
            interval_length: plan.interval_length,
            redirect,
            ..RoutePlan::default()
        };
        self.gate.adopt(now, Arc::new(as_in_need), share);
    }

    /// What becomes of a visitor of the drill; none for everybody else, and for what could not be
    /// redirected in a rescue either. Whoever gets one is nobody's visitor: however often a drill
    /// asks for a page, it does not become hot.
    pub(super) fn part(
        &mut self,
        now: Timestamp,
        request: &Request<'_, '_>,
        ask: &Ask,
    ) -> Option<Part> {
        let shown = request.fields.drill_key?;
        let (shown, is_look) = match shown.strip_suffix(DRILL_LOOK.as_bytes()) {
            Some(shown) => (shown, true),
            None => (shown, false),
        };
        let is_key = |key: &FetchKey| key.matches(shown);
        if self.last_key.as_ref().is_some_and(is_key) {
            return Some(Part::Late);
        }
        if !self.key.as_ref().is_some_and(is_key) {
            return None;
        }
        if is_look {
            return Some(Part::Look);
        }
        if ask.redirectable == Redirectability::Never {
            return None;
        }
        let ask = Ask {
            redirect_bytes: self.redirects.bytes(
                request.fields.came_by,
                request.sent_target,
                Closing::for_request(request),
            ),
            ..ask.clone()
        };
        Some(Part::Visit(self.gate.decide(now, &ask)))
    }

    /// Why a response of this kind is wanted. While there is a drill there is no rescue, so all
    /// that rescue servers fetch is for its visitors.
    pub fn cause_of(&self, kind: Kind) -> Cause {
        match (kind == Kind::Fetch, &self.key) {
            (true, Some(_)) => Cause::Drill,
            (true, None) | (false, _) => Cause::Visitors,
        }
    }
}

impl Core {
    /// Answers a visitor of the drill. It never waits: a drill that is above its part of the link
    /// shall say so.
    pub(super) fn serve_drill(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: Visit,
        (work, part): (Work, Part),
    ) -> Served {
        let visit = Visit {
            cause: Cause::Drill,
            ..visit
        };
        let work = match part {
            Part::Visit(Verdict::Redirect { target }) => {
                let to = (target, work.bytes());
                return self.redirect_drill(connection, request, &visit, to);
            }
            Part::Visit(Verdict::Serve) | Part::Look => {
                self.gate.note_direct(self.now, work.bytes());
                work
            }
            // No refusal: those are counted as visitors for whom there was no room.
            Part::Visit(Verdict::Wait | Verdict::Refuse | Verdict::Withhold | Verdict::PutOff) => {
                Work::Plain(Plain::new(429))
            }
            //= RFC 9110 section 15.5.11: "access to the target resource is no longer available"
            Part::Late => Work::Plain(Plain::new(410)),
        };
        self.answer(connection, request, &visit, work)
    }

    fn redirect_drill(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        (target, file_bytes): (usize, u64),
    ) -> Served {
        let mut head = self.pool.take();
        let (date, path) = (self.date.line(), request.sent_target);
        let redirects = &self.drill.redirects;
        let Some(slot) = redirects.write(
            (target, request.fields.came_by),
            path,
            date,
            visit.closing,
            &mut head,
        ) else {
            self.pool.give(head);
            return self.refuse(connection, request, visit);
        };
        if let Some(redirect) = &self.drill.gate.plan().redirect {
            let cost = (head.len() as u64 + visit.overhead) as f64 * redirect.usable_share;
            let counters = self.counters.slot(slot);
            counters.redirect_accounted.add(cost.round() as u64);
            counters.redirect_file_bytes.add(file_bytes);
        }
        let visit = Visit {
            kind: Kind::Redirect { slot },
            ..*visit
        };
        let answer = Answer::new(head, Body::Empty, visit.kind, 302);
        let wait = self.now.since(visit.began);
        let record = self.record(connection, request, visit.kind, wait);
        self.begin(connection, answer, &visit, record);
        Served::Answered
    }
}
