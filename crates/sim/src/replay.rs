//! A site's own log, played again: would it have survived, with these neighbours?
//!
//! The log is cut into episodes. While little is asked nothing happens that a simulation could
//! show; requests are only counted. When a second asks for a good part of the link a world begins:
//! the site, its neighbours, a registry, the server's own `Brain` and `Gate` in each. It ends when
//! the load has been low for long enough that every decision has been taken back.
//!
//! ```text
//!            a second over T_alert / 2                 low for long, and normal again
//!   Calm ───────────────────────────────▶ Episode ───────────────────────────────────▶ Calm
//! ```
//!
//! So memory depends on the longest episode and not on the log, and a quiet month costs no more
//! than its lines.
//!
//! What a log cannot tell: who gave up before he was written down. What is counted against the
//! site: each request comes on a connection of its own and to the site first, although a browser
//! would ask the rescue server at once for what a redirected page embeds.

mod episode;
mod outcome;

use std::time::Duration;

use levee_control::{GateLimits, Parameters, Redirectability};
use levee_vocab::{ByteRate, Timestamp};

pub use outcome::{Outcome, Stretch};

use episode::{Course, Episode};

/// The site and its neighbours.
#[derive(Clone, Debug)]
pub struct ReplaySettings {
    /// The site; its names and addresses are replaced by those of a simulated world.
    pub origin: Parameters,
    /// When its requests wait and when they are refused.
    pub limits: GateLimits,
    /// Links of its neighbours, who have nothing else to do.
    pub neighbours: Vec<ByteRate>,
    /// The seed of the worlds.
    pub seed: u64,
}

/// One request of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Time since the log began; never earlier than that of the visit before.
    pub at: Timestamp,
    /// Hash of what was asked for.
    pub resource: u64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Whether a rescue server may answer it.
    pub redirectability: Redirectability,
}

/// Plays visits with one set of neighbours. See the file header.
#[derive(Debug)]
pub struct Replay {
    settings: ReplaySettings,
    outcome: Outcome,
    state: State,
    /// The second under way, counted from the beginning of the log.
    second: u64,
    /// Accounted bytes that were asked for in it.
    offered: u64,
}

#[derive(Debug)]
enum State {
    /// The visits of the second under way, in case that it becomes an episode.
    Calm(Vec<Visit>),
    Episode(Box<Episode>),
}

impl Replay {
    /// Nothing was played yet.
    pub fn new(settings: ReplaySettings) -> Self {
        Self {
            outcome: Outcome::new(settings.neighbours.len()),
            settings,
            state: State::Calm(Vec::new()),
            second: 0,
            offered: 0,
        }
    }

    /// Plays one visit.
    pub fn visit(&mut self, visit: &Visit) {
        self.pass_to(visit.at);
        self.outcome.requests += 1;
        self.offered += visit.bytes + self.settings.origin.connection_overhead;
        match &mut self.state {
            State::Episode(episode) => episode.visit(visit),
            State::Calm(visits) => {
                visits.push(*visit);
                if self.offered >= self.trigger() {
                    self.begin_episode();
                }
            }
        }
    }

    /// The log is over: whatever is under way comes to its end.
    pub fn finish(mut self) -> Outcome {
        let end = Timestamp::from_seconds(self.second) + END_AFTER_MAX + Duration::from_secs(60);
        self.pass_to(end);
        self.outcome
    }

    /// Ends every second before that of `at`.
    fn pass_to(&mut self, at: Timestamp) {
        let second = at.as_nanoseconds() / 1_000_000_000;
        while self.second < second {
            match &mut self.state {
                State::Calm(visits) => {
                    self.outcome.answered += visits.len() as u64;
                    visits.clear();
                    self.second = second;
                }
                State::Episode(episode) => {
                    self.second += 1;
                    let course = episode.end_second(&mut self.outcome, self.offered);
                    if course == Course::Over {
                        self.state = State::Calm(Vec::new());
                    }
                }
            }
            self.offered = 0;
        }
    }

    fn begin_episode(&mut self) {
        let mut episode = Box::new(Episode::begin(&self.settings, self.second));
        self.outcome.episodes += 1;
        if let State::Calm(visits) = &self.state {
            visits.iter().for_each(|visit| episode.visit(visit));
        }
        self.state = State::Episode(episode);
    }

    fn trigger(&self) -> u64 {
        let origin = &self.settings.origin;
        let usable = origin.usable_rate().as_bytes() as f64;
        (usable * origin.thresholds.alert * TRIGGER_SHARE) as u64
    }
}

/// A second that asks for this share of T_alert begins an episode: below it the site does nothing.
const TRIGGER_SHARE: f64 = 0.5;

/// When an episode ends that will not come to an end by itself: longer than a rescue may be idle.
const END_AFTER_MAX: Duration = Duration::from_secs(600);
