//! One resource that is watched: its moving average, its phase, and the table of phases.
//!
//! ```text
//!            T_C            T_R
//!   Cold ─────────▶ Copied ─────▶ Redirected
//!                   ▲  │ T_S           │ T_S
//!               T_C │  ▼               │
//!                   Back ◀─────────────┘
//! ```
//!
//! `Cold` and `Back` that reach T_R at once are copied first and then redirected.

use std::time::Duration;

use levee_vocab::Timestamp;

use super::HotSpotOutput;
use super::arrivals::{Arrivals, UrlText};
use super::rules::{Band, HotSpotRules};

/// What has been done about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourcePhase {
    /// Nothing.
    Cold,
    /// Copies of it were asked for.
    Copied,
    /// Its visitors are to be redirected.
    Redirected,
    /// It was hot, and is served here again; copies may still be there.
    Back,
}

/// What is to be done about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotSpotStep {
    /// Serve it here again; copies may go.
    Normal,
    /// Copy it to rescue servers.
    Copy,
    /// Redirect its visitors to the copies.
    Redirect,
}

/// See the file header.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub url: String,
    pub text: UrlText,
    /// The largest answer that was seen.
    pub bytes: u64,
    /// The last request; none before the first.
    pub last: Option<Timestamp>,
    pub phase: ResourcePhase,
    /// Requests in the last interval.
    pub recent: u64,
    /// Requests in the one under way.
    pub counted: u64,
    /// Requests, of which half is forgotten every few seconds: who keeps a place.
    pub claim: f64,
    /// The moving average of the gaps, in seconds.
    average: f64,
    coverage: Coverage,
}

/// Whether the rules watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    Watched,
    Ignored,
}

impl Coverage {
    fn of(url: &str, text: UrlText, rules: &HotSpotRules) -> Self {
        match text {
            UrlText::Whole if rules.watching.covers(url) => Self::Watched,
            UrlText::Whole | UrlText::Cut => Self::Ignored,
        }
    }
}

/// a: how much the newest gap counts, as for the round trips of TCP (RFC 6298).
const SMOOTHING: f64 = 0.125;

impl Watched {
    /// A resource of which nothing is known: it counts as rare, and some eighteen quick requests
    /// in a row make it worth copying, whatever its size.
    pub fn new(arrivals: &Arrivals, rules: &HotSpotRules) -> Self {
        Self {
            url: arrivals.url.clone(),
            text: arrivals.text,
            bytes: arrivals.bytes,
            last: None,
            phase: ResourcePhase::Cold,
            recent: 0,
            counted: 0,
            claim: 0.0,
            average: rules.ceiling(arrivals.bytes),
            coverage: Coverage::of(&arrivals.url, arrivals.text, rules),
        }
    }

    /// Takes in the requests of an interval.
    ///
    /// The first gap is known, and of the others their number and sum: they count as equal. That is
    /// the moving average itself for up to two requests an interval, and else differs from it by
    /// less than the gaps differ from each other.
    pub fn take_in(&mut self, arrivals: &Arrivals, rules: &HotSpotRules) {
        if arrivals.count == 0 {
            return;
        }
        self.bytes = self.bytes.max(arrivals.bytes);
        let ceiling = rules.ceiling(self.bytes);
        let gap = self.pause(arrivals.first);
        // An average over a pause that long would say nothing about now.
        self.average = if gap >= ceiling {
            ceiling
        } else {
            self.average + SMOOTHING * (gap - self.average)
        };
        let rest = arrivals.count - 1;
        if rest > 0 {
            let span = arrivals.last.since(arrivals.first).as_secs_f64();
            let kept = (1.0 - SMOOTHING).powi(i32::try_from(rest).unwrap_or(i32::MAX));
            self.average = kept * self.average + (1.0 - kept) * (span / rest as f64);
        }
        self.average = self.average.min(ceiling);
        self.last = self.last.max(Some(arrivals.last));
        self.counted += arrivals.count;
        self.claim += arrivals.count as f64;
    }

    /// The gap that counts now, in seconds: the average, or the pause since the last request where
    /// that is longer.
    pub fn gap(&self, now: Timestamp) -> f64 {
        self.average.max(self.pause(now))
    }

    /// Seconds since the last request.
    fn pause(&self, now: Timestamp) -> f64 {
        let since = |last| now.since(last).as_secs_f64();
        self.last.map_or(f64::INFINITY, since)
    }

    /// The gap as the average alone has it.
    pub fn average(&self) -> Duration {
        Duration::from_secs_f64(self.average)
    }

    /// The rules changed.
    pub fn weigh_anew(&mut self, rules: &HotSpotRules) {
        self.coverage = Coverage::of(&self.url, self.text, rules);
    }

    /// `step`, to be told.
    pub fn told(&self, step: HotSpotStep) -> HotSpotOutput {
        HotSpotOutput {
            url: self.url.clone(),
            step,
            gap: self.average(),
        }
    }

    /// Moves to the phase that belongs to how often it is asked for.
    pub fn step(&mut self, now: Timestamp, rules: &HotSpotRules) -> &'static [HotSpotStep] {
        let band = match self.coverage {
            Coverage::Watched => rules.band(self.gap(now), self.bytes),
            Coverage::Ignored => Band::Rare,
        };
        let (phase, steps) = transition(self.phase, band);
        self.phase = phase;
        steps
    }

    /// Whether nothing is lost by forgetting it: it would begin anew in any case.
    pub fn is_forgettable(&self, now: Timestamp, rules: &HotSpotRules) -> bool {
        let is_rare = self.pause(now) >= rules.ceiling(self.bytes);
        is_rare && self.phase == ResourcePhase::Cold
    }
}

/// The whole table.
fn transition(phase: ResourcePhase, band: Band) -> (ResourcePhase, &'static [HotSpotStep]) {
    use HotSpotStep::{Copy, Normal, Redirect};
    use ResourcePhase::{Back, Cold, Copied, Redirected};
    match (phase, band) {
        (Cold | Back, Band::Rare | Band::Between) => (phase, &[]),
        (Cold | Back, Band::WorthCopying) => (Copied, &[Copy]),
        (Cold | Back, Band::WorthRedirecting) => (Redirected, &[Copy, Redirect]),
        (Copied | Redirected, Band::Rare) => (Back, &[Normal]),
        (Copied | Redirected, Band::Between | Band::WorthCopying) => (phase, &[]),
        (Copied, Band::WorthRedirecting) => (Redirected, &[Redirect]),
        (Redirected, Band::WorthRedirecting) => (Redirected, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_meets_every_band() {
        let mut lines = Vec::new();
        for phase in [
            ResourcePhase::Cold,
            ResourcePhase::Copied,
            ResourcePhase::Redirected,
            ResourcePhase::Back,
        ] {
            for band in [
                Band::Rare,
                Band::Between,
                Band::WorthCopying,
                Band::WorthRedirecting,
            ] {
                let (next, steps) = transition(phase, band);
                lines.push(format!("{phase:?} {band:?}: {next:?} {steps:?}"));
            }
        }
        assert_eq!(
            lines,
            [
                "Cold Rare: Cold []",
                "Cold Between: Cold []",
                "Cold WorthCopying: Copied [Copy]",
                "Cold WorthRedirecting: Redirected [Copy, Redirect]",
                "Copied Rare: Back [Normal]",
                "Copied Between: Copied []",
                "Copied WorthCopying: Copied []",
                "Copied WorthRedirecting: Redirected [Redirect]",
                "Redirected Rare: Back [Normal]",
                "Redirected Between: Redirected []",
                "Redirected WorthCopying: Redirected []",
                "Redirected WorthRedirecting: Redirected []",
                "Back Rare: Back []",
                "Back Between: Back []",
                "Back WorthCopying: Copied [Copy]",
                "Back WorthRedirecting: Redirected [Copy, Redirect]",
            ]
        );
    }
}
