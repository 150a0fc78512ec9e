//! Sending a response: at once where no link limits it, else in its turn.

use levee_control::Visitor;
use levee_net::{Clock, Sent};

use super::Core;
use super::drive::Go;
use crate::answer::{After, Answer, Kind, Place};
use crate::chunked::Incoming;
use crate::connection::{Connection, Inbound, Phase};
use crate::flow::Flowed;
use crate::transport::Transport;

/// Most that a visitor may send after our last word.
const LINGERING_BYTES: u64 = 1 << 20;

impl Core {
    /// Sends what can be sent now.
    pub(super) fn push(&mut self, connection: &mut Connection, token: u64) -> Go {
        self.upload(connection, token);
        let Phase::Answering(answer) = &mut connection.phase else {
            return Go::On;
        };
        if answer.ready() == 0 {
            let Some(flow) = &mut answer.flow else {
                return self.finish(connection);
            };
            answer.head.clear();
            answer.head_sent = 0;
            match flow.advance(self.now, self.date.line(), answer.sent, &mut answer.head) {
                Flowed::More(body) => answer.body = body,
                Flowed::Nothing => return Go::Wait,
                Flowed::HalfEnd => {
                    // Where it fails the connection is dead, which the next read will tell.
                    let _ = connection.socket.finish_writing();
                    return Go::Wait;
                }
                Flowed::End => return self.finish(connection),
                Flowed::Broken => return Go::Reset,
            }
            answer.status = flow.status();
            if flow.is_tunnel() && connection.incoming.is_done() {
                connection.incoming = Incoming::Tunnel;
            }
            if flow.ends_connection() {
                answer.after = After::Close;
            }
            if let Some(link) = self.link.as_ref().filter(|_| answer.kind.is_sent()) {
                link.admit(answer.class(), answer.ready());
                answer.admitted += answer.ready();
            }
            return Go::On;
        }
        if let Some(link) = self.link.as_ref().filter(|_| answer.kind.is_sent()) {
            if answer.place == Place::Outside {
                let missing = answer.ready().saturating_sub(answer.admitted);
                link.admit(answer.class(), missing);
                answer.admitted += missing;
                answer.place = Place::Queued;
                self.paced.push(link, answer.class(), token, self.now);
                self.next_pump = Some(self.now);
            }
            return Go::Wait;
        }
        match answer.write(&mut connection.socket, u64::MAX) {
            Ok(Sent::Bytes(bytes)) => {
                self.note_sent(answer, bytes as u64);
                match answer.is_out() {
                    true => self.finish(connection),
                    false => Go::On,
                }
            }
            Ok(Sent::WouldBlock) => Go::Wait,
            Err(_) => Go::Reset,
        }
    }

    /// The response is out.
    fn finish(&mut self, connection: &mut Connection) -> Go {
        let Phase::Answering(answer) = &mut connection.phase else {
            return Go::On;
        };
        if let Transport::Stream(stream) = &mut connection.socket {
            if let Some(trailers) = answer.flow.as_ref().and_then(|flow| flow.trailers()) {
                stream.trail(trailers.clone());
            }
            stream.finish_writing();
            self.settle(answer, Clock.now());
            connection.phase = Phase::boundary(self.now);
            if stream.is_read() {
                return Go::Close;
            }
            // Reset now, it would be a stream of which nothing can be wrong any more.
            self.begin_lingering(connection);
            return Go::On;
        }
        let has_upload = answer.flow.as_ref().is_some_and(|flow| flow.is_uploading());
        let has_rest = has_upload || connection.incoming == Incoming::Lost;
        // Closed at once, the kernel would take back the answer with what is still to come.
        let comes_more = match connection.incoming {
            Incoming::Length(_) | Incoming::Chunked(_) => true,
            Incoming::Tunnel | Incoming::Lost | Incoming::Done => false,
        };
        let after = match answer.after {
            // The rest of a body that its upstream did not want: nobody knows how long it is.
            After::Next | After::Close if has_rest => After::Linger,
            After::Close if comes_more || connection.inbound.is_readable() => After::Linger,
            after @ (After::Next | After::Close | After::Linger) => after,
        };
        self.settle(answer, Clock.now());
        connection.phase = Phase::boundary(self.now);
        match after {
            After::Next => Go::On,
            After::Close => Go::Close,
            After::Linger => {
                self.begin_lingering(connection);
                Go::On
            }
        }
    }

    /// Says no more, and reads until the visitor has stopped.
    pub(super) fn begin_lingering(&self, connection: &mut Connection) {
        // Where it fails the connection is dead, which the next read will tell.
        let _ = connection.socket.finish_writing();
        connection.phase = Phase::Lingering {
            since: self.now,
            left: LINGERING_BYTES,
        };
        connection.inbound = match connection.inbound {
            ended @ (Inbound::Ending | Inbound::Ended) => ended,
            Inbound::Readable | Inbound::Drained => Inbound::Readable,
        };
    }

    /// The visitor left before the response was out.
    pub(super) fn abandon(&mut self, answer: &mut Answer) {
        self.settle(answer, Clock.now());
    }

    /// Counts bytes that were sent.
    pub(super) fn note_sent(&self, answer: &Answer, bytes: u64) {
        let (kind, visitor) = (answer.kind, answer.visitor);
        let counters = &self.counters;
        if !kind.is_sent() {
            return;
        }
        counters.bytes.add(bytes);
        match (visitor, kind) {
            (Visitor::Reader, Kind::Own) if answer.is_for_visitor_by_https() => {
                counters.https_own_bytes.add(bytes);
            }
            (Visitor::Reader, _) => {}
            (Visitor::Crawler(_), Kind::Rescue { .. }) => counters.crawler_rescue_bytes.add(bytes),
            (Visitor::Crawler(_), _) => counters.crawler_own_bytes.add(bytes),
        }
        match kind {
            Kind::Own | Kind::Look | Kind::Refusal | Kind::PuttingOff => {
                counters.own_bytes.add(bytes);
                counters.note_cause(answer.cause, bytes);
            }
            Kind::Withheld => {
                counters.own_bytes.add(bytes);
                counters.withheld_bytes.add(bytes);
            }
            Kind::Fetch => {
                counters.own_bytes.add(bytes);
                counters.note_cause(answer.cause, bytes);
                counters.fetch_bytes.add(bytes);
            }
            Kind::Redirect { slot } => {
                counters.redirect_bytes.add(bytes);
                counters.slot(slot).redirect_bytes.add(bytes);
            }
            Kind::Rescue { slot } | Kind::Home { slot } | Kind::Copy { slot } => {
                counters.rescue_bytes.add(bytes);
                counters.slot(slot).rescue_bytes.add(bytes);
            }
        }
    }

    /// Counts what TLS sent before a response: of small pages to new visitors it is as much as the
    /// pages, so a link would be full long before it seemed so. What a redirect costs is accounted
    /// with all that belongs to it (A_redi).
    pub(super) fn note_handshake(&self, answer: &Answer, bytes: u64) {
        let is_accounted = matches!(answer.kind, Kind::Redirect { .. });
        if bytes > 0 && !is_accounted {
            self.note_sent(answer, bytes);
        }
    }

    /// Counts a response that begins.
    pub(super) fn note_begun(&self, kind: Kind) {
        let counters = &self.counters;
        match kind {
            Kind::Own => counters.own_requests.add(1),
            Kind::Fetch => {
                counters.own_requests.add(1);
                counters.fetches_served.add(1);
            }
            Kind::Redirect { slot } => {
                counters.redirects.add(1);
                counters.slot(slot).redirects.add(1);
            }
            Kind::Rescue { slot } => {
                counters.rescue_requests.add(1);
                counters.slot(slot).rescue_requests.add(1);
            }
            Kind::Home { slot } => {
                counters.rescue_requests.add(1);
                counters.slot(slot).rescue_requests.add(1);
                counters.fetches_served.add(1);
            }
            // Counted by what becomes of them.
            Kind::Copy { .. } | Kind::Look => {}
            Kind::Refusal => {
                counters.own_requests.add(1);
                counters.refused.add(1);
            }
            Kind::Withheld => {
                counters.own_requests.add(1);
                counters.withheld.add(1);
            }
            Kind::PuttingOff => {
                counters.own_requests.add(1);
                counters.crawlers_put_off.add(1);
            }
        }
    }
}
