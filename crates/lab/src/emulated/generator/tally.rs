//! What became of the requests of a step, and of each second.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::crowd::PATIENCE;
use crate::crowd::client::Failure;
use crate::crowd::tally::{FAILED_SHARE_MAX, in_words};

/// A request that came to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// When it was meant to be asked, since the step began.
    pub asked: Duration,
    /// When it was whole or given up, since the step began.
    pub ended: Duration,
    /// Whom it was asked first.
    pub first: First,
    /// The server that was asked last.
    pub last: Option<IpAddr>,
    /// Bytes of the redirect that was met first, with its head.
    pub redirect_bytes: Option<u64>,
    /// What it brought, or why nothing.
    pub result: Result<Whole, Failure>,
}

/// Whom a request was asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The site of the plan.
    Source,
    /// Whoever a page from elsewhere named.
    Other,
    /// Nobody: what named it never came.
    Nobody,
}

/// An answer that was whole and right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Bytes of its body.
    pub body: u64,
    /// Bytes of the response where the site that was asked first gave it; none where another did.
    pub own: u64,
}

/// A step as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepFigures {
    /// Its number, from 0.
    pub step: usize,
    /// Requests a second as planned.
    pub rate: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Seconds until its last request had ended.
    pub lasted: f64,
    /// Requests of the visits that began in it.
    pub offered: u64,
    /// Whole, right and within 7 s.
    pub answered: u64,
    /// All others.
    pub failed: u64,
    /// The others by cause, in words.
    pub failures: BTreeMap<String, u64>,
    /// What came of them by the server that was asked last.
    pub servers: BTreeMap<IpAddr, ServerFigures>,
    /// Requests of which the source was asked first.
    pub at_source: u64,
    /// Requests that were redirected on their way.
    pub redirected: u64,
    /// Bytes of their redirects, heads and all.
    pub redirect_bytes: u64,
    /// Answers a second that came in the settled part of the step: its last two thirds.
    pub answered_rate: f64,
    /// Redirects a second that came in the settled part.
    pub redirected_rate: f64,
    /// Body bytes a second that came in the settled part.
    pub bytes_rate: f64,
    /// Bytes of the answers that the site gave itself, heads and all.
    pub own_bytes: u64,
    /// Median of the time to an answer, in seconds; a request that failed counts as 7 s at least.
    pub p50: f64,
    /// 99th percentile of the same.
    pub p99: f64,
    /// Most by which a visit began late, in seconds: whether the generator kept up.
    pub lag_max: f64,
}

/// What came of the requests that ended at one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Whole, right and within 7 s.
    pub answered: u64,
    /// Whole, but not what the site has.
    pub wrong: u64,
    /// All others.
    pub failed: u64,
}

impl StepFigures {
    /// Share of the requests that were not answered.
    pub fn failed_share(&self) -> f64 {
        self.failed as f64 / (self.offered as f64).max(1.0)
    }

    /// The papers' rule: more than 10 % not answered in 7 s.
    pub fn is_overloaded(&self) -> bool {
        self.failed_share() > FAILED_SHARE_MAX
    }

    /// Whether answers are more than 10 % behind requests in the settled part.
    pub fn is_behind(&self) -> bool {
        self.is_overloaded() || self.answered_rate < (1.0 - FAILED_SHARE_MAX) * self.rate
    }

    /// Mean size of a redirect in bytes; none where there was none.
    pub fn redirect_size(&self) -> Option<f64> {
        (self.redirected > 0).then(|| self.redirect_bytes as f64 / self.redirected as f64)
    }
}

/// A second as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondFigures {
    /// Seconds since the load began.
    pub at: f64,
    /// Requests of the visits that began in it.
    pub offered: u64,
    /// Answers that were whole in it.
    pub answered: u64,
    /// Requests that were given up in it.
    pub failed: u64,
    /// Redirects met by those that ended in it.
    pub redirected: u64,
    /// Body bytes of its answers.
    pub bytes: u64,
    /// Some of the requests that ended in it: when they were asked since the load began, and how
    /// long they took, in seconds.
    pub told: Vec<(f64, f64)>,
    /// All requests that ended in it, where the plan wants them told.
    pub requests: Vec<RequestFigures>,
}

/// One request. Times are seconds since the load began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestFigures {
    /// What was asked for.
    pub path: String,
    /// When.
    pub asked: f64,
    /// When it was redirected; none if it was not.
    pub redirected: Option<f64>,
}

impl ServerFigures {
    fn enter(&mut self, request: &Finished) {
        match request.result {
            Ok(_) => self.answered += 1,
            Err(Failure::WrongBody) => self.wrong += 1,
            Err(_) => self.failed += 1,
        }
    }
}

/// Counts the requests of a step.
#[derive(Debug)]
pub struct StepTally {
    figures: StepFigures,
    settled: Duration,
    end: Duration,
    settled_answers: u64,
    settled_redirects: u64,
    settled_bytes: u64,
    times: Histogram<u64>,
}

impl StepTally {
    /// Of a step of that number, rate and length.
    pub fn new(step: usize, rate: f64, seconds: f64) -> Self {
        let end = Duration::from_secs_f64(seconds);
        Self {
            figures: StepFigures {
                step,
                rate,
                seconds,
                ..StepFigures::default()
            },
            settled: end / 3,
            end,
            settled_answers: 0,
            settled_redirects: 0,
            settled_bytes: 0,
            times: Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order"),
        }
    }

    /// Notes that a visit of so many requests began, so late.
    pub fn offer(&mut self, requests: u32, lag: Duration) {
        self.figures.offered += u64::from(requests);
        self.figures.lag_max = self.figures.lag_max.max(lag.as_secs_f64());
    }

    /// Notes the end of a request.
    pub fn enter(&mut self, request: &Finished) {
        let figures = &mut self.figures;
        let in_settled = (self.settled..self.end).contains(&request.ended);
        figures.at_source += u64::from(request.first == First::Source);
        if let Some(server) = request.last {
            figures.servers.entry(server).or_default().enter(request);
        }
        let mut taken = request.ended.saturating_sub(request.asked);
        if let Some(bytes) = request.redirect_bytes {
            figures.redirected += 1;
            figures.redirect_bytes += bytes;
            self.settled_redirects += u64::from(in_settled);
        }
        match request.result {
            Ok(Whole { body, own }) => {
                figures.answered += 1;
                figures.own_bytes += own;
                self.settled_answers += u64::from(in_settled);
                self.settled_bytes += if in_settled { body } else { 0 };
            }
            Err(failure) => {
                figures.failed += 1;
                *figures.failures.entry(in_words(failure)).or_default() += 1;
                taken = taken.max(PATIENCE);
            }
        }
        self.times.saturating_record(taken.as_micros() as u64);
    }

    /// The step as it was, after it lasted so long.
    pub fn close(self, lasted: Duration) -> StepFigures {
        let seconds = (self.end - self.settled).as_secs_f64();
        let quantile = |share| self.times.value_at_quantile(share) as f64 / 1e6;
        StepFigures {
            lasted: lasted.as_secs_f64(),
            answered_rate: self.settled_answers as f64 / seconds,
            redirected_rate: self.settled_redirects as f64 / seconds,
            bytes_rate: self.settled_bytes as f64 / seconds,
            p50: quantile(0.5),
            p99: quantile(0.99),
            ..self.figures
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(asked: u64, ended: u64, result: Result<Whole, Failure>) -> Finished {
        Finished {
            asked: Duration::from_millis(asked),
            ended: Duration::from_millis(ended),
            first: First::Source,
            last: Some([10, 0, 0, (asked % 2) as u8].into()),
            redirect_bytes: (asked % 2 == 1).then_some(200),
            result,
        }
    }

    #[test]
    fn rates_are_those_of_the_settled_part() {
        let mut tally = StepTally::new(0, 2.0, 3.0);
        tally.offer(4, Duration::from_millis(3));
        tally.enter(&request(0, 500, Ok(Whole { body: 10, own: 20 })));
        tally.enter(&request(500, 1500, Ok(Whole { body: 10, own: 20 })));
        tally.enter(&request(1001, 2900, Ok(Whole { body: 10, own: 20 })));
        tally.enter(&request(1500, 3100, Ok(Whole { body: 10, own: 20 })));
        let figures = tally.close(Duration::from_secs(4));
        assert_eq!((figures.offered, figures.answered), (4, 4));
        assert_eq!((figures.answered_rate, figures.bytes_rate), (1.0, 10.0));
        assert_eq!((figures.redirected_rate, figures.at_source), (0.5, 4));
        assert_eq!(figures.redirect_size(), Some(200.0));
        assert_eq!(figures.lag_max, 0.003);
    }

    #[test]
    fn what_came_of_a_request_is_told_of_the_server_that_was_asked_last() {
        let mut tally = StepTally::new(0, 2.0, 3.0);
        let whole = Ok(Whole { body: 1, own: 0 });
        for (asked, result) in [
            (0, whole),
            (1, Err(Failure::WrongBody)),
            (3, Err(Failure::Late)),
            (5, whole),
        ] {
            tally.enter(&request(asked, asked + 1, result));
        }
        let servers = tally.close(Duration::from_secs(3)).servers;
        let of = |last: u8| {
            let figures = servers[&IpAddr::from([10, 0, 0, last])];
            (figures.answered, figures.wrong, figures.failed)
        };
        assert_eq!((of(0), of(1)), ((1, 0, 0), (1, 1, 1)));
    }

    #[test]
    fn a_step_is_overloaded_when_more_than_a_tenth_failed() {
        let mut tally = StepTally::new(0, 10.0, 1.0);
        tally.offer(10, Duration::ZERO);
        for _ in 0..9 {
            tally.enter(&request(0, 10, Ok(Whole { body: 1, own: 1 })));
        }
        tally.enter(&request(0, 10, Err(Failure::Refused)));
        let figures = tally.close(Duration::from_secs(4));
        assert!(!figures.is_overloaded());
        assert!(figures.p99 >= 7.0);
        let worse = StepFigures {
            failed: 2,
            ..figures.clone()
        };
        assert!(worse.is_overloaded());
        let [late, waiting] = [9.1, 8.9].map(|answered_rate| StepFigures {
            answered_rate,
            ..figures.clone()
        });
        assert!(!late.is_behind() && waiting.is_behind());
    }
}
