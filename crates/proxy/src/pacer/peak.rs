//! The most that a link carried within any one second.

use std::collections::VecDeque;
use std::time::Duration;

use levee_vocab::Timestamp;

use super::Link;

/// Readings of the last second. Owned by one core, which looks at the link often while it is busy.
#[derive(Debug, Default)]
pub(crate) struct PeakMeter {
    readings: VecDeque<(Timestamp, u64)>,
}

const WINDOW: Duration = Duration::from_secs(1);
/// How often a busy link is looked at.
const STEP: Duration = Duration::from_millis(20);

impl PeakMeter {
    /// Takes a reading, if one is due, and notes a new peak in `link`.
    pub fn observe(&mut self, link: &Link, now: Timestamp) {
        if let Some(&(last, _)) = self.readings.back()
            && now.since(last) < STEP
        {
            return;
        }
        let carried = link.carried(now);
        self.readings.push_back((now, carried));
        link.note_peak(carried.saturating_sub(self.carried_a_second_ago(now)));
    }

    /// When to look again: nothing changes while the link is idle.
    pub fn next(&self, link: &Link, now: Timestamp) -> Option<Timestamp> {
        let last = self.readings.back().map(|&(_, carried)| carried);
        let is_settled = link.is_idle(now) && last == Some(link.carried(now));
        (!is_settled).then(|| now + STEP)
    }

    /// The reading a second before `now`, between two readings by a straight line: a link carries
    /// at an even rate while it is busy.
    fn carried_a_second_ago(&mut self, now: Timestamp) -> u64 {
        while self.readings.len() > 2 && now.since(self.readings[1].0) >= WINDOW {
            self.readings.pop_front();
        }
        let (first_at, first) = self.readings[0];
        let beyond = now.since(first_at).saturating_sub(WINDOW);
        match self.readings.get(1) {
            Some(&(second_at, second)) if !beyond.is_zero() => {
                let part = beyond.as_secs_f64() / second_at.since(first_at).as_secs_f64();
                first + ((second - first) as f64 * part.min(1.0)) as u64
            }
            _ => first,
        }
    }
}
