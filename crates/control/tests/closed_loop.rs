//! A Brain and its Gates under load: the site settles where the paper says (R5; dotslash 6.3.4).
//!
//! Requests of 4 KB arrive by chance at a site with D_out = 1000 kB/s, n = 227, A_redi = 468. The
//! rescue server is large enough. Time moves in milliseconds; the link is a queue that drains at B.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::VecDeque;
use std::time::Duration;

use fixtures::{accepted, at, called, candidate, parameters};
use levee_control::{
    Ask, Brain, Copies, Gate, GateLimits, Input, LoadSample, Output, Redirectability, Traffic,
    Verdict, Visitor,
};
use levee_vocab::{ByteRate, LinkId, Random, ServerState, Timestamp};

const FILE_BYTES: u64 = 4096;
const REDIRECT_BYTES: u64 = 227;
const OVERHEAD_BYTES: u64 = 358;
const LINK: f64 = 1_250_000.0;

/// One site with some cores, and what happened to it.
struct Site {
    brain: Brain,
    gates: Vec<Gate>,
    waiting: Vec<VecDeque<Timestamp>>,
    random: Random,
    now: Timestamp,
    backlog: f64,
    sample: LoadSample,
    rescue_rate: u64,
    intervals: Vec<Interval>,
}

/// What was measured in one interval.
#[derive(Clone, Debug)]
struct Interval {
    kilobytes_out: f64,
    redirects: u64,
    redirected_kilobytes: f64,
    granted_kilobytes: f64,
    refused: u64,
}

impl Site {
    fn new(cores: usize, rescue_rate: u64, seed: u64) -> Self {
        let mut site = Self {
            brain: Brain::new(parameters("www.origin.example"), seed, Vec::new()),
            gates: vec![Gate::new(GateLimits::default()); cores],
            waiting: vec![VecDeque::new(); cores],
            random: Random::from_seed(seed),
            now: Timestamp::ZERO,
            backlog: 0.0,
            sample: LoadSample::default(),
            rescue_rate,
            intervals: Vec::new(),
        };
        let found = vec![
            candidate("www.rescue1.example", rescue_rate),
            candidate("www.rescue2.example", rescue_rate / 2),
        ];
        site.tell(Input::CandidatesFound(found));
        site
    }

    fn tell(&mut self, input: Input) {
        let outputs = self.brain.handle(self.now, input);
        if outputs.contains(&Output::SwapPlan) {
            let share = 1.0 / self.gates.len() as f64;
            for gate in &mut self.gates {
                gate.adopt(self.now, self.brain.plan(), share);
            }
        }
        if let Some(link) = called(&outputs) {
            let LinkId::Outbound(number) = link else {
                panic!("calls are outbound");
            };
            self.tell(accepted(link, self.rescue_rate / number, false));
        }
    }

    /// Runs `seconds` with `rate` requests a second.
    fn run(&mut self, seconds: u64, rate: f64) {
        for _ in 0..seconds {
            for _ in 0..1000 {
                self.now = self.now + Duration::from_millis(1);
                self.backlog = (self.backlog - LINK / 1000.0).max(0.0);
                for core in 0..self.gates.len() {
                    self.serve_waiting(core);
                }
                for _ in 0..self.arrivals(rate / 1000.0) {
                    let core = self.random.within(0..self.gates.len() as u64) as usize;
                    self.waiting[core].push_back(self.now);
                    self.serve_waiting(core);
                }
            }
            self.end_interval();
        }
    }

    /// How many of a Poisson process with this mean.
    fn arrivals(&mut self, mean: f64) -> u64 {
        let limit = (-mean).exp();
        let mut product = self.random.fraction();
        let mut count = 0;
        while product > limit {
            product *= self.random.fraction();
            count += 1;
        }
        count
    }

    fn serve_waiting(&mut self, core: usize) {
        while let Some(&since) = self.waiting[core].front() {
            let ask = Ask {
                visitor: Visitor::Reader,
                redirectable: Redirectability::Allowed,
                file_bytes: FILE_BYTES,
                redirect_bytes: REDIRECT_BYTES,
                overhead_bytes: OVERHEAD_BYTES,
                path_hash: 1,
                resource_hash: 0,
                copies: Copies::NONE,
                backlog: Duration::from_secs_f64(self.backlog / LINK),
                waited: self.now.since(since),
            };
            match self.gates[core].decide(self.now, &ask) {
                Verdict::Serve => {
                    self.sample.own.bytes += FILE_BYTES;
                    self.sample.own.requests += 1;
                    self.backlog += (FILE_BYTES + OVERHEAD_BYTES) as f64;
                }
                Verdict::Redirect { target } => {
                    let plan = self.gates[core].plan().clone();
                    let link = plan.redirect.as_ref().unwrap().targets[target].link;
                    let traffic = self.sample.redirects.entry(link).or_default();
                    traffic.bytes += 468;
                    traffic.requests += 1;
                    traffic.file_bytes += FILE_BYTES;
                    self.backlog += (REDIRECT_BYTES + OVERHEAD_BYTES) as f64;
                }
                Verdict::Wait => return,
                Verdict::Refuse | Verdict::Withhold | Verdict::PutOff => self.sample.refused += 1,
            }
            self.waiting[core].pop_front();
        }
    }

    fn end_interval(&mut self) {
        let mut sample = std::mem::take(&mut self.sample);
        sample.elapsed = Duration::from_secs(1);
        sample.waiting = self.waiting.iter().map(|queue| queue.len() as u64).sum();
        let targets = self.brain.plan().redirect.clone().map(|plan| plan.targets);
        let granted: u64 = targets
            .into_iter()
            .flatten()
            .map(|t| t.rate.as_bytes())
            .sum();
        let sum = |of: fn(&Traffic) -> u64| sample.redirects.values().map(of).sum::<u64>();
        self.intervals.push(Interval {
            kilobytes_out: sample.bytes_out() as f64 / 1000.0,
            redirects: sum(|traffic| traffic.requests),
            redirected_kilobytes: sum(|traffic| traffic.file_bytes) as f64 / 1000.0,
            granted_kilobytes: granted as f64 / 1000.0,
            refused: sample.refused,
        });
        self.tell(Input::IntervalEnded(sample));
    }

    /// The intervals of a run at `rate` after it has settled.
    fn settled(&mut self, rate: f64) -> Vec<Interval> {
        // Long enough for the queue to reach the age at which requests are refused.
        self.run(30, rate);
        self.intervals.clear();
        self.run(30, rate);
        self.intervals.clone()
    }
}

fn mean(intervals: &[Interval], of: impl Fn(&Interval) -> f64) -> f64 {
    intervals.iter().map(of).sum::<f64>() / intervals.len() as f64
}

fn most(intervals: &[Interval], of: impl Fn(&Interval) -> f64) -> f64 {
    intervals.iter().map(of).fold(0.0, f64::max)
}

#[test]
fn the_site_settles_at_t_high_until_redirects_alone_cost_more() {
    for cores in [1, 4] {
        for rate in [200.0, 400.0, 800.0, 1200.0, 1500.0] {
            let intervals = Site::new(cores, 20_000, 7).settled(rate);
            let out = mean(&intervals, |interval| interval.kilobytes_out);
            let (low, high) = (735.0, 765.0);
            assert!(
                (low..high).contains(&out),
                "{cores} cores, {rate}/s: {out:.1} kB/s"
            );
            let peak = most(&intervals, |interval| interval.kilobytes_out);
            assert!(
                peak < 1000.0,
                "{cores} cores, {rate}/s: peak {peak:.1} kB/s"
            );
            assert_eq!(mean(&intervals, |interval| interval.refused as f64), 0.0);
        }
    }
}

#[test]
fn a_small_load_is_served_without_help() {
    for rate in [10.0, 40.0, 80.0] {
        let mut site = Site::new(1, 20_000, 7);
        let intervals = site.settled(rate);
        let out = mean(&intervals, |interval| interval.kilobytes_out);
        let offered = rate * FILE_BYTES as f64 / 1000.0;
        assert!((out / offered - 1.0).abs() < 0.1, "{rate}/s: {out:.1} kB/s");
        assert_eq!(most(&intervals, |interval| interval.redirects as f64), 0.0);
        assert_eq!(site.brain.view().state, ServerState::Normal);
    }
}

#[test]
fn above_1603_a_second_everything_is_redirected_below_d_out() {
    for cores in [1, 4] {
        for rate in [1700.0, 1900.0, 2050.0] {
            let intervals = Site::new(cores, 20_000, 7).settled(rate);
            let redirects = mean(&intervals, |interval| interval.redirects as f64);
            assert!(
                (redirects / rate - 1.0).abs() < 0.02,
                "{redirects:.0} of {rate}"
            );
            let peak = most(&intervals, |interval| interval.kilobytes_out);
            assert!(
                peak <= 1000.0,
                "{cores} cores, {rate}/s: peak {peak:.1} kB/s"
            );
            assert_eq!(mean(&intervals, |interval| interval.refused as f64), 0.0);
        }
    }
}

#[test]
fn beyond_2137_a_second_the_excess_is_refused() {
    let intervals = Site::new(1, 20_000, 7).settled(2600.0);
    let redirects = mean(&intervals, |interval| interval.redirects as f64);
    assert!((2100.0..2140.0).contains(&redirects), "{redirects:.0}/s");
    let refused = mean(&intervals, |interval| interval.refused as f64);
    assert!((400.0..520.0).contains(&refused), "{refused:.0}/s");
    let peak = most(&intervals, |interval| interval.kilobytes_out);
    assert!(peak <= 1000.0, "peak {peak:.1} kB/s");
}

#[test]
fn no_more_is_redirected_than_a_rescue_server_takes() {
    for cores in [1, 3] {
        let intervals = Site::new(cores, 1200, 7).settled(1500.0);
        for interval in &intervals {
            assert!(
                interval.redirected_kilobytes <= interval.granted_kilobytes,
                "{cores} cores: {interval:?}"
            );
            assert!(
                interval.kilobytes_out <= 1000.0,
                "{cores} cores: {interval:?}"
            );
        }
        // What nobody takes is served as far as D_out goes, and only then refused.
        let out = mean(&intervals, |interval| interval.kilobytes_out);
        assert!(out > 950.0, "{cores} cores: {out:.1} kB/s");
    }
}

#[test]
fn a_crowd_that_grows_tenfold_within_a_second_stays_below_d_out() {
    for cores in [1, 4] {
        let mut site = Site::new(cores, 20_000, 7);
        site.run(20, 200.0);
        site.intervals.clear();
        site.run(3, 2000.0);
        for interval in &site.intervals {
            assert!(
                interval.kilobytes_out <= 1000.0,
                "{cores} cores: {interval:?}"
            );
            assert!(interval.redirects > 1500, "{cores} cores: {interval:?}");
        }
    }
}

#[test]
fn the_first_redirect_comes_within_two_seconds_of_the_crowd() {
    let mut site = Site::new(1, 20_000, 7);
    site.run(5, 20.0);
    site.intervals.clear();
    site.run(2, 1000.0);
    assert!(site.intervals[1].redirects > 0, "{:?}", site.intervals);
}

#[test]
fn all_is_normal_within_n_low_and_three_intervals_after_the_crowd_left() {
    let mut site = Site::new(1, 2000, 7);
    site.run(20, 800.0);
    assert!(site.brain.view().rescue_servers.len() > 1);
    site.intervals.clear();
    site.run(33, 5.0);
    assert!(site.intervals[0].kilobytes_out < 100.0);
    let view = site.brain.view();
    assert_eq!(view.state, ServerState::Normal, "{:?}", view.decisions);
    assert!(view.rescue_servers.is_empty());
}

#[test]
fn a_site_outside_every_community_serves_what_it_can_and_never_asks() {
    let mut parameters = parameters("www.origin.example");
    parameters.rescue_port = 0;
    let mut brain = Brain::new(parameters, 1, Vec::new());
    assert_eq!(brain.next_deadline(), None);
    for second in 1..100 {
        let mut sample = fixtures::own(2000);
        sample.waiting = 50;
        let outputs = brain.handle(at(second), Input::IntervalEnded(sample));
        let asks = outputs
            .iter()
            .any(|output| !matches!(output, Output::Explain(_) | Output::SwapPlan));
        assert!(!asks, "{outputs:?}");
    }
    assert_eq!(brain.view().free, ByteRate::ZERO);
}
