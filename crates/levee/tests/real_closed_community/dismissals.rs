//! Who is not to be helped any more gets nothing from then on, however long its own DNS would have
//! it served: no page, no name, no fetch. And who is let go for that does not mourn the other.

use std::process::Command;
use std::time::Duration;

use levee::trust::Channel;
use levee_wire::rescue::{Request, Sos};

use super::members::{ORIGIN, RESCUE};
use super::players::{Crowd, until};
use super::stage::{Draft, Registry, Site, Stage, THIN, Typist, WIDE, body_of, page};

/// For so long resolvers remember, as the origin says.
const NAME_TTL: Duration = Duration::from_hours(1);

/// A rescue server that helps an origin. The origin's server is a real one, and its side of the
/// link is typed: it says when the rescue ends. They end in this order.
struct Helped {
    link: Typist,
    alias: String,
    rescue: Site,
    origin: Site,
    registry: Registry,
    stage: Stage,
}

fn draft<'a>(name: &'a str, registry: &'a Registry, more: &'a str) -> Draft<'a> {
    Draft {
        name,
        link: WIDE,
        registries: std::slice::from_ref(&registry.at),
        more,
    }
}

fn helped() -> Helped {
    let stage = Stage::of(&[(ORIGIN, "site"), (RESCUE, "site"), ("registry", "registry")]);
    let registry = stage.starts_registry("registry", &[]);
    let rescue = stage.starts_site(&draft(RESCUE, &registry, ""));
    let origin = stage.starts_site(&draft(ORIGIN, &registry, ""));
    origin.face.reaches_words("/candidates", RESCUE);
    let trust = stage.trust(ORIGIN);
    let at = stage.rescue_address(RESCUE, ORIGIN, &registry);
    let mut link = Typist::connects(&trust, Channel::Rescue, at);
    let address = "127.0.0.1".parse().unwrap();
    let mut sos = Sos::new(origin.web.clone(), address, Duration::from_secs(600));
    sos.name_ttl = Some(NAME_TTL);
    let signed = trust.signed_sos(sos, &RESCUE.parse().unwrap());
    let answer = link.asks(&format!("1 {}", Request::Sos(signed)));
    assert!(answer.starts_with("1 200 OK www-vh"), "{answer}");
    let alias = answer.split(' ').nth(3).unwrap().to_owned();
    Helped {
        link,
        alias,
        rescue,
        origin,
        registry,
        stage,
    }
}

impl Helped {
    /// The answer of the rescue server to somebody who came by this name.
    fn visits(&self, host: &str, path: &str) -> String {
        let port = self.rescue.web.port;
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--include", "--max-time", "20"])
            .args(["--header", &format!("Host: {host}:{port}")])
            .arg(format!("http://127.0.0.1:{port}{path}"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// It is carried, by both names, and fetched for.
    fn is_served(&self, pages: [u32; 2]) {
        for (host, number) in [self.alias.as_str(), ORIGIN].into_iter().zip(pages) {
            let answer = self.visits(host, &page(number));
            assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
            assert!(answer.contains(&body_of(&page(number))), "{host}: {answer}");
        }
    }

    /// What the origin's server has been asked so far. What it shows was measured a moment before,
    /// so it has to show something else twice.
    fn requests(&self) -> String {
        for _ in 0..2 {
            let shown = self.origin.face.now("/now");
            let is_newer = |now: &str| now != shown;
            self.origin.face.wait("/now", is_newer, "a later one");
        }
        self.origin.face.now("/lifetime/requests")
    }

    /// Neither what is held nor what is not, by neither name, and nobody is asked for it.
    fn is_cut(&self, pages: [u32; 2]) {
        let before = self.requests();
        let home = format!("http://{}", self.origin.web);
        for path in pages.map(page) {
            let answer = self.visits(&self.alias, &path);
            assert!(answer.starts_with("HTTP/1.1 302"), "{answer}");
            assert!(answer.contains(&home), "{answer} leads not to {home}");
            let answer = self.visits(ORIGIN, &path);
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
            let head = answer.to_ascii_lowercase();
            assert!(head.contains("retry-after: "), "{answer}");
            assert!(answer.contains("no longer carries this site"), "{answer}");
        }
        assert_eq!(self.requests(), before, "something was fetched");
        let carried = self.rescue.face.now("/origins");
        assert_eq!(carried, "[]");
    }

    /// It ends its rescue as honest sites do.
    fn ends(&mut self) {
        assert_eq!(self.link.asks("2 SHUTDOWN"), "2 200 OK");
        self.rescue.face.reaches("/origins/0/phase", "ending");
    }

    fn is_expelled(&self) {
        let why = ["--reason", "it altered pages"];
        let command = ["community", "expel", ORIGIN];
        self.stage.levee(&[&command[..], &why[..]].concat());
    }
}

#[test]
fn an_origin_that_is_expelled_in_its_rescue_is_served_no_longer_whatever_its_dns_says() {
    let mut helped = helped();
    helped.is_served([0, 1]);
    helped.is_expelled();
    // It is told why.
    let told = helped.link.reads_the_rest();
    assert!(told.ends_with("SHUTDOWN cause=not_a_member"), "{told}");
    let why = "ended: the other side is not trusted any more";
    helped.rescue.face.reaches_words("/decisions", why);
    helped.is_cut([0, 2]);
}

#[test]
fn an_origin_that_is_expelled_after_its_rescue_loses_the_rest_of_its_grace() {
    let mut helped = helped();
    helped.is_served([0, 1]);
    helped.ends();
    // Its row goes on counting what its last visitors get.
    let number = |pointer: &str| -> f64 {
        let pointer = format!("/origins/0/{pointer}");
        helped.rescue.face.now(&pointer).parse().unwrap()
    };
    let before = number("bytes");
    assert!(before >= 2.0 * body_of(&page(0)).len() as f64);
    assert!(number("since") > 0.0 && number("requests") >= 2.0);
    helped.is_served([2, 3]);
    until("it has been counted", || number("requests") >= 4.0);
    assert!(number("bytes") > before);
    helped.is_expelled();
    let why = "late visitors of www.origin.example are served no longer";
    helped.rescue.face.reaches_words("/decisions", why);
    helped.rescue.face.reaches("/origins", "[]");
    helped.is_cut([0, 4]);
}

#[test]
fn an_origin_that_the_operator_helps_no_more_is_served_no_longer_from_the_reload_on() {
    for is_over in [false, true] {
        let mut helped = helped();
        helped.is_served([0, 1]);
        if is_over {
            helped.ends();
        }
        let never = format!("[help]\nnever = [\"{ORIGIN}\"]");
        let draft = draft(RESCUE, &helped.registry, &never);
        helped.stage.writes(&draft);
        let admin = helped.rescue.face.0.to_string();
        helped.stage.levee(&["reload", "--admin", &admin]);
        helped.rescue.face.reaches("/origins", "[]");
        helped.is_cut([0, 2]);
    }
}

/// It has the permit to go on without an origin that has died.
#[test]
fn a_helper_that_is_expelled_is_told_so_and_does_not_say_that_its_origin_died() {
    let stage = Stage::of(&[(ORIGIN, "site"), (RESCUE, "site"), ("registry", "registry")]);
    let registry = stage.starts_registry("registry", &[]);
    let helper = stage.starts_site(&draft(RESCUE, &registry, ""));
    let origin = stage.starts_site(&Draft {
        link: THIN,
        ..draft(ORIGIN, &registry, "")
    });
    origin.face.reaches_words("/candidates", RESCUE);
    let crowd = Crowd::comes_to(&origin);
    origin.face.reaches_words("/rescue_servers", RESCUE);
    helper.face.reaches_words("/origins", "\"live\"");
    stage.levee(&["community", "expel", RESCUE, "--reason", "it altered pages"]);
    let why = "ended: for the other side this server is no member any more";
    helper.face.reaches_words("/decisions", why);
    let why = "ended: the other side is not trusted any more";
    origin.face.reaches_words("/decisions", why);
    let decisions = helper.face.now("/decisions");
    assert!(!decisions.contains("has died"), "{decisions}");
    drop(crowd);
}
