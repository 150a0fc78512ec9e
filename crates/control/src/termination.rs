//! When a rescue ends (R9; dotslash 4.4.5).
//!
//! | who ends it | when |
//! |---|---|
//! | origin, partial release | the redirect level of all of several rescue servers is consistently low: the smallest D_redi goes |
//! | origin, complete release | every load level of its own is consistently low: all go |
//! | rescue server, idle shutdown | no rescue traffic for the origin's idle time |
//! | rescue server, complete shutdown | d_self > T_alert: it needs its capacity, and perhaps help, itself |
//! | rescue server, partial shutdown | d_resc > T_high, or d_out or another resource > T_coff: the largest goes |
//! | either, crash or cut link | the other side closes, falls silent or talks garbage |
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

/// Decides on release by how long everything has been low.
pub(crate) fn release(parameters: &Parameters, load: &Load, low: LowRedirects) -> Release {
    if load.calm_intervals() >= parameters.low_intervals {
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

/// Consecutive intervals of partial overload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverloadWatch(u32);

impl OverloadWatch {
    /// Counts one more interval and says what to shed.
    pub(crate) fn measure(&mut self, load: &Load, thresholds: &Thresholds) -> Overload {
        if load.own() > thresholds.alert {
            return Overload::Complete;
        }
        let over = load.rescue() > thresholds.high || load.is_above(thresholds.cutoff);
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
