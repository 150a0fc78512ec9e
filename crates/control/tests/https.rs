//! A site whose visitors come by HTTPS, and rescue servers whose aliases do not answer by it.
#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::*;
use levee_control::{Brain, Candidate, Input, Output, PhaseName, ShutdownCause, Visitors};
use levee_vocab::{AliasHttps, ByteRate, LinkId};

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
        self.interval_with(900, 0);
    }

    /// An interval of so many kB, and of so many of these by HTTPS.
    fn interval_with(&mut self, kilobytes: u64, by_https: u64) {
        self.second += 1;
        let mut sample = own(kilobytes);
        sample.https_bytes = by_https * 1000;
        self.tell(Input::IntervalEnded(sample));
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

    /// The helper is still there.
    fn beats(&mut self, link: LinkId) {
        let rate = ByteRate::from_kilobytes(400);
        let carried = None;
        self.tell(Input::RateReceived {
            link,
            rate,
            carried,
        });
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

/// D_out is 1000 kB/s. The helper without HTTPS has room for all that it can be sent, so nobody
/// else would ever be asked.
#[test]
fn who_cannot_be_redirected_to_the_only_helper_is_helped_by_another() {
    let said = [AliasHttps::Unknown, AliasHttps::Yes, AliasHttps::No];
    for (https, is_asked) in said.into_iter().zip([true, true, false]) {
        let mut site = Site::told(Visitors::Both, &[(PLAIN, AliasHttps::No)]);
        let plain = site.accepts(PLAIN);
        let found = vec![
            candidate(PLAIN, 9000),
            Candidate {
                https,
                ..candidate(SECURE, 500)
            },
        ];
        site.tell(Input::CandidatesFound(found));
        // As long as few come by HTTPS nobody is drafted for them.
        site.interval_with(900, 400);
        assert_eq!(site.asked(), None);
        site.interval_with(900, 600);
        assert_eq!(site.asked().is_some(), is_asked, "{https:?}");
        if is_asked {
            site.accepts(SECURE);
            assert!(!site.lets_go(plain), "it goes on with the others");
            assert_eq!(site.brain.view().rescue_servers.len(), 2);
            site.interval_with(900, 600);
            assert_eq!(site.asked(), None, "there is room for them now");
        }
    }
}

/// Once for each of them, however long it lasts, and until somebody was asked again.
#[test]
fn whom_nobody_is_found_for_is_told() {
    let told = |site: &Site| {
        let decisions = site.decisions();
        let count = |what: &str| decisions.matches(what).count();
        (
            count("visitors by HTTPS need help"),
            count("ask for help\n"),
        )
    };
    let mut site = Site::told(Visitors::Both, &[(PLAIN, AliasHttps::No)]);
    let plain = site.accepts(PLAIN);
    site.interval_with(900, 400);
    assert_eq!(told(&site), (0, 0), "few come by HTTPS");
    site.beats(plain);
    site.interval_with(900, 600);
    site.interval_with(900, 600);
    assert_eq!(told(&site), (1, 0), "{}", site.decisions());
    // What the helper can take is 400 kB/s, so now those by HTTP need another one as well.
    for _ in 0..2 {
        site.beats(plain);
        site.second += 1;
        site.tell(Input::IntervalEnded(with_redirects(own(900), plain, 399)));
        site.interval_with(900, 600);
    }
    assert_eq!(told(&site), (1, 1), "{}", site.decisions());
    site.tell(Input::CandidatesFound(vec![candidate(SECURE, 500)]));
    let secure = site.accepts(SECURE);
    site.tell(Input::ShutdownReceived { link: secure });
    site.tell(Input::CandidatesFound(Vec::new()));
    site.beats(plain);
    site.interval_with(900, 600);
    assert_eq!(told(&site), (2, 1), "{}", site.decisions());
}

/// Older versions do not say beforehand what they have.
#[test]
fn a_second_helper_that_is_of_no_use_to_them_either_is_let_go() {
    const OTHER: &str = "www.other.example";
    let mut site = Site::told(Visitors::Both, &[(PLAIN, AliasHttps::No)]);
    site.accepts(PLAIN);
    let found = vec![candidate(OTHER, 800), candidate(SECURE, 500)];
    site.tell(Input::CandidatesFound(found));
    site.interval_with(900, 600);
    let other = site.accepts(OTHER);
    assert!(site.lets_go(other), "{:?}", site.told);
    site.accepts(SECURE);
    assert_eq!(site.brain.view().rescue_servers.len(), 2);
}

#[test]
fn one_that_visitors_by_https_have_used_up_is_joined_by_another() {
    let mut site = Site::told(Visitors::Both, &[(PLAIN, AliasHttps::No)]);
    site.accepts(PLAIN);
    site.tell(Input::CandidatesFound(vec![candidate(SECURE, 500)]));
    site.interval_with(900, 600);
    let secure = site.accepts(SECURE);
    // What it can take is 400 kB/s.
    let mut sample = with_redirects(own(900), secure, 399);
    sample.https_bytes = 600_000;
    let more = vec![candidate("www.more.example", 500)];
    site.tell(Input::CandidatesFound(more));
    site.tell(Input::IntervalEnded(sample));
    let (asked, _) = site.asked().unwrap();
    assert_eq!(asked, "www.more.example");
}

/// Until then everybody came by HTTP, and was helped so.
#[test]
fn when_the_first_certificate_comes_somebody_with_https_is_asked() {
    let mut site = Site::told(Visitors::Http, &[(PLAIN, AliasHttps::No)]);
    site.accepts(PLAIN);
    site.tell(Input::CandidatesFound(vec![candidate(SECURE, 500)]));
    site.interval();
    assert_eq!(site.asked(), None);
    let mut parameters = site.brain.parameters().clone();
    parameters.visitors = Visitors::Https;
    site.tell(Input::ParametersChanged(Box::new(parameters)));
    site.interval();
    site.accepts(SECURE);
    site.interval();
    assert_eq!(site.asked(), None);
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
