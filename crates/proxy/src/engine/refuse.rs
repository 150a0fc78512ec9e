//! Saying no, cheaply; and what a response costs the link beside its bytes.

use levee_control::Comeback;

use super::Core;
use super::serve::{Served, Visit};
use crate::answer::{After, Answer, Body, Cause, Kind};
use crate::connection::Connection;
use crate::pacer::{Packets, SEGMENT_BYTES};
use crate::redirect::write_refusal;
use crate::request::{Request, Scheme};
use crate::response::{Closing, Plain};

/// What a reset costs on the wire: SYN-ACK and RST with their Ethernet frames.
const RESET_BYTES: u64 = 136;
/// Segments that the overhead of a first response covers, as TCP_INFO counts them: the five packets
/// of the paper without the SYN-ACK, which it does not count.
const SEGMENTS_COVERED: u32 = 4;
/// Those of them that come at the end: FIN, and the acknowledgement of the visitor's.
const SEGMENTS_AT_THE_END: u32 = 2;
/// Answers up to this size leave in one segment on every path (RFC 9293 section 3.7.1).
const ONE_SEGMENT: u64 = 536;

impl Core {
    /// Refuses `request` for lack of capacity: 503 while the share of refusals lasts, else a reset.
    pub(super) fn refuse(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
    ) -> Served {
        self.refuse_as(connection, request, visit, Kind::Refusal)
    }

    /// As [`Core::refuse`], as an answer of this kind.
    pub(super) fn refuse_as(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        kind: Kind,
    ) -> Served {
        let mut head = self.pool.take();
        write_refusal(self.date.line(), &mut head);
        self.refuse_with(connection, request, visit, (kind, head, 503))
    }

    /// As [`Core::refuse_as`], with this head, which ends the connection.
    pub(super) fn refuse_with(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        (kind, head, status): (Kind, Vec<u8>, u16),
    ) -> Served {
        if let Some(link) = &self.link {
            let cost = head.len() as u64 + visit.overhead;
            if !link.allows_refusal(self.now, cost) {
                self.pool.give(head);
                if kind == Kind::Withheld {
                    // Nobody here is short of anything.
                    self.counters.withheld.add(1);
                    self.charge_reset();
                } else {
                    self.note_dropped();
                }
                return Served::Dropped;
            }
        }
        let visit = Visit {
            kind,
            closing: Closing::Close,
            ..*visit
        };
        let answer = Answer::new(head, Body::Empty, visit.kind, status);
        let record = self.record(connection, request, visit.kind, self.now.since(visit.began));
        self.begin(connection, answer, &visit, record);
        Served::Answered
    }

    /// Counts a connection that was closed without an answer.
    pub(super) fn note_dropped(&self) {
        self.counters.dropped.add(1);
        self.charge_reset();
    }

    /// A connection is closed without an answer.
    pub(super) fn charge_reset(&self) {
        if let Some(link) = &self.link {
            link.charge(self.now, RESET_BYTES);
        }
    }

    /// Answers something that is not a request, or half of one, and ends the connection.
    pub(super) fn complain(&mut self, connection: &mut Connection, status: u16) {
        let mut head = self.pool.take();
        let plain = Plain::new(status);
        let text = plain.write_head(self.date.line(), Closing::Close, &mut head);
        head.extend_from_slice(text.as_bytes());
        self.complain_with(connection, head, status);
    }

    /// As [`Core::complain`], in these words.
    pub(super) fn complain_with(
        &mut self,
        connection: &mut Connection,
        head: Vec<u8>,
        status: u16,
    ) {
        let visit = Visit {
            began: self.now,
            kind: Kind::Own,
            cause: Cause::Visitors,
            // What is no request is nobody's whom others could answer.
            came_by: Scheme::Http,
            comeback: Comeback::None,
            closing: Closing::Close,
            overhead: self.overhead(connection),
            token: 0,
        };
        let answer = Answer::new(head, Body::Empty, visit.kind, status);
        self.gate.note_direct(self.now, answer.ready());
        self.begin(connection, answer, &visit, None);
        if let crate::connection::Phase::Answering(answer) = &mut connection.phase {
            // What the visitor goes on sending is not understood any more.
            answer.after = After::Linger;
        }
    }

    /// What the next response on `connection` costs beside its bytes: the constant for the first,
    /// which covers opening and closing; then what TCP sent since, and the segment to come. What
    /// the constant paid for and TCP did not send is given back with the second.
    pub(super) fn overhead(&self, connection: &Connection) -> u64 {
        let plan = self.gate.plan().redirect.as_ref();
        if self.link.is_none() && plan.is_none() {
            return 0;
        }
        // Handshakes and heads of records have left already; they are charged with what follows.
        let extra = connection.extra + connection.socket.extra();
        if connection.responses == 0 {
            let of_tcp = plan.map_or(self.settings.connection_overhead, |plan| {
                plan.connection_overhead
            });
            return of_tcp + extra;
        }
        let new = match connection.socket.tcp_info() {
            Ok(info) => {
                let in_all = info.segments_out + 1 + SEGMENTS_AT_THE_END;
                in_all.saturating_sub(connection.segments)
            }
            Err(_) => 1,
        };
        u64::from(new) * SEGMENT_BYTES + extra
    }

    /// Notes that `overhead` was charged for the response that begins. Gives the bytes of it that
    /// TLS took: a handshake before the first.
    pub(super) fn note_charged(&self, connection: &mut Connection, overhead: u64) -> u64 {
        let extra = std::mem::take(&mut connection.extra) + connection.socket.take_extra();
        let of_tcp = overhead.saturating_sub(extra);
        connection.segments = match connection.responses {
            0 => SEGMENTS_COVERED,
            _ => connection.segments + (of_tcp / SEGMENT_BYTES) as u32,
        };
        connection.responses += 1;
        extra
    }
}

/// How `connection` cuts `answer` into segments. The kernel is asked once, and only where there may
/// be more than one.
pub(super) fn packets_of(connection: &mut Connection, answer: &Answer) -> Packets {
    if let Some(known) = connection.packets {
        return known;
    }
    if answer.flow.is_none() && answer.ready() <= ONE_SEGMENT {
        return Packets::ETHERNET;
    }
    ask_packets(connection)
}

/// As [`packets_of`], for whatever `connection` will carry.
pub(super) fn ask_packets(connection: &mut Connection) -> Packets {
    let socket = &connection.socket;
    *connection.packets.get_or_insert_with(|| {
        let info = socket.tcp_info();
        info.map_or(Packets::ETHERNET, |info| Packets::of(info.segment_bytes))
    })
}
