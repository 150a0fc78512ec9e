//! From when on a resource is hot (H2), and what its size has to do with it.

use std::time::Duration;

use super::watching::Watching;

/// The three thresholds and what weighs them.
#[derive(Clone, Debug, PartialEq)]
pub struct HotSpotRules {
    /// T_C: asked for this often, a resource is worth copying. Default 1 s, as in the paper.
    pub copy: Duration,
    /// T_R: its visitors are redirected. Default 0.5 s.
    pub redirect: Duration,
    /// T_S: it is served here again. Default 10 s.
    pub service: Duration,
    /// k: the size, in bytes, against which sizes are weighed. Default 1000.
    pub size_reference: u64,
    /// The base of the logarithm: how much a size matters. Default 10.
    pub size_base: f64,
    /// Smaller answers are never hot: what is hardly larger than a redirect, with the packets that
    /// it costs, is better served. Default 1000 bytes.
    pub bytes_min: u64,
    /// What is watched at all. Default everything.
    pub watching: Watching,
}

impl Default for HotSpotRules {
    fn default() -> Self {
        Self {
            copy: Duration::from_secs(1),
            redirect: Duration::from_millis(500),
            service: Duration::from_secs(10),
            size_reference: 1000,
            size_base: 10.0,
            bytes_min: 1000,
            watching: Watching::default(),
        }
    }
}

/// How often a resource is asked for, against the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Band {
    /// More rarely than T_S says.
    Rare,
    /// Between T_S and T_C, where everything stays as it is.
    Between,
    /// T_C is reached.
    WorthCopying,
    /// T_R is reached.
    WorthRedirecting,
}

impl HotSpotRules {
    /// The weight of a size: log_base(1 + size / k), and nothing for what is too small.
    pub fn weight(&self, bytes: u64) -> f64 {
        if bytes < self.bytes_min {
            return 0.0;
        }
        let ratio = bytes as f64 / self.size_reference.max(1) as f64;
        (1.0 + ratio).ln() / self.size_base.ln()
    }

    /// The band of a resource of this size that is asked for every `gap` seconds.
    ///
    /// A threshold T is reached at `gap <= weight * T`: a large resource earlier than a small one,
    /// as the figures and the prose of the paper have it, not its one sentence.
    pub(super) fn band(&self, gap: f64, bytes: u64) -> Band {
        let weight = self.weight(bytes);
        if weight <= 0.0 || gap > weight * self.service.as_secs_f64() {
            Band::Rare
        } else if gap <= weight * self.redirect.as_secs_f64() {
            Band::WorthRedirecting
        } else if gap <= weight * self.copy.as_secs_f64() {
            Band::WorthCopying
        } else {
            Band::Between
        }
    }

    /// The gap from which on a pause is as good as for ever, in seconds.
    pub(super) fn ceiling(&self, bytes: u64) -> f64 {
        let weight = self.weight(bytes);
        let weight = if weight > 0.0 { weight } else { 1.0 };
        weight * self.service.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_is_that_of_the_papers_examples() {
        let rules = HotSpotRules {
            size_base: 2.0,
            size_reference: 10_000,
            ..HotSpotRules::default()
        };
        assert_eq!(rules.weight(10_000), 1.0);
        let rules = HotSpotRules::default();
        assert!((rules.weight(9000) - 1.0).abs() < 1e-12);
        assert!((rules.weight(99_000) - 2.0).abs() < 1e-12);
        assert_eq!(rules.weight(999), 0.0);
    }

    #[test]
    fn large_resources_reach_a_threshold_earlier_and_tiny_ones_never() {
        let rules = HotSpotRules::default();
        assert_eq!(rules.band(1.5, 9000), Band::Between);
        assert_eq!(rules.band(1.5, 99_000), Band::WorthCopying);
        assert_eq!(rules.band(1.0, 99_000), Band::WorthRedirecting);
        assert_eq!(rules.band(0.001, 500), Band::Rare);
        assert_eq!(rules.band(10.1, 9000), Band::Rare);
    }
}
