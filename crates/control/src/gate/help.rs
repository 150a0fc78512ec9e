//! What the cores give to origins that we rescue, where the operator limits it (`help`).
//!
//! The Brain tells origins by RATE what they may send, but visitors ask for more than was counted,
//! and an origin may not listen. So each core has its part of each limit and keeps to it: what is
//! beyond goes back to its origin. Nothing is asked here while nothing is limited.

use levee_vocab::Timestamp;

use crate::crawlers::Ration;
use crate::help::HelpPlan;

/// See the file header.
#[derive(Clone, Debug, Default)]
pub(super) struct HelpGate {
    all: Option<Ration>,
    /// By the slots of the origins; few.
    origins: Vec<(u8, Ration)>,
}

impl HelpGate {
    /// From now on `plan` is kept to, with `share` of each limit. Who was there goes on with what
    /// he had left.
    pub(super) fn adopt(&mut self, now: Timestamp, plan: Option<&HelpPlan>, share: f64) {
        let Some(plan) = plan else {
            *self = Self::default();
            return;
        };
        let bytes = |rate: levee_vocab::ByteRate| rate.as_bytes() as f64 * share;
        self.all = plan.all.map(|rate| {
            let mut ration = self.all.take().unwrap_or_default();
            ration.set_rate(now, bytes(rate));
            ration
        });
        let mut before = std::mem::take(&mut self.origins);
        for &(slot, rate) in &plan.origins {
            let place = before.iter().position(|(other, _)| *other == slot);
            let known = place.map(|place| before.swap_remove(place).1);
            let mut ration = known.unwrap_or_default();
            ration.set_rate(now, bytes(rate));
            self.origins.push((slot, ration));
        }
    }

    /// Whether `bytes` may go to visitors of the origin of `slot`; they are charged then. What
    /// either limit forbids is charged to neither.
    pub(super) fn take(&mut self, now: Timestamp, slot: u8, bytes: f64) -> bool {
        let mut origins = self.origins.iter_mut();
        let own = origins.find(|(other, _)| *other == slot);
        let own = own.map(|(_, ration)| ration);
        let limits = || self.all.iter().chain(own.as_deref());
        if limits().any(|ration| !ration.has_any(now)) {
            return false;
        }
        for ration in self.all.iter_mut().chain(own) {
            ration.take(now, bytes);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use levee_vocab::ByteRate;

    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::from_milliseconds(milliseconds)
    }

    fn plan(all: Option<u64>, origins: &[(u8, u64)]) -> HelpPlan {
        let rate = ByteRate::from_bytes;
        HelpPlan {
            all: all.map(rate),
            origins: origins
                .iter()
                .map(|&(slot, bytes)| (slot, rate(bytes)))
                .collect(),
        }
    }

    /// Bytes that each of two slots got in ten seconds, each asking for far more.
    fn given(gate: &mut HelpGate) -> [u64; 2] {
        let mut given = [0, 0];
        for ms in 0..10_000 {
            for slot in [0, 1] {
                if gate.take(at(ms), slot, 100.0) {
                    given[usize::from(slot)] += 100;
                }
            }
        }
        given
    }

    #[test]
    fn each_gets_its_own_limit_whatever_the_other_asks_for() {
        let mut gate = HelpGate::default();
        gate.adopt(at(0), Some(&plan(None, &[(0, 1000), (1, 5000)])), 1.0);
        let [slow, fast] = given(&mut gate);
        assert!((10_000..=12_100).contains(&slow), "{slow}");
        assert!((50_000..=60_100).contains(&fast), "{fast}");
    }

    #[test]
    fn all_together_stay_below_the_limit_of_all() {
        let mut gate = HelpGate::default();
        gate.adopt(at(0), Some(&plan(Some(3000), &[])), 0.5);
        let sum: u64 = given(&mut gate).iter().sum();
        assert!((15_000..=18_100).contains(&sum), "{sum}");
    }

    #[test]
    fn a_limit_of_nothing_lets_nobody_through_and_no_limit_everybody() {
        let mut gate = HelpGate::default();
        assert!(gate.take(at(0), 0, 1e9));
        gate.adopt(at(0), Some(&plan(Some(0), &[(0, 1000)])), 1.0);
        assert!(!gate.take(at(100), 0, 1.0));
        gate.adopt(at(200), None, 1.0);
        assert!(gate.take(at(200), 0, 1e9));
    }

    #[test]
    fn a_new_plan_gives_nobody_his_savings_again() {
        let mut gate = HelpGate::default();
        let mut sum = 0.0;
        for ms in 0..10_000 {
            if ms % 100 == 0 {
                gate.adopt(at(ms), Some(&plan(None, &[(0, 1000 + ms / 100)])), 1.0);
            }
            if gate.take(at(ms), 0, 100.0) {
                sum += 100.0;
            }
        }
        assert!(sum < 13_000.0, "{sum}");
    }
}
