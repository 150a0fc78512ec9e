//! H5: a rescue server that sends visitors back is used less, and somebody else is asked.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::{accepted, at, called, candidate, own, parameters, with_redirects};
use levee_control::{Brain, Input, LoadSample};
use levee_vocab::{ByteRate, LinkId};

/// A site in SOS with one rescue server of 400 kB/s, and others that it could ask.
fn rescued() -> (Brain, LinkId) {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let found = (1..=3).map(|number| candidate(&format!("www.rescue{number}.example"), 5000));
    brain.handle(at(0), Input::CandidatesFound(found.collect()));
    let outputs = brain.handle(at(1), Input::IntervalEnded(own(900)));
    let link = called(&outputs).unwrap();
    brain.handle(at(1), accepted(link, 400, false));
    (brain, link)
}

/// A full link, and a rescue server that is used to a tenth; so many of its visitors come back.
fn crowd(link: LinkId, came_back: u64) -> LoadSample {
    let mut sample = with_redirects(own(900), link, 40);
    let redirects = sample.redirects.get_mut(&link).unwrap();
    redirects.requests = 20;
    sample.came_back.insert(link, came_back);
    sample
}

fn rate(brain: &Brain) -> ByteRate {
    brain.plan().redirect.as_ref().unwrap().targets[0].rate
}

/// Twenty seconds of the crowd; gives whom else the site asks for help.
fn play(brain: &mut Brain, link: LinkId, came_back: u64) -> Option<LinkId> {
    let seconds = (2..22).map(at);
    let inputs = seconds.map(|now| (now, Input::IntervalEnded(crowd(link, came_back))));
    let asked = inputs.map(|(now, input)| called(&brain.handle(now, input)));
    asked.fold(None, Option::or)
}

#[test]
fn who_sends_all_visitors_back_is_hardly_used_and_another_is_asked() {
    let (mut brain, link) = rescued();
    assert!(play(&mut brain, link, 20).is_some());
    assert_eq!(rate(&brain), ByteRate::from_kilobytes(20));
    let told = brain.view().decisions.into_iter();
    let told = told.map(|entry| entry.reason.to_string());
    let text = "of the visitors redirected to www.rescue";
    assert!(told.filter(|told| told.contains(text)).count() >= 1);
}

#[test]
fn who_keeps_them_is_used_as_it_offered_and_nobody_else_is_asked() {
    let (mut brain, link) = rescued();
    assert_eq!(play(&mut brain, link, 1), None);
    assert_eq!(rate(&brain), ByteRate::from_kilobytes(400));
}
