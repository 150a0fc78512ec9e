//! What is fetched for an origin whose key is known is checked against its signature.

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use levee_proxy::{Facts, FetchSettings, OriginKey, Publisher, Space, digest_of};
use stage::{Origin, Request, Stage, ok, say, until};

const KEY: &str = "ed25519:test";
const CACHED: &str = "Cache-Control: max-age=60\r\nContent-Type: text/html\r\n";

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

/// The lines by which the origin of [`Request::rescue`] signs `body` at `target`.
fn signed_by(seed: u8, origin_name: &str, target: &str, body: &str) -> String {
    let pair = pair(seed);
    let sign = move |bytes: &[u8]| pair.sign(bytes).as_ref().try_into().unwrap();
    let publisher = Publisher::start(origin_name.into(), KEY.into(), Arc::new(sign)).unwrap();
    let facts = Facts {
        status: 200,
        content_type: Some("text/html"),
        content_encoding: None,
        target,
    };
    publisher.lines(facts, digest_of(body.as_bytes()))
}

fn key(seed: u8) -> OriginKey {
    let public: [u8; 32] = pair(seed).public_key().as_ref().try_into().unwrap();
    let verify = move |bytes: &[u8], signature: &[u8; 64]| {
        let key = ParsedPublicKey::new(&ED25519, public).unwrap();
        key.verify_sig(bytes, signature).is_ok()
    };
    OriginKey {
        text: KEY.into(),
        verify: Arc::new(verify),
    }
}

/// A stage that knows the key of the origin of `request`, and the origin's name.
fn stage_for(request: &Request) -> (Stage, String) {
    let stage = Stage::new(FetchSettings::default());
    let space = request.key().space;
    stage.fetcher.believe(space.clone(), key(1));
    (stage, name(&space))
}

fn name(space: &Space) -> String {
    match space {
        Space::Own(name) => name.to_string(),
        Space::Origin(host, 80) => host.to_string(),
        Space::Origin(host, port) => format!("{host}:{port}"),
    }
}

/// What becomes of a page that comes with the lines that `lines` makes of the origin's name.
async fn check(lines: impl Fn(&str) -> String, body: &'static str, counted: &str) -> bool {
    let probe = Origin::says("").await;
    let name = name(&Request::rescue(&probe, "/a").key().space);
    let fields = format!("{CACHED}{}", lines(&name));
    let origin = Origin::says(&ok(&fields, body)).await;
    let request = Request::rescue(&origin, "/a");
    let (stage, _) = stage_for(&request);
    let answer = stage.get(&request).await.unwrap();
    assert_eq!(answer.text(), body);
    stage.settled().await;
    until(|| stage.fetcher.counters().signatures[counted] > 0).await;
    stage.lookup(&request).is_some()
}

#[tokio::test]
async fn what_is_signed_and_right_is_kept_and_passed_on_with_its_signature() {
    assert!(check(|name| signed_by(1, name, "/a", "page"), "page", "authentic").await);
}

#[tokio::test]
async fn what_is_signed_and_altered_is_not_kept() {
    let altered = check(|name| signed_by(1, name, "/a", "page"), "pagE", "forged");
    assert!(!altered.await);
}

#[tokio::test]
async fn another_page_of_the_origin_or_the_page_of_another_does_not_pass() {
    assert!(!check(|name| signed_by(1, name, "/b", "page"), "page", "forged").await);
    let other = |_: &str| signed_by(1, "www.other.example", "/a", "page");
    assert!(!check(other, "page", "forged").await);
}

#[tokio::test]
async fn the_signature_of_another_key_is_worth_nothing() {
    assert!(!check(|name| signed_by(2, name, "/a", "page"), "page", "forged").await);
}

#[tokio::test]
async fn what_came_without_a_signature_gets_it_by_a_question() {
    let origin = Origin::play(|asked, stream| {
        let port = asked.header("host").unwrap();
        let fields = match asked.line().starts_with("HEAD") {
            true => format!("{CACHED}{}", signed_by(1, &port, "/a", "page")),
            false => CACHED.to_owned(),
        };
        let body = match asked.line().starts_with("HEAD") {
            true => "",
            false => "page",
        };
        let text = ok(&fields, "page");
        let head = text.split_once("\r\n\r\n").unwrap().0;
        say(stream, format!("{head}\r\n\r\n{body}"))
    })
    .await;
    let request = Request::rescue(&origin, "/a");
    let (stage, _) = stage_for(&request);
    stage.get(&request).await.unwrap();
    let signed = || {
        let stored = stage.lookup(&request)?;
        stored.head.header("signature").map(<[u8]>::to_vec)
    };
    until(|| signed().is_some()).await;
    assert_eq!(origin.asks(), 2);
    let counters = stage.fetcher.counters().signatures;
    assert_eq!((counters["unsigned"], counters["authentic"]), (1, 1));
}

#[tokio::test]
async fn without_a_key_nothing_is_looked_at() {
    let fields = format!("{CACHED}{}", signed_by(2, "x", "/b", "other"));
    let origin = Origin::says(&ok(&fields, "page")).await;
    let request = Request::rescue(&origin, "/a");
    let stage = Stage::new(FetchSettings::default());
    stage.get(&request).await.unwrap();
    stage.settled().await;
    assert!(stage.lookup(&request).is_some());
    assert_eq!(stage.fetcher.counters().signatures["forged"], 0);
}
