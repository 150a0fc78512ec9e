//! Rescue servers of one origin know of each other, as long as they help.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::{accepted, at, call, called, candidate, own, parameters, peers, site};
use fixtures::{with_redirects, with_rescue};
use levee_control::{Brain, Destination, Homes, Input, LinkLoss, Output};
use levee_vocab::{ByteRate, LinkId};

const FIRST: LinkId = LinkId::Outbound(1);
const SECOND: LinkId = LinkId::Outbound(2);
const ORIGIN: LinkId = LinkId::Inbound(1);

/// Whom `outputs` tell how many members.
fn told(outputs: &[Output]) -> Vec<(LinkId, Vec<u64>)> {
    let told = outputs.iter().filter_map(|output| {
        if let Output::TellPeers { link, members } = output {
            let rates = members.iter().map(|peer| peer.rate.as_kilobytes());
            return Some((*link, rates.collect()));
        }
        None
    });
    told.collect()
}

/// An origin that one helps with 400 kB/s.
fn helped() -> Brain {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let members = (1..5).map(|number| candidate(&format!("www.rescue{number}.example"), 5000));
    brain.handle(at(0), Input::CandidatesFound(members.collect()));
    let outputs = brain.handle(at(1), Input::IntervalEnded(own(600)));
    assert_eq!(called(&outputs), Some(FIRST));
    assert_eq!(told(&brain.handle(at(1), accepted(FIRST, 400, false))), []);
    brain
}

/// The same, and another with 700 kB/s.
fn helped_by_two() -> Brain {
    let mut brain = helped();
    let used = with_redirects(own(700), FIRST, 400);
    let outputs = brain.handle(at(2), Input::IntervalEnded(used));
    assert_eq!(called(&outputs), Some(SECOND));
    let outputs = brain.handle(at(2), accepted(SECOND, 700, false));
    assert_eq!(
        told(&outputs),
        [(FIRST, vec![700, 400]), (SECOND, vec![700, 400])]
    );
    brain
}

#[test]
fn rescue_servers_are_told_of_each_other_when_one_comes_or_leaves() {
    let mut brain = helped_by_two();
    let rate = ByteRate::from_kilobytes(90);
    let slower = Input::RateReceived {
        link: FIRST,
        rate,
        carried: None,
    };
    assert_eq!(told(&brain.handle(at(3), slower)), []);
    let loss = LinkLoss::Closed;
    let lost = Input::LinkLost { link: SECOND, loss };
    assert_eq!(told(&brain.handle(at(4), lost)), [(FIRST, vec![])]);
}

#[test]
fn nobody_is_told_anything_when_all_are_let_go() {
    let mut brain = helped_by_two();
    assert_eq!(told(&brain.handle(at(3), Input::DrainStarted)), []);
}

/// The homes of the only origin that `brain` knows.
fn homes(brain: &Brain) -> Option<Homes> {
    let plan = brain.plan();
    let route = match plan.hosts.destination("www-vh1.aliases.example.net") {
        Destination::Rescued(route) => route,
        Destination::NotOurs | Destination::Restored(..) | Destination::Expired(_) => {
            panic!("the alias should be served")
        }
    };
    route.homes.as_deref().cloned()
}

#[test]
fn a_rescue_server_asks_the_others_while_it_helps() {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let call = call("www.origin.example");
    brain.handle(at(0), Input::SosReceived { link: ORIGIN, call });
    assert_eq!(homes(&brain), None);
    let told = peers(&[1, 2]);
    let expected = Homes::new(&told, &site("www-vh1.aliases.example.net"));
    let told = |link| Input::PeersReceived {
        link,
        peers: told.clone(),
    };
    assert_eq!(brain.handle(at(1), told(LinkId::Inbound(9))), []);
    assert_eq!(brain.handle(at(1), told(ORIGIN)), [Output::SwapPlan]);
    assert_eq!(brain.handle(at(1), told(ORIGIN)), []);
    assert_eq!(homes(&brain), expected);
    brain.handle(at(2), Input::IntervalEnded(with_rescue(own(0), ORIGIN, 10)));
    assert_eq!(homes(&brain), expected);
    let alone = peers(&[]);
    let alone = Input::PeersReceived {
        link: ORIGIN,
        peers: alone,
    };
    brain.handle(at(3), alone);
    assert_eq!(homes(&brain), None);
    brain.handle(at(4), told(ORIGIN));
    brain.handle(at(5), Input::ShutdownReceived { link: ORIGIN });
    assert_eq!(homes(&brain), None);
}
