//! The most that a link carried within any one second.

use std::collections::VecDeque;
use std::time::Duration;

use levee_vocab::Timestamp;

use super::Link;

/// Readings of the last second. Owned by one core, which looks at the link often while it is busy.
#[derive(Debug, Default)]
pub(crate) struct PeakMeter {
    readings: VecDeque<(Timestamp, f64)>,
}

const WINDOW: Duration = Duration::from_secs(1);
/// How often a busy link is looked at.
const STEP: Duration = Duration::from_millis(20);

impl PeakMeter {
    /// Takes a reading, if one is due, and notes a new peak in `link`.
    pub fn observe(&mut self, link: &Link, now: Timestamp) {
        let (at, carried) = link.settled(now);
        if let Some(&(last, _)) = self.readings.back()
            && at.since(last) < STEP
        {
            return;
        }
        self.readings.push_back((at, carried));
        while self.readings.len() > 2 && at.since(self.readings[1].0) >= WINDOW {
            self.readings.pop_front();
        }
        // Between two readings at least a second apart, so nothing has to be guessed in between.
        let (since, before) = self.readings[0];
        let time = at.since(since).max(WINDOW);
        link.note_peak(((carried - before) / time.as_secs_f64()) as u64);
    }

    /// When to look again: nothing changes while the link is idle.
    pub fn next(&self, link: &Link, now: Timestamp) -> Option<Timestamp> {
        let last = self.readings.back().map(|&(_, carried)| carried);
        let is_settled = link.is_idle(now) && last == Some(link.carried_exactly(now));
        (!is_settled).then(|| now + STEP)
    }
}
