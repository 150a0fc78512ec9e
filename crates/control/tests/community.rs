//! Several Brains that talk to each other over slow links that fail (R1, R8, R9).
//!
//! A small stage: messages take their time, pairs of sites lose sight of each other, crowds come
//! and go, all by a seed. Watched at every step: no site both rescues and is rescued, and no
//! visitor who is redirected to an alias is sent back by it, which would be a redirect loop.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fixtures::{call, candidate, key, own, parameters, site, traffic};
use levee_control::{
    Brain, Destination, Input, LinkLoss, LoadSample, Output, PhaseName, Rejection, Traffic,
};
use levee_vocab::{ByteRate, HostName, LinkId, Peers, Random, ServerState, Timestamp, WebAddress};

const STEP: Duration = Duration::from_millis(50);

/// Index of a site.
type Who = usize;

/// One end of a link.
type End = (Who, LinkId);

struct Stage {
    now: Timestamp,
    brains: Vec<Brain>,
    /// Offered own load in kB/s.
    crowds: Vec<u64>,
    free: Vec<ByteRate>,
    ends: BTreeMap<End, End>,
    /// Ends that their sites have closed.
    closed: BTreeSet<End>,
    inbound: u64,
    mail: BTreeMap<(Timestamp, u64), (Who, Input)>,
    posted: u64,
    delay: Duration,
    cut: BTreeSet<(Who, Who)>,
    redirected: BTreeMap<End, u64>,
}

impl Stage {
    fn new(sites: usize, delay: Duration, seed: u64) -> Self {
        let brain = |who: Who| {
            let mut parameters = parameters(&name(who));
            parameters.alias_domain = format!("site{who}.aliases.example").parse().unwrap();
            Brain::new(parameters, seed + who as u64, Vec::new())
        };
        Self {
            now: Timestamp::ZERO,
            brains: (0..sites).map(brain).collect(),
            crowds: vec![10; sites],
            free: vec![ByteRate::ZERO; sites],
            ends: BTreeMap::new(),
            closed: BTreeSet::new(),
            inbound: 0,
            mail: BTreeMap::new(),
            posted: 0,
            delay,
            cut: BTreeSet::new(),
            redirected: BTreeMap::new(),
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.now + STEP;
            while let Some((&(due, _), _)) = self.mail.first_key_value()
                && due <= self.now
            {
                let (_, (who, input)) = self.mail.pop_first().unwrap();
                self.tell(who, input);
            }
            for who in 0..self.brains.len() {
                self.live(who);
            }
            self.check();
        }
    }

    /// What comes by itself: timers, and the end of the control interval, which comes to the sites
    /// one after the other.
    fn live(&mut self, who: Who) {
        let deadline = self.brains[who].next_deadline();
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            self.tell(who, Input::TimerFired);
        }
        let steps = self.now.as_nanoseconds() / STEP.as_nanos() as u64;
        if steps % 20 == who as u64 % 20 {
            let sample = self.sample(who);
            self.tell(who, Input::IntervalEnded(sample));
        }
    }

    fn sample(&mut self, who: Who) -> LoadSample {
        let plan = self.brains[who].plan();
        let Some(redirect) = &plan.redirect else {
            let mut sample = own(self.crowds[who].min(1200));
            for (&(origin, outbound), &bytes) in &self.redirected {
                if let Some(&(rescuer, inbound)) = self.ends.get(&(origin, outbound))
                    && rescuer == who
                    && bytes > 0
                {
                    sample.rescue.insert(inbound, traffic(bytes / 1000));
                }
            }
            return sample;
        };
        let mut sample = own(self.crowds[who].min(700));
        let mut rest = self.crowds[who].saturating_sub(700) * 1000;
        for target in &redirect.targets {
            let file_bytes = rest.min(target.rate.as_bytes());
            rest -= file_bytes;
            let requests = file_bytes / 4000;
            let bytes = requests * 468;
            let part = Traffic {
                bytes,
                requests,
                file_bytes,
            };
            sample.redirects.insert(target.link, part);
            self.redirected.insert((who, target.link), file_bytes);
        }
        sample.waiting = rest / 4000;
        sample
    }

    fn tell(&mut self, who: Who, input: Input) {
        if let Input::ShutdownReceived { link } | Input::LinkLost { link, .. } = input {
            self.closed.insert((who, link));
            self.redirected.remove(&(who, link));
        }
        for output in self.brains[who].handle(self.now, input) {
            self.obey(who, output);
        }
    }

    fn obey(&mut self, who: Who, output: Output) {
        match output {
            Output::CallForHelp {
                link,
                candidate,
                call,
            } => {
                self.call(who, link, &candidate.site, call);
            }
            Output::AcceptSos { link, alias, rate } => {
                self.post(who, link, |link| Input::RescueAccepted {
                    link,
                    alias,
                    address: "192.0.2.7".parse().unwrap(),
                    rate,
                    key: key(),
                    beats: true,
                    drill: true,
                    tls: None,
                });
            }
            Output::RejectSos { link, .. } => {
                let rejection = Rejection::Refused;
                self.post(who, link, |link| Input::RescueRefused { link, rejection });
            }
            Output::TellRate {
                link,
                rate,
                carried,
            } => {
                self.ask(who, link, |link| Input::RateReceived {
                    link,
                    rate,
                    carried,
                });
            }
            Output::TellPeers { link, members } => {
                let key = key();
                let peers = Peers { key, members };
                self.ask(who, link, |link| Input::PeersReceived { link, peers });
            }
            Output::ShutDown { link, .. } => {
                self.ask(who, link, |link| Input::ShutdownReceived { link });
                self.close(who, link);
            }
            Output::DropLink { link } => {
                let loss = LinkLoss::Closed;
                self.post(who, link, |link| Input::LinkLost { link, loss });
                self.close(who, link);
            }
            Output::SearchRegistry { .. } => {
                self.find_candidates(who);
            }
            Output::Register { free } => self.free[who] = free,
            Output::SwapPlan
            | Output::RememberAliases
            | Output::RememberGiven
            | Output::Copy(_)
            | Output::Explain(_) => {}
        }
    }

    fn close(&mut self, who: Who, link: LinkId) {
        self.closed.insert((who, link));
        self.redirected.remove(&(who, link));
    }

    fn find_candidates(&mut self, who: Who) {
        let offer = |other: Who| candidate(&name(other), self.free[other].as_kilobytes());
        let mut found: Vec<_> = (0..self.brains.len()).map(offer).collect();
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.free));
        let due = (self.now + STEP, self.count());
        self.mail.insert(due, (who, Input::CandidatesFound(found)));
    }

    fn call(&mut self, who: Who, link: LinkId, to: &WebAddress, call: levee_control::RescueCall) {
        let other = (0..self.brains.len())
            .find(|&other| name(other) == to.host.as_str())
            .unwrap();
        self.inbound += 1;
        let there = (other, LinkId::Inbound(self.inbound));
        self.ends.insert((who, link), there);
        self.ends.insert(there, (who, link));
        self.post(who, link, |link| Input::SosReceived { link, call });
        // The shell answers after two intervals at the latest; a late answer changes nothing.
        let rejection = Rejection::Unreachable;
        let due = (self.now + Duration::from_secs(2), self.count());
        self.mail
            .insert(due, (who, Input::RescueRefused { link, rejection }));
    }

    /// Sends a message that the other side answers.
    fn ask(&mut self, who: Who, link: LinkId, message: impl FnOnce(LinkId) -> Input) {
        let there = self.ends[&(who, link)];
        if self.is_cut(who, there.0) {
            return;
        }
        let due = (self.now + self.delay * 2, self.count());
        if self.closed.contains(&there) {
            let loss = LinkLoss::Closed;
            self.mail.insert(due, (who, Input::LinkLost { link, loss }));
        } else {
            self.post(who, link, message);
            self.mail.insert(due, (who, Input::AnswerReceived { link }));
        }
    }

    fn post(&mut self, who: Who, link: LinkId, message: impl FnOnce(LinkId) -> Input) {
        let (other, there) = self.ends[&(who, link)];
        if !self.is_cut(who, other) {
            let due = (self.now + self.delay, self.count());
            self.mail.insert(due, (other, message(there)));
        }
    }

    fn is_cut(&self, one: Who, other: Who) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    fn count(&mut self) -> u64 {
        self.posted += 1;
        self.posted
    }

    /// The invariants over all sites at one moment.
    fn check(&self) {
        for (who, brain) in self.brains.iter().enumerate() {
            let (plan, now) = (brain.plan(), self.now);
            for target in plan.redirect.iter().flat_map(|redirect| &redirect.targets) {
                let (rescuer, _) = self.ends[&(who, target.link)];
                let there = self.brains[rescuer].plan();
                let served = matches!(
                    there.hosts.destination(target.alias.host.as_str()),
                    Destination::Rescued(route) if route.origin == site(&name(who))
                );
                assert!(
                    served,
                    "{now}: {} leads nowhere\n{}",
                    target.alias,
                    self.story(rescuer)
                );
            }
            let view = brain.view();
            assert!(view.rescue_servers.is_empty() || view.origins.is_empty());
        }
    }

    fn story(&self, who: Who) -> String {
        self.brains[who].story()
    }

    fn states(&self) -> Vec<ServerState> {
        self.brains.iter().map(|brain| brain.view().state).collect()
    }
}

fn name(who: Who) -> String {
    format!("www.site{who}.example")
}

#[test]
fn crowds_come_and_go_and_links_fail_and_nobody_loops() {
    let mut rescued = 0;
    for seed in 0..40 {
        let mut random = Random::from_seed(seed);
        let delay = Duration::from_millis(random.within(1..400));
        let mut stage = Stage::new(6, delay, seed);
        for _ in 0..40 {
            let who = random.within(0..6) as Who;
            let crowds = [10, 10, 300, 600, 900, 1500, 2500];
            stage.crowds[who] = crowds[random.within(0..7) as usize];
            if random.chance(0.3) {
                let (one, other) = (random.within(0..6) as Who, random.within(0..6) as Who);
                stage.cut.insert((one.min(other), one.max(other)));
            }
            if random.chance(0.3) {
                stage.cut.clear();
            }
            stage.run(Duration::from_secs(random.within(1..8)));
            let in_sos = |state: &&ServerState| **state == ServerState::Sos;
            rescued += stage.states().iter().filter(in_sos).count();
        }
        stage.crowds = vec![10; 6];
        stage.run(Duration::from_secs(45));
        for brain in &stage.brains {
            let view = brain.view();
            assert_eq!(view.phase, PhaseName::Normal, "seed {seed}: {view:?}");
        }
    }
    assert!(rescued > 500, "only {rescued} rescues were seen");
}

#[test]
fn two_sites_that_call_each_other_both_say_no_and_find_others() {
    let mut stage = Stage::new(3, Duration::from_millis(50), 1);
    stage.run(Duration::from_secs(12));
    stage.crowds = vec![900, 900, 10];
    stage.run(Duration::from_secs(5));
    let states = stage.states();
    assert_eq!(states[2], ServerState::Rescue, "{}", stage.story(0));
    assert!(
        states[..2].contains(&ServerState::Sos),
        "{}",
        stage.story(0)
    );
    for (who, brain) in stage.brains.iter().enumerate() {
        for rescue in brain.view().rescue_servers {
            assert_eq!(rescue.peer, site(&name(2)), "site {who}");
        }
    }
}

#[test]
fn a_site_that_restarts_in_its_crowd_is_helped_anew_under_a_new_alias() {
    let mut rescuer = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let mut aliases: Vec<HostName> = Vec::new();
    for number in 1..=2 {
        let link = LinkId::Inbound(number);
        let call = call("www.origin.example");
        let now = Timestamp::from_seconds(number);
        let outputs = rescuer.handle(now, Input::SosReceived { link, call });
        for output in outputs {
            if let Output::AcceptSos { alias, .. } = output {
                aliases.push(alias.host);
            }
        }
    }
    assert_eq!(aliases.len(), 2);
    assert_ne!(aliases[0], aliases[1]);
    assert_eq!(rescuer.view().origins.len(), 1);
}

#[test]
fn a_rescue_server_that_hangs_is_left_within_three_intervals() {
    let mut stage = Stage::new(2, Duration::from_millis(20), 1);
    stage.run(Duration::from_secs(12));
    stage.crowds[0] = 900;
    stage.run(Duration::from_secs(5));
    assert_eq!(stage.states(), [ServerState::Sos, ServerState::Rescue]);
    stage.cut.insert((0, 1));
    stage.run(Duration::from_secs(3));
    assert_eq!(stage.brains[0].view().rescue_servers, []);
    stage.run(Duration::from_secs(3));
    assert_eq!(stage.states()[1], ServerState::Normal, "{}", stage.story(1));
}
