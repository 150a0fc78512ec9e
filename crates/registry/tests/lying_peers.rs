//! A registry of the mesh that lies about time, or asks without end: what it costs the others.
#![allow(clippy::unwrap_used)]

use levee_registry::{
    Known, LinkId, Mesh, MeshInput, MeshRules, PrivateAddresses, RegistryLimits, Side,
};
use levee_vocab::{HostName, Random, Timestamp};
use levee_wire::mesh::{Message, parse};

/// What the calendar shows when the clock shows nothing.
const BEGUN: u64 = 1_790_000_000_000;
const LIAR: LinkId = LinkId(1);
const HONEST: LinkId = LinkId(2);

fn site() -> HostName {
    "www.site.test".parse().unwrap()
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_seconds(second)
}

/// A registry in a network of its own, with two peers.
fn mesh() -> Mesh {
    let limits = RegistryLimits {
        private_addresses: PrivateAddresses::Permitted,
        ..RegistryLimits::default()
    };
    let mut mesh = Mesh::new(limits, MeshRules::default(), Random::from_seed(1));
    let side = Side::Acceptor;
    for link in [LIAR, HONEST] {
        mesh.handle(Timestamp::ZERO, MeshInput::LinkOpened { link, side });
    }
    mesh
}

fn tells(mesh: &mut Mesh, link: LinkId, second: u64, line: &str) {
    let message = parse(format!("1 {line}").as_bytes()).unwrap();
    let clock = BEGUN + second * 1000;
    let heard = MeshInput::MessageReceived {
        link,
        message,
        clock,
    };
    mesh.handle(at(second), heard);
}

/// Signed at the start, for 30 s.
fn entry(left: u64) -> String {
    let words = format!("left={left} asked=30 owner=10.0.0.1 key=k sig=s");
    format!("ENTRY www.site.test 80 10.0.0.1 7401 500 30 stamp={BEGUN} {words}")
}

/// Signed one second after it.
fn farewell(left: u64) -> String {
    let stamp = BEGUN + 1000;
    format!("GONE www.site.test stamp={stamp} left={left} key=k sig=t")
}

fn is_here(mesh: &Mesh) -> bool {
    matches!(mesh.known(&site()), Some(Known::Here(_)))
}

/// The last whole second in which the site's farewell is known.
fn remembered_to(mesh: &mut Mesh, from: u64) -> u64 {
    let is_known = |second: &u64| {
        mesh.handle(at(*second), MeshInput::TimerFired);
        matches!(mesh.known(&site()), Some(Known::Gone(_)))
    };
    from + (from..20_000).take_while(is_known).count() as u64 - 1
}

/// The site has left. The liar says that this need not be remembered, and then tells the old entry.
#[test]
fn no_peer_brings_back_who_has_left_by_having_the_farewell_forgotten() {
    for left in [0, 1, 1000] {
        let mut mesh = mesh();
        tells(&mut mesh, HONEST, 0, &entry(30_000));
        assert!(is_here(&mesh));
        tells(&mut mesh, LIAR, 2, &farewell(left));
        // After that it is too old to be believed: its time, and what clocks may differ by.
        for second in 3..90 {
            tells(&mut mesh, LIAR, second, &entry(30_000));
            assert!(!is_here(&mesh), "left={left}, {second} s");
        }
    }
    // As long as a registry remembers to which the site itself said it: its time, and a minute.
    let mut mesh = mesh();
    tells(&mut mesh, HONEST, 0, &entry(30_000));
    tells(&mut mesh, LIAR, 2, &farewell(0));
    assert_eq!(remembered_to(&mut mesh, 2), 89);
}

#[test]
fn a_newer_farewell_does_not_shorten_the_memory_of_the_one_before() {
    let mut mesh = mesh();
    tells(&mut mesh, HONEST, 0, &entry(30_000));
    tells(&mut mesh, HONEST, 2, &farewell(88_000));
    let stamp = BEGUN + 2000;
    let newer = format!("GONE www.site.test stamp={stamp} left=0 key=k sig=u");
    tells(&mut mesh, LIAR, 3, &newer);
    assert_eq!(remembered_to(&mut mesh, 3), 89);
}

/// A recorded farewell that the liar tells whenever it was forgotten, for as long as it may.
#[test]
fn no_peer_has_a_farewell_remembered_for_longer_than_what_it_ended_could_live() {
    let longest = 3600 + 60;
    let mut last = 0;
    let mut mesh = mesh();
    for second in (1..3 * longest).step_by(60) {
        mesh.handle(at(second), MeshInput::TimerFired);
        tells(&mut mesh, LIAR, second, &farewell(u64::from(u32::MAX)));
        mesh.handle(at(second), MeshInput::TimerFired);
        if mesh.known(&site()).is_some() {
            last = second;
        }
    }
    assert!(last <= 1 + longest, "{last}");
    // In an open community nothing is signed, and a peer is believed, up to the limit.
    let mut mesh = self::mesh();
    let unsigned = format!("GONE www.site.test stamp={} left=99999999", BEGUN);
    tells(&mut mesh, LIAR, 0, &unsigned);
    assert_eq!(remembered_to(&mut mesh, 0), longest - 1);
}

/// Everything that is owed to `link`, as it is when the link takes it.
fn takes_all(mesh: &mut Mesh, link: LinkId, second: u64) -> usize {
    let told = std::iter::from_fn(|| mesh.next_message(at(second), link));
    let is_entry = |message: &Message| matches!(message, Message::Entry(_));
    told.filter(is_entry).count()
}

#[test]
fn a_peer_that_asks_without_end_is_told_no_more_than_one_that_knows_nothing() {
    const NAMES: u64 = 300;
    let mut mesh = mesh();
    for name in 0..NAMES {
        let words = format!("left=900000 owner=10.0.0.1 stamp={BEGUN}");
        let entry = format!("ENTRY www.site{name}.test 80 10.0.0.1 7401 500 900 {words}");
        tells(&mut mesh, HONEST, 0, &entry);
    }
    // In one second ten thousand questions; each answer is taken before the next one.
    let mut told = 0;
    for question in 0..10_000 {
        tells(
            &mut mesh,
            LIAR,
            1,
            &format!("WANT {} ffffffff", question % 32),
        );
        told += takes_all(&mut mesh, LIAR, 1);
    }
    assert_eq!(told as u64, 2 * NAMES);
    assert_eq!(mesh.view(at(1)).refused[&429], 10_000 - 64);
    assert_eq!(mesh.view(at(1)).links[&LIAR].counts.refused, 10_000 - 64);
    // Others are answered meanwhile, and it is again when it asks as others do.
    for group in 0..32 {
        tells(&mut mesh, HONEST, 1, &format!("WANT {group} ffffffff"));
    }
    assert_eq!(takes_all(&mut mesh, HONEST, 1) as u64, NAMES);
    for group in 0..32 {
        tells(&mut mesh, LIAR, 5, &format!("WANT {group} ffffffff"));
    }
    assert_eq!(takes_all(&mut mesh, LIAR, 5) as u64, NAMES);
}
