//! Draws the figures of the report from the records of a crowd.
//!
//! Latency is that of every request that was offered: one that failed, or was never asked because
//! its page did not come, counts as [`PATIENCE`] at least. Without this rule the worst site would
//! have the best latency, for it answers only the lucky.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use super::client::Failure;
use super::ledger::Record;

/// What became of the requests of the visits that began within some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests that the visits called for.
    pub offered: u64,
    /// Whole, right and in time.
    pub answered: u64,
    /// All others.
    pub failed: u64,
    /// The others by cause, in words.
    pub failures: BTreeMap<String, u64>,
    /// Body bytes of the answers.
    pub bytes: u64,
    /// Median latency in seconds.
    pub p50: f64,
    /// 99th percentile in seconds.
    pub p99: f64,
    /// 99th percentile of the answered requests alone, in seconds.
    pub p99_answered: f64,
}

/// One second of a crowd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Requests of the visits that began in it.
    pub offered: u64,
    /// Answers that were whole in it.
    pub answered: u64,
    /// Requests that were given up in it.
    pub failed: u64,
    /// Body bytes of its answers.
    pub bytes: u64,
    /// Median latency of the requests of its visits, in seconds.
    pub p50: f64,
    /// 99th percentile of the same.
    pub p99: f64,
}

/// The most that was answered well for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Most {
    /// Offered requests a second of the busiest span with at most 10 % failed: R_max.
    pub requests: f64,
    /// Body bytes a second delivered in the best such span: D_max.
    pub bytes: f64,
}

/// Span over which R_max and D_max are taken: longer than the visitors' patience, so that a span
/// cannot look good by what was queued before it.
pub const SPAN: Duration = Duration::from_secs(10);

/// Above this share of failed requests a site is overloaded (dotslash 6.1).
pub const FAILED_SHARE_MAX: f64 = 0.10;

impl Tally {
    /// Of the visits that began within `arrived`.
    pub fn of(records: &[Record], arrived: &Range<Duration>) -> Self {
        let mut tally = Self::default();
        let mut all = latencies();
        let mut answered = latencies();
        for record in records
            .iter()
            .filter(|record| arrived.contains(&record.arrived))
        {
            tally.offered += 1;
            let micros = latency_micros(record);
            all.saturating_record(micros);
            match record.result {
                Ok(answer) => {
                    tally.answered += 1;
                    tally.bytes += answer.bytes;
                    answered.saturating_record(micros);
                }
                Err(failure) => {
                    tally.failed += 1;
                    *tally.failures.entry(in_words(failure)).or_default() += 1;
                }
            }
        }
        tally.p50 = quantile(&all, 0.5);
        tally.p99 = quantile(&all, 0.99);
        tally.p99_answered = quantile(&answered, 0.99);
        tally
    }

    /// Share of the offered requests that failed; none failed of nothing.
    pub fn failed_share(&self) -> f64 {
        self.failed as f64 / (self.offered as f64).max(1.0)
    }
}

/// The crowd second by second, from its start to its last record.
pub fn seconds(records: &[Record]) -> Vec<Second> {
    let end = records.iter().map(|record| record.ended).max();
    let count = end.map_or(0, |end| end.as_secs() as usize + 1);
    let mut seconds = vec![Second::default(); count];
    let mut waits = vec![latencies(); count];
    for record in records {
        let (arrived, ended) = (
            record.arrived.as_secs() as usize,
            record.ended.as_secs() as usize,
        );
        seconds[arrived].offered += 1;
        waits[arrived].saturating_record(latency_micros(record));
        match record.result {
            Ok(answer) => {
                seconds[ended].answered += 1;
                seconds[ended].bytes += answer.bytes;
            }
            Err(_) => seconds[ended].failed += 1,
        }
    }
    for (second, waits) in seconds.iter_mut().zip(&waits) {
        second.p50 = quantile(waits, 0.5);
        second.p99 = quantile(waits, 0.99);
    }
    seconds
}

/// R_max and D_max over the visits that began within `arrived`.
pub fn most(records: &[Record], arrived: &Range<Duration>) -> Most {
    let mut most = Most::default();
    let mut start = arrived.start;
    while start + SPAN <= arrived.end {
        let span = start..start + SPAN;
        let tally = Tally::of(records, &span);
        if tally.offered > 0 && tally.failed_share() <= FAILED_SHARE_MAX {
            let rate = tally.offered as f64 / SPAN.as_secs_f64();
            most.requests = most.requests.max(rate);
            most.bytes = most.bytes.max(delivered(records, &span));
        }
        start += Duration::from_secs(1);
    }
    most
}

/// Body bytes a second that were delivered within `span`, whenever their visits began.
fn delivered(records: &[Record], span: &Range<Duration>) -> f64 {
    let bytes: u64 = records
        .iter()
        .filter(|record| span.contains(&record.ended))
        .filter_map(|record| record.result.ok())
        .map(|answer| answer.bytes)
        .sum();
    bytes as f64 / (span.end - span.start).as_secs_f64()
}

fn latency_micros(record: &Record) -> u64 {
    let taken = record.ended.saturating_sub(record.asked);
    let counted = match record.result {
        Ok(_) => taken,
        Err(_) => taken.max(PATIENCE),
    };
    counted.as_micros() as u64
}

/// From a microsecond to a minute, to two digits: finer than any plot shows.
fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 2).expect("the bounds are in order")
}

fn quantile(latencies: &Histogram<u64>, share: f64) -> f64 {
    latencies.value_at_quantile(share) as f64 / 1e6
}

/// A failure for people.
pub(crate) fn in_words(failure: Failure) -> String {
    match failure {
        Failure::Late => "over 7 s".to_owned(),
        Failure::Refused => "refused with 503".to_owned(),
        Failure::Status(status) => format!("status {status}"),
        Failure::Connect => "no connection".to_owned(),
        Failure::Unproven => "no proof of its name".to_owned(),
        Failure::Broken => "connection broke".to_owned(),
        Failure::WrongBody => "wrong body".to_owned(),
        Failure::Loop => "redirected in a circle".to_owned(),
        Failure::Elsewhere => "redirected to nowhere".to_owned(),
        Failure::NotAsked => "not asked for, its page did not come".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::{Answer, Asked};
    use super::*;

    fn record(arrived_ms: u64, taken_ms: u64, result: Result<u64, Failure>) -> Record {
        let arrived = Duration::from_millis(arrived_ms);
        Record {
            kind: Asked::Single,
            arrived,
            asked: arrived,
            ended: arrived + Duration::from_millis(taken_ms),
            redirected: None,
            result: result.map(|bytes| Answer {
                bytes,
                wire_bytes: bytes + 200,
                port: 80,
            }),
        }
    }

    #[test]
    fn a_failed_request_counts_as_the_patience_it_cost() {
        let records = [
            record(0, 100, Ok(10)),
            record(1, 200, Ok(10)),
            record(2, 5, Err(Failure::Refused)),
        ];
        let tally = Tally::of(&records, &(Duration::ZERO..PATIENCE));
        assert_eq!((tally.offered, tally.answered, tally.failed), (3, 2, 1));
        assert!((tally.p50 - 0.2).abs() < 0.01, "{}", tally.p50);
        assert!(tally.p99 >= 7.0, "{}", tally.p99);
        assert!(tally.p99_answered < 0.3);
        assert_eq!(tally.failures["refused with 503"], 1);
    }

    #[test]
    fn the_most_is_taken_where_at_most_a_tenth_failed() {
        // Ten seconds at 10 requests/s that are answered, then ten at 50 that are not.
        let good = (0..100).map(|n| record(n * 100, 10, Ok(1_000)));
        let bad = (0..500).map(|n| record(10_000 + n * 20, 10, Err(Failure::Late)));
        let records: Vec<Record> = good.chain(bad).collect();
        let most = most(&records, &(Duration::ZERO..Duration::from_secs(20)));
        assert_eq!(most.requests, 10.0);
        assert_eq!(most.bytes, 10_000.0);
    }

    #[test]
    fn seconds_hold_offers_by_arrival_and_answers_by_end() {
        let records = [record(900, 200, Ok(7)), record(1_500, 100, Ok(5))];
        let seconds = seconds(&records);
        assert_eq!(seconds.len(), 2);
        assert_eq!((seconds[0].offered, seconds[0].answered), (1, 0));
        assert_eq!((seconds[1].answered, seconds[1].bytes), (2, 12));
    }
}
