//! The head of a source's response, cleaned for our visitors.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::response::Parts;
use levee_vocab::Timestamp;

use crate::cacheability::{BodyEnd, age_on_arrival};
use crate::flight::{Purpose, ResponseHead};
use crate::tags::{TAG_FIELDS, Tags};

/// Fields that end here (RFC 9110 section 7.6.1), that whoever sends the response writes anew, or
/// that would lead visitors past us (Alt-Svc).
const DROPPED: [&str; 12] = [
    "age",
    "alt-svc",
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Whether a response is for one visitor or for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipients {
    /// One: cookies go along. What an origin that we rescue sets loses its Domain; an application
    /// of our own may set them for all of its site.
    One(Purpose),
    /// Many: cookies do not go along.
    Many,
}

/// When a response came, by both clocks, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub at: Timestamp,
    pub date: SystemTime,
    pub delay: Duration,
}

/// The head as visitors get it.
pub(super) fn clean(parts: &Parts, arrival: &Arrival, recipients: Recipients) -> ResponseHead {
    let mut lines = Vec::with_capacity(512);
    let named = named_by_connection(&parts.headers);
    for (name, value) in &parts.headers {
        let name = name.as_str();
        let is_dropped = DROPPED.contains(&name) || TAG_FIELDS.contains(&name);
        if is_dropped || named.iter().any(|other| other == name) {
            continue;
        }
        let is_cookie = name == header::SET_COOKIE.as_str();
        match recipients {
            Recipients::One(Purpose::Rescue) if is_cookie => {
                add_line(&mut lines, name, &without_domain(value.as_bytes()));
            }
            Recipients::Many if is_cookie => {}
            Recipients::One(_) | Recipients::Many => {
                add_line(&mut lines, name, value.as_bytes());
            }
        }
    }
    //= RFC 9110 section 6.6.1: a recipient that caches or forwards adds the Date that is missing.
    if !parts.headers.contains_key(header::DATE) {
        let date = httpdate::fmt_http_date(arrival.date);
        add_line(&mut lines, "date", date.as_bytes());
    }
    for via in parts.headers.get_all(header::VIA) {
        add_line(&mut lines, "via", via.as_bytes());
    }
    add_line(&mut lines, "via", b"1.1 levee");
    ResponseHead {
        status: parts.status,
        // An exact copy: this is what the cache pays for.
        lines: Bytes::copy_from_slice(&lines),
        tags: Tags::of(&parts.headers),
        length: content_length(&parts.headers),
        age_initial: age_on_arrival(&parts.headers, parts.version, arrival.date, arrival.delay),
        received: arrival.at,
    }
}

/// The head of a stored response that `parts`, a 304, says to be unchanged: its fields replace
/// those of the same name (RFC 9111 section 3.2).
pub(super) fn refreshed(old: &ResponseHead, parts: &Parts, arrival: &Arrival) -> ResponseHead {
    let new = clean(parts, arrival, Recipients::Many);
    let about_body = ["content-encoding", "content-type", "content-range"];
    let mut lines = Vec::with_capacity(old.lines.len());
    for (name, value) in old.headers() {
        let replaced = new.headers().any(|(other, _)| other == name);
        let name = std::str::from_utf8(name).unwrap_or_default();
        if !replaced || about_body.contains(&name) {
            add_line(&mut lines, name, value);
        }
    }
    for (name, value) in new.headers() {
        let name = std::str::from_utf8(name).unwrap_or_default();
        if !about_body.contains(&name) {
            add_line(&mut lines, name, value);
        }
    }
    ResponseHead {
        status: old.status,
        lines: Bytes::copy_from_slice(&lines),
        length: old.length,
        tags: match new.tags.is_empty() {
            true => old.tags.clone(),
            false => new.tags.clone(),
        },
        ..new
    }
}

/// The stored fields as a map, for a new decision after a 304.
pub(super) fn header_map(head: &ResponseHead) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in head.headers() {
        let name = header::HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            map.append(name, value);
        }
    }
    map
}

/// Whether a broken-off body will be noticed.
pub(super) fn body_end(parts: &Parts) -> BodyEnd {
    let announced = parts.headers.contains_key(header::CONTENT_LENGTH)
        || parts.headers.contains_key(header::TRANSFER_ENCODING)
        || matches!(parts.status.as_u16(), 204 | 304);
    if announced {
        BodyEnd::Announced
    } else {
        BodyEnd::Unannounced
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// A cookie for one host only: what a site sets under an alias must not reach its neighbours.
fn without_domain(cookie: &[u8]) -> Vec<u8> {
    let mut parts = cookie.split(|&byte| byte == b';');
    // The first part is the cookie itself, whatever it is called.
    let mut kept = vec![parts.next().unwrap_or_default()];
    kept.extend(parts.filter(|attribute| {
        let name = attribute.split(|&byte| byte == b'=').next();
        let name = name.unwrap_or_default().trim_ascii();
        !name.eq_ignore_ascii_case(b"domain")
    }));
    kept.join(&b';')
}

fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

fn add_line(lines: &mut Vec<u8>, name: &str, value: &[u8]) {
    lines.extend_from_slice(name.as_bytes());
    lines.extend_from_slice(b": ");
    lines.extend_from_slice(value);
    lines.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_loses_its_domain_and_nothing_else() {
        let cases = [
            ("a=b; Domain=example.org; Path=/", "a=b; Path=/"),
            ("domain=x; secure", "domain=x; secure"),
            ("a=b;domain = .example.org", "a=b"),
            ("a=domain", "a=domain"),
        ];
        for (cookie, expected) in cases {
            assert_eq!(without_domain(cookie.as_bytes()), expected.as_bytes());
        }
    }
}
