//! All connections of one core, by tokens that are never mistaken for older ones.

use std::time::Duration;

use levee_vocab::Timestamp;

use crate::connection::{Connection, Phase};
use crate::transport::Transport;

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
    streams: usize,
    hand: usize,
}

#[derive(Debug, Default)]
struct Slot {
    /// Counts the connections that this slot has had, so that an event for an earlier one finds
    /// nothing.
    generation: u32,
    connection: Option<Connection>,
}

/// How many connections are looked at to find one that was idle for long.
const LOOKED_AT: usize = 64;
/// How long a head may take before its connection makes way for a new one, where there is no room
/// for both. A head is a packet or a few: they come within a round trip, 250 ms
/// around the world.
const SLOW_HEAD: Duration = Duration::from_millis(250);

impl Connections {
    /// Keeps `connection`; its token is below [`Connections::TOKEN_END`].
    pub fn insert(&mut self, connection: Connection) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.generation = (slot.generation + 1) & 0x7FFF_FFFF;
        match connection.socket {
            Transport::Stream(_) => self.streams += 1,
            Transport::Plain(_) | Transport::Tls(_) => self.open += 1,
        }
        slot.connection = Some(connection);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// Tokens from here on are free for other things.
    pub const TOKEN_END: u64 = 1 << 63;

    /// The connection with this token, if it still lives.
    pub fn find(&mut self, token: u64) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token as u32 as usize)?;
        let lives = u64::from(slot.generation) == token >> 32;
        slot.connection.as_mut().filter(|_| lives)
    }

    /// Takes the connection with this token out.
    pub fn remove(&mut self, token: u64) -> Option<Connection> {
        self.find(token)?;
        let index = token as u32;
        let connection = self.slots[index as usize].connection.take();
        self.free.push(index);
        match connection.as_ref().map(|one| &one.socket) {
            Some(Transport::Stream(_)) => self.streams -= 1,
            Some(Transport::Plain(_) | Transport::Tls(_)) => self.open -= 1,
            None => {}
        }
        connection
    }

    /// Connections with a socket of their own.
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Requests of HTTP/2 that are under way.
    pub const fn streams(&self) -> usize {
        self.streams
    }

    /// Of the next few connections the one that is missed least: that has been idle longest, or
    /// where none is idle, has been sending its head longest, for longer than an honest head takes
    /// ([`SLOW_HEAD`]). None where all are being answered.
    pub fn least_missed(&mut self, now: Timestamp) -> Option<u64> {
        let (mut idle, mut slow) = (None, None);
        for _ in 0..LOOKED_AT.min(self.slots.len()) {
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &self.slots[self.hand];
            let Some(connection) = &slot.connection else {
                continue;
            };
            let since = match &connection.phase {
                Phase::Boundary { since, .. } => *since,
                Phase::Http2(session) if connection.is_idle() => session.quiet_since,
                Phase::Http2(_)
                | Phase::Parked { .. }
                | Phase::Answering(_)
                | Phase::Lingering { .. } => continue,
            };
            let longest = match connection.is_idle() {
                true => &mut idle,
                false if now.since(since) >= SLOW_HEAD => &mut slow,
                false => continue,
            };
            if longest.is_none_or(|(earliest, _)| since < earliest) {
                let token = u64::from(slot.generation) << 32 | self.hand as u64;
                *longest = Some((since, token));
            }
        }
        idle.or(slow).map(|(_, token)| token)
    }

    /// Tokens of all connections.
    pub fn tokens(&self) -> Vec<u64> {
        let slots = self.slots.iter().zip(0_u64..);
        slots
            .filter(|(slot, _)| slot.connection.is_some())
            .map(|(slot, index)| u64::from(slot.generation) << 32 | index)
            .collect()
    }
}
