//! How much to redirect (R5; dotslash 4.4.4): the two laws that steer it.
//!
//! The origin server redirects once d_out is above T_redi * D_out, where
//! T_redi = max(0, T_high - R_redi * A_redi / D_out). What it serves itself and what its redirects
//! cost add up to T_high * D_out, so the site settles there until redirects alone cost more.
//! R_redi is that of the last interval, smoothed: arrivals differ from one second to the next by
//! chance alone, and following each of them would make the site swing around T_high.
//!
//! The rescue server allots D_alloc to an origin, begins with D_init = D_alloc * T_coff, and
//! changes D_redi by what it really serves, because a redirected page brings its images along.

use levee_vocab::ByteRate;

use crate::load::Load;
use crate::parameters::Thresholds;

/// Part of a change in the redirect rate that is believed at once.
const SMOOTHING: f64 = 0.3;

/// A change by more than this share of D_out is a new load, not chance: it is followed at once.
const JUMP: f64 = 0.15;

/// How fast direct service comes back, by interval, after processor or connections were short.
const RECOVERY: f64 = 1.1;

/// The origin server's law: what share of D_out it serves itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RedirectLaw {
    /// R_redi * A_redi / D_out, smoothed.
    redirects: f64,
    /// Factor by which direct service is cut while processor or connections are above T_high.
    relief: f64,
}

impl RedirectLaw {
    /// The law before the first redirect.
    pub(crate) fn new() -> Self {
        Self {
            redirects: 0.0,
            relief: 1.0,
        }
    }

    /// Takes in the redirects of the last interval.
    pub(crate) fn measure(&mut self, load: &Load, thresholds: &Thresholds) {
        let change = load.redirects() - self.redirects;
        let believed = if change.abs() > JUMP { 1.0 } else { SMOOTHING };
        self.redirects += change * believed;
        let busiest = load.beside_bandwidth();
        let factor = if busiest > thresholds.high {
            thresholds.high / busiest
        } else {
            RECOVERY
        };
        self.relief = (self.relief * factor).clamp(0.01, 1.0);
    }

    /// T_redi, as a share of D_out.
    pub(crate) fn threshold(&self, thresholds: &Thresholds) -> f64 {
        (thresholds.high - self.redirects).max(0.0) * self.relief
    }
}

/// D_init = D_alloc * T_coff, in whole kilobytes because RATE tells whole kilobytes.
pub(crate) fn initial_rate(allotted: ByteRate, thresholds: &Thresholds) -> ByteRate {
    whole(allotted.times(thresholds.cutoff))
}

/// The rescue server's law: D_redi after an interval in which it served `used` (d_resc).
pub(crate) fn adjusted_rate(
    rate: ByteRate,
    allotted: ByteRate,
    used: ByteRate,
    thresholds: &Thresholds,
) -> ByteRate {
    let initial = initial_rate(allotted, thresholds);
    if used > allotted {
        whole(rate.times(allotted.share_of(used)))
    } else if used < initial && rate < initial {
        initial
    } else {
        rate
    }
}

/// Rounds down to what a RATE message can say, so that both sides count with the same number.
pub(crate) fn whole(rate: ByteRate) -> ByteRate {
    ByteRate::from_kilobytes(rate.as_kilobytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn kilobytes(count: u64) -> ByteRate {
        ByteRate::from_kilobytes(count)
    }

    #[test]
    fn the_rescue_server_cuts_by_the_excess_and_restores_at_once() {
        let thresholds = Thresholds::default();
        assert_eq!(initial_rate(kilobytes(100), &thresholds), kilobytes(90));
        let after = |rate, used| {
            adjusted_rate(
                kilobytes(rate),
                kilobytes(100),
                kilobytes(used),
                &thresholds,
            )
        };
        assert_eq!(after(90, 300), kilobytes(30));
        assert_eq!(after(30, 100), kilobytes(30));
        assert_eq!(after(30, 91), kilobytes(30));
        assert_eq!(after(30, 89), kilobytes(90));
        assert_eq!(after(90, 0), kilobytes(90));
    }
}
