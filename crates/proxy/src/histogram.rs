//! How long requests took, in buckets that grow by an eighth at most: two digits are enough.

use std::time::Duration;

use crate::counters::Counter;

/// Buckets to a power of two.
const STEPS: usize = 8;
/// Powers of two, from microseconds to over an hour.
const POWERS: usize = 32;
const BUCKETS: usize = STEPS * POWERS;

/// Latencies noted by one core.
#[derive(Debug)]
pub(crate) struct Histogram(Box<[Counter]>);

/// A reading of latencies: how many fell into each bucket since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyCounts(Vec<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| Counter::default()).collect())
    }
}

impl Histogram {
    /// Notes one latency, as the owner.
    pub fn note(&self, latency: Duration) {
        self.0[bucket(latency)].add(1);
    }

    /// Adds this core's counts to a reading.
    pub fn add_to(&self, counts: &mut LatencyCounts) {
        for (sum, counter) in counts.0.iter_mut().zip(&self.0) {
            *sum += counter.read();
        }
    }
}

impl LatencyCounts {
    /// A reading of nothing.
    pub fn empty() -> Self {
        Self(vec![0; BUCKETS])
    }

    /// What came since the reading `before`.
    pub fn since(&self, before: &Self) -> Self {
        let differences = self.0.iter().zip(&before.0);
        Self(
            differences
                .map(|(now, then)| now.saturating_sub(*then))
                .collect(),
        )
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The latency that `share` (0 to 1) of the requests did not exceed, within an eighth. None
    /// without requests.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.0.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_edge(index));
            }
        }
        None
    }
}

fn bucket(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    if micros < STEPS as u64 {
        return micros as usize;
    }
    // The highest bit chooses the power, the three bits below it the step.
    let power = micros.ilog2() as usize;
    let step = (micros >> (power - 3)) as usize & (STEPS - 1);
    ((power - 2) * STEPS + step).min(BUCKETS - 1)
}

fn upper_edge(index: usize) -> Duration {
    if index < STEPS {
        return Duration::from_micros(index as u64 + 1);
    }
    let (power, step) = (index / STEPS + 2, index % STEPS);
    Duration::from_micros((STEPS + step + 1) as u64 * (1 << (power - 3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_an_eighth() {
        let histogram = Histogram::default();
        for millis in 1..=1000 {
            histogram.note(Duration::from_millis(millis));
        }
        let mut counts = LatencyCounts::empty();
        histogram.add_to(&mut counts);
        assert_eq!(counts.count(), 1000);
        let within = |share, millis: u64| {
            let found = counts.quantile(share).unwrap();
            let true_value = Duration::from_millis(millis);
            assert!(
                found >= true_value && found <= true_value.mul_f64(1.13),
                "{found:?}"
            );
        };
        within(0.5, 500);
        within(0.99, 990);
        histogram.note(Duration::from_secs(1_000_000));
        histogram.note(Duration::ZERO);
        let before = counts.clone();
        counts = LatencyCounts::empty();
        histogram.add_to(&mut counts);
        assert_eq!(counts.since(&before).count(), 2);
        assert_eq!(LatencyCounts::empty().quantile(0.5), None);
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for micros in 0..100_000 {
            let at = bucket(Duration::from_micros(micros));
            assert!(at == last || at == last + 1, "{micros} fell into {at}");
            assert!(upper_edge(at) > Duration::from_micros(micros));
            last = at;
        }
    }
}
