//! What a site says of HTTPS comes to all registries, by whichever way, also past one that does not
//! know the word and leaves it out.
#![allow(clippy::unwrap_used)]

#[path = "support/inner.rs"]
mod inner;

use inner::linked;
use levee_registry::{Asker, LinkId, Mesh, MeshInput, Side};
use levee_vocab::Timestamp;
use levee_wire::mesh::{Message, parse};
use levee_wire::registry::parse_request;

const NOW: Timestamp = Timestamp::ZERO;
const CLOCK: u64 = 1_790_000_000_000;
const LINK: LinkId = LinkId(1);

/// A registry with a link to another one.
fn registry() -> Mesh {
    let mut mesh = linked(LINK, Side::Opener);
    while mesh.next_message(NOW, LINK).is_some() {}
    mesh
}

fn hears(mesh: &mut Mesh, line: &str) {
    let input = MeshInput::MessageReceived {
        link: LINK,
        message: parse(line.as_bytes()).unwrap(),
        clock: CLOCK,
    };
    mesh.handle(NOW, input);
}

/// What it tells others of `a.org`.
fn tells(mesh: &Mesh) -> String {
    let known = mesh.known(&"a.org".parse().unwrap()).unwrap();
    let levee_registry::Known::Here(held) = known else {
        panic!("it has gone");
    };
    held.entry(NOW).to_string()
}

const ENTRY: &str = "a.org 80 10.0.0.1 7401 500 30 stamp=1790000000000 key=K sig=S";
const WORD: &str = " https=1 https_sig=T";
const TOLD: &str = " left=30000 owner=10.0.0.1";

#[test]
fn it_is_told_as_it_was_registered() {
    let mut mesh = registry();
    let line = format!("1 REGISTER {ENTRY}{WORD}");
    let (_, request) = parse_request(line.as_bytes()).unwrap();
    let asker = Asker {
        connection: 1,
        address: "10.0.0.1".parse().unwrap(),
        clock: CLOCK,
    };
    mesh.handle(NOW, MeshInput::RequestReceived { asker, request });
    let told = std::iter::from_fn(|| mesh.next_message(NOW, LINK));
    let told: Vec<String> = told.map(|message: Message| message.to_string()).collect();
    assert_eq!(told, [format!("ENTRY {ENTRY}{WORD}{TOLD}")]);
    let mut other = registry();
    hears(&mut other, &format!("1 {}", told[0]));
    assert_eq!(tells(&other), format!("{ENTRY}{WORD}"));
}

/// Both hold the same version, so their sums agree and nothing is repaired for ever.
#[test]
fn who_left_it_out_disagrees_with_nobody_and_makes_nobody_forget_it() {
    let (with, without) = (
        format!("1 ENTRY {ENTRY}{WORD}{TOLD}"),
        format!("1 ENTRY {ENTRY}{TOLD}"),
    );
    let (mut first, mut second, mut old) = (registry(), registry(), registry());
    hears(&mut first, &with);
    hears(&mut first, &without);
    hears(&mut second, &without);
    hears(&mut second, &with);
    hears(&mut old, &without);
    assert_eq!(tells(&first), format!("{ENTRY}{WORD}"));
    assert_eq!(tells(&second), format!("{ENTRY}{WORD}"));
    assert_eq!(first.sums().groups(), old.sums().groups());
    assert_eq!(second.sums().groups(), old.sums().groups());
}
