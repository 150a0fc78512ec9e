//! What holds whatever happens: random inputs in random order, with jumps in time (STYLE 4 and 10).

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fixtures::{
    accepted, call, candidate, drill_call, drill_order, joined, own, parameters, peers, traffic,
};
use levee_control::{
    Brain, BrainView, CopyOutcome, DrillStop, HotSpotOutput, HotSpotStep, Input, LinkLoss,
    LoadSample, OriginPhase, Output, PhaseName, Records, Rejection,
};
use levee_vocab::{ByteRate, HostName, LinkId, ServerState, Timestamp};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const INTERVAL: Duration = Duration::from_secs(1);

fn links() -> impl Strategy<Value = LinkId> {
    prop_oneof![
        (1..6_u64).prop_map(LinkId::Outbound),
        (1..6_u64).prop_map(LinkId::Inbound),
    ]
}

fn hosts() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (1..5_u32).prop_map(|number| format!("www.site{number}.example")),
        1 => Just("www.own.example".to_owned()),
        1 => (1..4_u32).prop_map(|number| format!("www-vh{number}.aliases.example.net")),
    ]
}

fn samples() -> impl Strategy<Value = LoadSample> {
    let kinds = (0..1200_u64, 0..4_u64, 0..3_u64);
    let parts = prop::collection::vec((links(), 0..900_u64), 0..3);
    (kinds, parts).prop_map(|((kilobytes, waiting, refused), parts)| {
        let mut sample = own(kilobytes);
        sample.waiting = waiting.saturating_sub(2);
        sample.refused = refused.saturating_sub(1);
        for (link, kilobytes) in parts {
            let mut part = traffic(kilobytes);
            part.file_bytes = part.bytes * 5;
            match link {
                LinkId::Outbound(_) => sample.redirects.insert(link, part),
                LinkId::Inbound(_) => sample.rescue.insert(link, part),
            };
        }
        sample
    })
}

fn losses() -> impl Strategy<Value = LinkLoss> {
    prop_oneof![
        2 => Just(LinkLoss::Closed),
        2 => Just(LinkLoss::Garbage),
        1 => Just(LinkLoss::Distrusted),
        1 => Just(LinkLoss::NotAMember),
    ]
}

fn inputs() -> impl Strategy<Value = Input> {
    let found = prop::collection::vec((hosts(), 0..6000_u64), 0..5);
    let answers = (1..6_u64, 0..3000_u64, any::<bool>());
    prop_oneof![
        6 => samples().prop_map(Input::IntervalEnded),
        8 => copies(),
        2 => Just(Input::TimerFired),
        2 => found.prop_map(|found| {
            let found = found.iter().map(|(host, rate)| candidate(host, *rate));
            Input::CandidatesFound(found.collect())
        }),
        1 => Just(Input::SearchFailed),
        4 => answers.prop_map(|(number, rate, beats)| {
            accepted(LinkId::Outbound(number), rate, beats)
        }),
        1 => links().prop_map(|link| Input::RescueRefused { link, rejection: Rejection::Refused }),
        4 => (1..6_u64, hosts()).prop_map(|(number, host)| Input::SosReceived {
            link: LinkId::Inbound(number),
            call: call(&host),
        }),
        2 => (links(), 0..3000_u64).prop_map(|(link, rate)| Input::RateReceived {
            link,
            rate: ByteRate::from_kilobytes(rate),
            carried: (rate % 3 > 0).then_some(ByteRate::from_kilobytes(rate / 2)),
        }),
        2 => (links(), prop::collection::vec(1..9_u64, 0..4)).prop_map(|(link, numbers)| {
            Input::PeersReceived { link, peers: peers(&numbers) }
        }),
        2 => (links(), 0..100_u64).prop_map(|(link, seconds)| Input::PermitReceived {
            link,
            length: Duration::from_secs(seconds),
        }),
        1 => links().prop_map(|link| Input::OriginReturned { link }),
        1 => links().prop_map(|link| Input::DeliveryLate { link }),
        1 => prop_oneof![Just(Records::Lost), Just(Records::Kept)].prop_map(Input::RecordsChanged),
        1 => prop::collection::vec(hosts(), 0..2).prop_map(|hosts| {
            let hosts = hosts.iter().map(|host| host.parse().unwrap());
            Input::MembersExpelled(hosts.collect())
        }),
        2 => (1..700_u64).prop_map(|seconds| Input::DrillOrdered(drill_order(seconds))),
        4 => (1..6_u64, 0..3000_u64).prop_map(|(number, rate)| {
            joined(LinkId::Outbound(number), rate)
        }),
        1 => (1..6_u64, hosts()).prop_map(|(number, host)| Input::SosReceived {
            link: LinkId::Inbound(number),
            call: drill_call(&host, 20),
        }),
        1 => prop_oneof![Just(DrillStop::Operator), Just(DrillStop::ClientLost)]
            .prop_map(Input::DrillStopped),
        3 => links().prop_map(|link| Input::AnswerReceived { link }),
        1 => links().prop_map(|link| Input::ShutdownReceived { link }),
        1 => (links(), losses()).prop_map(|(link, loss)| Input::LinkLost { link, loss }),
        1 => any::<bool>().prop_map(|helps| {
            let mut changed = parameters("www.own.example");
            changed.origins_max = if helps { 16 } else { 0 };
            Input::ParametersChanged(Box::new(changed))
        }),
    ]
}

/// What becomes hot, and what becomes of its copies.
fn copies() -> impl Strategy<Value = Input> {
    let url = || (0..20_u32).prop_map(|number| format!("www.own.example/{number}"));
    let steps = prop_oneof![
        2 => Just(HotSpotStep::Copy),
        2 => Just(HotSpotStep::Redirect),
        1 => Just(HotSpotStep::Normal),
    ];
    let stepped = (url(), steps, 1..2000_u64).prop_map(|(url, step, gap)| HotSpotOutput {
        url,
        step,
        gap: Duration::from_millis(gap),
    });
    let outcomes = prop_oneof![
        4 => Just(CopyOutcome::Held),
        1 => Just(CopyOutcome::Refused),
        1 => Just(CopyOutcome::Failed),
        1 => Just(CopyOutcome::Late),
    ];
    prop_oneof![
        4 => prop::collection::vec(stepped, 1..6).prop_map(Input::ResourcesStepped),
        1 => (url(), prop::collection::vec(url(), 0..4))
            .prop_map(|(page, resources)| Input::EmbeddedFound { page, resources }),
        4 => (links(), url(), outcomes)
            .prop_map(|(link, url, outcome)| Input::CopyEnded { link, url, outcome }),
        1 => (links(), url()).prop_map(|(link, url)| Input::CopyMissing { link, url }),
    ]
}

/// Inputs with the milliseconds that pass before each; now and then a jump.
fn histories() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let pauses = prop_oneof![20 => 0..1500_u64, 1 => 0..4_000_000_u64];
    prop::collection::vec((pauses, inputs()), 1..120)
}

/// A Brain, and what must be remembered of it to judge it.
struct Watched {
    brain: Brain,
    now: Timestamp,
    last_alias: u64,
    ended: BTreeMap<String, Ended>,
    /// The link on which an origin said SHUTDOWN just now.
    released: Option<LinkId>,
    /// Aliases of origins that were not to be helped any more.
    cut: BTreeSet<String>,
}

#[derive(Clone, Copy)]
struct Ended {
    at: Timestamp,
    link: LinkId,
    confirmed: Option<Timestamp>,
}

impl Watched {
    fn new() -> Self {
        Self {
            brain: Brain::new(parameters("www.own.example"), 1, Vec::new()),
            now: Timestamp::ZERO,
            last_alias: 0,
            ended: BTreeMap::new(),
            released: None,
            cut: BTreeSet::new(),
        }
    }

    fn tell(&mut self, now: Timestamp, input: Input) -> Vec<Output> {
        self.now = now;
        let before = self.brain.view().phase;
        let version = self.brain.plan().version;
        self.note_confirmation(&input);
        self.note_cut(&input);
        let outputs = self.brain.handle(now, input);
        let swapped = outputs.contains(&Output::SwapPlan);
        assert_eq!(self.brain.plan().version > version, swapped);
        self.check_outputs(before, &outputs);
        self.check_state();
        self.check_aliases();
        let deadline = self.brain.next_deadline();
        assert!(
            deadline.is_none_or(|deadline| deadline > now),
            "{deadline:?} at {now}"
        );
        outputs
    }

    fn note_confirmation(&mut self, input: &Input) {
        let loss = LinkLoss::NotAMember;
        self.released = if let Input::ShutdownReceived { link } = input {
            Some(*link)
        } else if let Input::LinkLost { link, loss: told } = input
            && *told == loss
        {
            // The origin has said so, and redirects nobody to us any more.
            Some(*link)
        } else {
            None
        };
        let confirmed = if let Input::AnswerReceived { link } = input {
            Some(*link)
        } else {
            self.released
        };
        if let Some(link) = confirmed {
            for ended in self.ended.values_mut().filter(|ended| ended.link == link) {
                ended.confirmed = ended.confirmed.or(Some(self.now));
            }
        }
    }

    fn note_cut(&mut self, input: &Input) {
        let plan = self.brain.plan();
        let routes = &plan.hosts.origins;
        let loss = LinkLoss::Distrusted;
        let is_distrusted = |link| *input == Input::LinkLost { link, loss };
        let distrusted: Vec<_> = routes
            .iter()
            .filter(|one| is_distrusted(one.link))
            .collect();
        let unwanted = |host: &HostName| {
            let is_expelled =
                matches!(input, Input::MembersExpelled(hosts) if hosts.contains(host));
            is_expelled || distrusted.iter().any(|route| route.origin.host == *host)
        };
        let cut = routes.iter().filter(|route| unwanted(&route.origin.host));
        self.cut.extend(cut.map(|route| route.alias.to_string()));
    }

    /// No server both rescues and is rescued, and numbers of aliases only grow.
    fn check_outputs(&mut self, before: PhaseName, outputs: &[Output]) {
        for output in outputs {
            if let Output::AcceptSos { alias, .. } = output {
                assert!(matches!(
                    before,
                    PhaseName::Normal | PhaseName::Drilling | PhaseName::Rescue
                ));
                let label = alias.host.first_label();
                let number: u64 = label.strip_prefix("www-vh").unwrap().parse().unwrap();
                assert!(
                    number > self.last_alias,
                    "{number} after {}",
                    self.last_alias
                );
                self.last_alias = number;
                assert!(outputs.contains(&Output::RememberAliases));
            }
            if let Output::Copy(order) = output {
                let servers = self.brain.view().rescue_servers;
                assert!(servers.iter().any(|server| server.link == order.link));
            }
            if let Output::CallForHelp { candidate, .. } = output {
                assert!(self.brain.view().state != ServerState::Rescue);
                assert_ne!(candidate.site.host.as_str(), "www.own.example");
            }
        }
    }

    /// Few orders are under way, and only those hold copies who are redirected to.
    fn check_copies(&self, view: &BrainView) {
        let under_way: usize = view.hot.iter().map(|hot| hot.under_way).sum();
        assert!(under_way <= 8, "{under_way} orders");
        if let Some(redirect) = &self.brain.plan().redirect {
            for route in &*redirect.hot {
                assert_ne!(route.holders, 0);
                assert_eq!(route.holders >> redirect.targets.len(), 0, "{route:?}");
            }
        }
        for hot in &view.hot {
            let mut servers = hot.holders.iter();
            let helps = |link| view.rescue_servers.iter().any(|one| one.link == link);
            assert!(servers.all(|&link| helps(link)), "{hot:?}");
        }
    }

    fn check_state(&self) {
        let (view, plan) = (self.brain.view(), self.brain.plan());
        let live = plan.hosts.origins.iter();
        let live = live
            .filter(|route| match route.phase {
                // Who has died with a permit is still rescued.
                OriginPhase::Live | OriginPhase::Orphaned { .. } => true,
                OriginPhase::Ending { .. }
                | OriginPhase::Expired { .. }
                | OriginPhase::Restored { .. } => false,
            })
            .count();
        assert_eq!(plan.redirect.is_some(), view.state == ServerState::Sos);
        assert_eq!(live, view.origins.len());
        // Visitors are redirected in a rescue only, those of a drill in a drill only.
        assert_eq!(plan.drill.is_some(), view.phase == PhaseName::Drilling);
        match view.phase {
            PhaseName::Drilling => {}
            PhaseName::Sos => assert!(!view.rescue_servers.is_empty()),
            PhaseName::Normal
            | PhaseName::Calling
            | PhaseName::Rescue
            | PhaseName::Closing
            | PhaseName::Drained => assert!(view.rescue_servers.is_empty()),
        }
        if view.state != ServerState::Rescue {
            assert_eq!(live, 0);
        }
        self.check_copies(&view);
        let granted: u64 = view
            .origins
            .iter()
            .map(|origin| origin.rate.as_bytes())
            .sum();
        assert!(granted <= self.brain.parameters().rescue_rate().as_bytes());
        if view.state == ServerState::Sos {
            assert_eq!(view.free, ByteRate::ZERO);
        }
    }

    /// An alias leads back only when its origin can no longer send visitors to it.
    fn check_aliases(&mut self) {
        for route in &self.brain.plan().hosts.origins {
            let name = route.alias.to_string();
            match route.phase {
                OriginPhase::Live | OriginPhase::Restored { .. } => {}
                // Its origin is lost, and the alias may lead back as soon as its permit is over.
                OriginPhase::Ending { .. } | OriginPhase::Orphaned { .. } => {
                    self.ended.entry(name).or_insert(Ended {
                        at: self.now,
                        link: route.link,
                        confirmed: (self.released == Some(route.link)).then_some(self.now),
                    });
                }
                // It has no claim to any grace.
                OriginPhase::Expired { .. } if self.cut.contains(&name) => {}
                OriginPhase::Expired { .. } => {
                    let ended = self.ended[&name];
                    let is_lost = self.now.since(ended.at) >= 10 * INTERVAL;
                    let has_stopped = ended
                        .confirmed
                        .is_some_and(|confirmed| self.now.since(confirmed) >= INTERVAL);
                    assert!(is_lost || has_stopped, "{name} leads back at {}", self.now);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_whatever_happens(history in histories()) {
        let mut watched = Watched::new();
        for (pause, input) in history {
            let now = watched.now + Duration::from_millis(pause);
            watched.tell(now, input);
        }
    }

    #[test]
    fn the_same_inputs_give_the_same_outputs(history in histories()) {
        let (mut one, mut two) = (Watched::new(), Watched::new());
        for (pause, input) in history {
            let now = one.now + Duration::from_millis(pause);
            let outputs = one.tell(now, input.clone());
            prop_assert_eq!(outputs, two.tell(now, input));
        }
        prop_assert_eq!(one.brain.story(), two.brain.story());
    }

    #[test]
    fn every_rescue_ends_when_nobody_speaks_any_more(history in histories()) {
        let mut watched = Watched::new();
        for (pause, input) in history {
            let now = watched.now + Duration::from_millis(pause);
            watched.tell(now, input);
        }
        // The longest wait is the idle time of 300 s; an alias serves ten intervals longer.
        for _ in 0..320 {
            let next = watched.now + INTERVAL;
            while let Some(deadline) = watched.brain.next_deadline()
                && deadline < next
            {
                watched.tell(deadline, Input::TimerFired);
            }
            watched.tell(next, Input::IntervalEnded(own(0)));
        }
        let (view, plan) = (watched.brain.view(), watched.brain.plan());
        prop_assert_eq!(view.phase, PhaseName::Normal);
        prop_assert!(plan.redirect.is_none());
        let is_over = |phase| matches!(phase, OriginPhase::Expired { .. });
        prop_assert!(plan.hosts.origins.iter().all(|route| is_over(route.phase)));
    }

    #[test]
    fn a_restarted_server_never_gives_an_alias_again(history in histories()) {
        let mut watched = Watched::new();
        for (pause, input) in history {
            let now = watched.now + Duration::from_millis(pause);
            watched.tell(now, input);
        }
        let records = watched.brain.aliases();
        watched.brain = Brain::new(parameters("www.own.example"), 2, records);
        watched.ended.clear();
        watched.cut.clear();
        let call = call("www.newcomer.example");
        let link = LinkId::Inbound(50);
        let outputs = watched.brain.handle(watched.now, Input::SosReceived { link, call });
        watched.check_outputs(PhaseName::Normal, &outputs);
    }
}

/// Invariants that are never put to the test prove nothing.
#[test]
fn the_random_histories_reach_every_phase() {
    let mut runner = TestRunner::deterministic();
    let mut reached: BTreeMap<PhaseName, u32> = BTreeMap::new();
    for _ in 0..100 {
        let mut watched = Watched::new();
        for (pause, input) in histories().new_tree(&mut runner).unwrap().current() {
            let now = watched.now + Duration::from_millis(pause);
            watched.tell(now, input);
            *reached.entry(watched.brain.view().phase).or_default() += 1;
        }
    }
    for phase in [
        PhaseName::Normal,
        PhaseName::Calling,
        PhaseName::Drilling,
        PhaseName::Sos,
        PhaseName::Rescue,
        PhaseName::Closing,
    ] {
        let count = reached.get(&phase).copied().unwrap_or(0);
        assert!(count > 50, "{phase:?} only {count} times: {reached:?}");
    }
}
