//! Requests that only tell something, and whose answer says no more than that it came: PERMIT and
//! REPORT, and the SHUTDOWN of who is no member any more.

use levee_vocab::Timestamp;

use super::fault::{CommandName, Event, Fault};
use super::phase::Phase;
use super::{Asking, Output, RescueSession, send_answer};
use crate::rescue::{Answer, Request, ShutdownWord};

impl RescueSession {
    /// A permit is for a rescue server and a report for an origin. Either may have crossed our
    /// SHUTDOWN on the way.
    pub(super) fn take_word(
        &mut self,
        number: u32,
        event: Event,
        name: CommandName,
        out: &mut Vec<Output>,
    ) {
        let is_for_us = match name {
            CommandName::Permit => self.phase == Phase::Rescuing,
            CommandName::Report => self.phase == Phase::Rescued,
            CommandName::Sos
            | CommandName::Rate
            | CommandName::Purge
            | CommandName::Peers
            | CommandName::Shutdown
            | CommandName::Unknown => false,
        };
        match self.phase {
            Phase::Rescued | Phase::Rescuing if is_for_us => {
                out.push(send_answer(number, Answer::Done));
                out.push(Output::Tell(event));
            }
            Phase::Closing { .. } => out.push(send_answer(number, Answer::Done)),
            Phase::Rescued
            | Phase::Rescuing
            | Phase::Calling { .. }
            | Phase::Awaiting { .. }
            | Phase::Deciding { .. }
            | Phase::Over => self.fail(Fault::OutOfPlace(name), out),
        }
    }

    /// Who is no member any more is told so, but not before what it did here is over: it may be
    /// slow to listen. Its answer is not waited for.
    pub(super) fn deny(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        let mut last_words = Vec::new();
        match self.phase {
            Phase::Rescued | Phase::Rescuing => {
                let shutdown = Request::Shutdown(ShutdownWord::NotAMember);
                self.ask(now, Asking::Other, shutdown, &mut last_words);
            }
            Phase::Deciding { number, .. } => last_words.push(send_answer(number, Answer::Reject)),
            Phase::Calling { .. }
            | Phase::Awaiting { .. }
            | Phase::Closing { .. }
            | Phase::Over => {}
        }
        self.fail(Fault::PeerClosed, out);
        let close = out.len().saturating_sub(1);
        out.splice(close..close, last_words);
    }

    /// Only the one side has use for it. A peer that is slow to answer is not told more.
    pub(super) fn send_word(
        &mut self,
        now: Timestamp,
        phase: Phase,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        if self.phase == phase && self.unanswered.len() < self.limits.unanswered_max {
            self.ask(now, Asking::Other, request, out);
        }
    }
}
