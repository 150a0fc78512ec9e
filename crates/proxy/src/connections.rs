//! All connections of one core, by tokens that are never mistaken for older ones.

mod eviction;

use levee_vocab::Timestamp;

use self::eviction::{Eviction, RECONSIDERED_MAX};
pub(crate) use self::eviction::{Occupation, Said};
use crate::connection::Connection;
use crate::transport::Transport;

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
    streams: usize,
    /// The place that was looked at last.
    hand: usize,
    eviction: Eviction,
}

#[derive(Debug, Default)]
struct Slot {
    /// Counts the connections that this slot has had, so that an event for an earlier one finds
    /// nothing.
    generation: u32,
    connection: Option<Connection>,
}

/// How many connections are looked at for each newcomer, in turn, where there is little room.
const LOOKED_AT: usize = 32;

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
        self.eviction.forget(token);
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

    /// Looks at the next few connections, because there is little room: whoever may have to give
    /// way later must have been watched for a while.
    pub fn look_around(&mut self, now: Timestamp) {
        for _ in 0..LOOKED_AT.min(self.slots.len()) {
            self.hand = (self.hand + 1) % self.slots.len();
            let generation = self.slots[self.hand].generation;
            self.look_at(u64::from(generation) << 32 | self.hand as u64, now);
        }
    }

    /// The connection that is missed least of those that were looked at. None where all are
    /// answered as fast as their visitors deserve.
    pub fn least_missed(&mut self, now: Timestamp) -> Option<u64> {
        for _ in 0..RECONSIDERED_MAX {
            let token = self.eviction.worst()?;
            // It may have begun to do something since.
            self.look_at(token, now);
            if self.eviction.worst() == Some(token) {
                return Some(token);
            }
        }
        self.eviction.worst()
    }

    /// Forgets what was seen: there is room again.
    pub fn look_away(&mut self) {
        self.eviction.relax();
    }

    fn look_at(&mut self, token: u64, now: Timestamp) {
        let Some(slot) = self.slots.get(token as u32 as usize) else {
            return;
        };
        let lives = u64::from(slot.generation) == token >> 32;
        match slot.connection.as_ref().filter(|_| lives) {
            Some(connection) => {
                let occupation = connection.occupation();
                let address = connection.peer.ip();
                self.eviction.note(now, token, address, occupation);
            }
            None => self.eviction.forget(token),
        }
    }

    /// All connections.
    pub fn all(&self) -> impl Iterator<Item = &Connection> {
        self.slots
            .iter()
            .filter_map(|slot| slot.connection.as_ref())
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
