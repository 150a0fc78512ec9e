//! Visitors who are too slow.

use levee_vocab::Timestamp;

use super::drive::Fate;
use super::sessions;
use super::{Core, Engine};
use crate::answer::{Answer, Place};
use crate::connection::{Connection, Phase};
use crate::settings::Deadlines;
use crate::wheel::Wheel;

impl Engine {
    /// Sets the deadline of a connection that waits for something.
    pub(super) fn set_deadline(&mut self, token: u64) {
        if let Some(connection) = self.connections.find(token) {
            watch(connection, token, &self.core, &mut self.wheel);
        }
    }

    /// Closes, or complains to, whoever is too slow.
    pub(super) fn look_at_deadlines(&mut self) {
        self.resume_accepting();
        let now = self.core.now;
        let mut due = std::mem::take(&mut self.due);
        self.wheel.take_due(now, &mut due);
        for token in due.drain(..) {
            let Some(connection) = self.connections.find(token) else {
                continue;
            };
            if connection.looked_at > now {
                // The wheel has a later entry for it as well.
                continue;
            }
            if connection.deadline > now {
                connection.looked_at = self.wheel.set(connection.deadline, token);
            } else {
                self.expire(token);
            }
        }
        self.due = due;
    }

    fn expire(&mut self, token: u64) {
        let Some(connection) = self.connections.find(token) else {
            return;
        };
        let now = self.core.now;
        let deadlines = &self.core.settings.deadlines;
        let is_idle = connection.is_idle();
        match &mut connection.phase {
            Phase::Boundary { .. } if is_idle => self.close(token, Fate::Close),
            Phase::Boundary { .. } => {
                self.core.complain_of_slowness(connection);
                self.drive(token);
            }
            Phase::Answering(answer) => {
                // Of what the kernel has taken, only what has arrived counts: it takes up to a
                // megabyte at once, and then nothing until a third of that has left.
                let moved = answer
                    .moved()
                    .saturating_sub(connection.socket.outstanding());
                match judge(answer, moved, deadlines, now) {
                    Pace::Enough => {
                        answer.progress_from = moved;
                        answer.progress_by = now + deadlines.progress;
                        self.set_deadline(token);
                    }
                    Pace::TooSlow => self.close(token, Fate::Reset),
                }
            }
            Phase::Parked { .. } => self.close(token, Fate::Reset),
            Phase::Lingering { .. } => self.close(token, Fate::Close),
            Phase::Http2(_) => self.expire_session(token),
        }
    }
}

/// Sets the deadline of `connection`, which waits for something.
pub(super) fn watch(connection: &mut Connection, token: u64, core: &Core, wheel: &mut Wheel) {
    connection.deadline = deadline(connection, &core.settings.deadlines, core.now);
    let is_unseen = connection.looked_at <= core.now;
    if is_unseen || connection.deadline < connection.looked_at {
        connection.looked_at = wheel.set(connection.deadline, token);
    }
}

fn deadline(connection: &Connection, deadlines: &Deadlines, now: Timestamp) -> Timestamp {
    match &connection.phase {
        Phase::Boundary { since, .. } if connection.is_idle() && connection.responses > 0 => {
            *since + deadlines.idle
        }
        Phase::Boundary { since, .. } => *since + deadlines.head,
        // The Gate refuses long before this; it is for a Gate that forgot.
        Phase::Parked { .. } => now + deadlines.idle,
        Phase::Answering(answer) => answer.progress_by,
        Phase::Lingering { since, .. } => *since + LINGERING,
        Phase::Http2(session) => sessions::deadline(session, deadlines, now),
    }
}

/// How long a visitor may go on sending after our last word.
const LINGERING: std::time::Duration = std::time::Duration::from_secs(2);

/// Whether whoever is waited for goes on fast enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Enough,
    TooSlow,
}

/// `moved` is what has reached its end of the response, and of the request that it answers.
fn judge(answer: &mut Answer, moved: u64, deadlines: &Deadlines, now: Timestamp) -> Pace {
    let is_stuck = answer.ready() > 0 && answer.place != Place::Queued;
    let tunnel = answer.flow.as_mut().filter(|flow| flow.is_tunnel());
    let idle = tunnel.map(|flow| flow.tunnel_idle(moved, now));
    let is_enough = match idle {
        Some(idle) if idle >= deadlines.tunnel_idle => false,
        // Silence is a tunnel's right; not taking what was said is not.
        Some(_) if !is_stuck => true,
        Some(_) | None => is_progressing(answer, moved, deadlines),
    };
    match is_enough {
        true => Pace::Enough,
        false => Pace::TooSlow,
    }
}

/// Whether what a response waits for is not the visitor, or the visitor moves enough bytes.
fn is_progressing(answer: &Answer, moved: u64, deadlines: &Deadlines) -> bool {
    let has_moved = moved.saturating_sub(answer.progress_from) >= deadlines.progress_bytes;
    has_moved || !answer.waits_for_visitor()
}
