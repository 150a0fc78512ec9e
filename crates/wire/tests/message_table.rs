//! Every kind of line, good and bad, and what it means.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use levee_vocab::{
    AliasHttps, ByteRate, FetchKey, Misses, PEERS_MAX, Peer, Peers, Purge, PurgeKind, PurgeScope,
    WebAddress,
};
use levee_wire::registry::{self, Entry, ReplyLine};
use levee_wire::rescue::{Answer, Body, Message, Offer, Rate, Request, Sos, parse};
use levee_wire::{Digest, ParseError, Permit, PermitProof, Report, leading_number};

fn web(host: &str, port: u16) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port }
}

fn sos() -> Sos {
    let (origin, address) = (web("www.origin.com", 8080), "1.2.3.4".parse().unwrap());
    Sos::new(origin, address, Duration::from_secs(600))
}

fn offer() -> Offer {
    Offer {
        alias: web("www-vh1.rescue.com", 8080),
        address: "5.6.7.8".parse().unwrap(),
        rate: ByteRate::from_kilobytes(100),
        beats: false,
        drill: false,
        tls: None,
    }
}

#[test]
fn a_signature_of_an_sos_covers_the_words_that_are_not_known_too() {
    let line = "1 sos www.origin.com 1.2.3.4 8080  600 later=x stamp=17 id=ed25519:k sig=s more=y";
    let Body::Request(Request::Sos(read)) = parse(line.as_bytes()).unwrap().body else {
        panic!("an SOS");
    };
    let proof = read.proof.unwrap();
    let covered = "SOS www.origin.com 1.2.3.4 8080 600 later=x stamp=17 id=ed25519:k more=y";
    assert_eq!(proof.covered, covered);
    assert_eq!((proof.stamp, proof.id.as_str()), (17, "ed25519:k"));
    let unsigned = line.replace("sig=s", "");
    let Body::Request(Request::Sos(read)) = parse(unsigned.as_bytes()).unwrap().body else {
        panic!("an SOS");
    };
    assert_eq!(read.proof, None);
    let half = parse(b"1 SOS www.origin.com 1.2.3.4 8080 600 sig=s");
    assert_eq!(half, Err(ParseError::Missing("id")));
}

#[test]
fn an_sos_is_read_as_it_was_signed() {
    let asked = "www.rescue.com".parse().unwrap();
    let mut signed = String::new();
    let proved = sos().proved("ed25519:k".parse().unwrap(), 17, &asked, |text| {
        signed = text.to_owned();
        "s".parse().unwrap()
    });
    assert_eq!(
        signed,
        "SOS www.origin.com 1.2.3.4 8080 600 stamp=17 id=ed25519:k for=www.rescue.com"
    );
    let line = "1 SOS www.origin.com 1.2.3.4 8080 600 stamp=17 id=ed25519:k sig=s";
    check_both_ways(line, &Message::request(1, Request::Sos(proved)));
}

/// The line means the message, and the message gives the line back.
fn check_both_ways(line: &str, message: &Message) {
    assert_eq!(parse(line.as_bytes()).as_ref(), Ok(message), "{line}");
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{line}\n"));
}

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
fn the_lines_of_the_papers_figure_mean_what_it_says() {
    check_both_ways(
        "1 SOS www.origin.com 1.2.3.4 8080 600",
        &Message::request(1, Request::Sos(sos())),
    );
    check_both_ways(
        "1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100",
        &Message::answer(1, Answer::Accept(offer())),
    );
    let rate = |carried: Option<u64>| {
        let carried = carried.map(ByteRate::from_kilobytes);
        let redirects = ByteRate::from_kilobytes(60);
        Message::request(1, Request::Rate(Rate { redirects, carried }))
    };
    check_both_ways("1 RATE 60", &rate(None));
    check_both_ways("1 RATE 60 carried=55", &rate(Some(55)));
    check_both_ways("1 200 OK", &Message::answer(1, Answer::Done));
    check_both_ways("2 SHUTDOWN", &Message::request(2, Request::Shutdown));
    check_both_ways("1 403 Reject", &Message::answer(1, Answer::Reject));
}

#[test]
fn our_parameters_follow_the_papers() {
    let key = FetchKey::from_bytes([0xAB; 16]);
    let extended = Sos {
        key: Some(key),
        ttl: Some(Duration::from_secs(60)),
        beats: true,
        misses: Misses::SendBack,
        version: 1,
        ..sos()
    };
    let line = format!("1 SOS www.origin.com 1.2.3.4 8080 600 key={key} ttl=60 beat=1 pull=0 v=1");
    check_both_ways(&line, &Message::request(1, Request::Sos(extended)));
    let beating = Offer {
        beats: true,
        ..offer()
    };
    check_both_ways(
        "1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100 beat=1",
        &Message::answer(1, Answer::Accept(beating)),
    );
}

#[test]
fn a_rehearsal_says_so_on_both_sides() {
    let rehearsal = Sos {
        drill: Some(Duration::from_secs(60)),
        ..sos()
    };
    check_both_ways(
        "1 SOS www.origin.com 1.2.3.4 8080 600 drill=60",
        &Message::request(1, Request::Sos(rehearsal)),
    );
    let secure = Offer {
        tls: Some(8443),
        ..offer()
    };
    check_both_ways(
        "1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100 tls=8443",
        &Message::answer(1, Answer::Accept(secure)),
    );
    let understood = Offer {
        drill: true,
        ..offer()
    };
    check_both_ways(
        "1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100 drill=1",
        &Message::answer(1, Answer::Accept(understood)),
    );
}

#[test]
fn what_a_person_or_a_newer_version_types_is_understood() {
    let sos = Body::Request(Request::Sos(sos()));
    for line in [
        "1 sos WWW.Origin.com. 1.2.3.4 8080 600",
        "  1\tSoS  www.origin.com 1.2.3.4   8080 600  ",
        "1 SOS www.origin.com ::ffff:1.2.3.4 8080 600",
        "1 SOS www.origin.com 1.2.3.4 8080 600 class=gold x= beat=0 pull=1",
    ] {
        assert_eq!(
            parse(line.as_bytes()).map(|m| m.body).as_ref(),
            Ok(&sos),
            "{line}"
        );
    }
    let done = Ok(Message::answer(7, Answer::Done));
    for line in ["7 200", "7 200 ok", "7 200 Fine", "7 200 OK weather=fair"] {
        assert_eq!(parse(line.as_bytes()), done, "{line}");
    }
    let unknown = Request::Unknown("PUSH".to_owned());
    assert_eq!(parse(b"3 push a b c"), Ok(Message::request(3, unknown)));
    let other = Answer::Other {
        code: 501,
        text: "Not here".to_owned(),
    };
    assert_eq!(parse(b"3 501  Not   here"), Ok(Message::answer(3, other)));
}

#[test]
fn what_is_wrong_is_named() {
    use ParseError::*;
    let table: &[(&str, ParseError)] = &[
        ("", Empty),
        ("   ", Empty),
        ("SOS", BadNumber),
        ("GET / HTTP/1.1", BadNumber),
        ("0 SOS", BadNumber),
        ("+1 SHUTDOWN", BadNumber),
        ("-1 SHUTDOWN", BadNumber),
        ("4294967296 SHUTDOWN", BadNumber),
        ("1", NoCommand),
        ("1 20 OK", BadCode),
        ("1 2000 OK", BadCode),
        ("1 2x0 OK", BadCode),
        ("1 =x", BadCommand),
        ("1 S!S", BadCommand),
        ("1 ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", BadCommand),
        ("1 SOS", Missing("name")),
        ("1 SOS www.origin.com", Missing("address")),
        ("1 SOS www.origin.com key=1", Missing("address")),
        ("1 SOS www.origin.com 1.2.3.4", Missing("port")),
        ("1 SOS www.origin.com 1.2.3.4 80", Missing("idle time")),
        ("1 SOS www..com 1.2.3.4 80 600", Bad("name")),
        ("1 SOS www.origin.com 1.2.3 80 600", Bad("address")),
        ("1 SOS www.origin.com 1.2.3.4 0 600", Bad("port")),
        ("1 SOS www.origin.com 1.2.3.4 65536 600", Bad("port")),
        ("1 SOS www.origin.com 1.2.3.4 80 -1", Bad("idle time")),
        ("1 SOS www.origin.com 1.2.3.4 80 600 more", Surplus),
        ("1 SOS www.origin.com 1.2.3.4 80 600 key=abc", Bad("key")),
        ("1 SOS www.origin.com 1.2.3.4 80 600 ttl=1s", Bad("ttl")),
        ("1 SOS www.origin.com 1.2.3.4 80 600 beat=yes", Bad("beat")),
        (
            "1 SOS www.origin.com 1.2.3.4 80 600 ttl=1 ttl=1",
            Repeated("ttl"),
        ),
        ("1 RATE", Missing("rate")),
        ("1 RATE fast", Bad("rate")),
        ("1 RATE 6.5", Bad("rate")),
        ("1 RATE 60 70", Surplus),
        ("1 SHUTDOWN now", Surplus),
        ("1 200 OK alias", Missing("address")),
        ("1 200 OK a_b 5.6.7.8 80 1", Bad("alias")),
        ("1 200 OK www.a.com 5.6.7.8 80", Missing("rate")),
    ];
    for (line, error) in table {
        assert_eq!(parse(line.as_bytes()), Err(*error), "{line}");
    }
    assert_eq!(parse(b"1 RATE 60\0"), Err(NotText));
    assert_eq!(parse("1 RATE \u{666}".as_bytes()), Err(NotText));
}

#[test]
fn a_line_without_sense_can_still_have_a_number() {
    assert_eq!(leading_number(b"  12 gibberish"), Some(12));
    assert_eq!(leading_number(b"12"), Some(12));
    assert_eq!(leading_number(b"GET / HTTP/1.1"), None);
    assert_eq!(leading_number(&[0xFF, b' ']), None);
    assert_eq!(leading_number(b""), None);
}

fn entry() -> Entry {
    Entry::new(
        web("www.rescue.com", 8080),
        "5.6.7.8:7401".parse().unwrap(),
        ByteRate::from_kilobytes(500),
        Duration::from_secs(30),
    )
}

fn check_registry(line: &str, request: &registry::Request) {
    let parsed = registry::parse_request(line.as_bytes());
    assert_eq!(parsed, Ok((1, request.clone())), "{line}");
    let mut bytes = Vec::new();
    request.encode(1, &mut bytes);
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{line}\n"));
}

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

fn proof_of(seconds: u64) -> registry::Proof {
    registry::Proof {
        key: "ed25519:KEY".parse().unwrap(),
        signature: "SIG".parse().unwrap(),
        asked: Duration::from_secs(seconds),
        https_signature: None,
    }
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
