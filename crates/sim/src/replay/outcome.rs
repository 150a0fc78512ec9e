//! How a log fared.

use levee_vocab::Timestamp;

/// How a log fared with one set of neighbours. Times are since the log began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Requests of the log.
    pub requests: u64,
    /// Answered within 7 s, by whomever.
    pub answered: u64,
    /// Refused with 503.
    pub refused: u64,
    /// Failed, or later than 7 s.
    pub failed: u64,
    /// Redirects that the site sent.
    pub redirects: u64,
    /// The first second with a redirect.
    pub redirected_from: Option<Timestamp>,
    /// The last second with a redirect.
    pub redirected_until: Option<Timestamp>,
    /// Stretches that were worth a simulation.
    pub episodes: u64,
    /// Minutes in which the site was overloaded.
    pub minutes_overloaded: u64,
    /// The first of them.
    pub overloaded_from: Option<Timestamp>,
    /// The minute, or few of them, with the largest share of requests that came to nothing.
    pub worst: Option<Stretch>,
    /// Requests that each neighbour answered.
    pub carried: Vec<u64>,
}

/// The requests that ended in one minute, or in as many as it took to have some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// When it began.
    pub from: Timestamp,
    /// Requests that were answered within 7 s.
    pub answered: u64,
    /// Requests that were refused, failed or came too late.
    pub lost: u64,
}

/// A site is overloaded when more than this share of its requests is not answered within 7 s
/// (dotslash 6.2).
const OVERLOADED: f64 = 0.1;

impl Outcome {
    /// Nothing happened yet.
    pub fn new(neighbours: usize) -> Self {
        Self {
            carried: vec![0; neighbours],
            ..Self::default()
        }
    }

    /// Whether no minute was overloaded.
    pub const fn has_survived(&self) -> bool {
        self.minutes_overloaded == 0
    }

    /// Judges a stretch of so many minutes.
    pub(super) fn judge(&mut self, stretch: Stretch, minutes: u64) {
        if stretch.lost == 0 {
            return;
        }
        if stretch.lost_share() > OVERLOADED {
            self.minutes_overloaded += minutes;
            self.overloaded_from = self.overloaded_from.or(Some(stretch.from));
        }
        let is_worse = |worst: Stretch| stretch.lost_share() > worst.lost_share();
        if self.worst.is_none_or(is_worse) {
            self.worst = Some(stretch);
        }
    }
}

impl Stretch {
    /// The share of its requests that came to nothing.
    pub fn lost_share(&self) -> f64 {
        self.lost as f64 / (self.answered + self.lost).max(1) as f64
    }
}
