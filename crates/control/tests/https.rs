//! A site whose visitors come by HTTPS, and rescue servers whose aliases do not answer by it.
#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::*;
use levee_control::{Brain, Candidate, Input, Output, PhaseName, ShutdownCause, Visitors};
use levee_vocab::{AliasHttps, LinkId};

const PLAIN: &str = "www.plain.example";
const SECURE: &str = "www.secure.example";
const CAUSE: ShutdownCause = ShutdownCause::NoHttps;

/// A site in need that asks these candidates, the first of which offers most.
struct Site {
    brain: Brain,
    told: Vec<Output>,
    second: u64,
}

impl Site {
    /// Candidates that do not say whether they have HTTPS.
    fn new(visitors: Visitors, candidates: &[&str]) -> Self {
        let unknown = candidates.iter().map(|host| (*host, AliasHttps::Unknown));
        Self::told(visitors, &unknown.collect::<Vec<_>>())
    }

    fn told(visitors: Visitors, candidates: &[(&str, AliasHttps)]) -> Self {
        let mut parameters = parameters("www.own.example");
        parameters.visitors = visitors;
        let brain = Brain::new(parameters, 1, Vec::new());
        let found = candidates.iter().enumerate();
        let found = found.map(|(nth, (host, https))| Candidate {
            https: *https,
            ..candidate(host, 9500 - 1000 * nth as u64)
        });
        let (told, second) = (Vec::new(), 0);
        let mut site = Self {
            brain,
            told,
            second,
        };
        site.tell(Input::CandidatesFound(found.collect()));
        site.interval();
        site
    }

    fn tell(&mut self, input: Input) {
        self.told = self.brain.handle(at(self.second), input);
    }

    fn interval(&mut self) {
        self.second += 1;
        self.tell(Input::IntervalEnded(own(900)));
    }

    /// Who is asked now.
    fn asked(&self) -> Option<(String, LinkId)> {
        self.told.iter().find_map(|output| {
            if let Output::CallForHelp {
                link, candidate, ..
            } = output
            {
                return Some((candidate.site.host.to_string(), *link));
            }
            None
        })
    }

    /// Whoever is asked, who must be `host`, accepts.
    fn accepts(&mut self, host: &str) -> LinkId {
        let (asked, link) = self.asked().unwrap();
        assert_eq!(asked, host);
        let mut input = accepted(link, 400, true);
        if let Input::RescueAccepted { tls, .. } = &mut input {
            *tls = (host == SECURE).then_some(443);
        }
        self.tell(input);
        link
    }

    fn lets_go(&self, link: LinkId) -> bool {
        let cause = CAUSE;
        self.told.contains(&Output::ShutDown { link, cause })
    }

    /// Why nobody or somebody helps, in words.
    fn decisions(&self) -> String {
        let view = self.brain.view();
        let decisions = view.decisions.iter();
        decisions
            .map(|entry| format!("{}\n", entry.reason))
            .collect()
    }
}

#[test]
fn who_has_no_https_is_let_go_at_once_and_the_next_is_asked() {
    for visitors in [Visitors::Https, Visitors::Both] {
        let mut site = Site::new(visitors, &[PLAIN, SECURE]);
        let plain = site.accepts(PLAIN);
        assert!(site.lets_go(plain), "{:?}", site.told);
        assert!(site.brain.plan().redirect.is_none(), "it sees no visitor");
        site.accepts(SECURE);
        let plan = site.brain.plan();
        let targets = &plan.redirect.as_ref().unwrap().targets;
        let ports: Vec<_> = targets.iter().map(|target| target.tls).collect();
        assert_eq!(ports, [Some(443)]);
        let why = format!("{PLAIN} does not help: {CAUSE}");
        assert!(site.decisions().contains(&why), "{}", site.decisions());
    }
}

#[test]
fn who_says_that_it_has_no_https_is_not_asked_in_vain() {
    let candidates = [(PLAIN, AliasHttps::No), (SECURE, AliasHttps::Yes)];
    for visitors in [Visitors::Https, Visitors::Both] {
        let mut site = Site::told(visitors, &candidates);
        site.accepts(SECURE);
        let view = site.brain.view();
        assert_eq!(view.rescue_servers.len(), 1, "{visitors:?}");
    }
    let alone = Site::told(Visitors::Https, &candidates[..1]);
    assert_eq!(alone.asked(), None);
    let mut alone = Site::told(Visitors::Both, &candidates[..1]);
    alone.accepts(PLAIN);
    assert_eq!(alone.brain.view().phase, PhaseName::Sos);
    let mut by_http = Site::told(Visitors::Http, &candidates);
    by_http.accepts(PLAIN);
}

/// D_out is 1000 kB/s. Who is surely of use comes before who may be, but not before one with room
/// for all visitors: that would cost them an interval each.
#[test]
fn who_has_https_is_asked_before_who_may_have_it() {
    let older = (PLAIN, AliasHttps::Unknown);
    let (newer, small) = (
        (SECURE, AliasHttps::Yes),
        ("www.small.example", AliasHttps::Yes),
    );
    let asked = |candidates: &[(&str, AliasHttps)]| {
        let site = Site::told(Visitors::Https, candidates);
        site.asked().map(|(host, _)| host)
    };
    assert_eq!(asked(&[older, newer]).as_deref(), Some(SECURE));
    // The ninth offers 1500 kB/s, and the tenth 500.
    for (place, first) in [(8, "www.small.example"), (9, PLAIN)] {
        let mut many = vec![("www.none.example", AliasHttps::No); place];
        many[0] = older;
        many.push(small);
        assert_eq!(asked(&many).as_deref(), Some(first));
    }
}

#[test]
fn by_http_nobody_is_let_go_for_it() {
    let mut site = Site::new(Visitors::Http, &[PLAIN, SECURE]);
    site.accepts(PLAIN);
    assert_eq!(site.brain.view().phase, PhaseName::Sos);
}

/// Where all visitors come by HTTPS nobody is better than one who cannot have them; where some do,
/// one who can have the others is.
#[test]
fn where_nobody_has_https_visitors_by_http_are_helped() {
    let mut site = Site::new(Visitors::Https, &[PLAIN]);
    let plain = site.accepts(PLAIN);
    assert!(site.lets_go(plain), "{:?}", site.told);
    assert_eq!(site.brain.view().rescue_servers, []);
    let mut site = Site::new(Visitors::Both, &[PLAIN]);
    site.accepts(PLAIN);
    assert_eq!(site.brain.view().phase, PhaseName::Sos);
    // Who was let go for another is asked again when that one is gone.
    let mut site = Site::new(Visitors::Both, &[PLAIN, SECURE]);
    site.accepts(PLAIN);
    let (_, link) = site.asked().unwrap();
    site.tell(Input::ShutdownReceived { link });
    site.accepts(PLAIN);
    assert_eq!(site.brain.view().phase, PhaseName::Sos);
}

#[test]
fn it_is_asked_again_when_it_may_have_a_certificate() {
    let mut site = Site::new(Visitors::Https, &[PLAIN]);
    site.accepts(PLAIN);
    let let_go = site.second;
    while site.asked().is_none() {
        assert!(site.second < let_go + 1000, "never asked again");
        site.interval();
    }
    assert_eq!(site.second, let_go + 300);
}

#[test]
fn a_drill_rehearses_with_everybody_whom_visitors_can_be_sent_to() {
    for (visitors, stays) in [(Visitors::Both, true), (Visitors::Https, false)] {
        let mut parameters = parameters("www.own.example");
        parameters.visitors = visitors;
        let mut brain = Brain::new(parameters, 1, Vec::new());
        let found = vec![candidate(PLAIN, 5000), candidate(SECURE, 4000)];
        brain.handle(at(0), Input::CandidatesFound(found));
        let told = brain.handle(at(0), Input::DrillOrdered(drill_order(60)));
        let link = called(&told).unwrap();
        let told = brain.handle(at(0), joined(link, 400));
        let cause = CAUSE;
        let lets_go = told.contains(&Output::ShutDown { link, cause });
        assert_eq!(lets_go, !stays, "{visitors:?}");
        assert!(called(&told).is_some(), "the other one is asked as well");
    }
}
