//! Who has bytes to send that the kernel does not take, once an interval: signs of a full link,
//! where its rate is not configured (R2).
//!
//! A page that fits into what the kernel takes at once is out of our hands before its first byte
//! has left. So those count as well whose last answer is still on its way after a second.
//!
//! All connections are counted, but the kernel is asked about a sample only: a core has better to
//! do than to ask ten thousand times at once.

use std::time::Duration;

use levee_control::{HeldUpBy, SendReading};
use levee_vocab::Timestamp;

use super::Engine;
use crate::connection::{Connection, Phase};
use crate::transport::Transport;

/// Connections of a kind that the kernel is asked about in an interval: a tenth of a millisecond,
/// and a share that is right to within a twelfth.
const ASKED_MAX: usize = 128;
/// How long an answer that the kernel has taken may be on its way before its path counts as full:
/// a page of 100 kB is there within three or four round trips.
const ON_ITS_WAY_MAX: Duration = Duration::from_secs(1);
/// Who has said nothing for so long after an answer has it, or has gone.
const RECENT: Duration = Duration::from_secs(30);

/// What a connection that is being answered is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Going,
    HeldUp,
    /// All was given to the kernel, then.
    GivenAway(Timestamp),
}

/// Connections, by what they are at.
#[derive(Default)]
struct Seen<'a> {
    going: usize,
    held_up: Vec<&'a Connection>,
    given_away: Vec<(&'a Connection, Timestamp)>,
}

/// How many connections are at what.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    answering: usize,
    held_up: usize,
    by_visitors: usize,
}

impl Engine {
    /// Counts them.
    pub(super) fn count_held_up(&mut self) {
        let now = self.core.now;
        let mut seen = Seen::default();
        for connection in self.connections.all() {
            match sending(connection) {
                Some(Sending::Going) => seen.going += 1,
                Some(Sending::HeldUp) => seen.held_up.push(connection),
                Some(Sending::GivenAway(at)) if now.since(at) < RECENT => {
                    seen.given_away.push((connection, at));
                }
                Some(Sending::GivenAway(_)) | None => {}
            }
        }
        let tally = match self.core.link {
            // Its rate is known, and bytes wait for it here and not in the kernel.
            Some(_) => Tally {
                answering: seen.going + seen.held_up.len(),
                held_up: seen.held_up.len(),
                by_visitors: 0,
            },
            None => tally(&seen, now),
        };
        let counters = &self.core.counters;
        counters.answering.set(tally.answering as u64);
        counters.held_up.set(tally.held_up as u64);
        counters.held_up_by_visitors.set(tally.by_visitors as u64);
    }
}

/// None where nothing is being answered. The requests of a session count as one: they share its
/// connection.
fn sending(connection: &Connection) -> Option<Sending> {
    let is_held_up = match (&connection.phase, &connection.socket) {
        (_, Transport::Stream(_)) => return None,
        (Phase::Answering(answer), _) => answer.ready() > 0,
        (Phase::Http2(session), _) if !session.is_quiet() => session.pipe().is_blocked(),
        (Phase::Boundary { since, .. }, _) if connection.responses > 0 => {
            return Some(Sending::GivenAway(*since));
        }
        (
            Phase::Boundary { .. }
            | Phase::Parked { .. }
            | Phase::Lingering { .. }
            | Phase::Http2(_),
            _,
        ) => return None,
    };
    Some(match is_held_up {
        true => Sending::HeldUp,
        false => Sending::Going,
    })
}

/// Asks the kernel about a sample of each kind.
fn tally(seen: &Seen<'_>, now: Timestamp) -> Tally {
    let held_up: Vec<_> = sample(&seen.held_up).map(|one| of_held_up(one)).collect();
    let given_away = sample(&seen.given_away);
    let given_away: Vec<_> = given_away
        .map(|(connection, at)| of_given_away(connection, now.since(*at)))
        .collect();
    let (held_up, given_away) = (
        scaled(&held_up, seen.held_up.len()),
        scaled(&given_away, seen.given_away.len()),
    );
    Tally {
        answering: seen.going + held_up.answering + given_away.answering,
        held_up: held_up.held_up + given_away.held_up,
        by_visitors: held_up.by_visitors + given_away.by_visitors,
    }
}

fn sample<T>(all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len().div_ceil(ASKED_MAX).max(1))
}

/// What a sample says of `all`.
fn scaled(sample: &[Tally], all: usize) -> Tally {
    let sum = |figure: fn(&Tally) -> usize| {
        sample.iter().map(figure).sum::<usize>() * all / sample.len().max(1)
    };
    Tally {
        answering: sum(|one| one.answering),
        held_up: sum(|one| one.held_up),
        by_visitors: sum(|one| one.by_visitors),
    }
}

/// A connection whose answer waits here.
fn of_held_up(connection: &Connection) -> Tally {
    let by = reading(connection).map_or(HeldUpBy::Path, SendReading::held_up_by);
    Tally {
        answering: 1,
        held_up: 1,
        by_visitors: usize::from(by == HeldUpBy::Visitor),
    }
}

/// A connection whose answer is out of our hands, for so long.
fn of_given_away(connection: &Connection, age: Duration) -> Tally {
    match connection.socket.outstanding() {
        0 => Tally::default(),
        _ if age < ON_ITS_WAY_MAX => Tally {
            answering: 1,
            ..Tally::default()
        },
        _ => of_held_up(connection),
    }
}

fn reading(connection: &Connection) -> Option<SendReading> {
    let info = connection.socket.tcp_info().ok()?;
    Some(SendReading {
        busy: info.busy,
        window_limited: info.window_limited,
        segments_in_flight: info.segments_in_flight,
        backoff: info.backoff,
        bytes_sent: info.bytes_sent,
        bytes_repeated: info.bytes_repeated,
    })
}
