//! Promises about drills, read from outside. What every input does to a drill stands in
//! `rescue_table.golden`.
#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::time::Duration;

use fixtures::{candidate, drill_call, drill_order, joined, own, parameters};
use levee_control::{
    Brain, DrillStop, Drills, Input, LoadSample, Output, PhaseName, Rejection, ShutdownCause,
};
use levee_vocab::{ByteRate, LinkId, Timestamp};

const FIRST: LinkId = LinkId::Outbound(1);
const SECOND: LinkId = LinkId::Outbound(2);

/// A site that knows two candidates, and its clock.
struct Site {
    brain: Brain,
    now: Timestamp,
}

impl Site {
    fn new() -> Self {
        let brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
        let now = Timestamp::from_seconds(10);
        let mut site = Self { brain, now };
        site.tell(Input::CandidatesFound(vec![
            candidate("www.rescue1.example", 5000),
            candidate("www.rescue2.example", 4000),
        ]));
        site
    }

    fn drilling() -> Self {
        let mut site = Self::new();
        site.tell(Input::DrillOrdered(drill_order(60)));
        site.tell(joined(FIRST, 400));
        site.tell(joined(SECOND, 400));
        site
    }

    fn tell(&mut self, input: Input) -> Vec<Output> {
        self.now = self.now + Duration::from_millis(100);
        self.brain.handle(self.now, input)
    }

    /// One interval with so many kB of own traffic; all rescue servers are alive.
    fn interval(&mut self, kilobytes: u64) -> Vec<Output> {
        self.measured(own(kilobytes))
    }

    /// One interval in which this was measured.
    fn measured(&mut self, sample: LoadSample) -> Vec<Output> {
        let rate = ByteRate::from_kilobytes(400);
        for link in [FIRST, SECOND] {
            self.tell(Input::RateReceived {
                link,
                rate,
                carried: None,
            });
        }
        self.now = self.now + Duration::from_secs(1);
        self.brain.handle(self.now, Input::IntervalEnded(sample))
    }

    fn phase(&self) -> PhaseName {
        self.brain.view().phase
    }
}

fn asked(outputs: &[Output]) -> Vec<(String, bool)> {
    let asked = outputs.iter().filter_map(|output| {
        if let Output::CallForHelp {
            candidate, call, ..
        } = output
        {
            return Some((candidate.site.host.to_string(), call.drill.is_some()));
        }
        None
    });
    asked.collect()
}

#[test]
fn each_member_is_asked_once_and_told_that_it_is_a_drill() {
    let mut site = Site::new();
    let first = site.tell(Input::DrillOrdered(drill_order(60)));
    assert_eq!(asked(&first), [("www.rescue1.example".to_owned(), true)]);
    let link = FIRST;
    let rejection = Rejection::Refused;
    let second = site.tell(Input::RescueRefused { link, rejection });
    assert_eq!(asked(&second), [("www.rescue2.example".to_owned(), true)]);
    site.tell(joined(SECOND, 400));
    for _ in 0..30 {
        assert_eq!(asked(&site.interval(10)), []);
    }
    assert_eq!(site.phase(), PhaseName::Drilling);
}

#[test]
fn who_declined_a_drill_is_asked_first_in_need() {
    let mut site = Site::new();
    site.tell(Input::DrillOrdered(drill_order(60)));
    let link = FIRST;
    let rejection = Rejection::Refused;
    site.tell(Input::RescueRefused { link, rejection });
    let crowd = site.interval(900);
    assert_eq!(asked(&crowd), [("www.rescue1.example".to_owned(), false)]);
}

#[test]
fn no_visitor_is_redirected_but_those_of_the_drill() {
    let site = Site::drilling();
    let plan = site.brain.plan();
    assert!(plan.redirect.is_none());
    let drill = plan.drill.clone().unwrap();
    assert_eq!(drill.redirect.targets.len(), 2);
    let usable = site.brain.parameters().usable_rate();
    assert_eq!(drill.redirect.usable, usable.times(0.1));
    assert_eq!(plan.fetch_keys.len(), 2);
}

#[test]
fn a_burst_of_one_interval_is_no_crowd_and_two_are() {
    let mut site = Site::drilling();
    site.interval(600);
    assert_eq!(site.phase(), PhaseName::Drilling);
    site.interval(100);
    site.interval(600);
    assert_eq!(site.phase(), PhaseName::Drilling);
    let outputs = site.interval(600);
    assert_eq!(site.phase(), PhaseName::Calling);
    let cause = ShutdownCause::DrillOver;
    for link in [FIRST, SECOND] {
        assert!(outputs.contains(&Output::ShutDown { link, cause }));
    }
    assert_eq!(asked(&outputs), [("www.rescue1.example".to_owned(), false)]);
}

/// So many kB for visitors, and so many that the drill caused.
fn with_drill(visitors: u64, drill: u64) -> LoadSample {
    LoadSample {
        drill_bytes: drill * 1000,
        ..own(visitors + drill)
    }
}

#[test]
fn what_the_drill_itself_causes_is_no_crowd() {
    let mut site = Site::drilling();
    for _ in 0..4 {
        site.measured(with_drill(100, 900));
        assert_eq!(site.phase(), PhaseName::Drilling);
    }
    site.measured(with_drill(600, 300));
    assert_eq!(site.phase(), PhaseName::Drilling);
    site.measured(with_drill(600, 300));
    assert_eq!(site.phase(), PhaseName::Calling);
}

#[test]
fn a_drill_leaves_no_rescue_behind() {
    let mut site = Site::drilling();
    site.tell(Input::DrillStopped(DrillStop::Client));
    let outputs = site.measured(with_drill(100, 900));
    assert_eq!(asked(&outputs), []);
    assert_eq!(site.phase(), PhaseName::Normal);
}

#[test]
fn a_drill_ends_at_the_rescue_server_although_its_origin_says_nothing() {
    let mut site = Site::new();
    let link = LinkId::Inbound(1);
    let call = drill_call("www.origin1.example", 20);
    site.tell(Input::SosReceived { link, call });
    assert_eq!(site.phase(), PhaseName::Rescue);
    for _ in 0..24 {
        site.tell(Input::AnswerReceived { link });
        site.interval(10);
    }
    assert!(site.brain.view().origins.is_empty());
}

#[test]
fn who_declines_drills_says_so_and_helps_in_need() {
    let mut site = Site::new();
    let mut declining = parameters("www.own.example");
    declining.drills = Drills::Declined;
    site.tell(Input::ParametersChanged(Box::new(declining)));
    let link = LinkId::Inbound(1);
    let call = drill_call("www.origin1.example", 20);
    let outputs = site.tell(Input::SosReceived { link, call });
    let is_no = |output: &Output| matches!(output, Output::RejectSos { .. });
    assert!(outputs.iter().any(is_no), "{outputs:?}");
    let link = LinkId::Inbound(2);
    let call = fixtures::call("www.origin1.example");
    site.tell(Input::SosReceived { link, call });
    assert_eq!(site.phase(), PhaseName::Rescue);
}
