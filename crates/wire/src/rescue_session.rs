//! One side of one rescue link, from the first line to the last, without a socket or a clock.
//!
//! ```text
//! origin server
//!    Calling --200 OK--> Rescued --SHUTDOWN received--> Over
//!       |                   '--SHUTDOWN decided--> Closing --200 OK--> Over
//!       '--403, 501 and so on--> Over
//!
//! rescue server
//!    Awaiting --SOS--> Deciding --accepted--> Rescuing --SHUTDOWN received--> Over
//!                         |                      '--SHUTDOWN decided--> Closing --200 OK--> Over
//!                         '--rejected--> Over
//! ```
//!
//! From every phase a fault of the other side, or its silence, leads to `Over`. Each side numbers
//! its requests 1, 2, 3 and so on; the other answers in the same order. What is not exactly so ends
//! the link with a [`Fault`]: a peer that lost count cannot be trusted to mean what it says. There
//! is one exception, which the paper's figure 7 shows: the last RATE may come again, is answered
//! again, and changes nothing.
//!
//! The session does not decide whether to help. It tells what was asked and is told what to answer.

mod fault;
mod limits;
mod phase;
mod purging;
mod words;

use std::collections::VecDeque;

use levee_vocab::{Peers, Purge, Timestamp};

use crate::grammar::{ParseError, leading_number};
use crate::integrity_words::{Permit, Report};
use crate::line::LineReader;
use crate::message_budget::MessageBudget;
use crate::peers_words::sendable;
use crate::rescue::{
    Answer, Body, CODE_MALFORMED, CODE_UNKNOWN, Message, Offer, Rate, Request, ShutdownWord, Sos,
    parse,
};

pub use fault::{CommandName, Ending, Event, Fault, FaultKind, PurgeAnswer, Refusal};
pub use limits::SessionLimits;
use phase::Phase;
pub use phase::{SessionPhase, SessionView};
use purging::Purging;

/// Something that happened on or to a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<'a> {
    /// Bytes came, in whatever pieces.
    BytesReceived(&'a [u8]),
    /// The other side will send no more, or the connection broke.
    PeerClosed,
    /// The other side takes no bytes: what we had to send could not be written in time.
    PeerStalled,
    /// The deadline has come, or some earlier or later time.
    TimerFired,
    /// We accept the SOS with this offer; its `beats` and `drill` are kept only if the SOS had
    /// them.
    SosAccepted(Offer),
    /// We reject the SOS.
    SosRejected,
    /// D_redi is now this, or still this.
    RateChanged(Rate),
    /// Our objects there are to be purged.
    PurgeDecided(Purge),
    /// These help us now; the other side shall know the others.
    PeersDecided(Peers),
    /// The other side may go on without us for a while.
    PermitDecided(Permit),
    /// Another rescue server delivered something else than the origin published.
    ReportDecided(Report),
    /// What the other side wanted purged is gone; so many objects were there.
    PurgeDone {
        /// Of all kinds and variants.
        objects: u64,
    },
    /// We end the rescue.
    ShutdownDecided,
    /// By our member list the other side may not be here: it is told so, and not waited for.
    PeerDenied,
}

/// Something that must be done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this line.
    Send(Message),
    /// Tell this to whoever decides.
    Tell(Event),
    /// Close the connection. Always the last output of a session.
    Close(Ending),
}

/// One side of one rescue link.
#[derive(Clone, Debug)]
pub struct RescueSession {
    phase: Phase,
    limits: SessionLimits,
    reader: LineReader,
    budget: MessageBudget,
    /// When the line that is being read has begun.
    line_began: Option<Timestamp>,
    /// Number of our last request.
    asked: u32,
    /// Our requests that wait for an answer, oldest first.
    unanswered: VecDeque<Unanswered>,
    /// A rate that waits until another answer has come.
    rate_waiting: Option<Rate>,
    /// Number of their last request, and its rate if it was a RATE.
    heard: (u32, Option<Rate>),
    /// A purge of theirs that is being carried out.
    purging: Option<Purging>,
}

/// A request of ours that waits for an answer.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    number: u32,
    until: Timestamp,
    asking: Asking,
}

/// Whether the answer to a request matters to more than the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    Purge,
    Other,
}

impl RescueSession {
    /// The origin server's side, on a connection that has just been opened, and the SOS to send.
    /// The answer must come before `answer_by`.
    pub fn call(sos: Sos, answer_by: Timestamp, limits: SessionLimits) -> (Self, Output) {
        let own_name = sos.origin.host.clone();
        let mut session = Self::new(Phase::Calling { own_name }, limits);
        session.asked = 1;
        session.unanswered.push_back(Unanswered {
            number: 1,
            until: answer_by,
            asking: Asking::Other,
        });
        (
            session,
            Output::Send(Message::request(1, Request::Sos(sos))),
        )
    }

    /// The rescue server's side, on a connection that was opened at `now`.
    pub fn answer(now: Timestamp, limits: SessionLimits) -> Self {
        let until = now + limits.sos_wait;
        Self::new(Phase::Awaiting { until }, limits)
    }

    /// Takes note of what happened. The outputs are to be carried out in order.
    pub fn handle(&mut self, now: Timestamp, input: Input<'_>) -> Vec<Output> {
        let mut out = Vec::new();
        if self.phase == Phase::Over {
            return out;
        }
        match input {
            Input::BytesReceived(bytes) => self.read(now, bytes, &mut out),
            Input::PeerClosed => self.peer_closed(&mut out),
            Input::PeerStalled => self.fail(Fault::Stalled, &mut out),
            Input::TimerFired => self.check_deadlines(now, &mut out),
            Input::SosAccepted(offer) => self.accept(offer, &mut out),
            Input::SosRejected => self.reject(&mut out),
            Input::RateChanged(rate) => self.tell_rate(now, rate, &mut out),
            Input::PurgeDecided(purge) => self.send_purge(now, purge, &mut out),
            Input::PeersDecided(peers) => self.send_peers(now, peers, &mut out),
            Input::PermitDecided(permit) => {
                self.send_word(now, Phase::Rescued, Request::Permit(permit), &mut out);
            }
            Input::ReportDecided(report) => {
                self.send_word(now, Phase::Rescuing, Request::Report(report), &mut out);
            }
            Input::PurgeDone { objects } => self.purge_done(now, objects, &mut out),
            Input::ShutdownDecided => self.shut_down(now, &mut out),
            Input::PeerDenied => self.deny(now, &mut out),
        }
        out
    }

    /// When to call with [`Input::TimerFired`] at the latest.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.phase == Phase::Over {
            return None;
        }
        let answer = self.unanswered.front().map(|asked| asked.until);
        let line = self.line_began.map(|began| began + self.limits.line_wait);
        [self.phase.deadline(), answer, line]
            .into_iter()
            .flatten()
            .min()
    }

    /// What the status page shows.
    pub fn view(&self) -> SessionView {
        SessionView {
            phase: self.phase.name(),
            asked: self.asked,
            unanswered: self.unanswered.len(),
            heard: self.heard.0,
        }
    }

    fn new(phase: Phase, limits: SessionLimits) -> Self {
        Self {
            phase,
            reader: LineReader::new(limits.line_max),
            budget: MessageBudget::new(limits.messages_burst, limits.messages_per_second),
            limits,
            line_began: None,
            asked: 0,
            unanswered: VecDeque::new(),
            rate_waiting: None,
            heard: (0, None),
            purging: None,
        }
    }

    fn read(&mut self, now: Timestamp, bytes: &[u8], out: &mut Vec<Output>) {
        let mut rest = bytes;
        while self.phase != Phase::Over {
            if self.purging.is_some() {
                return self.put_off(rest, out);
            }
            let message = match self.reader.next_line(&mut rest) {
                Ok(Some(line)) => parse(line).map_err(|error| (leading_number(line), error)),
                Ok(None) => break,
                Err(error) => return self.fail(Fault::LineTooLong(error.0), out),
            };
            self.line_began = None;
            match message {
                Ok(message) => self.take_message(now, message, out),
                Err((number, error)) => self.malformed(number, error, out),
            }
        }
        if self.reader.is_inside_line() {
            self.line_began.get_or_insert(now);
        }
    }

    /// A person at the other end learns what was wrong, then the link ends.
    fn malformed(&mut self, number: Option<u32>, error: ParseError, out: &mut Vec<Output>) {
        if let Some(number) = number {
            let (code, text) = (CODE_MALFORMED, error.to_string());
            out.push(send_answer(number, Answer::Other { code, text }));
        }
        self.fail(Fault::Malformed(error), out);
    }

    fn take_message(&mut self, now: Timestamp, message: Message, out: &mut Vec<Output>) {
        match message.body {
            Body::Request(request) => self.take_request(now, message.number, request, out),
            Body::Answer(answer) => self.take_answer(now, message.number, answer, out),
        }
    }

    fn take_request(
        &mut self,
        now: Timestamp,
        number: u32,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        // Answers need no budget: there are never more of them than we asked for.
        if !self.budget.take(now) {
            return self.fail(Fault::TooManyMessages, out);
        }
        let rate = match &request {
            Request::Rate(rate) => Some(*rate),
            Request::Sos(_)
            | Request::Purge(_)
            | Request::Peers(_)
            | Request::Permit(_)
            | Request::Report(_)
            | Request::Shutdown(_)
            | Request::Unknown(_) => None,
        };
        if rate.is_some() && self.heard == (number, rate) {
            return out.push(send_answer(number, Answer::Done));
        }
        let expected = self.heard.0.saturating_add(1);
        if number != expected {
            let got = number;
            return self.fail(Fault::WrongNumber { expected, got }, out);
        }
        self.heard = (number, rate);
        match request {
            Request::Sos(sos) => self.take_sos(now, number, sos, out),
            Request::Rate(rate) => self.take_rate(number, rate, out),
            Request::Purge(purge) => self.take_purge(number, purge, out),
            Request::Peers(peers) => self.take_peers(number, peers, out),
            Request::Permit(permit) => {
                self.take_word(
                    number,
                    Event::PermitReceived(permit),
                    CommandName::Permit,
                    out,
                );
            }
            Request::Report(report) => {
                self.take_word(
                    number,
                    Event::ReportReceived(report),
                    CommandName::Report,
                    out,
                );
            }
            Request::Shutdown(word) => self.take_shutdown(number, word, out),
            Request::Unknown(_) => self.take_unknown(number, out),
        }
    }

    fn take_sos(&mut self, now: Timestamp, number: u32, sos: Sos, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Awaiting { .. } => {
                let until = now + self.limits.decision_wait;
                self.phase = Phase::Deciding {
                    number,
                    until,
                    beats: sos.beats,
                    drill: sos.drill.is_some(),
                    is_peer_gone: false,
                    shutdown: None,
                };
                out.push(Output::Tell(Event::SosReceived(sos)));
            }
            Phase::Calling { .. }
            | Phase::Deciding { .. }
            | Phase::Rescued
            | Phase::Rescuing
            | Phase::Closing { .. }
            | Phase::Over => self.fail(Fault::OutOfPlace(CommandName::Sos), out),
        }
    }

    fn take_rate(&mut self, number: u32, rate: Rate, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Rescued => {
                out.push(send_answer(number, Answer::Done));
                out.push(Output::Tell(Event::RateReceived(rate)));
            }
            // It crossed our SHUTDOWN on the way.
            Phase::Closing { .. } => out.push(send_answer(number, Answer::Done)),
            Phase::Calling { .. }
            | Phase::Awaiting { .. }
            | Phase::Deciding { .. }
            | Phase::Rescuing
            | Phase::Over => self.fail(Fault::OutOfPlace(CommandName::Rate), out),
        }
    }

    /// The origin tells who else helps it. It may have crossed our SHUTDOWN on the way.
    fn take_peers(&mut self, number: u32, peers: Peers, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Rescuing => {
                out.push(send_answer(number, Answer::Done));
                out.push(Output::Tell(Event::PeersReceived(peers)));
            }
            Phase::Closing { .. } => out.push(send_answer(number, Answer::Done)),
            Phase::Calling { .. }
            | Phase::Awaiting { .. }
            | Phase::Deciding { .. }
            | Phase::Rescued
            | Phase::Over => self.fail(Fault::OutOfPlace(CommandName::Peers), out),
        }
    }

    fn take_shutdown(&mut self, number: u32, word: ShutdownWord, out: &mut Vec<Output>) {
        match &mut self.phase {
            // Answers come in the order of the requests: this one waits for that to the SOS.
            Phase::Deciding { shutdown, .. } if shutdown.is_none() => {
                *shutdown = Some((number, word));
            }
            Phase::Rescued | Phase::Rescuing => {
                out.push(send_answer(number, Answer::Done));
                out.push(Output::Tell(Event::ShutdownReceived(word)));
                self.close(Ending::Finished, out);
            }
            // Both sides had the same idea at the same time.
            Phase::Closing { .. } => {
                out.push(send_answer(number, Answer::Done));
                self.close(Ending::Finished, out);
            }
            Phase::Calling { .. }
            | Phase::Awaiting { .. }
            | Phase::Deciding { .. }
            | Phase::Over => self.fail(Fault::OutOfPlace(CommandName::Shutdown), out),
        }
    }

    /// A newer version may know more commands. They do no harm, except before the greeting.
    fn take_unknown(&mut self, number: u32, out: &mut Vec<Output>) {
        let (code, text) = (CODE_UNKNOWN, "Unknown".to_owned());
        out.push(send_answer(number, Answer::Other { code, text }));
        if matches!(self.phase, Phase::Awaiting { .. }) {
            self.fail(Fault::OutOfPlace(CommandName::Unknown), out);
        }
    }

    fn take_answer(&mut self, now: Timestamp, number: u32, answer: Answer, out: &mut Vec<Output>) {
        let asking = match self.unanswered.front() {
            Some(asked) if asked.number == number => asked.asking,
            Some(_) | None => return self.fail(Fault::UnexpectedAnswer { number }, out),
        };
        self.unanswered.pop_front();
        match asking {
            Asking::Purge => Self::tell_purged(&answer, out),
            Asking::Other => {}
        }
        match &self.phase {
            Phase::Calling { own_name } => match answer {
                // An alias that is our own name would redirect our visitors back to us for ever.
                Answer::Accept(offer) if offer.alias.host == *own_name => {
                    self.fail(Fault::OwnNameAsAlias, out);
                }
                Answer::Accept(offer) => {
                    self.phase = Phase::Rescued;
                    out.push(Output::Tell(Event::Accepted(offer)));
                }
                Answer::Done | Answer::Purged { .. } => self.fail(Fault::NoOffer, out),
                Answer::Reject | Answer::Other { .. } => {
                    out.push(Output::Tell(Event::NotRescued(Refusal::Refused)));
                    self.close(Ending::Rejected, out);
                }
            },
            Phase::Rescued | Phase::Rescuing => {
                out.push(Output::Tell(Event::AnswerReceived));
                self.send_waiting_rate(now, out);
            }
            Phase::Closing { .. } => {
                if self.unanswered.is_empty() {
                    out.push(Output::Tell(Event::AnswerReceived));
                    self.close(Ending::Finished, out);
                }
            }
            Phase::Awaiting { .. } | Phase::Deciding { .. } | Phase::Over => {
                self.fail(Fault::UnexpectedAnswer { number }, out);
            }
        }
    }

    fn peer_closed(&mut self, out: &mut Vec<Output>) {
        match &mut self.phase {
            // Someone who pipes one line into netcat has said all there is to say, and waits.
            Phase::Deciding { is_peer_gone, .. } => *is_peer_gone = true,
            Phase::Closing { .. } => self.close(Ending::Finished, out),
            Phase::Calling { .. }
            | Phase::Awaiting { .. }
            | Phase::Rescued
            | Phase::Rescuing
            | Phase::Over => self.fail(Fault::PeerClosed, out),
        }
    }

    fn check_deadlines(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        let is_late = |until: Option<Timestamp>| until.is_some_and(|until| until <= now);
        let line = self.line_began.map(|began| began + self.limits.line_wait);
        if is_late(line) {
            return self.fail(Fault::HalfLine, out);
        }
        if is_late(self.phase.deadline()) {
            return match &self.phase {
                Phase::Deciding { number, .. } => {
                    out.push(send_answer(*number, Answer::Reject));
                    self.fail(Fault::NoDecision, out);
                }
                Phase::Awaiting { .. } => self.fail(Fault::NoSos, out),
                Phase::Calling { .. }
                | Phase::Rescued
                | Phase::Rescuing
                | Phase::Closing { .. }
                | Phase::Over => self.fail(Fault::NoAnswer, out),
            };
        }
        if is_late(self.unanswered.front().map(|asked| asked.until)) {
            self.fail(Fault::NoAnswer, out);
        }
    }

    fn accept(&mut self, offer: Offer, out: &mut Vec<Output>) {
        let Phase::Deciding {
            number,
            beats,
            drill,
            is_peer_gone,
            shutdown,
            ..
        } = self.phase
        else {
            return;
        };
        let (beats, drill) = (beats && offer.beats, drill && offer.drill);
        let answer = Answer::Accept(Offer {
            beats,
            drill,
            ..offer
        });
        out.push(send_answer(number, answer));
        self.phase = Phase::Rescuing;
        match shutdown {
            Some((number, word)) => self.take_shutdown(number, word, out),
            None if is_peer_gone => self.fail(Fault::PeerClosed, out),
            None => {}
        }
    }

    fn reject(&mut self, out: &mut Vec<Output>) {
        if let Phase::Deciding { number, .. } = self.phase {
            out.push(send_answer(number, Answer::Reject));
            self.close(Ending::Rejected, out);
        }
    }

    fn tell_rate(&mut self, now: Timestamp, rate: Rate, out: &mut Vec<Output>) {
        if self.phase == Phase::Rescuing {
            self.rate_waiting = Some(rate);
            self.send_waiting_rate(now, out);
        }
    }

    /// A slow peer gets the newest rate when it has answered, not every one in between.
    fn send_waiting_rate(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        if self.unanswered.len() >= self.limits.unanswered_max {
            return;
        }
        if let Some(rate) = self.rate_waiting.take() {
            self.ask(now, Asking::Other, Request::Rate(rate), out);
        }
    }

    /// Only a rescue server has use for it.
    fn send_peers(&mut self, now: Timestamp, peers: Peers, out: &mut Vec<Output>) {
        if self.phase == Phase::Rescued {
            self.ask(now, Asking::Other, Request::Peers(sendable(peers)), out);
        }
    }

    fn shut_down(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Rescued | Phase::Rescuing => {
                let shutdown = Request::Shutdown(ShutdownWord::Unsaid);
                self.ask(now, Asking::Other, shutdown, out);
                let until = now + self.limits.closing_wait;
                self.phase = Phase::Closing { until };
            }
            Phase::Deciding { .. } => self.reject(out),
            Phase::Calling { .. } | Phase::Awaiting { .. } => self.close(Ending::Finished, out),
            Phase::Closing { .. } | Phase::Over => {}
        }
    }

    fn ask(&mut self, now: Timestamp, asking: Asking, request: Request, out: &mut Vec<Output>) {
        self.asked = self.asked.saturating_add(1);
        let (number, until) = (self.asked, now + self.limits.answer_wait);
        self.unanswered.push_back(Unanswered {
            number,
            until,
            asking,
        });
        out.push(Output::Send(Message::request(self.asked, request)));
    }

    fn fail(&mut self, fault: Fault, out: &mut Vec<Output>) {
        let kind = fault.kind();
        match self.phase {
            Phase::Calling { .. } => {
                let refusal = match kind {
                    FaultKind::Closed | FaultKind::Silent => Refusal::Unreachable,
                    FaultKind::Garbage => Refusal::Garbage,
                };
                out.push(Output::Tell(Event::NotRescued(refusal)));
            }
            Phase::Deciding { .. } | Phase::Rescued | Phase::Rescuing => {
                out.push(Output::Tell(Event::Lost(kind)));
            }
            // Nobody was told of the link yet, or it was given up already.
            Phase::Awaiting { .. } | Phase::Closing { .. } | Phase::Over => {}
        }
        self.close(Ending::Failed(fault), out);
    }

    fn close(&mut self, ending: Ending, out: &mut Vec<Output>) {
        self.phase = Phase::Over;
        self.unanswered.clear();
        out.push(Output::Close(ending));
    }
}

const fn send_answer(number: u32, answer: Answer) -> Output {
    Output::Send(Message::answer(number, answer))
}
