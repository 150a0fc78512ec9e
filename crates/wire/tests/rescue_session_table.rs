//! Every phase of a rescue link against everything that can happen to it.
//!
//! The table is `rescue_session_table.golden`; reading it is the review. `UPDATE_GOLDEN=1` rewrites
//! it.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::time::Duration;

use levee_vocab::{ByteRate, Purge, PurgeKind, Timestamp, WebAddress};
use levee_wire::rescue::{Offer, Rate, Sos};
use levee_wire::{Input, Output, RescueSession, SessionLimits};

const SOS: &[u8] = b"1 SOS www.origin.com 1.2.3.4 8080 600\n";
const ACCEPT: &[u8] = b"1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100\n";

fn told(number: u64) -> Rate {
    Rate {
        redirects: ByteRate::from_kilobytes(number),
        carried: None,
    }
}

fn web(host: &str) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port: 8080 }
}

fn offer() -> Offer {
    Offer {
        alias: web("www-vh1.rescue.com"),
        address: "5.6.7.8".parse().unwrap(),
        rate: ByteRate::from_kilobytes(100),
        beats: true,
        drill: false,
        tls: None,
    }
}

fn calling() -> RescueSession {
    let (origin, address) = (web("www.origin.com"), "1.2.3.4".parse().unwrap());
    let sos = Sos::new(origin, address, Duration::from_secs(600));
    RescueSession::call(sos, Timestamp::from_seconds(2), SessionLimits::default()).0
}

fn awaiting() -> RescueSession {
    RescueSession::answer(Timestamp::ZERO, SessionLimits::default())
}

fn after(mut session: RescueSession, inputs: &[Input<'_>]) -> RescueSession {
    for input in inputs {
        session.handle(Timestamp::ZERO, input.clone());
    }
    session
}

fn purge() -> Input<'static> {
    Input::PurgeDecided(Purge::url("/b", PurgeKind::Soft).unwrap())
}

fn phases() -> Vec<(&'static str, RescueSession)> {
    use Input::{BytesReceived, RateChanged, ShutdownDecided, SosAccepted};
    let rate = RateChanged(told(60));
    let deciding = after(awaiting(), &[BytesReceived(SOS)]);
    let rescuing = after(deciding.clone(), &[SosAccepted(offer())]);
    let rescued = after(calling(), &[BytesReceived(ACCEPT)]);
    vec![
        ("Calling", calling()),
        ("Rescued", rescued.clone()),
        (
            "Rescued, PURGE unanswered",
            after(rescued.clone(), &[purge()]),
        ),
        ("Rescued, closing", after(rescued, &[ShutdownDecided])),
        ("Awaiting", awaiting()),
        ("Deciding", deciding.clone()),
        (
            "Deciding, SHUTDOWN waiting",
            after(deciding.clone(), &[BytesReceived(b"2 SHUTDOWN\n")]),
        ),
        ("Deciding, peer gone", after(deciding, &[Input::PeerClosed])),
        ("Rescuing", rescuing.clone()),
        (
            "Rescuing, RATE unanswered",
            after(rescuing.clone(), &[rate]),
        ),
        (
            "Rescuing, purging",
            after(rescuing.clone(), &[BytesReceived(b"2 PURGE\n")]),
        ),
        ("Rescuing, closing", after(rescuing, &[ShutdownDecided])),
        ("Over", after(awaiting(), &[Input::PeerClosed])),
    ]
}

/// Lines with the number that is due come as `n`.
const LINES: &[&str] = &[
    "n SOS www.origin.com 1.2.3.4 8080 600",
    "n RATE 60",
    "n PURGE url=/a",
    "n PEERS key=07070707070707070707070707070707",
    "n PERMIT for=3600",
    "n REPORT of=www-vh1.rescue.com:80 url=/ \
     seen=0707070707070707070707070707070707070707070707070707070707070707",
    "n SHUTDOWN",
    "n SHUTDOWN cause=not_a_member",
    "n HELLO",
    "9 SHUTDOWN",
    "n SOS",
    "what is this",
    "1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100",
    "1 200 OK www.origin.com 5.6.7.8 8080 100",
    "1 200 OK",
    "1 403 Reject",
    "1 503 Busy",
    "2 200 OK",
    "2 200 OK objects=3",
    "2 501 Unknown",
    "9 200 OK",
];

fn describe(outputs: &[Output]) -> String {
    let mut text = String::new();
    for output in outputs {
        let separator = if text.is_empty() { "" } else { "; " };
        text.push_str(separator);
        match output {
            Output::Send(message) => write!(text, "send {message}").unwrap(),
            Output::Tell(event) => {
                let event = format!("{event:?}");
                let name = event.split(['(', '{']).next().unwrap();
                let detail = match event.len() < 40 {
                    true => &event,
                    false => name,
                };
                write!(text, "tell {detail}").unwrap();
            }
            Output::Close(ending) => write!(text, "close {ending:?}").unwrap(),
        }
    }
    match text.is_empty() {
        true => "-".to_owned(),
        false => text,
    }
}

fn table() -> String {
    let mut table = String::new();
    for (name, session) in phases() {
        writeln!(table, "## {name}").unwrap();
        for line in LINES {
            let due = (session.view().heard + 1).to_string();
            let line = line.replacen('n', &due, usize::from(line.starts_with('n')));
            let bytes = format!("{line}\n").into_bytes();
            let outputs = session
                .clone()
                .handle(Timestamp::ZERO, Input::BytesReceived(&bytes));
            writeln!(table, "{line:46} => {}", describe(&outputs)).unwrap();
        }
        let late = session
            .next_deadline()
            .unwrap_or(Timestamp::from_seconds(3600));
        for (what, now, input) in [
            ("(peer closed)", Timestamp::ZERO, Input::PeerClosed),
            ("(peer stalled)", Timestamp::ZERO, Input::PeerStalled),
            ("(timer, early)", Timestamp::ZERO, Input::TimerFired),
            ("(timer, at the deadline)", late, Input::TimerFired),
            ("(accept)", Timestamp::ZERO, Input::SosAccepted(offer())),
            ("(reject)", Timestamp::ZERO, Input::SosRejected),
            ("(rate)", Timestamp::ZERO, Input::RateChanged(told(50))),
            ("(purge)", Timestamp::ZERO, purge()),
            (
                "(purge done)",
                Timestamp::ZERO,
                Input::PurgeDone { objects: 7 },
            ),
            ("(shut down)", Timestamp::ZERO, Input::ShutdownDecided),
            ("(deny)", Timestamp::ZERO, Input::PeerDenied),
        ] {
            let outputs = session.clone().handle(now, input);
            writeln!(table, "{what:46} => {}", describe(&outputs)).unwrap();
        }
        table.push('\n');
    }
    table
}

#[test]
fn every_phase_meets_everything_that_can_happen() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/rescue_session_table.golden"
    );
    let table = table();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (index, (got, expected)) in table.lines().zip(golden.lines()).enumerate() {
        assert_eq!(got, expected, "line {} of the table", index + 1);
    }
    assert_eq!(table.lines().count(), golden.lines().count());
}
