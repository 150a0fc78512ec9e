//! Who is expelled helps no more, and is asked no more. Who is late is let go for a while.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::*;
use levee_control::{Brain, Input, LinkLoss, Output, ShutdownCause};
use levee_vocab::LinkId;

fn expelled(host: &str) -> Input {
    Input::MembersExpelled(vec![host.parse().unwrap()])
}

/// A site in need, which has asked its only candidate.
fn asking() -> (Brain, LinkId) {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let found = vec![candidate("www.rescue1.example", 3000)];
    brain.handle(at(0), Input::CandidatesFound(found));
    let told = brain.handle(at(1), Input::IntervalEnded(own(900)));
    let asked = called(&told);
    (brain, asked.unwrap())
}

#[test]
fn a_rescue_server_that_is_expelled_gets_no_visitor_and_no_fetch_more() {
    let (mut brain, link) = asking();
    brain.handle(at(1), accepted(link, 400, true));
    assert_eq!(brain.plan().fetch_keys.len(), 1);
    let told = brain.handle(at(2), expelled("www.rescue1.example"));
    assert!(told.contains(&Output::DropLink { link }), "{told:?}");
    let plan = brain.plan();
    assert!(plan.fetch_keys.is_empty());
    assert!(
        plan.redirect
            .as_ref()
            .is_none_or(|one| one.targets.is_empty())
    );
}

#[test]
fn a_rescue_server_that_is_no_member_any_more_gets_no_fetch_more() {
    for (loss, keys) in [(LinkLoss::Distrusted, 0), (LinkLoss::Closed, 1)] {
        let (mut brain, link) = asking();
        brain.handle(at(1), accepted(link, 400, true));
        brain.handle(at(2), Input::LinkLost { link, loss });
        assert_eq!(brain.plan().fetch_keys.len(), keys, "{loss}");
    }
}

#[test]
fn who_is_expelled_is_not_asked_and_its_offer_not_taken() {
    let (mut brain, link) = asking();
    brain.handle(at(1), expelled("www.rescue1.example"));
    let told = brain.handle(at(1), accepted(link, 400, true));
    assert!(told.contains(&Output::DropLink { link }), "{told:?}");
    for second in 2..100 {
        let told = brain.handle(at(second), Input::IntervalEnded(own(900)));
        let asks = |output: &Output| matches!(output, Output::CallForHelp { .. });
        assert!(!told.iter().any(asks), "{told:?}");
    }
}

#[test]
fn who_delivers_late_is_let_go_and_left_alone_for_minutes() {
    let (mut brain, link) = asking();
    brain.handle(at(1), accepted(link, 400, true));
    let told = brain.handle(at(2), Input::DeliveryLate { link });
    let cause = ShutdownCause::TooSlow;
    assert!(told.contains(&Output::ShutDown { link, cause }), "{told:?}");
    let mut asked = None;
    for second in 3..600 {
        let told = brain.handle(at(second), Input::IntervalEnded(own(900)));
        asked = asked.or(called(&told).map(|_| second));
    }
    // Three hundred intervals, and up to half of that more or less.
    let asked = asked.unwrap();
    assert!((150..=455).contains(&asked), "{asked}");
}

#[test]
fn who_is_forgiven_is_asked_again() {
    let (mut brain, link) = asking();
    brain.handle(at(1), expelled("www.rescue1.example"));
    brain.handle(at(1), accepted(link, 400, true));
    brain.handle(at(2), Input::MembersExpelled(Vec::new()));
    let asked = (3..1000).any(|second| {
        let told = brain.handle(at(second), Input::IntervalEnded(own(900)));
        told.iter()
            .any(|output| matches!(output, Output::CallForHelp { .. }))
    });
    assert!(asked);
}
