//! The decision as a table: response headers, and what becomes of them for whom.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Version};
use proptest::prelude::*;

use super::*;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const TEN_DAYS_BEFORE: &str = "Thu, 27 Oct 1994 08:49:37 GMT";
const TWO_MINUTES_AFTER: &str = "Sun, 06 Nov 1994 08:51:37 GMT";

fn headers(lines: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines.split('|').filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        let value = match value.trim() {
            "DATE" => DATE,
            "BEFORE" => TEN_DAYS_BEFORE,
            "AFTER" => TWO_MINUTES_AFTER,
            value => value,
        };
        map.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    map
}

fn arrived() -> SystemTime {
    httpdate::parse_http_date(DATE).unwrap()
}

fn policy(purpose: Purpose) -> Policy {
    Policy {
        purpose,
        ttl: Duration::from_secs(60),
        heuristic_max: Duration::from_secs(3600),
        negative: Duration::from_secs(5),
        stale_if_error: Duration::from_secs(600),
    }
}

fn decided(status: u16, lines: &str, purpose: Purpose, credentials: Credentials) -> Decision {
    let answer = Answer {
        status: StatusCode::from_u16(status).unwrap(),
        headers: &headers(lines),
        body_end: BodyEnd::Announced,
        arrived: arrived(),
        credentials,
    };
    decide(&answer, &policy(purpose))
}

/// `store 60 ~60 +600 all`: lifetime, time shown while its source is asked (where there is one),
/// time as a stand-in, who may have it, what is for the visitor who asked.
fn told(decision: &Decision) -> String {
    let who = |sharing: &Sharing| {
        let who = match sharing.0 {
            Credentials::None => "anonymous",
            Credentials::Cookie => "cookies",
            Credentials::Authorization => "all",
        };
        who.to_owned()
    };
    let without = |names: &[Box<str>]| match names {
        [] => String::new(),
        names => format!(" without {}", names.join(" ")),
    };
    match decision {
        Decision::Store(keeping) => format!(
            "store {}{} +{} {}",
            keeping.lifetime.as_secs(),
            match keeping.stale_while_revalidate.as_secs() {
                0 => String::new(),
                shown => format!(" ~{shown}"),
            },
            keeping.stale_if_error.as_secs(),
            who(&keeping.sharing) + &without(&keeping.unshared)
        ),
        Decision::ShareOnce { sharing, .. } => format!("once {}", who(sharing)),
        Decision::PassWithCredentials => "pass, credentials".to_owned(),
        Decision::Pass => "pass".to_owned(),
    }
}

/// Status and headers `=>` what becomes of it from an upstream `/` from an origin that we rescue.
const RESPONSES: &str = r#"
200 => pass / store 60 ~60 +600 all
200 etag:"1" => store 0 +600 anonymous / store 60 ~60 +600 all
200 date:DATE|last-modified:BEFORE => store 3600 +600 anonymous / store 60 ~60 +600 all
200 cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
200 cache-control:max-age="7" => store 7 +600 cookies / store 7 +600 all
200 cache-control:max-age = 7|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cache-control:max-age= 7|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cache-control:max-age=7.0|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cache-control:max-age=-7|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cache-control:max-age=|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cache-control:max-age|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cache-control:MAX-AGE=7 => store 7 +600 cookies / store 7 +600 all
200 cache-control:,, max-age=7 ,, => store 7 +600 cookies / store 7 +600 all
200 cache-control:max-age=7|cache-control:no-store => pass / pass
200 cache-control:x=" , no-store, max-age=7 => pass / pass
200 cache-control:"no-store, max-age=7 => store 7 +600 cookies / store 7 +600 all
200 cache-control:public=x, max-age=7 => store 7 +600 cookies / store 7 +600 all
200 cache-control:public, no-store => pass / pass
200 cache-control:max-age=7, max-age=5 => store 5 +600 cookies / store 5 +600 all
200 cache-control:max-age=nonsense|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cache-control:max-age=7, s-maxage=9 => store 9 +0 all / store 9 +0 all
200 cache-control:public, max-age=7 => store 7 +600 all / store 7 +600 all
200 cache-control:max-age=7, must-revalidate => store 7 +0 all / store 7 +0 all
200 cache-control:max-age=7, proxy-revalidate => store 7 +0 cookies / store 7 +0 all
200 cache-control:max-age=7, stale-if-error=30 => store 7 +30 cookies / store 7 +30 all
200 cache-control:max-age=7, stale-while-revalidate=30 => store 7 ~30 +600 cookies / store 7 ~30 +600 all
200 cache-control:max-age=7, stale-while-revalidate="30", stale-while-revalidate=20 => store 7 ~20 +600 cookies / store 7 ~20 +600 all
200 cache-control:max-age=7, stale-while-revalidate=soon => store 7 +600 cookies / store 7 +600 all
200 cache-control:max-age=7, stale-while-revalidate=30, must-revalidate => store 7 +0 all / store 7 +0 all
200 cache-control:max-age=7, stale-while-revalidate=30, proxy-revalidate => store 7 +0 cookies / store 7 +0 all
200 cache-control:s-maxage=7, stale-while-revalidate=30 => store 7 +0 all / store 7 +0 all
200 cache-control:no-cache, stale-while-revalidate=30|etag:"1" => store 0 +0 anonymous / store 0 +0 all
200 cache-control:no-store, stale-while-revalidate=30 => pass / pass
200 cache-control:max-age=0, stale-while-revalidate=30 => store 0 ~30 +600 anonymous / store 0 ~30 +600 all
200 cache-control:stale-while-revalidate=30 => pass / store 60 ~30 +600 all
200 cache-control:stale-while-revalidate=0 => pass / store 60 +600 all
200 cache-control:must-revalidate => pass / store 60 +0 all
200 cache-control:proxy-revalidate => pass / store 60 +0 all
200 cache-control:stale-if-error=0 => pass / store 60 ~60 +0 all
404 cache-control:stale-while-revalidate=30 => store 5 ~30 +600 anonymous / store 5 ~30 +600 all
200 cache-control:max-age=99999999999 => store 2147483648 +600 cookies / store 2147483648 +600 all
200 date:DATE|expires:AFTER => store 120 +600 cookies / store 120 +600 all
200 date:AFTER|expires:DATE|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 expires:0|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 expires:0 => pass / pass
200 cache-control:no-store => pass / pass
200 cache-control:private, max-age=7 => pass / pass
200 cache-control:private="set-cookie" => pass / store 60 ~60 +600 all
200 cache-control:private="" => pass / pass
200 cache-control:private=set cookie => pass / pass
200 cache-control:private =a, max-age=7 => pass / pass
200 cache-control:no-cache="x-a", max-age=7 => store 7 +600 cookies / store 7 +600 all
200 cache-control:no-cache="x-a, x-b", no-cache, max-age=7|etag:"1" => store 0 +0 anonymous / store 0 +0 all
200 set-cookie:a=b|cache-control:private="Set-Cookie", max-age=7 => store 7 +600 cookies without set-cookie / store 7 +600 all without set-cookie
200 set-cookie:a=b|cache-control:no-cache="set-cookie", max-age=7 => store 7 +600 cookies without set-cookie / store 7 +600 all without set-cookie
200 set-cookie:a=b|cache-control:private="x-a", max-age=7 => pass / pass
200 x-a:1|cache-control:private="x-a", max-age=7 => store 7 +600 cookies without x-a / store 7 +600 all without x-a
200 cache-control:x="no-store, private" => pass / store 60 ~60 +600 all
200 cache-control:no-cache => pass / pass
200 cache-control:no-cache|etag:"1" => store 0 +0 anonymous / store 0 +0 all
200 cache-control:max-age=0, must-revalidate|etag:"1" => store 0 +0 anonymous / store 0 +0 all
200 pragma:no-cache => pass / pass
200 pragma:no-cache|cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
200 vary:*|cache-control:max-age=7 => pass / pass
200 vary:a,b,c,d,e,f,g,h,i|cache-control:max-age=7 => pass / pass
200 set-cookie:a=b|cache-control:max-age=7 => pass / pass
200 set-cookie:a=b|cache-control:public, max-age=7 => pass / store 7 +600 all
204 => pass / store 60 ~60 +600 all
206 cache-control:max-age=7 => pass / pass
200 cache-control:no-store, max-age=7, must-understand => store 7 +600 cookies / store 7 +600 all
599 cache-control:max-age=7, must-understand => pass / pass
599 cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
599 cache-control:public => once all / once all
599 cache-control:public|date:DATE|last-modified:BEFORE => store 3600 +600 all / store 3600 +600 all
201 date:DATE|last-modified:BEFORE => pass / pass
501 => store 5 +600 anonymous / store 5 +600 all
200 cdn-cache-control:max-age=9|cache-control:no-store|expires:0 => store 9 +600 cookies / store 9 +600 all
200 cdn-cache-control:no-store|cache-control:max-age=7 => pass / pass
200 cdn-cache-control:max-age=9, public|cdn-cache-control:stale-while-revalidate=8 => store 9 ~8 +600 all / store 9 ~8 +600 all
200 cdn-cache-control:max-age="9"|cache-control:max-age=7 => store 9 +600 cookies / store 9 +600 all
200 cdn-cache-control:max-age=9.5|etag:"1" => store 0 +600 anonymous / store 0 +600 all
200 cdn-cache-control:max-age=9, no-store=?0 => store 9 +600 cookies / store 9 +600 all
200 cdn-cache-control:|cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
200 cdn-cache-control:max-age=9 no-store|cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
200 cdn-cache-control:MAX-AGE=9|cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
200 cdn-cache-control:max-age=9|set-cookie:a=b => pass / pass
200 surrogate-control:max-age=9|cache-control:no-store|pragma:no-cache => store 9 +600 cookies / store 9 +600 all
200 surrogate-control:max-age=9|cdn-cache-control:max-age=3 => store 3 +600 cookies / store 3 +600 all
200 surrogate-control:no-store|cache-control:max-age=7 => pass / pass
200 surrogate-control:max-age=9+30 => store 9 ~30 +30 cookies / store 9 ~30 +30 all
200 surrogate-control:max-age=9;other|cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
200 surrogate-control:max-age=9;levee, max-age=3|cache-control:max-age=7 => store 9 +600 cookies / store 9 +600 all
200 surrogate-control:content="ESI/1.0"|cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
301 => pass / store 60 ~60 +600 all
302 => pass / pass
302 cache-control:max-age=7 => store 7 +600 cookies / store 7 +600 all
304 cache-control:max-age=7 => pass / pass
308 etag:"1" => store 0 +600 anonymous / store 60 ~60 +600 all
403 => pass / pass
404 => store 5 +600 anonymous / store 5 +600 all
404 cache-control:max-age=70 => store 70 +600 cookies / store 70 +600 all
410 => store 5 +600 anonymous / store 5 +600 all
500 => once all / once all
503 set-cookie:a=b => pass / pass
503 cache-control:max-age=2 => store 2 +600 cookies / store 2 +600 all
503 cache-control:no-store => pass / pass
"#;

#[test]
fn responses_are_kept_as_rfc_9111_says() {
    for row in RESPONSES.trim().lines() {
        let (response, expected) = row.split_once(" => ").unwrap();
        let (status, lines) = response.split_once(' ').unwrap_or((response, ""));
        let (upstream, rescue) = expected.split_once(" / ").unwrap();
        for (purpose, expected) in [(Purpose::Upstream, upstream), (Purpose::Rescue, rescue)] {
            let decision = decided(status.parse().unwrap(), lines, purpose, Credentials::None);
            assert_eq!(told(&decision), expected, "{response} for {purpose:?}");
        }
    }
}

#[test]
fn credentials_are_respected() {
    use Credentials::{Authorization, Cookie};
    let table = [
        ("cache-control:max-age=7", Cookie, "store 7 +600 cookies"),
        (
            "cache-control:max-age=7",
            Authorization,
            "pass, credentials",
        ),
        (
            "cache-control:public, max-age=7",
            Authorization,
            "store 7 +600 all",
        ),
        ("cache-control:s-maxage=7", Authorization, "store 7 +0 all"),
        (
            "cache-control:max-age=7, must-revalidate",
            Authorization,
            "store 7 +0 all",
        ),
        (
            "date:DATE|last-modified:BEFORE",
            Cookie,
            "pass, credentials",
        ),
        (
            "cache-control:no-cache|etag:\"1\"",
            Cookie,
            "pass, credentials",
        ),
        (
            "cache-control:max-age=0, must-revalidate|etag:\"1\"",
            Cookie,
            "pass, credentials",
        ),
    ];
    for (lines, credentials, expected) in table {
        let decision = decided(200, lines, Purpose::Upstream, credentials);
        assert_eq!(told(&decision), expected, "{lines} with {credentials:?}");
    }
    assert_eq!(
        told(&decided(503, "", Purpose::Upstream, Cookie)),
        "once all"
    );
}

#[test]
fn a_body_whose_end_is_not_announced_is_not_kept() {
    let map = headers("cache-control:max-age=7");
    let answer = Answer {
        status: StatusCode::OK,
        headers: &map,
        body_end: BodyEnd::Unannounced,
        arrived: arrived(),
        credentials: Credentials::None,
    };
    let decision = decide(&answer, &policy(Purpose::Upstream));
    assert_eq!(told(&decision), "once cookies");
}

#[test]
fn the_age_on_arrival_trusts_clocks_only_where_it_must() {
    let hour = Duration::from_secs(3600);
    let age = |lines: &str, version| {
        age_on_arrival(
            &headers(lines),
            version,
            arrived() + hour,
            Duration::from_secs(2),
        )
        .as_secs()
    };
    assert_eq!(age("date:DATE", Version::HTTP_11), 2);
    assert_eq!(age("date:DATE", Version::HTTP_10), 3600);
    assert_eq!(age("date:DATE|age:10", Version::HTTP_11), 12);
    assert_eq!(
        age("date:DATE|age:10|via:1.1 a, 1.0 b", Version::HTTP_11),
        3600
    );
    // Nobody knows how old it is.
    let unknown = 2 + (1 << 31);
    for lines in [
        "age:nonsense",
        "age:-1",
        "age:1.0",
        "age:1, 2",
        "age:1|age:1",
    ] {
        assert_eq!(age(lines, Version::HTTP_11), unknown, "{lines}");
    }
    assert_eq!(age("date:nonsense", Version::HTTP_10), 2);
}

fn request(fields: &[(&str, &str)]) -> Vec<(Bytes, Bytes)> {
    let own = |text: &str| Bytes::from(text.to_owned());
    let fields = fields.iter();
    fields
        .map(|(name, value)| (own(name), own(value)))
        .collect()
}

#[test]
fn accept_encoding_has_one_spelling() {
    let table = [
        ("", ""),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br, gzip, zstd"),
        ("BR;q=0.5,gzip;q=1.0", "br, gzip"),
        ("gzip;q=0, br", "br"),
        ("gzip;q=0.000", ""),
        ("*", "br, gzip, zstd"),
        ("*;q=0, gzip", "gzip"),
        ("identity", ""),
    ];
    for (value, expected) in table {
        let request = request(&[("Accept-Encoding", value)]);
        assert_eq!(normal_encodings(&request), expected, "{value}");
    }
}

#[test]
fn variants_differ_by_the_named_headers_and_by_nothing_else() {
    let names = VaryNames::of(
        &headers("vary:Accept-Language|vary:accept-encoding, X"),
        Purpose::Rescue,
    );
    let names = names.unwrap().unwrap();
    let variant = |fields: &[(&str, &str)]| names.variant(&request(fields));
    let german = variant(&[("accept-language", "de"), ("accept-encoding", "gzip, br")]);
    let same = [
        ("Accept-Encoding", "br,gzip"),
        ("Accept-Language", " de "),
        ("other", "1"),
    ];
    assert_eq!(variant(&same), german);
    assert_ne!(variant(&[("accept-language", "de")]), german);
    // Values cannot be shifted from one header into the next.
    assert_ne!(variant(&[("x", "a")]), variant(&[("accept-language", "a")]));
    let packed = VaryNames::of(&headers("content-encoding:gzip"), Purpose::Rescue).unwrap();
    assert_eq!(
        packed,
        VaryNames::of(&headers("vary:accept-encoding"), Purpose::Rescue).unwrap()
    );
}

/// Freshness as the RFC's prose has it, written once more and independently, in seconds.
fn reference(
    s_maxage: Option<u64>,
    max_age: Option<u64>,
    expires: Option<i64>,
    modified: Option<u64>,
    no_cache: bool,
) -> Option<u64> {
    if no_cache {
        return Some(0);
    }
    if s_maxage.is_some() {
        return s_maxage;
    }
    if max_age.is_some() {
        return max_age;
    }
    if let Some(offset) = expires {
        return Some(u64::try_from(offset).unwrap_or(0));
    }
    modified.map(|age| (age / 10).min(3600))
}

proptest! {
    #[test]
    fn the_lifetime_is_that_of_a_plain_reading_of_the_rfc(
        s_maxage in prop::option::of(0..10_000_u64),
        max_age in prop::option::of(0..10_000_u64),
        expires in prop::option::of(-10_000..10_000_i64),
        modified in prop::option::of((0..10_000_u64).prop_map(|tens| tens * 10)),
        no_cache in any::<bool>(),
        order in any::<bool>(),
    ) {
        let mut directives = Vec::new();
        directives.extend(s_maxage.map(|time| format!("s-maxage={time}")));
        directives.extend(max_age.map(|time| format!("Max-Age={time}")));
        directives.extend(no_cache.then(|| "no-cache".to_owned()));
        if order {
            directives.reverse();
        }
        let date = |offset: i64| {
            let seconds = arrived().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let seconds = seconds.checked_add_signed(offset).unwrap();
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
        };
        let mut lines = format!("date:{DATE}|etag:\"1\"");
        if !directives.is_empty() {
            lines += &format!("|cache-control:{}", directives.join(" ,"));
        }
        if let Some(offset) = expires {
            lines += &format!("|expires:{}", date(offset));
        }
        if let Some(age) = modified {
            lines += &format!("|last-modified:{}", date(-(age as i64)));
        }
        let expected = reference(s_maxage, max_age, expires, modified, no_cache).unwrap_or(0);
        match decided(200, &lines, Purpose::Upstream, Credentials::None) {
            Decision::Store(keeping) => prop_assert_eq!(keeping.lifetime.as_secs(), expected),
            other @ (Decision::ShareOnce { .. }
            | Decision::PassWithCredentials
            | Decision::Pass) => prop_assert!(false, "{:?}", other),
        }
    }

    /// Whatever an origin sends, the decision does not panic, and what forbids storing forbids it.
    #[test]
    fn no_header_confuses_the_decision(
        value in "[ -~]{0,60}",
        name in prop::sample::select(vec![
            "cache-control", "vary", "expires", "date", "age", "last-modified", "via", "pragma",
        ]),
        status in 200..600_u16,
    ) {
        let mut map = headers("cache-control:max-age=7");
        map.append(name, HeaderValue::from_str(&value).unwrap());
        let mut answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &map,
            body_end: BodyEnd::Announced,
            arrived: arrived(),
            credentials: Credentials::None,
        };
        decide(&answer, &policy(Purpose::Upstream));
        age_on_arrival(&map, Version::HTTP_10, arrived(), Duration::ZERO);
        let mut forbidden = map.clone();
        forbidden.insert("cache-control", HeaderValue::from_static("max-age=7, no-store"));
        answer.headers = &forbidden;
        prop_assert_eq!(decide(&answer, &policy(Purpose::Rescue)), Decision::Pass);
    }

    /// Junk beside what a response says never makes it more cacheable: it is kept at most for as
    /// long, shown at most for as long, and given at most to as many.
    #[test]
    fn junk_never_makes_a_response_more_cacheable(
        said in prop::sample::subsequence(DIRECTIVES.to_vec(), 0..4),
        junk in prop::collection::vec(junk_byte(), 0..30),
        place in 0..4_usize,
        status in prop::sample::select(vec![200_u16, 302, 404, 500, 599]),
    ) {
        let place = place.min(said.len());
        let with_junk = {
            let mut list: Vec<&[u8]> = said.iter().map(|one| one.as_bytes()).collect();
            list.insert(place, &junk);
            list.join(&b", "[..])
        };
        // Junk that happens to spell a directive is none.
        let means_something = [&b"public"[..], b"age", b"understand", b"stale"]
            .iter()
            .any(|word| junk.to_ascii_lowercase().windows(word.len()).any(|part| part == *word));
        prop_assume!(!means_something);
        let plain = kept_at_most(said.join(", ").as_bytes(), status);
        let odd = kept_at_most(&with_junk, status);
        prop_assert!(
            odd.iter().zip(&plain).all(|(odd, plain)| odd <= plain),
            "{:?} against {plain:?} for {:?}", odd, String::from_utf8_lossy(&with_junk)
        );
        ResponseControl::parse(&junk);
    }
}

/// Any byte of a header value; mostly those that mean something.
fn junk_byte() -> impl Strategy<Value = u8> {
    let meaningful = prop::sample::select(b"\"=,;\\ \t0x-no-storeprivate".to_vec());
    prop_oneof![3 => meaningful, 1 => 32..127_u8, 1 => 128..=255_u8]
}

const DIRECTIVES: &[&str] = &[
    "no-store",
    "private",
    "no-cache",
    "private=\"x-a\"",
    "public",
    "max-age=7",
    "s-maxage=9",
    "must-revalidate",
    "stale-while-revalidate=5",
    "stale-if-error=5",
];

/// How far a response with this Cache-Control is used: lifetime, times after it, and by whom.
fn kept_at_most(control: &[u8], status: u16) -> [u64; 4] {
    let mut map = headers("etag:\"1\"");
    let value = HeaderValue::from_bytes(control).unwrap();
    map.insert("cache-control", value);
    let answer = Answer {
        status: StatusCode::from_u16(status).unwrap(),
        headers: &map,
        body_end: BodyEnd::Announced,
        arrived: arrived(),
        credentials: Credentials::None,
    };
    match decide(&answer, &policy(Purpose::Upstream)) {
        Decision::Store(keeping) => [
            1 + keeping.lifetime.as_secs(),
            keeping.stale_while_revalidate.as_secs(),
            keeping.stale_if_error.as_secs(),
            1 + keeping.sharing.0 as u64,
        ],
        Decision::ShareOnce { .. } => [0, 0, 0, 3],
        Decision::PassWithCredentials | Decision::Pass => [0; 4],
    }
}
