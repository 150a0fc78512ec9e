//! A rescue server that alters pages: who says so, who is believed, and how it is forgiven.

use std::net::SocketAddr;

use levee::trust::Channel;
use levee_vocab::HostName;
use levee_wire::Digest;
use levee_wire::registry::{Accusation, Request, Sight};

use super::members::{ORIGIN, RESCUE};
use super::players::{Conduct, Crowd, Player, VisitEnd};
use super::stage::{Draft, Registry, Site, Stage, THIN, Typist, WIDE, page};

const LIAR: &str = "www.liar.example";
const OTHER: &str = "www.other.example";
/// What one look costs is nothing on loopback; tests have no time.
const LOOKS: &str = "[integrity]\nsampling = \"50 ms\"\npermit = \"0 s\"\n";

/// Two registries that know the same, and members.
fn community(members: &[&str]) -> (Stage, [Registry; 2]) {
    let stage = Stage::of(&[("registry", "registry"), ("another", "registry")]);
    for name in members {
        stage.adds(name, "site");
    }
    let one = stage.starts_registry("registry", &[]);
    let another = stage.starts_registry("another", &[one.at]);
    (stage, [one, another])
}

fn origin(stage: &Stage, registry: SocketAddr, more: &str) -> Site {
    stage.starts_site(&Draft {
        name: ORIGIN,
        link: THIN,
        registries: &[registry],
        more,
    })
}

/// `by` accuses `of`, with its own key, or takes it back.
pub fn accuse(stage: &Stage, (by, of): (&str, &str), sight: Option<Sight>) -> Accusation {
    let trust = stage.trust(by);
    let names: (HostName, HostName) = (by.parse().unwrap(), of.parse().unwrap());
    trust.accusation(names, trust.stamp().0, sight)
}

/// Says it to a registry over a connection of `by`'s own; gives the answer.
pub fn says(stage: &Stage, by: &str, registry: &Registry, accusation: Accusation) -> String {
    let mut typist = Typist::connects(&stage.trust(by), Channel::Registry, registry.at);
    typist.asks(&format!("1 {}", Request::Accuse(Box::new(accusation))))
}

/// A page that was altered.
pub fn sight() -> Option<Sight> {
    Some(Sight::of(&page(1), Digest([7; 32])))
}

/// Whom `by` finds at this registry.
fn found(stage: &Stage, by: &str, registry: &Registry) -> String {
    let mut typist = Typist::connects(&stage.trust(by), Channel::Registry, registry.at);
    typist.types("1 SEARCH 9");
    let mut found = String::new();
    loop {
        let line = typist.reads();
        assert!(!line.is_empty(), "it closed the connection: {found}");
        if line.contains(" 200 OK") {
            return found;
        }
        found.push_str(&line);
    }
}

#[test]
fn who_alters_pages_is_expelled_accused_and_when_two_say_so_left_out_until_it_is_forgiven() {
    let (stage, [one, another]) = community(&[ORIGIN, RESCUE, LIAR, OTHER]);
    let helper = stage.starts_site(&Draft {
        name: RESCUE,
        link: WIDE,
        registries: &[another.at],
        more: "",
    });
    let origin = origin(&stage, one.at, LOOKS);
    let liar = Player::starts(stage.trust(LIAR), Conduct::Alters);
    stage.registers(LIAR, liar.rescue, &one);
    origin.face.reaches_words("/candidates", LIAR);
    origin.face.reaches_words("/candidates", RESCUE);
    let crowd = Crowd::comes_to(&origin);
    origin.face.reaches_words("/integrity/expelled", LIAR);
    origin.face.reaches_words("/rescue_servers", RESCUE);
    // Who is honest checks what it fetches by the key of who has called, without a permit.
    let checked = "/lifetime/signatures/authentic";
    let is_some = |count: &str| count.parse().is_ok_and(|count: u64| count > 0);
    helper.face.wait(checked, is_some, "one that is authentic");
    // Its word is at both registries, and changes nothing: it is one.
    let said = "\"accuser\":\"www.origin.example\"";
    one.face.reaches_words("/trust/accusations", said);
    another.face.reaches_words("/trust/accusations", said);
    assert!(found(&stage, OTHER, &one).contains(LIAR));
    assert!(found(&stage, OTHER, &another).contains(LIAR));
    // A second member says so, at the other registry.
    let answer = says(
        &stage,
        OTHER,
        &another,
        accuse(&stage, (OTHER, LIAR), sight()),
    );
    assert_eq!(answer, "1 200 OK 1");
    one.face
        .reaches_words("/trust/accusations", "\"left_out\":true");
    for registry in [&one, &another] {
        let found = found(&stage, OTHER, registry);
        assert!(found.contains(RESCUE) && !found.contains(LIAR), "{found}");
    }
    // Everybody sees who says so.
    helper.face.reaches_words("/trust/accusations", said);
    helper.face.reaches_words("/trust/accusations", OTHER);
    let page = helper.face.get("/");
    assert!(page.contains(OTHER) && page.contains("left out of the answers"));
    let metrics = helper.face.get("/metrics");
    assert!(metrics.contains("levee_accusations{standing=\"left_out\"} 2"));

    // The operator looks, and forgives.
    let old = accuse(&stage, (ORIGIN, LIAR), sight());
    let admin = origin.face.0.to_string();
    let told = stage.levee(&["community", "expelled", "--admin", &admin]);
    assert!(told.starts_with("www.liar.example since 20"), "{told}");
    assert!(told.contains("should be sha-256:"), "{told}");
    let told = stage.levee(&["community", "forgive", LIAR, "--admin", &admin]);
    assert!(told.contains("www.liar.example is forgiven"), "{told}");
    origin.face.reaches("/integrity/expelled", "[]");
    let told = stage.levee(&["community", "expelled", "--admin", &admin]);
    assert_eq!(told, "nobody is expelled");
    // It has taken its word back, so one is left, which is none.
    another.face.loses_words("/trust/accusations", said);
    another
        .face
        .loses_words("/trust/accusations", "\"left_out\":true");
    assert!(found(&stage, RESCUE, &another).contains(LIAR));
    crowd.meets(1, VisitEnd::Right);
    drop((crowd, helper, origin, one));
    is_forgiven_after_a_restart(&stage, old);
}

/// The origin was ended, and its registry: that one hears the `old` word again, and the origin
/// takes it back once more.
fn is_forgiven_after_a_restart(stage: &Stage, old: Accusation) {
    let registry = stage.starts_registry("registry", &[]);
    assert_eq!(says(stage, ORIGIN, &registry, old), "1 200 OK 1");
    registry.face.reaches_words("/trust/accusations", ORIGIN);
    let _origin = origin(stage, registry.at, LOOKS);
    registry.face.loses_words("/trust/accusations", ORIGIN);
}

#[test]
fn who_alters_only_what_goes_by_https_or_sends_visitors_elsewhere_is_expelled() {
    let (stage, [one, _another]) = community(&[ORIGIN, LIAR, RESCUE]);
    stage.levee(&["certificate", "local", "--folder", "ours", ORIGIN]);
    // Its visitors come either way, and so do its looks.
    let tls = format!(
        "{LOOKS}[tls]\nlisten = [\"127.0.0.1:0\"]\n\
         certificate = \"ours/{ORIGIN}.pem\"\nkey = \"ours/{ORIGIN}.key\"\n"
    );
    let origin = origin(&stage, one.at, &tls);
    let conducts = [
        (LIAR, Conduct::AltersByHttps, "\"seen\":\"sha-256:"),
        (
            RESCUE,
            Conduct::Misleads,
            "\"seen\":\"redirect-to:http://www.evil.test/\"",
        ),
    ];
    for (name, conduct, _) in conducts {
        let player = Player::starts(stage.trust(name), conduct);
        stage.registers(name, player.rescue, &one);
    }
    origin.face.reaches_words("/candidates", LIAR);
    let crowd = Crowd::comes_to(&origin);
    for (name, _, seen) in conducts {
        origin.face.reaches_words("/integrity/expelled", name);
        origin.face.reaches_words("/integrity/expelled", seen);
        origin.face.loses_words("/rescue_servers", name);
        // All are accused, for the registries to know.
        one.face
            .reaches_words("/trust/accusations", &format!("\"accused\":\"{name}\""));
    }
    // Whoever came by HTTP saw nothing of it.
    let seen = crowd.seen();
    assert!(seen.iter().all(|visit| visit.end != VisitEnd::Wrong));
}

/// The origin looks nowhere by itself, so it hears of it from another that helps it.
#[test]
fn who_alters_only_what_goes_by_https_and_spares_the_origin_is_found_by_a_neighbour() {
    let (stage, [one, _another]) = community(&[ORIGIN, LIAR, RESCUE]);
    let origin = origin(&stage, one.at, "[integrity]\nsampling = \"0 s\"\n");
    let liar = Player::starts(stage.trust(LIAR), Conduct::AltersByHttps);
    stage.registers(LIAR, liar.rescue, &one);
    origin.face.reaches_words("/candidates", LIAR);
    let crowd = Crowd::comes_to(&origin);
    // It takes little, and another is asked as well.
    origin.face.reaches_words("/rescue_servers", LIAR);
    let neighbour = stage.starts_site(&Draft {
        name: RESCUE,
        link: WIDE,
        registries: &[one.at],
        more: LOOKS,
    });
    origin.face.reaches_words("/rescue_servers", RESCUE);
    liar.hears("PEERS key=");
    origin.face.reaches_words("/integrity/expelled", LIAR);
    origin.face.loses_words("/rescue_servers", LIAR);
    // Whoever came by HTTP saw nothing of it.
    let seen = crowd.seen();
    assert!(seen.iter().all(|visit| visit.end != VisitEnd::Wrong));
    drop((crowd, neighbour));
}

#[test]
fn a_false_accuser_achieves_nothing_and_two_are_named_and_end_with_the_list() {
    let (stage, [one, another]) = community(&[ORIGIN, RESCUE, LIAR, OTHER]);
    let honest = stage.starts_site(&Draft {
        name: RESCUE,
        link: WIDE,
        registries: &[one.at],
        more: "",
    });
    honest.face.reaches("/registry/connected", "true");
    one.face.reaches("/entries", "1");
    another.face.reaches("/entries", "1");
    // One who lies, as often as it likes, at both.
    for registry in [&one, &another] {
        let accusation = accuse(&stage, (LIAR, RESCUE), sight());
        assert_eq!(says(&stage, LIAR, registry, accusation), "1 200 OK 1");
    }
    assert!(found(&stage, OTHER, &one).contains(RESCUE));
    // In another's name, altered, recorded by another, of nobody, and of itself.
    let refused = |by: &str, accusation: Accusation, words: &str| {
        let answer = says(&stage, by, &one, accusation);
        assert!(
            answer.starts_with("1 4") && answer.contains(words),
            "{answer}"
        );
    };
    let mut forged = accuse(&stage, (LIAR, RESCUE), sight());
    forged.accuser = ORIGIN.parse().unwrap();
    refused(LIAR, forged, "its key is that of www.liar.example");
    let mut altered = accuse(&stage, (LIAR, RESCUE), sight());
    altered.stamp += 1;
    refused(LIAR, altered, "signature does not fit");
    let recorded = accuse(&stage, (ORIGIN, RESCUE), sight());
    refused(LIAR, recorded, "its key is that of www.liar.example");
    let nobody = accuse(&stage, (LIAR, "www.nobody.example"), sight());
    refused(LIAR, nobody, "is no member");
    one.face.counts("wrong_name", 2);
    one.face.counts("bad_signature", 1);
    one.face.counts("nobody_accused", 1);
    one.face
        .reaches_words("/trust/refused", "accusation by www.liar.example");

    // Two who lie together leave it out, and stand on its own page with their names.
    let accusation = accuse(&stage, (OTHER, RESCUE), sight());
    assert_eq!(says(&stage, OTHER, &another, accusation), "1 200 OK 1");
    one.face.reaches_words("/trust/accusations", OTHER);
    assert!(!found(&stage, ORIGIN, &one).contains(RESCUE));
    honest
        .face
        .reaches_words("/trust/accusations", "\"left_out\":true");
    let page = honest.face.get("/");
    assert!(page.contains(LIAR) && page.contains(OTHER), "{page}");
    // The authority looks, and decides: by its list one of them is no member.
    let reason = "it accuses the honest";
    stage.levee(&["community", "expel", LIAR, "--reason", reason]);
    for registry in [&one, &another] {
        registry.face.loses_words("/trust/accusations", LIAR);
        assert!(found(&stage, ORIGIN, registry).contains(RESCUE));
    }
    honest
        .face
        .loses_words("/trust/accusations", "\"left_out\":true");
}

#[test]
fn what_members_report_of_who_spares_the_origin_is_looked_at_and_believed_of_two() {
    let (stage, [one, _another]) = community(&[ORIGIN, RESCUE, LIAR, OTHER]);
    let registry = one.at;
    let origin = origin(&stage, registry, "[integrity]\nsampling = \"0 s\"\n");
    let players = [LIAR, RESCUE, OTHER].map(|name| {
        let player = Player::starts(stage.trust(name), Conduct::Honest);
        stage.registers(name, player.rescue, &one);
        player
    });
    let [liar, rescue, other] = &players;
    origin.face.reaches_words("/candidates", OTHER);
    origin.face.reaches_words("/candidates", RESCUE);
    let crowd = Crowd::comes_to(&origin);
    // Each takes little, so all are asked.
    for name in [LIAR, RESCUE, OTHER] {
        origin.face.reaches_words("/rescue_servers", name);
    }
    let seen = "7".repeat(64);
    let report = |number: u32| {
        let (alias, url) = (liar.alias(), page(1));
        format!("{number} REPORT of={alias} url={url} seen={seen}")
    };
    // The first has the page purged there; the origin looks, and sees nothing wrong.
    rescue.says(&report(1));
    liar.hears(&format!("PURGE url={}", page(1)));
    rescue.says(&report(2));
    rescue.says(&report(3));
    crowd.meets(10, VisitEnd::Right);
    assert_eq!(origin.face.now("/integrity/expelled"), "[]");
    // Another member of another domain saw it after that as well.
    other.says(&report(1));
    origin.face.reaches_words("/integrity/expelled", LIAR);
    origin.face.loses_words("/rescue_servers", LIAR);
    // It has not seen it itself, and accuses nobody.
    assert_eq!(one.face.now("/trust/accusations"), "[]");
    drop(crowd);
}
