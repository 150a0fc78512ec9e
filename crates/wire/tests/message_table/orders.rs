//! What is said while a rescue lasts: what to drop, who else helps, what is permitted and reported.

use std::time::Duration;

use levee_vocab::{ByteRate, FetchKey, PEERS_MAX, Peer, Peers, Purge, PurgeKind, PurgeScope};
use levee_wire::rescue::{Answer, Message, Request, parse};
use levee_wire::{Digest, Permit, PermitProof, Report};

use super::{check_both_ways, web};

#[test]
fn a_purge_is_of_a_url_of_tags_or_of_everything() {
    let purge = |scope, kind| Request::Purge(Purge { scope, kind });
    let url = PurgeScope::Url("/a?b=c&d=e".parse().unwrap());
    check_both_ways(
        "3 PURGE url=/a?b=c&d=e",
        &Message::request(3, purge(url, PurgeKind::Hard)),
    );
    let tags = ["news", "a,b%", "ü"].map(|tag| tag.parse().unwrap());
    check_both_ways(
        "4 PURGE tags=news,a%2Cb%25,%C3%BC soft=1",
        &Message::request(4, purge(PurgeScope::Tags(tags.into()), PurgeKind::Soft)),
    );
    let everything = Message::request(5, purge(PurgeScope::All, PurgeKind::Hard));
    check_both_ways("5 PURGE", &everything);
    // A newer version may know more; too much is better than too little.
    assert_eq!(parse(b"5 purge album=7"), Ok(everything));
    check_both_ways(
        "3 200 OK objects=2",
        &Message::answer(3, Answer::Purged { objects: 2 }),
    );
    for bad in [
        "3 PURGE url=a",
        "3 PURGE /a",
        "3 PURGE url=/a url=/b",
        "3 PURGE url=/a tags=b",
        "3 PURGE tags=",
        "3 PURGE tags=a,,b",
        "3 PURGE tags=a%2",
        "3 PURGE tags=a%+1",
        "3 PURGE soft=yes",
        "3 200 OK objects=-1",
    ] {
        assert!(parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn peers_are_named_with_alias_address_and_weight() {
    let key = FetchKey::from_bytes([7; 16]);
    let peer = |alias, port, address: &str, kilobytes| Peer {
        alias: web(alias, port),
        address: address.parse().unwrap(),
        tls: None,
        rate: ByteRate::from_kilobytes(kilobytes),
    };
    let mut members = vec![
        peer("www-vh1.rescue.com", 8080, "5.6.7.8", 100),
        peer("www-vh4.other.net", 80, "2001:db8::7", 60),
    ];
    check_both_ways(
        "3 PEERS key=07070707070707070707070707070707 \
         of=www-vh1.rescue.com:8080,5.6.7.8,100;www-vh4.other.net:80,2001:db8::7,60",
        &Message::request(
            3,
            Request::Peers(Peers {
                key,
                members: members.clone(),
            }),
        ),
    );
    members[0].tls = Some(8443);
    check_both_ways(
        "3 PEERS key=07070707070707070707070707070707 \
         of=www-vh1.rescue.com:8080,5.6.7.8,100;www-vh4.other.net:80,2001:db8::7,60 tls=8443;0",
        &Message::request(3, Request::Peers(Peers { key, members })),
    );
    let members = Vec::new();
    let alone = Message::request(4, Request::Peers(Peers { key, members }));
    check_both_ways("4 PEERS key=07070707070707070707070707070707", &alone);
    let member = "a.b:80,1.2.3.4,5";
    for bad in [
        String::new(),
        "key=07".into(),
        format!("of={member}"),
        "KEY of=".into(),
        "KEY of=a.b,1.2.3.4,5".into(),
        "KEY of=a.b:0,1.2.3.4,5".into(),
        "KEY of=a.b:80,1.2.3,5".into(),
        "KEY of=a.b:80,1.2.3.4".into(),
        "KEY of=a.b:80,1.2.3.4,+5".into(),
        "KEY of=a.b:80,1.2.3.4,5,6".into(),
        format!("KEY of={member};"),
        format!("KEY of={member} tls=443;443"),
        format!("KEY of={member} tls=70000"),
        format!("KEY of={member} tls="),
        "KEY tls=443".into(),
        format!("KEY of={member} of={member}"),
        format!("KEY of={}", [member; PEERS_MAX + 1].join(";")),
    ] {
        let text = bad.replace("KEY", "key=07070707070707070707070707070707");
        let line = format!("3 PEERS {text}");
        assert!(parse(line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn an_origin_permits_and_a_rescue_server_reports() {
    let length = Duration::from_secs(3600);
    let bare = Permit {
        length,
        proof: None,
    };
    check_both_ways(
        "5 PERMIT for=3600",
        &Message::request(5, Request::Permit(bare)),
    );
    let proof = Some(PermitProof {
        stamp: 1_790_000_000_000,
        key: "ed25519:abc".into(),
        signature: "def".into(),
    });
    let proved = Permit { length, proof };
    check_both_ways(
        "5 PERMIT for=3600 stamp=1790000000000 key=ed25519:abc sig=def",
        &Message::request(5, Request::Permit(proved)),
    );
    let mut report = Report {
        alias: web("www-vh4.other.net", 80),
        target: "/news?page=2".into(),
        seen: Digest([7; 32]),
        by_https: false,
    };
    let seen = "07".repeat(32);
    check_both_ways(
        &format!("9 REPORT of=www-vh4.other.net:80 url=/news?page=2 seen={seen}"),
        &Message::request(9, Request::Report(report.clone())),
    );
    report.by_https = true;
    check_both_ways(
        &format!("9 REPORT of=www-vh4.other.net:80 url=/news?page=2 seen={seen} tls=1"),
        &Message::request(9, Request::Report(report)),
    );
    let long = "a".repeat(121);
    for bad in [
        "PERMIT".to_owned(),
        "PERMIT for=-1".into(),
        "PERMIT for=1 for=2".into(),
        "PERMIT for=1 key=a".into(),
        "PERMIT for=1 stamp=1 key=a".into(),
        "PERMIT for=1 stamp=x key=a sig=b".into(),
        format!("PERMIT for=1 stamp=1 key={long} sig=b"),
        format!("REPORT of=a.b:0 url=/ seen={seen}"),
        format!("REPORT of=a.b url=/ seen={seen}"),
        format!("REPORT of=a.b:80 url=x seen={seen}"),
        format!("REPORT of=a.b:80 url=/{} seen={seen}", long.repeat(5)),
        format!("REPORT of=a.b:80 url=/ seen={}", "0G".repeat(32)),
        format!("REPORT of=a.b:80 url=/ seen={seen} tls=443"),
        "REPORT of=a.b:80 url=/ seen=07".into(),
        "REPORT url=/".into(),
    ] {
        let line = format!("3 {bad}");
        assert!(parse(line.as_bytes()).is_err(), "{line}");
    }
}
