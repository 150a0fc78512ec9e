//! When a site that nobody helps asks for help (R4; H3).
//!
//! By load: above T_alert. By resource: as soon as one becomes hot, so that it is copied while the
//! link has room for that. Which of the two counts is the law's (`law`).

use crate::allocation::Need;
use crate::desk::Desk;
use crate::law::Law;
use crate::reason::Reason;

/// Initial allocation: whether a first rescue server is needed.
pub(crate) fn measure_need(desk: &mut Desk) {
    let thresholds = desk.parameters.thresholds;
    let is_loaded = desk.load.is_above(thresholds.alert);
    let rising_time = desk
        .parameters
        .intervals(f64::from(desk.parameters.low_intervals));
    let is_hot = match desk.parameters.hot_spots.law {
        // One that has been hot for long and did not bring the load up hurts nobody.
        Law::Combined => {
            desk.copies.is_rising(desk.now, rising_time) && desk.load.is_above(thresholds.low)
        }
        Law::Resources => desk.copies.is_hot(),
        Law::Load => false,
    };
    let by_load = match desk.parameters.hot_spots.law {
        Law::Combined | Law::Load => is_loaded,
        Law::Resources => false,
    };
    let is_new = desk.allocation.need() == Need::None && desk.parameters.takes_part();
    if is_hot && !by_load && is_new {
        tell_early(desk);
    }
    desk.allocation.set_need(match is_hot || by_load {
        true => Need::OneMore,
        false => Need::None,
    });
}

fn tell_early(desk: &mut Desk) {
    if let Some((url, gap)) = desk.copies.hottest() {
        desk.explain(Reason::CallingEarly { url, gap });
    }
}
