//! How much of its early budget what is held elsewhere leaves to what nobody holds.
//!
//! A redirect of something that nobody holds costs more than to serve it: the rescue server fetches
//! it from here. What it fetches uses up the direct budget, so that more of the kind is redirected,
//! and fetched; a site could stay in that state for as long as a crowd lasts. So whatever nobody
//! holds and is redirected although something held was served in the same interval takes that room
//! in the next one. A little of it comes back with each interval, so that the room is held pages'
//! again when the crowd is another.

/// Part of the room made that is still made an interval later.
const KEPT: f64 = 0.95;

/// See the file header.
#[derive(Clone, Debug, Default)]
pub(super) struct MakingWay {
    /// Bytes in this interval that were served although others hold them.
    held_served: f64,
    /// Bytes in this interval that were redirected although nobody holds them.
    unheld_redirected: f64,
    /// Room made, bytes a second.
    rate: f64,
}

impl MakingWay {
    /// `bytes` that others hold were served.
    pub(super) fn note_held_served(&mut self, bytes: f64) {
        self.held_served += bytes;
    }

    /// `bytes` that nobody holds were redirected.
    pub(super) fn note_unheld_redirected(&mut self, bytes: f64) {
        self.unheld_redirected += bytes;
    }

    /// An interval of so many seconds is over.
    pub(super) fn end_interval(&mut self, seconds: f64) {
        let crowded_out = self.unheld_redirected.min(self.held_served) / seconds;
        self.rate = self.rate * KEPT + crowded_out;
        (self.held_served, self.unheld_redirected) = (0.0, 0.0);
    }

    /// What is left of `early` bytes a second. No more is kept in mind than there was to give.
    pub(super) fn left_of(&mut self, early: f64) -> f64 {
        self.rate = self.rate.min(early);
        early - self.rate
    }
}
