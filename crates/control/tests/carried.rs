//! Rescue servers that carry visitors whom nobody redirected, because our name in DNS leads there.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::{accepted, at, candidate, own, parameters};
use levee_control::{Brain, Input, Output, Redirects};
use levee_vocab::{ByteRate, LinkId, ServerState};

const FIRST: LinkId = LinkId::Outbound(1);
const SECOND: LinkId = LinkId::Outbound(2);
/// N_low, and some more.
const CALM: u64 = 40;

/// An origin of 1000 kB/s that one helps with 2000 kB/s.
fn helped() -> Brain {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let members = (1..3).map(|number| candidate(&format!("www.rescue{number}.example"), 5000));
    brain.handle(at(0), Input::CandidatesFound(members.collect()));
    brain.handle(at(1), Input::IntervalEnded(own(600)));
    brain.handle(at(1), accepted(FIRST, 2000, true));
    brain
}

/// So many calm intervals at home, while each rescue server carries so many kB/s.
fn calm(brain: &mut Brain, from: u64, carried: &[(LinkId, u64)]) -> Vec<Output> {
    let mut outputs = Vec::new();
    for second in from..from + CALM {
        for &(link, kilobytes) in carried {
            let told = Input::RateReceived {
                link,
                rate: ByteRate::from_kilobytes(2000),
                carried: Some(ByteRate::from_kilobytes(kilobytes)),
            };
            outputs.extend(brain.handle(at(second), told));
        }
        outputs.extend(brain.handle(at(second), Input::IntervalEnded(own(10))));
    }
    outputs
}

fn let_go(outputs: &[Output]) -> usize {
    let is_one = |output: &&Output| matches!(output, Output::ShutDown { .. });
    outputs.iter().filter(is_one).count()
}

#[test]
fn who_carries_our_visitors_by_dns_is_not_let_go_because_we_are_calm() {
    let mut brain = helped();
    assert_eq!(let_go(&calm(&mut brain, 2, &[(FIRST, 900)])), 0);
    assert_eq!(brain.view().state, ServerState::Sos);
}

#[test]
fn it_is_let_go_when_what_it_carries_would_find_room() {
    let mut brain = helped();
    assert_eq!(let_go(&calm(&mut brain, 2, &[(FIRST, 250)])), 1);
    assert_eq!(brain.view().state, ServerState::Normal);
}

#[test]
fn who_does_not_say_what_it_carries_is_let_go_as_ever() {
    let mut brain = helped();
    let mut outputs = Vec::new();
    for second in 2..2 + CALM {
        let told = Input::RateReceived {
            link: FIRST,
            rate: ByteRate::from_kilobytes(2000),
            carried: None,
        };
        outputs.extend(brain.handle(at(second), told));
        outputs.extend(brain.handle(at(second), Input::IntervalEnded(own(10))));
    }
    assert_eq!(let_go(&outputs), 1);
}

#[test]
fn of_two_that_carry_much_none_is_let_go_and_of_two_that_carry_little_the_smaller() {
    let mut brain = helped();
    let used = fixtures::with_redirects(own(700), FIRST, 2000);
    brain.handle(at(2), Input::IntervalEnded(used));
    brain.handle(at(2), accepted(SECOND, 3000, true));
    let much = [(FIRST, 1500), (SECOND, 1500)];
    assert_eq!(let_go(&calm(&mut brain, 3, &much)), 0);
    let little = [(FIRST, 160), (SECOND, 160)];
    let outputs = calm(&mut brain, 3 + CALM, &little);
    let gone = outputs.iter().find_map(|output| {
        if let Output::ShutDown { link, .. } = output {
            Some(*link)
        } else {
            None
        }
    });
    assert_eq!(gone, Some(FIRST));
}

#[test]
fn without_redirects_one_more_is_asked_while_the_load_is_high_and_none_below() {
    let mut parameters = parameters("www.own.example");
    parameters.redirects = Redirects::Off;
    let mut brain = Brain::new(parameters, 1, Vec::new());
    let members = (1..4).map(|number| candidate(&format!("www.rescue{number}.example"), 5000));
    brain.handle(at(0), Input::CandidatesFound(members.collect()));
    brain.handle(at(1), Input::IntervalEnded(own(600)));
    brain.handle(at(1), accepted(FIRST, 2000, true));
    let calls = |outputs: &[Output]| {
        let is_one = |output: &&Output| matches!(output, Output::CallForHelp { .. });
        outputs.iter().filter(is_one).count()
    };
    assert_eq!(
        calls(&brain.handle(at(2), Input::IntervalEnded(own(600)))),
        0
    );
    assert_eq!(
        calls(&brain.handle(at(3), Input::IntervalEnded(own(800)))),
        1
    );
}
