//! Those who have a key and lie: registries, rescue servers, callers, and a removed member. Each
//! is refused and counted, named on the status page, and costs the honest nothing.

use levee::trust::Channel;
use levee_vocab::WebAddress;
use levee_wire::registry::{Proof, Request};

use super::members::{ORIGIN, RESCUE, sos};
use super::players::{BYSTANDER, Conduct, Crowd, Liar, Player, VisitEnd, answers_in_clear, until};
use super::stage::{Draft, Registry, Site, Stage, THIN, Typist, WIDE, offer_of};

const THIRD: &str = "www.third.example";

fn starts(stage: &Stage, name: &str, link: &str, registry: &Registry) -> Site {
    let registries = &[registry.at];
    stage.starts_site(&Draft {
        name,
        link,
        registries,
        // What is hot is no matter here.
        more: "[hot_spots]\nlaw = \"load\"\n",
    })
}

/// Members and their registry.
fn community(members: &[&str]) -> (Stage, Registry) {
    let stage = Stage::of(&[("registry", "registry")]);
    for name in members {
        stage.adds(name, "site");
    }
    let registry = stage.starts_registry("registry", &[]);
    (stage, registry)
}

#[test]
fn a_registry_that_alters_and_invents_entries_is_believed_in_none_of_them() {
    let stage = Stage::of(&[
        (ORIGIN, "site"),
        (RESCUE, "site"),
        (THIRD, "site"),
        ("registry", "registry"),
        ("liar", "registry"),
    ]);
    let honest = stage.starts_registry("registry", &[]);
    let liar = Liar::starts(stage.trust("liar"), stage.list());
    let at = "127.0.0.1:7401".parse().unwrap();
    let said = |name: &str| stage.trust(name).signed_entry(offer_of(name, at));
    // Another place for one member, a site that does not exist, with no signature and with its own,
    // and one that is true.
    let altered = said(RESCUE).to_string().replace("127.0.0.1", "127.0.0.9");
    let ghost = offer_of("www.ghost.example", at);
    let signed = stage.trust("liar").signed_entry(ghost.clone());
    let all = [
        altered,
        ghost.to_string(),
        signed.to_string(),
        said(THIRD).to_string(),
    ];
    liar.finds(&all);
    let origin = stage.starts_site(&Draft {
        name: ORIGIN,
        link: WIDE,
        registries: &[liar.at],
        more: "",
    });
    origin.face.reaches_words("/candidates", THIRD);
    let candidates = origin.face.now("/candidates");
    assert!(!candidates.contains(RESCUE) && !candidates.contains("ghost"));
    let by = format!("from registry {}", liar.at);
    let name = |name: &str| format!("entry of {name} {by}");
    origin.face.tells("bad_signature", 1, &name(RESCUE));
    origin
        .face
        .tells("not_signed", 1, &name("www.ghost.example"));
    origin
        .face
        .tells("wrong_name", 1, &name("www.ghost.example"));

    // To another registry it says the same, and is believed as little.
    let mut mesh = Typist::connects(&stage.trust("liar"), Channel::Registry, honest.at);
    assert!(
        mesh.asks("1 MESH 00000000000000aa v=1")
            .starts_with("1 200 OK")
    );
    for entry in &all {
        mesh.types(&format!("2 ENTRY {entry} left=30000 owner=127.0.0.1"));
    }
    honest.face.reaches("/entries", "1");
    honest.face.counts("bad_signature", 1);
    honest.face.counts("not_signed", 1);
    honest.face.counts("wrong_name", 1);
    honest
        .face
        .reaches_words("/trust/refused", "registry at 127.0.0.1");
}

#[test]
fn who_answers_in_a_rescue_servers_place_is_not_asked_and_another_one_is() {
    let (stage, registry) = community(&[ORIGIN, RESCUE, THIRD, "www.plain.example"]);
    let helper = starts(&stage, RESCUE, WIDE, &registry);
    let origin = starts(&stage, ORIGIN, THIN, &registry);
    // One has the key of another member, and one no key at all: it answers in clear.
    let bogus = Player::starts(stage.trust("www.plain.example"), Conduct::Alters);
    stage.registers(THIRD, bogus.rescue, &registry);
    let plain = answers_in_clear();
    stage.registers("www.plain.example", plain, &registry);
    origin.face.reaches_words("/candidates", THIRD);
    origin
        .face
        .reaches_words("/candidates", "www.plain.example");
    origin.face.reaches_words("/candidates", RESCUE);
    let crowd = Crowd::comes_to(&origin);
    let named = format!("rescue server {THIRD}");
    origin.face.tells("wrong_name", 1, &named);
    origin.face.tells("no_key", 1, &plain.to_string());
    origin.face.reaches_words("/rescue_servers", RESCUE);
    crowd.meets(40, VisitEnd::Right);
    assert!(!bogus.has_heard("SOS"));
    assert!(crowd.seen().iter().all(|one| one.end != VisitEnd::Wrong));
    drop((crowd, helper));
}

/// A crowd at an origin that has called a liar, and knows an honest member as well. They end in
/// this order.
struct Called {
    crowd: Crowd,
    origin: Site,
    _honest: Site,
    _liar: Player,
    _registry: Registry,
    _stage: Stage,
}

fn called(conduct: Conduct) -> Called {
    let (stage, registry) = community(&[ORIGIN, RESCUE, THIRD]);
    let honest = starts(&stage, RESCUE, WIDE, &registry);
    let origin = starts(&stage, ORIGIN, THIN, &registry);
    let liar = Player::starts(stage.trust(THIRD), conduct);
    stage.registers(THIRD, liar.rescue, &registry);
    origin.face.reaches_words("/candidates", THIRD);
    origin.face.reaches_words("/candidates", RESCUE);
    let crowd = Crowd::comes_to(&origin);
    liar.hears("SOS");
    Called {
        crowd,
        origin,
        _honest: honest,
        _liar: liar,
        _registry: registry,
        _stage: stage,
    }
}

#[test]
fn who_sends_everybody_back_unsigned_is_used_less_and_another_one_is_asked() {
    let Called { crowd, origin, .. } = &called(Conduct::SendsBack);
    origin.face.reaches_words("/decisions", "come back");
    origin.face.reaches_words("/rescue_servers", RESCUE);
    crowd.meets(40, VisitEnd::Right);
    let seen = crowd.seen();
    assert!(
        seen.iter().all(|one| one.end != VisitEnd::Wrong),
        "{seen:?}"
    );
    // There, back, there with a mark, back with it.
    assert!(seen.iter().all(|one| one.redirects <= 4), "{seen:?}");
}

/// What it delivers at its own address is right, and nobody would be sent there.
#[test]
fn who_has_visitors_sent_to_a_bystander_is_not_used_and_another_one_is() {
    let Called { crowd, origin, .. } = &called(Conduct::PointsElsewhere);
    let why = format!("{THIRD}: its alias {BYSTANDER}");
    origin.face.tells("alias_elsewhere", 1, &why);
    origin.face.reaches_words("/rescue_servers", RESCUE);
    crowd.meets(40, VisitEnd::Right);
    assert!(crowd.seen().iter().all(|one| one.end != VisitEnd::Wrong));
}

#[test]
fn a_registration_that_was_recorded_or_altered_is_worth_nothing() {
    let (stage, registry) = community(&[ORIGIN, RESCUE]);
    let (rescue, thief) = (stage.trust(RESCUE), stage.trust(ORIGIN));
    let at = "127.0.0.1:7401".parse().unwrap();
    let register = |number: u32| {
        let entry = rescue.signed_entry(offer_of(RESCUE, at));
        format!("{number} {}", Request::Register(entry))
    };
    let (first, second) = (register(1), register(2));
    let typist = |trust| Typist::connects(trust, Channel::Registry, registry.at);
    let mut member = typist(&rescue);
    assert_eq!(member.asks(&first), "1 200 OK 600");
    assert_eq!(member.asks(&second), "2 200 OK 600");
    // The same bytes again, when there are newer ones.
    assert!(member.asks(&first).starts_with("1 412 Stale"));
    registry.face.reaches_words("/refused", "\"412\":1");
    // By another member, who has recorded them; in its own name; and altered.
    let told = typist(&thief).asks(&register(3));
    assert!(
        told.contains("its key is that of www.origin.example"),
        "{told}"
    );
    registry.face.counts("wrong_name", 1);
    let told = typist(&thief).asks(&register(4).replace(RESCUE, ORIGIN));
    assert!(told.contains("signature does not fit"), "{told}");
    let told = member.asks(&register(5).replace(" 9000 ", " 1 "));
    assert!(told.contains("signature does not fit"), "{told}");
    registry.face.counts("bad_signature", 2);
    let mut farewell =
        rescue.signed_farewell(levee_wire::registry::Farewell::new(RESCUE.parse().unwrap()));
    farewell.stamp += 1;
    let told = member.asks(&format!("6 {}", Request::Deregister(farewell)));
    assert!(told.contains("signature does not fit"), "{told}");
    // As it was signed long ago.
    let mut old = rescue.signed_entry(offer_of(RESCUE, at));
    old.stamp -= 3_600_000;
    let key = old.proof.take().unwrap().key;
    let text = old.signed_text(&key);
    let signature = rescue
        .identity()
        .sign(levee_trust::Purpose::Registration, text.as_bytes());
    old.proof = Some(Proof {
        key,
        signature: signature.to_string().parse().unwrap(),
        asked: old.lifetime,
        https_signature: None,
    });
    let told = member.asks(&format!("7 {}", Request::Register(old)));
    assert!(told.contains("recorded and replayed"), "{told}");
    registry.face.counts("too_old", 1);
    registry
        .face
        .reaches_words("/trust/refused", "registration of www.rescue.example");
    // What the member said itself stands.
    assert_eq!(stage.rescue_address(RESCUE, ORIGIN, &registry), at);
}

/// Somebody has the key of a member, whose own server goes on.
#[test]
fn a_flood_of_updates_in_the_name_of_one_member_costs_it_no_place_and_others_nothing() {
    let (stage, registry) = community(&[ORIGIN, RESCUE]);
    let rescue = starts(&stage, RESCUE, WIDE, &registry);
    let origin = starts(&stage, ORIGIN, THIN, &registry);
    origin.face.reaches_words("/candidates", RESCUE);
    let key = stage.trust(RESCUE);
    let at = "127.0.0.1:7401".parse().unwrap();
    let signed = Request::Register(key.signed_entry(offer_of(RESCUE, at)));
    let forged = signed.to_string().replace(" 9000 ", " 1 ");
    until("its own server is put off", || {
        let mut typist = Typist::connects(&key, Channel::Registry, registry.at);
        // Fewer than what a connection may ask at once.
        for number in 1..=90 {
            let told = typist.asks(&format!("{number} {forged}"));
            let is_refused = told.contains(" 425 ") || told.contains("signature does not fit");
            assert!(is_refused, "{told}");
        }
        rescue.face.now("/registry/refusal").contains("425")
    });
    registry.face.reaches_words("/refused", "\"425\":");
    assert_eq!(origin.face.now("/registry/refusal"), "");
    rescue.face.reaches("/registry/refusal", "");
    origin.face.reaches_words("/candidates", RESCUE);
}

#[test]
fn a_member_that_was_removed_and_runs_on_is_refused_everywhere() {
    let (stage, registry) = community(&[ORIGIN, RESCUE, THIRD]);
    let removed = starts(&stage, RESCUE, WIDE, &registry);
    let origin = starts(&stage, ORIGIN, THIN, &registry);
    origin.face.reaches_words("/candidates", RESCUE);
    let calls = stage.rescue_address(ORIGIN, RESCUE, &registry);
    let key = stage.trust(RESCUE);
    stage.levee(&["community", "remove", RESCUE]);
    removed.face.reaches("/trust/state", "out");
    origin.face.loses_words("/candidates", RESCUE);
    registry.face.counts("not_a_member", 1);
    registry
        .face
        .reaches_words("/trust/refused", "www.rescue.example");
    removed
        .face
        .reaches_words("/registry/last_error", "is the key of no member");
    // In a crowd it is not asked, though it would help, and is not helped.
    let other = starts(&stage, THIRD, WIDE, &registry);
    origin.face.reaches_words("/candidates", THIRD);
    let crowd = Crowd::comes_to(&origin);
    origin.face.reaches_words("/rescue_servers", THIRD);
    assert!(!origin.face.now("/rescue_servers").contains(RESCUE));
    let mut typist = Typist::connects(&key, Channel::Rescue, calls);
    assert!(typist.reads().contains("is the key of no member"));
    origin.face.tells("not_a_member", 1, "rescue link from");
    drop((crowd, other));
}

/// Its permit would hold for an hour.
#[test]
fn a_member_that_is_expelled_when_it_has_died_is_rescued_no_longer() {
    let (stage, registry) = community(&[ORIGIN, RESCUE]);
    let rescue = starts(&stage, RESCUE, WIDE, &registry);
    let origin = starts(&stage, ORIGIN, THIN, &registry);
    origin.face.reaches_words("/candidates", RESCUE);
    let crowd = Crowd::comes_to(&origin);
    // The permit goes out with the first redirects.
    origin.face.reaches_words("/rescue_servers", RESCUE);
    rescue.face.reaches_words("/origins", "\"live\"");
    drop(crowd);
    drop(origin);
    rescue.face.reaches_words("/origins", "\"orphaned\"");
    stage.levee(&["community", "expel", ORIGIN, "--reason", "it altered pages"]);
    let why = "the other side is not trusted any more";
    rescue.face.reaches_words("/decisions", why);
    rescue.face.loses_words("/origins", "\"orphaned\"");
}

#[test]
fn a_call_that_was_recorded_before_a_restart_is_worth_nothing_after_it() {
    let (stage, registry) = community(&[ORIGIN, RESCUE]);
    let before = starts(&stage, RESCUE, WIDE, &registry);
    let place = stage_address(&stage, &registry, &before);
    let trust = stage.trust(ORIGIN);
    let recorded = sos(ORIGIN, &trust, RESCUE);
    drop(before);
    let rescue = starts(&stage, RESCUE, WIDE, &registry);
    rescue.face.reaches("/trust/state", "ok");
    until("it is registered at its new port", || {
        stage.rescue_address(RESCUE, ORIGIN, &registry) != place
    });
    let at = stage.rescue_address(RESCUE, ORIGIN, &registry);
    let mut typist = Typist::connects(&trust, Channel::Rescue, at);
    assert_eq!(typist.asks(&recorded), "1 403 Reject");
    let named = "call for help of www.origin.example";
    rescue.face.tells("before_start", 1, named);
    // What is signed now is taken.
    let mut typist = Typist::connects(&trust, Channel::Rescue, at);
    let answer = typist.asks(&sos(ORIGIN, &trust, RESCUE));
    assert!(answer.starts_with("1 200 OK www-vh"), "{answer}");
}

#[test]
fn a_member_that_calls_for_help_as_another_is_refused() {
    let (stage, registry) = community(&[ORIGIN, RESCUE, THIRD]);
    let rescue = starts(&stage, RESCUE, WIDE, &registry);
    rescue.face.reaches("/trust/state", "ok");
    let at = stage_address(&stage, &registry, &rescue);
    let bogus = stage.trust(THIRD);
    let mut typist = Typist::connects(&bogus, Channel::Rescue, at);
    assert_eq!(typist.asks(&sos(ORIGIN, &bogus, RESCUE)), "1 403 Reject");
    rescue
        .face
        .tells("wrong_name", 1, "call for help of www.origin.example");
    // Nothing keeps the true one from being helped.
    let trust = stage.trust(ORIGIN);
    let mut typist = Typist::connects(&trust, Channel::Rescue, at);
    let answer = typist.asks(&sos(ORIGIN, &trust, RESCUE));
    assert!(answer.starts_with("1 200 OK www-vh"), "{answer}");
    // A permit in another's name, and one for longer than it was signed for, are worth nothing.
    let alias = answer.split(' ').nth(3).unwrap();
    let port = answer.split(' ').nth(5).unwrap();
    permits(&mut typist, &stage, &format!("{alias}:{port}"));
    rescue
        .face
        .tells("permit_wrong_key", 1, "permit of www.origin.example");
    rescue
        .face
        .tells("permit_bad_signature", 1, "permit of www.origin.example");
}

/// Where a site takes calls for help, once it has said so.
fn stage_address(stage: &Stage, registry: &Registry, site: &Site) -> std::net::SocketAddr {
    site.face.reaches("/registry/connected", "true");
    registry.face.reaches("/entries", "1");
    stage.rescue_address(RESCUE, ORIGIN, registry)
}

/// Says two permits of the origin that are none.
fn permits(typist: &mut Typist, stage: &Stage, alias: &str) {
    let web = |host: &str, port| WebAddress {
        host: host.parse().unwrap(),
        port,
    };
    let (alias, port) = alias.split_once(':').unwrap();
    let (origin, alias) = (web(ORIGIN, 80), web(alias, port.parse().unwrap()));
    for (signer, number) in [(THIRD, 2), (ORIGIN, 3)] {
        let trust = stage.trust(signer);
        let (identity, stamp) = (trust.identity(), trust.stamp().0);
        let hour = std::time::Duration::from_secs(3600);
        let claim = levee_wire::Permit::claim(&origin, &alias, hour, stamp);
        let signature = identity.sign(levee_trust::Purpose::Permit, claim.as_bytes());
        let key = identity.key();
        typist.types(&format!(
            "{number} PERMIT for=7200 stamp={stamp} key={key} sig={signature}"
        ));
        typist.reads_until(&format!("{number} 200 OK"));
    }
}
