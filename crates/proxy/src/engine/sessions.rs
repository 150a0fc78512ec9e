//! HTTP/2 in a core: driving sessions, and their streams as connections.
//!
//! ```text
//!  event ─▶ read ─▶ requests ─▶ a connection each ─▶ answers ─┐
//!              write ◀─ all frames of the turn ◀─ end of turn ◀┘
//! ```
//!
//! A session takes part in a turn like a connection does: it reads one piece, gives a number of
//! requests, and waits for the next turn with the rest, so a visitor with a hundred streams is one
//! visitor.

use std::panic::{AssertUnwindSafe, catch_unwind};

use levee_vocab::Timestamp;

use super::drive::{Fate, receive};
use super::refuse::ask_packets;
use super::{Core, Engine, Settled};
use crate::connection::{Connection, Inbound, Phase};
use crate::http2::{
    Accepted, Drained, OUTPUT_MAX, Session, SessionStart, Stream, StreamStart, Watched,
};
use crate::settings::Deadlines;
use crate::transport::Transport;

/// Requests of one visitor in one turn.
const REQUESTS_MAX: usize = 32;
/// Rounds of gathering and writing frames in one turn: some megabytes.
const ROUNDS_MAX: usize = 8;

impl Core {
    /// Makes a session of a connection that begins as HTTP/2 does; `input` is all that has come.
    pub(super) fn begin_session(&mut self, connection: &mut Connection, token: u64, input: &[u8]) {
        let mut session = Session::new(&SessionStart {
            token,
            list: &self.woken_sessions,
            head_bytes_max: self.settings.limits.head_bytes,
            now: self.now,
        });
        session.note_read(input.len());
        session.pipe().receive(input);
        connection.phase = Phase::Http2(Box::new(session));
        self.counters.http2_accepted.add(1);
        self.ready.push(token);
    }

    /// Does what can be done for a session now; new requests go to `harvest`.
    pub(super) fn advance_session(
        &mut self,
        connection: &mut Connection,
        token: u64,
        harvest: &mut Vec<Accepted>,
    ) -> Fate {
        let Phase::Http2(session) = &mut connection.phase else {
            return Fate::Keep;
        };
        if self.settled == Settled::Close {
            session.leave();
        }
        session.note_turn(self.now, self.settings.deadlines.progress);
        session.pipe().lend(&mut self.frames);
        let mut fate = Fate::Keep;
        let mut rounds = 0;
        loop {
            match self.session_round(connection, harvest) {
                Round::Again if rounds == ROUNDS_MAX || harvest.len() >= REQUESTS_MAX => {
                    self.ready.push(token);
                    break;
                }
                Round::Again => rounds += 1,
                Round::Wait => break,
                Round::Over(end) => {
                    fate = end;
                    break;
                }
            }
        }
        if let Phase::Http2(session) = &mut connection.phase {
            session.pipe().give_back(&mut self.frames);
            session.note_turn(self.now, self.settings.deadlines.progress);
            if session.is_over() && fate == Fate::Keep && !session.pipe().has_output() {
                // Told why; what the visitor is still sending must not become a reset that
                // overtakes it.
                self.begin_lingering(connection);
                self.ready.push(token);
            }
        }
        fate
    }

    /// Reads once, polls until nothing is left to do, writes once.
    fn session_round(&mut self, connection: &mut Connection, harvest: &mut Vec<Accepted>) -> Round {
        let Phase::Http2(session) = &mut connection.phase else {
            return Round::Wait;
        };
        let is_blocked = session.pipe().is_blocked();
        if !is_blocked && session.pipe().is_read() && !session.is_over() {
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = receive(&mut connection.socket, &mut connection.inbound, &mut buffer);
            match received {
                Ok(bytes) => {
                    session.note_read(bytes);
                    session.pipe().receive(&buffer[..bytes]);
                }
                Err(_) => session.pipe().end(),
            }
            self.buffer = buffer;
            if connection.inbound == Inbound::Ended {
                session.pipe().end();
            }
        }
        while harvest.len() < REQUESTS_MAX {
            match session.poll() {
                Some(accepted) => harvest.push(accepted),
                None => break,
            }
        }
        let mut is_full = harvest.len() >= REQUESTS_MAX;
        match session.pipe().drain(&mut connection.socket) {
            Err(_) => return Round::Over(Fate::Close),
            Ok(Drained::Blocked(bytes)) => {
                session.written += bytes;
                return Round::Wait;
            }
            Ok(Drained::All(bytes)) => {
                session.written += bytes;
                session.pipe().take_waiting(&mut self.ready);
                is_full |= bytes >= OUTPUT_MAX as u64;
            }
        }
        let has_more = is_full || !session.pipe().is_read() || connection.inbound.is_readable();
        match !session.is_over() && has_more {
            true => Round::Again,
            false => Round::Wait,
        }
    }
}

/// What a round of a session came to.
enum Round {
    Again,
    Wait,
    Over(Fate),
}

impl Engine {
    /// Does what can be done for a session, and begins to answer its new requests.
    pub(super) fn drive_session(&mut self, token: u64) {
        let mut harvest = std::mem::take(&mut self.harvest);
        let Some(connection) = self.connections.find(token) else {
            return;
        };
        let core = &mut self.core;
        let driven = catch_unwind(AssertUnwindSafe(|| {
            core.advance_session(connection, token, &mut harvest)
        }));
        let fate = driven.unwrap_or_else(|_| {
            core.recover();
            Fate::Reset
        });
        for accepted in harvest.drain(..) {
            self.begin_stream(token, accepted);
        }
        self.harvest = harvest;
        match fate {
            Fate::Keep => self.set_deadline(token),
            Fate::Close | Fate::Reset => self.close(token, fate),
        }
    }

    /// Makes a request of session `of` a connection, and answers it.
    fn begin_stream(&mut self, of: u64, mut accepted: Accepted) {
        let Some(session_connection) = self.connections.find(of) else {
            return;
        };
        let Phase::Http2(session) = &session_connection.phase else {
            return;
        };
        let (peer, pipe) = (session_connection.peer, session.pipe().clone());
        let responses = session_connection.responses;
        let privacy = session_connection.privacy;
        let extra = session_connection.socket.take_extra();
        let is_limited = self.core.link.is_some();
        let packets = is_limited.then(|| ask_packets(session_connection));
        session_connection.responses += 1;
        if self.connections.streams() >= self.core.settings.limits.connections {
            accepted.respond.send_reset(h2::Reason::REFUSED_STREAM);
            return self.core.note_dropped();
        }
        self.core.counters.http2_requests.add(1);
        let mut text = self.core.pool.take();
        let start = StreamStart {
            accepted,
            pipe,
            list: self.core.woken.clone(),
        };
        let stream = match Stream::new(start, &mut text) {
            Ok(stream) => stream,
            Err(flaw) => {
                self.core.counters.bad_requests.add(1);
                tracing::debug!(%peer, %flaw, "bad request");
                return self.core.pool.give(text);
            }
        };
        let transport = Transport::Stream(Box::new(stream));
        let mut connection = Connection::new(transport, peer, self.core.now);
        connection.unread = text;
        // Opening and closing the connection is paid for once.
        connection.responses = responses;
        connection.privacy = privacy;
        connection.extra = extra;
        connection.packets = packets;
        let token = self.connections.insert(connection);
        if let Some(Transport::Stream(stream)) =
            self.connections.find(token).map(|one| &mut one.socket)
        {
            stream.set_token(token);
        }
        self.note_streams();
        self.drive(token);
    }

    /// Counts the streams that are open.
    pub(super) fn note_streams(&self) {
        let streams = self.connections.streams() as u64;
        self.core.counters.http2_streams.set(streams);
    }

    /// Lets the streams that h2 woke be driven next.
    pub(super) fn take_woken(&mut self) {
        let Core { ready, woken, .. } = &mut self.core;
        woken.take(ready);
    }

    /// Writes the frames of this turn.
    pub(super) fn flush_sessions(&mut self) {
        let mut sessions = std::mem::take(&mut self.flushing);
        self.core.woken_sessions.take(&mut sessions);
        for token in sessions.drain(..) {
            self.drive(token);
        }
        self.flushing = sessions;
    }

    /// A session was too slow, or had nothing to say for too long.
    pub(super) fn expire_session(&mut self, token: u64) {
        let Some(connection) = self.connections.find(token) else {
            return;
        };
        let (now, deadlines) = (self.core.now, &self.core.settings.deadlines);
        let Phase::Http2(session) = &mut connection.phase else {
            return;
        };
        if session.waits_for_visitor() {
            // Of what the kernel has taken, only what has arrived counts. The first time that is
            // less than what was written before the visitor was waited for: then it is early yet.
            let taken = connection.socket.outstanding();
            let taken = session.written.saturating_sub(taken);
            let is_early = taken < session.progress_from;
            if is_early || taken - session.progress_from >= deadlines.progress_bytes {
                session.progress_from = taken;
                session.progress_by = now + deadlines.progress;
                return self.set_deadline(token);
            }
            if session.pipe().is_blocked() {
                return self.close(token, Fate::Reset);
            }
        } else if deadline(session, deadlines, now) > now {
            return self.set_deadline(token);
        }
        session.leave_now();
        self.drive(token);
    }

    /// Lets a session go, at once where it has nothing to do.
    pub(super) fn leave_session(&mut self, token: u64) {
        let Some(connection) = self.connections.find(token) else {
            return;
        };
        if let Phase::Http2(session) = &mut connection.phase {
            match session.is_idle() {
                true => session.leave_now(),
                false => session.leave(),
            }
            self.drive(token);
        }
    }
}

/// A stream that waits asks to be told when the visitor takes its request back; one that was taken
/// back is to be closed.
pub(super) fn watch_stream(connection: &mut Connection) -> Watched {
    match &mut connection.socket {
        Transport::Stream(stream) => stream.watch(),
        Transport::Plain(_) | Transport::Tls(_) => Watched::Wanted,
    }
}

/// A stream was woken, or may have been.
pub(super) fn wake_stream(connection: &mut Connection) {
    if connection.inbound == Inbound::Drained {
        connection.inbound = Inbound::Readable;
    }
    if let Phase::Answering(answer) = &mut connection.phase {
        answer.unblock();
    }
}

/// The request of a stream that lingered is over, or has had its time.
pub(super) fn finish_stream(transport: &mut Transport) {
    match transport {
        Transport::Stream(stream) => stream.finish(),
        Transport::Plain(_) | Transport::Tls(_) => {}
    }
}

/// Tells a visitor that his idle session ends, if that can be told at once.
pub(super) fn say_goodbye(session: &mut Session, transport: &mut Transport) {
    session.leave_now();
    session.poll();
    // Where it fails, the end of the connection says it.
    let _ = session.pipe().drain(transport);
}

/// When to look whether a session is too slow.
pub(super) fn deadline(session: &Session, deadlines: &Deadlines, now: Timestamp) -> Timestamp {
    if session.is_beginning() {
        session.quiet_since + deadlines.head
    } else if session.waits_for_visitor() {
        session.progress_by
    } else if session.is_quiet() {
        session.quiet_since + deadlines.idle
    } else {
        // Its streams have deadlines of their own.
        now + deadlines.idle
    }
}
