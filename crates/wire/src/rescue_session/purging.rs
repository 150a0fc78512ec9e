//! PURGE on a rescue link: the origin asks, the rescue server removes, and only then answers.
//!
//! While the rescue server is at it, what else has come waits unread, because answers go out in the
//! order of the requests. That is short: objects of one origin in one cache.

use levee_vocab::{Purge, Timestamp};

use super::send_answer;
use super::{Asking, CommandName, Event, Fault, Output, Phase, PurgeAnswer, RescueSession};
use crate::purge_words::sendable;
use crate::rescue::{Answer, Request};

/// What is held unread while a purge is carried out. A shell that reads on meanwhile reads little.
const UNREAD_MAX: usize = 64 * 1024;

/// A purge that is being carried out.
#[derive(Clone, Debug)]
pub(super) struct Purging {
    number: u32,
    /// What came after it.
    pub(super) unread: Vec<u8>,
}

impl RescueSession {
    /// The origin wants its objects purged. Later than the answer to our SOS and earlier than the
    /// end; at any other time nobody holds anything of ours.
    pub(super) fn send_purge(&mut self, now: Timestamp, purge: Purge, out: &mut Vec<Output>) {
        if self.phase == Phase::Rescued {
            self.ask(now, Asking::Purge, Request::Purge(sendable(purge)), out);
        }
    }

    /// Even after our SHUTDOWN: visitors of the alias are still served for a moment.
    pub(super) fn take_purge(&mut self, number: u32, purge: Purge, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Rescuing | Phase::Closing { .. } => {
                self.purging = Some(Purging {
                    number,
                    unread: Vec::new(),
                });
                out.push(Output::Tell(Event::PurgeReceived(purge)));
            }
            Phase::Calling { .. }
            | Phase::Awaiting { .. }
            | Phase::Deciding { .. }
            | Phase::Rescued
            | Phase::Over => self.fail(Fault::OutOfPlace(CommandName::Purge), out),
        }
    }

    /// The objects are gone; what came meanwhile is read now.
    pub(super) fn purge_done(&mut self, now: Timestamp, objects: u64, out: &mut Vec<Output>) {
        let Some(Purging { number, unread }) = self.purging.take() else {
            return;
        };
        let objects = u32::try_from(objects).unwrap_or(u32::MAX);
        out.push(send_answer(number, Answer::Purged { objects }));
        self.read(now, &unread, out);
    }

    /// Holds `rest` for later.
    pub(super) fn put_off(&mut self, rest: &[u8], out: &mut Vec<Output>) {
        let Some(purging) = &mut self.purging else {
            return;
        };
        purging.unread.extend_from_slice(rest);
        if purging.unread.len() > UNREAD_MAX {
            self.fail(Fault::TooManyMessages, out);
        }
    }

    /// The other side has answered a purge.
    pub(super) fn tell_purged(answer: &Answer, out: &mut Vec<Output>) {
        let answer = match answer {
            Answer::Purged { objects } => PurgeAnswer::Done {
                objects: u64::from(*objects),
            },
            Answer::Done | Answer::Accept(_) => PurgeAnswer::Done { objects: 0 },
            Answer::Reject | Answer::Other { .. } => PurgeAnswer::Refused,
        };
        out.push(Output::Tell(Event::PurgeAnswered(answer)));
    }
}
