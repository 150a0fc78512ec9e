//! A flow that may become a tunnel: the visitor asked for another protocol, and its upstream
//! decides.
//!
//! ```text
//!  None        Asked ── 101 ──▶ Open
//!                └── any other status ──▶ None
//! ```
//!
//! What the visitor sends before the 101 stays unread: it is the next request where there will be
//! no tunnel. From the 101 on all its bytes are the tunnel's.

use std::time::Duration;

use levee_vocab::Timestamp;

use super::{Flow, Upload};
use crate::response::Closing;

/// See the head of this file.
#[derive(Debug)]
pub(crate) enum Tunnel {
    None,
    Asked(Upload),
    Open(Movement),
}

/// When bytes were last seen to move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Movement {
    moved: u64,
    at: Option<Timestamp>,
}

/// Whether there is a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Open,
    Not,
}

impl Flow {
    /// Whether the protocol was changed.
    pub const fn is_tunnel(&self) -> bool {
        match self.tunnel {
            Tunnel::Open(_) => true,
            Tunnel::None | Tunnel::Asked(_) => false,
        }
    }

    /// Whether the visitor's side of a tunnel is still open.
    pub(super) const fn is_half_open(&self) -> bool {
        self.is_tunnel() && self.upload.is_some()
    }

    /// How long nothing has moved in either direction, at `now`, by the sum of bytes that have.
    /// As exact as it is asked often.
    pub fn tunnel_idle(&mut self, moved: u64, now: Timestamp) -> Duration {
        let Tunnel::Open(movement) = &mut self.tunnel else {
            return Duration::ZERO;
        };
        let at = match movement.at {
            Some(at) if movement.moved == moved => at,
            Some(_) | None => now,
        };
        *movement = Movement {
            moved,
            at: Some(at),
        };
        now.since(at)
    }

    /// What the status of the response means for the tunnel.
    pub(super) fn settle_tunnel(&mut self, status: u16) -> Settled {
        match (std::mem::replace(&mut self.tunnel, Tunnel::None), status) {
            (Tunnel::Asked(upload), 101) => {
                self.upload = Some(upload);
                self.closing = Closing::Close;
                self.tunnel = Tunnel::Open(Movement { moved: 0, at: None });
                Settled::Open
            }
            (Tunnel::None | Tunnel::Asked(_) | Tunnel::Open(_), _) => Settled::Not,
        }
    }
}
