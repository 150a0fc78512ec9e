//! Purges under a clock that the test owns.

use super::*;

const A: LinkId = LinkId::Outbound(1);
const B: LinkId = LinkId::Outbound(2);

fn at(milliseconds: u64) -> Timestamp {
    Timestamp::from_milliseconds(milliseconds)
}

fn web(host: &str) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port: 80 }
}

fn url(path: &str) -> Purge {
    Purge::url(path, PurgeKind::Soft).unwrap()
}

fn with_two() -> Purges {
    let mut purges = Purges::default();
    for (link, site) in [(A, "a.example"), (B, "b.example")] {
        let site = web(site);
        let out = purges.handle(at(0), PurgeInput::ServerCame { link, site });
        assert_eq!(out, []);
    }
    purges
}

fn asked(number: u64, purge: Purge) -> PurgeInput {
    PurgeInput::Asked { number, purge }
}

fn confirmed(link: LinkId, objects: u64) -> PurgeInput {
    let outcome = PurgeOutcome::Confirmed { objects };
    PurgeInput::Answered { link, outcome }
}

fn send(link: LinkId, purge: &Purge) -> PurgeOutput {
    let purge = purge.clone();
    PurgeOutput::Send { link, purge }
}

fn report(number: u64, outcomes: &[(&str, PurgeOutcome)]) -> PurgeOutput {
    let servers = outcomes.iter();
    let servers = servers.map(|&(site, outcome)| Confirmation {
        site: web(site),
        outcome,
    });
    let servers = servers.collect();
    PurgeOutput::Report { number, servers }
}

#[test]
fn a_purge_goes_to_all_and_is_reported_when_all_have_confirmed() {
    let mut purges = with_two();
    let a = url("/a");
    let out = purges.handle(at(0), asked(7, a.clone()));
    assert_eq!(out, [send(A, &a), send(B, &a)]);
    assert_eq!(purges.handle(at(5), confirmed(B, 3)), []);
    let outcome = |objects| PurgeOutcome::Confirmed { objects };
    let all = report(7, &[("a.example", outcome(1)), ("b.example", outcome(3))]);
    assert_eq!(purges.handle(at(9), confirmed(A, 1)), [all]);
    assert_eq!(purges.next_deadline(), None);
}

#[test]
fn without_rescue_servers_the_report_comes_at_once() {
    let mut purges = Purges::default();
    let out = purges.handle(at(0), asked(1, url("/a")));
    assert_eq!(out, [report(1, &[])]);
}

#[test]
fn who_is_silent_for_two_seconds_is_reported_so_and_may_confirm_later() {
    let mut purges = with_two();
    purges.handle(at(0), asked(1, url("/a")));
    purges.handle(at(1), confirmed(A, 1));
    assert_eq!(purges.next_deadline(), Some(at(2000)));
    assert_eq!(purges.handle(at(1999), PurgeInput::TimerFired), []);
    let one = PurgeOutcome::Confirmed { objects: 1 };
    let two = report(
        1,
        &[("a.example", one), ("b.example", PurgeOutcome::Silent)],
    );
    assert_eq!(purges.handle(at(2000), PurgeInput::TimerFired), [two]);
    // A late word belongs to the purge that it is for, and not to the next one.
    purges.handle(at(2100), asked(2, url("/b")));
    purges.handle(at(2101), confirmed(A, 0));
    assert_eq!(purges.handle(at(2102), confirmed(B, 9)), []);
    let none = PurgeOutcome::Confirmed { objects: 0 };
    let both = report(2, &[("a.example", none), ("b.example", none)]);
    assert_eq!(purges.handle(at(2103), confirmed(B, 0)), [both]);
}

#[test]
fn a_lost_link_is_reported_at_once_and_one_that_refuses_too() {
    let mut purges = with_two();
    purges.handle(at(0), asked(1, url("/a")));
    assert_eq!(purges.handle(at(1), PurgeInput::ServerLost { link: A }), []);
    let (link, outcome) = (B, PurgeOutcome::Refused);
    let out = purges.handle(at(2), PurgeInput::Answered { link, outcome });
    let lost = ("a.example", PurgeOutcome::Lost);
    assert_eq!(out, [report(1, &[lost, ("b.example", outcome)])]);
    // The next purge does not wait for who is gone.
    let b = url("/b");
    assert_eq!(purges.handle(at(3), asked(2, b.clone())), [send(B, &b)]);
}

#[test]
fn what_fits_nothing_changes_nothing() {
    let mut purges = with_two();
    assert_eq!(purges.handle(at(0), confirmed(A, 1)), []);
    assert_eq!(purges.handle(at(0), confirmed(LinkId::Outbound(9), 1)), []);
    let link = LinkId::Outbound(9);
    assert_eq!(purges.handle(at(0), PurgeInput::ServerLost { link }), []);
    assert_eq!(purges.handle(at(0), PurgeInput::TimerFired), []);
}

/// Sends of a link among outputs.
fn sends(out: &[PurgeOutput], link: LinkId) -> Vec<Purge> {
    let sends = out.iter().filter_map(|output| match output {
        PurgeOutput::Send { link: to, purge } if *to == link => Some(purge.clone()),
        PurgeOutput::Send { .. } | PurgeOutput::Report { .. } => None,
    });
    sends.collect()
}

#[test]
fn a_flood_of_purges_does_not_flood_a_link() {
    let mut purges = Purges::default();
    let (link, site) = (A, web("a.example"));
    purges.handle(at(0), PurgeInput::ServerCame { link, site });
    let mut sent = 0;
    for number in 0..200 {
        let out = purges.handle(at(0), asked(number, url(&format!("/{number}"))));
        sent += sends(&out, A).len();
    }
    assert_eq!(sent, SENT_MAX);
    // Everything that waited too long in too great a number has become one purge.
    let mut seen = Vec::new();
    for step in 0..400 {
        let out = purges.handle(at(step * 100), confirmed(A, 0));
        seen.extend(sends(&out, A));
    }
    assert!(seen.len() < 100 && seen.iter().any(|purge| purge.scope == PurgeScope::All));
    assert!(purges.asked.is_empty() && purges.next_deadline().is_none());
}

#[test]
fn a_second_takes_so_many_purges_and_the_next_second_more() {
    let mut purges = Purges::default();
    let (link, site) = (A, web("a.example"));
    purges.handle(at(0), PurgeInput::ServerCame { link, site });
    let mut sent = 0;
    for number in 0..40 {
        let out = purges.handle(at(0), asked(number, url("/a")));
        sent += sends(&out, A).len();
        sent += sends(&purges.handle(at(0), confirmed(A, 0)), A).len();
    }
    assert_eq!(sent, SENT_PER_SECOND as usize);
    assert_eq!(purges.next_deadline(), Some(at(1000)));
    let out = purges.handle(at(1000), PurgeInput::TimerFired);
    assert_eq!(sends(&out, A).len(), SENT_MAX);
}
