//! What a rescue server fetches is signed, and nothing else is.

use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use levee_control::RoutePlan;
use levee_proxy::{Publisher, digest_of};
use levee_vocab::{FetchKey, LinkId};
use levee_wire::{Claim, Published};

use crate::support::{Response, Running, Setup, origin};

const FETCH: &str = "levee-fetch: 0123456789abcdef0123456789abcdef\r\n";

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap()
}

/// A server that signs, and one rescue server of which may fetch.
fn running(setup: Setup) -> Running {
    let key: FetchKey = "0123456789abcdef0123456789abcdef".parse().unwrap();
    let plan = RoutePlan {
        fetch_keys: vec![(LinkId::Outbound(1), key)],
        ..RoutePlan::default()
    };
    let running = Setup { plan, ..setup }.start();
    let sign = |bytes: &[u8]| pair().sign(bytes).as_ref().try_into().unwrap();
    let publisher = Publisher::start("site.example".into(), "key".into(), Arc::new(sign));
    running.fetcher.publish_by(publisher.unwrap());
    running
}

fn ask(running: &Running, target: &str, lines: &str) -> Response {
    running.ask(&format!(
        "GET {target} HTTP/1.1\r\nHost: site.example\r\n{lines}\r\n"
    ))
}

/// Whether the response carries a signature of ours over its own body.
fn is_signed(response: &Response, target: &str) -> bool {
    let field = |name: &str| match response.header(name) {
        "" => None,
        value => Some(value.as_bytes()),
    };
    let Ok(claim) = Claim::read(field) else {
        return false;
    };
    let coding = Some(response.header("content-encoding")).filter(|coding| !coding.is_empty());
    let published = Published {
        digest: digest_of(&response.body),
        status: response.status,
        content_type: Some(response.header("content-type")),
        content_encoding: coding,
        site: "site.example",
        target,
    };
    let base = claim.base(&published).unwrap();
    let public: [u8; 32] = pair().public_key().as_ref().try_into().unwrap();
    let key = ParsedPublicKey::new(&ED25519, public).unwrap();
    key.verify_sig(base.as_bytes(), &claim.signature).unwrap();
    true
}

#[test]
fn a_file_is_signed_for_rescue_servers_only() {
    let running = running(Setup::default());
    running.write("a.html", "hello");
    assert!(is_signed(
        &ask(&running, "/a.html?x=1", FETCH),
        "/a.html?x=1"
    ));
    let visitors = ask(&running, "/a.html", "");
    assert_eq!((visitors.status, visitors.header("signature")), (200, ""));
    let stranger = ask(
        &running,
        "/a.html",
        "levee-fetch: ffffffffffffffffffffffffffffffff\r\n",
    );
    assert_eq!(stranger.header("signature"), "");
}

#[test]
fn a_part_and_an_unchanged_page_are_not_signed() {
    let running = running(Setup::default());
    running.write("a.html", "hello");
    let part = ask(&running, "/a.html", &format!("{FETCH}Range: bytes=1-2\r\n"));
    assert_eq!((part.status, part.header("signature")), (206, ""));
    let etag = ask(&running, "/a.html", FETCH).header("etag").to_owned();
    let same = format!("{FETCH}If-None-Match: {etag}\r\n");
    let same = ask(&running, "/a.html", &same);
    assert_eq!((same.status, same.header("signature")), (304, ""));
}

#[test]
fn a_long_file_is_signed_as_soon_as_its_digest_is_known() {
    let running = running(Setup::default());
    running.write("long.bin", vec![7; 300_000]);
    running.sample_until(|_| is_signed(&ask(&running, "/long.bin", FETCH), "/long.bin"));
}

#[test]
fn a_changed_file_has_another_signature() {
    let running = running(Setup::default());
    running.write("a.html", "hello");
    assert!(is_signed(&ask(&running, "/a.html", FETCH), "/a.html"));
    running.write("a.html", "changed");
    running.sample_until(|_| {
        running.front.recheck_files();
        let response = ask(&running, "/a.html", FETCH);
        is_signed(&response, "/a.html") && response.text() == "changed"
    });
}

#[test]
fn what_an_application_said_is_signed_from_the_cache() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=60\r\n\
        Content-Length: 5\r\n\r\nhello";
    let upstream = Some(origin(move |_| page.into()));
    let setup = Setup {
        upstream,
        ..Setup::default()
    };
    let running = running(setup);
    assert_eq!(ask(&running, "/a", FETCH).status, 200);
    running.sample_until(|_| is_signed(&ask(&running, "/a", FETCH), "/a"));
}

#[test]
fn what_an_application_has_signed_itself_is_passed_on_as_it_is() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=60\r\n\
        Signature: app=:AAAA:\r\nContent-Length: 5\r\n\r\nhello";
    let upstream = Some(origin(move |_| page.into()));
    let setup = Setup {
        upstream,
        ..Setup::default()
    };
    let running = running(setup);
    for _ in 0..3 {
        let response = ask(&running, "/a", FETCH);
        assert_eq!(response.header("signature"), "app=:AAAA:");
        assert_eq!(response.header("repr-digest"), "");
    }
}
