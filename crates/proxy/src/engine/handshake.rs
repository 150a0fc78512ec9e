//! Handshakes, a few at a time.
//!
//! A handshake costs a core as much time as some twenty hits: one signature and one exchange of
//! keys. A flood of them must not stand before those who are being served. So each waits in a line
//! of its own, and once a turn, after everything else, the line is served until its time is up.
//! Whoever is nearly done goes first; where the line is too long nobody is helped by joining it.

use std::collections::VecDeque;
use std::time::Duration;

use levee_net::Clock;

use super::drive::Go;
use super::{Core, Engine};
use crate::connection::{Connection, Inbound, Phase};
use crate::response::{Closing, push_number, push_status};
use crate::tls::{Agreed, Handshake, HandshakeProgress, Resumption, TlsStream, Version, Waits};
use crate::transport::Transport;

/// Time for handshakes in one turn: five of them with today's keys, and a small part of what a
/// visitor notices.
const TIME: Duration = Duration::from_micros(500);
/// Most that wait: what a core does in about half a second. Who comes later would leave before its
/// turn came.
const WAITING_MAX: usize = 4096;

const PLAIN_TEXT: &[u8] = b"A plain HTTP request came to a port for HTTPS. Use https:// instead.\n";

/// Connections whose handshake can go on.
#[derive(Debug, Default)]
pub(crate) struct HandshakeLine {
    waiting: VecDeque<u64>,
    /// Whose turn it is.
    turn: Option<u64>,
}

impl HandshakeLine {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn join(&mut self, stream: &mut TlsStream, token: u64) -> Go {
        if stream.waits == Waits::InLine {
            return Go::Wait;
        }
        if self.waiting.len() >= WAITING_MAX {
            return Go::Reset;
        }
        match stream.progress() {
            HandshakeProgress::Silent | HandshakeProgress::Greeted => {
                self.waiting.push_back(token);
            }
            HandshakeProgress::Answered | HandshakeProgress::Done => self.waiting.push_front(token),
        }
        stream.waits = Waits::InLine;
        Go::Wait
    }
}

impl Engine {
    /// Goes on with handshakes for as long as a turn allows.
    pub(super) fn serve_handshakes(&mut self) {
        if self.core.handshakes.is_empty() {
            return;
        }
        let until = Clock.now() + TIME;
        while let Some(token) = self.core.handshakes.waiting.pop_front() {
            self.core.handshakes.turn = Some(token);
            self.drive(token);
            self.core.handshakes.turn = None;
            if Clock.now() >= until {
                return;
            }
        }
    }
}

impl Core {
    /// Does the next step of a handshake where it is its turn; else it waits in the line.
    pub(super) fn shake_hands(&mut self, connection: &mut Connection, token: u64) -> Go {
        let Transport::Tls(stream) = &mut connection.socket else {
            return Go::On;
        };
        if self.handshakes.turn != Some(token) {
            return match connection.inbound {
                Inbound::Readable | Inbound::Ending => self.handshakes.join(stream, token),
                Inbound::Drained => Go::Wait,
                Inbound::Ended => Go::Close,
            };
        }
        stream.waits = Waits::No;
        // One turn is one step, and what a request after it needs is no part of the handshake.
        self.handshakes.turn = None;
        match stream.shake_hands() {
            Ok(Handshake::Wait) => {
                connection.inbound = match connection.inbound {
                    // The end was told, so only reading on finds it.
                    Inbound::Ending => return self.handshakes.join(stream, token),
                    Inbound::Readable | Inbound::Drained => Inbound::Drained,
                    Inbound::Ended => Inbound::Ended,
                };
                Go::Wait
            }
            Ok(Handshake::Done(agreed)) => {
                self.note_agreed(agreed);
                connection.phase = Phase::boundary(self.now);
                Go::On
            }
            Ok(Handshake::PlainText) => {
                self.complain_of_plain_text(connection);
                Go::On
            }
            Err(error) => {
                tracing::debug!(peer = %connection.peer, %error, "a handshake failed");
                Go::Close
            }
        }
    }

    fn note_agreed(&self, agreed: Agreed) {
        let counters = &self.counters;
        match agreed.resumption {
            Resumption::Full => counters.handshakes_full.add(1),
            Resumption::Resumed => counters.handshakes_resumed.add(1),
        }
        match agreed.version {
            Version::Tls12 => counters.handshakes_tls12.add(1),
            Version::Tls13 => counters.handshakes_tls13.add(1),
        }
    }

    /// Somebody speaks HTTP where HTTPS is expected: an answer in his own language.
    fn complain_of_plain_text(&mut self, connection: &mut Connection) {
        let mut head = self.pool.take();
        push_status(400, &mut head);
        head.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: ");
        push_number(PLAIN_TEXT.len() as u64, &mut head);
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(self.date.line());
        head.extend_from_slice(Closing::Close.line());
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(PLAIN_TEXT);
        self.counters.bad_requests.add(1);
        self.complain_with(connection, head, 400);
    }

    /// A connection is closed before its handshake is done.
    pub(super) fn note_unfinished(&self, stream: &Transport) {
        if let Transport::Tls(stream) = stream
            && matches!(
                stream.progress(),
                HandshakeProgress::Greeted | HandshakeProgress::Answered
            )
        {
            self.counters.handshakes_failed.add(1);
            if let Some(link) = &self.link {
                link.charge(self.now, stream.extra());
            }
        }
    }
}
