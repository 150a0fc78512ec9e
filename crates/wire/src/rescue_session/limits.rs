//! How long a rescue link waits and how much it takes. Every wait has an end, every queue a length.

use std::time::Duration;

use crate::line::LINE_MAX;

/// Limits of one rescue link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Longest line in bytes, without its end.
    pub line_max: usize,
    /// Longest time from the first byte of a line to its end.
    pub line_wait: Duration,
    /// Longest time from the opening of a link to its SOS.
    pub sos_wait: Duration,
    /// Longest time that we think about an SOS; then it is rejected.
    pub decision_wait: Duration,
    /// Longest time to an answer to a RATE.
    pub answer_wait: Duration,
    /// Longest time to the answer to a SHUTDOWN.
    pub closing_wait: Duration,
    /// Most RATEs without an answer; a further one waits, and only the newest.
    pub unanswered_max: usize,
    /// Most requests at once.
    pub messages_burst: u32,
    /// Most requests a second on average.
    pub messages_per_second: u32,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            line_max: LINE_MAX,
            // A person types a line in one piece; a program that needs longer is stuck.
            line_wait: Duration::from_secs(5),
            sos_wait: Duration::from_secs(5),
            // The origin waits 2 s for its answer; later than that it has asked somebody else.
            decision_wait: Duration::from_millis(1500),
            // Well beyond the three intervals after which the Brain takes a peer for dead: this
            // only ends links whose Brain does not watch them.
            answer_wait: Duration::from_secs(10),
            closing_wait: Duration::from_secs(2),
            // Round trips of up to four intervals do not hold back a rate.
            unanswered_max: 4,
            // The shortest interval is 100 ms: ten RATEs a second, and room.
            messages_burst: 64,
            messages_per_second: 32,
        }
    }
}
