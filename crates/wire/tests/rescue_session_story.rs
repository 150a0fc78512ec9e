//! Rescue links from end to end, line by line, under a clock that the test owns.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use levee_vocab::{
    ByteRate, FetchKey, Peer, Peers, Purge, PurgeKind, PurgeScope, Timestamp, WebAddress,
};
use levee_wire::rescue::{Offer, Rate, ShutdownWord, Sos};
use levee_wire::{
    Digest, Ending, Event, Fault, FaultKind, Input, LINE_MAX, Output, Permit, PurgeAnswer, Refusal,
    Report, RescueSession, SessionLimits,
};

fn web(host: &str) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port: 8080 }
}

fn sos() -> Sos {
    let (origin, address) = (web("www.origin.com"), "1.2.3.4".parse().unwrap());
    Sos::new(origin, address, Duration::from_secs(600))
}

fn offer() -> Offer {
    Offer {
        alias: web("www-vh1.rescue.com"),
        address: "5.6.7.8".parse().unwrap(),
        rate: kilobytes(100),
        beats: true,
        drill: false,
        tls: None,
    }
}

fn kilobytes(number: u64) -> ByteRate {
    ByteRate::from_kilobytes(number)
}

fn told(number: u64) -> Rate {
    Rate {
        redirects: ByteRate::from_kilobytes(number),
        carried: None,
    }
}

fn at(milliseconds: u64) -> Timestamp {
    Timestamp::from_milliseconds(milliseconds)
}

/// Someone at netcat on the other side of a session: types lines, reads lines.
struct Link {
    session: RescueSession,
    sent: Vec<String>,
    told: Vec<Event>,
    ending: Option<Ending>,
}

impl Link {
    fn answering() -> Self {
        let session = RescueSession::answer(at(0), SessionLimits::default());
        Self::over(session)
    }

    fn calling() -> Self {
        let (session, first) = RescueSession::call(sos(), at(2000), SessionLimits::default());
        let mut link = Self::over(session);
        link.note(vec![first]);
        link
    }

    fn over(session: RescueSession) -> Self {
        Self {
            session,
            sent: Vec::new(),
            told: Vec::new(),
            ending: None,
        }
    }

    fn does(&mut self, now: Timestamp, input: Input<'_>) -> &mut Self {
        let outputs = self.session.handle(now, input);
        self.note(outputs);
        self
    }

    fn types(&mut self, line: &str) -> &mut Self {
        let line = format!("{line}\n");
        self.does(at(0), Input::BytesReceived(line.as_bytes()))
    }

    fn reads(&mut self, lines: &[&str]) -> &mut Self {
        assert_eq!(self.sent, lines);
        self.sent.clear();
        self
    }

    fn hears(&mut self, events: &[Event]) -> &mut Self {
        assert_eq!(self.told, events);
        self.told.clear();
        self
    }

    fn ends(&self, ending: Ending) {
        assert_eq!(self.ending, Some(ending));
        assert_eq!(self.session.next_deadline(), None);
    }

    fn note(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            assert_eq!(self.ending, None, "nothing comes after the end");
            match output {
                Output::Send(message) => self.sent.push(message.to_string()),
                Output::Tell(event) => self.told.push(event),
                Output::Close(ending) => self.ending = Some(ending),
            }
        }
    }
}

const SOS: &str = "1 SOS www.origin.com 1.2.3.4 8080 600";
const ACCEPT: &str = "1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100";

#[test]
fn the_papers_first_example_as_the_rescue_server_lives_it() {
    let mut link = Link::answering();
    link.types(SOS).hears(&[Event::SosReceived(sos())]);
    link.does(at(0), Input::SosAccepted(offer()))
        .reads(&[ACCEPT]);
    for (number, rate) in [(1, 60), (2, 50), (3, 100)] {
        link.does(at(0), Input::RateChanged(told(rate)));
        link.reads(&[&format!("{number} RATE {rate}")]);
        link.types(&format!("{number} 200 OK"));
        link.hears(&[Event::AnswerReceived]);
    }
    link.types("2 SHUTDOWN").reads(&["2 200 OK"]);
    link.hears(&[Event::ShutdownReceived(ShutdownWord::Unsaid)])
        .ends(Ending::Finished);
}

#[test]
fn the_papers_first_example_as_the_origin_server_lives_it() {
    let plain = Offer {
        beats: false,
        ..offer()
    };
    let mut link = Link::calling();
    link.reads(&[SOS])
        .types(ACCEPT)
        .hears(&[Event::Accepted(plain)]);
    for (number, rate) in [(1, 60), (2, 50), (3, 100)] {
        link.types(&format!("{number} RATE {rate}"));
        link.reads(&[&format!("{number} 200 OK")]);
        link.hears(&[Event::RateReceived(told(rate))]);
    }
    // The figure shows the last RATE once more; it is answered and changes nothing.
    link.types("3 RATE 100").reads(&["3 200 OK"]).hears(&[]);
    link.does(at(0), Input::ShutdownDecided)
        .reads(&["2 SHUTDOWN"]);
    link.types("2 200 OK").hears(&[Event::AnswerReceived]);
    link.ends(Ending::Finished);
}

#[test]
fn who_is_no_member_any_more_is_told_so_and_not_waited_for() {
    let mut rescue = Link::answering();
    rescue.types(SOS).does(at(0), Input::SosAccepted(offer()));
    rescue.does(at(0), Input::PeerDenied);
    rescue.reads(&[ACCEPT, "1 SHUTDOWN cause=not_a_member"]);
    rescue.hears(&[Event::SosReceived(sos()), Event::Lost(FaultKind::Closed)]);
    rescue.ends(Ending::Failed(Fault::PeerClosed));
    // At the other end; words that come later, and causes that nobody knows, do no harm.
    for (told, word) in [
        ("1 SHUTDOWN cause=not_a_member", ShutdownWord::NotAMember),
        (
            "1 SHUTDOWN of=7 cause=not_a_member",
            ShutdownWord::NotAMember,
        ),
        ("1 SHUTDOWN cause=full_moon", ShutdownWord::Unsaid),
    ] {
        let mut origin = Link::calling();
        origin.types(ACCEPT).types(told);
        origin.reads(&[SOS, "1 200 OK"]);
        let plain = Offer {
            beats: false,
            ..offer()
        };
        origin.hears(&[Event::Accepted(plain), Event::ShutdownReceived(word)]);
        origin.ends(Ending::Finished);
    }
}

#[test]
fn the_papers_second_example_from_both_sides() {
    let mut rescue = Link::answering();
    rescue
        .types(SOS)
        .does(at(0), Input::SosRejected)
        .reads(&["1 403 Reject"]);
    rescue.ends(Ending::Rejected);
    let mut origin = Link::calling();
    origin.types("1 403 Reject");
    origin.hears(&[Event::NotRescued(Refusal::Refused)]);
    origin.ends(Ending::Rejected);
}

#[test]
fn a_script_that_does_not_wait_gets_its_answers_in_order() {
    let mut link = Link::answering();
    link.types(SOS).types("2 SHUTDOWN").reads(&[]);
    link.does(at(0), Input::SosAccepted(offer()));
    link.reads(&[ACCEPT, "2 200 OK"]);
    link.hears(&[
        Event::SosReceived(sos()),
        Event::ShutdownReceived(ShutdownWord::Unsaid),
    ]);
    link.ends(Ending::Finished);
}

#[test]
fn a_beat_is_promised_only_to_who_asked_for_it() {
    let mut link = Link::answering();
    link.types(&format!("{SOS} beat=1 v=1"));
    link.does(at(0), Input::SosAccepted(offer()));
    link.reads(&[&format!("{ACCEPT} beat=1")]);
}

#[test]
fn a_repeated_number_with_another_meaning_ends_the_link() {
    let mut link = Link::calling();
    link.types(ACCEPT).types("1 RATE 60").types("1 RATE 50");
    link.ends(Ending::Failed(Fault::WrongNumber {
        expected: 2,
        got: 1,
    }));
    let mut link = Link::answering();
    link.types(SOS).types(SOS);
    link.ends(Ending::Failed(Fault::WrongNumber {
        expected: 2,
        got: 1,
    }));
}

#[test]
fn a_slow_peer_gets_the_newest_rate_when_it_answers() {
    let mut link = Link::answering();
    link.types(SOS)
        .does(at(0), Input::SosAccepted(offer()))
        .reads(&[ACCEPT]);
    for rate in 1..=9 {
        link.does(at(0), Input::RateChanged(told(rate)));
    }
    link.reads(&["1 RATE 1", "2 RATE 2", "3 RATE 3", "4 RATE 4"]);
    link.types("1 200 OK").reads(&["5 RATE 9"]);
    link.types("2 200 OK").reads(&[]);
}

#[test]
fn both_sides_may_end_the_rescue_at_once() {
    let mut link = Link::answering();
    link.types(SOS)
        .does(at(0), Input::SosAccepted(offer()))
        .reads(&[ACCEPT]);
    link.does(at(0), Input::ShutdownDecided)
        .reads(&["1 SHUTDOWN"]);
    link.types("2 SHUTDOWN")
        .reads(&["2 200 OK"])
        .ends(Ending::Finished);
}

#[test]
fn silence_ends_a_link_at_its_deadline_and_not_before() {
    let mut silent = Link::answering();
    assert_eq!(silent.session.next_deadline(), Some(at(5000)));
    silent.does(at(4999), Input::TimerFired);
    assert_eq!(silent.ending, None);
    silent.does(at(5000), Input::TimerFired);
    silent.ends(Ending::Failed(Fault::NoSos));

    let mut unanswered = Link::calling();
    assert_eq!(unanswered.session.next_deadline(), Some(at(2000)));
    unanswered.does(at(2000), Input::TimerFired);
    unanswered.hears(&[Event::NotRescued(Refusal::Unreachable)]);

    let mut deaf = Link::answering();
    deaf.types(SOS).does(at(0), Input::SosAccepted(offer()));
    deaf.does(at(100), Input::RateChanged(told(1))).told.clear();
    deaf.does(at(10_100), Input::TimerFired);
    deaf.hears(&[Event::Lost(FaultKind::Silent)]);
    deaf.ends(Ending::Failed(Fault::NoAnswer));
}

#[test]
fn half_a_line_must_find_its_end() {
    let mut link = Link::calling();
    link.types(ACCEPT)
        .does(at(100), Input::BytesReceived(b"1 RA"));
    link.does(at(3000), Input::BytesReceived(b"TE"));
    assert_eq!(link.session.next_deadline(), Some(at(5100)));
    link.does(at(5100), Input::TimerFired);
    link.ends(Ending::Failed(Fault::HalfLine));
}

#[test]
fn a_flood_of_harmless_lines_is_a_fault() {
    let mut link = Link::answering();
    link.types(SOS).does(at(0), Input::SosAccepted(offer()));
    for number in 2..=64 {
        link.types(&format!("{number} HELLO"));
    }
    assert_eq!(link.ending, None);
    link.types("65 HELLO");
    link.ends(Ending::Failed(Fault::TooManyMessages));
}

#[test]
fn a_megabyte_without_an_end_is_a_fault_after_one_line_of_it() {
    let mut link = Link::answering();
    let chunk = [b'x'; 1 << 20];
    link.does(at(0), Input::BytesReceived(&chunk));
    link.ends(Ending::Failed(Fault::LineTooLong(1024)));
}

#[test]
fn what_follows_a_purge_waits_until_it_is_done() {
    let mut link = Link::answering();
    link.types(SOS).hears(&[Event::SosReceived(sos())]);
    link.does(at(0), Input::SosAccepted(offer()))
        .reads(&[ACCEPT]);
    let everything = Purge {
        scope: PurgeScope::All,
        kind: PurgeKind::Hard,
    };
    link.types("2 PURGE\n3 PURGE url=/a\n4 SHUTDOWN")
        .hears(&[Event::PurgeReceived(everything)])
        .reads(&[]);
    let second = Purge::url("/a", PurgeKind::Hard).unwrap();
    link.does(at(1), Input::PurgeDone { objects: 5 })
        .reads(&["2 200 OK objects=5"])
        .hears(&[Event::PurgeReceived(second)]);
    link.does(at(2), Input::PurgeDone { objects: 0 })
        .reads(&["3 200 OK objects=0", "4 200 OK"])
        .hears(&[Event::ShutdownReceived(ShutdownWord::Unsaid)])
        .ends(Ending::Finished);
}

#[test]
fn an_origin_learns_what_became_of_its_purges_in_order() {
    let mut link = Link::calling();
    link.types(ACCEPT);
    link.sent.clear();
    link.told.clear();
    let purge = |url| Input::PurgeDecided(Purge::url(url, PurgeKind::Soft).unwrap());
    link.does(at(1), purge("/a")).does(at(1), purge("/b"));
    link.reads(&["2 PURGE url=/a soft=1", "3 PURGE url=/b soft=1"]);
    link.types("2 200 OK objects=4\n3 501 Unknown");
    let answered = [
        Event::PurgeAnswered(PurgeAnswer::Done { objects: 4 }),
        Event::AnswerReceived,
        Event::PurgeAnswered(PurgeAnswer::Refused),
        Event::AnswerReceived,
    ];
    link.hears(&answered);
}

#[test]
fn an_origin_tells_its_rescue_servers_of_each_other_as_far_as_a_line_goes() {
    let key = FetchKey::from_bytes([7; 16]);
    let peer = |number: usize| Peer {
        alias: web(&format!("www-vh{number}.{}.example", "a".repeat(50))),
        address: "5.6.7.8".parse().unwrap(),
        tls: Some(50_000),
        rate: ByteRate::from_kilobytes(100),
    };
    let members: Vec<Peer> = (0..30).map(peer).collect();
    let mut link = Link::calling();
    link.types(ACCEPT);
    link.sent.clear();
    link.told.clear();
    let peers = Peers { key, members };
    link.does(at(1), Input::PeersDecided(peers.clone()));
    let line = link.sent.pop().unwrap();
    assert!(line.len() < LINE_MAX, "{line}");
    link.types("2 501 Unknown").hears(&[Event::AnswerReceived]);

    let mut other = Link::answering();
    other.types(SOS).does(at(0), Input::SosAccepted(offer()));
    other.sent.clear();
    other.told.clear();
    other.types(&line).reads(&["2 200 OK"]);
    let told = other.told.pop();
    let Some(Event::PeersReceived(heard)) = told else {
        panic!("peers were expected, not {told:?}");
    };
    assert!(heard.members.len() > 8);
    assert_eq!(heard.members, peers.members[..heard.members.len()]);
}

#[test]
fn a_purge_that_no_line_can_hold_is_one_of_everything() {
    let mut link = Link::calling();
    link.types(ACCEPT);
    link.sent.clear();
    for url in [format!("/{}", "a".repeat(2000)), "/ü".to_owned()] {
        let purge = Purge::url(&url, PurgeKind::Hard).unwrap();
        link.does(at(1), Input::PurgeDecided(purge));
    }
    link.reads(&["2 PURGE", "3 PURGE"]);
}

#[test]
fn a_permit_goes_to_the_rescue_server_and_a_report_to_the_origin() {
    let permit = Permit {
        length: Duration::from_secs(3600),
        proof: None,
    };
    let report = Report {
        alias: web("www-vh4.other.net"),
        target: "/".into(),
        seen: Digest([7; 32]),
        by_https: false,
    };
    let mut origin = Link::calling();
    origin.types(ACCEPT);
    origin.sent.clear();
    origin.told.clear();
    origin.does(at(1), Input::PermitDecided(permit.clone()));
    // Only a rescue server has something to report.
    origin.does(at(1), Input::ReportDecided(report.clone()));
    origin.reads(&["2 PERMIT for=3600"]);
    let mut helper = Link::answering();
    helper.types(SOS).does(at(0), Input::SosAccepted(offer()));
    helper.sent.clear();
    helper.told.clear();
    helper.types("2 PERMIT for=3600").reads(&["2 200 OK"]);
    helper.hears(&[Event::PermitReceived(permit)]);
    helper.does(at(1), Input::ReportDecided(report.clone()));
    let line = helper.sent.pop().unwrap();
    origin.types(&line).reads(&["1 200 OK"]);
    origin.hears(&[Event::ReportReceived(report)]);
}
