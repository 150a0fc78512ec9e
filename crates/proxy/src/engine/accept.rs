//! New connections.

use std::sync::Arc;
use std::time::Duration;

use levee_net::{Accepted, Clock, Listener, Socket};
use levee_vocab::Timestamp;

use super::drive::Fate;
use super::{Accepting, Core, Engine, MAILBOX};
use crate::connection::{Connection, Introduction, Phase};
use crate::forwarded::is_trusted;
use crate::tls::TlsStream;
use crate::transport::Transport;

/// Most connections taken in one turn from one listener: a flood of them must not keep those that
/// are open from being served.
const ACCEPTED_MAX: usize = 64;
/// How long to wait for a file to be closed when none is left.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener, and what is spoken there.
#[derive(Debug)]
pub(crate) struct Door {
    pub listener: Listener,
    pub speech: Speech,
    /// Whether visitors are introduced there by a PROXY header.
    pub introduction: Introduction,
}

/// Whether one more connection may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Free,
    None,
}

/// What visitors speak on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// HTTP as it is.
    Http,
    /// HTTP in TLS.
    Https,
}

impl Core {
    /// What carries the bytes of a new connection; none where there is no telling.
    fn transport(&self, socket: Socket, speech: Speech) -> Option<Transport> {
        match (speech, &self.tls) {
            (Speech::Http, _) => Some(socket.into()),
            (Speech::Https, Some(offer)) => match TlsStream::new(socket, Arc::clone(&offer.config))
            {
                Ok(stream) => Some(Transport::Tls(Box::new(stream))),
                Err(error) => {
                    tracing::error!(%error, "cannot begin a TLS connection");
                    None
                }
            },
            (Speech::Https, None) => None,
        }
    }
}

impl Engine {
    /// Takes connections from the listener with this number.
    pub(super) fn accept(&mut self, listener: u64) {
        let index = listener as usize;
        for _ in 0..ACCEPTED_MAX {
            let Some(door) = self.doors.get(index) else {
                return;
            };
            let (speech, introduction) = (door.speech, door.introduction);
            match door.listener.accept() {
                Ok(Some(accepted)) => self.admit(accepted, speech, introduction),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections for a moment");
                    return self.pause_accepting();
                }
            }
        }
    }

    pub(super) fn admit(&mut self, accepted: Accepted, speech: Speech, introduction: Introduction) {
        self.core.counters.accepted.add(1);
        // A stranger could introduce himself as anybody.
        let is_believed = || is_trusted(self.core.sites.trusted(), accepted.peer.ip());
        if introduction == Introduction::Awaited && !is_believed() {
            self.core.counters.bad_requests.add(1);
            tracing::debug!(peer = %accepted.peer, "a proxy that is not among the trusted ones");
            return accepted.socket.reset();
        }
        if self.make_room() == Room::None {
            self.core.note_dropped();
            return accepted.socket.reset();
        }
        // The true time, so that of those accepted in one turn the first counts as the oldest.
        let now = Clock.now();
        let Some(transport) = self.core.transport(accepted.socket, speech) else {
            return;
        };
        let mut connection = Connection::new(transport, accepted.peer, now);
        connection.introduction = introduction;
        let token = self.connections.insert(connection);
        self.core
            .counters
            .connections
            .set(self.connections.open() as u64);
        // The request is often there already: answering it before epoll knows the connection saves
        // a round, and for a connection with one request the registration as well.
        self.drive(token);
        let Some(connection) = self.connections.find(token) else {
            return;
        };
        let watched = match connection.socket.descriptor() {
            Some(descriptor) => self.poller.watch_edge(descriptor, token),
            None => Ok(()),
        };
        if let Err(error) = watched {
            tracing::warn!(%error, "cannot watch a connection");
            self.close(token, Fate::Reset);
        }
    }

    /// Makes room for a newcomer where there is none. While there is little, it looks who might
    /// have to go.
    fn make_room(&mut self) -> Room {
        let (open, limit) = (
            self.connections.open(),
            self.core.settings.limits.connections,
        );
        if open <= limit / 2 {
            self.connections.look_away();
        }
        if open <= limit - limit / 8 && open < limit {
            return Room::Free;
        }
        let now = Clock.now();
        self.connections.look_around(now);
        match open < limit {
            true => Room::Free,
            false => self.evict(now),
        }
    }

    /// Closes the connection that is missed least.
    fn evict(&mut self, now: Timestamp) -> Room {
        let Some(token) = self.connections.least_missed(now) else {
            return Room::None;
        };
        let Some(connection) = self.connections.find(token) else {
            return Room::None;
        };
        let fate = match &connection.phase {
            // Half an answer must not look whole, and what the kernel holds of it is freed.
            Phase::Answering(_) => Fate::Reset,
            Phase::Http2(_) if !connection.is_idle() => Fate::Reset,
            Phase::Boundary { .. }
            | Phase::Parked { .. }
            | Phase::Lingering { .. }
            | Phase::Http2(_) => Fate::Close,
        };
        self.core.counters.evicted.add(1);
        self.close(token, fate);
        Room::Free
    }

    fn pause_accepting(&mut self) {
        let now = Clock.now();
        self.connections.look_around(now);
        self.evict(now);
        if self.accepting == Accepting::Yes {
            self.forget_listeners();
            self.accepting = Accepting::PausedUntil(self.core.now + PAUSE);
        }
    }

    /// Begins to accept again when the pause is over.
    pub(super) fn resume_accepting(&mut self) {
        let Accepting::PausedUntil(at) = self.accepting else {
            return;
        };
        if self.core.now < at {
            return;
        }
        self.accepting = Accepting::Yes;
        for (door, number) in self.doors.iter().zip(1..) {
            if let Err(error) = self.poller.watch_level(&door.listener, MAILBOX + number) {
                tracing::error!(%error, "cannot watch a listener");
            }
        }
    }

    /// Takes no new connection any more.
    pub(super) fn stop_accepting(&mut self) {
        self.accepting = Accepting::Never;
        self.doors.clear();
    }

    fn forget_listeners(&self) {
        for door in &self.doors {
            // A listener that epoll does not know is as good as forgotten.
            let _ = self.poller.forget(&door.listener);
        }
    }
}
