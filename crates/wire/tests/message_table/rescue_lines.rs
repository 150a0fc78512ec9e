//! The lines by which a rescue begins, is steered, and ends.

use std::time::Duration;

use levee_vocab::{ByteRate, FetchKey, Misses};
use levee_wire::rescue::{Answer, Body, Message, Offer, Rate, Request, ShutdownWord, Sos, parse};
use levee_wire::{ParseError, leading_number};

use super::{check_both_ways, web};

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
    let shutdown = |word| Message::request(2, Request::Shutdown(word));
    check_both_ways("2 SHUTDOWN", &shutdown(ShutdownWord::Unsaid));
    let told = "2 SHUTDOWN cause=not_a_member";
    check_both_ways(told, &shutdown(ShutdownWord::NotAMember));
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
