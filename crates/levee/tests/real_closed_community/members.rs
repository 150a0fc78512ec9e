//! Members help each other; strangers, recorded calls and the expelled get nowhere.

use std::net::TcpListener;
use std::time::Duration;

use levee::trust::{Channel, Trust};
use levee_trust::UnixMillis;
use levee_vocab::WebAddress;
use levee_wire::rescue::{Request, Sos};

use super::stage::{Draft, Registry, Site, Stage, Typist, WIDE};

pub const ORIGIN: &str = "www.origin.example";
pub const RESCUE: &str = "www.rescue.example";

/// A call for help of `name` as a line.
pub fn sos(name: &str, trust: &Trust, asked: &str) -> String {
    let web = WebAddress {
        host: name.parse().unwrap(),
        port: 80,
    };
    let address = "127.0.0.1".parse().unwrap();
    let sos = Sos::new(web, address, Duration::from_secs(600));
    let signed = trust.signed_sos(sos, &asked.parse().unwrap());
    format!("1 {}", Request::Sos(signed))
}

/// A site with room for others that knows this registry.
fn starts_member(stage: &Stage, registry: &Registry, name: &'static str) -> Site {
    stage.starts_site(&Draft {
        name,
        link: WIDE,
        registries: &[registry.at],
        more: "",
    })
}

#[test]
fn members_help_each_other_and_nobody_else_gets_anywhere() {
    let stage = Stage::of(&[(ORIGIN, "site"), (RESCUE, "site"), ("registry", "registry")]);
    let registry = stage.starts_registry("registry", &[]);
    // Neither site has a list: the registry hands it out.
    let starts = |name| starts_member(&stage, &registry, name);
    let sites = [starts(ORIGIN), starts(RESCUE)];
    let [origin, rescue] = sites.each_ref().map(|site| &site.face);
    origin.reaches("/trust/state", "ok");
    rescue.reaches("/trust/state", "ok");
    origin.reaches_words("/candidates", RESCUE);
    rescue.reaches_words("/candidates", ORIGIN);
    let address = stage.rescue_address(RESCUE, ORIGIN, &registry);
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
    let line = sos(ORIGIN, &trust, RESCUE);
    let mut caller = Typist::connects(&trust, Channel::Rescue, address);
    let answer = caller.asks(&line);
    assert!(answer.starts_with("1 200 OK www-vh"), "{answer}");
    let refused = |line: &str| {
        let mut typist = Typist::connects(&trust, Channel::Rescue, address);
        assert_eq!(typist.asks(line), "1 403 Reject", "{line}");
    };
    refused(&line);
    rescue.tells("replayed", 1, "replayed");
    refused(&sos(ORIGIN, &trust, RESCUE).replace(" 600 ", " 900 "));
    refused(&sos(ORIGIN, &trust, "www.other.example"));
    rescue.tells("bad_signature", 2, "call for help of");
    let late = stage.signed_at(ORIGIN, RESCUE, UnixMillis(1));
    refused(&late);
    rescue.counts("too_old", 1);

    // Who is expelled is so everywhere, soon, and its running rescue ends.
    stage.levee(&["community", "expel", ORIGIN, "--reason", "it altered pages"]);
    origin.reaches("/trust/state", "out");
    origin.reaches_words("/trust/cause", "was expelled: it altered pages");
    rescue.reaches("/trust/serial", "5");
    let last_words = caller.reads_the_rest();
    assert!(last_words.ends_with("SHUTDOWN cause=not_a_member"));
    let mut typist = Typist::connects(&trust, Channel::Rescue, address);
    assert!(typist.reads().contains("was expelled: it altered pages"));
    rescue.tells("expelled", 1, "rescue link from");
    // It says so itself, and neither side thinks of asking the other.
    origin.reaches("/candidates", "[]");
    let told = stage.levee(&["status", "--admin", &origin.0.to_string()]);
    let nobody = "Nobody could be asked for help. We are no member: ";
    assert!(told.contains(nobody), "{told}");
    rescue.reaches("/candidates", "[]");
    // Nobody was harmed: the sites serve, and the other member is one.
    rescue.reaches("/trust/state", "ok");
}

/// Its registry says so too, and in the same words.
#[test]
fn who_has_the_key_of_another_is_told_that_it_is_no_member() {
    let stage = Stage::of(&[(ORIGIN, "site"), (RESCUE, "site"), ("registry", "registry")]);
    let registry = stage.starts_registry("registry", &[]);
    let other = "www.other.example";
    stage.levee(&["community", "identity", &format!("{other}/identity.key")]);
    std::fs::copy(stage.identity(ORIGIN), stage.identity(other)).unwrap();
    let starts = |name| starts_member(&stage, &registry, name);
    let (rescue, other) = (starts(RESCUE), starts(other));
    rescue.face.reaches("/trust/state", "ok");
    other.face.reaches("/trust/state", "out");
    let why = "says that it is www.other.example, but its key is that of www.origin.example";
    other.face.reaches_words("/trust/cause", why);
    other.face.reaches_words("/registry/refusal", why);
    let page = other.face.get("/");
    assert!(
        page.contains(why) && !page.contains("We are one of them"),
        "{page}"
    );
    assert_eq!(other.face.now("/candidates"), "[]");
}

#[test]
fn a_first_start_is_nothing_to_warn_of() {
    let stage = Stage::of(&[(ORIGIN, "site"), ("registry", "registry")]);
    let registry = stage.starts_registry("registry", &[]);
    let registries = [registry.at];
    let draft = |registries| Draft {
        name: ORIGIN,
        link: WIDE,
        registries,
        more: "",
    };
    // Nobody hands out a list: the port is closed again.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let nobody = [port.unwrap()];
    let log = stage.log_of_site(&draft(&nobody), "no member list yet");
    let last = log.last().unwrap();
    assert!(
        last.contains(" INFO ") && last.contains("We are no member"),
        "{log:#?}"
    );
    let log = stage.log_of_site(&draft(&registries), "is in force");
    assert!(!log.iter().any(|line| line.contains(" WARN ")), "{log:#?}");
}
