//! When a rescue ends (R9; dotslash 4.4.5).
//!
//! - The origin, *partial release*: the redirect levels of all of several rescue servers are
//!   consistently low. The one with the smallest D_redi goes.
//! - The origin, *complete release*: all its own load levels are consistently low, and what its
//!   rescue servers carry would find room. All go.
//! - The rescue server, *idle shutdown*: no rescue traffic for the origin's idle time.
//! - The rescue server, *complete overload shutdown*: d_self > T_alert. It needs its capacity, and
//!   perhaps help, itself.
//! - The rescue server, *partial overload shutdown*: d_resc > T_high, or d_out or another resource
//!   above T_coff. The rescue that uses most goes. Where all origins are dead, what they use counts
//!   only while our own visitors use something too: nobody but the cores could make it less, who
//!   keep it to T_high on average, and a rescue that ends leaves its visitors with nothing.
//! - Either, crash or cut link: the other side closes, falls silent or breaks the protocol.
//!
//! Partial and complete release count in parallel, so that a crowd which leaves at once frees all.

use std::time::Duration;

use levee_vocab::ByteRate;

use crate::load::Load;
use crate::parameters::{Parameters, Thresholds};

/// Intervals of partial overload after which a rescue is shut down. The first shows the excess and
/// tells the origin a lower RATE; the second still has visitors who were under way; the third shows
/// whether the RATE helped.
pub(crate) const OVERLOAD_PATIENCE: u32 = 3;

/// The longest idle time that an origin may ask for: it costs a reservation.
const IDLE_MAX: Duration = Duration::from_hours(1);

/// What an origin server lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// Nothing.
    None,
    /// The smallest rescue server.
    Partial,
    /// All of them.
    Complete,
}

/// Decides on release by how many intervals everything has been low, `calm` those of the origin.
pub(crate) fn release(parameters: &Parameters, calm: u32, low: LowRedirects) -> Release {
    if calm >= parameters.low_intervals {
        Release::Complete
    } else if low.0 >= parameters.low_intervals {
        Release::Partial
    } else {
        Release::None
    }
}

/// Consecutive intervals in which every one of several rescue servers was hardly used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LowRedirects(u32);

impl LowRedirects {
    /// Counts one more interval with these redirect levels.
    pub(crate) fn measure(&mut self, levels: &[f64], thresholds: &Thresholds) {
        let low = levels.len() > 1 && levels.iter().all(|&level| level < thresholds.low);
        self.0 = if low { self.0.saturating_add(1) } else { 0 };
    }
}

/// What a rescue server must shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overload {
    /// Nothing.
    None,
    /// The rescue that uses most.
    Partial,
    /// All rescues.
    Complete,
}

/// For whom a rescue server works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rescued {
    /// Origins that live, among others.
    Living,
    /// Dead ones alone.
    Dead,
}

/// Consecutive intervals of partial overload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverloadWatch(u32);

impl OverloadWatch {
    /// Counts one more interval and says what to shed.
    pub(crate) fn measure(
        &mut self,
        load: &Load,
        thresholds: &Thresholds,
        rescued: Rescued,
    ) -> Overload {
        if load.own() > thresholds.alert {
            return Overload::Complete;
        }
        let is_full = load.is_above(thresholds.cutoff);
        let over = match rescued {
            Rescued::Living => load.rescue() > thresholds.high || is_full,
            Rescued::Dead if load.own() > thresholds.low => is_full,
            Rescued::Dead => load.beside_bandwidth() > thresholds.cutoff,
        };
        self.0 = if over { self.0 + 1 } else { 0 };
        if self.0 < OVERLOAD_PATIENCE {
            return Overload::None;
        }
        self.0 = 0;
        Overload::Partial
    }
}

/// The idle time that is granted to an origin that asked for `asked`.
pub(crate) fn idle_time(asked: Duration) -> Duration {
    asked.min(IDLE_MAX)
}

/// The redirect level of a rescue server; one that takes nothing is full.
pub(crate) fn redirect_level(used: ByteRate, rate: ByteRate) -> f64 {
    if rate == ByteRate::ZERO {
        f64::INFINITY
    } else {
        used.share_of(rate)
    }
}
