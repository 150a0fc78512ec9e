//! How loaded this server is (R2, R3; dotslash 4.3 and 4.4.1).
//!
//! Each resource has a load level of its own: what is used as a share of what there is. Any one of
//! them over a threshold triggers, at once and by its present level. Help is let go only when all
//! of them were below T_low for N_low intervals in a row: then the load is *consistently low*.
//!
//! What crawlers cause is left out, because they yield to readers and are no reason to call for
//! help, nor to keep it: a level here is that of what readers want. What our own drill causes is
//! left out as well: a rehearsal is no crowd. So is what it costs to turn visitors of origins away
//! who are beyond what those get: it would be the same if their rescue ended. People are shown all
//! of it.
//!
//! A saturated link hides how much was asked for: d_out cannot rise above it. So requests that wait
//! or were refused for lack of capacity count as load above every threshold.

use levee_vocab::{ByteRate, Resource};

use crate::input::LoadSample;
use crate::parameters::Parameters;

/// The load of the last control interval, and for how long it has been low.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// All of it, for people.
    shown: [f64; Resource::ALL.len()],
    /// Without crawlers.
    levels: [f64; Resource::ALL.len()],
    own: f64,
    by_https: f64,
    rescue: f64,
    redirects: f64,
    pressure: Pressure,
    calm: u32,
    crawlers: Crawlers,
}

/// What is left out of the load.
#[derive(Clone, Copy, Debug, Default)]
struct Crawlers {
    /// Bytes for our own names, and for origins that we rescue.
    own: u64,
    rescue: u64,
    /// Of what crawlers were given before they were recognised, the part that had not left yet.
    own_ahead: u64,
    rescue_ahead: u64,
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
        let rescue_bytes = sample.rescue.values().map(|traffic| traffic.bytes).sum();
        self.crawlers = self.crawlers.after(sample, rescue_bytes);
        let crawlers = &self.crawlers;
        // Never more than there was: crawlers may have been given what the drill caused.
        let aside = sample.drill_bytes + sample.withheld_bytes;
        let aside = aside.min(sample.own.bytes - crawlers.own);
        let own_bytes = sample.own.bytes - crawlers.own - aside;
        let left_out = crawlers.own + crawlers.rescue + aside;
        self.shown = Resource::ALL.map(|resource| match resource {
            Resource::Bandwidth => level(sample.bytes_out()),
            Resource::Cpu => sample.cpu,
            Resource::Connections => sample.connections,
        });
        self.levels = Resource::ALL.map(|resource| match resource {
            Resource::Bandwidth => level(sample.bytes_out() - left_out),
            // A request of theirs costs about as much as any other.
            Resource::Cpu => sample.cpu * (1.0 - sample.crawlers.part),
            Resource::Connections => (sample.connections - sample.crawlers.connections).max(0.0),
        });
        self.own = level(own_bytes);
        self.by_https = level(sample.https_bytes);
        self.rescue = level(rescue_bytes - crawlers.rescue);
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

    /// Level of each resource with all that is done, for people.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (Resource, f64)> + '_ {
        Resource::ALL.into_iter().zip(self.shown)
    }

    /// Level of each resource.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (Resource, f64)> + '_ {
        Resource::ALL.into_iter().zip(self.levels)
    }

    /// Whether any resource is over `threshold`.
    pub(crate) fn is_above(&self, threshold: f64) -> bool {
        self.pressure == Pressure::Pressed || self.levels.iter().any(|&level| level > threshold)
    }

    /// d_out / D_out.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.levels()
            .find_map(|(resource, level)| (resource == Resource::Bandwidth).then_some(level))
            .unwrap_or_default()
    }

    /// d_self / D_out.
    pub(crate) fn own(&self) -> f64 {
        self.own
    }

    /// Part of d_self / D_out that readers by HTTPS get.
    pub(crate) fn by_https(&self) -> f64 {
        self.by_https
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

impl Crawlers {
    /// What to leave out of the interval of `sample`: never more than there was.
    fn after(self, sample: &LoadSample, rescue_bytes: u64) -> Self {
        let own = sample.crawlers.own_bytes + self.own_ahead;
        let rescue = sample.crawlers.rescue_bytes + self.rescue_ahead;
        let is_new = |told: u64, bytes: u64, ahead: u64| told.saturating_sub(bytes.max(ahead));
        Self {
            own: own.min(sample.own.bytes),
            rescue: rescue.min(rescue_bytes),
            // What was carried over once is not carried over again.
            own_ahead: is_new(own, sample.own.bytes, self.own_ahead),
            rescue_ahead: is_new(rescue, rescue_bytes, self.rescue_ahead),
        }
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
