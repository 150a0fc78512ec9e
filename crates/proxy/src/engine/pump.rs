//! Sending what is ready as the link allows, most urgent first.

use levee_net::Sent;
use levee_vocab::Timestamp;

use super::Engine;
use super::drive::Fate;
use crate::answer::{Answer, Place};
use crate::connection::Phase;
use crate::pacer::{Class, Grant, Link, Packets};

/// What became of the connection whose turn it was.
enum Turn {
    /// It has more to send, after the others of its class.
    Again,
    /// It has more to send, before the others of its class.
    GoOn,
    /// All that was ready is out.
    Empty,
    /// The visitor's side is full.
    Blocked,
    Broken,
}

/// Bytes that this core may send now. What is left at the end is given back.
struct Lease<'a> {
    link: &'a Link,
    left: u64,
}

impl Lease<'_> {
    /// Makes sure that `bytes` may be sent; if not, tells when to ask again.
    fn cover(
        &mut self,
        class: Class,
        now: Timestamp,
        ready: Timestamp,
        bytes: u64,
    ) -> Result<(), Timestamp> {
        if self.left >= bytes {
            return Ok(());
        }
        let missing = (bytes - self.left).max(self.link.lease_bytes());
        match self.link.start(class, now, ready, missing) {
            Grant::Now => {
                self.left += missing;
                Ok(())
            }
            Grant::NotBefore(at) => Err(at),
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if self.left > 0 {
            self.link.refund(self.left);
        }
    }
}

impl Engine {
    /// Sends until the link is busy or nothing is ready.
    pub(super) fn pump(&mut self) {
        let Some(link) = self.core.link.take() else {
            return;
        };
        self.core.next_pump = None;
        let mut lease = Lease {
            link: &link,
            left: 0,
        };
        while let Some((class, token)) = self.core.paced.next(self.core.now) {
            if let Err(at) = self.send_in_turn(&mut lease, class, token) {
                self.core.next_pump = Some(at);
                break;
            }
        }
        drop(lease);
        self.core.link = Some(link);
    }

    fn send_in_turn(
        &mut self,
        lease: &mut Lease<'_>,
        class: Class,
        token: u64,
    ) -> Result<(), Timestamp> {
        let link = lease.link;
        let connection = self.connections.find(token);
        let queued = connection.and_then(|one| match &mut one.phase {
            Phase::Answering(answer) if answer.place == Place::Queued => {
                let packets = one.packets.unwrap_or(Packets::ETHERNET);
                Some((&mut one.socket, answer, (packets, &mut one.segments)))
            }
            Phase::Answering(_)
            | Phase::Boundary { .. }
            | Phase::Parked { .. }
            | Phase::Lingering { .. }
            | Phase::Http2(_) => None,
        });
        let Some((socket, answer, (packets, segments))) = queued else {
            // It was closed while it waited.
            self.core.paced.pop(link, (class, token));
            return Ok(());
        };
        let piece = piece(answer, packets.piece(link.quantum(), socket.framing()));
        let ready = self.core.paced.ready_since();
        let cost = piece + packets.heads(answer.sent, piece) + answer.overhead;
        lease.cover(class, self.core.now, ready, cost)?;
        self.core.paced.pop(link, (class, token));
        let turn = match answer.write(socket, piece) {
            Ok(Sent::Bytes(bytes)) => {
                *segments += charge(answer, lease, packets, bytes as u64);
                self.core.note_sent(answer, bytes as u64);
                match answer.ready() {
                    0 => Turn::Empty,
                    _ if goes_on(answer, bytes as u64) => Turn::GoOn,
                    _ => Turn::Again,
                }
            }
            Ok(Sent::WouldBlock) => Turn::Blocked,
            Err(_) => Turn::Broken,
        };
        match turn {
            Turn::Again => self.core.paced.push(link, class, token, self.core.now),
            Turn::GoOn => {
                let now = self.core.now;
                self.core.paced.push_first(link, class, token, now);
            }
            Turn::Empty => {
                answer.place = Place::Outside;
                self.core.ready.push(token);
            }
            Turn::Blocked => {
                answer.place = Place::Blocked;
                // Whoever does not take what he asked for keeps nobody else from the link. It is
                // admitted again when he goes on.
                link.settle(class, std::mem::take(&mut answer.admitted));
            }
            Turn::Broken => self.break_off(token, link),
        }
        Ok(())
    }

    /// Closes a connection while the link is lent out of the core.
    fn break_off(&mut self, token: u64, link: &Link) {
        if let Some(connection) = self.connections.find(token)
            && let Phase::Answering(answer) = &mut connection.phase
        {
            let class = answer.class();
            link.settle(class, std::mem::take(&mut answer.admitted));
        }
        self.close(token, Fate::Reset);
    }
}

/// How much of `answer` goes in one turn. Pages take turns, but a rest that is hardly longer than a
/// piece goes with it: the visitor is done, and nobody waited longer for it.
fn piece(answer: &Answer, quantum: u64) -> u64 {
    let ready = answer.ready();
    match answer.class() {
        Class::Redirect => ready,
        Class::Fetch | Class::Page | Class::Crawl if ready <= quantum + quantum / 2 => ready,
        Class::Fetch | Class::Page | Class::Crawl => quantum,
    }
}

/// Fetches go one after another: a rescue server has no use for halves of ten objects, and what was
/// asked for first is what most visitors wait for. A long one makes way now and then.
fn goes_on(answer: &Answer, just_sent: u64) -> bool {
    let parts = |sent: u64| sent / FETCH_TURN_BYTES;
    answer.class() == Class::Fetch && parts(answer.sent) == parts(answer.sent - just_sent)
}

/// One large object must not hold up all others: 64 KiB is a page with its pictures, and a second
/// or so on the smallest links.
const FETCH_TURN_BYTES: u64 = 64 * 1024;

/// Charges `bytes` that were just written, and tells how many segments beyond the first were.
fn charge(answer: &mut Answer, lease: &mut Lease<'_>, packets: Packets, bytes: u64) -> u32 {
    let before = answer.sent - bytes;
    let heads = packets.heads(before, bytes);
    let cost = bytes + heads + std::mem::take(&mut answer.overhead);
    lease.left = lease.left.saturating_sub(cost);
    let settled = cost.min(answer.admitted);
    answer.admitted -= settled;
    lease.link.settle(answer.class(), settled);
    packets.beyond_first(before, bytes) as u32
}
