//! The crowd of a drill: visits at a steady rate, whatever becomes of them, and a tally of that.
//!
//! An open loop: the next visit begins when it is due, not when the last one has ended, so a rescue
//! server that is slow is not spared. At most so many are under way as come in ten seconds; more
//! are left out and counted.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::visit::{Body, Ground, Outcome, Print, Visited, since, visit};

/// What the crowd comes for.
#[derive(Clone, Debug)]
pub(super) struct Fair {
    pub(super) ground: Ground,
    /// Pages by turn, and what they look like.
    pub(super) pages: Vec<(String, Print)>,
    /// Visits a second.
    pub(super) rate: u32,
}

/// What became of all visits.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) visits: u64,
    /// Answered by the site itself.
    pub(super) here: u64,
    /// Above the drill's part of the link.
    pub(super) above_share: u64,
    /// Left out because too many were under way.
    pub(super) left_out: u64,
    /// Bodies that were not what the site shows, by the site itself.
    pub(super) different_here: u64,
    /// Failures at the site itself, by cause.
    pub(super) failures_here: BTreeMap<String, u64>,
    /// From the beginning to the first visitor whom a rescue server helped.
    pub(super) first_helped: Option<Duration>,
    /// By alias, with its port.
    pub(super) helpers: BTreeMap<String, Helper>,
}

/// What became of the visits at one rescue server.
#[derive(Clone, Debug, Default)]
pub(super) struct Helper {
    pub(super) visits: u64,
    pub(super) different: u64,
    pub(super) failures: BTreeMap<String, u64>,
    /// Of those that were helped: from when the visit was due to the last byte.
    pub(super) times: Vec<Duration>,
}

/// Seconds of visits that may be under way.
const UNDER_WAY_SECONDS: usize = 10;

/// Lets visitors come until `stop`, then waits for those under way.
///
/// Cancel safety: dropped half-way, no visit goes on.
pub(super) async fn gather(fair: Fair, mut stop: watch::Receiver<bool>) -> Tally {
    let began = Instant::now();
    let mut ticks = interval(Duration::from_secs(1) / fair.rate.max(1));
    // Who is late comes at once: the crowd does not wait for us.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut pages = fair.pages.iter().cycle();
    let mut under_way = JoinSet::new();
    let mut tally = Tally::default();
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            due = ticks.tick() => {
                let Some((path, print)) = pages.next() else { break };
                if under_way.len() >= fair.rate as usize * UNDER_WAY_SECONDS {
                    tally.left_out += 1;
                    continue;
                }
                let (ground, path, print) = (fair.ground.clone(), path.clone(), *print);
                under_way.spawn(async move { (due, visit(ground, path, print).await) });
            }
            Some(ended) = under_way.join_next(), if !under_way.is_empty() => {
                tally.note_ended(ended, began);
            }
        }
    }
    while let Some(ended) = under_way.join_next().await {
        tally.note_ended(ended, began);
    }
    tally
}

impl Tally {
    fn note_ended(
        &mut self,
        ended: Result<(Instant, Visited), tokio::task::JoinError>,
        began: Instant,
    ) {
        // A visit that panicked is a fault of ours, and the runtime has said so.
        if let Ok((due, Visited { outcome, waited })) = ended {
            let took = since(due).saturating_sub(waited);
            self.note(outcome, took, since(began).saturating_sub(waited));
        }
    }

    fn note(&mut self, outcome: Outcome, took: Duration, at: Duration) {
        // No part of the drill any more, and nobody's fault.
        self.visits += u64::from(outcome != Outcome::TooLate);
        match outcome {
            Outcome::TooLate => {}
            Outcome::Here(Body::Same) => self.here += 1,
            Outcome::Here(Body::Different) => {
                self.here += 1;
                self.different_here += 1;
            }
            Outcome::AboveShare => self.above_share += 1,
            Outcome::Helped { alias, body } => {
                self.first_helped.get_or_insert(at);
                let helper = self.helpers.entry(alias).or_default();
                helper.visits += 1;
                helper.times.push(took);
                if body == Body::Different {
                    helper.different += 1;
                }
            }
            Outcome::Failed {
                alias: Some(alias),
                why,
            } => {
                let helper = self.helpers.entry(alias).or_default();
                helper.visits += 1;
                *helper.failures.entry(why).or_default() += 1;
            }
            Outcome::Failed { alias: None, why } => {
                *self.failures_here.entry(why).or_default() += 1;
            }
        }
    }
}

impl Helper {
    /// Time within which `share` of the visits were answered.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        let mut times = self.times.clone();
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        times.get((last as f64 * share).round() as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_visit_is_counted_where_it_ended() {
        let mut tally = Tally::default();
        let alias = "www-vh1.a.example:80".to_owned();
        let (second, third) = (Duration::from_secs(1), Duration::from_secs(3));
        let helped = |body| Outcome::Helped {
            alias: alias.clone(),
            body,
        };
        tally.note(Outcome::Here(Body::Same), second, second);
        tally.note(helped(Body::Same), second, second);
        tally.note(helped(Body::Different), third, third);
        let failed = Outcome::Failed {
            alias: Some(alias.clone()),
            why: "it has no room (503)".to_owned(),
        };
        tally.note(failed, second, third);
        tally.note(Outcome::AboveShare, second, third);
        tally.note(Outcome::TooLate, second, third);
        let helper = &tally.helpers[&alias];
        assert_eq!((tally.visits, tally.here, tally.above_share), (5, 1, 1));
        assert_eq!((helper.visits, helper.different), (3, 1));
        assert_eq!(helper.failures["it has no room (503)"], 1);
        assert_eq!(tally.first_helped, Some(second));
        assert_eq!(helper.quantile(0.0), Some(second));
        assert_eq!(helper.quantile(1.0), Some(third));
    }
}
