//! What the operator tells a running server by signals: SIGTERM and SIGINT stop it, SIGHUP has it
//! read its settings again.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the operator tells a running server by signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Reload,
    Stop,
}

/// Waits for them.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// From now on none of them ends the process by itself.
    ///
    /// # Errors
    /// As the operating system.
    pub fn new() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| error.to_string());
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// The next one.
    ///
    /// Cancel safety: may be dropped at any time.
    pub async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.hang_up.recv() => Told::Reload,
        }
    }
}
