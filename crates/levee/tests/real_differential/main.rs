//! Odd requests, sent to levee, nginx and HAProxy alike, each as a proxy in front of an application
//! of its own that writes down what reached it.
//!
//! Two servers that read one stream of bytes as different requests can be played against each other
//! (request smuggling). So levee must never see more than a peer does, or something else: whatever
//! it takes and another refuses, and whatever the two pass on differently, fails, unless the corpus
//! explains it with the section of the RFC. To refuse what others take is always right, except for
//! the requests that everybody must take.
//!
//! The corpus is `scenarios/requests/*.txt`; see [`corpus`] for how it is written.
#![allow(clippy::unwrap_used)]

mod application;
mod corpus;
mod servers;

use std::collections::BTreeMap;
use std::fmt::Write;

use application::Seen;
use corpus::{Case, Stance};
use servers::{Outcome, Servers};

#[test]
fn levee_never_sees_more_in_a_request_than_other_servers_do() {
    let servers = Servers::start();
    let cases = corpus::read();
    assert!(
        cases.len() >= 250,
        "the corpus has shrunk to {}",
        cases.len()
    );
    let mut report = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &cases {
        let ours = servers.levee.try_with(&case.request);
        let theirs = [
            ("nginx", servers.nginx.try_like(&case.request, &ours)),
            ("haproxy", servers.haproxy.try_like(&case.request, &ours)),
        ];
        let mut complaints = own_complaints(case, &ours);
        for (name, outcome) in &theirs {
            let differs = difference(&ours, outcome);
            *counts.entry(verdict(&ours, outcome)).or_default() += 1;
            match (differs, case.explained.iter().any(|(peer, _)| peer == name)) {
                (Some(why), false) => complaints.push(format!("{why} {name}, and nobody says why")),
                (None, true) => complaints.push(format!("explained, but not other than {name}")),
                (Some(_), true) | (None, false) => {}
            }
        }
        if !complaints.is_empty() {
            writeln!(report, "{}: {}", case.file, case.reason).unwrap();
            writeln!(report, "  {}", complaints.join("; ")).unwrap();
            writeln!(report, "  levee    {ours:?}").unwrap();
            for (name, outcome) in &theirs {
                writeln!(report, "  {name:8} {outcome:?}").unwrap();
            }
        }
    }
    println!(
        "{} requests, each compared with two servers: {counts:?}",
        cases.len()
    );
    assert!(report.is_empty(), "\n{report}");
}

/// What is wrong whatever others do.
fn own_complaints(case: &Case, ours: &Outcome) -> Vec<String> {
    let mut complaints = Vec::new();
    let passed = ours.seen.len();
    let good = ours
        .statuses
        .iter()
        .filter(|&&status| status == 200)
        .count();
    match case.stance {
        Stance::Taken if passed == 0 => complaints.push("must be taken".to_owned()),
        Stance::Refused if passed > 0 => complaints.push("must be refused".to_owned()),
        Stance::Taken | Stance::Refused | Stance::Open => {}
    }
    // A request that was passed on and not answered was at least not answered wrongly.
    if good > passed {
        complaints.push(format!("{good} answers to {passed} requests"));
    }
    complaints
}

/// How levee saw more than a peer, or something else; none where it did not.
fn difference(ours: &Outcome, theirs: &Outcome) -> Option<&'static str> {
    let shared = ours.seen.len().min(theirs.seen.len());
    let same = |one: &Seen, other: &Seen| one == other;
    if ours.seen.len() > theirs.seen.len() {
        return Some("takes more than");
    }
    let mut pairs = ours.seen.iter().zip(&theirs.seen).take(shared);
    let differs = pairs.any(|(one, other)| !same(one, other));
    differs.then_some("passes on something else than")
}

fn verdict(ours: &Outcome, theirs: &Outcome) -> &'static str {
    match (ours.seen.len(), theirs.seen.len()) {
        (0, 0) => "both refuse",
        (0, _) => "only levee refuses",
        (_, 0) => "only levee takes it",
        (one, other) if one == other => "both take it",
        (_, _) => "different numbers",
    }
}
