//! Who is not to be helped any more gets nothing from that moment on, whatever grace it asked for.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::time::Duration;

use fixtures::{at, call, own, parameters, with_rescue};
use levee_control::{
    Brain, Destination, HelpLimits, Input, LinkLoss, OriginPhase, Output, PhaseName, RescueCall,
    ShutdownCause,
};
use levee_vocab::{HostName, LinkId};

const FOE: &str = "www.foe.example";
const FRIEND: &str = "www.friend.example";
const ONE: LinkId = LinkId::Inbound(1);
const TWO: LinkId = LinkId::Inbound(2);

fn name(host: &str) -> HostName {
    host.parse().unwrap()
}

/// Of a site that has its rescue servers in its name for an hour.
fn sos(link: LinkId, host: &str) -> Input {
    let call = RescueCall {
        name_ttl: Some(Duration::from_hours(1)),
        ..call(host)
    };
    Input::SosReceived { link, call }
}

/// A rescue server of both, which the foe permits to go on without it.
fn helping() -> Brain {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    brain.handle(at(1), sos(ONE, FOE));
    let length = Duration::from_hours(1);
    brain.handle(at(1), Input::PermitReceived { link: ONE, length });
    brain.handle(at(1), sos(TWO, FRIEND));
    brain
}

/// The same, where the rescue of the foe is over and its last visitors are served.
fn after_its_rescue() -> Brain {
    let mut brain = helping();
    brain.handle(at(2), Input::ShutdownReceived { link: ONE });
    assert!(matches!(phases(&brain)[0], OriginPhase::Ending { .. }));
    brain
}

/// The same, where the foe has died in its rescue.
fn without_it() -> Brain {
    let mut brain = helping();
    lose(&mut brain, 2, LinkLoss::Closed);
    assert!(matches!(phases(&brain)[0], OriginPhase::Orphaned { .. }));
    brain
}

fn lose(brain: &mut Brain, seconds: u64, loss: LinkLoss) -> Vec<Output> {
    let link = ONE;
    brain.handle(at(seconds), Input::LinkLost { link, loss })
}

fn phases(brain: &Brain) -> Vec<OriginPhase> {
    let plan = brain.plan();
    let origins = plan.hosts.origins.iter();
    origins.map(|origin| origin.phase).collect()
}

/// Both ways to us are closed to its visitors, and nothing is fetched; the friend is helped.
fn is_cut(brain: &Brain) {
    let until = phases(brain)[0];
    assert!(matches!(until, OriginPhase::Expired { .. }), "{until:?}");
    let plan = brain.plan();
    let alias = plan.hosts.origins[0].alias.clone();
    for host in [alias.as_str(), FOE] {
        let found = plan.hosts.destination(host);
        assert!(
            matches!(found, Destination::Expired(_)),
            "{host}: {found:?}"
        );
    }
    assert!(matches!(
        plan.hosts.destination(FRIEND),
        Destination::Rescued(_)
    ));
    assert!(!brain.view().origins.iter().any(|one| one.link == ONE));
    assert!(brain.view().ending.is_empty());
}

fn is_told(outputs: &[Output], words: &str) {
    let told = |output: &Output| matches!(output, Output::Explain(reason) if reason.to_string().contains(words));
    assert!(outputs.iter().any(told), "{outputs:?}");
}

const LATE: &str = "late visitors of www.foe.example are served no longer";

#[test]
fn who_is_no_member_any_more_is_served_no_longer_however_far_its_rescue_has_come() {
    let why = "ended: the other side is not trusted any more";
    for (mut brain, words) in [
        (helping(), why),
        (without_it(), why),
        (after_its_rescue(), LATE),
    ] {
        let outputs = lose(&mut brain, 3, LinkLoss::Distrusted);
        is_told(&outputs, words);
        is_cut(&brain);
        // Nothing that comes late opens it again.
        brain.handle(at(4), Input::AnswerReceived { link: ONE });
        lose(&mut brain, 4, LinkLoss::Closed);
        brain.handle(at(5), Input::IntervalEnded(own(10)));
        is_cut(&brain);
    }
}

#[test]
fn whom_the_operator_does_not_want_is_served_no_longer_from_the_reload_on() {
    let never = HelpLimits {
        never: vec![name("foe.example")],
        ..HelpLimits::default()
    };
    let only = HelpLimits {
        members: vec![name(FRIEND)],
        ..HelpLimits::default()
    };
    for limits in [never, only] {
        for mut brain in [helping(), without_it(), after_its_rescue()] {
            let mut changed = parameters("www.own.example");
            changed.help = limits.clone();
            brain.handle(at(3), Input::ParametersChanged(Box::new(changed)));
            is_cut(&brain);
        }
    }
}

#[test]
fn whom_we_have_expelled_ourselves_is_served_no_longer() {
    for mut brain in [helping(), without_it(), after_its_rescue()] {
        let is_live = matches!(phases(&brain)[0], OriginPhase::Live);
        let outputs = brain.handle(at(3), Input::MembersExpelled(vec![name(FOE)]));
        let (link, cause) = (ONE, ShutdownCause::Expelled);
        let is_shut_down = outputs.contains(&Output::ShutDown { link, cause });
        assert_eq!(is_shut_down, is_live);
        is_cut(&brain);
        assert_eq!(brain.view().phase, PhaseName::Rescue);
    }
}

#[test]
fn an_honest_end_has_its_grace_and_says_so() {
    let mut brain = after_its_rescue();
    let view = brain.view();
    assert_eq!(view.ending.len(), 1);
    let ending = &view.ending[0];
    assert_eq!((ending.link, ending.since), (ONE, at(1)));
    assert_eq!(ending.peer.host, name(FOE));
    // Somebody else's expulsion, and a reload that changes nothing for it.
    brain.handle(
        at(3),
        Input::MembersExpelled(vec![name("www.else.example")]),
    );
    let same = Box::new(parameters("www.own.example"));
    brain.handle(at(3), Input::ParametersChanged(same));
    let sample = with_rescue(own(10), ONE, 50);
    brain.handle(at(3000), Input::IntervalEnded(sample));
    assert!(matches!(phases(&brain)[0], OriginPhase::Ending { .. }));
    brain.handle(at(3700), Input::TimerFired);
    assert!(matches!(phases(&brain)[0], OriginPhase::Expired { .. }));
    assert!(!brain.view().ending.iter().any(|ending| ending.link == ONE));
}

#[test]
fn who_was_forgiven_and_has_called_again_is_not_cut_by_its_old_link() {
    let mut brain = after_its_rescue();
    let again = LinkId::Inbound(3);
    brain.handle(at(3), sos(again, FOE));
    lose(&mut brain, 4, LinkLoss::Distrusted);
    let phases = phases(&brain);
    assert!(matches!(phases[0], OriginPhase::Expired { .. }));
    assert_eq!(phases[2], OriginPhase::Live);
    let plan = brain.plan();
    assert!(matches!(
        plan.hosts.destination(FOE),
        Destination::Rescued(origin) if origin.link == again
    ));
}

#[test]
fn an_origin_that_lets_us_go_as_no_member_has_not_died() {
    let mut brain = helping();
    let outputs = lose(&mut brain, 2, LinkLoss::NotAMember);
    let why = "ended: for the other side this server is no member any more";
    is_told(&outputs, why);
    assert!(matches!(phases(&brain)[0], OriginPhase::Ending { .. }));
    // The same is true of one whose link was lost before we knew.
    let mut brain = without_it();
    let outputs = lose(&mut brain, 3, LinkLoss::NotAMember);
    is_told(&outputs, why);
    assert!(matches!(phases(&brain)[0], OriginPhase::Ending { .. }));
}
