//! What each kind of head is taken for. The table is the smuggling suite: one line per trick.

use super::*;

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 16 * 1024,
    target_bytes: 8 * 1024,
};

fn check<R>(head: &[u8], look: impl FnOnce(Result<Option<Request<'_, '_>>, Flaw>) -> R) -> R {
    let mut space: HeaderSpace<'_> = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    look(Request::parse(head, LIMITS, &mut space))
}

fn whole<R>(head: &str, look: impl FnOnce(&Request<'_, '_>) -> R) -> R {
    check(head.as_bytes(), |parsed| match parsed {
        Ok(Some(request)) => look(&request),
        other => panic!("{head:?} gave {other:?}"),
    })
}

fn flaw(head: &str) -> Option<Flaw> {
    check(head.as_bytes(), |parsed| parsed.err())
}

#[test]
fn doubtful_framing_is_refused() {
    let table = [
        ("GET / HTTP/1.1\r\n\r\n", Flaw::MissingHost),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            Flaw::RepeatedHost,
        ),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Flaw::BadHost),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Flaw::BadHost),
        ("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", Flaw::BadHost),
        ("GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", Flaw::BadHost),
        ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", Flaw::BadHost),
        ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", Flaw::BadHost),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", Flaw::BareLineEnd),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", Flaw::BareLineEnd),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: y\n\n", Flaw::BareLineEnd),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BareLineEnd),
        ("GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", Flaw::BadHeader),
        ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", Flaw::BadHeader),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz\r\n\r\n",
            Flaw::BadHeader,
        ),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", Flaw::BadHeader),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Flaw::BadHeader),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", Flaw::BadHeader),
        ("GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", Flaw::BadHeader),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
            Flaw::BadHeader,
        ),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BadMethod),
        ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", Flaw::BareLineEnd),
        ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BadMethod),
        ("GET /\r\n\r\n", Flaw::BadMethod),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Flaw::BadVersion),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", Flaw::BadVersion),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", Flaw::NotHttp),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BadTarget),
        ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BadTarget),
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BadTarget),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BadTarget),
        ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::OtherHost),
        (
            "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            Flaw::HttpsTarget,
        ),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", Flaw::BadTarget),
    ];
    for (head, expected) in table {
        assert_eq!(flaw(head), Some(expected), "{head:?}");
    }
}

#[test]
fn doubtful_lengths_are_refused() {
    let table = [
        (
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            Flaw::RepeatedLength,
        ),
        (
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            Flaw::RepeatedLength,
        ),
        ("Content-Length: 1, 1\r\n", Flaw::BadLength),
        ("Content-Length: +1\r\n", Flaw::BadLength),
        ("Content-Length: -1\r\n", Flaw::BadLength),
        ("Content-Length: 0x1\r\n", Flaw::BadLength),
        ("Content-Length: 1 1\r\n", Flaw::BadLength),
        ("Content-Length:\r\n", Flaw::BadLength),
        ("Content-Length: 9999999999999999999\r\n", Flaw::BadLength),
        ("Transfer-Encoding: gzip\r\n", Flaw::BadTransferCoding),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            Flaw::BadTransferCoding,
        ),
        (
            "Transfer-Encoding: chunked, chunked\r\n",
            Flaw::BadTransferCoding,
        ),
        ("Transfer-Encoding: xchunked\r\n", Flaw::BadTransferCoding),
        (
            "Transfer-Encoding: chunked;a=b\r\n",
            Flaw::BadTransferCoding,
        ),
        ("Transfer-Encoding: identity\r\n", Flaw::BadTransferCoding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Flaw::BadTransferCoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            Flaw::LengthAndCoding,
        ),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            Flaw::LengthAndCoding,
        ),
    ];
    for (lines, expected) in table {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        assert_eq!(flaw(&head), Some(expected), "{head:?}");
        assert_eq!(expected.status(), 400);
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(flaw(old), Some(Flaw::BadTransferCoding));
}

#[test]
fn heads_have_limits() {
    let target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    assert_eq!(flaw(&target), Some(Flaw::TargetTooLong));
    assert_eq!(flaw(&target[..8900]), Some(Flaw::TargetTooLong));
    let long = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(17_000)
    );
    assert_eq!(flaw(&long), Some(Flaw::HeadTooLong));
    assert_eq!(flaw(&long[..16_384]), Some(Flaw::HeadTooLong));
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: y\r\n".repeat(100)
    );
    assert_eq!(flaw(&many), Some(Flaw::TooManyHeaders));
    assert_eq!(flaw(&many.replacen("X: y\r\n", "", 1)), None);
}

#[test]
fn a_good_head_is_cut_into_its_parts() {
    let head = "\r\nGET http://WWW.Example.org:8080/a/b?c=d HTTP/1.1\r\n\
        host: www.example.ORG:8080\r\nconnection: Keep-Alive, x\r\npragma: no-cache\r\n\
        if-none-match: \"x\"\r\nContent-Length: 12\r\n\r\nrest";
    whole(head, |request| {
        assert_eq!(request.method, "GET");
        assert_eq!(request.target, "/a/b?c=d");
        assert_eq!(request.path, "/a/b");
        assert_eq!(LowerName::of(request.host).as_str(), "www.example.org");
        assert_eq!(request.authority, "WWW.Example.org:8080");
        assert_eq!(request.persistence, Persistence::KeepAlive);
        assert_eq!(request.body, BodyLength::Known(12));
        assert_eq!(request.fields.if_none_match, Some(&b"\"x\""[..]));
        assert_eq!(request.fields.freshness, Freshness::BypassCaches);
        assert_eq!(request.length, head.len() - 4);
    });
}

#[test]
fn a_proxy_in_front_tells_of_https() {
    let scheme = |lines: &str| {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
        whole(&head, |request| request.fields.came_by)
    };
    for lines in [
        "X-Forwarded-Proto: https",
        "X-Forwarded-Proto: HTTPS",
        "X-Forwarded-Proto: https, http",
        "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http",
        "Forwarded: for=192.0.2.1;proto=https;by=192.0.2.2",
        "Forwarded: for=192.0.2.1; Proto=\"https\", for=192.0.2.3;proto=http",
    ] {
        assert_eq!(scheme(lines), Scheme::Https, "{lines}");
    }
    for lines in [
        "X-Forwarded-Proto: http",
        "Forwarded: for=https.example;proto=http",
        "X-Https: https",
    ] {
        assert_eq!(scheme(lines), Scheme::Http, "{lines}");
    }
}

#[test]
fn versions_differ_in_persistence_and_host() {
    let persistence = |head: &str| whole(head, |request| request.persistence);
    assert_eq!(persistence("GET / HTTP/1.0\r\n\r\n"), Persistence::Close);
    assert_eq!(
        persistence("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        Persistence::KeepAlive
    );
    assert_eq!(
        persistence("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\n\r\n"),
        Persistence::Close
    );
    whole("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", |request| {
        assert_eq!((request.target, request.host), ("*", "[::1]"));
    });
    whole("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", |request| {
        assert_eq!((request.target, request.host), ("/", "a"));
    });
}

#[test]
fn any_cut_of_a_good_head_is_only_partial() {
    let head = "GET /a HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    for end in 0..head.len() {
        let is_partial = |parsed: Result<Option<Request<'_, '_>>, Flaw>| matches!(parsed, Ok(None));
        assert!(check(&head.as_bytes()[..end], is_partial), "{end}");
    }
}

proptest::proptest! {
    /// Bytes from outside never panic, and what is taken for a head has one Host and one length.
    #[test]
    fn any_bytes_are_parsed_without_a_panic(bytes: Vec<u8>, tail in "[ -~\r\n]{0,200}") {
        check(&bytes, |_| ());
        let head = [b"GET / HTTP/1.1\r\nHost: a\r\n", tail.as_bytes(), b"\r\n\r\n"].concat();
        check(&head, |_| ());
    }
}

#[test]
fn field_names_are_known_in_any_case_and_by_all_their_bytes() {
    for name in ["if-range", "IF-RANGE", "If-rAnGe"] {
        assert!(is_named(name, b"if-range"));
    }
    let is_of_a_name =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    for at in 0..8 {
        for byte in (0..128).filter(|&byte| is_of_a_name(byte)) {
            let mut sent = *b"if-range";
            sent[at] = byte;
            let sent = std::str::from_utf8(&sent).unwrap();
            let expected = sent.eq_ignore_ascii_case("if-range");
            assert_eq!(is_named(sent, b"if-range"), expected, "{sent}");
        }
    }
    assert!(!is_named("if-rang", b"if-range") && !is_named("if-ranges", b"if-range"));
}

#[test]
fn hosts_are_names_without_empty_labels_or_addresses() {
    let long = "a".repeat(253);
    for good in [
        "a",
        "a.",
        "A-b_1.example.",
        "a:80",
        "192.0.2.1",
        "[2001:db8::1]:80",
        &long,
    ] {
        let name = good.strip_suffix(":80").unwrap_or(good);
        assert_eq!(host::name_of(good), Ok(name));
    }
    let longer = "a".repeat(254);
    for bad in [
        ".",
        ".a",
        "a..b",
        "a..",
        "a b",
        "a:b",
        "a:800000",
        "[::1",
        "\u{e9}.example",
        &longer,
    ] {
        assert_eq!(host::name_of(bad), Err(Flaw::BadHost), "{bad}");
    }
}
