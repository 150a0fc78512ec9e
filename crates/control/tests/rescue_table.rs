//! Every phase meets every input; the answers are kept in `rescue_table.golden`.
//!
//! A phase is reached by a short history of inputs, so the table shows only what can be. The same
//! run draws the transitions in the header of `rescue.rs`. `UPDATE_GOLDEN=1` rewrites both: then
//! read the diff.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use fixtures::{
    accepted, call, candidate, drill_call, drill_order, joined, own, parameters, peers,
    with_redirects, with_rescue,
};
use levee_control::{
    Brain, CopyOutcome, DrillStop, HotSpotOutput, HotSpotStep, Input, LinkLoss, Output, Parameters,
    PhaseName, Records, Rejection,
};
use levee_vocab::{ByteRate, LinkId, Timestamp};

const ASKED: LinkId = LinkId::Outbound(1);
const ORIGIN: LinkId = LinkId::Inbound(1);
const NEVER: LinkId = LinkId::Outbound(9);
const STRANGER: LinkId = LinkId::Inbound(99);

/// The histories that lead to each phase, with an input each tenth of a second.
fn histories() -> Vec<(&'static str, Vec<Input>)> {
    let candidates = Input::CandidatesFound(vec![
        candidate("www.rescue1.example", 5000),
        candidate("www.rescue2.example", 4000),
    ]);
    let called = vec![candidates.clone(), Input::IntervalEnded(own(600))];
    let mut helped = called.clone();
    helped.push(accepted(ASKED, 400, true));
    let rescuing = vec![candidates.clone(), sos(ORIGIN, "www.origin1.example")];
    let mut closing = rescuing.clone();
    closing.push(Input::IntervalEnded(own(600)));
    let ordered = vec![candidates.clone(), Input::DrillOrdered(drill_order(60))];
    let mut drilling = ordered.clone();
    drilling.push(joined(ASKED, 400));
    let mut joining = vec![candidates.clone()];
    joining.push(rehearsal(ORIGIN, "www.origin1.example"));
    vec![
        ("calm", vec![candidates]),
        ("one asked for a drill", ordered),
        ("one takes part in our drill", drilling),
        ("taking part in a drill", joining),
        ("one asked", called),
        ("one helps", helped),
        ("one is helped", rescuing),
        ("own crowd while helping", closing),
        ("stopping", vec![Input::DrainStarted]),
    ]
}

/// Inputs of every kind, with the links that the histories know and one that nobody knows.
fn inputs() -> Vec<(&'static str, Input)> {
    let mut inputs = measurements();
    inputs.extend(messages());
    inputs.extend(integrity());
    inputs.extend(copies());
    let mut outside = parameters("www.own.example");
    outside.rescue_port = 0;
    inputs.extend([
        ("TimerFired", Input::TimerFired),
        ("SearchFailed", Input::SearchFailed),
        ("DrainStarted", Input::DrainStarted),
        ("DrillOrdered", Input::DrillOrdered(drill_order(60))),
        (
            "DrillOrdered(too long)",
            Input::DrillOrdered(drill_order(601)),
        ),
        (
            "DrillStopped(operator)",
            Input::DrillStopped(DrillStop::Operator),
        ),
        (
            "DrillStopped(client lost)",
            Input::DrillStopped(DrillStop::ClientLost),
        ),
        (
            "ParametersChanged(same)",
            changed(parameters("www.own.example")),
        ),
        ("ParametersChanged(no community)", changed(outside)),
    ]);
    inputs
}

fn measurements() -> Vec<(&'static str, Input)> {
    let mut waiting = own(100);
    waiting.waiting = 1;
    let used_up = with_redirects(own(700), ASKED, 370);
    let found = vec![candidate("www.rescue3.example", 3000)];
    vec![
        ("IntervalEnded(calm)", Input::IntervalEnded(own(50))),
        ("IntervalEnded(own crowd)", Input::IntervalEnded(own(600))),
        (
            "IntervalEnded(visitors wait)",
            Input::IntervalEnded(waiting),
        ),
        (
            "IntervalEnded(rescue server used up)",
            Input::IntervalEnded(used_up),
        ),
        (
            "IntervalEnded(rescue traffic above D_alloc)",
            Input::IntervalEnded(with_rescue(own(100), ORIGIN, 600)),
        ),
        ("CandidatesFound", Input::CandidatesFound(found)),
    ]
}

/// What becomes hot, and what becomes of its copies.
fn copies() -> Vec<(&'static str, Input)> {
    let url = || "www.own.example/page".to_owned();
    let stepped = |step| {
        let gap = Duration::from_millis(400);
        let url = url();
        Input::ResourcesStepped(vec![HotSpotOutput { url, step, gap }])
    };
    let (link, outcome) = (ASKED, CopyOutcome::Held);
    vec![
        ("ResourcesStepped(copy)", stepped(HotSpotStep::Copy)),
        ("ResourcesStepped(normal)", stepped(HotSpotStep::Normal)),
        (
            "EmbeddedFound",
            Input::EmbeddedFound {
                page: url(),
                resources: vec!["www.own.example/image".to_owned()],
            },
        ),
        (
            "CopyEnded(never ordered)",
            Input::CopyEnded {
                link,
                url: url(),
                outcome,
            },
        ),
        (
            "CopyMissing(never ordered)",
            Input::CopyMissing { link, url: url() },
        ),
    ]
}

/// What keeps a rescue going without its origin, or ends it for what a member did.
fn integrity() -> Vec<(&'static str, Input)> {
    let length = Duration::from_secs(3600);
    let permitted = |link| Input::PermitReceived { link, length };
    let expelled = |host: &str| Input::MembersExpelled(vec![host.parse().unwrap()]);
    let late = |link| Input::DeliveryLate { link };
    vec![
        ("PermitReceived(origin)", permitted(ORIGIN)),
        ("PermitReceived(stranger)", permitted(STRANGER)),
        (
            "OriginReturned(alive)",
            Input::OriginReturned { link: ORIGIN },
        ),
        (
            "MembersExpelled(rescue server)",
            expelled("www.rescue1.example"),
        ),
        (
            "MembersExpelled(stranger)",
            expelled("www.stranger.example"),
        ),
        ("DeliveryLate(rescue server)", late(ASKED)),
        ("DeliveryLate(stranger)", late(STRANGER)),
        ("RecordsChanged(lost)", Input::RecordsChanged(Records::Lost)),
    ]
}

/// What rescue servers and origins say: the links that the histories know, and strangers.
fn messages() -> Vec<(&'static str, Input)> {
    let rate = ByteRate::from_kilobytes(300);
    let told = |link| Input::RateReceived {
        link,
        rate,
        carried: None,
    };
    let answered = |link| Input::AnswerReceived { link };
    let ended = |link| Input::ShutdownReceived { link };
    let loss = LinkLoss::Closed;
    let lost = |link| Input::LinkLost { link, loss };
    let peers = |link| Input::PeersReceived {
        link,
        peers: peers(&[1, 2]),
    };
    let (rejection, link) = (Rejection::Refused, ASKED);
    let own_name = sos(LinkId::Inbound(4), "www.own.example");
    let again = sos(LinkId::Inbound(3), "www.origin1.example");
    let newcomer = sos(LinkId::Inbound(2), "www.origin2.example");
    vec![
        ("RescueAccepted(asked)", accepted(ASKED, 400, true)),
        ("RescueAccepted(asked, knows drills)", joined(ASKED, 400)),
        ("RescueAccepted(never asked)", accepted(NEVER, 400, true)),
        (
            "RescueRefused(asked)",
            Input::RescueRefused { link, rejection },
        ),
        ("SosReceived(new origin)", newcomer),
        ("SosReceived(same origin again)", again),
        (
            "SosReceived(over a used link)",
            sos(ORIGIN, "www.new.example"),
        ),
        ("SosReceived(with our name)", own_name),
        (
            "SosReceived(drill)",
            rehearsal(LinkId::Inbound(5), "www.origin3.example"),
        ),
        ("RateReceived(rescue server)", told(ASKED)),
        ("RateReceived(stranger)", told(STRANGER)),
        ("PeersReceived(origin)", peers(ORIGIN)),
        ("PeersReceived(stranger)", peers(STRANGER)),
        ("AnswerReceived(origin)", answered(ORIGIN)),
        ("AnswerReceived(stranger)", answered(STRANGER)),
        ("ShutdownReceived(rescue server)", ended(ASKED)),
        ("ShutdownReceived(origin)", ended(ORIGIN)),
        ("ShutdownReceived(stranger)", ended(STRANGER)),
        ("LinkLost(rescue server)", lost(ASKED)),
        ("LinkLost(origin)", lost(ORIGIN)),
        ("LinkLost(stranger)", lost(STRANGER)),
    ]
}

fn sos(link: LinkId, host: &str) -> Input {
    let call = call(host);
    Input::SosReceived { link, call }
}

fn rehearsal(link: LinkId, host: &str) -> Input {
    let call = drill_call(host, 60);
    Input::SosReceived { link, call }
}

fn changed(parameters: Parameters) -> Input {
    Input::ParametersChanged(Box::new(parameters))
}

fn reach(history: &[Input]) -> (Brain, Timestamp) {
    let mut brain = Brain::new(parameters("www.own.example"), 1, Vec::new());
    let mut now = Timestamp::from_seconds(10);
    for input in history {
        now = now + Duration::from_millis(100);
        brain.handle(now, input.clone());
    }
    (brain, now + Duration::from_millis(100))
}

/// The table, and the transitions from one phase to another.
fn try_all() -> (String, BTreeSet<(PhaseName, PhaseName, &'static str)>) {
    let (mut table, mut transitions) = (String::new(), BTreeSet::new());
    for (story, history) in histories() {
        let before = reach(&history).0.view().phase;
        writeln!(table, "{before:?} ({story})").unwrap();
        let (late, _) = reach(&history);
        let deadline = late.next_deadline().unwrap();
        let far = deadline.max(Timestamp::from_seconds(400));
        let timely = inputs()
            .into_iter()
            .map(|(name, input)| (name, input, None));
        let late = ("TimerFired(late)", Input::TimerFired, Some(far));
        for (name, input, at) in timely.chain([late]) {
            let (mut brain, now) = reach(&history);
            let outputs = brain.handle(at.unwrap_or(now), input);
            let after = brain.view().phase;
            writeln!(table, "  {name}").unwrap();
            writeln!(table, "    -> {after:?}").unwrap();
            for output in &outputs {
                writeln!(table, "       {}", line(output)).unwrap();
            }
            if before != after {
                transitions.insert((before, after, name));
            }
        }
    }
    (table, transitions)
}

fn line(output: &Output) -> String {
    if let Output::Explain(reason) = output {
        return format!("# {reason}");
    }
    format!("{output:?}")
}

#[test]
fn every_phase_meets_every_input() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rescue_table.golden");
    let (table, _) = try_all();
    check(
        &path,
        &std::fs::read_to_string(&path).unwrap_or_default(),
        &table,
    );
}

#[test]
fn the_diagram_in_the_header_shows_the_transitions_that_happen() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rescue.rs");
    let source = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = source.split_once("//! ```text transitions\n").unwrap();
    let (_, after) = rest.split_once("//! ```\n").unwrap();
    let mut drawn = String::new();
    let (_, transitions) = try_all();
    for (from, to, input) in transitions {
        writeln!(
            drawn,
            "//! {:<8} ──▶ {:<8} {input}",
            format!("{from:?}"),
            format!("{to:?}")
        )
        .unwrap();
    }
    let expected = format!("{before}//! ```text transitions\n{drawn}//! ```\n{after}");
    check(&path, &source, &expected);
}

fn check(path: &Path, found: &str, expected: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    let wrong = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert!(
        found == expected,
        "{} differs at {wrong:?}: run again with UPDATE_GOLDEN=1 and read the diff",
        path.display()
    );
}
