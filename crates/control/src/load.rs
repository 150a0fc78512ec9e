//! How loaded this server is (R2, R3; dotslash 4.3 and 4.4.1).
//!
//! Each resource has a load level of its own: what is used as a share of what there is. Any one of
//! them over a threshold triggers, at once and by its present level. Help is let go only when all
//! of them were below T_low for N_low intervals in a row: then the load is *consistently low*.
//!
//! A saturated link hides how much was asked for: d_out cannot rise above it. So requests that wait
//! or were refused for lack of capacity count as load above every threshold.

use levee_vocab::{ByteRate, Resource};

use crate::input::LoadSample;
use crate::parameters::Parameters;

/// The load of the last control interval, and for how long it has been low.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    levels: [f64; Resource::ALL.len()],
    own: f64,
    rescue: f64,
    redirects: f64,
    pressure: Pressure,
    calm: u32,
}

/// Whether visitors had to wait for capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Everybody was answered as they came.
    #[default]
    Relaxed,
    /// Requests wait, or were refused.
    Pressed,
}

impl Load {
    /// Takes in what was measured in one control interval.
    pub(crate) fn measure(&mut self, parameters: &Parameters, sample: &LoadSample) {
        let usable = parameters.usable_rate();
        let level = |bytes| ByteRate::of(bytes, sample.elapsed).share_of(usable);
        self.levels = Resource::ALL.map(|resource| match resource {
            Resource::Bandwidth => level(sample.bytes_out()),
            Resource::Cpu => sample.cpu,
            Resource::Connections => sample.connections,
        });
        self.own = level(sample.own.bytes);
        self.rescue = level(sample.rescue.values().map(|traffic| traffic.bytes).sum());
        self.redirects = level(sample.redirects.values().map(|traffic| traffic.bytes).sum());
        self.pressure = if sample.waiting > 0 || sample.refused > 0 {
            Pressure::Pressed
        } else {
            Pressure::Relaxed
        };
        self.calm = if self.is_above(parameters.thresholds.low) {
            0
        } else {
            self.calm.saturating_add(1)
        };
    }

    /// Level of each resource.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (Resource, f64)> + '_ {
        Resource::ALL.into_iter().zip(self.levels)
    }

    /// Whether any resource is over `threshold`.
    pub(crate) fn is_above(&self, threshold: f64) -> bool {
        self.pressure == Pressure::Pressed || self.levels.iter().any(|&level| level > threshold)
    }

    /// d_self / D_out.
    pub(crate) fn own(&self) -> f64 {
        self.own
    }

    /// d_resc / D_out.
    pub(crate) fn rescue(&self) -> f64 {
        self.rescue
    }

    /// R_redi * A_redi / D_out.
    pub(crate) fn redirects(&self) -> f64 {
        self.redirects
    }

    /// The highest level among the resources that redirects' bytes do not show: all but the link.
    pub(crate) fn beside_bandwidth(&self) -> f64 {
        self.levels()
            .filter(|(resource, _)| *resource != Resource::Bandwidth)
            .fold(0.0, |highest, (_, level)| level.max(highest))
    }

    /// Whether visitors had to wait.
    pub(crate) fn pressure(&self) -> Pressure {
        self.pressure
    }

    /// Consecutive intervals in which everything was below T_low.
    pub(crate) fn calm_intervals(&self) -> u32 {
        self.calm
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use levee_vocab::WebAddress;

    use super::*;
    use crate::input::Traffic;

    fn parameters() -> Parameters {
        let site = WebAddress {
            host: "www.example.org".parse().unwrap(),
            port: 80,
        };
        let domain = "aliases.example.net".parse().unwrap();
        let address = "192.0.2.1".parse().unwrap();
        Parameters::new(site, address, domain, ByteRate::from_kilobytes(1250))
    }

    fn sample(kilobytes: u64) -> LoadSample {
        LoadSample {
            elapsed: Duration::from_secs(1),
            own: Traffic {
                bytes: kilobytes * 1000,
                ..Traffic::default()
            },
            ..LoadSample::default()
        }
    }

    #[test]
    fn any_resource_triggers_and_all_must_be_low() {
        let mut load = Load::default();
        let parameters = parameters();
        load.measure(&parameters, &sample(600));
        assert!(load.is_above(0.5) && !load.is_above(0.75));
        let mut busy = sample(10);
        busy.cpu = 0.8;
        load.measure(&parameters, &busy);
        assert!(load.is_above(0.75));
        for _ in 0..3 {
            load.measure(&parameters, &sample(99));
        }
        assert_eq!(load.calm_intervals(), 3);
        load.measure(&parameters, &busy);
        assert_eq!(load.calm_intervals(), 0);
    }

    #[test]
    fn waiting_visitors_are_load_above_every_threshold() {
        let mut load = Load::default();
        let mut waiting = sample(10);
        waiting.waiting = 1;
        load.measure(&parameters(), &waiting);
        assert!(load.is_above(0.99));
        assert_eq!(load.calm_intervals(), 0);
    }
}
