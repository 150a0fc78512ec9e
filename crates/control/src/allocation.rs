//! Whom to ask for help, and when (R4; dotslash 4.4.3 and 4.5).
//!
//! *Initial* allocation: the load rose above T_alert, before redirects are needed. *Additional*
//! allocation: the redirect level of every rescue server has reached T_coff. One round of asking an
//! interval: one candidate is asked; if it says no, the next one is asked at once, so that the
//! first seconds of a crowd are not lost to candidates that are gone. One that does not answer does
//! not hold up the round of the next interval.
//!
//! Order of candidates: those that offer at least the origin's own capacity first; then those of an
//! administrative domain that is not in use yet, so that not all fail together; then the largest,
//! because few large rescue servers miss their caches less than many small ones. Equal ones are
//! drawn by lot, or every site of a community would ask the same neighbour.
//!
//! A candidate that failed is left alone for a while, twice as long each time. One whose aliases do
//! not answer by HTTPS is asked last where some visitors come by it, and not at all where all do.
//! It says so when it registers; where it does not, its answer to an SOS tells.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use levee_vocab::{AliasHttps, ByteRate, HostName, LinkId, Random, Timestamp};

use crate::input::{Candidate, Rejection};
use crate::parameters::{Parameters, Visitors};
use crate::view::CallView;

/// The candidates, what is known about them, and the need for them.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    candidates: Vec<Candidate>,
    failures: BTreeMap<HostName, Failure>,
    /// Whose aliases do not answer by HTTPS, and until when that is believed.
    without_https: BTreeMap<HostName, Timestamp>,
    last_link: u64,
    last_round: Option<u64>,
    need: Need,
    /// For which needs it was told that nobody is left, since somebody was asked last.
    nobody_for: BTreeSet<Need>,
    drill: Option<DrillCalls>,
    /// Whom nobody asks again.
    expelled: BTreeSet<HostName>,
    random: Random,
}

/// Whether help is needed, by the last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// No.
    None,
    /// One more rescue server is needed.
    OneMore,
    /// One more is needed that visitors by HTTPS can be sent to.
    OneMoreByHttps,
}

/// Whom a drill has asked: each once, whatever it says.
#[derive(Clone, Debug)]
struct DrillCalls {
    ends: Timestamp,
    asked: Vec<HostName>,
}

/// How a candidate failed.
#[derive(Clone, Copy, Debug)]
struct Failure {
    count: u32,
    until: Timestamp,
}

/// Most doublings of the time for which a failed candidate is left alone.
const DOUBLINGS_MAX: u32 = 4;

/// Failures that are remembered at most; the oldest to end goes first.
const FAILURES_MAX: usize = 256;

impl Allocation {
    /// No candidates yet; lots are drawn from `random`.
    pub(crate) fn new(random: Random) -> Self {
        Self {
            candidates: Vec::new(),
            failures: BTreeMap::new(),
            without_https: BTreeMap::new(),
            last_link: 0,
            last_round: None,
            need: Need::None,
            nobody_for: BTreeSet::new(),
            drill: None,
            expelled: BTreeSet::new(),
            random,
        }
    }

    /// What the registry found, best first.
    pub(crate) fn renew(&mut self, mut found: Vec<Candidate>, parameters: &Parameters) {
        found.retain(|candidate| candidate.site.host != parameters.site.host);
        found.truncate(parameters.candidates_max);
        self.candidates = found;
    }

    /// The candidates, best first.
    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Whether one more rescue server is needed.
    pub(crate) fn need(&self) -> Need {
        self.need
    }

    /// Says so.
    pub(crate) fn set_need(&mut self, need: Need) {
        self.need = need;
    }

    /// Begins this interval's round, unless it was held already.
    pub(crate) fn begin_round(&mut self, interval: u64) -> Round {
        if self.last_round == Some(interval) {
            return Round::Held;
        }
        self.last_round = Some(interval);
        Round::Begun
    }

    /// Nobody is left to ask for what is needed now. Answers whether that is news.
    pub(crate) fn note_nobody_left(&mut self) -> Nobody {
        match self.nobody_for.insert(self.need) {
            true => Nobody::New,
            false => Nobody::Known,
        }
    }

    /// What has become of calling for help while nobody is being asked.
    pub(crate) fn call_view(&self, now: Timestamp) -> CallView {
        let is_resting = |candidate: &&Candidate| {
            let failure = self.failures.get(&candidate.site.host);
            failure.is_some_and(|failure| now < failure.until)
        };
        match self.need {
            Need::OneMore | Need::OneMoreByHttps if self.nobody_for.contains(&self.need) => {
                CallView::NobodyLeft {
                    resting: self.candidates.iter().filter(is_resting).count(),
                }
            }
            Need::None | Need::OneMore | Need::OneMoreByHttps => CallView::NotCalled,
        }
    }

    /// From now on each candidate is asked once, for a drill that lasts until `ends`.
    pub(crate) fn begin_drill(&mut self, ends: Timestamp) {
        let asked = Vec::new();
        self.drill = Some(DrillCalls { ends, asked });
    }

    /// What is asked from now on is meant.
    pub(crate) fn end_drill(&mut self) {
        self.drill = None;
    }

    /// When the drill ends for which candidates are asked, if they are.
    pub(crate) fn drill_ends(&self) -> Option<Timestamp> {
        self.drill.as_ref().map(|drill| drill.ends)
    }

    /// These are expelled, and nobody else.
    pub(crate) fn expel(&mut self, hosts: &[HostName]) {
        self.expelled = hosts.iter().cloned().collect();
    }

    /// Whether `host` is expelled.
    pub(crate) fn is_expelled(&self, host: &HostName) -> bool {
        self.expelled.contains(host)
    }

    /// Number for the link to a candidate that is asked.
    pub(crate) fn next_link(&mut self) -> LinkId {
        self.nobody_for.clear();
        self.last_link += 1;
        LinkId::Outbound(self.last_link)
    }

    /// The best candidate that is neither among `taken` nor left alone.
    pub(crate) fn choose(
        &mut self,
        now: Timestamp,
        parameters: &Parameters,
        taken: &[HostName],
    ) -> Option<Candidate> {
        let own_rate = parameters.usable_rate();
        let own_site = &parameters.site;
        let fits: Vec<&Candidate> = self
            .candidates
            .iter()
            .filter(|candidate| self.may_be_asked(now, candidate, parameters, taken))
            .collect();
        let rank = |candidate: &Candidate| {
            let (is_reached, is_sure) = match parameters.visitors {
                Visitors::Http => (true, true),
                Visitors::Both | Visitors::Https => (
                    self.may_have_https(now, candidate),
                    candidate.https == AliasHttps::Yes,
                ),
            };
            let domain = candidate.site.host.domain();
            let in_use = own_site.host.domain() == domain
                || taken.iter().any(|host| host.domain() == domain);
            let has_room = candidate.free >= own_rate;
            // One that does not say is not passed over for one that is too small for us.
            (is_reached, has_room, is_sure, !in_use, candidate.free)
        };
        let best = fits.iter().map(|candidate| rank(candidate)).max()?;
        let equals: Vec<&Candidate> = fits
            .into_iter()
            .filter(|candidate| rank(candidate) == best)
            .collect();
        let lot = self.random.within(0..equals.len() as u64);
        let choice = equals.get(lot as usize).map(|&candidate| candidate.clone());
        if let (Some(drill), Some(choice)) = (&mut self.drill, &choice) {
            drill.asked.push(choice.site.host.clone());
        }
        choice
    }

    /// `host` did not help, or stopped helping: leave it alone for a while.
    pub(crate) fn note_failure(&mut self, now: Timestamp, host: &HostName, rest: Duration) {
        let count = match self.failures.get(host) {
            Some(failure) => (failure.count + 1).min(DOUBLINGS_MAX),
            None => 0,
        };
        // Between half and one and a half of the time, so that origins do not come back together.
        let jitter = 0.5 + self.random.fraction();
        let until = now + rest.mul_f64(f64::from(1_u32 << count) * jitter);
        self.failures.insert(host.clone(), Failure { count, until });
        if self.failures.len() > FAILURES_MAX {
            let first = self.failures.iter().min_by_key(|(_, f)| f.until);
            if let Some(host) = first.map(|(host, _)| host.clone()) {
                self.failures.remove(&host);
            }
        }
    }

    /// `host` helps: its failures are forgotten.
    pub(crate) fn note_success(&mut self, host: &HostName) {
        self.failures.remove(host);
    }

    /// `host` answers by HTTPS under its aliases, or does not: then that is believed until
    /// `until`, as certificates come.
    pub(crate) fn note_https(&mut self, host: &HostName, without_until: Option<Timestamp>) {
        match without_until {
            None => self.without_https.remove(host),
            Some(until) => self.without_https.insert(host.clone(), until),
        };
        if self.without_https.len() > FAILURES_MAX {
            let first = self.without_https.iter().min_by_key(|(_, until)| **until);
            if let Some(host) = first.map(|(host, _)| host.clone()) {
                self.without_https.remove(&host);
            }
        }
    }

    /// Whether anybody is left to ask, beside `taken`, who may answer by HTTPS.
    pub(crate) fn has_other_with_https(
        &self,
        now: Timestamp,
        parameters: &Parameters,
        taken: &[HostName],
    ) -> bool {
        self.candidates.iter().any(|candidate| {
            self.may_have_https(now, candidate)
                && self.may_be_asked(now, candidate, parameters, taken)
        })
    }

    /// Its answer to an SOS is believed for a while, whatever it has registered.
    fn may_have_https(&self, now: Timestamp, candidate: &Candidate) -> bool {
        let until = self.without_https.get(&candidate.site.host);
        candidate.https != AliasHttps::No && until.is_none_or(|&until| now >= until)
    }

    fn may_be_asked(
        &self,
        now: Timestamp,
        candidate: &Candidate,
        parameters: &Parameters,
        taken: &[HostName],
    ) -> bool {
        let host = &candidate.site.host;
        let is_of_use = match (parameters.visitors, self.need) {
            (Visitors::Http | Visitors::Both, Need::None | Need::OneMore) => true,
            (Visitors::Https, _) | (_, Need::OneMoreByHttps) => self.may_have_https(now, candidate),
        };
        is_of_use
            && candidate.free > ByteRate::ZERO
            && *host != parameters.site.host
            && !self.is_expelled(host)
            && !taken.contains(host)
            && self
                .drill
                .as_ref()
                .is_none_or(|drill| !drill.asked.contains(host))
            && self
                .failures
                .get(host)
                .is_none_or(|failure| now >= failure.until)
    }
}

/// Whether it is news that nobody is left to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nobody {
    /// Somebody was asked since.
    New,
    /// It was told already.
    Known,
}

/// Whether a round may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// It begins now.
    Begun,
    /// It was held in this interval already.
    Held,
}

/// Control intervals for which a candidate is left alone after its first failure.
pub(crate) const fn rest_after(rejection: Rejection) -> f64 {
    match rejection {
        // It may have room again soon: its load changes by the second.
        Rejection::Refused | Rejection::NoDrills => 5.0,
        Rejection::Unreachable => 10.0,
        // A foreign server does not learn the protocol within seconds.
        Rejection::Garbage => 60.0,
    }
}

/// The same after a rescue that the rescue server ended, or that was lost.
pub(crate) const REST_AFTER_LOSS: f64 = 10.0;

#[cfg(test)]
mod tests {
    use levee_vocab::WebAddress;

    use super::*;

    fn site(host: &str) -> WebAddress {
        WebAddress {
            host: host.parse().unwrap(),
            port: 80,
        }
    }

    fn candidate(host: &str, kilobytes: u64) -> Candidate {
        Candidate {
            site: site(host),
            rescue: "192.0.2.7:7401".parse().unwrap(),
            free: ByteRate::from_kilobytes(kilobytes),
            https: AliasHttps::Unknown,
        }
    }

    fn parameters() -> Parameters {
        let domain = "aliases.example.net".parse().unwrap();
        let address = "192.0.2.1".parse().unwrap();
        let link = ByteRate::from_kilobytes(1250);
        Parameters::new(site("www.own.example"), address, domain, link)
    }

    /// The order in which candidates are asked when each accepts.
    fn order(candidates: &[(&str, u64)]) -> Vec<String> {
        let parameters = parameters();
        let mut allocation = Allocation::new(Random::from_seed(1));
        let found = candidates.iter().map(|(host, rate)| candidate(host, *rate));
        allocation.renew(found.collect(), &parameters);
        let mut taken = Vec::new();
        while let Some(next) = allocation.choose(Timestamp::ZERO, &parameters, &taken) {
            taken.push(next.site.host);
        }
        taken.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_largest_is_asked_first_and_never_oneself_or_one_without_room() {
        let asked = order(&[
            ("a.one.example", 1000),
            ("www.own.example", 9000),
            ("b.two.example", 5000),
            ("c.three.example", 0),
        ]);
        assert_eq!(asked, ["b.two.example", "a.one.example"]);
    }

    #[test]
    fn own_capacity_comes_before_diversity_and_diversity_before_size() {
        let asked = order(&[
            ("big.one.example", 5000),
            ("next.one.example", 4000),
            ("other.two.example", 1000),
            ("small.three.example", 999),
        ]);
        assert_eq!(
            asked,
            [
                "big.one.example",
                "other.two.example",
                "next.one.example",
                "small.three.example"
            ]
        );
    }

    #[test]
    fn what_became_of_a_call_is_told_while_help_is_needed() {
        let parameters = parameters();
        let mut allocation = Allocation::new(Random::from_seed(1));
        let (one, other) = ("a.one.example", "b.two.example");
        allocation.renew(
            vec![candidate(one, 1000), candidate(other, 900)],
            &parameters,
        );
        let now = Timestamp::ZERO;
        assert_eq!(allocation.call_view(now), CallView::NotCalled);
        allocation.set_need(Need::OneMore);
        assert_eq!(allocation.call_view(now), CallView::NotCalled);
        allocation.note_failure(now, &one.parse().unwrap(), Duration::from_secs(10));
        allocation.note_nobody_left();
        let left = |resting| CallView::NobodyLeft { resting };
        assert_eq!(allocation.call_view(now), left(1));
        // Its rest is over.
        assert_eq!(allocation.call_view(Timestamp::from_seconds(15)), left(0));
        allocation.next_link();
        assert_eq!(allocation.call_view(now), CallView::NotCalled);
        allocation.note_nobody_left();
        allocation.set_need(Need::None);
        assert_eq!(allocation.call_view(now), CallView::NotCalled);
    }

    #[test]
    fn a_failed_candidate_rests_twice_as_long_each_time() {
        let parameters = parameters();
        let mut allocation = Allocation::new(Random::from_seed(1));
        allocation.renew(vec![candidate("a.one.example", 1000)], &parameters);
        let host: HostName = "a.one.example".parse().unwrap();
        let rest = Duration::from_secs(10);
        let rests_until = |allocation: &mut Allocation, seconds| {
            allocation
                .choose(Timestamp::from_seconds(seconds), &parameters, &[])
                .is_none()
        };
        assert!(!rests_until(&mut allocation, 0));
        allocation.note_failure(Timestamp::ZERO, &host, rest);
        assert!(rests_until(&mut allocation, 4));
        assert!(!rests_until(&mut allocation, 15));
        allocation.note_failure(Timestamp::ZERO, &host, rest);
        assert!(rests_until(&mut allocation, 9));
        assert!(!rests_until(&mut allocation, 30));
        allocation.note_success(&host);
        assert!(!rests_until(&mut allocation, 0));
    }
}
