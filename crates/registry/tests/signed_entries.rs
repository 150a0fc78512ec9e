//! Entries that their sites have signed: what a registry of the mesh adds of its own costs the site
//! nothing.
#![allow(clippy::unwrap_used)]

#[path = "support/inner.rs"]
mod inner;

use std::time::Duration;

use inner::linked;
use levee_registry::{Asker, Known, LinkId, Mesh, MeshInput, MeshOutput, Side};
use levee_vocab::{HostName, Timestamp};
use levee_wire::mesh::parse;
use levee_wire::registry::{Reply, parse_request};

const CLOCK: u64 = 1_790_000_000_000;
const LINK: LinkId = LinkId(1);

fn site() -> HostName {
    "www.site.test".parse().unwrap()
}

/// The peer tells at the start of an entry that was signed `age` milliseconds before, for 30 s.
fn is_told(mesh: &mut Mesh, age: u64, words: &str) {
    let stamp = CLOCK - age;
    let entry = format!("www.site.test 80 10.0.0.1 7401 500 30 stamp={stamp} {words}");
    let message = parse(format!("1 ENTRY {entry}").as_bytes()).unwrap();
    let (link, clock) = (LINK, CLOCK);
    let heard = MeshInput::MessageReceived {
        link,
        message,
        clock,
    };
    mesh.handle(Timestamp::ZERO, heard);
}

/// For how many seconds the site is known.
fn lives(mesh: &mut Mesh) -> u64 {
    let is_there = |second: &u64| {
        mesh.handle(Timestamp::from_seconds(*second), MeshInput::TimerFired);
        matches!(mesh.known(&site()), Some(Known::Here(_)))
    };
    (0..10_000).take_while(is_there).count() as u64
}

#[test]
fn no_peer_ends_a_signed_entry_early_or_makes_it_live_longer() {
    for (age, words, seconds) in [
        // Nothing is signed: the peer's word is all there is.
        (0, "left=1 owner=10.0.0.1", 1),
        (0, "left=3000000 owner=10.0.0.1", 3000),
        (0, "left=1 owner=10.0.0.1 key=k sig=s", 30),
        (20_000, "left=1 owner=10.0.0.1 key=k sig=s", 10),
        (20_000, "left=10000 owner=10.0.0.1 key=k sig=s", 10),
        // Its clock is behind ours.
        (45_000, "left=25000 owner=10.0.0.1 key=k sig=s", 25),
        (0, "left=3000000 owner=10.0.0.1 key=k sig=s", 30),
    ] {
        let mut mesh = linked(LINK, Side::Acceptor);
        is_told(&mut mesh, age, words);
        assert_eq!(lives(&mut mesh), seconds, "{age} {words}");
    }
}

/// What the registry answers to `line` from 10.0.0.1.
fn says(mesh: &mut Mesh, line: &str) -> Reply {
    let (_, request) = parse_request(format!("1 {line}").as_bytes()).unwrap();
    let asker = Asker {
        connection: 1,
        address: [10, 0, 0, 1].into(),
        clock: CLOCK,
    };
    let now = Timestamp::from_seconds(1);
    let outputs = mesh.handle(now, MeshInput::RequestReceived { asker, request });
    let answers = outputs.into_iter().filter_map(|output| match output {
        MeshOutput::Answer { reply, .. } => Some(reply),
        MeshOutput::Announce(_) | MeshOutput::CloseLink(_) => None,
    });
    let answers: Vec<Reply> = answers.collect();
    let [answer] = &answers[..] else {
        panic!("one answer");
    };
    answer.clone()
}

#[test]
fn no_peer_takes_a_name_from_who_has_signed_for_it() {
    let register = format!("REGISTER www.site.test 80 10.0.0.1 7401 500 30 stamp={CLOCK}");
    let farewell = format!("DEREGISTER www.site.test stamp={CLOCK}");
    let told = |proof| {
        let mut mesh = linked(LINK, Side::Acceptor);
        is_told(&mut mesh, 1, &format!("left=30000 owner=10.0.0.9 {proof}"));
        mesh
    };
    let taken = |reply| matches!(reply, Reply::Refused(refusal) if refusal.code() == 409);
    for (held, said, is_taken) in [
        ("key=k sig=s", " key=k sig=t", false),
        ("key=k sig=s", " key=l sig=t", true),
        ("key=k sig=s", "", true),
        ("", " key=k sig=t", true),
        ("", "", true),
    ] {
        for line in [&register, &farewell] {
            let answer = says(&mut told(held), &format!("{line}{said}"));
            assert_eq!(taken(answer), is_taken, "{held} {line}{said}");
        }
    }
    let lifetime = Reply::Registered(Duration::from_secs(30));
    let mut mesh = told("key=k sig=s");
    assert_eq!(
        says(&mut mesh, &format!("{register} key=k sig=t")),
        lifetime
    );
}
