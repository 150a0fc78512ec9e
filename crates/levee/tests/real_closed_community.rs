//! A closed community of real processes, and those who want to harm it (M1, M2): a stranger, a
//! recorded and an altered message, somebody in another's place, and a member that is expelled.
#![allow(clippy::unwrap_used)]

#[path = "real_closed_community/stage.rs"]
mod stage;

use levee::trust::{Channel, Trust};
use levee_trust::UnixMillis;
use levee_vocab::WebAddress;
use levee_wire::rescue::{Request, Sos};
use std::time::Duration;

use stage::{Stage, Typist};

const ORIGIN: &str = "www.origin.example";
const RESCUE: &str = "www.rescue.example";

/// A call for help of the origin as a line.
fn sos(origin: &Trust, asked: &str) -> String {
    let web = WebAddress {
        host: ORIGIN.parse().unwrap(),
        port: 80,
    };
    let address = "127.0.0.1".parse().unwrap();
    let sos = Sos::new(web, address, Duration::from_secs(600));
    let signed = origin.signed_sos(sos, &asked.parse().unwrap());
    format!("1 {}", Request::Sos(signed))
}

#[test]
fn members_help_each_other_and_nobody_else_gets_anywhere() {
    let mut stage = Stage::set();
    for (name, role) in [(ORIGIN, "site"), (RESCUE, "site"), ("registry", "registry")] {
        stage.adds(name, role);
    }
    stage.starts_registry();
    // Neither site has a list: the registry hands it out.
    let origin = stage.starts_site(ORIGIN);
    let rescue = stage.starts_site(RESCUE);
    origin.reaches("/trust/state", "ok");
    rescue.reaches("/trust/state", "ok");
    origin.reaches_words("/candidates", RESCUE);
    rescue.reaches_words("/candidates", ORIGIN);
    let address = stage.rescue_address(RESCUE, ORIGIN);
    let trust = stage.trust(ORIGIN);

    // A stranger with a key of its own, and one who speaks no TLS.
    let stranger = stage.trust("www.stranger.example");
    let mut typist = Typist::connects(&stranger, Channel::Rescue, address);
    assert!(
        typist.reads().contains("403 Reject"),
        "a stranger is told why"
    );
    rescue.counts("not_a_member", 1);
    assert!(!stage.openssl(address, &[]).contains("Verification: OK"));
    rescue.counts("no_key", 1);

    // A call for help is taken once; recorded it is worth nothing, nor altered, nor elsewhere.
    let line = sos(&trust, RESCUE);
    let mut caller = Typist::connects(&trust, Channel::Rescue, address);
    caller.types(&line);
    let answer = caller.reads();
    assert!(answer.starts_with("1 200 OK www-vh"), "{answer}");
    let refused = |line: &str| {
        let mut typist = Typist::connects(&trust, Channel::Rescue, address);
        typist.types(line);
        assert_eq!(typist.reads(), "1 403 Reject", "{line}");
    };
    refused(&line);
    rescue.counts("replayed", 1);
    refused(&sos(&trust, RESCUE).replace(" 600 ", " 900 "));
    refused(&sos(&trust, "www.other.example"));
    rescue.counts("bad_signature", 2);
    let late = stage.signed_at(ORIGIN, RESCUE, UnixMillis(1));
    refused(&late);
    rescue.counts("too_old", 1);

    // The page names them, for a person.
    let page = rescue.page();
    for words in [
        "not a member",
        "replayed",
        "bad signature",
        "call for help of",
    ] {
        assert!(page.contains(words), "{words} is not on the page");
    }

    // Who is expelled is so everywhere, soon, and its running rescue ends.
    stage.levee(&["community", "expel", ORIGIN, "--reason", "it altered pages"]);
    origin.reaches("/trust/state", "out");
    origin.reaches_words("/trust/cause", "was expelled: it altered pages");
    rescue.reaches("/trust/serial", "5");
    assert_eq!(caller.reads_the_rest(), "");
    let mut typist = Typist::connects(&trust, Channel::Rescue, address);
    assert!(typist.reads().contains("was expelled: it altered pages"));
    rescue.counts("expelled", 1);
    // Nobody was harmed: the sites serve, and the other member is one.
    rescue.reaches("/trust/state", "ok");
}
