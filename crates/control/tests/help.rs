//! What an operator gives at most holds, whatever origins and their visitors do, and one origin's
//! limit is nobody else's.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fixtures::{at, call, own, parameters, traffic, with_rescue};
use levee_control::{
    Brain, CallRefusal, Gate, GateLimits, HelpLimits, Input, LoadSample, OriginPhase, Output,
    Parameters, ShutdownCause,
};
use levee_vocab::{ByteRate, HostName, LinkId, Timestamp};
use proptest::prelude::*;

const MB: u64 = 1_000_000;
const DAY: u64 = 24 * 3600;
/// kB of each response.
const RESPONSE: u64 = 10;
const ONE: LinkId = LinkId::Inbound(1);
const TWO: LinkId = LinkId::Inbound(2);

/// Our site, which could spare 500 kB/s, with these limits.
fn limited(limits: HelpLimits) -> Parameters {
    let mut parameters = parameters("www.own.example");
    parameters.help = limits;
    parameters.check().unwrap()
}

fn brain(limits: HelpLimits) -> Brain {
    Brain::new(limited(limits), 7, Vec::new())
}

fn kilobytes(count: u64) -> ByteRate {
    ByteRate::from_kilobytes(count)
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

fn sos(link: LinkId, host: &str) -> Input {
    Input::SosReceived {
        link,
        call: call(host),
    }
}

/// The rates that were told.
fn told(outputs: &[Output]) -> Vec<(LinkId, ByteRate)> {
    let told = |output: &Output| {
        if let Output::TellRate { link, rate, .. } = output {
            Some((*link, *rate))
        } else {
            None
        }
    };
    outputs.iter().filter_map(told).collect()
}

/// The rate that an SOS was accepted with.
fn accepted_with(outputs: &[Output]) -> Option<ByteRate> {
    outputs.iter().find_map(|output| {
        if let Output::AcceptSos { rate, .. } = output {
            Some(*rate)
        } else {
            None
        }
    })
}

fn shutdowns(outputs: &[Output]) -> Vec<(LinkId, ShutdownCause)> {
    let shutdown = |output: &Output| {
        if let Output::ShutDown { link, cause } = output {
            Some((*link, *cause))
        } else {
            None
        }
    };
    outputs.iter().filter_map(shutdown).collect()
}

/// An interval of so many minutes, in which the first origin was given so many kB.
fn in_minutes(minutes: u64, kilobytes: u64) -> LoadSample {
    let mut sample = with_rescue(own(0), ONE, kilobytes);
    sample.elapsed = Duration::from_mins(minutes);
    sample
}

fn refused_for(brain: &Brain) -> Option<CallRefusal> {
    brain.view().help.refused.last().map(|call| call.refusal)
}

#[test]
fn the_rate_is_what_the_registry_and_origins_are_told() {
    let mut brain = brain(HelpLimits {
        rate: Some(kilobytes(200)),
        ..HelpLimits::default()
    });
    let outputs = brain.handle(at(1), Input::TimerFired);
    assert!(outputs.contains(&Output::Register {
        free: kilobytes(200)
    }));
    let outputs = brain.handle(at(2), sos(ONE, "www.site1.example"));
    assert_eq!(accepted_with(&outputs), Some(kilobytes(180)));
    // A second one shares it.
    assert_eq!(brain.view().free, kilobytes(100));
    let outputs = brain.handle(at(3), sos(TWO, "www.site2.example"));
    assert_eq!(accepted_with(&outputs), Some(kilobytes(90)));
    assert_eq!(told(&outputs), [(ONE, kilobytes(90))]);
    let help = brain.plan().help.clone().unwrap();
    assert_eq!(help.all, Some(kilobytes(200)));
    assert_eq!(help.origins, [(0, kilobytes(100)), (1, kilobytes(100))]);
}

#[test]
fn what_one_origin_may_not_have_is_for_the_others() {
    let mut brain = brain(HelpLimits {
        member_bytes_per_day: Some(90 * MB),
        ..HelpLimits::default()
    });
    brain.handle(at(1), sos(ONE, "www.site1.example"));
    // 60 MB of its 90 are gone, in a long interval: the rest goes at 50 kB/s.
    brain.handle(at(2), Input::IntervalEnded(in_minutes(5, 60_000)));
    brain.handle(at(3), sos(TWO, "www.site2.example"));
    let origins = brain.plan().help.clone().unwrap().origins;
    assert_eq!(origins, [(0, kilobytes(50)), (1, kilobytes(150))]);
}

#[test]
fn rates_shrink_before_the_day_is_over_and_its_end_is_told() {
    let mut brain = brain(HelpLimits {
        bytes_per_day: Some(300 * MB),
        ..HelpLimits::default()
    });
    brain.handle(at(0), sos(ONE, "www.site1.example"));
    let mut last = kilobytes(450);
    let mut shrunk = 0;
    for second in 1..3600 {
        let rate = brain.view().origins[0].rate;
        let sample = with_rescue(own(0), ONE, rate.as_kilobytes());
        let outputs = brain.handle(at(second), Input::IntervalEnded(sample));
        brain.handle(at(second), Input::AnswerReceived { link: ONE });
        let ended = shutdowns(&outputs);
        if !ended.is_empty() {
            assert_eq!(ended, [(ONE, ShutdownCause::DayGiven)]);
            break;
        }
        let rate = brain.view().origins[0].rate;
        assert!(rate <= last, "{second}: {rate} after {last}");
        shrunk += u32::from(rate < last);
        last = rate;
    }
    assert!(shrunk > 100, "{shrunk} steps");
    assert!(last < kilobytes(50), "{last} at the end");
    let view = brain.view();
    assert!(view.origins.is_empty());
    assert!((280 * MB..300 * MB).contains(&view.help.given));
    // Nothing is offered, and who asks is told why.
    assert_eq!(view.free, ByteRate::ZERO);
    brain.handle(at(4000), sos(TWO, "www.site2.example"));
    assert_eq!(refused_for(&brain), Some(CallRefusal::DayGiven));
    brain.handle(at(3600 * 26), Input::TimerFired);
    assert_eq!(brain.view().free, kilobytes(500));
}

#[test]
fn who_is_never_helped_is_refused_and_shown() {
    let mut brain = brain(HelpLimits {
        members: vec![name("friend.example")],
        never: vec![name("foe.friend.example")],
        ..HelpLimits::default()
    });
    for (link, host, refusal) in [
        (1, "www.foe.friend.example", CallRefusal::Never),
        (2, "www.stranger.example", CallRefusal::NotNamed),
    ] {
        let outputs = brain.handle(at(link), sos(LinkId::Inbound(link), host));
        let is_rejected = |output: &Output| matches!(output, Output::RejectSos { .. });
        assert!(outputs.iter().any(is_rejected), "{outputs:?}");
        assert_eq!(refused_for(&brain), Some(refusal));
    }
    let outputs = brain.handle(at(3), sos(LinkId::Inbound(3), "www.friend.example"));
    assert!(accepted_with(&outputs).is_some());
    assert_eq!(brain.view().help.refused_by_kind["never"], 1);
}

#[test]
fn a_reload_changes_what_is_given_at_once() {
    let mut brain = brain(HelpLimits::default());
    brain.handle(at(1), sos(ONE, "www.site1.example"));
    brain.handle(at(2), sos(TWO, "www.site2.example"));
    let changed = limited(HelpLimits {
        rate: Some(kilobytes(100)),
        never: vec![name("www.site2.example")],
        ..HelpLimits::default()
    });
    let outputs = brain.handle(at(3), Input::ParametersChanged(Box::new(changed)));
    assert_eq!(shutdowns(&outputs), [(TWO, ShutdownCause::Drain)]);
    assert_eq!(told(&outputs), [(ONE, kilobytes(90))]);
    let mut changed = limited(HelpLimits::default());
    changed.origins_max = 1;
    brain.handle(at(4), Input::ParametersChanged(Box::new(changed)));
    brain.handle(at(5), sos(TWO, "www.site2.example"));
    assert_eq!(refused_for(&brain), Some(CallRefusal::Full));
    assert_eq!(brain.plan().help, None);
}

#[test]
fn fewer_origins_after_a_reload_are_those_that_came_first() {
    let mut brain = brain(HelpLimits::default());
    for number in 1..5 {
        let host = format!("www.site{number}.example");
        let now = Timestamp::from_milliseconds(number);
        brain.handle(now, sos(LinkId::Inbound(5 - number), &host));
    }
    let mut changed = limited(HelpLimits::default());
    changed.origins_max = 2;
    brain.handle(at(1), Input::ParametersChanged(Box::new(changed)));
    let origins = brain.view().origins;
    let hosts: Vec<_> = origins.iter().map(|one| one.peer.host.as_str()).collect();
    assert_eq!(hosts, ["www.site2.example", "www.site1.example"]);
}

#[test]
fn what_was_given_outlives_a_restart() {
    let limits = HelpLimits {
        bytes_per_day: Some(100 * MB),
        ..HelpLimits::default()
    };
    let mut before = brain(limits.clone());
    before.handle(at(100), sos(ONE, "www.site1.example"));
    let sample = Input::IntervalEnded(in_minutes(5, 98_000));
    let outputs = before.handle(at(101), sample);
    assert!(outputs.contains(&Output::RememberGiven));
    let kept = (before.aliases(), before.given());
    // Another machine, whose clock begins anew.
    let mut after = Brain::restore(limited(limits), 8, kept);
    assert_eq!(after.view().help.given, 98 * MB);
    after.handle(at(1), sos(ONE, "www.site1.example"));
    assert_eq!(refused_for(&after), Some(CallRefusal::DayGiven));
    after.handle(at(26 * 3600), Input::TimerFired);
    assert_eq!(after.view().help.given, 0);
}

/// A server that helps, its gate, and origins that may not listen to it.
struct World {
    brain: Brain,
    gate: Gate,
    now: u64,
    helped: BTreeSet<LinkId>,
    /// What each origin was given, by the second.
    given: Vec<(u64, BTreeMap<LinkId, u64>)>,
}

/// An origin whose visitors ask for so many kB in each second.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    kilobytes: u64,
    calls: bool,
}

fn crowds() -> impl Strategy<Value = Vec<Crowd>> {
    let crowd = (0..2000_u64, any::<bool>());
    let crowd = crowd.prop_map(|(kilobytes, calls)| Crowd { kilobytes, calls });
    prop::collection::vec(crowd, 3)
}

fn limits() -> impl Strategy<Value = HelpLimits> {
    let rates = || prop::option::of((1..600_u64).prop_map(kilobytes));
    let days = || prop::option::of((1..200_u64).prop_map(|megabytes| megabytes * MB));
    (rates(), days(), rates(), days()).prop_map(|(rate, bytes, member_rate, member_bytes)| {
        HelpLimits {
            rate,
            bytes_per_day: bytes,
            member_rate,
            member_bytes_per_day: member_bytes,
            ..HelpLimits::default()
        }
    })
}

impl World {
    fn new(limits: HelpLimits) -> Self {
        let brain = brain(limits);
        let mut gate = Gate::new(GateLimits::default());
        gate.adopt(Timestamp::ZERO, brain.plan(), 1.0);
        Self {
            brain,
            gate,
            now: 1,
            helped: BTreeSet::new(),
            given: Vec::new(),
        }
    }

    fn tell(&mut self, input: Input) {
        let now = at(self.now);
        for output in self.brain.handle(now, input) {
            if let Output::AcceptSos { link, .. } = output {
                self.helped.insert(link);
            }
            if let Output::ShutDown { link, .. } | Output::DropLink { link } = output {
                self.helped.remove(&link);
                self.brain.handle(now, Input::AnswerReceived { link });
            }
            if let Output::TellRate { link, .. } = output {
                self.brain.handle(now, Input::AnswerReceived { link });
            }
        }
        self.gate.adopt(now, self.brain.plan(), 1.0);
    }

    /// A second in which each crowd asks for what it wants, heeding no RATE.
    fn pass(&mut self, crowds: &[Crowd]) {
        for (number, crowd) in crowds.iter().enumerate() {
            let link = LinkId::Inbound(number as u64 + 1);
            if crowd.calls && !self.helped.contains(&link) {
                self.tell(sos(link, &format!("www.site{number}.example")));
            }
        }
        let mut given = BTreeMap::<LinkId, u64>::new();
        let plan = self.brain.plan();
        for origin in &plan.hosts.origins {
            let LinkId::Inbound(number) = origin.link else {
                continue;
            };
            match origin.phase {
                OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. } => {}
                OriginPhase::Restored { .. } | OriginPhase::Expired { .. } => continue,
            }
            let (now, slot) = (at(self.now), origin.slot);
            let wanted = 0..crowds[number as usize - 1].kilobytes / RESPONSE;
            let got = wanted.filter(|_| self.gate.may_help(now, slot, RESPONSE * 1000));
            *given.entry(origin.link).or_default() += got.count() as u64 * RESPONSE * 1000;
        }
        let mut sample = own(0);
        for (&link, &bytes) in &given {
            sample.rescue.insert(link, traffic(bytes / 1000));
        }
        self.given.push((self.now, given));
        self.now += 1;
        self.tell(Input::IntervalEnded(sample));
    }

    /// The most that was given in any `seconds`, to one origin or to all.
    fn most_in(&self, seconds: u64, of: Option<LinkId>) -> u64 {
        let sum = |given: &BTreeMap<LinkId, u64>| match of {
            Some(link) => given.get(&link).copied().unwrap_or_default(),
            None => given.values().sum(),
        };
        let (mut window, mut most, mut gone) = (0, 0, 0);
        for (second, given) in &self.given {
            window += sum(given);
            while self.given[gone].0 + seconds <= *second {
                window -= sum(&self.given[gone].1);
                gone += 1;
            }
            most = most.max(window);
        }
        most
    }
}

proptest! {
    // Each case is some minutes of a rescue.
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn no_limit_is_passed_whatever_is_asked_for(
        limits in limits(),
        phases in prop::collection::vec((crowds(), 1..40_u32, 0..40_000_u64), 1..6),
    ) {
        let mut world = World::new(limits.clone());
        for (crowds, seconds, pause) in phases {
            for _ in 0..seconds {
                world.pass(&crowds);
            }
            // Hours pass in which nobody comes.
            world.now += pause;
            world.tell(Input::TimerFired);
        }
        let links = (1..4).map(LinkId::Inbound);
        for link in links.map(Some).chain([None]) {
            let (day, rate) = match link {
                Some(_) => (limits.member_bytes_per_day, limits.member_rate),
                None => (limits.bytes_per_day, limits.rate),
            };
            let most = world.most_in(DAY, link);
            prop_assert!(day.is_none_or(|day| most <= day), "{link:?} got {most} in a day");
            // Two seconds of the rate may be saved, and one response goes over it.
            let most = world.most_in(60, link);
            let bound = rate.map(|rate| rate.as_bytes() * 62 + RESPONSE * 1000);
            prop_assert!(bound.is_none_or(|bound| most <= bound), "{link:?} got {most}");
        }
    }

    #[test]
    fn a_greedy_origin_takes_nothing_from_a_modest_one(
        rate in 100..500_u64,
        greedy in 500..2000_u64,
        member_rate in prop::option::of(20..400_u64),
    ) {
        let mut world = World::new(HelpLimits {
            rate: Some(kilobytes(rate)),
            member_rate: member_rate.map(kilobytes),
            ..HelpLimits::default()
        });
        let part = (rate / 2).min(member_rate.unwrap_or(u64::MAX));
        let modest = part * 8 / 10 / RESPONSE * RESPONSE;
        let crowds = [(greedy, true), (modest, true), (0, false)];
        let crowds = crowds.map(|(kilobytes, calls)| Crowd { kilobytes, calls });
        for _ in 0..30 {
            world.pass(&crowds);
        }
        let served = world.given.iter().filter_map(|(_, given)| given.get(&TWO));
        let served: u64 = served.sum();
        prop_assert!(served >= modest * 1000 * 27, "{served} of {} a second", modest * 1000);
    }
}
