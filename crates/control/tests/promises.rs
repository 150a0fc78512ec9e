//! The promises of rescue control, one by one, as the papers and the specification make them.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::{
    accepted, at, call, called, candidate, own, parameters, with_redirects, with_rescue,
};
use levee_control::{Brain, Input, Output, PhaseName, Rejection, ShutdownCause};
use levee_vocab::{ByteRate, LinkId, ServerState};

const FIRST: LinkId = LinkId::Outbound(1);
const SECOND: LinkId = LinkId::Outbound(2);

/// A site that knows three candidates.
fn site() -> Brain {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let found = vec![
        candidate("www.large.example", 5000),
        candidate("www.middle.example", 4000),
        candidate("www.small.example", 2000),
    ];
    brain.handle(at(0), Input::CandidatesFound(found));
    brain
}

/// A site in SOS with two rescue servers of 400 and 200 kB/s, at second 3.
fn rescued() -> Brain {
    let mut brain = site();
    brain.handle(at(1), Input::IntervalEnded(own(600)));
    brain.handle(at(1), accepted(FIRST, 400, false));
    brain.handle(
        at(2),
        Input::IntervalEnded(with_redirects(own(700), FIRST, 380)),
    );
    brain.handle(at(2), accepted(SECOND, 200, false));
    brain
}

/// A site that rescues so many origins, at second 1.
fn rescuing(origins: u64) -> Brain {
    let mut brain = site();
    for number in 1..=origins {
        let link = LinkId::Inbound(number);
        let call = call(&format!("www.origin{number}.example"));
        brain.handle(at(1), Input::SosReceived { link, call });
    }
    brain
}

fn shut_down(outputs: &[Output]) -> Vec<(LinkId, ShutdownCause)> {
    let ended = |output: &Output| {
        if let Output::ShutDown { link, cause } = output {
            Some((*link, *cause))
        } else {
            None
        }
    };
    outputs.iter().filter_map(ended).collect()
}

fn told(outputs: &[Output]) -> Vec<(LinkId, u64)> {
    let rate = |output: &Output| {
        if let Output::TellRate { link, rate, .. } = output {
            Some((*link, rate.as_kilobytes()))
        } else {
            None
        }
    };
    outputs.iter().filter_map(rate).collect()
}

#[test]
fn one_more_is_asked_when_all_are_used_up_and_not_before() {
    let mut brain = rescued();
    let sample = |first, second| {
        let sample = with_redirects(own(700), FIRST, first);
        Input::IntervalEnded(with_redirects(sample, SECOND, second))
    };
    assert_eq!(called(&brain.handle(at(3), sample(400, 170))), None);
    let third = called(&brain.handle(at(4), sample(400, 180)));
    assert_eq!(third, Some(LinkId::Outbound(3)));
    // The third does not answer at once; nobody else is left, and nobody is asked twice.
    assert_eq!(called(&brain.handle(at(5), sample(400, 200))), None);
}

#[test]
fn a_candidate_that_says_nothing_does_not_hold_up_the_next_round() {
    let mut brain = site();
    let crowd = || Input::IntervalEnded(own(600));
    assert_eq!(called(&brain.handle(at(1), crowd())), Some(FIRST));
    assert_eq!(called(&brain.handle(at(2), crowd())), Some(SECOND));
    brain.handle(at(2), accepted(SECOND, 400, false));
    // Given up after two and a half intervals; its late answer changes nothing.
    let outputs = brain.handle(at(4), Input::TimerFired);
    assert!(outputs.contains(&Output::DropLink { link: FIRST }));
    let outputs = brain.handle(at(4), accepted(FIRST, 400, false));
    assert_eq!(outputs, [Output::DropLink { link: FIRST }]);
    assert_eq!(brain.view().rescue_servers.len(), 1);
}

#[test]
fn a_candidate_that_says_no_is_followed_by_the_next_at_once() {
    let mut brain = site();
    brain.handle(at(1), Input::IntervalEnded(own(600)));
    let rejection = Rejection::Refused;
    for number in 1..=2 {
        let link = LinkId::Outbound(number);
        let outputs = brain.handle(at(1), Input::RescueRefused { link, rejection });
        assert_eq!(called(&outputs), Some(LinkId::Outbound(number + 1)));
    }
    let link = LinkId::Outbound(3);
    let outputs = brain.handle(at(1), Input::RescueRefused { link, rejection });
    assert_eq!(called(&outputs), None);
    assert!(outputs.contains(&Output::SearchRegistry { count: 16 }));
    // A new one is asked as soon as the registry knows it.
    let found = vec![candidate("www.new.example", 3000)];
    let outputs = brain.handle(at(1), Input::CandidatesFound(found));
    assert_eq!(called(&outputs), Some(LinkId::Outbound(4)));
}

#[test]
fn the_smallest_rescue_server_goes_when_all_are_hardly_used() {
    let mut brain = rescued();
    for second in 3..32 {
        let outputs = brain.handle(at(second), Input::IntervalEnded(own(300)));
        assert_eq!(shut_down(&outputs), []);
    }
    let outputs = brain.handle(at(32), Input::IntervalEnded(own(300)));
    assert_eq!(
        shut_down(&outputs),
        [(SECOND, ShutdownCause::PartialRelease)]
    );
    assert_eq!(brain.view().state, ServerState::Sos);
}

#[test]
fn all_rescue_servers_go_when_the_crowd_has_left() {
    let mut brain = rescued();
    for second in 3..32 {
        let outputs = brain.handle(at(second), Input::IntervalEnded(own(99)));
        assert_eq!(shut_down(&outputs), []);
    }
    let outputs = brain.handle(at(32), Input::IntervalEnded(own(99)));
    let cause = ShutdownCause::CompleteRelease;
    assert_eq!(shut_down(&outputs), [(FIRST, cause), (SECOND, cause)]);
    assert_eq!(brain.view().phase, PhaseName::Normal);
    assert!(brain.plan().redirect.is_none());
}

#[test]
fn origins_share_equally_and_get_back_what_others_leave() {
    let mut brain = rescuing(1);
    assert_eq!(brain.view().free, ByteRate::from_kilobytes(250));
    let (link, newcomer) = (LinkId::Inbound(2), call("www.origin2.example"));
    let outputs = brain.handle(
        at(2),
        Input::SosReceived {
            link,
            call: newcomer,
        },
    );
    assert_eq!(told(&outputs), [(LinkId::Inbound(1), 225)]);
    brain.handle(at(3), Input::ShutdownReceived { link });
    let outputs = brain.handle(at(4), Input::IntervalEnded(own(10)));
    assert_eq!(told(&outputs), [(LinkId::Inbound(1), 450)]);
}

#[test]
fn a_rate_is_told_in_each_interval_and_an_origin_that_never_answers_is_dead_after_three() {
    let mut brain = rescuing(1);
    let link = LinkId::Inbound(1);
    let outputs = brain.handle(at(2), Input::IntervalEnded(own(10)));
    assert_eq!(told(&outputs), [(link, 450)]);
    brain.handle(at(2), Input::AnswerReceived { link });
    assert_eq!(
        told(&brain.handle(at(3), Input::IntervalEnded(own(10)))).len(),
        1
    );
    assert_eq!(brain.next_deadline(), Some(at(6)));
    let outputs = brain.handle(at(6), Input::TimerFired);
    assert!(outputs.contains(&Output::DropLink { link }));
    assert_eq!(brain.view().state, ServerState::Normal);
}

#[test]
fn an_origin_that_sends_nobody_is_let_go_after_its_idle_time() {
    let mut brain = site();
    let link = LinkId::Inbound(1);
    let mut call = call("www.origin.example");
    call.beats = false;
    brain.handle(at(1), Input::SosReceived { link, call });
    let visits = with_rescue(own(10), link, 40);
    brain.handle(at(200), Input::IntervalEnded(visits));
    assert_eq!(shut_down(&brain.handle(at(499), Input::TimerFired)), []);
    let outputs = brain.handle(at(500), Input::TimerFired);
    assert_eq!(shut_down(&outputs), [(link, ShutdownCause::Idle)]);
}

#[test]
fn rescue_traffic_that_a_lower_rate_does_not_curb_ends_the_largest_rescue() {
    let mut brain = rescuing(2);
    let sample = || {
        let mut sample = with_rescue(own(100), LinkId::Inbound(1), 300);
        let more = with_rescue(own(0), LinkId::Inbound(2), 500);
        sample.rescue.extend(more.rescue);
        Input::IntervalEnded(sample)
    };
    for second in 2..4 {
        let outputs = brain.handle(at(second), sample());
        assert_eq!(shut_down(&outputs), []);
        for number in 1..=2 {
            let link = LinkId::Inbound(number);
            brain.handle(at(second), Input::AnswerReceived { link });
        }
    }
    let outputs = brain.handle(at(4), sample());
    assert_eq!(
        shut_down(&outputs),
        [(LinkId::Inbound(2), ShutdownCause::Overload)]
    );
    assert_eq!(brain.view().origins.len(), 1);
}

#[test]
fn a_rescue_server_with_a_crowd_of_its_own_ends_its_rescues_before_it_asks_for_help() {
    let mut brain = rescuing(2);
    let outputs = brain.handle(at(2), Input::IntervalEnded(own(600)));
    assert_eq!(shut_down(&outputs).len(), 2);
    assert_eq!(called(&outputs), None);
    let confirmed = |number| Input::AnswerReceived {
        link: LinkId::Inbound(number),
    };
    assert_eq!(called(&brain.handle(at(2), confirmed(1))), None);
    assert_eq!(called(&brain.handle(at(2), confirmed(2))), Some(FIRST));
}

#[test]
fn the_registry_is_searched_from_the_start_and_its_absence_costs_nothing() {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let outputs = brain.handle(brain.next_deadline().unwrap(), Input::TimerFired);
    let free = ByteRate::from_kilobytes(500);
    assert!(outputs.contains(&Output::Register { free }));
    assert!(outputs.contains(&Output::SearchRegistry { count: 16 }));
    let mut brain = site();
    assert_eq!(brain.handle(at(5), Input::SearchFailed), []);
    assert_eq!(brain.view().candidates.len(), 3);
}

#[test]
fn decisions_are_sentences_and_do_not_flood() {
    let mut brain = rescued();
    for second in 3..300 {
        let mut sample = with_redirects(own(700), FIRST, 390);
        sample = with_redirects(sample, SECOND, 190);
        sample.refused = 5;
        brain.handle(at(second), Input::IntervalEnded(sample));
    }
    let decisions = brain.view().decisions;
    assert!(decisions.len() < 60, "{} decisions", decisions.len());
    let sentences: Vec<String> = decisions.iter().map(|d| d.reason.to_string()).collect();
    let asked = "asking www.large.example for help: it offers 5000.0 kB/s";
    assert!(sentences.iter().any(|s| s == asked), "{sentences:#?}");
    assert!(brain.story().contains("# refused "), "{}", brain.story());
}
