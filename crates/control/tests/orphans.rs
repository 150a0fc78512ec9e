//! Rescue with the origin dead: what is held goes on until the permit ends.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::time::Duration;

use fixtures::*;
use levee_control::{
    Brain, Destination, Gate, GateLimits, HelpLimits, Input, LinkLoss, OriginPhase, Output,
    RescueCall,
};
use levee_vocab::{ByteRate, LinkId, ServerState};

const ORIGIN: LinkId = LinkId::Inbound(1);
/// Seconds for which resolvers remember the name.
const NAME_TTL: u64 = 30;

/// Of a site that takes its rescue servers into its DNS.
fn sos(link: LinkId, host: &str) -> Input {
    let call = RescueCall {
        name_ttl: Some(Duration::from_secs(NAME_TTL)),
        ..call(host)
    };
    Input::SosReceived { link, call }
}

/// A rescue server whose origin has permitted it to go on for so long.
fn permitted(seconds: u64) -> Brain {
    permitted_within(HelpLimits::default(), seconds)
}

/// The same, where the operator has these limits.
fn permitted_within(limits: HelpLimits, seconds: u64) -> Brain {
    let mut parameters = parameters("www.own.example");
    parameters.help = limits;
    let mut brain = Brain::new(parameters.check().unwrap(), 1, Vec::new());
    brain.handle(at(0), Input::IntervalEnded(own(10)));
    brain.handle(at(1), sos(ORIGIN, "www.origin.example"));
    let length = Duration::from_secs(seconds);
    brain.handle(
        at(1),
        Input::PermitReceived {
            link: ORIGIN,
            length,
        },
    );
    brain
}

fn lose(brain: &mut Brain, seconds: u64, loss: LinkLoss) {
    let link = ORIGIN;
    brain.handle(at(seconds), Input::LinkLost { link, loss });
}

fn phase(brain: &Brain) -> OriginPhase {
    brain.plan().hosts.origins[0].phase
}

#[test]
fn an_orphan_makes_room_for_who_comes_after_it() {
    let mut brain = permitted(3600);
    lose(&mut brain, 10, LinkLoss::Closed);
    let alone = brain.view().origins[0].rate;
    let told = brain.handle(at(11), sos(LinkId::Inbound(2), "www.second.example"));
    let view = brain.view();
    let rates: Vec<ByteRate> = view.origins.iter().map(|origin| origin.rate).collect();
    assert_eq!(rates.len(), 2);
    assert_eq!(rates[0], rates[1]);
    assert!(rates[0] < alone, "{rates:?} after {alone}");
    // It is dead: nothing is told to it.
    let is_told =
        |output: &Output| matches!(output, Output::TellRate { link, .. } if *link == ORIGIN);
    assert!(!told.iter().any(is_told), "{told:?}");
}

#[test]
fn an_origin_that_dies_with_a_permit_is_rescued_until_its_end() {
    let mut brain = permitted(3600);
    lose(&mut brain, 10, LinkLoss::Closed);
    let until = at(3601);
    assert_eq!(phase(&brain), OriginPhase::Orphaned { until });
    let view = brain.view();
    assert_eq!(view.origins[0].orphaned_until, Some(until));
    // Nothing is said to a link that is gone, and no fetch leads anywhere else.
    let mut sample = with_rescue(own(10), ORIGIN, 50);
    sample.elapsed = Duration::from_secs(1);
    let told = brain.handle(at(11), Input::IntervalEnded(sample));
    let is_said = |output: &Output| {
        matches!(
            output,
            Output::TellRate { .. } | Output::ShutDown { .. } | Output::DropLink { .. }
        )
    };
    assert!(!told.iter().any(is_said), "{told:?}");
}

#[test]
fn the_permit_ends_the_rescue() {
    let mut brain = permitted(60);
    lose(&mut brain, 10, LinkLoss::Silent);
    for second in 11..60 {
        let sample = with_rescue(own(10), ORIGIN, 50);
        brain.handle(at(second), Input::IntervalEnded(sample));
    }
    assert_eq!(phase(&brain), OriginPhase::Orphaned { until: at(61) });
    assert_eq!(
        brain.next_deadline(),
        Some(at(61)).min(brain.next_deadline())
    );
    brain.handle(at(61), Input::TimerFired);
    assert!(brain.view().origins.is_empty());
    // Resolvers have forgotten us after that, but those who ask anew have not.
    brain.handle(at(61 + NAME_TTL), Input::TimerFired);
    assert!(matches!(phase(&brain), OriginPhase::Expired { .. }));
    // Nobody takes us out of the zone of a dead site, so its own name is known as well.
    let plan = brain.plan();
    let hosts = &plan.hosts;
    let own_name = hosts.origins[0].origin.host.clone();
    let destination = hosts.destination(own_name.as_str());
    assert!(
        matches!(destination, Destination::Expired(_)),
        "{destination:?}"
    );
}

#[test]
fn an_origin_that_answers_again_takes_over() {
    let mut brain = permitted(3600);
    lose(&mut brain, 10, LinkLoss::Closed);
    brain.handle(at(20), Input::OriginReturned { link: ORIGIN });
    assert!(brain.view().origins.is_empty());
    assert!(matches!(phase(&brain), OriginPhase::Ending { .. }));
}

#[test]
fn an_origin_that_is_expelled_when_it_has_died_is_shown_no_longer() {
    let mut brain = permitted(3600);
    lose(&mut brain, 10, LinkLoss::Closed);
    lose(&mut brain, 20, LinkLoss::Distrusted);
    assert!(brain.view().origins.is_empty());
    assert!(matches!(phase(&brain), OriginPhase::Expired { .. }));
}

#[test]
fn an_origin_that_calls_again_is_rescued_anew() {
    let mut brain = permitted(3600);
    lose(&mut brain, 10, LinkLoss::Closed);
    brain.handle(at(20), sos(LinkId::Inbound(2), "www.origin.example"));
    let view = brain.view();
    assert_eq!(view.origins.len(), 1);
    assert_eq!(view.origins[0].orphaned_until, None);
}

#[test]
fn without_a_permit_or_after_garbage_a_lost_link_ends_the_rescue() {
    for (length, loss) in [
        (0, LinkLoss::Closed),
        (5, LinkLoss::Closed),
        (3600, LinkLoss::Garbage),
        (3600, LinkLoss::NotAMember),
    ] {
        let mut brain = permitted(length);
        lose(&mut brain, 10, loss);
        assert!(brain.view().origins.is_empty());
        assert!(matches!(phase(&brain), OriginPhase::Ending { .. }));
    }
}

#[test]
fn our_own_crowd_comes_before_an_orphan() {
    let mut brain = permitted(3600);
    lose(&mut brain, 10, LinkLoss::Closed);
    let told = brain.handle(at(11), Input::IntervalEnded(own(900)));
    assert!(brain.view().origins.is_empty());
    let is_shut_down = |output: &Output| matches!(output, Output::ShutDown { .. });
    assert!(!told.iter().any(is_shut_down), "{told:?}");
}

/// A crowd that comes by the name of a dead site heeds nothing, and has nowhere else to go.
#[test]
fn who_wants_more_of_an_orphan_than_there_is_takes_it_from_nobody() {
    let mut brain = permitted(3600);
    assert_eq!(brain.plan().help, None, "while it lives it heeds its RATE");
    lose(&mut brain, 10, LinkLoss::Closed);
    let [(slot, allotted)] = brain.plan().help.clone().unwrap().origins[..] else {
        panic!("one origin has a limit");
    };
    // More than it had while it lived, and less than T_high.
    let usable = brain.parameters().usable_rate();
    assert!(allotted > brain.parameters().rescue_rate() && allotted <= usable.times(0.75));
    let mut gate = Gate::new(GateLimits::default());
    for second in 11..200 {
        gate.adopt(at(second), brain.plan(), 1.0);
        // Ten kilobytes each, three times what our link carries.
        let asked = 0..300;
        let got = asked.filter(|_| gate.may_help(at(second), slot, 10_000));
        let got = got.count() as u64 * 10;
        if second > 20 {
            assert!(got <= allotted.as_kilobytes() + 10, "{got} of {allotted}");
            assert!(got + 10 >= allotted.as_kilobytes(), "{got} of {allotted}");
        }
        let mut sample = with_rescue(own(450), ORIGIN, got);
        // What it costs to turn the others away.
        sample.withheld_bytes = 400_000;
        brain.handle(at(second), Input::IntervalEnded(sample));
        assert!(matches!(phase(&brain), OriginPhase::Orphaned { .. }));
        assert_eq!(brain.plan().state, ServerState::Rescue);
    }
}

/// A large file leaves as fast as the link can, whatever its site may have on average.
#[test]
fn what_a_dead_site_uses_for_a_while_ends_nothing_while_nobody_of_ours_wants_the_link() {
    let busy = |mine: u64| {
        let mut sample = with_rescue(own(mine), ORIGIN, 1000 - mine);
        sample.waiting = 3;
        Input::IntervalEnded(sample)
    };
    for (mine, is_ended) in [(20, false), (200, true)] {
        let mut brain = permitted(3600);
        lose(&mut brain, 10, LinkLoss::Closed);
        for second in 11..21 {
            brain.handle(at(second), busy(mine));
        }
        assert_eq!(brain.view().origins.is_empty(), is_ended, "{mine}");
    }
}

#[test]
fn the_limits_of_help_bind_for_an_orphan_and_its_day_ends() {
    let limit = ByteRate::from_kilobytes(100);
    let limits = HelpLimits {
        member_rate: Some(limit),
        bytes_per_day: Some(300_000_000),
        ..HelpLimits::default()
    };
    let mut brain = permitted_within(limits, 7200);
    lose(&mut brain, 10, LinkLoss::Closed);
    assert!(matches!(phase(&brain), OriginPhase::Orphaned { .. }));
    // The cores keep to it by themselves.
    assert_eq!(brain.plan().help.clone().unwrap().origins, [(0, limit)]);
    let minutes = |minutes: u64, kilobytes: u64| {
        let mut sample = with_rescue(own(0), ORIGIN, kilobytes);
        sample.elapsed = Duration::from_mins(minutes);
        Input::IntervalEnded(sample)
    };
    brain.handle(at(600), minutes(10, 60_000));
    assert_eq!(brain.view().help.given, 60_000_000);
    brain.handle(at(3000), minutes(40, 235_000));
    assert!(brain.view().origins.is_empty(), "only the reserve is left");
    assert!(matches!(phase(&brain), OriginPhase::Ending { .. }));
}
