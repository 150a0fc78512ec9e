//! What fuzzing holds against the parsers: properties that every input must have.
//!
//! The targets in `fuzz/` call these functions with what libFuzzer makes up, and a test calls them
//! with everything that is kept in `fuzz/corpus` and `fuzz/crashes`, so a crash that was found once
//! is a test for ever. No property repeats the code under it: each says what another server, or the
//! same one with the bytes cut otherwise, must agree with.

#[cfg(test)]
#[path = "../../../fuzz/kept.rs"]
mod kept;

use std::mem::MaybeUninit;
use std::ops::Range;

use levee_wire::{Claim, Published};

use crate::cacheability::ResponseControl;
use crate::chunked::Incoming;
use crate::connection_fields::is_of_connection;
use crate::files::fuzzed_cut;
use crate::http2::fuzzed_response;
use crate::request::{BodyLength, Flaw, HEADERS_MAX, HeadLimits, HeaderSpace, Request, Version};
use crate::trailers;

/// A target and the property that it tries.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders.
pub const TARGETS: [Target; 6] = [
    ("cache_control", cache_control),
    ("chunked", chunked),
    ("range", range),
    ("request_head", request_head),
    ("response_head", response_head),
    ("signature", signature),
];

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 4096,
    target_bytes: 2048,
};

/// What of a head must be the same however it arrives.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    method: String,
    target: String,
    host: String,
    body: BodyLength,
    fields: usize,
    length: usize,
}

/// A request's head: read alike in one piece and in two, whatever follows it; and what is taken
/// obeys the rules, seen by a reader that looks at lines only.
pub fn request_head(data: &[u8]) {
    let whole = read(data);
    let cuts = data.len().min(96);
    for cut in (0..cuts).chain(data.len().saturating_sub(8)..data.len()) {
        match (read(&data[..cut]), &whole) {
            (Ok(None), _) => {}
            (Ok(Some(part)), Ok(Some(whole))) => assert_eq!(part, *whole, "at {cut}"),
            (Err(_), Err(_)) => {}
            (part, whole) => panic!("at {cut} {part:?}, and then {whole:?}"),
        }
    }
    if let Ok(Some(reading)) = whole {
        let behind = [&data[..reading.length], b"GET / HTTP/1.1\r\n"].concat();
        check_taken(&data[..reading.length], &reading);
        assert_eq!(read(&behind), Ok(Some(reading)));
    }
}

fn read(data: &[u8]) -> Result<Option<Reading>, Flaw> {
    let mut space: HeaderSpace<'_> = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let request = Request::parse(data, LIMITS, &mut space)?;
    Ok(request.map(|request| {
        assert!(request.version != Version::Http11 || has_host(&request));
        Reading {
            method: request.method.to_owned(),
            target: request.target.to_owned(),
            host: request.host.to_owned(),
            body: request.body,
            fields: request.headers.len(),
            length: request.length,
        }
    }))
}

fn has_host(request: &Request<'_, '_>) -> bool {
    let named = |name: &str| name.eq_ignore_ascii_case("host");
    request.headers.iter().any(|header| named(header.name))
}

/// By lines: each ends in CR LF and nowhere else, each field has a name and a colon, and the fields
/// that frame stand there once.
fn check_taken(head: &[u8], reading: &Reading) {
    let text: String = head.iter().map(|&byte| byte as char).collect();
    let text = text.trim_start_matches("\r\n");
    assert!(text.ends_with("\r\n\r\n"));
    let lines: Vec<&str> = text[..text.len() - 4].split("\r\n").collect();
    assert_eq!(lines.len(), reading.fields + 1);
    assert!(lines.iter().all(|line| !line.contains(['\r', '\n', '\0'])));
    assert_eq!(lines[0].split(' ').count(), 3);
    let names = lines[1..].iter().map(|line| {
        let (name, _) = line.split_once(':').expect("a field has a colon");
        assert!(!name.is_empty() && !name.contains([' ', '\t', ',', '"']));
        name.to_ascii_lowercase()
    });
    let names: Vec<String> = names.collect();
    let count = |name: &str| names.iter().filter(|one| *one == name).count();
    let framing = ["host", "content-length", "transfer-encoding"].map(count);
    assert!(framing.iter().all(|count| *count <= 1));
    assert!(framing[1] == 0 || framing[2] == 0);
    assert_eq!(framing[2] == 1, reading.body == BodyLength::Chunked);
    assert!(reading.target.starts_with('/') || reading.target == "*");
    assert!(reading.target.bytes().all(|byte| byte.is_ascii_graphic()));
}

/// A chunked body: the same body, the same trailers and the same end, in whatever pieces it comes.
/// The first byte of the input says how it is cut.
pub fn chunked(data: &[u8]) {
    let Some((&piece, data)) = data.split_first() else {
        return;
    };
    let whole = decode(data, data.len().max(1));
    let cut = decode(data, usize::from(piece).max(1));
    assert_eq!(whole, cut);
    if let Some((body, trailers, end, _)) = whole {
        assert!(body.len() + trailers.len() <= end);
        assert!(trailers.is_empty() || !body.is_empty() || trailers.ends_with(b"\n") || end > 0);
    }
}

/// Body, trailers, bytes used, and whether the end was reached; none where it is no chunked body.
fn decode(data: &[u8], piece: usize) -> Option<(Vec<u8>, Vec<u8>, usize, bool)> {
    let mut incoming = Incoming::of(BodyLength::Chunked);
    let (mut body, mut trailers, mut used) = (Vec::new(), Vec::new(), 0);
    while used < data.len() && !incoming.is_done() {
        let end = data.len().min(used + piece);
        let step = incoming.take(&data[used..end]).ok()?;
        assert!(step.used > 0 && step.data + step.trailers <= step.used);
        used += step.used;
        body.extend_from_slice(&data[used - step.data..used]);
        trailers.extend_from_slice(&data[used - step.trailers..used]);
    }
    Some((body, trailers, used, incoming.is_done()))
}

/// Cache-Control: nothing that is added makes a response more cacheable than it was.
pub fn cache_control(data: &[u8]) {
    let alone = ResponseControl::parse(data);
    let stricter = ResponseControl::parse(&[b"no-store, max-age=5, ", data].concat());
    assert!(stricter.no_store);
    assert!(stricter.max_age.is_some_and(|age| age.as_secs() <= 5));
    assert!(!alone.no_store || stricter.no_store);
    assert!(!alone.must_revalidate || stricter.must_revalidate);
    assert!(!alone.forbids_stale() || stricter.forbids_stale());
    for name in alone.unshared_fields() {
        assert!(name.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase()));
    }
}

/// Range: the parts lie in the object, in order and apart, and are less than all of it. The first
/// two bytes of the input are the object's size.
pub fn range(data: &[u8]) {
    let Some((size, field)) = data.split_at_checked(2) else {
        return;
    };
    let size = u64::from(u16::from_le_bytes([size[0], size[1]]));
    let parts: Vec<Range<u64>> = fuzzed_cut(field, size);
    assert!(
        parts
            .iter()
            .all(|part| part.start < part.end && part.end <= size)
    );
    assert!(parts.windows(2).all(|pair| pair[0].end < pair[1].start));
    let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
    assert!(parts.len() < 2 || bytes < size);
    assert!(parts.len() <= 16);
}

/// The head of a response for HTTP/2, and the lines behind a body: what is taken has no line of a
/// connection, ends within the text, and is read alike whatever follows it.
pub fn response_head(data: &[u8]) {
    if let Some((response, length)) = fuzzed_response(data) {
        assert!(length <= data.len());
        let mut names = response.headers().keys();
        assert!(names.all(|name| !is_of_connection(name.as_str())));
        let behind = [&data[..length], b"x"].concat();
        let again = fuzzed_response(&behind).map(|(again, at)| (again.headers().clone(), at));
        assert_eq!(again, Some((response.headers().clone(), length)));
    }
    if let Some(trailers) = trailers::read(data) {
        assert!(trailers.keys().all(|name| !is_of_connection(name.as_str())));
        let mut lines = Vec::new();
        trailers::push_lines(&trailers, &mut lines);
        lines.extend_from_slice(b"\r\n");
        assert_eq!(trailers::read(&lines), Some(trailers));
    }
}

/// A signature's three fields, a line each: what is read and covers what it should is written back
/// as the very bytes that are signed, and no other response has the same.
pub fn signature(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let fields = [
        levee_wire::DIGEST_FIELD,
        levee_wire::INPUT_FIELD,
        levee_wire::SIGNATURE_FIELD,
    ];
    let fields = fields.map(|name| (name, lines.next()));
    let field = |name: &str| {
        let found = fields.iter().find(|(one, _)| *one == name);
        found.and_then(|(_, value)| *value)
    };
    let Ok(claim) = Claim::read(field) else {
        return;
    };
    let page = Published {
        digest: claim.digest,
        status: 200,
        content_type: Some("text/html"),
        content_encoding: None,
        site: "www.example.org",
        target: "/a?b",
    };
    let Ok(base) = claim.base(&page) else { return };
    let other = Published {
        target: "/c",
        ..page
    };
    assert_ne!(claim.base(&other).as_ref(), Ok(&base));
    let last = base.lines().last().unwrap_or_default();
    assert!(last.starts_with("\"@signature-params\": (\"repr-digest\""));
    assert!(last.contains(&format!("created={}", claim.validity.created)));
    assert_eq!(base.lines().count(), 6);
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        super::kept::try_all(&super::TARGETS);
    }
}
