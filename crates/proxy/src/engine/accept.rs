//! New connections.

use std::time::Duration;

use levee_net::{Accepted, Clock};

use super::drive::Fate;
use super::{Accepting, Engine, MAILBOX};
use crate::connection::Connection;

/// Most connections taken in one turn from one listener: a flood of them must not keep those that
/// are open from being served.
const ACCEPTED_MAX: usize = 64;
/// How long to wait for a file to be closed when none is left.
const PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    /// Takes connections from the listener with this number.
    pub(super) fn accept(&mut self, listener: u64) {
        let index = listener as usize;
        for _ in 0..ACCEPTED_MAX {
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            match listener.accept() {
                Ok(Some(accepted)) => self.admit(accepted),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections for a moment");
                    return self.pause_accepting();
                }
            }
        }
    }

    fn admit(&mut self, accepted: Accepted) {
        self.core.counters.accepted.add(1);
        if self.connections.open() >= self.core.settings.limits.connections {
            match self.connections.idle_longest() {
                Some(token) => self.close(token, Fate::Close),
                None => {
                    self.core.note_dropped();
                    return accepted.socket.reset();
                }
            }
        }
        // The true time, so that of those accepted in one turn the first counts as the oldest.
        let now = Clock.now();
        let connection = Connection::new(accepted.socket.into(), accepted.peer, now);
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

    fn pause_accepting(&mut self) {
        if let Some(token) = self.connections.idle_longest() {
            self.close(token, Fate::Close);
        }
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
        for (listener, number) in self.listeners.iter().zip(1..) {
            if let Err(error) = self.poller.watch_level(listener, MAILBOX + number) {
                tracing::error!(%error, "cannot watch a listener");
            }
        }
    }

    /// Takes no new connection any more.
    pub(super) fn stop_accepting(&mut self) {
        self.accepting = Accepting::Never;
        self.listeners.clear();
    }

    fn forget_listeners(&self) {
        for listener in &self.listeners {
            // A listener that epoll does not know is as good as forgotten.
            let _ = self.poller.forget(listener);
        }
    }
}
