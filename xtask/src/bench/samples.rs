//! What was measured, and the figures that follow from it.

use super::load::Seen;
use super::processor::Spent;
use super::statistics::{median, paired_ratio, spread};

/// One server under one workload in one round.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Id of the workload.
    pub workload: &'static str,
    /// Name of the server.
    pub server: &'static str,
    /// Number of the round.
    pub round: usize,
    /// Processor time of the server meanwhile.
    pub spent: Spent,
    /// What the load generator saw.
    pub seen: Seen,
    /// Bytes of memory that the server took for each connection that was held open meanwhile; none
    /// where none was.
    pub memory: Option<f64>,
}

/// All samples of a run.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Sample>);

/// A server under a workload: medians over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// What the workload measures: processor microseconds for each request, user and system, or
    /// bytes for each connection.
    pub cost: f64,
    /// (largest - smallest) / median of these.
    pub spread: f64,
    /// The part in user space.
    pub user_us: f64,
    /// Requests in a second.
    pub rate: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// The latency that one in a hundred exceeds, in microseconds.
    pub p99_us: f64,
    /// Bytes for each connection that was held open.
    pub memory: Option<f64>,
    /// Errors in all rounds together.
    pub errors: u64,
}

impl Sample {
    /// What the workload measures. Without a request, bytes for each connection; else processor
    /// microseconds for each request that was answered right.
    pub fn cost(&self) -> f64 {
        match (self.memory, self.seen.requests) {
            (Some(bytes), 0) => bytes,
            (Some(_) | None, _) => self.cpu_us(),
        }
    }

    fn cpu_us(&self) -> f64 {
        self.spent.total.as_secs_f64() * 1e6 / self.seen.requests as f64
    }

    fn user_us(&self) -> f64 {
        self.spent.user.as_secs_f64() * 1e6 / self.seen.requests as f64
    }
}

impl Samples {
    /// Adds one.
    pub fn push(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// Medians of `server` under `workload`; none where it was not measured.
    pub fn figures(&self, workload: &str, server: &str) -> Option<Figures> {
        let of = |value: fn(&Sample) -> f64| -> Vec<f64> {
            self.of(workload, server).map(value).collect()
        };
        let cost = of(Sample::cost);
        Some(Figures {
            cost: median(&cost)?,
            spread: spread(&cost)?,
            user_us: median(&of(Sample::user_us)).unwrap_or_default(),
            rate: median(&of(|sample| sample.seen.rate))?,
            p50_us: median(&of(|sample| sample.seen.p50_us))?,
            p99_us: median(&of(|sample| sample.seen.p99_us))?,
            memory: median(&of(|sample| sample.memory.unwrap_or(f64::NAN))),
            errors: self.of(workload, server).map(|one| one.seen.errors).sum(),
        })
    }

    /// Cost of `server` over that of `other`: the median of the rounds' ratios.
    pub fn ratio(&self, workload: &str, server: &str, other: &str) -> Option<f64> {
        let rounds = |name: &str| -> Vec<(usize, f64)> {
            let of = self.of(workload, name);
            of.map(|sample| (sample.round, sample.cost())).collect()
        };
        paired_ratio(&rounds(server), &rounds(other))
    }

    fn of(&self, workload: &str, server: &str) -> impl Iterator<Item = &Sample> {
        let wanted = (workload.to_owned(), server.to_owned());
        self.0
            .iter()
            .filter(move |one| one.workload == wanted.0 && one.server == wanted.1)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::time::Duration;

    /// One round of `hot_1k`: each server and its milliseconds for 100,000 requests.
    pub fn samples_of(totals: &[(&'static str, u64)]) -> Samples {
        let each = totals.iter();
        Samples(each.map(|(name, total)| sample(name, 0, *total)).collect())
    }

    fn sample(server: &'static str, round: usize, total_ms: u64) -> Sample {
        Sample {
            workload: "hot_1k",
            server,
            round,
            spent: Spent {
                total: Duration::from_millis(total_ms),
                user: Duration::from_millis(total_ms / 10),
            },
            seen: Seen {
                requests: 100_000,
                errors: 1,
                rate: 90_000.0,
                p50_us: 800.0,
                p99_us: 1500.0,
            },
            memory: None,
        }
    }

    #[test]
    fn figures_are_medians_for_each_request() {
        let mut samples = Samples::default();
        for (round, total) in [1000, 1100, 5000].into_iter().enumerate() {
            samples.push(sample("levee", round, total));
            samples.push(sample("bare", round, total / 2));
        }
        let figures = samples.figures("hot_1k", "levee").unwrap();
        assert_eq!((figures.cost, figures.user_us), (11.0, 1.1));
        assert_eq!(figures.errors, 3);
        assert_eq!(samples.ratio("hot_1k", "levee", "bare"), Some(2.0));
        assert_eq!(samples.figures("hot_1k", "nginx"), None);
    }
}
