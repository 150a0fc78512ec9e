//! The visitors of a drill: they show its key, and meet the redirects that a rescue would make.
//!
//! Everybody else is served as if there were no drill. What decides about a drill's visitor is a
//! Gate of its own, which is told of an SOS with a small part of the link; so a drill rehearses the
//! very arithmetic of a rescue, and can never use more than that part. A key that is not that of
//! the present drill is no key: who shows it is a visitor like all others.

use std::sync::Arc;

use levee_control::{Ask, Gate, GateLimits, Redirectability, RoutePlan, Verdict};
use levee_vocab::{FetchKey, Timestamp};

use super::Core;
use super::serve::{Served, Visit};
use super::work::Work;
use crate::answer::{Answer, Body, Kind};
use crate::connection::Connection;
use crate::redirect::Redirects;
use crate::request::Request;
use crate::response::{Closing, Plain};

/// What a core knows of our drill, if there is one.
#[derive(Debug)]
pub(crate) struct Drill {
    key: Option<FetchKey>,
    gate: Gate,
    redirects: Redirects,
}

impl Drill {
    pub fn new(limits: GateLimits) -> Self {
        Self {
            key: None,
            gate: Gate::new(limits),
            redirects: Redirects::default(),
        }
    }

    /// Decides by `plan` from now on.
    pub fn adopt(&mut self, now: Timestamp, plan: &RoutePlan, share: f64) {
        let drill = plan.drill.as_ref();
        self.key = drill.map(|drill| drill.key);
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
    pub fn verdict(
        &mut self,
        now: Timestamp,
        request: &Request<'_, '_>,
        ask: &Ask,
    ) -> Option<Verdict> {
        if !self.is_visit(request) || ask.redirectable == Redirectability::Never {
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
        Some(self.gate.decide(now, &ask))
    }

    fn is_visit(&self, request: &Request<'_, '_>) -> bool {
        match (&self.key, request.fields.drill_key) {
            (Some(key), Some(shown)) => key.matches(shown),
            (None, _) | (_, None) => false,
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
        visit: &Visit,
        (work, verdict): (Work, Verdict),
    ) -> Served {
        match verdict {
            Verdict::Serve => {
                self.gate.note_direct(self.now, work.bytes());
                self.answer(connection, request, visit, work)
            }
            Verdict::Redirect { target } => {
                self.redirect_drill(connection, request, visit, (target, work.bytes()))
            }
            // No refusal: those are counted as visitors for whom there was no room.
            Verdict::Wait | Verdict::Refuse | Verdict::PutOff => {
                let answer = Work::Plain(Plain::new(429));
                self.answer(connection, request, visit, answer)
            }
        }
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
