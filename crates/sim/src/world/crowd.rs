//! Crowds: when visitors come, what they ask for, and how they fared.

use std::time::Duration;

use levee_vocab::{Random, Timestamp};

use crate::world::SiteId;
use crate::world::request::Fate;

/// When visitors come.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Evenly, so many a second.
    Constant {
        /// Visitors a second.
        rate: f64,
    },
    /// Independent of each other (a Poisson process), so many a second on average.
    Random {
        /// Visitors a second.
        rate: f64,
    },
    /// Evenly, at a rate that steps; the last step stays.
    Steps {
        /// Visitors a second, step by step.
        rates: Vec<f64>,
        /// Length of a step.
        each: Duration,
    },
    /// Each of so many servers once, early ones more often than late ones: the link preview of a
    /// post that spreads through the fediverse.
    Stampede {
        /// How many.
        servers: u64,
        /// When the last one comes.
        within: Duration,
    },
}

/// What each visitor asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// One file each, in turn.
    FilesInTurn,
    /// The first file as a page, then all others of the site as what is embedded in it.
    WholePage,
    /// HEAD of the first file, then GET of the first two.
    Preview,
    /// One file each, in turn, by crawlers that say who they are.
    Crawl,
}

/// A crowd, as it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct CrowdSettings {
    /// Its name in stories.
    pub name: String,
    /// The site that it wants.
    pub site: SiteId,
    /// When visitors come.
    pub arrivals: Arrivals,
    /// What they want.
    pub wants: Wants,
    /// When the last one comes, if it ends by itself.
    pub until: Option<Timestamp>,
}

/// A crowd under way.
#[derive(Debug)]
pub struct Crowd {
    /// What was asked for.
    pub settings: CrowdSettings,
    /// How it fared.
    pub tally: Tally,
    since: Timestamp,
    visitors: u64,
    random: Random,
}

/// How a crowd fared.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// Requests begun.
    pub offered: u64,
    /// Answered in time.
    pub answered: u64,
    /// Refused with 503.
    pub refused: u64,
    /// Failed or too late.
    pub failed: u64,
    /// Bytes of the answers in time.
    pub bytes: u64,
    /// Latency of the answers in time, a count for each millisecond.
    latencies: Vec<u32>,
}

/// Whoever is not served within this time has left (the paper counts 7 s as failure).
pub const PATIENCE: Duration = Duration::from_secs(7);

impl Crowd {
    /// A crowd that begins now.
    pub fn new(settings: CrowdSettings, since: Timestamp, random: Random) -> Self {
        Self {
            settings,
            tally: Tally::default(),
            since,
            visitors: 0,
            random,
        }
    }

    /// Number of the visitor that comes now.
    pub fn count_visitor(&mut self) -> u64 {
        self.visitors += 1;
        self.visitors - 1
    }

    /// When the visitor after the one at `now` comes; none when the crowd is over.
    pub fn next_arrival(&mut self, now: Timestamp) -> Option<Timestamp> {
        let at = match &self.settings.arrivals {
            Arrivals::Constant { rate } => now + gap(*rate)?,
            Arrivals::Random { rate } => {
                let unlikely = 1.0 - self.random.fraction();
                now + gap(*rate)?.mul_f64(-unlikely.ln())
            }
            Arrivals::Steps { rates, each } => {
                let step = now.since(self.since).as_nanos() / each.as_nanos().max(1);
                let last = rates.len().checked_sub(1)?;
                let step = usize::try_from(step).unwrap_or(last).min(last);
                now + gap(rates[step])?
            }
            Arrivals::Stampede { servers, within } => {
                if self.visitors >= *servers {
                    return None;
                }
                // The square makes the rate fall evenly from twice the mean to nothing.
                let left = 1.0 - self.visitors as f64 / *servers as f64;
                self.since + within.mul_f64(1.0 - left.sqrt())
            }
        };
        match self.settings.until {
            Some(until) if at > until => None,
            Some(_) | None => Some(at),
        }
    }
}

fn gap(rate: f64) -> Option<Duration> {
    (rate > 0.0).then(|| Duration::from_secs_f64(1.0 / rate))
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            offered: 0,
            answered: 0,
            refused: 0,
            failed: 0,
            bytes: 0,
            latencies: vec![0; PATIENCE.as_millis() as usize + 1],
        }
    }
}

impl Tally {
    /// A request ended.
    pub fn count(&mut self, fate: Fate, bytes: u64, latency: Duration) {
        match fate {
            Fate::Answered => {
                self.answered += 1;
                self.bytes += bytes;
                let last = self.latencies.len() - 1;
                self.latencies[(latency.as_millis() as usize).min(last)] += 1;
            }
            Fate::Refused => self.refused += 1,
            Fate::Failed => self.failed += 1,
        }
    }

    /// The latency that `share` of the answers did not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        let wanted = (self.answered as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (milliseconds, &count) in self.latencies.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted && seen > 0 {
                return Duration::from_millis(milliseconds as u64);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals_of(arrivals: Arrivals, seconds: u64) -> Vec<Timestamp> {
        let settings = CrowdSettings {
            name: "crowd".to_owned(),
            site: SiteId(0),
            arrivals,
            wants: Wants::FilesInTurn,
            until: Some(Timestamp::from_seconds(seconds)),
        };
        let mut crowd = Crowd::new(settings, Timestamp::ZERO, Random::from_seed(7));
        let mut times = Vec::new();
        let mut now = Timestamp::ZERO;
        while let Some(at) = crowd.next_arrival(now) {
            crowd.count_visitor();
            times.push(at);
            now = at;
        }
        times
    }

    #[test]
    fn each_kind_of_crowd_has_the_size_that_was_asked_for() {
        let constant = arrivals_of(Arrivals::Constant { rate: 10.0 }, 100);
        assert_eq!(constant.len(), 1000);
        let random = arrivals_of(Arrivals::Random { rate: 10.0 }, 100).len();
        assert!((900..1100).contains(&random), "{random}");
        let rates = vec![10.0, 20.0];
        let each = Duration::from_secs(50);
        let steps = arrivals_of(Arrivals::Steps { rates, each }, 100).len();
        assert!((1495..=1505).contains(&steps), "{steps}");
        let within = Duration::from_secs(60);
        let stampede = arrivals_of(
            Arrivals::Stampede {
                servers: 740,
                within,
            },
            100,
        );
        assert_eq!(stampede.len(), 740);
        assert!(stampede[370] < Timestamp::from_seconds(20));
    }
}
