//! What sites and registries say to each other.

use std::time::Duration;

use levee_vocab::{AliasHttps, ByteRate};
use levee_wire::ParseError;
use levee_wire::registry::{self, Entry, ReplyLine};

use super::web;

#[test]
fn a_site_speaks_to_its_registry_in_lines() {
    use registry::Request::*;
    check_registry(
        "1 REGISTER www.rescue.com 8080 5.6.7.8 7401 500 30",
        &Register(entry()),
    );
    let site = entry().site.host;
    let farewell = registry::Farewell::new(site.clone());
    check_registry("1 DEREGISTER www.rescue.com", &Deregister(farewell.clone()));
    check_registry("1 QUERY www.rescue.com", &Query(site.clone()));
    let mut search = registry::Search {
        count: 5,
        ..registry::Search::default()
    };
    check_registry("1 SEARCH 5", &Search(search.clone()));
    search.except = Some(site);
    check_registry("1 SEARCH 5 except=www.rescue.com", &Search(search.clone()));
    search.per_domain = Some(2);
    search.nonce = Some(255);
    check_registry(
        "1 SEARCH 5 except=www.rescue.com per_domain=2 nonce=00000000000000ff",
        &Search(search),
    );
    let (stamp, proof) = (1_800_000_000_123, Some(proof_of(30)));
    check_registry(
        "1 REGISTER www.rescue.com 8080 5.6.7.8 7401 500 30 stamp=1800000000123 \
         key=ed25519:KEY sig=SIG",
        &Register(Entry {
            stamp,
            proof,
            ..entry()
        }),
    );
    let https = AliasHttps::No;
    let proof = Some(registry::Proof {
        https_signature: Some("HTTPS".parse().unwrap()),
        ..proof_of(30)
    });
    check_registry(
        "1 REGISTER www.rescue.com 8080 5.6.7.8 7401 500 30 stamp=1800000000123 \
         key=ed25519:KEY sig=SIG https=0 https_sig=HTTPS",
        &Register(Entry {
            stamp,
            https,
            proof,
            ..entry()
        }),
    );
    let proof = Some(proof_of(0));
    check_registry(
        "1 DEREGISTER www.rescue.com stamp=1800000000123 key=ed25519:KEY sig=SIG",
        &Deregister(registry::Farewell {
            stamp,
            proof,
            ..farewell
        }),
    );
    check_registry("1 WHOAMI", &Unknown("WHOAMI".to_owned()));
}

#[test]
fn what_a_site_signs_does_not_change_while_its_lifetime_runs_out() {
    let line = "1 210 ENTRY www.rescue.com 8080 5.6.7.8 7401 500 7 stamp=9 key=K sig=S asked=30";
    let Ok((1, registry::ReplyLine::Entry(entry))) = registry::parse_reply_line(line.as_bytes())
    else {
        panic!("an entry");
    };
    assert_eq!(format!("1 210 ENTRY {entry}"), line);
    let signed = "REGISTER www.rescue.com 8080 5.6.7.8 7401 500 30 stamp=9 key=K";
    assert_eq!(entry.signed_text(&"K".parse().unwrap()), signed);
}

/// Older versions check `sig` over what they know, and leave out the rest when they pass it on.
#[test]
fn what_is_said_of_https_is_signed_apart() {
    let key = "K".parse().unwrap();
    let known = "1 210 ENTRY www.rescue.com 8080 5.6.7.8 7401 500 30 stamp=9 key=K sig=S";
    for (word, said) in [(" https=1", AliasHttps::Yes), (" https=0", AliasHttps::No)] {
        let line = format!("{known}{word} https_sig=T");
        let Ok((1, registry::ReplyLine::Entry(entry))) =
            registry::parse_reply_line(line.as_bytes())
        else {
            panic!("an entry");
        };
        assert_eq!(format!("1 210 ENTRY {entry}"), line);
        assert_eq!(entry.https, said);
        let signed = "REGISTER www.rescue.com 8080 5.6.7.8 7401 500 30 stamp=9 key=K";
        assert_eq!(entry.signed_text(&key), signed);
        let apart = format!("{signed}{word}");
        assert_eq!(entry.signed_https_text(&key), Some(apart));
    }
    assert_eq!(entry().signed_https_text(&key), None);
    // In an open community nobody signs.
    let https = AliasHttps::Yes;
    check_registry(
        "1 REGISTER www.rescue.com 8080 5.6.7.8 7401 500 30 https=1",
        &registry::Request::Register(Entry { https, ..entry() }),
    );
}

#[test]
fn bad_registry_lines_are_named() {
    use ParseError::*;
    let table: &[(&str, ParseError)] = &[
        ("REGISTER", BadNumber),
        ("1 200 OK", BadCommand),
        (
            "1 REGISTER www.rescue.com 0 5.6.7.8 7401 500 30",
            Bad("web port"),
        ),
        (
            "1 REGISTER www.rescue.com 80 5.6.7.8 7401 500",
            Missing("lifetime"),
        ),
        (
            "1 REGISTER www.rescue.com 80 5.6.7.8 7401 500 30 40",
            Surplus,
        ),
        ("1 SEARCH", Missing("count")),
        ("1 SEARCH 5 except=_", Bad("except")),
        ("1 SEARCH 5 per_domain=-1", Bad("per_domain")),
        ("1 SEARCH 5 nonce=ff", Bad("nonce")),
        ("1 QUERY", Missing("name")),
        ("1 DEREGISTER a.b stamp=+1", Bad("stamp")),
        ("1 DEREGISTER a.b key=K", Missing("sig")),
        ("1 DEREGISTER a.b sig=S", Missing("key")),
        ("1 DEREGISTER a.b key=!", Bad("key")),
        (
            "1 REGISTER a.b 80 5.6.7.8 7401 500 30 https=2",
            Bad("https"),
        ),
        (
            "1 REGISTER a.b 80 5.6.7.8 7401 500 30 key=K sig=S https_sig=T",
            Missing("https"),
        ),
        (
            "1 REGISTER a.b 80 5.6.7.8 7401 500 30 https=1 https_sig=T",
            Missing("key"),
        ),
    ];
    for (line, error) in table {
        assert_eq!(
            registry::parse_request(line.as_bytes()),
            Err(*error),
            "{line}"
        );
    }
    assert_eq!(registry::parse_reply_line(b"1 SEARCH 5"), Err(BadCode));
    assert_eq!(registry::parse_reply_line(b"1 302 OK 5"), Err(BadCode));
    assert_eq!(
        registry::parse_reply_line(b"1 200 OK"),
        Err(Missing("count"))
    );
}

#[test]
fn a_reply_is_lines_and_its_last_line_says_so() {
    let mut bytes = Vec::new();
    registry::Reply::Found(vec![entry()]).encode(2, &mut bytes);
    registry::Reply::Refused(registry::Refusal::Taken).encode(3, &mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let expected = "2 210 ENTRY www.rescue.com 8080 5.6.7.8 7401 500 30\n2 200 OK 1\n\
                    3 409 Taken by another address until its registration ends\n";
    assert_eq!(text, expected);
    let lines: Vec<_> = text
        .lines()
        .map(|line| registry::parse_reply_line(line.as_bytes()))
        .collect();
    let refused = ReplyLine::Refused {
        code: 409,
        text: "Taken by another address until its registration ends".to_owned(),
    };
    assert_eq!(
        lines,
        [
            Ok((2, ReplyLine::Entry(entry()))),
            Ok((2, ReplyLine::Done(1))),
            Ok((3, refused)),
        ]
    );
}

fn entry() -> Entry {
    Entry::new(
        web("www.rescue.com", 8080),
        "5.6.7.8:7401".parse().unwrap(),
        ByteRate::from_kilobytes(500),
        Duration::from_secs(30),
    )
}

fn proof_of(seconds: u64) -> registry::Proof {
    registry::Proof {
        key: "ed25519:KEY".parse().unwrap(),
        signature: "SIG".parse().unwrap(),
        asked: Duration::from_secs(seconds),
        https_signature: None,
    }
}

fn check_registry(line: &str, request: &registry::Request) {
    let parsed = registry::parse_request(line.as_bytes());
    assert_eq!(parsed, Ok((1, request.clone())), "{line}");
    let mut bytes = Vec::new();
    request.encode(1, &mut bytes);
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{line}\n"));
}
