//! One core: a thread with its own epoll, listeners, connections, gate and counters.
//!
//! ```text
//!   wait ─▶ events, messages ─▶ deadlines ─▶ parked requests ─▶ the link ─┐
//!    ▲                                                                    │
//!    └────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A core shares nothing that it writes with another one, but for the clock of the link. A panic in
//! the work for one connection closes that connection and no other.

mod accept;
mod challenge;
mod codings;
mod copies;
mod core;
mod crawlers;
mod deadlines;
mod drill;
mod drive;
mod ends;
mod handover;
mod handshake;
mod held_up;
mod hot_index;
mod https;
mod introduction;
mod messages;
mod orphans;
mod parts;
mod publishing;
mod pump;
mod purge;
mod refuse;
mod rescue;
mod send;
mod serve;
mod sessions;
mod upload;
mod visitor;
mod waiting;
mod way_back;
mod work;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use levee_net::{Clock, Mailbox, Poller, Readiness};
use levee_vocab::Timestamp;

pub(crate) use self::accept::{Door, Speech};
pub(crate) use self::codings::CodingCounters;
pub(crate) use self::core::{Core, CoreParts, Settled};
use self::drive::Fate;
pub(crate) use self::messages::Message;
pub use self::purge::PurgeInlet;
use crate::connection::{Connection, Phase};
use crate::connections::Connections;
use crate::http2::{Accepted, Watched};
use crate::pacer::PeakMeter;
use crate::transport::Transport;
use crate::wheel::Wheel;

/// A core.
pub(crate) struct Engine {
    core: Core,
    connections: Connections,
    poller: Poller,
    doors: Vec<Door>,
    mailbox: Mailbox<Message>,
    messages: Vec<Message>,
    wheel: Wheel,
    due: Vec<u64>,
    /// Of the one core that watches the link.
    peak: Option<PeakMeter>,
    accepting: Accepting,
    ending: Ending,
    /// Spare lists for HTTP/2: new requests, and sessions with frames to write.
    harvest: Vec<Accepted>,
    flushing: Vec<u64>,
}

/// Whether new connections are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepting {
    Yes,
    /// No file is left; look again then.
    PausedUntil(Timestamp),
    Never,
}

/// How this core ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// What runs may finish until then.
    Draining(Timestamp),
    Now,
}

/// Token of the mailbox; listeners have those that follow.
const MAILBOX: u64 = Connections::TOKEN_END;

impl Engine {
    /// A core that is ready to run.
    pub fn new(parts: CoreParts, doors: Vec<Door>, mailbox: Mailbox<Message>) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.watch_level(&mailbox, MAILBOX)?;
        for (door, number) in doors.iter().zip(1..) {
            poller.watch_level(&door.listener, MAILBOX + number)?;
        }
        let now = Clock.now();
        let is_watching = parts.number == 0 && parts.link.is_some();
        Ok(Self {
            core: Core::new(parts, now, SystemTime::now()),
            connections: Connections::default(),
            poller,
            doors,
            mailbox,
            messages: Vec::new(),
            wheel: Wheel::new(now),
            due: Vec::new(),
            peak: is_watching.then(PeakMeter::default),
            accepting: Accepting::Yes,
            ending: Ending::No,
            harvest: Vec::new(),
            flushing: Vec::new(),
        })
    }

    /// Runs until a message says to end, or the system refuses to tell of events.
    pub fn run(mut self) -> io::Result<()> {
        while !self.is_finished() {
            self.poller.wait(self.patience())?;
            self.turn();
        }
        Ok(())
    }

    fn turn(&mut self) {
        let settled = self.settled();
        self.core.wake_up(Clock.now(), SystemTime::now(), settled);
        let mut index = 0;
        while let Some((token, readiness)) = self.poller.event(index) {
            index += 1;
            match token {
                MAILBOX => self.read_messages(),
                token if token > MAILBOX => self.accept(token - MAILBOX - 1),
                token => self.on_event(token, readiness),
            }
        }
        self.look_at_deadlines();
        self.ask_parked();
        self.pump();
        self.take_woken();
        self.drive_ready();
        self.serve_handshakes();
        self.flush_sessions();
        self.watch_link();
    }

    /// Whether connections are kept: not while requests wait, nor near the limit, nor at the end.
    fn settled(&self) -> Settled {
        let limit = self.core.settings.limits.connections;
        let is_crowded = self.connections.open() > limit - limit / 8;
        match self.ending {
            Ending::No if !is_crowded && self.core.parked.is_empty() => Settled::Keep,
            Ending::No | Ending::Draining(_) | Ending::Now => Settled::Close,
        }
    }

    fn on_event(&mut self, token: u64, readiness: Readiness) {
        let Some(connection) = self.connections.find(token) else {
            return;
        };
        if readiness.is_readable() {
            connection.inbound = connection.inbound.told(readiness);
        }
        match &mut connection.phase {
            Phase::Parked { .. } if readiness.is_dead() => return self.close(token, Fate::Close),
            Phase::Answering(answer) if readiness.is_writable() => answer.unblock(),
            Phase::Boundary { .. }
            | Phase::Parked { .. }
            | Phase::Answering(_)
            | Phase::Lingering { .. }
            | Phase::Http2(_) => {}
        }
        self.drive(token);
    }

    /// Does all that can be done for a connection now.
    fn drive(&mut self, token: u64) {
        let Some(connection) = self.connections.find(token) else {
            return;
        };
        match (&connection.phase, &connection.socket) {
            (Phase::Http2(_), _) => return self.drive_session(token),
            (_, Transport::Stream(_)) => sessions::wake_stream(connection),
            (_, Transport::Plain(_) | Transport::Tls(_)) => {}
        }
        let core = &mut self.core;
        // What a panic leaves behind is this connection, which is closed, and the shared buffer,
        // which is made anew.
        let driven = catch_unwind(AssertUnwindSafe(|| core.drive(connection, token)));
        let fate = driven.unwrap_or_else(|_| {
            core.recover();
            Fate::Reset
        });
        match fate {
            Fate::Keep => {
                deadlines::watch(connection, token, core, &mut self.wheel);
                if sessions::watch_stream(connection) == Watched::Gone {
                    self.close(token, Fate::Close);
                }
            }
            Fate::Close | Fate::Reset => self.close(token, fate),
        }
    }

    fn close(&mut self, token: u64, fate: Fate) {
        // By reference up to the end: a connection is too large to be moved for nothing.
        let mut removed = self.connections.remove(token);
        let Some(connection) = &mut removed else {
            return;
        };
        self.wheel.forget(token);
        self.note_streams();
        self.core
            .counters
            .connections
            .set(self.connections.open() as u64);
        self.core.pool.give(std::mem::take(&mut connection.unread));
        let socket = &mut connection.socket;
        self.core.note_visitor_gone(socket, connection.visitor);
        self.core.note_unfinished(socket);
        match &mut connection.phase {
            Phase::Answering(answer) => self.core.abandon(answer),
            Phase::Http2(session) if fate == Fate::Close => {
                sessions::say_goodbye(session, socket);
            }
            Phase::Lingering { .. } => sessions::finish_stream(socket),
            Phase::Boundary { .. } | Phase::Parked { .. } | Phase::Http2(_) => {}
        }
        let Some(Connection { socket, .. }) = removed else {
            return;
        };
        match fate {
            Fate::Reset => socket.reset(),
            Fate::Keep | Fate::Close => socket.close(),
        }
    }

    /// Goes on with each connection that can go on, once: who has more to do than fits its turn
    /// comes again in the next.
    fn drive_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.core.ready);
        ready.sort_unstable();
        ready.dedup();
        for token in ready.drain(..) {
            self.drive(token);
        }
        ready.append(&mut self.core.ready);
        self.core.ready = ready;
    }

    /// How long to wait for events: until something else is due.
    fn patience(&self) -> Option<Duration> {
        let core = &self.core;
        let is_woken = !core.woken.is_empty() || !core.woken_sessions.is_empty();
        if is_woken || !core.ready.is_empty() || !core.handshakes.is_empty() {
            return Some(Duration::ZERO);
        }
        let now = core.now;
        let paused = match self.accepting {
            Accepting::PausedUntil(at) => Some(at),
            Accepting::Yes | Accepting::Never => None,
        };
        let draining = match self.ending {
            Ending::Draining(until) => Some(until),
            Ending::No | Ending::Now => None,
        };
        let peak = self.peak.as_ref().zip(self.core.link.as_ref());
        let due = [
            self.wheel.next_due(),
            self.core.next_pump,
            self.core.next_round,
            paused,
            draining,
            peak.and_then(|(peak, link)| peak.next(link, now)),
        ];
        let next = due.into_iter().flatten().min()?;
        // Measured from the time of the last turn: work done since then makes it a little late,
        // which the link allows for.
        Some(next.since(now))
    }

    fn watch_link(&mut self) {
        if let (Some(peak), Some(link)) = (&mut self.peak, &self.core.link) {
            peak.observe(link, self.core.now);
        }
    }

    fn is_finished(&self) -> bool {
        match self.ending {
            Ending::No => false,
            Ending::Draining(until) => self.connections.open() == 0 || self.core.now >= until,
            Ending::Now => true,
        }
    }
}

/// So that tests and wiring can name what a core is woken through.
pub(crate) struct CoreWaker(pub levee_net::Sender<Message>);

impl crate::flight::Waker for CoreWaker {
    fn wake(&self, connection: u64) {
        self.0.send(Message::Wake(connection));
    }
}

impl CoreWaker {
    /// A waker for the core behind `sender`.
    pub fn shared(sender: levee_net::Sender<Message>) -> Arc<dyn crate::flight::Waker> {
        Arc::new(Self(sender))
    }
}
